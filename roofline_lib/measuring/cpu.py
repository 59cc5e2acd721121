"""What this CPU keeps up, with numpy alone: bandwidth over sizes, matrix products over shapes, and
one chain in both orders.

Small arrays show the cost of a call from Python (about a microsecond), not their cache. fp16 is
left out: numpy has no half-precision BLAS and converts element by element, which measures the
conversion, not the machine.
"""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from roofline_lib.chains import chain_cost
from roofline_lib.measuring.record import Setup, point, settle
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.peaks import peak_flops
from roofline_lib.precisions import bytes_per_element

TYPES = {"fp64": np.float64, "fp32": np.float32}
CHAIN = (4096, 64, 4096, 1)
CHAIN_ORDERS = {"(AB)c": ((0, 1), 2), "A(Bc)": (0, (1, 2))}
# arrays in memory, elements moved and FLOP for each element of the result; numpy's triad is two
# passes: a = 3 c, then a = a + b
STREAMS = {"read": (1, 1, 2), "copy": (2, 2, 0), "scale": (2, 2, 1), "triad": (3, 5, 2)}
VECTOR_FLAGS = ("avx", "avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16")
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def prepare(threads, quick, repeats):
    """The Setup for this CPU. The clock is what the system names (Hz), caches are summed over the
    cores in use, the BLAS is pinned."""
    info = _first_processor()
    pinned_by, blas = _pin(threads)
    machine = {
        "kind": "CPU",
        "name": info.get("model name") or platform.processor() or platform.machine(),
        "units": threads,
        "unit_name": "core",
        "clock": float(info["cpu MHz"]) * 1e6 if "cpu MHz" in info else None,
        "capacities": _caches(threads),
        "vector_flags": [flag for flag in VECTOR_FLAGS if flag in info.get("flags", "").split()],
    }
    absent = [
        {"what": "gemm fp16", "why": "numpy has no half-precision BLAS; it would time conversions"},
        {"what": "chain_width", "why": "a dependent chain cannot be written in numpy"},
    ]
    return Setup(
        machine,
        blas,
        {"threads": threads, "pinned_by": pinned_by},
        _jobs(quick, threads, repeats),
        absent,
    )


def counted_peaks(machine, fma_units=2):
    """{precision: FLOP/s} of a record's CPU: cores x FMA units x lanes x 2 x nominal clock. That a
    core has two FMA units is assumed."""
    bits = 512 if "avx512f" in machine["vector_flags"] else 256
    return {
        precision: peak_flops(
            machine["units"],
            fma_units * bits / (8 * bytes_per_element(precision)),
            machine["clock"],
        )
        for precision in TYPES
    }


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
    found = {
        lib[
            "internal_api"
        ]: f"{lib['version']} {lib.get('architecture', '')}, {lib['num_threads']} threads"
        for lib in blas
    }
    return " ".join(filter(None, ["threadpoolctl", given])), found


def _jobs(quick, threads, repeats):
    """[(name, function that returns one point)], smallest first. `quick` thins the sizes and
    shortens the blocks."""
    last_level = max(_caches(threads).values(), default=32 << 20)
    block, warm_up = (0.01, 0.03) if quick else (0.05, 0.1)
    largest = 4 * last_level if quick else 16 * last_level
    sizes = [2**e for e in range(14, 40, 3 if quick else 1) if 2**e < largest] + [largest]
    side, rows, orders = (
        (1024, (1, 8, 64, 512), (32, 128, 512, 1024))
        if quick
        else (
            2048,
            (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
            (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072),
        )
    )
    timing = (block, warm_up, repeats)
    todo = [
        (f"{family} {size} B", lambda f=family, s=size: _stream(f, s, threads, timing))
        for family in STREAMS
        for size in sizes
    ]
    shapes = [("gemm_n", (n, n, n)) for n in orders] + [("gemm_m", (m, side, side)) for m in rows]
    todo += [
        (
            f"{family} {precision} {shape}",
            lambda f=family, p=precision, s=shape: _gemm(f, p, s, last_level, timing),
        )
        for precision in TYPES
        for family, shape in shapes
    ]
    return todo + [
        (f"chain {name}", lambda n=name, o=order: _chain(n, o, timing))
        for name, order in CHAIN_ORDERS.items()
    ]


def _stream(family, size, threads, timing):
    """Passes over one working set in double precision; bytes are counted as STREAM does: no
    write-allocate.

    Each thread has its own slice, except in `read`, which is a BLAS dot product and shares the work
    out itself.
    """
    arrays, moved, flops = STREAMS[family]
    parts = 1 if family == "read" else threads
    n = max(1, int(size) // (8 * arrays * parts))
    rng = np.random.default_rng(1)
    slices = [[rng.standard_normal(n) for _ in range(arrays)] for _ in range(parts)]
    with ThreadPoolExecutor(parts) as pool:

        def run(count):
            start = time.perf_counter()
            list(pool.map(lambda mine: _repeat(PASSES[family], mine, count), slices))
            return time.perf_counter() - start

        seconds = _timed(run, *timing)
    elements = float(n * parts)
    return point(
        family,
        "fp64",
        {"elements": elements},
        Work(flops * elements, 8 * moved * elements),
        seconds,
        8 * arrays * elements,
    )


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


def _gemm(family, precision, shape, last_level, timing):
    """C = A @ B over as many sets of matrices as fill twice the last cache (4096 sets at most), so
    that they come from memory."""
    m, n, k = shape
    work = gemm(m, n, k, precision)
    sets = int(np.clip(np.ceil(2 * last_level / work.bytes_moved), 1, 4096))
    rng = np.random.default_rng(2)
    a, b, c = (
        rng.standard_normal((sets, *size), np.float32).astype(TYPES[precision], copy=False)
        for size in ((m, k), (k, n), (m, n))
    )
    turns = cycle(zip(a, b, c, strict=True))

    def run(count):
        start = time.perf_counter()
        for left, right, product in islice(turns, count):
            np.matmul(left, right, out=product)
        return time.perf_counter() - start

    return point(
        family,
        precision,
        {"m": m, "n": n, "k": k},
        work,
        _timed(run, *timing),
        sets * work.bytes_moved,
    )


def _chain(name, order, timing):
    rows, inner, columns, _ = CHAIN
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.standard_normal(size, np.float32) for size in ((rows, inner), (inner, columns), columns)
    )

    def run(count):
        start = time.perf_counter()
        for _ in range(count):
            (a @ b) @ c if name == "(AB)c" else a @ (b @ c)
        return time.perf_counter() - start

    cost = chain_cost(CHAIN, order, "fp32")
    return point(
        "chain_order",
        "fp32",
        {"dims": list(CHAIN)},
        Work(cost.flops, cost.bytes_moved),
        _timed(run, *timing),
        a.nbytes + b.nbytes + c.nbytes,
        label=name,
    )


def _timed(run, seconds, warm_up, repeats):
    """Seconds of one execution, one figure a repeat."""
    count = settle(run, seconds, warm_up)
    return [run(count) / count for _ in range(repeats)]


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


def cpus():
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
