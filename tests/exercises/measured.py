"""Measured: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

import json
from math import ceil, floor
from statistics import mean, median

import roofline_lib as rl
from roofline_lib import measuring

LESSON = "measured"


def wrong_efficiencies(
    middle=median,
    times=max,
    clocks=lambda sheet, clock: clock / sheet,
    bandwidths=lambda sheet, clock: 1,
):
    def both(flops, moved, seconds, peak, sheet, clock, bandwidth):
        return [
            times(flops / (peak * c), moved / (bandwidth * b)) / middle(seconds)
            for c, b in ((1, 1), (clocks(sheet, clock), bandwidths(sheet, clock)))
        ]

    return both


def wrong_speed_up(cut=lambda n: n // 4, touch=lambda a, b: a <= b, average=median, worst=0):
    def faster(before, after):
        kept = [
            sorted(s)[cut(len(s)) : len(s) - cut(len(s))] or [median(s)] for s in (before, after)
        ]
        (a, *_, b), (c, *_, d) = (s if len(s) > 1 else 2 * s for s in kept)
        if touch(a, d) and touch(c, b):
            return 1
        return max(worst, average(before) / average(after))

    return faster


def wrong_side(choose=min, whole=ceil, exact=lambda share: share / (1 - share)):
    return lambda share, latency, s, p, w: max(
        1,
        whole(
            choose(
                (latency * exact(share) * p / 2) ** (1 / 3),
                (latency * exact(share) * w / 3 / s) ** 0.5,
            )
        ),
    )


def wrong_tile(traffic, far=lambda moved, counted: max(moved / counted, counted / moved)):
    return lambda m, n, k, s, counted, tiles: min(
        tiles, key=lambda tile: far(traffic(m, n, k, s, *tile), counted)
    )


def wrong_plateau(middle=median, families=("gemm_m",), only=True, kept=True, most=max):
    def plateau(text, precision, share):
        rates = {
            p["shape"]["m"]: p["flops"] / middle(p["repeats"])
            for p in json.loads(text)["points"]
            if p["family"] in families and (not only or p["precision"] == precision)
        }
        enough = [m for m in rates if rates[m] >= share * most(rates.values())]
        if not kept:
            return min(enough)
        return min((m for m in rates if all(n in enough for n in rates if n >= m)), default=None)

    return plateau


def point(family, precision, **shape):
    return next(
        p
        for p in RECORD.select(family, precision=precision)
        if shape.items() <= p.shape.sizes.items()
    )


WRONG_ANSWERS = {
    "efficiencies": [
        wrong_efficiencies(mean),
        wrong_efficiencies(min),
        wrong_efficiencies(times=lambda a, b: a + b),
        wrong_efficiencies(clocks=lambda sheet, clock: sheet / clock),
        wrong_efficiencies(lambda s: sorted(s)[len(s) // 2]),
        wrong_efficiencies(bandwidths=lambda sheet, clock: clock / sheet),
        lambda f, b, s, p, c, g, w: [e := max(f / p, b / w) / median(s), e * c / g],
    ],
    "speed_up": [
        wrong_speed_up(lambda n: 0),
        wrong_speed_up(touch=lambda a, b: a < b),
        wrong_speed_up(average=mean),
        wrong_speed_up(average=min),
        lambda a, b: median(a) / median(b),
        wrong_speed_up(worst=1),
        lambda a, b: 1 / wrong_speed_up()(a, b),
        wrong_speed_up(lambda n: 1 if n > 2 else 0),
    ],
    "smallest_side": [
        wrong_side(max),
        wrong_side(whole=floor),
        wrong_side(whole=round),
        wrong_side(exact=lambda share: share),
        wrong_side(exact=lambda share: 1 / (1 - share)),
        wrong_side(lambda a, b: a),
        wrong_side(lambda a, b: b),
    ],
    "tile_behind": [
        wrong_tile(lambda m, n, k, s, a, b: s * k * (m * n / a + m * n / b)),
        wrong_tile(lambda m, n, k, s, a, b: s * k * (ceil(n / a) * m + ceil(m / b) * n)),
        wrong_tile(
            lambda m, n, k, s, a, b: (
                s * k * (ceil(n / b) * m + ceil(m / a) * n) + s * m * n * k / 64
            )
        ),
        wrong_tile(lambda m, n, k, s, a, b: k * (ceil(n / b) * m + ceil(m / a) * n)),
        wrong_tile(lambda m, n, k, s, a, b: s * k * ceil(m / a) * ceil(n / b) * (a + b)),
    ],
    "plateau": [
        wrong_plateau(mean),
        wrong_plateau(min),
        wrong_plateau(families=("gemm_m", "gemm_n")),
        wrong_plateau(only=False),
        wrong_plateau(kept=False),
        wrong_plateau(most=lambda rates: list(rates)[-1]),
    ],
}

H200 = rl.machine("H200 SXM")
RECORD = measuring.load("h200_a1")
AS_TEXT = json.dumps(RECORD.to_json())
KEPT_UP = measuring.sustained_roof(RECORD)
CUBES = {n: point("gemm_n", "bf16", n=n) for n in (1024, 2048)}
LAYER, LAYER_8 = (point("gemm_m", precision, m=1024) for precision in ("bf16", "fp8"))
WHY = [
    measuring.explain(p, H200, KEPT_UP, measuring.launch_floor(RECORD, "bf16"))
    for p in (CUBES[1024], LAYER)
]
SMALL, BIG, NARROW = (
    CUBES[1024].seconds,
    LAYER.seconds,
    LAYER_8.seconds,
)
BATCHED, MORE_POWER = (
    8 * SMALL / CUBES[2048].seconds,
    CUBES[1024].clock / LAYER.clock,
)


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    tile = f["tile_behind"](4096, 4096, 4096, 2, 1.611e9, [[128, 128], [256, 128], [256, 256]])
    return [
        "makes {:.3f} and {:.3f}".format(
            *f["efficiencies"](
                2 * 1024 * 4096 * 16384, 0, [208.5e-6], 989e12, 1.83e9, 1.51e9, 4.8e12
            )
        ),
        f"after make {f['speed_up']([10, 11, 12, 40], [8, 7, 9, 8])}",
        f"it is {f['speed_up']([10, 11, 12, 40], [8, 7, 12, 30])}, though",
        "from n = {}, and nine tenths only from {}".format(
            *(f["smallest_side"](x, 2.62e-6, 2, 989e12, 4.8e12) for x in (0.5, 0.9))
        ),
        f"makes `{tile}`",
        f"kept from m = {f['plateau'](AS_TEXT, 'bf16', 0.9)} on",
        (
            f"takes {1e6 * SMALL:.2f} µs at {CUBES[1024].clock / 1e9:.2f} GHz, a large one "
            f"{1e6 * BIG:.1f} µs at {LAYER.clock / 1e9:.2f} GHz"
        ),
        f"2048 takes {1e6 * CUBES[2048].seconds:.1f} µs",
        f"says {100 * measuring.efficiency(CUBES[1024], H200):.0f} percent",
        f"ones and {100 * measuring.efficiency(LAYER, H200):.0f} for the large",
        "clock {clock:.2f}, waves {waves:.2f}, latency {latency:.2f}. Their".format(**WHY[0]),
        "clock {clock:.2f}, waves {waves:.2f}, latency {latency:.2f}, "
        "rest {rest:.2f}: power".format(**WHY[1]),
        f"1.98/1.51 = {MORE_POWER:.2f}: the program gets {1 / (0.7 + 0.3 / MORE_POWER):.2f} times",
        f"are 512 tiles, {100 * rl.wave_efficiency(512, 132):.0f} percent of four waves",
        (
            f"eight kernels take {8e6 * SMALL:.1f}: {BATCHED:.2f} times as fast, so "
            f"{1 / (0.7 / BATCHED + 0.3):.2f} times"
        ),
        (
            f"in fp8, {1e6 * NARROW:.1f} µs: {BIG / NARROW:.2f} times, "
            f"{1 / (0.7 + 0.3 * NARROW / BIG):.2f} for the program"
        ),
        f"together {1 / (0.7 / BATCHED + 0.3 * NARROW / BIG):.2f} times",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("measured.clock", "989 TFLOP/s", "ran-slower"),
    ("measured.clock", "405.5 TFLOP/s", "mac-is-flop"),
    ("measured.efficiency", "21.71 %", "peak-for-roof"),
    ("measured.efficiency", "70.18 %", "forgot-c"),
    ("measured.waves", "100 %", "edges-for-waves"),
    ("measured.waves", "24.24 %", "left-for-saved"),
    ("measured.bytes", "77.65 %", "elements-not-bytes"),
    ("measured.bytes", "11.18 %", "left-for-saved"),
    ("measured.above", "clock", "clock-makes-no-wires"),
    ("measured.above", "units", "units-miss-by-more"),
    ("measured.x-repeats", "311.2 TFLOP/s", "mac-is-flop"),
    ("measured.x-repeats", "461.3 TFLOP/s", "mean-for-median"),
    ("measured.x-at-its-clock", "43.11 %", "mac-is-flop"),
    ("measured.x-at-its-clock", "68.82 %", "ran-slower"),
    ("measured.x-floor", "9.208 %", "peak-for-roof"),
    ("measured.x-floor", "88.9 %", "left-for-saved"),
    ("measured.x-floor", "12.5 %", "other-whole"),
    ("measured.x-stranger", 170.7, "square-for-rectangle"),
    ("measured.x-stranger", 85.33, "one-of-several"),
    ("measured.x-shortest", "waves", "nearer-to-one"),
    ("measured.x-shortest", "latency", "nearer-to-one"),
]
