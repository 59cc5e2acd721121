"""What this CPU keeps up, with numpy alone: matrix products over shapes, bandwidth over sizes, one
chain of matrices in both orders, and one chain of additions.

Small arrays show the cost of a call from Python (about a microsecond), not their cache. fp16 is
left out: numpy has no half-precision BLAS and converts element by element, which measures the
conversion, not the machine. np.add.accumulate is a chain in which every addition waits for the one
before it, as an elementwise pass is not.
"""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring.jobs import Job, Pace, Setup, settle
from roofline_lib.measuring.record import (
    Absent,
    ChainsShape,
    Chip,
    OrderShape,
    Point,
    ProductShape,
    Settings,
    StreamShape,
    Timing,
)
from roofline_lib.measuring.whole_models import NumpyJobs
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.transformer import Transformer

TYPES = {"fp64": np.float64, "fp32": np.float32}
CHAIN = (4096, 64, 4096, 1)
CHAIN_ORDERS = {"(AB)c": ((0, 1), 2), "A(Bc)": (0, (1, 2))}
# arrays in memory, elements moved and FLOP for each element of the result; numpy's triad is two
# passes: a = 3 c, then a = a + b
STREAMS = {"read": (1, 1, 2), "copy": (2, 2, 0), "scale": (2, 2, 1), "triad": (3, 5, 2)}
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CUBES = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
VECTOR_FLAGS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def prepare(threads: int, quick: bool, repeats: int, model: Transformer | None = None) -> Setup:
    """The Setup for this CPU: everything, or, where a `model` is given, its decode steps and the
    roofs that they are held against. The clock is what the system names (Hz), caches are summed
    over the cores in use, the BLAS is pinned."""
    pinned_by, blas = _pin(threads)
    chip = describe(threads)
    return Setup(
        chip=chip,
        software=blas,
        settings=Settings(quick, repeats, load_average=(), threads=threads, pinned_by=pinned_by),
        jobs=_jobs(quick, threads, repeats)
        if model is None
        else _model_jobs(model, quick, threads, repeats),
        absent=()
        if model
        else (Absent("gemm fp16", "numpy has no half-precision BLAS; it would time conversions"),),
    )


def describe(threads: int) -> Chip:
    """This CPU as the system describes it, with so many of its cores in use."""
    info = _first_processor()
    flags = info.get("flags", "").split()
    return Chip(
        kind="CPU",
        name=info.get("model name") or platform.processor() or platform.machine(),
        units=threads,
        unit_name="core",
        clock=float(info["cpu MHz"]) * 1e6 if "cpu MHz" in info else None,
        capacities=_caches(threads),
        vector_flags=tuple(flag for flag in VECTOR_FLAGS if flag in flags),
    )


def _pin(threads):
    """Pin the BLAS; returns how it was done and the BLAS' own description. Without threadpoolctl
    only the environment can have done it."""
    given = ", ".join(f"{name}={os.environ[name]}" for name in BLAS_VARIABLES if name in os.environ)
    try:
        import threadpoolctl
    except ImportError:
        return given or "nothing", {}
    threadpoolctl.threadpool_limits(threads)
    blas = [lib for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"]
    found = {}
    for lib in blas:
        version, core = lib["version"], lib.get("architecture", "")
        found[lib["internal_api"]] = f"{version} {core}, {lib['num_threads']} threads"
    return f"threadpoolctl {given}".strip(), found


def _jobs(quick, threads, repeats):
    """All jobs of a run: products over m, over n = m = k, streams, chains, each smallest first.
    `quick` thins the sizes and shortens the blocks."""
    last_level = max(_caches(threads).values(), default=32 << 20)
    if quick:
        pace, largest, step = Pace(0.01, 0.03, repeats), 4 * last_level, 3
        side, rows, cubes = 1024, ROWS[:-1], (32, 128, 512, 1024)
        precisions = ("fp32",)  # a gigabyte in either would be filled for each size
    else:
        pace, largest, step = Pace(0.05, 0.1, repeats), 16 * last_level, 1
        side, rows, cubes = 2048, ROWS, CUBES
        precisions = tuple(TYPES)
    sizes = [2**exponent for exponent in range(14, 40, step) if 2**exponent < largest]
    streams = [
        Job(f"{family} {size} B", partial(_stream, family, size, threads, pace))
        for family in STREAMS
        for size in (*sizes, largest)
    ]
    shapes = [
        (precision, "gemm_m", ProductShape(m, side, side)) for precision in precisions for m in rows
    ]
    shapes += [(precision, "gemm_n", ProductShape(n, n, n)) for precision in TYPES for n in cubes]
    products = [
        Job(
            f"{family} {precision} {(shape.m, shape.n, shape.k)}",
            partial(_product, family, precision, shape, last_level, pace),
        )
        for precision, family, shape in shapes
    ]
    chains = [
        Job(f"chain {label}", partial(_chain, label, order, pace))
        for label, order in CHAIN_ORDERS.items()
    ]
    dependent = Job("chain_width 1", partial(_dependent, pace))
    return [*products, *streams, *chains, dependent]


def _model_jobs(model, quick, threads, repeats):
    """The decode steps of a model, after one large stream of each kind and one large product."""
    pace = Pace(0.05, 0.05, repeats)
    last_level = max(_caches(threads).values(), default=32 << 20)
    size = 4 * last_level
    streams = [
        Job(f"{family} {size} B", partial(_stream, family, size, threads, pace))
        for family in ("read", "triad")
    ]
    cube = ProductShape(1024, 1024, 1024)
    product = Job("gemm_n fp32", partial(_product, "gemm_n", "fp32", cube, last_level, pace))
    return [*streams, product, *NumpyJobs(model, pace, quick, _timed).jobs()]


def _stream(family, size, threads, pace):
    """Passes over one working set in double precision; bytes are counted as STREAM does: no
    write-allocate.

    Each thread has its own slice, except in `read`, which is a BLAS dot product and shares the work
    out itself.
    """
    arrays, moved, flops = STREAMS[family]
    parts = 1 if family == "read" else threads
    n = max(1, int(size) // (8 * arrays * parts))
    slices = [[_filled(n, np.float64) for _ in range(arrays)] for _ in range(parts)]
    with ThreadPoolExecutor(parts) as pool:

        def run(count):
            start = time.perf_counter()
            list(pool.map(lambda mine: _repeat(PASSES[family], mine, count), slices))
            return time.perf_counter() - start

        timing = _timed(run, pace)
    elements = float(n * parts)
    return Point(
        family=family,
        precision="fp64",
        shape=StreamShape(elements),
        work=Work(flops * elements, 8 * moved * elements),
        working_set=8 * arrays * elements,
        timing=timing,
    )


def _filled(shape, kind):
    """An array of its own memory, full of the same million random numbers over and over: to draw a
    gigabyte would take longer than to time it."""
    drawn = np.random.default_rng(1).standard_normal(2**20).astype(kind)
    filled = np.empty(shape, kind)
    flat = filled.reshape(-1)
    for start in range(0, flat.size, drawn.size):
        flat[start : start + drawn.size] = drawn[: flat.size - start]
    return filled


def _repeat(one_pass, arrays, count):
    for _ in range(count):
        one_pass(*arrays)


def _triad(a, b, c):
    np.multiply(c, 3.0, out=a)
    np.add(a, b, out=a)


PASSES = {
    "read": lambda a: np.dot(a, a),
    "copy": np.copyto,
    "scale": lambda a, b: np.multiply(b, 3.0, out=a),
    "triad": _triad,
}


def _product(family, precision, shape, last_level, pace):
    """C = A @ B over as many sets of matrices as fill twice the last cache (4096 sets at most), so
    that they come from memory."""
    m, n, k = shape.m, shape.n, shape.k
    work = gemm(m, n, k, precision)
    sets = int(np.clip(np.ceil(2 * last_level / work.bytes_moved), 1, 4096))
    a, b, c = (_filled((sets, *size), TYPES[precision]) for size in ((m, k), (k, n), (m, n)))
    turns = cycle(zip(a, b, c, strict=True))

    def run(count):
        start = time.perf_counter()
        for left, right, product in islice(turns, count):
            np.matmul(left, right, out=product)
        return time.perf_counter() - start

    return Point(
        family=family,
        precision=precision,
        shape=shape,
        work=work,
        working_set=sets * work.bytes_moved,
        timing=_timed(run, pace),
    )


def _dependent(pace):
    """A running sum in double precision: each addition needs the one before it. The time of one
    update is that of an addition, and of whatever carries its sum to the next."""
    steps = 1024  # 8 KB in, 8 KB out: they stay in L1
    x, sums = np.random.default_rng(4).standard_normal(steps), np.empty(steps)

    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            np.add.accumulate(x, out=sums)
        return time.perf_counter() - start

    return Point(
        family="chain_width",
        precision="fp64",
        shape=ChainsShape(1, 1, 1, steps),
        work=Work(float(steps), 16.0 * steps),
        working_set=16.0 * steps,
        timing=_timed(run, pace),
    )


def _chain(label, order, pace):
    """A [4096, 64], B [64, 4096], c [4096]: (AB)c or A(Bc), in fp32."""
    rows, inner, columns, _ = CHAIN
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.standard_normal(size, np.float32) for size in ((rows, inner), (inner, columns), columns)
    )

    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            (a @ b) @ c if label == "(AB)c" else a @ (b @ c)
        return time.perf_counter() - start

    return Point(
        family="chain_order",
        precision="fp32",
        shape=OrderShape(CHAIN),
        work=chain_cost(CHAIN, order, "fp32").work,
        working_set=float(a.nbytes + b.nbytes + c.nbytes),
        timing=_timed(run, pace),
        label=label,
    )


def _timed(run, pace):
    """The Timing of one execution."""
    count = settle(run, pace)
    return Timing.of([run(count) / count for _ in range(pace.repeats)])


def _caches(threads):
    """{level: byte} of the data caches, each counted once for every core in use that has its own;
    empty where the system does not tell."""
    found = {}
    for cpu in sorted(cpus())[:threads]:
        for index in Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            texts = {
                name: (index / name).read_text().strip()
                for name in ("level", "type", "size", "shared_cpu_list")
            }
            if texts["type"] != "Instruction":
                level = f"L{texts['level']}"
                found.setdefault(level, {})[texts["shared_cpu_list"]] = (
                    float(texts["size"].rstrip("K")) * 1024
                )
    return {level: sum(sizes.values()) for level, sizes in sorted(found.items())}


def cpus() -> set[int]:
    """The processors that this process may use."""
    return (
        os.sched_getaffinity(0)
        if hasattr(os, "sched_getaffinity")
        else set(range(os.cpu_count() or 1))
    )


def _first_processor():
    """The first processor's entries of /proc/cpuinfo, {} where there is none."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().split("\n\n")[0].splitlines() if path.exists() else []
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
