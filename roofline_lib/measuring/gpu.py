"""What a CUDA GPU keeps up: bandwidth, matrix products in each precision, dependent chains, loops
of one instruction, one chain of matrices in both orders; and what it shows at first, from rest.

Through torch or cupy, whichever is there, imported only when asked. Calls run as a captured CUDA
graph where the library can, so that the gaps between kernels are the device's and not Python's. B
is stored as its transpose [n, k], as a linear layer stores its weights.
"""

import time
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring import cuda
from roofline_lib.measuring.clocks import Nvml, Sampler
from roofline_lib.measuring.compiling import NoCompiler, find_compiler
from roofline_lib.measuring.cpu import CHAIN, CHAIN_ORDERS
from roofline_lib.measuring.jobs import Job, Pace, Setup, first_line, settle
from roofline_lib.measuring.loops import chain_kernel, loops_for
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    LEAST_REPEATS,
    Absent,
    ChainsShape,
    Chip,
    OrderShape,
    Point,
    ProductShape,
    Settings,
    StreamShape,
    Timing,
    six_digits,
)
from roofline_lib.measuring.whole_models import TorchJobs
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.precisions import bytes_per_element
from roofline_lib.quantities import quantity
from roofline_lib.transformer import Transformer

LAYER = (16384, 4096)  # n and k of the sweep over m
ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
SMALL_CUBES = (64, 80, 96, 128, 192, 256, 384, 512, 640, 768)
LARGE_CUBES = (1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384)
CUBES = SMALL_CUBES + LARGE_CUBES
# arrays, FLOP for each element; one kernel each
STREAMS = {"read": (1, 1), "copy": (2, 0), "scale": (2, 1), "triad": (3, 2)}
COLD_CUBE = ProductShape(12288, 12288, 12288)
COLD_DATA = ("random", "zeros")
# s: without work before a cold run, then with nothing but products
IDLE, COLD_RUN = 10.0, 6.0
# the same in other precisions, shorter; n = m = k is such that several products end within 25 ms
OTHER_COLD = {"fp16": 12288, "tf32": 8192, "fp32": 4096, "fp8": 12288, "int8": 12288, "fp64": 4096}
OTHER_IDLE, OTHER_COLD_RUN = 5.0, 1.5
# s: a product that takes longer than this, by what was seen so far, is left out
LONGEST = 1.0
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
STEPS = 1 << 19
# byte: taken for the L2 where the library tells none, more than any GPU had in 2025
UNKNOWN_L2 = 256.0 * 2**20


class GpuUnusable(RuntimeError):
    """A GPU that is there and runs nothing, with the first line of what its library says."""


def library() -> str | None:
    """ "torch" or "cupy": the first that is installed and sees a CUDA device. None where neither
    does."""
    for name in ("torch", "cupy"):
        if find_spec(name) and import_module(name).cuda.is_available():
            return name
    return None


def prepare(name: str, quick: bool, repeats: int, model: Transformer | None = None) -> Setup:
    """The Setup for the first CUDA device through that library: everything, or, where a `model` is
    given, its steps and the roofs that they are held against. ValueError where a model is asked for
    without torch, GpuUnusable where the device runs no kernel."""
    if model and name != "torch":
        raise ValueError(f"model needs torch on a GPU; got {name}")
    lib, device = _opened(name)
    chip = Chip(
        kind="GPU",
        name=device.name,
        units=device.units,
        unit_name="SM",
        clock=None,
        capacities=device.capacities,
        card=device.card,
    )
    absent, sampler = [], None
    if "L2" not in chip.capacities:
        absent.append(Absent("L2", f"this {name} does not tell its size"))
    try:
        nvml = Nvml(device.pci_bus_id)
        chip = nvml.complete(chip)
        sampler = Sampler(nvml)
    except OSError as error:
        absent.append(Absent("clock, power and temperature", str(error)))
    if model is None:
        lib.precisions, refused = usable_precisions(lib)
        compiler, missing = _compiler(lib, device)
        chip = replace(chip, sources=_sources(lib, compiler))
        bench = Bench(lib, sampler, chip, quick, repeats, compiler)
        jobs = bench.jobs()
        absent += [*refused, *missing, *bench.absent()]
    else:
        bench = Bench(lib, sampler, chip, quick, repeats)
        jobs = [*bench.roof_jobs(), *TorchJobs(bench, model, quick).jobs()]
    return Setup(
        chip=chip,
        software=lib.versions(),
        settings=Settings(
            quick,
            repeats,
            load_average=(),
            library=name,
            graph=lib.graphs,
            fp8="e4m3, C in bf16, fast accumulation",
        ),
        jobs=jobs,
        absent=tuple(absent),
        samples=sampler.samples if sampler else [],
        close=sampler.close if sampler else lambda: None,
    )


def _opened(name):
    """The library and its device, after a first kernel: where torch was not built for a GPU, it
    sees the device and fails with the first one."""
    try:
        lib = {"torch": cuda.Torch, "cupy": cuda.Cupy}[name]()
        lib.random((8, 8), "fp32")
        return lib, lib.describe()
    except RuntimeError as error:
        raise GpuUnusable(f"{name} sees a GPU and cannot use it: {first_line(error)}") from error


def usable_precisions(lib) -> tuple[tuple[str, ...], list[Absent]]:
    """The precisions in which the device multiplies a small matrix, and why it does not in the
    others that the library knows."""
    usable, refused = [], []
    for precision in lib.precisions:
        try:
            a, b = (lib.random((64, 64), precision) for _ in range(2))
            lib.runner([lib.product(a, b.T, lib.empty((64, 64), precision), precision)])(1)
            usable.append(precision)
        except (RuntimeError, MemoryError) as error:
            refused.append(Absent(f"gemm {precision}", first_line(error)))
    return tuple(usable), refused


def _compiler(lib, device):
    """What compiles kernels of our own, or None, and what is absent then."""
    try:
        return find_compiler(lib, device.capability), []
    except NoCompiler as error:
        return None, [Absent(family, str(error)) for family in ("chain_width", "issue")]


def _sources(lib, compiler):
    """Which call each kind of point comes from."""
    sources = {f"gemm {precision}": lib.calls[precision] for precision in lib.precisions}
    if compiler:
        sources["chain_width"] = f"CUDA C++, {compiler.name}"
        sources["issue"] = f"PTX instructions, {compiler.name}; a multiply-add is 2 FLOP"
    return sources


class Bench:
    """The jobs of one device; each returns one point, with the clock, power and temperature while
    it was timed. Without a `compiler` there are no kernels of our own."""

    def __init__(self, lib, sampler, chip, quick, repeats, compiler=None):
        self.lib, self.sampler, self.chip, self.quick = lib, sampler, chip, quick
        self.compiler = compiler
        # FLOP/s of the fastest product so far, by precision
        self.fastest: dict[str, float] = {}
        self.pace = Pace(0.01, 0.05, repeats) if quick else Pace(0.05, 0.3, repeats)
        # byte: what may be held at once, with room for the library's own
        self.limit = chip.capacities["DRAM"] / 4

    def jobs(self) -> list[Job]:
        """All that can be done here: cold runs while the device is cold, then small to large."""
        return [
            *self.cold_jobs(),
            *self.stream_jobs(),
            *self.chains_jobs(),
            *self.issue_jobs(),
            *self.product_jobs(),
            *self.order_jobs(),
            *self.steady_jobs(),
        ]

    def absent(self) -> list[Absent]:
        """What cannot be done here, and why."""
        found = [
            Absent(f"gemm {precision}", f"this {self.lib.name} has no call for it")
            for precision in cuda.PRECISIONS
            if precision not in self.lib.calls
        ]
        if "int8" in self.lib.precisions:
            few = f"gemm_m int8 below m = {cuda.LEAST_INT8_ROWS}"
            found.append(Absent(few, "torch._int_mm takes no fewer rows"))
        return found

    def stream_jobs(self):
        sizes = [2**exponent for exponent in range(16, 33, 4 if self.quick else 1)]
        return [
            Job(f"{family} {size} B", partial(self.stream, family, size))
            for family in BANDWIDTH_FAMILIES
            for size in sizes
            if size < self.limit
        ]

    def chains_jobs(self):
        if not self.compiler:
            return []
        units = self.chip.units
        grids = [(1, 32), (units, 128), (units, 1024)]
        widths = WIDTHS[::3]
        if not self.quick:
            grids = [(1, 32), *((units, threads) for threads in (128, 256, 512, 1024))]
            grids.append((2 * units, 1024))
            widths = WIDTHS
        return [
            Job(f"chain_width {grid} {width}", partial(self.chains, grid, width))
            for grid in grids
            for width in widths
        ]

    def issue_jobs(self):
        if not self.compiler:
            return []
        return [
            Job(f"issue {loop.precision} {loop.instruction}", partial(self.issue, loop))
            for loop in loops_for(self.compiler.capability)
        ]

    def product_jobs(self):
        rows, cubes = (ROWS[::4], CUBES[::5]) if self.quick else (ROWS, CUBES)
        shapes = [("gemm_m", ProductShape(m, *LAYER)) for m in rows]
        shapes += [("gemm_n", ProductShape(n, n, n)) for n in cubes]
        return [
            Job(
                f"{family} {precision} {(shape.m, shape.n, shape.k)}",
                partial(self.product, family, precision, shape, self.pace),
            )
            for precision in cuda.PRECISIONS
            if precision in self.lib.precisions
            for family, shape in shapes
            if self.fits(shape, precision)
            and (precision != "int8" or shape.m >= cuda.LEAST_INT8_ROWS)
        ]

    def fits(self, shape, precision):
        """Whether three matrices of at least four bytes an element, as large as the largest, may be
        held."""
        width = max(4.0, bytes_per_element(precision))
        return width * 3 * shape.n * max(shape.m, shape.k) < self.limit

    def order_jobs(self):
        return [
            Job(f"chain {label}", partial(self.chain_order, label, order))
            for label, order in CHAIN_ORDERS.items()
        ]

    def roof_jobs(self):
        """The few points that set the sustained roofs of a record without sweeps."""
        cube = ProductShape(4096, 4096, 4096)
        streams = [
            Job(f"{family} 4 GiB", partial(self.stream, family, 2**32))
            for family in BANDWIDTH_FAMILIES
        ]
        return [
            *streams,
            Job("gemm_n bf16", partial(self.product, "gemm_n", "bf16", cube, self.pace)),
        ]

    def cold_jobs(self):
        if self.quick:
            return []
        first = [
            Job(f"cold {data}", partial(self.cold, data, COLD_CUBE))
            for data in COLD_DATA
            if "bf16" in self.lib.precisions and self.fits(COLD_CUBE, "bf16")
        ]
        others = [
            Job(f"cold {precision}", partial(self.cold_in, precision, ProductShape(n, n, n)))
            for precision, n in OTHER_COLD.items()
            if precision in self.lib.precisions and self.fits(ProductShape(n, n, n), precision)
        ]
        return [*first, *others]

    def steady_jobs(self):
        if self.quick or "bf16" not in self.lib.precisions:
            return []
        pace = Pace(0.5, self.pace.warm_up, 16)
        shape = ProductShape(8192, 8192, 8192)
        return [Job("steady bf16", partial(self.product, "steady", "bf16", shape, pace))]

    def stream(self, family, size):
        """Passes over the same arrays again and again, in fp32: small ones stay in L2."""
        arrays, flops = STREAMS[family]
        n = size // (4 * arrays)
        data = [self.lib.random((n,), "fp32") for _ in range(arrays)]
        passes = int(np.clip(2**28 // size, 1, 256))
        run = self.lib.runner([self.lib.stream(family, *data)] * passes)
        work = Work(flops * n, 4 * arrays * n)
        return self.point(family, "fp32", StreamShape(n), work, 4 * arrays * n, run, self.pace)

    def product(self, family, precision, shape, pace):
        """C = A @ B over as many sets of matrices as fill twice the L2 (4096 sets at most), so that
        they come from DRAM."""
        lib, m, n, k = self.lib, shape.m, shape.n, shape.k
        work = gemm(m, n, k, precision, c=cuda.result_precision(precision))
        self.refuse_if_long(work, precision)
        l2 = self.chip.capacities.get("L2", UNKNOWN_L2)
        wanted = np.ceil(2 * l2 / work.bytes_moved)
        sets = int(np.clip(wanted, 1, 4096))
        a = lib.random((sets, m, k), precision)
        b = lib.random((sets, n, k), precision)
        c = lib.empty((sets, m, n), precision)
        run = lib.runner([lib.product(a[i], b[i].T, c[i], precision) for i in range(sets)])
        point = self.point(family, precision, shape, work, sets * work.bytes_moved, run, pace)
        self.fastest[precision] = max(self.fastest.get(precision, 0.0), point.performance)
        return point

    def refuse_if_long(self, work, precision):
        """RuntimeError where a product would take longer than LONGEST by the fastest one so far:
        fp64 has a 64th of the lanes on cards for games."""
        if precision not in self.fastest:
            return
        expected = work.flops / self.fastest[precision]
        if expected > LONGEST:
            raise RuntimeError(f"one product would take some {quantity(expected, 's')}")

    def cold_in(self, precision, shape):
        """A shorter cold run on random numbers, in another precision than bf16."""
        return self.cold("random", shape, OTHER_IDLE, OTHER_COLD_RUN, precision)

    def cold(self, data, shape, idle=IDLE, duration=COLD_RUN, precision="bf16"):
        """The same product from rest on, one repeat an execution: how the rate falls as the device
        meets its power limit and warms up. `data` are "random" or "zeros"; `idle` and `duration`
        are in seconds."""
        lib, m, n, k = self.lib, shape.m, shape.n, shape.k
        work = gemm(m, n, k, precision, c=cuda.result_precision(precision))
        a, b = lib.random((m, k), precision), lib.random((n, k), precision)
        if data == "zeros":
            a, b = 0 * a, 0 * b
        run = lib.runner([lib.product(a, b.T, lib.empty((m, n), precision), precision)])
        run(1)  # the first one loads the kernel
        time.sleep(idle)
        start = time.monotonic()
        seconds = []
        while time.monotonic() - start < duration or len(seconds) < LEAST_REPEATS:
            seconds.append(run(1))
        if self.sampler and precision == "bf16":  # of the others two looks a second will do
            self.sampler.keep(start - 0.1, start + 0.4)
        return self.timed_point(
            "cold", precision, shape, work, work.bytes_moved, seconds, start, data
        )

    def chains(self, grid, width):
        """`width` independent chains of multiply-adds in each thread: one is latency, many are
        throughput."""
        blocks, threads = grid
        shape = ChainsShape(blocks, threads, width, STEPS)
        run = self.lib.runner([self.compiler.starter(chain_kernel(shape))])
        work = Work(2.0 * STEPS * width * blocks * threads, 4.0 * blocks * threads)
        return self.point("chain_width", "fp32", shape, work, work.bytes_moved, run, self.pace)

    def issue(self, loop):
        """One instruction again and again on every multiprocessor: the rate at which it is issued.
        The only bytes are a result of each thread."""
        shape = loop.shape(self.chip.units)
        run = self.lib.runner([self.compiler.starter(loop.kernel(shape))])
        work = Work(loop.work(shape), 4.0 * shape.blocks * shape.threads)
        return self.point(
            "issue", loop.precision, shape, work, work.bytes_moved, run, self.pace, loop.label
        )

    def chain_order(self, label, order):
        """A [4096, 64], B [64, 4096], c [4096]: (AB)c or A(Bc), in fp32."""
        lib = self.lib
        rows, inner, columns, _ = CHAIN
        sizes = ((rows, inner), (inner, columns), (columns,))
        a, b, c = (lib.random(size, "fp32") for size in sizes)
        out = lib.empty((rows,), "fp32")
        if label == "(AB)c":
            middle = lib.empty((rows, columns), "fp32")
            steps = [(a, b, middle), (middle, c, out)]
        else:
            middle = lib.empty((inner,), "fp32")
            steps = [(b, c, middle), (a, middle, out)]
        calls = [lib.product(*step, "fp32") for step in steps]
        run = lib.runner([lambda: [call() for call in calls]] * 32)
        work = chain_cost(CHAIN, order, "fp32").work
        inputs = 4 * (rows * inner + inner * columns + columns)
        shape = OrderShape(CHAIN)
        return self.point("chain_order", "fp32", shape, work, inputs, run, self.pace, label)

    def point(
        self, family, precision, shape, work, working_set, run, pace, label=None, kernels=None
    ):
        """Time a runner, and add what the sampler saw meanwhile."""
        count = settle(run, pace)
        start = time.monotonic()
        seconds = [run(count) / count / run.calls for _ in range(pace.repeats)]
        return self.timed_point(
            family, precision, shape, work, working_set, seconds, start, label, kernels
        )

    def timed_point(
        self, family, precision, shape, work, working_set, seconds, start, label, kernels=None
    ):
        """The point of these repeats (s), which began at `start` and have just ended, with what the
        sampler saw meanwhile."""
        seen, at = {}, None
        if self.sampler:
            seen = self.sampler.window(start, time.monotonic())
            at = self.sampler.since_start(start)
        return Point(
            family=family,
            precision=precision,
            shape=shape,
            work=work,
            working_set=float(working_set),
            timing=Timing.of(seconds),
            label=label,
            kernels=kernels,
            at=at,
            **{name: six_digits(mean) for name, mean in seen.items()},
        )
