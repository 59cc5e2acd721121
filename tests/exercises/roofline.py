"""Roofline: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

import json
from math import ceil, floor

import roofline_lib as rl

LESSON = "roofline"


WRONG_ANSWERS = {
    "share_of_peak": [
        lambda f, b, p, w: f / b * w / p if b else 1,
        lambda f, b, p, w: f / p / (f / p + b / w),
        lambda f, b, p, w: min(1, b / f * w / p) if f else 0,
        lambda f, b, p, w: min(1, f / 2 * w / b / p) if b else 1,
    ],
    "gain_from_overlap": [
        lambda i, r: 2,
        lambda i, r: 1 + i / r,
        lambda i, r: 1 + r / i,
        lambda i, r: max(i / r, r / i),
    ],
    "slowest_part": [
        lambda f, p, levels: [f / p + sum(b / w for _, b, w in levels), "arithmetic"],
        lambda f, p, levels: max(
            [[f / p, "arithmetic"], [levels[0][1] / levels[0][2], levels[0][0]]]
        ),
        lambda f, p, levels: max(
            [[b / w, name] for name, b, w in levels] + [[f / p, "arithmetic"]],
            key=lambda t: t[0],
        ),
        lambda f, p, levels: max(
            [[f / p, "arithmetic"]] + [[b / min(w for *_, w in levels), n] for n, b, _ in levels]
        ),
    ],
    "smallest_n": [
        lambda p, q, r, s, ridge: ceil(1.5 * s * ridge),
        lambda p, q, r, s, ridge: floor(ridge * s * (1 / p + 1 / q + 1 / r) / 2),
        lambda p, q, r, s, ridge: round(ridge * s * (1 / p + 1 / q + 1 / r) / 2),
        lambda p, q, r, s, ridge: floor(ridge * s * (1 / p + 1 / q + 1 / r) / 2) + 1,
    ],
    "unnoticed_from": [
        lambda f, s, p, w: ceil(s * p / w * (1 - f) / f),
        lambda f, s, p, w: ceil(s * p / w / f) if f < 0.4 else 1,
        lambda f, s, p, w: ceil(s * p / w / 2 * (1 - f) / f) if f < 0.25 else 1,
        lambda f, s, p, w: floor(s * p / w * (1 - f) / f) if f < 0.4 else 1,
    ],
}

A100 = rl.machine("A100 40GB SXM")
OFFERS = {
    name: (
        rl.machine(name).bandwidth() / A100.bandwidth(),
        rl.machine(name).peak("fp32") / A100.peak("fp32"),
    )
    for name in ("L40S", "H100 PCIe")
}
SWEEPS, PRODUCTS = (
    {name: share / ratio[i] for name, ratio in OFFERS.items()} for i, share in enumerate((60, 40))
)
BOUGHT = SWEEPS["H100 PCIe"] + PRODUCTS["H100 PCIe"]
FUSED = BOUGHT - SWEEPS["H100 PCIe"] / 2


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    levels = [["DRAM", 2e11, 2e12], ["L2", 3e12, 8e12]]
    return [
        f"The vector sum of the lesson makes {f['share_of_peak'](1e9, 12e9, 20e12, 2e12):.4f}",
        f"under a ridge point of 10 the answer is {f['gain_from_overlap'](0.25, 10)}",
        f"makes `{json.dumps(f['slowest_part'](4e12, 20e12, levels))}`",
        f"under a ridge point of 10 makes {f['smallest_n'](1, 1, 1, 4, 10)}",
        f"under 150 it is {f['smallest_n'](4, 1, 1, 2, 150)}",
        f"n must be {f['unnoticed_from'](0.05, 2, 312e12, 2039e9)}",
        "({:.1f}, {:.0f} and {:.1f} FLOP/byte)".format(
            *(rl.machine(c).ridge_point("fp32") for c in ("A100 40GB SXM", *OFFERS))
        ),
        f"at {rl.gemm(4096, 4096, 4096).intensity:.0f} FLOP/byte",
        f"= {SWEEPS['L40S']:.0f}, products",
        f"= {PRODUCTS['L40S']:.1f}, together {SWEEPS['L40S'] + PRODUCTS['L40S']:.0f}",
        f"with {OFFERS['L40S'][1]:.1f} times the FLOP/s",
        (
            f"Sweeps {SWEEPS['H100 PCIe']:.0f}, products {PRODUCTS['H100 PCIe']:.0f}, together "
            f"{BOUGHT:.0f}: {100 / BOUGHT:.1f} times"
        ),
        f"30 + 40 = 70, {100 / 70:.1f} times",
        f"= {FUSED:.0f}, so {100 / FUSED:.1f} times",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("roofline.ridge", "69.44 FLOP/byte", "mac-is-flop"),
    ("roofline.ridge", "277.8 FLOP/byte", "mac-is-flop"),
    ("roofline.sum-time", "1.962 ms", "forgot-c"),
    ("roofline.sum-time", "5.885 ms", "wrong-width"),
    ("roofline.sum-time", "1.471 ms", "elements-not-bytes"),
    ("roofline.h100-ridge", "590.7 FLOP/byte", "sparse-peak"),
    ("roofline.h100-ridge", "378 FLOP/byte", "wrong-chip"),
    ("roofline.critical-size", 307, "forgot-c"),
    ("roofline.critical-size", 613, "read-c"),
    ("roofline.critical-size", 919, "wrong-width or sparse-peak"),
    ("roofline.critical-size", 154, "rule-for-exact"),
    ("roofline.x-n1024", "11.72 %", "mac-is-flop"),
    ("roofline.x-n1024", "2.93 %", "wrong-width"),
    ("roofline.x-n1024", "3.906 %", "forgot-c"),
    ("roofline.x-n1024", "7.812 %", "read-c"),
    ("roofline.x-bandwidth", "0.75 TB/s", "mac-is-flop"),
    ("roofline.x-efficiency", "34.73 %", "mac-is-flop or sparse-peak"),
    ("roofline.x-efficiency", "90.9 %", "wrong-chip"),
    ("roofline.x-two-kernels", "1.029 ms", "mac-is-flop"),
    ("roofline.narrower", "a fifteenth", "roof-not-slope"),
    ("roofline.narrower", "the same", "bytes-stay"),
    ("roofline.faster-memory", 2, "past-the-ridge"),
    ("roofline.faster-memory", 1, "roof-not-slope"),
    ("roofline.x-bandwidth", "2400 TB/s", "product-for-ratio"),
    ("roofline.x-two-kernels", "0.859 ms", "one-hides-the-other"),
    ("roofline.x-fewer-flop", "half", "work-is-time"),
    ("roofline.x-fewer-flop", "twice", "slope-not-time"),
]
