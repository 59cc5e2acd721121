"""Operators: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, inf

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


def wrong_plan(greedy=False, together=max, fits=True, kept=0):
    def seconds(first, steps, room, launch, peak, bandwidth):
        def kernel(i, j):
            flops, side, _, holds = map(sum, zip(*steps[i:j], strict=True))
            moved = (
                (steps[i - 1][2] if i else first)
                + side
                + steps[j - 1][2]
                + kept * sum(step[2] for step in steps[i : j - 1])
            )
            return (
                launch + together((flops / peak, moved / bandwidth))
                if holds <= room or not fits
                else inf
            )

        if greedy:
            at, spent = 0, 0
            while at < len(steps):
                end = max(j for j in range(at + 1, len(steps) + 1) if kernel(at, j) < inf)
                at, spent = end, spent + kernel(at, end)
            return spent
        best = [0]
        for j in range(1, len(steps) + 1):
            best.append(min(best[i] + kernel(i, j) for i in range(j)))
        return best[-1]

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
    "fastest_plan": [
        wrong_plan(greedy=True),
        wrong_plan(together=sum),
        wrong_plan(fits=False),
        wrong_plan(kept=2),
        lambda f, st, room, la, p, w: wrong_plan()(f, st, room, 0, p, w),
        lambda f, st, room, la, p, w: wrong_plan()(f, st, min(step[3] for step in st), la, p, w),
        lambda f, st, room, la, p, w: la * len(st) + wrong_plan()(f, st, room, 0, p, w),
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
        "{:.3f} for one new token, {:.1f} for eight".format(
            *(f["step_intensity"](32, 8, new, 4096, 2, 2) for new in (1, 8))
        ),
        "{:.2f} MB in tiles of 128, and {:.2f} MB if".format(
            *(f["tiled_attention"](1, 1024, 64, q, 2) / 1e6 for q in (128, 1024))
        ),
        "{:.2f} with one row, {:.2f} with 100, and {:.0f} with 4096".format(
            *(f["narrow_gain"](rows, 4096, 4096, 4, 32, 8, 3e14, 2e12) for rows in (1, 100, 4096))
        ),
        "it is {:.0f} seconds in two kernels and {:.0f} in one".format(
            *(f["fastest_plan"](4, [[0, 0, 4, 1], [2, 0, 4, 1]], room, 0, 1, 1) for room in (1, 2))
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
    ("operators.mxfp4", "35 GB", "forgot-scale"),
    ("operators.mxfp4", "70 GB", "elements-not-bytes"),
    ("operators.x-gelu", "7.516 GB", "wrong-width"),
    ("operators.x-gelu", "1.879 GB", "elements-not-bytes"),
    ("operators.x-narrow", 3.998, "forgot-scale"),
]
