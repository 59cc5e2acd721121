"""Lesson 03: tiling."""

import roofline_lib as rl
from roofline_lib.checks import Question

_LEAST = {
    "yes, tiles add reuse": False,
    "no, 3n² is the most reuse there is": True,
    "only with a large cache": False,
}
_LEVELS = {
    "DRAM and L2": "which-memory",
    "L2 and shared memory": "",
    "shared memory and registers": "",
}


def _rectangle(precision, with_c):
    """2048 x 2048 x 256 in 64 x 64 tiles; C written `with_c` times."""
    width = rl.bytes_per_element(precision)
    return (
        rl.tiled_gemm(2048, 2048, 256, 64, precision).bytes_moved + (with_c - 1) * width * 2048**2
    )


def _useful(waves=True):
    tile, units = 128, rl.machine("A100 40GB SXM").units
    shares = (
        rl.tile_efficiency(1100, 1100, tile),
        rl.wave_efficiency(rl.tile_count(1100, 1100, tile), units),
    )
    return 100 * shares[0] * (shares[1] if waves else 1)


def _best(fast_elements, width):
    """Intensity that no schedule of a very large product passes."""
    n = 2.0**20
    return 2 * n**3 / (width * rl.io_lower_bound(n, n, n, fast_elements))


def _traffic(m, n, k, b):
    return rl.tiled_gemm(m, n, k, b).bytes_moved


QUESTIONS = [
    Question(
        "03.traffic",
        "C[2048, 2048] = A[2048, 256] @ B[256, 2048] in bf16 with 64 x 64 tiles. How many bytes cross, C's own counted?",
        unit="MB",
        reference=lambda: _rectangle("bf16", 1),
        tolerance=0.005,
        slips={
            "forgot-c": lambda: _rectangle("bf16", 0),
            "read-c": lambda: _rectangle("bf16", 2),
            "wrong-width": lambda: _rectangle("fp32", 1),
            "elements-not-bytes": lambda: _rectangle("bf16", 1) / 2,
        },
        hint="A is read once for each of the 32 columns of tiles, B once for each of the 32 rows of tiles, C is written once.",
    ),
    Question(
        "03.best",
        "An SM of a T4 has 64 KiB of fast memory. What fp32 intensity can no schedule of a large product pass?",
        unit="FLOP/byte",
        reference=lambda: _best(rl.machine("T4").capacity("shared memory") / 4, 4),
        slips={"elements-not-bytes": lambda: _best(rl.machine("T4").capacity("shared memory"), 4)},
        hint="the square root of S over s, and S counts elements.",
    ),
    Question(
        "03.useful",
        "A 1100 x 1100 product runs in 128 x 128 tiles on an A100 (108 SMs). What share of its multiply-adds is useful?",
        unit="%",
        reference=_useful,
        slips={"forgot-waves": lambda: _useful(waves=False)},
        hint="two shares multiply: the area inside C, and the busy SMs of the waves.",
    ),
    Question(
        "03.smaller",
        "Can tiling make a matrix compute-bound that is too small for it by the 3n² count?",
        choices=tuple(_LEAST),
        reference=lambda: next(c for c, right in _LEAST.items() if right),
        slips={"no-reuse-is-best": lambda: next(iter(_LEAST))},
        hint="Read once, written once: no schedule moves less.",
    ),
    Question(
        "03.level",
        "On a real GPU a kernel keeps its tiles in shared memory and registers. Between which two do its b/s bytes cross?",
        choices=tuple(_LEVELS),
        reference=lambda: "L2 and shared memory",
        slips={slip: (lambda choice=choice: choice) for choice, slip in _LEVELS.items() if slip},
        hint="The tile's own memory and the level below it.",
    ),
    Question(
        "03.function",
        "Write a function of m, n, k, b that gives the bytes moved by b x b tiles in fp32, C and ragged edges counted.",
        reference=_traffic,
        tolerance=1e-6,
        inputs=lambda: [(100, 90, 70, 16), (257, 257, 64, 128), (4096, 4096, 4096, 128)],
        slips={
            "forgot-c": lambda m, n, k, b: _traffic(m, n, k, b) - 4 * m * n,
            "elements-not-bytes": lambda m, n, k, b: _traffic(m, n, k, b) / 4,
            "ragged-edge": lambda m, n, k, b: 4 * (2 * m * n * k / b + m * n),
        },
        hint="A is read ceil(n/b) times, B ceil(m/b) times.",
    ),
]
