"""Profilers' own files become points under a roof, and what is missing or broken is one line."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.__main__ import main
from roofline_lib.measuring import profiles
from roofline_lib.measuring.profiles import Profiled, formats

SAMPLES = Path(__file__).parent / "data" / "profiles"
NSIGHT = ["h200_ncu_raw.csv", "h200_ncu_details.csv", "h200_ncu_roofline_raw.csv"]


@pytest.mark.parametrize("name", NSIGHT)
def test_counters_of_the_device_agree_with_what_the_library_counts(name):
    """The three products that the sample's program ran: FLOP to one in a thousand, and bytes not
    below the compulsory ones (but for what of C stays in the L2 when a kernel ends)."""
    cube, rows, _, plain, adding, moving, softmax = profiles.read_profile(SAMPLES / name)
    for point, work, precision in (
        (cube, rl.gemm(4096, 4096, 4096, "bf16"), "bf16"),
        (rows, rl.gemm(16, 4096, 4096, "bf16"), "bf16"),
        (plain, rl.gemm(2048, 2048, 2048), "fp32"),
    ):
        assert point.precision == precision
        assert point.work.flops == pytest.approx(work.flops, rel=0.001)
        assert point.work.bytes_moved > 0.65 * work.bytes_moved
    assert adding.work.flops == pytest.approx(2 * 64 * 2**20, rel=0.01)  # v + 1 u: a fused one
    assert adding.work.bytes_moved == pytest.approx(
        rl.elementwise(64 * 2**20).bytes_moved, rel=0.05
    )
    assert moving.work.flops == 0 and softmax.precision == "fp32"
    for one in profiles.held_against([cube, rows, plain, adding, softmax], "H200 SXM"):
        assert 0 < one.share < 1


def test_pages_of_one_report_agree():
    raw, details, _ = (profiles.read_profile(SAMPLES / name) for name in NSIGHT)
    for one, other in zip(raw, details, strict=True):
        assert one.name == other.name
        # the details page rounds
        assert one.seconds == pytest.approx(other.seconds, rel=0.01)
        assert one.work.bytes_moved == pytest.approx(other.work.bytes_moved, rel=0.01, abs=1e4)


def test_a_trace_gives_the_products_by_their_shapes_and_their_kernels_times():
    points = profiles.read_profile(SAMPLES / "h200_torch_trace.json")
    assert [point.name for point in points] == [
        "mm [4096, 4096] @ [4096, 4096] bf16",
        "mm [16, 4096] @ [4096, 4096] bf16",
        "mm [2048, 2048] @ [2048, 2048] fp32",
    ]
    assert points[0].work == rl.gemm(4096, 4096, 4096, "bf16")
    by_counters = profiles.read_profile(SAMPLES / NSIGHT[0])
    assert points[0].seconds == pytest.approx(by_counters[0].seconds, rel=0.1)


def test_what_jax_does_not_count_is_said():
    with pytest.raises(ValueError, match=r"h200_jax_cost.json: cost has no 'flops' \(got -1.0\)"):
        profiles.read_profile(SAMPLES / "h200_jax_cost.json")


def test_jax_counts_with_a_time(tmp_path):
    told = {"cost": {"flops": 2e12, "bytes accessed": 3e9}, "seconds": 0.004, "precision": "bf16"}
    (tmp_path / "jax.json").write_text(json.dumps(told))
    (point,) = profiles.read_profile(tmp_path / "jax.json")
    assert point == Profiled("jax function", rl.Work(2e12, 3e9), 0.004, "bf16")


def test_own_counts_come_back(tmp_path):
    points = [Profiled("mine", rl.gemm(64, 64, 64), 1e-5, "fp32")]
    profiles.write_profile(tmp_path / "mine.json", points)
    assert profiles.read_profile(tmp_path / "mine.json") == points


# as `perf stat -x,` prints it, with figures of ours
PERF = """# started on Mon Nov 30 10:00:00 2026

2000000000,ns,duration_time,2000000000,100.00,,
1000,,fp_arith_inst_retired.scalar_double,1,100.00,,
500000000,,fp_arith_inst_retired.256b_packed_double,1,100.00,,
<not supported>,,fp_arith_inst_retired.512b_packed_double,0,100.00,,
600.00,MiB,uncore_imc/cas_count_read/,1,100.00,,
400.00,MiB,uncore_imc/cas_count_write/,1,100.00,,
"""


def test_perf_counts_lanes_and_the_controllers_bytes(tmp_path):
    (tmp_path / "perf.csv").write_text(PERF)
    (point,) = profiles.read_profile(tmp_path / "perf.csv")
    assert point.work == rl.Work(4 * 5e8 + 1000, 1000 * 2**20)
    assert (point.seconds, point.precision) == (2.0, "fp64")
    (tmp_path / "perf.csv").write_text(PERF.replace("uncore_imc", "other"))
    with pytest.raises(ValueError, match="counts no uncore_imc/cas_count_read/.*perf stat"):
        profiles.read_profile(tmp_path / "perf.csv")


def test_what_a_virtual_machine_does_not_count_is_said():
    """The sample is a real one: a virtual machine's processor shows no counters."""
    with pytest.raises(ValueError, match="could not count cycles, instructions, cache-misses"):
        profiles.read_profile(SAMPLES / "cpu_perf_stat.csv")


def likwid_table(kind, *rows, name="Group 1", group="MEM_DP"):
    """A table as likwid's printOutput writes it: heads, then a line a metric, filled with commas to
    one length."""
    lines = [f"TABLE,{name} {kind},{group},{len(rows)}", *rows]
    most = max(line.count(",") for line in lines)
    return "\n".join(line + "," * (most - line.count(",")) for line in lines) + "\n"


# as `likwid-perfctr -O` prints it, with figures of ours: two threads, one of which has the bytes
LIKWID_HEAD = "STRUCT,Info,3,\nCPU name:,a CPU,,\nCPU type:,a type,,\nCPU clock:,2.5 GHz,,\n"
LIKWID_RAW = likwid_table("Raw", "Event,Counter,HWThread 0,HWThread 1", "CAS_COUNT_RD,MBOX0C0,7,0")
LIKWID = LIKWID_HEAD + LIKWID_RAW
LIKWID += likwid_table(
    "Metric",
    "Metric,HWThread 0,HWThread 1",
    "Runtime (RDTSC) [s],2.000000e+00,2.000000e+00",
    "Clock [MHz],2500,2500",
    "DP [MFLOP/s],3000,1000",
    "AVX DP [MFLOP/s],2900,900",
    "Memory read data volume [GBytes],6,0",
    "Memory data volume [GBytes],10,-",
    "Operational intensity,0.6,inf",
)
LIKWID += likwid_table(
    "Metric STAT", "Metric,Sum,Min,Max,Avg", "DP [MFLOP/s] STAT,4000,1000,3000,2000"
)


def test_likwid_counts_all_threads_and_a_sockets_bytes_once(tmp_path):
    (tmp_path / "likwid.csv").write_text("what the program printed, before\n" + LIKWID)
    (point,) = profiles.read_profile(tmp_path / "likwid.csv")
    assert (point.name, point.precision, point.seconds) == ("program", "fp64", 2.0)
    assert point.work.flops == pytest.approx(4000e6 * 2)
    assert point.work.bytes_moved == pytest.approx(10e9)
    assert "program" in profiles.table(profiles.held_against([point], "EPYC 9654"))


def test_likwids_regions_are_kernels_and_its_groups_take_turns():
    """FLOPS_SP saw 3 s and MEM 1 s of a region; a thread that worked for a third of the time has
    a third of what its rate says."""

    def group(number, name, *rows, region="loop"):
        return likwid_table(
            "Metric",
            "Metric,Core 0,Core 1",
            *rows,
            name=f"Region {region},Group {number}",
            group=name,
        )

    text = (
        LIKWID_HEAD
        + group(1, "FLOPS_SP", "Runtime (RDTSC) [s],3,1", "SP MFLOP/s,100,300")
        + LIKWID_HEAD
        + group(2, "MEM", "Runtime (RDTSC) [s],1,1", "Memory data volume [GBytes],5,0")
        + LIKWID.replace("TABLE,Group", "TABLE,Region sum, all,Group")
    )
    loop, total = profiles.points.parse(text)
    assert (loop.name, loop.precision, loop.seconds) == ("loop", "fp32", 3.0)
    assert loop.work == rl.Work(600e6, 15e9)
    assert total.name == "sum, all"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "DP [MFLOP/s],3000",
            "DP [MFLOP/s],many",
            "'DP \\[MFLOP/s\\]' of a thread is no number: 'many'",
        ),
        ("DP [MFLOP/s],3000,1000", "DP [MFLOP/s],3000", "has 1 threads and the runtime 2"),
        ("Runtime (RDTSC)", "Time", "no 'Runtime \\(RDTSC\\) \\[s\\]' above 0"),
        ("\nDP [", "\nx [", "program: counts no FLOP"),
        ("Memory data", "L3 data", "counts no 'Memory data volume'"),
        ("Group 1 Metric,", "Group 1 Other,", "no table of a group's metrics"),
        ("DP [MFLOP/s],3000", "DP [MFLOP/s],inf", "FLOP must be a number above 0"),
        ("GBytes],10,", "GBytes],-10,", "bytes must be a number above 0"),
    ],
)
def test_a_broken_likwid_table_is_one_clear_line(old, new, said):
    assert old in LIKWID
    with pytest.raises(ValueError, match=said) as raised:
        profiles.points.parse(LIKWID.replace(old, new))
    assert "\n" not in str(raised.value)


def test_what_is_above_the_roof_is_explained():
    chip = rl.machine("H200 SXM")
    fast = Profiled("fast", rl.Work(2 * chip.peak("bf16"), 1e6), 1.0, "bf16")
    warm = Profiled("warm", rl.Work(1e9, 2 * chip.bandwidth()), 1.0, "fp32")
    short = Profiled("short", rl.Work(1e3, 1e3), 1e-6, "fp32")
    said = [one.suspects for one in profiles.held_against([fast, warm, short], chip)]
    assert "sparse" in said[0][0] and "cache" in said[1][0] and "start" in said[2][0]


def test_points_are_what_draw_roofline_takes():
    points = profiles.read_profile(SAMPLES / NSIGHT[0])
    fig, ax = plt.subplots()
    drawn = rl.draw_roofline(ax, "H200 SXM", ["bf16", "fp32"], profiles.named([*points, *points]))
    assert len(drawn.points) == 2 * sum(point.work.flops > 0 for point in points)
    x, y = drawn.points[points[0].name[:28]].get_data()
    assert np.allclose([x[0], y[0]], [points[0].work.intensity, points[0].performance])
    plt.close(fig)


def test_the_command_prints_a_table(capsys):
    path = str(SAMPLES / NSIGHT[0])
    assert main(["profile", path, "--machine", "h200 sxm"]) == 0
    told = capsys.readouterr().out
    assert "77%  compute" in told and "suspect:" in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no profile that is known here"),
        ("{}", "no profile that is known here"),
        ("{", "the text is no JSON: it breaks at line 1, column 2"),
        ('{"points": [\n1,]}', "is no JSON: it breaks at line 2, column"),
        ('{"schema": "roofline_lib/measured", "points": []}', "a record that `measure` wrote"),
        ('{"points": []}', "no kernel in it"),
        ('"ID","Kernel Name"\n"",""\n"0","k"\n', f"has no {formats.TIME}"),
        ('"ID","Kernel Name"\n', "no kernel in it"),
        (
            '"ID","Kernel Name","gpu__time_duration.sum"\n"","","us"\n"0","k"\n',
            "line 3 of the table has 2 cells, and its head 3: cut off?",
        ),
        ('{"traceEvents": []}', "no matrix product"),
        ('{"traceEvents": 3}', "not as its profiler writes it"),
        ('{"points": [{"name": "a"}]}', r"points\[0\] has no bytes, flops, precision, seconds"),
        (
            '{"points": [{"name": "a", "flops": 1, "bytes": 1, "seconds": 0, "precision": "fp8"}]}',
            "seconds must be a number above 0",
        ),
        ('{"cost": {"flops": 1, "bytes accessed": 1}}', "has no 'seconds'"),
        (
            '{"cost": {"flops": 1, "bytes accessed": 1}, "seconds": "1 ms", "precision": "fp8"}',
            "seconds must be a number; got '1 ms'",
        ),
        (
            '{"points": [{"name": 1, "flops": "2e9", "bytes": 1, "seconds": 1, "precision": 3}]}',
            r"flops of points\[0\] must be a number; got '2e9'",
        ),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel"}]}', "a part has no 'args'"),
        ('{"traceEvents": [7]}', "a part has another form"),
    ],
)
def test_a_broken_file_is_one_clear_line(text, said, tmp_path, capsys):
    path = tmp_path / "profile"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as raised:
        profiles.read_profile(path)
    assert str(path) in str(raised.value)
    assert main(["profile", str(path), "--machine", "H200 SXM"]) == 2
    assert capsys.readouterr().err.startswith("profile: ")
    assert main(["profile", str(tmp_path / "no"), "--machine", "H200 SXM"]) == 2
    assert capsys.readouterr().err == f"profile: {tmp_path / 'no'}: No such file or directory\n"


@given(st.data())
def test_a_cut_or_changed_file_never_ends_in_a_traceback(data):
    samples = [*NSIGHT, "h200_torch_trace.json", "h200_jax_cost.json", "cpu_perf_stat.csv"]
    texts = [(SAMPLES / name).read_text(encoding="utf-8")[:6000] for name in samples]
    text = data.draw(st.sampled_from([*texts, LIKWID, PERF]))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    changed = (
        text[:start] + data.draw(st.sampled_from(["", "x", ",", "\n", "-1", "nan"])) + text[end:]
    )
    try:
        assert profiles.points.parse(changed)
    except ValueError as error:
        assert "argument" not in str(error) and "Expecting" not in str(error)
