"""What a CUDA GPU keeps up: bandwidth, matrix products in each precision, dependent chains, one
chain of matrices in both orders.

Through torch or cupy, whichever is there, imported only when asked. Calls run as a captured CUDA
graph where the library can, so that the gaps between kernels are the device's and not Python's. B
is stored as its transpose [n, k], as a linear layer stores its weights.
"""

import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring import cuda
from roofline_lib.measuring.clocks import Nvml, Sampler
from roofline_lib.measuring.cpu import CHAIN, CHAIN_ORDERS
from roofline_lib.measuring.jobs import Job, Pace, Setup, first_line, settle
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
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
    bench = Bench(lib, sampler, chip, quick, repeats)
    if model is None:
        jobs = bench.jobs()
        absent += bench.absent()
    else:
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


class Bench:
    """The jobs of one device; each returns one point, with the clock, power and temperature while
    it was timed."""

    def __init__(self, lib, sampler, chip, quick, repeats):
        self.lib, self.sampler, self.chip, self.quick = lib, sampler, chip, quick
        self.pace = Pace(0.01, 0.05, repeats) if quick else Pace(0.05, 0.3, repeats)
        # byte: what may be held at once, with room for the library's own
        self.limit = chip.capacities["DRAM"] / 4

    def jobs(self) -> list[Job]:
        """All that can be done here: cold runs while the device is cold, then small to large."""
        return [
            *self.cold_jobs(),
            *self.stream_jobs(),
            *self.chains_jobs(),
            *self.product_jobs(),
            *self.order_jobs(),
            *self.steady_jobs(),
        ]

    def absent(self) -> list[Absent]:
        """What cannot be done here, and why."""
        found = []
        if not find_spec("cupy"):
            found.append(Absent("chain_width", "needs cupy to compile a kernel"))
        for precision in cuda.PRECISIONS:
            if precision not in self.lib.precisions:
                why = f"{self.lib.name} has no public call for it"
                found.append(Absent(f"gemm {precision}", why))
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
        if not find_spec("cupy"):
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
            if self.fits(shape)
        ]

    def fits(self, shape):
        """Whether three matrices of four bytes an element, as large as the largest, may be held."""
        return 4 * 3 * shape.n * max(shape.m, shape.k) < self.limit

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
        if self.quick or "bf16" not in self.lib.precisions or not self.fits(COLD_CUBE):
            return []
        return [Job(f"cold {data}", partial(self.cold, data, COLD_CUBE)) for data in COLD_DATA]

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
        l2 = self.chip.capacities.get("L2", UNKNOWN_L2)
        wanted = np.ceil(2 * l2 / work.bytes_moved)
        sets = int(np.clip(wanted, 1, 4096))
        a = lib.random((sets, m, k), precision)
        b = lib.random((sets, n, k), precision)
        c = lib.empty((sets, m, n), precision)
        run = lib.runner([lib.product(a[i], b[i].T, c[i], precision) for i in range(sets)])
        return self.point(family, precision, shape, work, sets * work.bytes_moved, run, pace)

    def cold(self, data, shape, idle=IDLE, duration=COLD_RUN):
        """The same product from rest on, one repeat an execution: how the rate falls as the device
        meets its power limit and warms up. `data` are "random" or "zeros"; `idle` and `duration`
        are in seconds."""
        lib, m, n, k = self.lib, shape.m, shape.n, shape.k
        work = gemm(m, n, k, "bf16")
        a, b = lib.random((m, k), "bf16"), lib.random((n, k), "bf16")
        if data == "zeros":
            a, b = 0 * a, 0 * b
        run = lib.runner([lib.product(a, b.T, lib.empty((m, n), "bf16"), "bf16")])
        run(1)  # the first one loads the kernel
        time.sleep(idle)
        start = time.monotonic()
        seconds = []
        while time.monotonic() - start < duration:
            seconds.append(run(1))
        if self.sampler:
            self.sampler.keep(start - 0.1, start + 0.4)
        return self.timed_point("cold", "bf16", shape, work, work.bytes_moved, seconds, start, data)

    def chains(self, grid, width):
        """`width` independent chains of multiply-adds in each thread: one is latency, many are
        throughput."""
        blocks, threads = grid
        run = cuda.Cupy().runner([cuda.chain_kernel(blocks, threads, width, STEPS)])
        work = Work(2.0 * STEPS * width * blocks * threads, 4.0 * blocks * threads)
        shape = ChainsShape(blocks, threads, width, STEPS)
        return self.point("chain_width", "fp32", shape, work, work.bytes_moved, run, self.pace)

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
