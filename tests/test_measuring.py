"""Measuring: the recorded H200s against physics and the model, the format of a record, verdicts,
and a run of this very machine."""

import copy
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.explorers.marks import Bar, Point
from roofline_lib.measuring import clocks, cpu, cuda, gpu, load, measure, recorded, validate
from roofline_lib.measuring.record import BANDWIDTH_FAMILIES, efficiency, point, settle, sustained
from roofline_lib.measuring.verdicts import explain, launch_floor, regime, verdict
from roofline_lib.tiling import tiled_gemm

ROOT = Path(__file__).resolve().parents[1]
SWEEPS, COUNTERS = ("h200_a1", "h200_a2", "h200_b1"), ("h200_counters_a", "h200_counters_b")
SHEET = rl.machine("H200 SXM")


def points(record, *families, **wanted):
    """A record's points of these families whose precision or shape is as wanted."""
    return [
        p
        for p in record["points"]
        if p["family"] in families
        and all(
            (p if name == "precision" else p["shape"])[name] == value
            for name, value in wanted.items()
        )
    ]


def rate(measured):
    return measured["flops"] / measured["seconds"]["median"]


# --- records


@pytest.mark.parametrize("name", recorded())
def test_a_record_follows_the_schema_and_its_summaries_follow_from_its_repeats(name):
    record = validate(load(name))
    assert record["finished"]
    if record["points"]:
        assert record["sustained"] == sustained(record["points"], record["machine"]["capacities"])
    hangs_together(record)


def hangs_together(record):
    """Quartiles are those of the repeats; products came from more memory than the last cache holds,
    or from 4096 sets of matrices."""
    last = max(
        size for level, size in record["machine"]["capacities"].items() if level.startswith("L")
    )
    for p in record["points"]:
        quartiles = np.quantile(p["repeats"], [0.25, 0.5, 0.75])
        assert np.allclose([p["seconds"][q] for q in ("q1", "median", "q3")], quartiles, rtol=1e-5)
        assert len(p["repeats"]) >= record["settings"]["repeats"]
        if p["family"].startswith("gemm"):
            assert p["working_set"] >= min(2 * last, 4096 * p["bytes_moved"])


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.pop("machine"),
        lambda r: r.update(version=2),
        lambda r: r["points"][0].pop("flops"),
        lambda r: r["points"][0].update(precision="fp12"),
        lambda r: r["points"][0].update(flops=float("nan")),
        lambda r: r["points"][0]["seconds"].update(median=float("inf")),
        lambda r: r["points"][0]["repeats"].clear(),
        lambda r: r["points"][0].update(bytes_moved=-1.0),
        lambda r: r["points"][0].update(colour="red"),
    ],
)
def test_a_broken_record_is_refused_with_its_place(change):
    record = copy.deepcopy(load(SWEEPS[0]))
    change(record)
    with pytest.raises(ValueError, match=r"^record, \$"):
        validate(record)


def test_an_unknown_record_names_the_choices():
    with pytest.raises(KeyError, match="h200_a1"):
        load("h300")


def test_there_are_enough_points_from_two_cards():
    assert len({load(name)["machine"]["card"] for name in SWEEPS}) == 2
    assert sum(len(load(name)["points"]) for name in SWEEPS) >= 800
    assert sum(len(load(name)["traffic"]) for name in COUNTERS) >= 150


# --- the H200, against physics


@pytest.mark.parametrize("name", SWEEPS + COUNTERS)
def test_the_device_is_what_the_catalogue_says(name):
    chip = load(name)["machine"]
    assert (chip["units"], chip["clock"], chip["memory_bus_bits"]) == (
        132,
        1.98e9,
        6016,
    ) and SHEET.units == 132
    assert rl.memory_bandwidth(chip["memory_clock"], chip["memory_bus_bits"]) == pytest.approx(
        4.814e12, rel=1e-3
    )
    assert chip["capacities"]["L2"] == SHEET.capacity("L2") and chip["capacities"][
        "shared memory"
    ] == SHEET.capacity("shared memory")


@pytest.mark.parametrize("name", SWEEPS)
def test_no_point_passes_the_roof_that_its_own_clock_allows(name):
    record = load(name)
    bus = rl.memory_bandwidth(
        record["machine"]["memory_clock"], record["machine"]["memory_bus_bits"]
    )
    for p in record["points"]:
        per_clock = SHEET.find_peak(p["precision"]).flop_per_clock_per_unit
        assert rate(p) <= 132 * per_clock * p["clock"]
        if p["working_set"] >= 2 * SHEET.capacity("L2"):
            assert p["bytes_moved"] / p["seconds"]["median"] <= bus
        # what stands above the sheet's roof stayed in L2
        assert verdict(p, SHEET).suspects.keys() <= {"cache level"}


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_show_the_cache(name):
    record = load(name)
    triad = {
        p["working_set"]: p["bytes_moved"] / p["seconds"]["median"] for p in points(record, "triad")
    }
    in_l2, in_dram = max(v for k, v in triad.items() if k < 5e7), triad[max(triad)]
    assert 1.25 * in_dram < in_l2 and 0.85 * 4.8e12 < in_dram < 4.8e12


@pytest.mark.parametrize("name", SWEEPS)
def test_one_chain_is_latency_and_many_are_throughput(name):
    record = load(name)
    steps = 1 << 19

    def step(**shape):
        (found,) = points(record, "chain_width", **shape)
        return found["seconds"]["median"] / steps

    alone = {w: step(blocks=1, threads=32, width=w) for w in gpu.WIDTHS}
    assert 4.0 <= alone[1] * 1.98e9 < 4.2  # a multiply-add takes four cycles
    assert alone[4] < 1.1 * alone[1]  # up to four independent ones hide in each other's latency
    assert alone[8] / alone[4] == pytest.approx(2, rel=0.02) and alone[16] / alone[
        8
    ] == pytest.approx(2, rel=0.02)
    full = 132 * 256 * 1.98e9
    for p in points(record, "chain_width", blocks=132):
        # to each of an SM's four schedulers
        chains = p["shape"]["width"] * p["shape"]["threads"] / 128
        assert rate(p) / full == pytest.approx(min(1, chains / 4), rel=0.12), p["shape"]


@pytest.mark.parametrize("name", SWEEPS)
def test_products_climb_from_the_slope_to_a_plateau_that_power_sets(name):
    record = load(name)
    layer = [rate(p) for p in points(record, "gemm_m", precision="bf16")]
    assert layer[0] < 5e12 and max(layer) > 600e12 and np.all(np.diff(layer[:10]) > 0)
    (ridge,) = points(record, "gemm_n", precision="fp32", n=80)  # the formula puts the ridge at 84
    assert rate(ridge) < 0.005 * SHEET.peak("fp32")
    (steady,) = points(record, "steady")
    assert (
        steady["power_capped"] == 1
        and 1.35e9 < steady["clock"] < 1.6e9
        and steady["power"] > 0.95 * record["machine"]["power_limit"]
    )
    assert 0.6 < rate(steady) / SHEET.peak("bf16") < 0.75
    assert 0.8 < rate(steady) / (132 * 4096 * steady["clock"]) < 0.95


@pytest.mark.parametrize("name", SWEEPS)
def test_the_better_order_of_a_chain_wins_by_less_than_its_flop(name):
    poor, good = points(load(name), "chain_order")
    assert (poor["label"], good["label"]) == ("(AB)c", "A(Bc)")
    assert poor["flops"] / good["flops"] == pytest.approx(2080, rel=0.001)
    assert 10 < poor["seconds"]["median"] / good["seconds"]["median"] < 30


def test_two_cards_agree_and_one_card_repeats_itself():
    first, again, other = (
        [p["seconds"]["median"] for p in load(name)["points"]] for name in SWEEPS
    )
    same, between = (np.abs(np.divide(x, first) - 1) for x in (again, other))
    assert np.median(same) < 0.005 and np.quantile(same, 0.9) < 0.02
    assert np.median(between) < 0.02 and np.quantile(between, 0.9) < 0.04


# --- counted bytes, against the tiling model


def counted(kernel, **wanted):
    return [
        t
        for name in COUNTERS
        for t in load(name)["traffic"]
        if t["kernel"] == kernel and all(t[k] == v for k, v in wanted.items())
    ]


def panels(t):
    """Bytes of A and B that tiles fetch: the model's count without C."""
    n = t["n"]
    return (
        tiled_gemm(n, n, n, tuple(t["tile"]), t["precision"]).bytes_moved
        - rl.bytes_per_element(t["precision"]) * n * n
    )


def test_the_crossbar_delivers_what_the_tile_says_to_the_byte():
    rows = counted("tiled", loads="past L1")
    assert len(rows) == 66 and {tuple(t["tile"]) for t in rows} >= {
        (b, b) for b in (16, 32, 64, 128, 256)
    }
    for t in rows:
        for repeat in t["repeats"]:
            assert repeat["l2_to_sm_crossbar"] == pytest.approx(panels(t), rel=2e-4), t
            assert repeat["sm_to_l2"] == pytest.approx(
                rl.bytes_per_element(t["precision"]) * t["n"] ** 2, rel=1e-3
            )


def test_l1_saves_a_little_and_the_slices_read_less_than_is_delivered():
    for t in counted("tiled"):
        for repeat in t["repeats"]:
            assert repeat["l1_loads"] == pytest.approx(panels(t), rel=2e-4)
            assert 0.85 * panels(t) < repeat["l2_to_sm_crossbar"] <= panels(t) * 1.0002
            assert repeat["l2_to_sm"] <= repeat["l2_to_sm_crossbar"] * 1.0002


def test_dram_moves_far_less_than_the_tiles_and_never_less_than_the_matrices():
    for t in counted("tiled"):
        once = 2 * rl.bytes_per_element(t["precision"]) * t["n"] ** 2
        dram = np.median([repeat["dram_read"] for repeat in t["repeats"]])
        assert once * 0.99 < dram < panels(t)
    for t in counted("tiled", precision="bf16", n=4096):
        if t["tile"][0] == t["tile"][1]:
            assert (
                4 < panels(t) / np.median([repeat["dram_read"] for repeat in t["repeats"]]) < 25
            ), t["tile"]


@pytest.mark.parametrize(
    ("threads", "a_per_step", "b_per_step"), [("coalesced", 32, None), ("strided", 32 * 32, 32)]
)
def test_a_naive_warp_asks_for_whole_sectors(threads, a_per_step, b_per_step):
    for t in counted("naive", threads=threads):
        s = rl.bytes_per_element(t["precision"])
        # bytes a warp asks for in one step of k, for 32 multiply-adds
        warp = a_per_step + (b_per_step or 32 * s)
        for repeat in t["repeats"]:
            assert repeat["l1_loads"] == pytest.approx(t["n"] ** 3 / 32 * warp, rel=1e-3)


def test_the_order_of_the_loops_shows():
    for precision in ("fp32", "bf16"):
        quick, slow = (
            np.median(
                [
                    r["seconds"]
                    for t in counted(
                        "naive", precision=precision, loads="through L1", threads=threads, n=4096
                    )
                    for r in t["repeats"]
                ]
            )
            for threads in ("coalesced", "strided")
        )
        assert 8 < slow / quick < 20


def test_the_librarys_traffic_follows_from_the_tile_in_its_kernels_name():
    for t in counted("library"):
        sides = re.search(
            r"(\d+)x(\d+)(?:_|x)", t["function"].split("tilesize")[-1].split("tst_")[-1]
        )
        n, s = t["n"], rl.bytes_per_element(t["precision"])
        one, other = int(sides[1]), int(sides[2])
        model = s * n * n * (np.ceil(n / one) + np.ceil(n / other))
        share = np.median([r["l2_to_sm_crossbar"] for r in t["repeats"]]) / model
        # its loads go through L1, where neighbouring tiles find what was fetched
        if t["precision"] == "fp32":
            assert 0.75 < share < 1
        else:  # the copy engine brings whole tiles into shared memory
            assert share == pytest.approx(1, rel=0.03), t["function"]


def test_the_page_is_what_its_tool_writes():
    tool = runpy.run_path(str(ROOT / "tools" / "roofline_vs_measured.py"))
    for name, text in tool["files"]().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, (
            "run python tools/roofline_vs_measured.py"
        )


# --- what points say


def made(
    seconds, flops=2e9, bytes_moved=1e9, family="gemm_n", precision="fp16", working_set=1e12, **more
):
    return point(
        family,
        precision,
        {"n": 1000},
        rl.Work(flops, bytes_moved),
        [seconds] * 3,
        working_set,
        **more,
    )


CHIP = rl.Machine(
    "made up",
    {
        "fp16": (rl.Peak(100e12, "fp16", unit_kind="tensor core", clock=1.5e9),),
        "fp8": 200e12,
        "fp32": 10e12,
    },
    {"DRAM": 1e12},
    {"DRAM": 8e10, "L2": 5e7},
    units=100,
    kind="GPU",
)
# a second each on CHIP
COMPUTE, MEMORY = {"flops": 1e14, "bytes_moved": 1e10}, {"flops": 1e9, "bytes_moved": 1e12}


@pytest.mark.parametrize(
    ("measured", "suspects"),
    [
        (made(1.25, **COMPUTE), set()),
        (made(1.0, **COMPUTE), set()),
        (made(0.9, **COMPUTE, clock=1.7e9), {"clock", "precision", "sparsity"}),
        (made(0.9, **COMPUTE, clock=1.5e9), {"precision", "sparsity"}),
        (made(0.9, **COMPUTE), {"clock", "precision", "sparsity"}),
        (made(0.6, **COMPUTE, clock=1.7e9), {"precision", "sparsity"}),
        (made(0.5, **COMPUTE, clock=1.5e9), {"precision", "sparsity", "units"}),
        (made(0.3, **COMPUTE, clock=1.5e9), {"units"}),
        (made(0.001, **COMPUTE, clock=1.5e9), {"units"}),
        (made(1 / (2**30 / 1e9), **COMPUTE, clock=1.5e9), {"precision", "sparsity", "units"}),
        (made(0.8, **MEMORY, working_set=3e7), {"cache level"}),
        (made(0.8, **MEMORY), {"precision"}),
        (made(1 / 8, **MEMORY), {"units"}),
    ],
)
def test_a_point_above_the_roof_names_its_suspects(measured, suspects):
    said = verdict(measured, CHIP)
    assert set(said.suspects) == suspects
    assert all(name in str(said) for name in suspects) and said.ratio == efficiency(measured, CHIP)
    assert ("cannot be" in str(said)) == bool(suspects)


def test_the_stream_that_sets_a_roof_stands_on_it():
    """A record keeps six digits of its roofs, so the stream itself may lie above by as much."""
    stream = made(0.3, family="copy", working_set=1e9)
    roof = sustained([stream, made(1)], {"L3": 1e7})
    on_it = verdict(
        stream,
        rl.Machine("this one", roof["peaks"] | {"fp16": 1e15}, roof["bandwidths"], {"L3": 1e7}),
    )
    assert on_it.ratio > 1 and not on_it.suspects and "100 % of attainable" in str(on_it)


def test_a_cpu_has_no_sparsity_to_suspect():
    assert set(
        verdict(
            made(0.9, **COMPUTE), rl.Machine("cpu", {"fp16": 100e12}, {"DRAM": 1e12}, kind="CPU")
        ).suspects
    ) == {"clock"}


@pytest.mark.parametrize(
    ("intensity", "family", "where"),
    [
        (40, "gemm_n", "memory"),
        (60, "gemm_n", "ridge"),
        (150, "gemm_n", "ridge"),
        (250, "gemm_n", "compute"),
        (1, "copy", "cache"),
    ],
)
def test_regimes(intensity, family, where):
    assert regime(made(1, flops=intensity * 1e9, family=family, working_set=6e7), CHIP) == where


@pytest.mark.parametrize("name", SWEEPS)
def test_the_factors_of_a_gap_multiply_to_it_and_explain_tensor_core_products(name):
    record = load(name)
    kept_up = rl.Machine.from_record(record)
    for p in points(record, "gemm_m", "gemm_n"):
        factors = explain(p, SHEET, kept_up, launch_floor(record, p["precision"]))
        assert np.prod(list(factors.values())) == pytest.approx(efficiency(p, SHEET), rel=1e-9)
        # from 64 to 16384 and from 0.2 to 80 % of attainable
        if p["precision"] in ("bf16", "fp16", "fp8"):
            assert 0.7 < factors["rest"] < 1.3, p["shape"]


def test_roofs_from_a_record():
    record = load(SWEEPS[0])
    kept_up = rl.Machine.from_record(record)
    assert kept_up.peak("bf16") == pytest.approx(
        max(rate(p) for p in points(record, "gemm_m", "gemm_n", precision="bf16")), rel=1e-5
    )
    assert kept_up.units == 132 and kept_up.bandwidth("L2") > kept_up.bandwidth() > 4.3e12
    assert all(efficiency(p, kept_up) < 1.02 for p in points(record, "gemm_m", "gemm_n"))


def test_a_cache_that_is_no_faster_than_dram_gets_no_figure():
    streams = [
        made(seconds, 0, size, "copy", "fp32", size)
        for size, seconds in ((1e3, 1e-6), (1e6, 1e-5), (1e9, 0.1))
    ]
    assert sustained(streams, {"L1": 1e4, "L2": 1e7})["bandwidths"] == {"DRAM": 1e10, "L2": 1e11}


def test_dram_is_where_four_caches_pass_between_two_uses_of_a_number():
    """A triad in two passes meets its `a` again after two arrays of three; the others meet a number
    after all they touch."""

    def level(family, size):
        return list(
            sustained([made(1, family=family, working_set=size)], {"L3": 3e7})["bandwidths"]
        )

    assert level("copy", 12e7 - 32) == level("read", 12e7) == ["DRAM"] and level("copy", 11e7) == []
    assert (
        level("triad", 12e7) == []
        and level("triad", 18e7) == ["DRAM"]
        and level("triad", 2e7) == ["L3"]
    )


# --- measuring


def test_settle_waits_for_the_warm_up_and_fills_a_block():
    spent = []

    def run(count):
        spent.append(count * 0.01)
        return spent[-1]

    count = settle(run, 0.1, 1.0)
    assert count * 0.01 >= 0.05 and sum(spent) >= 1.0


@pytest.mark.parametrize(
    "wrong", [{"device": "tpu"}, {"device": "cpu", "threads": 0}, {"device": "cpu", "repeats": 2}]
)
def test_a_wrong_argument_is_refused(wrong):
    with pytest.raises(ValueError, match=list(wrong)[-1]):
        measure(**wrong, progress=False)


def test_no_gpu_library_no_gpu(monkeypatch):
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    assert gpu.library() is None
    with pytest.raises(ValueError, match="gpu"):
        measure("gpu")


def start(tmp_path, *arguments):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "roofline_lib",
            "measure",
            "--device",
            "cpu",
            "--quick",
            "--threads",
            "1",
            *arguments,
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_quick_run_gives_a_valid_record_with_a_verdict_on_each_point(tmp_path):
    run = start(tmp_path, "--out", "mine.json")
    out, err = run.communicate(timeout=200)
    assert run.returncode == 0, err
    record = validate(load(tmp_path / "mine.json"))
    hangs_together(record)
    assert (
        record["finished"]
        and record["command"]
        == "python -m roofline_lib measure --device cpu --quick --threads 1 --out mine.json"
    )
    assert record["settings"]["threads"] == 1 and "threadpoolctl" in record["settings"]["pinned_by"]
    assert {p["family"] for p in record["points"]} == {
        *BANDWIDTH_FAMILIES,
        "gemm_n",
        "gemm_m",
        "chain_order",
    }
    assert {p["precision"] for p in points(record, "gemm_m", "gemm_n")} == {"fp64", "fp32"}
    assert "fp16" in out and any("fp16" in missing["what"] for missing in record["absent"])
    kept_up = rl.Machine.from_record(record)
    assert all(str(verdict(p, kept_up)) for p in record["points"])


def test_ctrl_c_leaves_a_valid_record_of_what_was_done(tmp_path):
    run = start(tmp_path, "--repeats", "20")
    seen, begun = "", time.monotonic()
    while not re.search(r" [3-9]/\d\d ", seen) and time.monotonic() - begun < 100:
        seen += run.stderr.read(1)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=100)
    record = validate(load(tmp_path / "roofline_record.json"))
    assert run.returncode == 0 and "interrupted" in err
    assert record["finished"] is None and 3 <= len(record["points"]) < 40


class FakeEvent:
    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass


class FakeLibrary:
    """The face of cuda.Torch over numpy, short of memory for large products."""

    name, graphs, precisions = "torch", True, ("bf16", "fp32")

    def versions(self):
        return {"fake": "1"}

    def describe(self):
        return {
            "name": "fake",
            "units": 4,
            "memory": 8e6,
            "l2": 1e5,
            "shared_memory": 1e4,
            "uuid": "x",
            "pci_bus_id": "0",
        }

    def random(self, shape, precision):
        if len(shape) == 3 and shape[1] > 200:
            raise RuntimeError("out of memory\nand a long story")
        return np.random.default_rng(0).standard_normal(shape, np.float32)

    def empty(self, shape, precision):
        return np.empty(shape, np.float32)

    def product(self, a, b, out, precision):
        # products are tested elsewhere; threads of a BLAS get in each other's way on a busy machine
        return lambda: out.fill(1)

    def stream(self, family, *arrays):
        return {"read": arrays[0].sum, "copy": lambda: np.copyto(*arrays)}.get(
            family, lambda: np.multiply(arrays[1], 3, out=arrays[0])
        )

    def runner(self, calls):
        return cuda.Runner(
            lambda: [call() for call in calls],
            len(calls),
            [FakeEvent(), FakeEvent()],
            lambda a, b: 1e3 * (b.at - a.at),
        )


def test_a_gpu_run_records_what_its_library_can_and_why_not_the_rest(monkeypatch):
    monkeypatch.setattr(cuda, "Torch", FakeLibrary)
    monkeypatch.setattr(gpu, "library", lambda: "torch")
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    monkeypatch.setattr(gpu, "Nvml", FakeNvml)
    record = validate(measure("gpu", quick=True, progress=False))
    hangs_together(record)
    assert (
        record["machine"]["kind"] == "GPU"
        and record["machine"]["units"] == 4
        and record["machine"]["clock"] == 1.5e9
    )
    assert {p["family"] for p in record["points"]} == {
        "read",
        "copy",
        "scale",
        "triad",
        "gemm_n",
        "chain_order",
    }
    assert (
        all(p["clock"] == 1.5e9 and p["power"] == 300 for p in record["points"])
        and record["samples"]
    )
    why = {missing["what"]: missing["why"] for missing in record["absent"]}
    assert {"gemm fp16", "gemm tf32", "gemm fp8", "chain_width"} <= why.keys()
    assert [w for what, w in why.items() if what.startswith("gemm_n fp32 (256")] == [
        "out of memory"
    ]


class FakeNvml:
    def __init__(self, pci_bus_id):
        pass

    def describe(self):
        return {"clock": 1.5e9}

    def sample(self):
        return time.monotonic(), 1.5e9, 300.0, 50, 0.0


def test_the_sampler_averages_a_window_and_leaves_out_what_the_driver_refuses():
    rows = iter(
        [(0.0, 1e9, 100.0, 40, 0.0), (1.0, 2e9, 200.0, None, 1.0), (2.0, 3e9, None, None, 1.0)]
    )
    sampler = clocks.Sampler(SimpleNamespace(sample=lambda: next(rows, (9.0, 9e9, 9.0, 9, 0.0))))
    while len(sampler.rows) < 3:
        time.sleep(0.01)
    sampler.close()
    assert sampler.window(0.5, 2.5) == {"clock": 2.5e9, "power": 200.0, "power_capped": 1.0}
    assert sampler.window(100, 101)["clock"] in (3e9, 9e9)  # nothing there: the last one


def test_a_cpus_peak_is_counted():
    chip = {"units": 2, "clock": 3e9, "vector_flags": ["avx2", "avx512f"]}
    assert cpu.counted_peaks(chip) == {"fp64": 2 * 2 * 8 * 2 * 3e9, "fp32": 2 * 2 * 16 * 2 * 3e9}


# --- the explorer


@pytest.mark.parametrize(
    ("family", "m"),
    [("over m, one layer", 1), ("over m, one layer", 1024), ("over n = m = k", 1024)],
)
def test_the_explorer_shows_the_records_own_point_and_its_factors(family, m):
    explorer = rl.MeasuredExplorer("h200_b1", "bf16", family, m)
    (p,) = points(
        load("h200_b1"),
        {"over m, one layer": "gemm_m"}.get(family, "gemm_n"),
        precision="bf16",
        m=m,
    )
    (filled,) = [mark for mark in explorer.now.marks if isinstance(mark, Point) and mark.bold]
    assert filled.y == rate(p) and filled.x == p["flops"] / p["bytes_moved"]
    *factors, share = [mark.parts[0] for mark in explorer.now.marks if isinstance(mark, Bar)]
    assert np.prod(factors) == pytest.approx(share) == pytest.approx(efficiency(p, SHEET))
    assert rl.quantity(rate(p), "FLOP/s") in explorer.readout and (
        "power limit" in explorer.readout
    ) == (p["power_capped"] > 0.5)


def test_the_explorer_takes_a_record_of_ones_own_and_says_what_it_does_not_know():
    mine = load("h200_a1")
    mine["machine"]["name"] = "some card"
    explorer = rl.MeasuredExplorer(mine, "fp8", "over n = m = k", 300)
    assert "[256, 256] @" in explorer.readout and "catalogue has no some card" in explorer.readout
    explorer.controls["precision"].value = "fp64"
    assert (
        explorer.now.readout
        == "The record of some card has no products in fp64. It has bf16, fp16, tf32, fp32, fp8."
    )
    mine["points"][0]["flops"] = float("nan")
    with pytest.raises(ValueError, match="finite"):
        rl.MeasuredExplorer(mine)


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(tmp_path, capsys):
    assert measuring.main(["--quick", "--out", str(tmp_path / "nowhere" / "record.json")]) == 2
    assert "--out must be a file that can be written" in capsys.readouterr().err


def test_the_explorer_takes_the_path_of_a_record(tmp_path):
    measuring.save(measuring.load("cpu_xeon_4"), tmp_path / "mine.json")
    assert "fp32" in rl.MeasuredExplorer(str(tmp_path / "mine.json"), precision="fp32").readout
