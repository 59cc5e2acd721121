"""Measuring: the recorded H200s against physics and the model, the format of a record, verdicts,
and a run of this very machine."""

import json
import re
import runpy
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.explorers import marks
from roofline_lib.measuring import (
    clocks,
    command,
    cpu,
    cuda,
    gpu,
    load,
    measure,
    recorded,
    validate,
)
from roofline_lib.measuring.jobs import Job, Pace, Setup, settle
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    PRODUCT_FAMILIES,
    Chip,
    Point,
    ProductShape,
    Record,
    Sample,
    Settings,
    StreamShape,
    Timing,
)
from roofline_lib.measuring.roofs import counted_peaks, nominal_roof, sustained_by, sustained_roof
from roofline_lib.measuring.verdicts import efficiency, explain, launch_floor, regime, verdict
from roofline_lib.tiling import tiled_gemm

ROOT = Path(__file__).resolve().parents[1]
SWEEPS, COUNTERS = ("h200_a1", "h200_a2", "h200_b1"), ("h200_counters_a", "h200_counters_b")
SHEET = rl.machine("H200 SXM")


def points(record, *families, precision=None, **sizes):
    """A record's points of these families whose precision and sizes are as wanted."""
    return [
        point
        for point in record.select(*families, precision=precision)
        if sizes.items() <= point.shape.sizes.items()
    ]


# --- records


def as_stored(name):
    """The JSON of a record as it lies in its file."""
    path = ROOT / "roofline_lib" / "data" / "measured" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", recorded())
def test_a_record_follows_the_schema_and_its_summaries_follow_from_its_repeats(name):
    record = validate(load(name))
    assert record.finished
    assert record.sustained == sustained_by(record.points, record.chip.capacities)
    hangs_together(record)


@pytest.mark.parametrize("name", recorded())
def test_a_record_read_and_written_is_the_same_json(name, tmp_path):
    """As text, so that 1 and 1.0 differ; the order of the keys says nothing."""
    stored = json.dumps(as_stored(name), sort_keys=True)
    assert json.dumps(load(name).to_json(), sort_keys=True) == stored
    measuring.save(load(name), tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert json.dumps(written, sort_keys=True) == stored


def hangs_together(record):
    """Quartiles are those of the repeats; products came from more memory than the last cache holds,
    or from 4096 sets of matrices."""
    last, _ = record.chip.caches[-1]
    for point in record.points:
        timing = point.timing
        quartiles = np.quantile(timing.repeats, [0.25, 0.5, 0.75])
        assert np.allclose([timing.q1, timing.median, timing.q3], quartiles, rtol=1e-5)
        assert len(timing.repeats) >= record.settings.repeats
        if point.family in PRODUCT_FAMILIES:
            assert point.working_set >= min(2 * last, 4096 * point.work.bytes_moved)


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
        lambda r: r["points"][0].update(shape={"m": 3}),
    ],
)
def test_a_broken_record_is_refused_with_its_place(change):
    broken = as_stored("cpu_epyc_2_quick")
    change(broken)
    with pytest.raises(ValueError, match=r"^record, \$"):
        Record.from_json(broken)


def test_a_file_of_ones_own_is_checked_when_it_is_read(tmp_path):
    broken = as_stored("cpu_epyc_2_quick")
    del broken["machine"]["name"]
    (tmp_path / "mine.json").write_text(json.dumps(broken), encoding="utf-8")
    with pytest.raises(ValueError, match=r"^record, \$.machine: 'name' is a required property"):
        load(tmp_path / "mine.json")


def test_what_was_not_recorded_is_none_and_stays_out_of_the_file():
    """A driver that refuses a figure leaves it out; a clock is written even where it is not known,
    since the format asks for it."""
    record = load("cpu_epyc_2_quick")
    assert record.chip.power_limit is None and record.points[0].clock is None
    written = validate(replace(record, chip=replace(record.chip, clock=None))).to_json()
    assert "power_limit" not in written["machine"] and "clock" not in written["points"][0]
    assert written["machine"]["clock"] is None


def test_an_unknown_record_names_the_choices():
    with pytest.raises(KeyError, match="h200_a1"):
        load("h300")


# --- the H200, against physics


@pytest.mark.parametrize("name", SWEEPS + COUNTERS)
def test_the_device_is_what_the_catalogue_says(name):
    chip = load(name).chip
    assert (chip.units, chip.clock, chip.memory_bus_bits) == (SHEET.units, 1.98e9, 6016)
    bus = rl.memory_bandwidth(chip.memory_clock, chip.memory_bus_bits)
    assert bus == pytest.approx(4.814e12, rel=1e-3)
    for level in ("L2", "shared memory"):
        assert chip.capacities[level] == SHEET.capacity(level)


@pytest.mark.parametrize("name", SWEEPS)
def test_no_point_passes_the_roof_that_its_own_clock_allows(name):
    record = load(name)
    bus = rl.memory_bandwidth(record.chip.memory_clock, record.chip.memory_bus_bits)
    for p in record.points:
        per_clock = SHEET.find_peak(p.precision).flop_per_clock_per_unit
        assert p.performance <= 132 * per_clock * p.clock
        if p.working_set >= 2 * SHEET.capacity("L2"):
            assert p.bandwidth <= bus
        # what stands above the sheet's roof stayed in L2
        assert verdict(p, SHEET).suspects.keys() <= {"cache level"}


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_show_the_cache(name):
    record = load(name)
    triad = {p.working_set: p.bandwidth for p in record.select("triad")}
    in_l2, in_dram = max(v for k, v in triad.items() if k < 5e7), triad[max(triad)]
    assert 1.25 * in_dram < in_l2 and 0.85 * 4.8e12 < in_dram < 4.8e12


@pytest.mark.parametrize("name", SWEEPS)
def test_one_chain_is_latency_and_many_are_throughput(name):
    record = load(name)
    steps = 1 << 19

    def step(**shape):
        (found,) = points(record, "chain_width", **shape)
        return found.seconds / steps

    alone = {w: step(blocks=1, threads=32, width=w) for w in gpu.WIDTHS}
    assert 4.0 <= alone[1] * 1.98e9 < 4.2  # a multiply-add takes four cycles
    assert alone[4] < 1.1 * alone[1]  # up to four independent ones hide in each other's latency
    assert alone[8] / alone[4] == pytest.approx(2, rel=0.02) and alone[16] / alone[
        8
    ] == pytest.approx(2, rel=0.02)
    full = 132 * 256 * 1.98e9
    for p in points(record, "chain_width", blocks=132):
        # to each of an SM's four schedulers
        chains = p.shape.width * p.shape.threads / 128
        assert p.performance / full == pytest.approx(min(1, chains / 4), rel=0.12), p.shape


@pytest.mark.parametrize("name", SWEEPS)
def test_products_climb_from_the_slope_to_a_plateau_that_power_sets(name):
    record = load(name)
    layer = [p.performance for p in points(record, "gemm_m", precision="bf16")]
    assert layer[0] < 5e12 and max(layer) > 600e12 and np.all(np.diff(layer[:10]) > 0)
    (ridge,) = points(record, "gemm_n", precision="fp32", n=80)  # the formula puts the ridge at 84
    assert ridge.performance < 0.005 * SHEET.peak("fp32")
    (steady,) = points(record, "steady")
    assert (
        steady.power_capped == 1
        and 1.35e9 < steady.clock < 1.6e9
        and steady.power > 0.95 * record.chip.power_limit
    )
    assert 0.6 < steady.performance / SHEET.peak("bf16") < 0.75
    assert 0.8 < steady.performance / (132 * 4096 * steady.clock) < 0.95


@pytest.mark.parametrize("name", SWEEPS)
def test_the_better_order_of_a_chain_wins_by_less_than_its_flop(name):
    poor, good = points(load(name), "chain_order")
    assert (poor.label, good.label) == ("(AB)c", "A(Bc)")
    assert poor.work.flops / good.work.flops == pytest.approx(2080, rel=0.001)
    assert 10 < poor.seconds / good.seconds < 30


def test_two_cards_agree_and_one_card_repeats_itself():
    first, again, other = ([p.seconds for p in load(name).points] for name in SWEEPS)
    same, between = (np.abs(np.divide(x, first) - 1) for x in (again, other))
    assert np.median(same) < 0.005 and np.quantile(same, 0.9) < 0.02
    assert np.median(between) < 0.02 and np.quantile(between, 0.9) < 0.04


# --- counted bytes, against the tiling model


def counted(kernel, **wanted):
    return [
        t
        for name in COUNTERS
        for t in load(name).traffic
        if t.kernel == kernel and all(getattr(t, key) == value for key, value in wanted.items())
    ]


def panels(t):
    """Bytes of A and B that tiles fetch: the model's count without C."""
    n = t.n
    return (
        tiled_gemm(n, n, n, t.tile, t.precision).bytes_moved
        - rl.bytes_per_element(t.precision) * n * n
    )


def test_the_crossbar_delivers_what_the_tile_says_to_the_byte():
    rows = counted("tiled", loads="past L1")
    assert {t.tile for t in rows} >= {(b, b) for b in (16, 32, 64, 128, 256)}
    for t in rows:
        for repeat in t.repeats:
            assert repeat.l2_to_sm_crossbar == pytest.approx(panels(t), rel=2e-4), t
            assert repeat.sm_to_l2 == pytest.approx(
                rl.bytes_per_element(t.precision) * t.n**2, rel=1e-3
            )


def test_l1_saves_a_little_and_the_slices_read_less_than_is_delivered():
    for t in counted("tiled"):
        for repeat in t.repeats:
            assert repeat.l1_loads == pytest.approx(panels(t), rel=2e-4)
            assert 0.85 * panels(t) < repeat.l2_to_sm_crossbar <= panels(t) * 1.0002
            assert repeat.l2_to_sm <= repeat.l2_to_sm_crossbar * 1.0002


def test_dram_moves_far_less_than_the_tiles_and_never_less_than_the_matrices():
    for t in counted("tiled"):
        once = 2 * rl.bytes_per_element(t.precision) * t.n**2
        dram = t.median.dram_read
        assert once * 0.99 < dram < panels(t)
    for t in counted("tiled", precision="bf16", n=4096):
        if t.tile[0] == t.tile[1]:
            assert 4 < panels(t) / t.median.dram_read < 25, t.tile


@pytest.mark.parametrize(
    ("threads", "a_per_step", "b_per_step"), [("coalesced", 32, None), ("strided", 32 * 32, 32)]
)
def test_a_naive_warp_asks_for_whole_sectors(threads, a_per_step, b_per_step):
    for t in counted("naive", threads=threads):
        s = rl.bytes_per_element(t.precision)
        # bytes a warp asks for in one step of k, for 32 multiply-adds
        warp = a_per_step + (b_per_step or 32 * s)
        for repeat in t.repeats:
            assert repeat.l1_loads == pytest.approx(t.n**3 / 32 * warp, rel=1e-3)


def test_the_order_of_the_loops_shows():
    for precision in ("fp32", "bf16"):
        quick, slow = (
            np.median(
                [
                    r.seconds
                    for t in counted(
                        "naive", precision=precision, loads="through L1", threads=threads, n=4096
                    )
                    for r in t.repeats
                ]
            )
            for threads in ("coalesced", "strided")
        )
        assert 8 < slow / quick < 20


def test_the_librarys_traffic_follows_from_the_tile_in_its_kernels_name():
    for t in counted("library"):
        sides = re.search(r"(\d+)x(\d+)(?:_|x)", t.function.split("tilesize")[-1].split("tst_")[-1])
        n, s = t.n, rl.bytes_per_element(t.precision)
        one, other = int(sides[1]), int(sides[2])
        model = s * n * n * (np.ceil(n / one) + np.ceil(n / other))
        share = t.median.l2_to_sm_crossbar / model
        # its loads go through L1, where neighbouring tiles find what was fetched
        if t.precision == "fp32":
            assert 0.75 < share < 1
        else:  # the copy engine brings whole tiles into shared memory
            assert share == pytest.approx(1, rel=0.03), t.function


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
    shape = StreamShape(1e9) if family in BANDWIDTH_FAMILIES else ProductShape(1000, 1000, 1000)
    work, timing = rl.Work(flops, bytes_moved), Timing.of([seconds] * 3)
    return Point(family, precision, shape, work, working_set, timing, **more)


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
    roof = sustained_by([stream, made(1)], {"L3": 1e7})
    on_it = verdict(stream, rl.Machine("this one", {"fp16": 1e15}, roof.bandwidths, {"L3": 1e7}))
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
    kept_up = sustained_roof(record)
    for p in points(record, "gemm_m", "gemm_n"):
        factors = explain(p, SHEET, kept_up, launch_floor(record, p.precision))
        assert np.prod(list(factors.values())) == pytest.approx(efficiency(p, SHEET), rel=1e-9)
        # from 64 to 16384 and from 0.2 to 80 % of attainable
        if p.precision in ("bf16", "fp16", "fp8"):
            assert 0.7 < factors["rest"] < 1.3, p.shape


def test_roofs_from_a_record():
    record = load(SWEEPS[0])
    kept_up = sustained_roof(record)
    assert kept_up.peak("bf16") == pytest.approx(
        max(p.performance for p in points(record, "gemm_m", "gemm_n", precision="bf16")), rel=1e-5
    )
    assert kept_up.units == 132 and kept_up.bandwidth("L2") > kept_up.bandwidth() > 4.3e12
    assert all(efficiency(p, kept_up) < 1.02 for p in points(record, "gemm_m", "gemm_n"))


def test_a_cache_that_is_no_faster_than_dram_gets_no_figure():
    streams = [
        made(seconds, 0, size, "copy", "fp32", size)
        for size, seconds in ((1e3, 1e-6), (1e6, 1e-5), (1e9, 0.1))
    ]
    assert sustained_by(streams, {"L1": 1e4, "L2": 1e7}).bandwidths == {"DRAM": 1e10, "L2": 1e11}


def test_dram_is_where_four_caches_pass_between_two_uses_of_a_number():
    """A triad in two passes meets its `a` again after two arrays of three; the others meet a number
    after all they touch."""

    def level(family, size):
        stream = made(1, family=family, working_set=size)
        return list(sustained_by([stream], {"L3": 3e7}).bandwidths)

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

    count = settle(run, Pace(0.1, 1.0, repeats=3))
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


def test_a_quick_run_gives_a_valid_record_with_a_verdict_on_each_point(
    monkeypatch, tmp_path, capsys
):
    """This machine's own caches may be large, and the run with them long: small ones will do."""
    monkeypatch.setattr(cpu, "_caches", lambda threads: {"L1": 32768.0, "L2": 1048576.0})
    out = str(tmp_path / "mine.json")
    asked = ["--device", "cpu", "--quick", "--threads", "1", "--out", out]
    assert command.main(asked) == 0
    record = validate(load(out))
    hangs_together(record)
    assert record.finished
    assert record.command == "python -m roofline_lib measure " + " ".join(asked)
    assert record.settings.threads == 1 and "threadpoolctl" in record.settings.pinned_by
    assert {p.family for p in record.points} == {
        *BANDWIDTH_FAMILIES,
        *PRODUCT_FAMILIES,
        "chain_order",
    }
    assert {p.precision for p in record.select(*PRODUCT_FAMILIES)} == {"fp64", "fp32"}
    said = capsys.readouterr().out
    assert "fp16" in said and any("fp16" in missing.what for missing in record.absent)
    kept_up = sustained_roof(record)
    assert all(str(verdict(p, kept_up)) for p in record.points)


def runs_jobs(monkeypatch, *jobs):
    """Let a run on the CPU be these jobs and nothing else."""
    chip = Chip("CPU", "this one", 1, "core", 1e9, {"L1": 1e5})
    setup = Setup(chip, {}, Settings(True, 3, ()), [Job("a job", job) for job in jobs])
    monkeypatch.setattr(measuring.run.cpu, "prepare", lambda *_: setup)


def test_ctrl_c_leaves_a_valid_record_of_what_was_done(monkeypatch, tmp_path, capsys):
    """The signal comes from inside the fourth job, so that no clock decides what it meets."""
    done = [lambda: made(1e-3, precision="fp32")] * 3
    monkeypatch.chdir(tmp_path)
    runs_jobs(monkeypatch, *done, lambda: signal.raise_signal(signal.SIGINT), *done)
    # a process that was started in the background may have been told to ignore it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert command.main(["--device", "cpu", "--quick"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert "interrupted: the record holds 3 of 7 points" in capsys.readouterr().err
    record = validate(load(tmp_path / "roofline_record.json"))
    assert record.finished is None and len(record.points) == 3


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (RuntimeError("out of memory\nand a long story"), "out of memory"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_a_job_that_fails_is_absent_with_its_reason_and_the_rest_goes_on(monkeypatch, error, why):
    def fails():
        raise error

    runs_jobs(monkeypatch, fails, lambda: made(1e-3, precision="fp32"))
    record = validate(measure("cpu", progress=False))
    assert [missing.why for missing in record.absent] == [why]
    assert record.finished and len(record.points) == 1


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
        return cuda.Device(
            "fake", 4, memory=8e6, l2=1e5, shared_memory=1e4, uuid="x", pci_bus_id="0"
        )

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
    assert record.chip.kind == "GPU" and record.chip.units == 4 and record.chip.clock == 1.5e9
    assert {p.family for p in record.points} == {
        "read",
        "copy",
        "scale",
        "triad",
        "gemm_n",
        "chain_order",
    }
    assert all(p.clock == 1.5e9 and p.power == 300 for p in record.points) and record.samples
    why = {missing.what: missing.why for missing in record.absent}
    assert {"gemm fp16", "gemm tf32", "gemm fp8", "chain_width"} <= why.keys()
    assert [w for what, w in why.items() if what.startswith("gemm_n fp32 (256")] == [
        "out of memory"
    ]


class FakeNvml:
    def __init__(self, pci_bus_id):
        pass

    def complete(self, chip):
        return replace(chip, clock=1.5e9)

    def sample(self):
        return Sample(time.monotonic(), 1.5e9, 300.0, 50, 0.0)


def test_the_sampler_averages_a_window_and_leaves_out_what_the_driver_refuses():
    first = [
        Sample(0.0, 1e9, 100.0, 40, 0.0),
        Sample(1.0, 2e9, 200.0, None, 1.0),
        Sample(2.0, 3e9, None, None, 1.0),
    ]
    rows, last = iter(first), Sample(9.0, 9e9, 9.0, 9, 0.0)
    sampler = clocks.Sampler(SimpleNamespace(sample=lambda: next(rows, last)))
    while len(sampler.seen) < 3:
        time.sleep(0.01)
    sampler.close()
    assert sampler.window(0.5, 2.5) == {"clock": 2.5e9, "power": 200.0, "power_capped": 1.0}
    assert sampler.window(100, 101)["clock"] in (3e9, 9e9)  # nothing there: the last one


def test_a_sampler_has_seen_the_gpu_before_its_thread_had_its_turn(monkeypatch):
    monkeypatch.setattr(clocks.threading.Thread, "start", lambda thread: None)
    sampler = clocks.Sampler(FakeNvml("0"))
    assert sampler.window(0, 1)["clock"] == 1.5e9 and len(sampler.samples) == 1


def test_a_cpus_peak_is_counted():
    chip = Chip("CPU", "two cores", 2, "core", 3e9, {}, vector_flags=("avx2", "avx512f"))
    assert counted_peaks(chip) == {"fp64": 2 * 2 * 8 * 2 * 3e9, "fp32": 2 * 2 * 16 * 2 * 3e9}


def test_the_nominal_roof_is_the_catalogues_for_a_gpu_and_counted_for_a_cpu():
    assert nominal_roof(load("h200_a1")) is SHEET
    record = load("cpu_xeon_4")
    roof = nominal_roof(record)
    assert {p: roof.peak(p) for p in roof.precisions} == counted_peaks(record.chip)
    assert roof.bandwidths == sustained_roof(record).bandwidths


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
    (filled,) = [mark for mark in explorer.now.marks if isinstance(mark, marks.Point) and mark.bold]
    assert filled.y == p.performance and filled.x == p.work.intensity
    *factors, share = [mark.parts[0] for mark in explorer.now.marks if isinstance(mark, marks.Bar)]
    assert np.prod(factors) == pytest.approx(share) == pytest.approx(efficiency(p, SHEET))
    assert rl.quantity(p.performance, "FLOP/s") in explorer.readout and (
        "power limit" in explorer.readout
    ) == (p.power_capped > 0.5)


def test_the_explorer_takes_a_record_of_ones_own_and_says_what_it_does_not_know():
    record = load("h200_a1")
    mine = replace(record, chip=replace(record.chip, name="some card"))
    explorer = rl.MeasuredExplorer(mine, "fp8", "over n = m = k", 300)
    assert "[256, 256] @" in explorer.readout and "catalogue has no some card" in explorer.readout
    explorer.controls["precision"].value = "fp64"
    assert (
        explorer.now.readout
        == "The record of some card has no products in fp64. It has bf16, fp16, tf32, fp32, fp8."
    )
    broken = replace(mine.points[0], timing=replace(mine.points[0].timing, q3=float("nan")))
    with pytest.raises(ValueError, match="finite"):
        rl.MeasuredExplorer(replace(mine, points=(broken,)))


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(tmp_path, capsys):
    assert command.main(["--quick", "--out", str(tmp_path / "nowhere" / "record.json")]) == 2
    assert "--out must be a file that can be written" in capsys.readouterr().err


def test_the_explorer_takes_the_path_of_a_record(tmp_path):
    measuring.save(measuring.load("cpu_xeon_4"), tmp_path / "mine.json")
    assert "fp32" in rl.MeasuredExplorer(str(tmp_path / "mine.json"), precision="fp32").readout
