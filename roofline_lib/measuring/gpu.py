"""What a CUDA GPU keeps up: bandwidth, matrix products in each precision, dependent chains, one
chain of matrices in both orders.

Through torch or cupy, whichever is there, imported only when asked. Calls run as a captured CUDA
graph where the library can, so that the gaps between kernels are the device's and not Python's. B
is stored as its transpose [n, k], as a linear layer stores its weights.
"""

import hashlib
import time
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring import cuda
from roofline_lib.measuring.clocks import Nvml, Sampler
from roofline_lib.measuring.cpu import CHAIN, CHAIN_ORDERS
from roofline_lib.measuring.record import Setup, point, settle
from roofline_lib.model import Work
from roofline_lib.operators import gemm

PRECISIONS = ("bf16", "fp16", "tf32", "fp32", "fp8")
LAYER = (16384, 4096)  # N and K of the sweep over M
ROWS = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
ORDERS = (
    64,
    80,
    96,
    128,
    192,
    256,
    384,
    512,
    640,
    768,
    1024,
    1536,
    2048,
    3072,
    4096,
    6144,
    8192,
    12288,
    16384,
)
# arrays, FLOP for each element; one kernel each
STREAMS = {"read": (1, 1), "copy": (2, 0), "scale": (2, 1), "triad": (3, 2)}
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16)
STEPS = 1 << 19


def library():
    """ "torch" or "cupy": the first that is installed and sees a CUDA device. None where neither
    does."""
    for name in ("torch", "cupy"):
        if find_spec(name) and import_module(name).cuda.is_available():
            return name
    return None


def prepare(name, quick, repeats):
    """The Setup for the first CUDA device through that library."""
    lib = {"torch": cuda.Torch, "cupy": cuda.Cupy}[name]()
    found = lib.describe()
    machine = {
        "kind": "GPU",
        "name": found["name"],
        "units": found["units"],
        "unit_name": "SM",
        "capacities": {
            "DRAM": found["memory"],
            "L2": found["l2"],
            "shared memory": found["shared_memory"],
        },
        "card": hashlib.sha256(found["uuid"].encode()).hexdigest()[:12],
    }
    absent = []
    try:
        nvml = Nvml(found["pci_bus_id"])
        machine |= nvml.describe()
        sampler = Sampler(nvml)
    except OSError as error:
        absent.append({"what": "clock, power and temperature", "why": str(error)})
        sampler = None
    bench = Bench(lib, sampler, machine, quick, repeats)
    settings = {"library": name, "graph": lib.graphs, "fp8": "e4m3, C in bf16, fast accumulation"}
    return Setup(
        machine,
        lib.versions(),
        settings,
        bench.jobs(absent),
        absent,
        sampler.samples if sampler else [],
        sampler.close if sampler else lambda: None,
    )


class Bench:
    """The jobs of one device; each returns one point, with the clock, power and temperature while
    it was timed."""

    def __init__(self, lib, sampler, machine, quick, repeats):
        self.lib, self.sampler, self.machine, self.quick, self.repeats = (
            lib,
            sampler,
            machine,
            quick,
            repeats,
        )

    def jobs(self, absent):
        """[(name, function)], small to large, what cannot be done appended to `absent`."""
        quick, limit = self.quick, self.machine["capacities"]["DRAM"] / 4
        todo = [
            (f"{family} {size} B", lambda f=family, s=size: self.stream(f, s))
            for family in STREAMS
            for size in [2**e for e in range(16, 33, 4 if quick else 1)]
            if size < limit
        ]
        if find_spec("cupy"):
            units = self.machine["units"]
            grids = (
                [(1, 32), (units, 128), (units, 1024)]
                if quick
                else [
                    (1, 32),
                    (units, 128),
                    (units, 256),
                    (units, 512),
                    (units, 1024),
                    (2 * units, 1024),
                ]
            )
            todo += [
                (f"chain_width {grid} {width}", lambda g=grid, w=width: self.chains(g, w))
                for grid in grids
                for width in (WIDTHS[::3] if quick else WIDTHS)
            ]
        else:
            absent.append({"what": "chain_width", "why": "needs cupy to compile a kernel"})
        rows, orders = (ROWS[::4], ORDERS[::5]) if quick else (ROWS, ORDERS)
        shapes = [("gemm_m", (m, *LAYER)) for m in rows] + [("gemm_n", (n, n, n)) for n in orders]
        for precision in PRECISIONS:
            if precision in self.lib.precisions:
                todo += [
                    (
                        f"{family} {precision} {shape}",
                        lambda f=family, p=precision, s=shape: self.gemm(f, p, s),
                    )
                    for family, shape in shapes
                    if 4 * 3 * shape[1] * max(shape[0], shape[2]) < limit
                ]
            else:
                absent.append(
                    {
                        "what": f"gemm {precision}",
                        "why": f"{self.lib.name} has no public call for it",
                    }
                )
        todo += [
            (f"chain {name}", lambda n=name, o=order: self.chain_order(n, o))
            for name, order in CHAIN_ORDERS.items()
        ]
        if "bf16" in self.lib.precisions and not quick:
            todo.append(
                (
                    "steady bf16",
                    lambda: self.gemm("steady", "bf16", (8192,) * 3, seconds=0.5, repeats=16),
                )
            )
        return todo

    def stream(self, family, size):
        """Passes over the same arrays again and again, in fp32: small ones stay in L2."""
        arrays, flops = STREAMS[family]
        n = size // (4 * arrays)
        data = [self.lib.random((n,), "fp32") for _ in range(arrays)]
        run = self.lib.runner(
            [self.lib.stream(family, *data)] * int(np.clip(2**28 // size, 1, 256))
        )
        return self.timed(
            run, family, "fp32", {"elements": n}, Work(flops * n, 4 * arrays * n), 4 * arrays * n
        )

    def gemm(self, family, precision, shape, **timing):
        """C = A @ B over as many sets of matrices as fill twice the L2 (4096 sets at most), so that
        they come from DRAM."""
        (m, n, k), lib = shape, self.lib
        work = gemm(m, n, k, precision, c="bf16" if precision == "fp8" else None)
        sets = int(
            np.clip(np.ceil(2 * self.machine["capacities"]["L2"] / work.bytes_moved), 1, 4096)
        )
        a, b, c = (
            lib.random((sets, m, k), precision),
            lib.random((sets, n, k), precision),
            lib.empty((sets, m, n), precision),
        )
        run = lib.runner([lib.product(a[i], b[i].T, c[i], precision) for i in range(sets)])
        return self.timed(
            run,
            family,
            precision,
            {"m": m, "n": n, "k": k},
            work,
            sets * work.bytes_moved,
            **timing,
        )

    def chains(self, grid, width):
        """`width` independent chains of multiply-adds in each thread: one is latency, many are
        throughput."""
        blocks, threads = grid
        run = cuda.Cupy().runner([cuda.chain_kernel(blocks, threads, width, STEPS)])
        work = Work(2.0 * STEPS * width * blocks * threads, 4.0 * blocks * threads)
        shape = {"blocks": blocks, "threads": threads, "width": width, "steps": STEPS}
        return self.timed(run, "chain_width", "fp32", shape, work, work.bytes_moved)

    def chain_order(self, name, order):
        """A [4096, 64], B [64, 4096], c [4096]: (AB)c or A(Bc), in fp32."""
        rows, inner, columns, _ = CHAIN
        a, b, c = (
            self.lib.random(size, "fp32") for size in ((rows, inner), (inner, columns), (columns,))
        )
        left_first = name == "(AB)c"
        middle, out = (
            self.lib.empty((rows, columns) if left_first else (inner,), "fp32"),
            self.lib.empty((rows,), "fp32"),
        )
        steps = (
            [(a, b, middle), (middle, c, out)] if left_first else [(b, c, middle), (a, middle, out)]
        )
        calls = [self.lib.product(*step, "fp32") for step in steps]
        run = self.lib.runner([lambda: [call() for call in calls]] * 32)
        cost = chain_cost(CHAIN, order, "fp32")
        inputs = 4 * (rows * inner + inner * columns + columns)
        return self.timed(
            run, "chain_order", "fp32", {"dims": list(CHAIN)}, cost.work, inputs, label=name
        )

    def timed(
        self, run, family, precision, shape, work, working_set, seconds=None, repeats=None, **more
    ):
        """Warm up, time the blocks, and add what the sampler saw meanwhile."""
        count = settle(run, seconds or (0.01 if self.quick else 0.05), 0.05 if self.quick else 0.3)
        start = time.monotonic()
        times = [run(count) / count / run.calls for _ in range(repeats or self.repeats)]
        seen = self.sampler.window(start, time.monotonic()) if self.sampler else {}
        return point(family, precision, shape, work, times, working_set, **more, **seen)
