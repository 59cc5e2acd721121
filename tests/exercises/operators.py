"""Operators: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil

import roofline_lib as rl

LESSON = "operators"


def wrong_crossings(
    distinct=set,
    once=True,
    written=lambda made, needed: made & needed,
    read=lambda inputs, made: inputs - made,
):
    def both(steps, needed, elements, s):
        made = {output for _, output in steps}
        apart = sum(len(distinct(inputs)) + 1 for inputs, _ in steps)
        reads = [read(set(inputs), made) for inputs, _ in steps]
        one = (len(set().union(*reads)) if once else sum(map(len, reads))) + len(
            written(made, set(needed))
        )
        return [elements * s * apart, elements * s * one]

    return both


def wrong_narrow(scales=lambda n, k, block: n * ceil(k / block), kept=1, together=max):
    def faster(rows, k, n, bits, block, scale, p, w):
        old, new = 2 * k * n, (k * n * bits + scales(n, k, block) * scale) / 8
        old, new = (
            together((2 * rows * k * n / p, (moved + kept * 2 * rows * (k + n)) / w))
            for moved in (old, new)
        )
        return old / new

    return faster


def wrong_epilogue(together=max, after=lambda passes: 0.0, crossings=2, compute_bound=False):
    def gain(m, n, k, steps, s, peak, bandwidth):
        product = together((2 * m * n * k / peak, s * (m * k + k * n + m * n) / bandwidth))
        if compute_bound:
            product = 2 * m * n * k / peak
        passes = steps * crossings * m * n * s / bandwidth
        return (product + passes) / (product + after(passes))

    return gain


def wrong_windows(image_again=1, weights=1, trips=2, places=lambda side, kernel: side**2):
    def both(images, side, c_in, c_out, kernel, s):
        spots = places(side, kernel)
        image, result = images * side**2 * c_in, images * spots * c_out
        on_chip = image + weights * kernel**2 * c_in * c_out + result
        windows = trips * kernel**2 * images * spots * c_in
        return [s * on_chip, s * (on_chip + windows - (1 - image_again) * image)]

    return both


def wrong_plan(together=max, kept=0, launches=len, side=1, comes_in=True):
    def seconds(first_bytes, steps, kernels, launch, peak, bandwidth):
        total, first = launch * launches(kernels), 0
        for size in kernels:
            group = steps[first : first + size]
            crossing = side * sum(step[1] for step in group) + group[-1][2]
            crossing += kept * sum(step[2] for step in group[:-1])
            if first == 0 or comes_in:
                crossing += steps[first - 1][2] if first else first_bytes
            total += together((sum(step[0] for step in group) / peak, crossing / bandwidth))
            first += size
        return total

    return seconds


def least(*works):
    """Seconds of works one after the other on the house chip."""
    return rl.time_in_sequence(works, HOUSE, "bf16")


def around(rows, weights="bf16"):
    """A layer's four products around attention, and the three of its FFN."""
    return (
        4 * [rl.gemm(rows, 4096, 4096, "bf16", b=weights)],
        2 * [rl.gemm(rows, 11008, 4096, "bf16", b=weights)]
        + [rl.gemm(rows, 4096, 11008, "bf16", b=weights)],
    )


WRONG_ANSWERS = {
    "crossings": [
        wrong_crossings(list),
        wrong_crossings(once=False),
        wrong_crossings(written=lambda made, needed: made),
        wrong_crossings(read=lambda inputs, made: inputs),
        lambda st, ne, n, s: wrong_crossings()(st, [st[-1][1]], n, s),
    ],
    "narrow_gain": [
        wrong_narrow(lambda n, k, block: ceil(n * k / block)),
        wrong_narrow(lambda n, k, block: n * k // block),
        wrong_narrow(lambda n, k, block: k * ceil(n / block)),
        wrong_narrow(lambda n, k, block: 0),
        wrong_narrow(kept=0),
        wrong_narrow(together=sum),
        wrong_narrow(together=lambda times: times[1]),
        lambda r, k, n, bits, block, scale, p, w: 16 / (bits + scale / block),
    ],
    "epilogue_gain": [
        wrong_epilogue(sum),
        wrong_epilogue(min),
        wrong_epilogue(compute_bound=True),
        wrong_epilogue(after=lambda passes: passes / 2),
        wrong_epilogue(crossings=1),
        lambda m, n, k, steps, s, peak, w: 1 + steps,
    ],
    "windows": [
        wrong_windows(image_again=0),
        wrong_windows(weights=0),
        wrong_windows(trips=1),
        wrong_windows(places=lambda side, kernel: max(1, side - kernel + 1) ** 2 + kernel - 1),
    ],
    "plan_seconds": [
        wrong_plan(sum),
        wrong_plan(kept=2),
        wrong_plan(kept=1),
        wrong_plan(launches=lambda kernels: 1),
        wrong_plan(launches=sum),
        wrong_plan(side=0),
        wrong_plan(comes_in=False),
    ],
}

HOUSE, LONG = rl.machine("house chip"), 4096
QKVO, FFN = around(LONG)
STEPS = [
    32 * rl.gemm(LONG, LONG, 128, "bf16"),
    rl.softmax(32 * LONG, LONG, "bf16"),
    32 * rl.gemm(LONG, 128, LONG, "bf16"),
]
FLASH, MASKED = (
    rl.attention(1, 32, 32, LONG, LONG, 128, "bf16", flash=True, causal=causal)
    for causal in (False, True)
)
NORMS, SUMS = (
    2 * [rl.elementwise(LONG * 4096, "bf16", 1, writes) for writes in (1, 0, 1, 1)],
    2 * [rl.elementwise(LONG * 4096, "bf16")],
)
SILU = [rl.elementwise(LONG * 11008, "bf16", reads) for reads in (1, 2)]
PROMPT = least(*QKVO, *FFN, *STEPS, *NORMS, *SUMS, *SILU)
WITH_FLASH = PROMPT - least(*STEPS) + least(MASKED)
PAIRS = 2 * rl.elementwise(LONG * 4096, "bf16", 2, 2).bytes_moved / HOUSE.bandwidth()
SAVED_B = least(*NORMS, *SUMS) - PAIRS
DECODE = rl.attention(1, 32, 32, 1, LONG, 128, "bf16")
TOKEN_NOW, TOKEN_NARROW = (
    least(*(w for part in around(1, weights) for w in part), DECODE)
    for weights in ("bf16", "mxfp4")
)
LEFT = 80 * WITH_FLASH / PROMPT + 20 * TOKEN_NARROW / TOKEN_NOW


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    add_and_scale = [[["x", "y"], "sum"], [["sum", "g"], "out"]]
    return [
        f"in bf16: `{f['crossings'](add_and_scale, ['sum', 'out'], 10**6, 2)}` if",
        f"and `{f['crossings'](add_and_scale, ['out'], 10**6, 2)}` if only",
        "{:.2f} with one row, {:.2f} with 100, and {:.0f} with 4096".format(
            *(f["narrow_gain"](rows, 4096, 4096, 4, 32, 8, 3e14, 2e12) for rows in (1, 100, 4096))
        ),
        "{:.2f} times with one ReLU".format(f["epilogue_gain"](4096, 4096, 4096, 1, 2, 3e14, 2e12)),
        "three steps after [4096, 64] @ [64, 4096], {:.2f}".format(
            f["epilogue_gain"](4096, 4096, 64, 3, 2, 3e14, 2e12)
        ),
        "`[{:.0f}, {:.0f}]`, ten times".format(*f["windows"](32, 56, 64, 64, 3, 2)),
        "it is {:.0f} seconds in two kernels and {:.0f} in one".format(
            *(f["plan_seconds"](4, [[0, 0, 4], [2, 0, 4]], cut, 0, 1, 1) for cut in ([1, 1], [2]))
        ),
        (
            f"take {1e3 * least(*QKVO):.2f} ms, three of the FFN {1e3 * least(*FFN):.2f}, "
            f"attention {1e3 * least(*STEPS):.2f} ("
        ),
        f"RMSNorms {1e3 * least(*NORMS):.2f}, two residual sums {1e3 * least(*SUMS):.2f}, SiLU "
        "and its product with the gate "
        f"{1e3 * least(*SILU):.2f}: {1e3 * PROMPT:.2f} ms in all",
        f"takes {1e6 * TOKEN_NOW:.0f} µs a layer, {1e6 * (TOKEN_NOW - least(DECODE)):.0f} of them",
        f"only the other {1e3 * (PROMPT - least(*QKVO, *FFN)):.2f} are open",
        f"the ridge, {rl.attention(1, 32, 32, LONG, LONG, 128, 'bf16').intensity:.0f} FLOP/byte",
        f"{1e3 * least(FLASH):.2f} ms, and {1e3 * least(MASKED):.2f} with half",
        f"takes {1e3 * WITH_FLASH:.2f} ms, {100 * (1 - WITH_FLASH / PROMPT):.0f} percent less",
        (
            f"{1e3 * least(*NORMS, *SUMS):.2f} ms become {1e3 * PAIRS:.2f}, "
            f"{100 * SAVED_B / PROMPT:.1f} percent"
        ),
        f"all of {1e3 * least(*SILU):.2f} ms, {100 * least(*SILU) / PROMPT:.1f} percent",
        f"weights from {1e6 * (TOKEN_NOW - least(DECODE)):.0f} µs to "
        f"{1e6 * (TOKEN_NARROW - least(DECODE)):.0f}, the step from "
        f"{1e6 * TOKEN_NOW:.0f} to {1e6 * TOKEN_NARROW:.0f}, {TOKEN_NOW / TOKEN_NARROW:.1f} times",
        (
            f"(a) takes {80 * (1 - WITH_FLASH / PROMPT):.1f} of 100, (d) "
            f"{20 * (1 - TOKEN_NARROW / TOKEN_NOW):.1f}, (b) and (c) about"
        ),
        f"together leave {LEFT:.1f}: {100 / LEFT:.2f} times",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("operators.add-norm", "40 %", "kept-result"),
    ("operators.add-norm", "80 %", "left-for-saved"),
    ("operators.add-norm", "25 %", "other-whole"),
    ("operators.gain", 10, "past-the-ridge"),
    ("operators.gain", 2.67, "right-of-the-ridge"),
    ("operators.mxfp4", "35 GB", "forgot-scale"),
    ("operators.mxfp4", "70 GB", "elements-not-bytes"),
    ("operators.which-gains", "a", "hidden-bytes"),
    ("operators.which-gains", "b", "bytes-of-others"),
    ("operators.x-gelu", "7.516 GB", "wrong-width"),
    ("operators.x-gelu", "1.879 GB", "elements-not-bytes"),
    ("operators.x-narrow", 3.998, "forgot-scale"),
    ("operators.x-narrow", 1, "hidden-bytes"),
    ("operators.x-overlap", "30.5 %", "left-for-saved"),
    ("operators.x-overlap", "43.9 %", "other-whole"),
]
