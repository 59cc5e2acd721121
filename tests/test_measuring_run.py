"""A run: of this very machine, and of a GPU that is made up."""

import re
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from measured_points import hangs_together, made

from roofline_lib import measuring, own_curve
from roofline_lib.measuring import clocks, cpu, cuda, gpu, load, measure, validate
from roofline_lib.measuring.jobs import Job, Pace, Setup, settle
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    PRODUCT_FAMILIES,
    Chip,
    ProductShape,
    Sample,
    Settings,
)
from roofline_lib.measuring.roofs import sustained_roof
from roofline_lib.measuring.verdicts import verdict


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
    monkeypatch.setattr(cpu.system, "data_caches", lambda among: {"L1": 32768.0, "L2": 1048576.0})
    out = str(tmp_path / "mine.json")
    asked = ["--device", "cpu", "--quick", "--threads", "1", "--out", out]
    assert own_curve.main(asked) == 0
    record = validate(load(out))
    hangs_together(record)
    assert record.finished
    assert record.command == "python -m roofline_lib measure " + " ".join(asked)
    assert record.settings.threads == 1 and "threadpoolctl" in record.settings.pinned_by
    assert {p.family for p in record.points} == {
        *BANDWIDTH_FAMILIES,
        *PRODUCT_FAMILIES,
        "chain_order",
        "chain_width",
    }
    rows = [p.shape.m for p in record.select("gemm_m", precision="fp32")]
    assert record.points[0].family == "gemm_m" and len(rows) >= 8 and rows == sorted(rows)
    an_update = record.find("chain_width").seconds / record.find("chain_width").shape.steps
    assert an_update > 1 / 6e9  # no addition takes less than a cycle
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
        assert own_curve.main(["--device", "cpu", "--quick"]) == 0
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

    name, graphs = "torch", True
    calls = {"bf16": "fake", "fp32": "fake"}

    def __init__(self):
        self.precisions = tuple(self.calls)

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
    without = {f"gemm {one}" for one in ("fp16", "tf32", "fp8", "int8", "fp64")}
    assert {*without, "chain_width", "issue"} <= why.keys()
    assert record.chip.sources == {"gemm bf16": "fake", "gemm fp32": "fake"}
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


def test_kept_looks_stand_among_the_two_a_second_in_order_and_once_each():
    rows = iter([Sample(10 + 0.01 * i, 1e9, 100.0, 40, 0.0) for i in range(200)])
    sampler = clocks.Sampler.__new__(clocks.Sampler)
    vars(sampler).update(
        seen=[],
        samples=[],
        _nvml=SimpleNamespace(sample=lambda: next(rows)),
        _started=10.0,
        _keeping=threading.Lock(),
    )
    for _ in range(200):
        sampler._look()
    assert [sample.at for sample in sampler.samples] == [0.0, 0.5, 1.0, 1.5]
    sampler.keep(10.495, 10.525)
    assert [sample.at for sample in sampler.samples] == [0.0, 0.5, 0.51, 0.52, 1.0, 1.5]


def test_a_cold_run_begins_after_its_rest_and_times_every_execution(monkeypatch):
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    sampler = clocks.Sampler(FakeNvml("0"))
    chip = Chip("GPU", "fake", 4, "SM", 1.5e9, {"DRAM": 8e6, "L2": 1e5})
    bench = gpu.Bench(FakeLibrary(), sampler, chip, quick=False, repeats=3)
    kept = []
    monkeypatch.setattr(sampler, "keep", lambda start, end: kept.append((start, end)))
    before = sampler.since_start(time.monotonic())
    point = bench.cold("zeros", ProductShape(64, 64, 64), idle=0.2, duration=0.1)
    sampler.close()
    assert point.label == "zeros" and point.at >= before + 0.2 - 0.002
    # no time passes between its executions but Python's own; it stops with the first that ends late
    assert sum(point.timing.repeats[:-1]) <= 0.1
    ((first, last),) = (map(sampler.since_start, window) for window in kept)
    assert first < point.at < last


def test_cold_runs_come_first_while_the_device_is_cold(monkeypatch):
    monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    chip = Chip("GPU", "fake", 4, "SM", 1.5e9, {"DRAM": 141e9, "L2": 6e7})
    jobs = gpu.Bench(FakeLibrary(), None, chip, quick=False, repeats=7).jobs()
    assert [job.name for job in jobs[:2]] == ["cold random", "cold zeros"]


def test_a_sampler_has_seen_the_gpu_before_its_thread_had_its_turn(monkeypatch):
    monkeypatch.setattr(clocks.threading.Thread, "start", lambda thread: None)
    sampler = clocks.Sampler(FakeNvml("0"))
    assert sampler.window(0, 1)["clock"] == 1.5e9 and len(sampler.samples) == 1


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(tmp_path, capsys):
    assert own_curve.main(["--quick", "--out", str(tmp_path / "nowhere" / "record.json")]) == 2
    assert "--out must be a file that can be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--threads", "0"], "threads must be 1 to"),
        (["--threads", "-1"], "threads must be 1 to"),
        (["--repeats", "2"], "repeats must be at least 3"),
        (["--model", "laptop", "--links"], "--model and --links"),
        (["--links", "--ranks", "0"], "--ranks must be at least 2"),
        (["--links", "--ranks", "1"], "--ranks must be at least 2"),
        (["--ranks", "2"], "--ranks goes with --links"),
        (["--out", "mine.txt"], "--out must end in .json; got mine.txt"),
        (["--links", "--threads", "1"], "--threads are those of a CPU"),
        (["--device", "gpu", "--threads", "1"], "--threads are those of a CPU"),
    ],
)
def test_what_is_refused_names_what_was_typed_and_leaves_no_file(
    asked, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert own_curve.main(asked) == 2
    told = capsys.readouterr().err
    typed = {word for word in asked if word.startswith("--")}
    assert said in told and told.count("\n") == 1
    assert all(word in (*typed, "--links", "--device") for word in re.findall(r"--\w+", told))
    assert list(tmp_path.iterdir()) == []


def test_each_kind_of_record_has_a_name_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measuring.command, "measure", lambda *_, **__: load("cpu_epyc_2_quick"))
    for asked in ([], ["--links"], ["--model", "laptop"], ["--lab"]):
        assert own_curve.main(asked) == 0
    names = {f"roofline_{kind}.json" for kind in ("record", "links", "model", "lab")}
    assert {path.name for path in tmp_path.iterdir()} == names | {"roofline_lab.png"}


def test_more_threads_than_processors_are_refused():
    with pytest.raises(
        ValueError, match=r"threads must be 1 to \d+, at most one for each processor; got 9999"
    ):
        measure("cpu", quick=True, threads=9999)
