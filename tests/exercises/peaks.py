"""Peaks: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, floor, inf, prod
from re import findall

import roofline_lib as rl

LESSON = "peaks"


def each(counts, mac=2):
    """FLOP of what a rate counts."""
    return {"FLOP": 1, "MAC": mac, "sparse FLOP": 1}.get(counts) or 2 * prod(
        map(int, findall(r"\d+", counts))
    )


def enough_chains(latency, registers, base, per_chain, most_warps, most=255, whole=floor):
    return next(
        (
            c
            for c in range(1, (most - base) // per_chain + 1)
            if c * min(most_warps, whole(registers / 32 / (base + c * per_chain))) >= latency
        ),
        inf,
    )


def round_cycles(body, ports, starts):
    return (body[0] + body[1]) / ports[0], body[2] / ports[1], sum(body) / starts


def loop(wrong):
    return lambda cores, clock, bits, element, body, ports, starts: (
        cores
        * clock
        * bits
        / element
        * (2 * body[0] + body[1])
        / wrong(*round_cycles(body, ports, starts))
    )


WRONG_ANSWERS = {
    "utilisation": [
        lambda r, c, p, q: r * each(c) / (p * each(q)),
        lambda r, c, p, q: r * each(c) / (p * each(q) * (1 + ("s" in q))),
        lambda r, c, p, q: r * each(c, 1) / (p * each(q, 1) / (1 + ("s" in q))),
        lambda r, c, p, q: r * each(c) / (2 if "m" in c else 1) / (p * each(q) / (1 + ("s" in q))),
    ],
    "bus_wires": [
        lambda b, f, t, s: s * ceil(8 * b / (2 * f * s)),
        lambda b, f, t, s: ceil(8 * b / (f * t)),
        lambda b, f, t, s: s * ceil(b / (f * t * s)),
        lambda b, f, t, s: s * round(8 * b / (f * t * s)),
        lambda b, f, t, s: s * (floor(8 * b / (f * t * s)) + 1),
    ],
    "fewest_lanes": [
        lambda runs, u, ls: min(
            (x for x in ls if x * u * 2 * max(runs)[1] >= max(runs)[0]), default=inf
        ),
        lambda runs, u, ls: min(
            (x for x in ls if x * u * 2 * runs[0][1] > runs[0][0]), default=inf
        ),
        lambda runs, u, ls: min(ls, key=lambda x: abs(x - max(r / u / 2 / f for r, f in runs))),
        lambda runs, u, ls: next((x for x in ls if all(x * u * 2 * f >= r for r, f in runs)), inf),
        lambda runs, u, ls: min(
            (x for x in ls if any(x * u * 2 * f >= r for r, f in runs)), default=inf
        ),
    ],
    "loop_peak": [
        loop(lambda a, b, c: a),
        loop(lambda a, b, c: max(a, b)),
        loop(lambda a, b, c: a + b),
        loop(lambda a, b, c: max(1, a, b, c)),
        loop(lambda a, b, c: c),
        loop(lambda a, b, c: ceil(max(a, b, c))),
    ],
    "fewest_chains": [
        lambda la, r, b, p, w: ceil(la / w),
        lambda *a: enough_chains(*a, most=10**4),
        lambda *a: enough_chains(*a, whole=float),
        lambda la, r, b, p, w: enough_chains(la, 32 * r, b, p, w),
        lambda la, r, b, p, w: enough_chains(la, r, b, p, inf),
        lambda *a: 8,
    ],
}

_4090 = rl.machine("RTX 4090")
TOO_FAST = {
    sums: rl.peak_flops(128, lanes, 2.64e9) for sums, lanes in (("fp32", 256), ("fp16", 512))
}


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        (
            "headline of 1979e12 make "
            f"{f['utilisation'](44e9, 'm16n8k32', 1979e12, 'sparse FLOP'):.3f}"
        ),
        f"chip: {f['bus_wires'](1555e9, 1215e6, 2, 1024)}, the bus of an A100",
        f"would need {f['bus_wires'](1.6e12, 1215e6, 2, 1024)}",
        f"`[256, 64, 128]`, leaves {f['fewest_lanes']([[25.423e12, 2.79e9]], 36, [256, 64, 128])}",
        (
            "would leave "
            f"{f['fewest_lanes']([[25.423e12, 2.79e9], [12e12, 1.1e9]], 36, [256, 64, 128])}"
        ),
        (
            f"that makes {f['loop_peak'](32, 2.35e9, 256, 64, [1, 0, 2], [2, 2], 4) / 1e9:.1f}e9, "
            "half of the peak"
        ),
        f"at most 12 warps: {f['fewest_chains'](24, 16384, 40, 16, 12)} chains",
        "which makes {} and {}".format(*(c * (16384 // (32 * (40 + 16 * c))) for c in (4, 6))),
        f"215 TFLOP/s need {rl.clock_from(215e12, 128, 256) / 1e9:.2f} GHz",
        f"the peak is {TOO_FAST['fp32'] / 1e12:.0f} TFLOP/s",
        (
            f"the clock explains {100 * (TOO_FAST['fp32'] / _4090.peak('fp16') - 1):.0f} of the "
            f"{100 * (215e12 / _4090.peak('fp16') - 1):.0f}"
        ),
        (
            f"is {TOO_FAST['fp16'] / 1e12:.0f} TFLOP/s, and 215 would be "
            f"{100 * 215e12 / TOO_FAST['fp16']:.0f} percent"
        ),
        f"{215 / 2} TFLOP/s, {100 * 215e12 / 2 / TOO_FAST['fp32']:.0f} percent of 173",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("peaks.clock", "3.525 GHz", "mac-is-flop"),
    ("peaks.clock", "1.695 GHz", "ran-faster"),
    ("peaks.headline", "31.33 %", "sparse-peak"),
    ("peaks.headline", "82.01 %", "wrong-chip"),
    ("peaks.sums", "48.44 %", "accumulate-width or sparse-peak"),
    ("peaks.sums", "193.7 %", "wrong-peak"),
    ("peaks.lanes", "nothing", "over-its-peak"),
    ("peaks.lanes", "256", "check-for-proof"),
    ("peaks.x-tensor", "62.67 TFLOP/s", "mac-is-flop"),
    ("peaks.x-tensor", "15.67 TFLOP/s", "one-of-several"),
    ("peaks.x-macs", "41.67 %", "mac-is-flop or sparse-peak"),
    ("peaks.x-macs", "20.83 %", "mac-is-flop or sparse-peak"),
    ("peaks.x-copy", "41.67 %", "forgot-c"),
    ("peaks.x-copy", "10.42 %", "bits-for-bytes"),
    ("peaks.x-boost", "117.2 %", "ran-faster"),
    ("peaks.x-boost", "189.9 %", "mac-is-flop"),
    ("peaks.x-explained", "all of it", "a-rest-stays"),
    ("peaks.x-explained", "nothing", "ran-faster"),
]

FEWER = {
    "peaks.x-fewest-lanes": "taking one run for all of them gives another number with each run",
    "peaks.x-loop-peak": "which of loads and starts was forgotten hangs on the loop",
    "peaks.x-fewest-chains": "the other likely one, no limit of 255 registers, shows at no input",
}
