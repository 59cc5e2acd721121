"""Exercises of lesson 03: practice values and choices, and what the marked functions are checked
with on the spot."""

import math

import roofline_lib as rl
from roofline_lib.checks import Question
from roofline_lib.questions import first

_NAMES = {4: "fp32", 2: "bf16", 1: "int8", 0.5: "int4"}
_HOUSE = rl.machine("house chip")


def _panels(tile):
    """Bytes of A and B alone that a large fp32 product moves with such tiles."""
    return rl.tiled_gemm(4096, 4096, 4096, tile).bytes_moved - 4 * 4096**2


def _least_memory(element_bytes, intensity=150):
    """Bytes of fast memory without which no schedule of a very large product reaches
    `intensity`."""
    n = 2.0**22
    return element_bytes * first(
        lambda fast: 2 * n**3 >= intensity * element_bytes * rl.io_lower_bound(n, n, n, fast)
    )


def _filled(tiles=None):
    """Percent of the waves' places on 132 SMs that 128 x 256 tiles of a 3000 x 3000 matrix fill."""
    whole = rl.tile_count(3000, 3000, (128, 256))
    return 100 * rl.wave_efficiency(whole, 132) * (tiles or whole) / whole


def _larger():
    """What tiles of 192 instead of 128 do to the roof's time of the lesson's product."""
    old, new = (
        rl.bound(rl.tiled_gemm(4096, 4096, 4096, b), _HOUSE, "fp32").time for b in (128, 192)
    )
    return {1.0: "the same", 1.5: "a third less", 2.0: "half"}[old / new]


def _traffic(m, n, k, tile_m, tile_n, element_bytes):
    return rl.tiled_gemm(m, n, k, (tile_m, tile_n), _NAMES[element_bytes]).bytes_moved


def _narrowest(tile_m, element_bytes, ridge_point):
    """Through the library's count for one tile and k = 1, less C's own bytes."""

    def reaches(tile_n):
        one = rl.tiled_gemm(tile_m, tile_n, 1, (tile_m, tile_n), _NAMES[element_bytes])
        return one.flops >= ridge_point * (one.bytes_moved - element_bytes * tile_m * tile_n)

    return float(first(reaches)) if reaches(2**30) else math.inf


def _largest(fast_bytes, depth, element_bytes):
    return first(lambda b: rl.tile_memory(b, _NAMES[element_bytes], tile_k=depth) > fast_bytes) - 1


def _fastest(m, n, k, element_bytes, tiles, peak, bandwidth, units, waste=True):
    def time(tile):
        limit = rl.Bound(rl.tiled_gemm(m, n, k, tile, _NAMES[element_bytes]), peak, bandwidth)
        useful = (
            rl.tile_efficiency(m, n, tile) * rl.wave_efficiency(rl.tile_count(m, n, tile), units)
            if waste
            else 1
        )
        return max(limit.memory_time, limit.compute_time / useful)

    return min(map(time, tiles))


def _misses(count, stride, passes, line, sets, ways):
    addresses = (step * stride for _ in range(passes) for step in range(count))
    return rl.count_misses(addresses, sets * ways * line, line, ways).misses


QUESTIONS = [
    Question(
        "03.x-rectangle",
        "Tiles of 64 x 256 keep as many sums as tiles of 128 x 128. How many times the traffic of A and B do they "
        "cause?",
        reference=lambda: _panels((64, 256)) / _panels(128),
        hint="work goes with the area, traffic with the perimeter.",
    ),
    Question(
        "03.x-panels",
        "A 128 x 128 tile in bf16: sums in fp32, panels 32 deep, two of A and two of B. How much fast memory does it "
        "take?",
        unit="KiB",
        reference=lambda: rl.tile_memory(128, "bf16", tile_k=32),
        tolerance=0.005,
        slips={
            "wrong-width": lambda: rl.tile_memory(128, "fp32", tile_k=32),
            "elements-not-bytes": lambda: rl.tile_memory(128, "int8", tile_k=32, sums="int8"),
        },
        hint="4 byte for each of 128 x 128 sums; a panel is 128 x 32 numbers of 2 byte, and there are four.",
    ),
    Question(
        "03.x-least-memory",
        "The house chip's bf16 ridge point is 150. How much fast memory must an SM have, so that any schedule of "
        "a very large product at all can reach it? Nothing lies between that memory and DRAM.",
        unit="kB",
        reference=lambda: _least_memory(2),
        slips={
            "elements-not-bytes": lambda: _least_memory(2) / 2,
            "wrong-width": lambda: _least_memory(4),
        },
        hint="with room for S numbers the intensity is at most √S/s; and then S numbers are how many bytes?",
    ),
    Question(
        "03.x-waves",
        "A 3000 x 3000 result in 128 x 256 tiles, on 132 SMs. What share of the waves' places is filled?",
        unit="%",
        reference=_filled,
        slips={"ragged-edge": lambda: _filled(3000 / 128 * 3000 / 256)},
        hint="24 rows of tiles, 12 in each; then count the waves.",
    ),
    Question(
        "03.x-larger-tile",
        "With 128 x 128 tiles the 4096-cube is compute-bound in fp32 on the house chip. Tiles of 192 x 192 move a "
        "third less. What does the roof say of the least time: a third less, half, or the same?",
        reference=_larger,
        choices=("a third less", "half", "the same"),
        hint="nobody waits for traffic any more, so less of it buys nothing.",
    ),
    Question(
        "03.x-traffic",
        "A function: the bytes that tile_m x tile_n tiles move, C and ragged edges counted.",
        reference=_traffic,
        tolerance=1e-6,
        inputs=lambda: [
            (100, 90, 70, 32, 16, 4),
            (257, 300, 64, 128, 256, 2),
            (4096, 4096, 4096, 128, 64, 4),
        ],
        slips={
            "forgot-c": lambda m, n, k, *rest: _traffic(m, n, k, *rest) - rest[2] * m * n,
            "read-c": lambda m, n, k, *rest: _traffic(m, n, k, *rest) + rest[2] * m * n,
            "elements-not-bytes": lambda *args: _traffic(*args) / args[5],
            "ragged-edge": lambda m, n, k, tile_m, tile_n, s: (
                s * m * n * (k / tile_m + k / tile_n + 1)
            ),
        },
        hint="A is read once for each column of tiles, B once for each row of tiles.",
    ),
    Question(
        "03.x-narrowest",
        "A function: the narrowest tile_n that reaches the ridge point beside this tile_m; math.inf where "
        "none does.",
        reference=_narrowest,
        tolerance=1e-9,
        inputs=lambda: [(32, 4, 10), (200, 2, 150), (20, 4, 10)],
        hint="set 2 tile_m tile_n / (s (tile_m + tile_n)) equal to the ridge point and solve; mind the sign of what you divide by.",
    ),
    Question(
        "03.x-largest",
        "A function: the side of the largest square tile that fits, with double buffering; 0 where none does.",
        reference=_largest,
        tolerance=1e-9,
        inputs=lambda: [(228 * 1024, 32, 2), (98304, 32, 2), (10, 1, 2)],
        hint="4 b² byte of sums, and four panels of b x depth numbers; a tile that just fits, fits.",
    ),
    Question(
        "03.x-fastest",
        "A function: the least seconds of the fastest of these tiles, edges and waves counted.",
        reference=_fastest,
        tolerance=1e-6,
        inputs=lambda: [
            (4096, 4096, 4096, 4, [[128, 128], [240, 240]], 20e12, 2e12, 132),
            (1000, 300, 5000, 2, [[64, 64], [128, 256], [256, 128]], 300e12, 2e12, 108),
        ],
        hint="for each tile the longer of two times; an SM without a tile and a tile's part outside C take as long as the rest.",
    ),
    Question(
        "03.x-misses",
        "A function: misses of a loop over `count` numbers, `stride` bytes apart, `passes` times.",
        reference=_misses,
        tolerance=1e-9,
        inputs=lambda: [(64, 256, 2, 64, 16, 8), (64, 320, 2, 64, 16, 8), (100, 4, 3, 64, 1, 4)],
        hint="count the lines in each set: as many as fit miss once, one more and every visit misses.",
    ),
]
