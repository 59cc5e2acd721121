"""Questions on measured points under the roof."""

import json
import math
from functools import partial

import numpy as np

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import PRECISION_OF_WIDTH, smallest_whole

_H200 = rl.machine("H200 SXM")
_LAYER = rl.gemm(64, 16384, 4096, "bf16")
_TILES = rl.tile_count(2560, 2560, 128)
# into the SMs; C goes the other way
_CROSSED = rl.tiled_gemm(2048, 2048, 2048, 64, "bf16").bytes_moved - 2 * 2048**2


def _at_its_clock(seconds, peak, worth=2):
    """Percent of a peak that the 12288-cube in so many seconds is."""
    return 100 * worth / 2 * rl.gemm(12288, 12288, 12288, "bf16").flops / seconds / peak


def _floor(limit, latency, of_the_peak=False):
    """Percent of attainable at best where a latency comes on top of the roof's time."""
    reached = limit.compute_time if of_the_peak else limit.time
    return 100 * reached / (limit.time + latency)


def _panel_traffic(m, n, k, element_bytes, tile):
    """Bytes of A and B that tiles fetch."""
    return (
        rl.tiled_gemm(m, n, k, tuple(tile), PRECISION_OF_WIDTH[element_bytes]).bytes_moved
        - element_bytes * m * n
    )


def _apart(counted, moved):
    return abs(math.log(moved / counted))


def _stranger(counted):
    """The side, in steps of 8, that fits the counted bytes beside a side of 128."""
    return float(
        min(
            range(8, 1024, 8),
            key=lambda side: _apart(counted, _panel_traffic(4096, 4096, 4096, 1, (128, side))),
        )
    )


def _shortest():
    """The factor of a recorded point that takes most, of three."""
    record = measuring.load("h200_a1")
    (point,) = (p for p in record.select("gemm_m", precision="bf16") if p.shape.m == 256)
    kept_up = measuring.sustained_roof(record)
    factors = measuring.explain(point, _H200, kept_up, measuring.launch_floor(record, "bf16"))
    return min(("clock", "waves", "latency"), key=factors.get)


def _efficiencies(flops, bytes_moved, seconds, peak, sheet_clock, clock, bandwidth):
    limits = [
        rl.Bound(rl.Work(flops, bytes_moved), flat, bandwidth)
        for flat in (peak, peak / sheet_clock * clock)
    ]
    return [limit.time / float(np.median(seconds)) for limit in limits]


def _speed_up(before, after, average=np.median, overlap=1.0):
    """By counting, for every repeat in the middle of one list, which in the other are shorter."""
    middles = [
        np.sort(seconds)[len(seconds) // 4 :][: len(seconds) - 2 * (len(seconds) // 4)]
        for seconds in (before, after)
    ]
    shorter = np.less.outer(*middles)
    apart = shorter.all() or np.greater.outer(*middles).all()
    ratio = float(average(before) / average(after))
    return ratio if apart else overlap or ratio


def _smallest_side(share, latency, element_bytes, peak, bandwidth):
    def reaches(n):
        time = rl.Bound(rl.gemm(n, n, n, PRECISION_OF_WIDTH[element_bytes]), peak, bandwidth).time
        return time >= share * (time + latency)

    return smallest_whole(reaches)


def _tile_behind(m, n, k, element_bytes, counted, candidates):
    return min(
        candidates, key=lambda tile: _apart(counted, _panel_traffic(m, n, k, element_bytes, tile))
    )


def _record(seconds):
    """A small record in JSON: products over m in fp32, with their repeats (s)."""
    points = [
        {
            "family": "gemm_m",
            "precision": "fp32",
            "shape": {"m": m, "n": 64, "k": 64},
            "flops": 8192.0 * m,
            "repeats": repeats,
        }
        for m, repeats in seconds.items()
    ]
    return json.dumps({"points": points})


def _plateau(text, precision, share, kept=True, middle=np.median):
    """By asking of every size whether it and all larger ones reach the share."""
    points = [
        point
        for point in json.loads(text)["points"]
        if (point["family"], point["precision"]) == ("gemm_m", precision)
    ]
    m = np.array([point["shape"]["m"] for point in points])
    rates = np.array([point["flops"] / middle(point["repeats"]) for point in points])
    reach = rates >= share * rates.max()
    begins = [size for size in m if (reach[m >= size].all() if kept else reach[m == size].all())]
    return float(min(begins, default=math.nan))


def _repeats_asked(repeats=(27.6, 27.4, 27.7, 27.5, 95.0, 27.6, 27.9)):
    flops, seconds = rl.gemm(2048, 2048, 2048).flops, 1e-6 * np.array(repeats)
    *first, last = map(str, repeats)
    return NumberQuestion(
        "measured.x-repeats",
        f"Seven repeats of a 2048 x 2048 x 2048 product in bf16 take {', '.join(first)} and "
        f"{last} µs. What is its rate?",
        unit="TFLOP/s",
        reference=lambda: flops / np.median(seconds),
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: flops / 2 / np.median(seconds)),
            ("mean-for-median", lambda: flops / np.mean(seconds)),
        ],
        hint=(
            "one of the seven met something else on its way; the mean would hear of it, the "
            "median does not."
        ),
    )


def _at_its_clock_asked(microseconds=5452, megahertz=1460):
    seconds, peak = 1e-6 * microseconds, rl.peak_flops(132, 2048, 1e6 * megahertz)
    return NumberQuestion(
        "measured.x-at-its-clock",
        f"A product of 12288 x 12288 x 12288 in bf16 takes {microseconds / 1000} ms while the "
        f"clock stands at {megahertz / 1000} GHz. What share of the peak at that clock is that?",
        unit="%",
        reference=lambda: _at_its_clock(seconds, peak),
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: _at_its_clock(seconds, peak, worth=1)),
            ("ran-slower", lambda: _at_its_clock(seconds, _H200.peak("bf16"))),
        ],
        hint="132 x 4096 FLOP a cycle, times the cycles a second that there were.",
    )


def _floor_asked(n=512, nanoseconds=2620):
    limit, latency = rl.bound(rl.gemm(n, n, n, "bf16"), _H200, "bf16"), 1e-9 * nanoseconds
    return NumberQuestion(
        "measured.x-floor",
        f"Every kernel takes {nanoseconds / 1000} µs on top of the roof's time. What share of "
        f"attainable can a {n} x {n} x {n} product in bf16 reach at best?",
        unit="%",
        reference=lambda: _floor(limit, latency),
        slips=[
            ("peak-for-roof", lambda: _floor(limit, latency, of_the_peak=True)),
            ("left-for-saved", lambda: 100 - _floor(limit, latency)),
            ("other-whole", lambda: 100 * limit.time / latency),
        ],
        hint=(
            f"the roof's time is the longer of two; divide it by itself and {nanoseconds / 1000} "
            "µs."
        ),
    )


def _stranger_asked(megabytes=805.3):
    counted = 1e6 * megabytes  # into the SMs
    return NumberQuestion(
        "measured.x-stranger",
        f"A library's fp8 product of 4096 x 4096 x 4096 draws {megabytes / 1000:.4f} GB of A and "
        "B from L2 into the SMs. One side of its tile is 128. What is the other?",
        reference=lambda: _stranger(counted),
        tolerance=0.005,
        slips=[
            ("square-for-rectangle", lambda: 2 * 4096**3 / counted),
            ("one-of-several", lambda: 4096**3 / counted),
        ],
        hint="1 byte a number: 4096³ (1/128 + 1/b) byte.",
    )


def _repeats_drawn(rng):
    """Six repeats within a microsecond, and one that met something else."""
    middle = rng.randint(200, 700)
    tenths = [middle + rng.randint(-5, 5) for _ in range(6)]
    tenths.insert(rng.randrange(6), middle * rng.randint(3, 5))
    return {"repeats": tuple(one / 10 for one in tenths)}


def _floor_drawn(rng):
    """Where neither the time nor the latency is all of it, and the memory is the roof."""
    return {"n": 16 * rng.randint(20, 38), "nanoseconds": 20 * rng.randint(100, 300)}


def _stranger_drawn(rng):
    """The bytes of a tile whose other side is no 128."""
    side = rng.choice([side for side in range(40, 320, 8) if abs(side - 128) > 16])
    return {"megabytes": round(_panel_traffic(4096, 4096, 4096, 1, (128, side)) / 1e6, 1)}


# with other numbers for each student
VARIED = (
    Varied(_repeats_asked, lambda rng: _repeats_drawn(rng)),
    Varied(
        _at_its_clock_asked,
        lambda rng: {
            "microseconds": 4 * rng.randint(1275, 1500),
            "megahertz": 10 * rng.randint(138, 165),
        },
    ),
    Varied(_floor_asked, lambda rng: _floor_drawn(rng)),
    Varied(_stranger_asked, lambda rng: _stranger_drawn(rng)),
)

QUESTIONS = [
    NumberQuestion(
        "measured.clock",
        "Each of an H200's 132 SMs can do 4096 FLOP a cycle in bf16. Under load the clock falls "
        "to 1.5 GHz. What is the peak then?",
        unit="TFLOP/s",
        reference=lambda: rl.peak_flops(132, 2048, 1.5e9),
        tolerance=0.01,
        slips=[
            ("ran-slower", lambda: _H200.peak("bf16")),
            ("mac-is-flop", lambda: rl.peak_flops(132, 2048, 1.5e9, 1)),
        ],
        hint="units x FLOP a cycle x clock.",
    ),
    NumberQuestion(
        "measured.efficiency",
        "[64, 4096] @ [4096, 16384] in bf16 takes 40 µs on an H200. How many percent of "
        "attainable is that, on the sheet's roof?",
        unit="%",
        reference=lambda: 100 * rl.bound(_LAYER, _H200, "bf16").time / 40e-6,
        tolerance=0.01,
        slips=[
            ("peak-for-roof", lambda: 100 * _LAYER.flops / 40e-6 / _H200.peak("bf16")),
            ("forgot-c", lambda: 100 * 2 * (64 + 16384) * 4096 / _H200.bandwidth() / 40e-6),
        ],
        hint=(
            'rl.bound(rl.gemm(64, 16384, 4096, "bf16"), "H200 SXM", "bf16").time is the least time.'
        ),
    ),
    NumberQuestion(
        "measured.waves",
        "A 2560 x 2560 result is made of 128 x 128 tiles on 132 SMs. How many percent of the SMs' "
        "time is used?",
        unit="%",
        reference=lambda: 100 * rl.wave_efficiency(_TILES, 132),
        tolerance=0.005,
        slips=[
            ("edges-for-waves", lambda: 100 * rl.tile_efficiency(2560, 2560, 128)),
            ("left-for-saved", lambda: 100 * (1 - rl.wave_efficiency(_TILES, 132))),
        ],
        hint="20 x 20 tiles in waves of 132; the last wave takes as long as a full one.",
    ),
    NumberQuestion(
        "measured.bytes",
        "Tiles of 64 x 64 in bf16, n = 2048, loaded past L1. The counters saw 60 MB come from "
        "DRAM. How many percent of the bytes that went into the SMs did L2 have already?",
        unit="%",
        reference=lambda: 100 * (1 - 60e6 / _CROSSED),
        tolerance=0.005,
        slips=[
            ("elements-not-bytes", lambda: 100 * (1 - 60e6 / (_CROSSED / 2))),
            ("left-for-saved", lambda: 100 * 60e6 / _CROSSED),
        ],
        hint=(
            "the rule 2MNK/b numbers says what went into the SMs; the rest of it did not come "
            "from DRAM."
        ),
    ),
    ChoiceQuestion(
        "measured.above",
        "A stream over 20 MB, passed a thousand times, shows 5.6 TB/s on a chip with 4.8 TB/s of "
        "DRAM bandwidth and 60 MiB of L2. What is the first suspect?",
        choices=("units", "sparsity", "clock", "cache level", "precision"),
        reference=lambda: "cache level",
        slips=[
            ("clock-makes-no-wires", lambda: "clock"),
            ("units-miss-by-more", lambda: "units"),
        ],
        hint="Where are the 20 MB after the first pass?",
    ),
    _repeats_asked(),
    _at_its_clock_asked(),
    _floor_asked(),
    _stranger_asked(),
    ChoiceQuestion(
        "measured.x-shortest",
        "In the record h200_a1 the lesson's layer in bf16 with 256 rows reaches 60 % of "
        "attainable. Which of these three factors takes most?",
        reference=_shortest,
        choices=("clock", "waves", "latency"),
        slips=[
            ("nearer-to-one", lambda: "waves"),
            ("nearer-to-one", lambda: "latency"),
        ],
        hint=(
            "measuring.explain gives all five; or move the lesson's explorer to m = 256 and read "
            "the bars."
        ),
    ),
    FunctionQuestion(
        "measured.x-efficiencies",
        "A function: [efficiency under the sheet's roof, the same at the run's clock].",
        reference=_efficiencies,
        tolerance=1e-6,
        inputs=lambda: [
            (1.374e11, 1.761e8, [208.5e-6], 989e12, 1.83e9, 1.51e9, 4.8e12),
            (1e9, 1e9, [9, 3, 5], 1e9, 1e9, 9e8, 5e8),
            (4e9, 1e9, [6, 2, 4, 3], 1e9, 1e9, 1.2e9, 5e8),
        ],
        slips=[
            (
                "peak-for-roof",
                lambda flops, moved, seconds, *rest: _efficiencies(flops, 0, seconds, *rest),
            ),
            ("mac-is-flop", lambda flops, *rest: _efficiencies(flops / 2, *rest)),
        ],
        hint=(
            "the median of the repeats; the longer of two times over it; then once more with the "
            "peak at the other clock."
        ),
    ),
    FunctionQuestion(
        "measured.x-speed-up",
        "A function: how many times as fast a kernel has become; 1 where the repeats do not show "
        "it.",
        reference=_speed_up,
        tolerance=1e-6,
        inputs=lambda: [
            ([10, 11, 12, 40], [8, 7, 9, 8]),
            ([10, 11, 12, 40], [8, 7, 12, 30]),
            ([2, 2.1, 2.2], [3, 3.1, 9]),
        ],
        slips=[
            ("mean-for-median", partial(_speed_up, average=np.mean)),
            ("noise-for-speed-up", partial(_speed_up, overlap=None)),
        ],
        hint="sort, cut n // 4 at either end, compare the shortest and longest of what is left.",
    ),
    FunctionQuestion(
        "measured.x-smallest-side",
        "A function: the smallest n whose product reaches a share of the roof, with a latency on "
        "top.",
        reference=_smallest_side,
        tolerance=1e-9,
        inputs=lambda: [
            (0.5, 2.62e-6, 2, 989e12, 4.8e12),
            (0.9, 2.62e-6, 2, 989e12, 4.8e12),
            (0.3, 5e-6, 4, 1e14, 1e12),
        ],
        slips=[
            (
                "mac-is-flop",
                lambda share, latency, s, peak, bandwidth: _smallest_side(
                    share, latency, s, 2 * peak, bandwidth
                ),
            ),
            (
                "forgot-c",
                lambda share, latency, s, peak, bandwidth: _smallest_side(
                    share, latency, s, peak, 1.5 * bandwidth
                ),
            ),
        ],
        hint=(
            "how long must the roof's time be? It is the longer of 2n³/peak and 3 s n²/bandwidth, "
            "so one of them is enough."
        ),
    ),
    FunctionQuestion(
        "measured.x-tile-behind",
        "A function: the tile whose traffic is nearest to the counted bytes.",
        reference=_tile_behind,
        tolerance=1e-9,
        inputs=lambda: [
            (4096, 4096, 4096, 2, 1.611e9, [[128, 128], [256, 128], [256, 256]]),
            (8192, 1024, 512, 2, 1.5e8, [[64, 256], [256, 64], [128, 64]]),
        ],
        slips=[
            (
                "wrong-width",
                lambda m, n, k, s, counted, tiles: _tile_behind(m, n, k, s, 2 * counted, tiles),
            ),
            (
                "one-of-several",
                lambda m, n, k, s, counted, tiles: min(
                    tiles, key=lambda tile: _apart(counted, s * m * n * k / tile[1])
                ),
            ),
        ],
        hint=(
            "A is read once for each column of tiles, B once for each row of tiles; both counts "
            "rounded up."
        ),
    ),
    FunctionQuestion(
        "measured.x-plateau",
        "A function: the m at which the plateau of a record begins.",
        reference=_plateau,
        tolerance=1e-9,
        inputs=lambda: [
            (_record({1: [4e-6], 2: [4e-6], 4: [4e-6], 8: [8e-6]}), "fp32", 0.9),
            (
                _record({1: [9e-6], 4: [6e-6], 2: [2e-6], 8: [8e-6, 8e-6, 9e-5], 16: [16e-6]}),
                "fp32",
                0.9,
            ),
            (_record({1: [4e-6], 2: [5e-6], 4: [9e-6], 8: [16e-6]}), "fp32", 0.8),
        ],
        slips=[
            ("first-for-plateau", partial(_plateau, kept=False)),
            ("mean-for-median", partial(_plateau, middle=np.mean)),
        ],
        hint="from the largest m downwards: where does the first one fall short?",
    ),
]
