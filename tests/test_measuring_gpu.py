"""A GPU that is imagined: its library says what each call costs and no time passes. What fails is
absent and said, and what it shows at first is kept apart from what it sustains."""

import re
import shutil
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from measured_points import made
from test_measuring_machines import fake_torch

from roofline_lib.measuring import compiling, cuda, gpu, load, loops, measure, validate
from roofline_lib.measuring.record import Timing
from roofline_lib.measuring.roofs import BURST, cold_peaks

RATES = {
    "bf16": 700e12,
    "fp16": 700e12,
    "tf32": 350e12,
    "fp32": 50e12,
    "fp8": 1300e12,
    "int8": 900e12,
    "fp64": 55e12,
}
COLD_GAIN = 1.25  # how much faster it is for the first 30 ms after a rest


@dataclass(frozen=True)
class Shaped:
    """An array as far as its shape goes."""

    shape: tuple

    def __getitem__(self, i):
        return Shaped(self.shape[1:])

    def __rmul__(self, factor):
        return self

    @property
    def T(self):
        return Shaped(self.shape[::-1])


class Imagined:
    """The face of cuda.Torch. `broken` is {precision: what a product in it says}."""

    name, graphs = "torch", True

    def __init__(self, rates=None, broken=None, memory=141e9, capability=(9, 0)):
        self.rates = RATES if rates is None else rates
        self.broken, self.memory, self.capability = broken or {}, memory, capability
        self.calls = dict.fromkeys(self.rates, "imagined")
        self.precisions = tuple(self.rates)
        self.now, self.rested, self.spent = 0.0, 0.0, 0.0

    def call(self, seconds):
        """A call that costs so much."""

        def spend():
            self.spent += seconds

        return spend

    def versions(self):
        return {"imagined": "1"}

    def describe(self):
        return cuda.Device("imagined", 132, self.memory, 6e7, 2e5, None, None, self.capability)

    def random(self, shape, precision):
        return Shaped(shape)

    empty = random

    def product(self, a, b, out, precision):
        if precision in self.broken and a.shape[0] > self.broken[precision][0]:
            raise RuntimeError(self.broken[precision][1])
        sizes = (*a.shape, b.shape[-1]) if len(b.shape) > 1 else (*a.shape, 1)
        flops = 2 * np.prod([float(size) for size in sizes])
        return self.call(1e-6 + flops / self.rates[precision])

    def stream(self, family, *arrays):
        return self.call(1e-6 + 4 * len(arrays) * arrays[0].shape[0] / 4e12)

    def runner(self, calls):
        before = self.spent
        for call in calls:
            call()
        once = self.spent - before

        def run(count):
            cold = self.now - self.rested < 0.03
            seconds = count * once / (COLD_GAIN if cold else 1)
            self.now += seconds
            return seconds

        run.calls = len(calls)
        return run

    def sleep(self, seconds):
        self.now += seconds
        self.rested = self.now


class ImaginedCompiler:
    name, capability = "imagined", (9, 0)

    def __init__(self, lib):
        self.lib = lib

    def starter(self, kernel):
        return self.lib.call(1e-3)


@pytest.fixture
def imagine(monkeypatch):
    """A full run on an imagined GPU; gives its record."""

    def run(lib, compiler=False, quick=False):
        monkeypatch.setattr(cuda, "Torch", lambda: lib)
        monkeypatch.setattr(gpu, "library", lambda: "torch")
        monkeypatch.setattr(
            gpu, "time", SimpleNamespace(sleep=lib.sleep, monotonic=lambda: lib.now)
        )
        if compiler:
            monkeypatch.setattr(gpu, "find_compiler", lambda *_: ImaginedCompiler(lib))
        else:
            monkeypatch.setattr(compiling, "_first_loaded", lambda names: None)
        return validate(measure("gpu", quick=quick, progress=False))

    return run


def why(record):
    return {missing.what: missing.why for missing in record.absent}


def test_every_precision_is_measured_cold_and_sustained_and_kept_apart(imagine):
    record = imagine(Imagined(), compiler=True)
    assert set(record.sustained.peaks) == set(record.cold_peaks) == set(RATES)
    for precision, rate in RATES.items():
        assert record.sustained.peaks[precision] == pytest.approx(rate, rel=0.01)
        assert record.cold_peaks[precision] == pytest.approx(COLD_GAIN * rate, rel=0.01)
        assert record.chip.sources[f"gemm {precision}"] == "imagined"
    assert {point.precision for point in record.select("issue")} == set(RATES)
    assert set(why(record)) == {"clock, power and temperature", "gemm_m int8 below m = 17"}
    assert "imagined" in record.chip.sources["issue"]
    rows = {p.shape.m for p in record.select("gemm_m", precision="int8")}
    assert min(rows) == 32 and max(rows) == 1024


def test_a_record_says_cold_peaks_only_where_it_has_them_and_keeps_them(imagine):
    record = imagine(Imagined(), quick=True)
    assert record.cold_peaks == {} and "cold_peaks" not in record.to_json()
    assert load("h200_a1").cold_peaks == {}  # written before there were any
    told = load("h200_c1").to_json()
    assert type(record).from_json(told).cold_peaks == told["cold_peaks"]


def test_without_a_compiler_loops_and_chains_are_absent_and_the_rest_is_there(imagine):
    record = imagine(Imagined(), quick=True)
    assert not record.select("issue", "chain_width") and record.select("gemm_n")
    assert "libcuda is not found" in why(record)["issue"]
    assert why(record)["issue"] == why(record)["chain_width"]
    assert "issue" not in record.chip.sources


def test_a_precision_that_the_device_refuses_is_one_line(imagine):
    """A torch that knows fp8 and int8 products, on a card that has none of them."""
    said = "torch._scaled_mm is only supported on compute capability >= 8.9\nand a long story"
    broken = {"fp8": (0, said), "int8": (0, "CUBLAS_STATUS_NOT_SUPPORTED")}
    record = imagine(Imagined(broken=broken), quick=True)
    assert why(record)["gemm fp8"] == said.splitlines()[0]
    assert why(record)["gemm int8"] == "CUBLAS_STATUS_NOT_SUPPORTED"
    assert not [what for what in why(record) if "int8" in what and what != "gemm int8"]
    assert set(record.sustained.peaks) == set(RATES) - {"fp8", "int8"}


def test_out_of_memory_in_one_kind_costs_its_large_ones_alone(imagine):
    broken = {"fp64": (5000, "CUDA out of memory. Tried to allocate 9 GiB")}
    record = imagine(Imagined(broken=broken))
    failed = {what for what, said in why(record).items() if "out of memory" in said}
    assert failed == {f"gemm_n fp64 ({n}, {n}, {n})" for n in (6144, 8192, 12288, 16384)}
    assert record.find("gemm_n", "fp64", n=4096) and record.find("gemm_n", "fp32", n=16384)


def test_a_card_that_is_slow_in_fp64_is_not_waited_for(imagine):
    """A 64th of the fp32 lanes: the largest cubes would take a quarter of a minute each."""
    lib = Imagined(RATES | {"fp64": 0.6e12})
    record = imagine(lib)
    left_out = {what: said for what, said in why(record).items() if "would take" in said}
    assert set(left_out) == {f"gemm_n fp64 ({n}, {n}, {n})" for n in (8192, 12288, 16384)}
    assert "1.83 s" in left_out["gemm_n fp64 (8192, 8192, 8192)"]
    assert record.sustained.peaks["fp64"] == pytest.approx(0.6e12, rel=0.01)


def test_a_cards_memory_limits_what_is_held(imagine):
    record = imagine(Imagined(memory=8e9), quick=False)
    sides = {p: max(q.shape.n for q in record.select("gemm_n", precision=p)) for p in RATES}
    assert sides["fp64"] == 8192 and sides["fp32"] == 12288


def test_torch_without_an_int8_product_has_none(monkeypatch):
    torch = fake_torch({})
    torch.matmul, torch.int8, torch.int32 = None, 8, 32
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert cuda.Torch().precisions == ("bf16", "fp16", "tf32", "fp32")
    torch._int_mm = None
    assert cuda.Torch().precisions[-1] == "int8"


# Cold peaks


def test_a_cold_peak_is_the_median_of_what_ended_in_the_first_moments():
    fast, slow = [1e-3] * 24, [2e-3] * 500
    run = replace(made(1, family="cold", label="random"), timing=Timing.of(fast + slow))
    zeros = replace(made(1e-4, family="cold", precision="fp8"), label="zeros")
    assert cold_peaks([run, zeros, made(1)]) == {"fp16": 2e12}
    long = replace(run, timing=Timing.of([0.1, 0.2, 0.3, 9.0]))
    assert sum(long.timing.repeats[:1]) > BURST
    assert cold_peaks([long]) == {"fp16": 1e10}


# Kernels of our own


@pytest.mark.parametrize(
    ("capability", "found", "said"),
    [
        (None, {}, "no compute capability"),
        ((9, 0), {}, "libcuda"),
        ((9, 0), {"driver": object()}, "needs NVRTC"),
    ],
)
def test_where_nothing_compiles_it_says_what_is_missing(capability, found, said, monkeypatch):
    monkeypatch.setattr(compiling, "_first_loaded", lambda names: found.get("driver"))
    monkeypatch.setattr(compiling, "_load_nvrtc", lambda: None)
    monkeypatch.setattr(compiling.shutil, "which", lambda name: None)
    with pytest.raises(compiling.NoCompiler, match=said):
        compiling.find_compiler(Imagined(), capability)


def test_a_card_is_named_as_compilers_name_it():
    named = [
        compiling.Compiler("nvcc", lambda *_: b"", None, Imagined(), capability).architecture
        for capability in ((8, 6), (9, 0), (12, 0))
    ]
    assert named == ["sm_86", "sm_90a", "sm_120a"]  # wgmma is not in sm_90


def test_what_the_driver_says_is_the_reason():
    class Driver:
        def cuModuleLoadData(self, *_):
            return 209

        def cuGetErrorString(self, code, text):
            text._obj.value = b"no kernel image is available"

    compiler = compiling.Compiler("nvcc", lambda *_: b"", Driver(), Imagined(), (8, 6))
    kernel = loops.LOOPS[0].kernel(loops.LOOPS[0].shape(4))
    with pytest.raises(RuntimeError, match="cuModuleLoadData: no kernel image is available"):
        compiler.starter(kernel)


@pytest.mark.parametrize("loop", loops.LOOPS, ids=lambda loop: loop.label)
def test_an_instruction_names_each_of_its_operands_once_over(loop):
    source = loop.kernel(loop.shape(2)).source
    assembly = source[source.index(loop.instruction) :].split("));\n")[0]
    named = {int(number) for number in re.findall(r"%(\d+)", assembly)}
    bound = len(re.findall(r'"\+?[fdrl]"\(', assembly))
    assert named == set(range(bound)) and "@" not in source


def test_a_loop_does_what_its_threads_issue():
    lanes, warps, groups = loops.LOOPS[1], loops.LOOPS[8], loops.LOOPS[13]
    shape = lanes.shape(132)
    assert lanes.work(shape) == 2 * shape.threads * 132 * shape.width * shape.steps
    shape = warps.shape(132)
    assert warps.work(shape) == 2 * 16 * 8 * 16 * 8 * 264 * shape.width * shape.steps
    shape = groups.shape(132)
    assert groups.work(shape) == 2 * 64 * 256 * 16 * 264 * shape.width * shape.steps


def test_a_card_gets_the_instructions_that_it_has():
    def instructions(*capability):
        return {(loop.precision, loop.unit) for loop in loops.loops_for(capability)}

    assert ("bf16", "lanes") not in instructions(7, 5)
    assert ("fp8", "tensor cores") not in instructions(8, 6)
    assert ("fp8", "tensor cores") in instructions(8, 9)
    by_hopper = {loop.instruction for loop in loops.loops_for((9, 0))}
    only = by_hopper - {loop.instruction for loop in loops.loops_for((12, 0))}
    assert only and all(name.startswith("wgmma") for name in only)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (12, 0)])
def test_each_loop_compiles_for_the_cards_that_have_it(capability):
    compiler = compiling.Compiler("nvcc", compiling._by_nvcc, None, None, capability)
    for loop in loops.loops_for(capability):
        kernel = loop.kernel(loop.shape(1))
        assert compiling._by_nvcc(kernel.source, compiler.architecture).startswith(b"\x7fELF")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_what_nvcc_refuses_is_one_line():
    with pytest.raises(RuntimeError, match="the compiler refuses it: .*error.*undefined"):
        compiling._by_nvcc('extern "C" __global__ void loop() { missing(); }', "sm_90a")
