"""What the library's guards cost: `python benchmarks/library.py`.

Each call is timed beside the bare arithmetic that it stands for, in turns in one run, so that the
ratios mean something on a busy machine too. The smallest of several times is taken.
"""

import subprocess
import sys
import time

import numpy as np

import roofline_lib as rl

CHIP = rl.machine("H100 SXM")
PEAK, BANDWIDTH = CHIP.peak("bf16"), CHIP.bandwidth()
SHAPES = np.random.default_rng(0).integers(1, 8192, (3, 1_000_000))


def bare_bound(m, n, k):
    """Least time of one bf16 product, written down without any check."""
    flops = 2 * m * n * k
    bytes_moved = 2.0 * (m * k + k * n + m * n)
    return max(flops / PEAK, bytes_moved / BANDWIDTH)


def bare_sweep(m, n, k):
    """The same for arrays, as plain numpy."""
    flops = 2 * m * n * k
    bytes_moved = 2.0 * (m * k + k * n + m * n)
    return np.maximum(flops / PEAK, bytes_moved / BANDWIDTH)


def library_bound(m, n, k):
    return rl.bound(rl.gemm(m, n, k, "bf16"), "H100 SXM", "bf16")


def seconds(function, repetitions):
    """Processor seconds of one call."""
    begin = time.process_time()
    for _ in range(repetitions):
        function()
    return (time.process_time() - begin) / repetitions


def beside(bare, ours, repetitions, rounds=15):
    """(seconds of bare, seconds of ours): the smallest of several rounds, taken in turns."""
    pairs = [(seconds(bare, repetitions), seconds(ours, repetitions)) for _ in range(rounds)]
    return tuple(map(min, zip(*pairs, strict=True)))


def import_seconds(module):
    """Wall seconds of a fresh Python that imports one module, or none."""
    code = f"import {module}" if module else "pass"
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def line(what, bare, ours):
    bare_text, ours_text = rl.quantity(bare, "s"), rl.quantity(ours, "s")
    print(f"{what:32} bare {bare_text:>8}   library {ours_text:>8}   {ours / bare:6.2f} times")


def main():
    bare, ours = beside(
        lambda: bare_bound(4096, 4096, 4096), lambda: library_bound(4096, 4096, 4096), 500
    )
    line("bound(gemm()) on plain numbers", bare, ours)
    for kind in (float, np.int64):
        shapes = SHAPES.astype(kind)
        floats = SHAPES.astype(float)
        bare, ours = beside(
            lambda floats=floats: bare_sweep(*floats),
            lambda shapes=shapes: library_bound(*shapes).time,
            1,
        )
        line(f"a million shapes, {shapes.dtype}", bare, ours)
    starts = [
        [import_seconds(module) for module in ("", "numpy", "roofline_lib")] for _ in range(9)
    ]
    nothing, numpy, library = map(min, zip(*starts, strict=True))
    line("import, less starting Python", numpy - nothing, library - nothing)


if __name__ == "__main__":
    main()
