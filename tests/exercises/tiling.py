"""Tiling: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, floor, inf, sqrt

import roofline_lib as rl

LESSON = "tiling"


def wrong_fastest(together=max, waste=(True, True), choose=None):
    def fastest(m, n, k, s, tiles, peak, bandwidth, units):
        def parts(tile):
            limit = rl.Bound(
                rl.tiled_gemm(m, n, k, tile, {4: "fp32", 2: "bf16", 1: "int8"}[s]), peak, bandwidth
            )
            useful = rl.tile_efficiency(m, n, tile) if waste[0] else 1
            useful *= rl.wave_efficiency(rl.tile_count(m, n, tile), units) if waste[1] else 1
            return limit.memory_time, limit.compute_time / useful

        return together(min(map(parts, tiles), key=choose or together))

    return fastest


WRONG_ANSWERS = {
    "tile_traffic": [
        lambda m, n, k, a, b, s: s * (ceil(m / a) * m * k + ceil(n / b) * k * n + m * n),
        lambda m, n, k, a, b, s: s * (ceil(n / b) * ceil(m / a) * k * (a + b) + m * n),
        lambda m, n, k, a, b, s: s * (ceil(n / a) * m * k + ceil(m / b) * k * n + m * n),
    ],
    "narrowest_tile": [
        lambda a, s, r: ceil(r * s * a / (2 * a - r * s)) if 2 * a != r * s else inf,
        lambda a, s, r: floor(r * s * a / (2 * a - r * s)) if 2 * a > r * s else inf,
        lambda a, s, r: ceil(r * s * a / (a - r * s)) if a > r * s else inf,
        lambda a, s, r: ceil(r * s),
    ],
    "largest_tile": [
        lambda f, d, s: floor(sqrt(f / 4)),
        lambda f, d, s: floor((-2 * d * s + sqrt(4 * d * d * s * s + 16 * f)) / 8),
        lambda f, d, s: floor((-4 * d * s + sqrt(16 * d * d * s * s + 4 * s * f)) / (2 * s)),
        lambda f, d, s: max(1, floor((-4 * d * s + sqrt(16 * d * d * s * s + 16 * f)) / 8)),
        lambda f, d, s: ceil((-4 * d * s + sqrt(16 * d * d * s * s + 16 * f)) / 8) - 1,
    ],
    "tiles_at_once": [
        lambda m, n, d, s, r, f: r // (4 * m * n),
        lambda m, n, d, s, r, f: f // (2 * (m + n) * d * s),
        lambda m, n, d, s, r, f: (r + f) // (4 * m * n + 2 * (m + n) * d * s),
        lambda m, n, d, s, r, f: min(r // (s * m * n), f // (2 * (m + n) * d * s)),
        lambda m, n, d, s, r, f: max(1, min(r // (4 * m * n), f // (2 * (m + n) * d * s))),
    ],
    "fastest_tile": [
        wrong_fastest(sum),
        wrong_fastest(waste=(False, True)),
        wrong_fastest(waste=(True, False)),
        wrong_fastest(choose=lambda times: times[0]),
        wrong_fastest(lambda times: times[1]),
    ],
}


HOUSE = rl.machine("house chip")
ROOM = HOUSE.capacity("shared memory")
BUSY = rl.wave_efficiency(rl.tile_count(4096, 4096, 128), HOUSE.units)


def seconds(b, useful=1.0):
    limit = rl.bound(rl.tiled_gemm(4096, 4096, 4096, b), HOUSE, "fp32")
    return limit.memory_time, limit.compute_time / useful


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    tiles = [[128, 128], [240, 240]]
    fastest = f["fastest_tile"](4096, 4096, 4096, 4, tiles, 20e12, 2e12, 132)
    return [
        f"makes {f['tile_traffic'](100, 90, 70, 32, 16, 4):,}",
        f"32 rows need {f['narrowest_tile'](32, 4, 10)} columns",
        f"hold b = {f['largest_tile'](ROOM, 32, 2)} in bf16",
        f"left room for {floor(sqrt(ROOM / 4 + 1) - 1)}",
        f"with {1e3 * fastest:.2f} ms",
        f"fits {f['tiles_at_once'](128, 256, 64, 2, 262144, ROOM)} times",
        f"{f['tiles_at_once'](128, 128, 32, 4, 262144, ROOM)} times. A tile",
        f"are {4 * 512**2 / 1e6:.2f} MB, an SM has {ROOM / 1e3:.0f} kB",
        f"two of each, it is {f['largest_tile'](ROOM, 32, 4)}",
        f"64 tiles for 132 SMs keep {100 * rl.wave_efficiency(64, 132):.1f}",
        (
            f"{rl.tile_count(4097, 4097, 512):.0f} tiles of which "
            f"{100 * rl.tile_efficiency(4097, 4097, 512):.0f} percent"
        ),
        (
            f"takes {1e3 * seconds(128)[0]:.2f} ms and hides behind "
            f"{1e3 * seconds(128, BUSY)[1]:.2f} ms"
        ),
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("tiling.traffic", "67.11 MB", "forgot-c"),
    ("tiling.traffic", "83.89 MB", "read-c"),
    ("tiling.traffic", "151 MB", "wrong-width"),
    ("tiling.traffic", "37.75 MB", "elements-not-bytes"),
    ("tiling.best", "64 FLOP/byte", "elements-not-bytes"),
    ("tiling.best", "128 FLOP/byte", "forgot-width"),
    ("tiling.useful", "91.18 %", "forgot-waves"),
    ("tiling.useful", "75 %", "forgot-edges"),
    ("tiling.smaller", "yes, tiles add reuse", "no-reuse-is-best"),
    ("tiling.smaller", "only with a large cache", "no-reuse-is-best"),
    ("tiling.level", "DRAM and L2", "which-memory"),
    ("tiling.level", "shared memory and registers", "which-memory"),
    ("tiling.x-rectangle", 1, "area-for-perimeter"),
    ("tiling.x-rectangle", 0.8, "upside-down"),
    ("tiling.x-panels", "128 KiB", "wrong-width"),
    ("tiling.x-panels", "32 KiB", "elements-not-bytes"),
    ("tiling.x-least-memory", "90 kB", "elements-not-bytes"),
    ("tiling.x-least-memory", "1440 kB", "wrong-width"),
    ("tiling.x-waves", "69.36 %", "ragged-edge"),
    ("tiling.x-waves", "95.37 %", "edges-for-waves"),
    ("tiling.x-larger-tile", "a third less", "not-the-limit"),
    ("tiling.x-larger-tile", "half", "not-the-limit"),
]
