"""What this CPU keeps up, with numpy alone: matrix products over shapes, bandwidth over sizes, one
chain of matrices in both orders, and one chain of additions.

Small arrays show the cost of a call from Python (about a microsecond), not their cache. fp16 is
left out: numpy has no half-precision BLAS and converts element by element, which measures the
conversion, not the machine. np.add.accumulate is a chain in which every addition waits for the one
before it, as an elementwise pass is not.
"""

import math
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring import system
from roofline_lib.measuring.jobs import Job, Pace, Setup, settle
from roofline_lib.measuring.loaded_clock import clock_under_load
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
    six_digits,
)
from roofline_lib.measuring.roofs import counted_from, peak_can_be_counted
from roofline_lib.measuring.whole_models import NumpyJobs
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.quantities import quantity
from roofline_lib.transformer import Transformer

TYPES = {"fp64": np.float64, "fp32": np.float32}
CHAIN = (4096, 64, 4096, 1)
CHAIN_ORDERS = {"(AB)c": ((0, 1), 2), "A(Bc)": (0, (1, 2))}
# arrays in memory, elements moved and FLOP for each element of the result; numpy's triad is two
# passes: a = 3 c, then a = a + b
STREAMS = {"read": (1, 1, 2), "copy": (2, 2, 0), "scale": (2, 2, 1), "triad": (3, 5, 2)}
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CUBES = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072)
# byte: taken for the last cache where the system tells none, so that larger arrays lie in memory
UNKNOWN_LAST_LEVEL = 128.0 * 2**20
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Room:
    """How much memory a run takes, in byte: `last_level` is the largest cache, `held` what may be
    held at once (infinite where the system does not tell)."""

    last_level: float
    held: float


def prepare(threads: int, quick: bool, repeats: int, model: Transformer | None = None) -> Setup:
    """The Setup for this CPU: everything, or, where a `model` is given, its decode steps and the
    roofs that they are held against. The clock is what the system names (Hz), caches are summed
    over the cores in use, the BLAS is pinned. No more than half of the memory that is left is
    taken."""
    pinned_by, blas = _pin(threads)
    chip, no_clock = _clocked(describe(threads))
    if peak_can_be_counted(chip):
        chip = replace(chip, sources=counted_from(chip))
    last_level = max(chip.capacities.values(), default=UNKNOWN_LAST_LEVEL)
    left = system.memory_left()
    room = Room(last_level, math.inf if left is None else left / 2)
    return Setup(
        chip=chip,
        software=blas,
        settings=Settings(quick, repeats, load_average=(), threads=threads, pinned_by=pinned_by),
        jobs=_jobs(quick, threads, repeats, room)
        if model is None
        else _model_jobs(model, quick, threads, repeats, room),
        absent=(*no_clock, *_not_told(chip, threads), *(() if model else _not_timed(quick, room))),
    )


def _clocked(chip):
    """(the chip with its clock under load, or as it is with the reason why there is none)."""
    square = np.ones((768, 768), np.float32)
    try:
        return replace(
            chip, clock_under_load=six_digits(clock_under_load(lambda: square @ square))
        ), ()
    except OSError as error:
        return chip, (Absent("clock under load", str(error)),)


def usable_threads() -> int:
    """How many threads get a processor of their own: no more than the quota of the control groups
    pays for."""
    quota = system.cpu_quota()
    return _within(quota, len(system.processors()))


def describe(threads: int) -> Chip:
    """This CPU as the system describes it, with so many threads: two that share a core are one
    core in use."""
    usable = system.processors()
    cores = system.cores(usable) or len(usable)
    return Chip(
        kind="CPU",
        name=_name(),
        units=_within(system.cpu_quota(), min(threads, cores)),
        unit_name="core",
        clock=system.nominal_clock(),
        capacities=system.data_caches(usable[:threads]),
        vector_flags=system.vector_flags(),
    )


def _name():
    told = system.first_processor().get("model name")
    return told or platform.processor() or platform.machine() or "a CPU without a name"


def _within(quota, count):
    return count if quota is None else max(1, min(count, int(quota)))


def _not_told(chip, threads):
    """What the system does not tell of this CPU, and what follows from that."""
    usable, quota = system.processors(), system.cpu_quota()
    if chip.clock is None:
        instead = (
            "the one under load is taken" if chip.clock_under_load else "no peak can be counted"
        )
        yield Absent("clock", f"the system names no nominal clock: {instead}")
    if not chip.capacities:
        why = "the system does not tell their sizes: DRAM's bandwidth is that of the largest arrays"
        yield Absent("caches", why)
    if len(usable) > 1 and system.cores(usable) is None:
        why = "the system does not tell which processors share one: each was counted as a core"
        yield Absent("cores", why)
    if quota is not None and quota < len(usable):
        why = f"the control group pays for {quota:g} of {len(usable)}; {threads} threads were timed"
        yield Absent("all processors", why)


def _not_timed(quick, room):
    """What of the sweeps is left out, and why."""
    yield Absent("gemm fp16", "numpy has no half-precision BLAS; it would time conversions")
    wanted = _largest_stream(quick, room.last_level)
    if wanted > room.held:
        why = f"at most {quantity(room.held, 'byte')}, half of the memory that is left, is taken"
        yield Absent(f"arrays of {quantity(wanted, 'byte')}", why)


def _largest_stream(quick, last_level):
    return (4 if quick else 16) * last_level


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


def _jobs(quick, threads, repeats, room):
    """All jobs of a run: products over m, over n = m = k, streams, chains, each smallest first.
    `quick` thins the sizes and shortens the blocks."""
    largest = int(min(_largest_stream(quick, room.last_level), room.held))
    if quick:
        pace, step = Pace(0.01, 0.03, repeats), 3
        side, rows, cubes = 1024, ROWS, (32, 128, 512, 1024)
        precisions = ("fp32",)  # a gigabyte in either would be filled for each size
    else:
        pace, step = Pace(0.05, 0.1, repeats), 1
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
            partial(_product, family, precision, shape, room, pace),
        )
        for precision, family, shape in shapes
        if gemm(shape.m, shape.n, shape.k, precision).bytes_moved <= room.held
    ]
    chains = [
        Job(f"chain {label}", partial(_chain, label, order, pace))
        for label, order in CHAIN_ORDERS.items()
    ]
    dependent = Job("chain_width 1", partial(_dependent, pace))
    return [*products, *streams, *chains, dependent]


def _model_jobs(model, quick, threads, repeats, room):
    """The decode steps of a model, after one large stream of each kind and one large product."""
    pace = Pace(0.05, 0.05, repeats)
    size = int(min(4 * room.last_level, room.held))
    streams = [
        Job(f"{family} {size} B", partial(_stream, family, size, threads, pace))
        for family in ("read", "triad")
    ]
    cube = ProductShape(1024, 1024, 1024)
    product = Job("gemm_n fp32", partial(_product, "gemm_n", "fp32", cube, room, pace))
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


def _product(family, precision, shape, room, pace):
    """C = A @ B over as many sets of matrices as fill twice the last cache (4096 sets at most), so
    that they come from memory, unless there is no room for so many."""
    m, n, k = shape.m, shape.n, shape.k
    work = gemm(m, n, k, precision)
    filling = np.ceil(2 * room.last_level / work.bytes_moved)
    sets = int(np.clip(min(filling, room.held / work.bytes_moved), 1, 4096))
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
