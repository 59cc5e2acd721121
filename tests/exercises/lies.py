"""Lies: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from itertools import product
from math import floor, inf, prod
from re import findall

import roofline_lib as rl

LESSON = "numbers_that_lie"


def half_unit(printed, places=0):
    digits = printed.replace(",", "")
    return float(digits), 0.5 * 10.0 ** -(places + len(digits.partition(".")[2]))


def named(printed, recomputed, slips, near=None, ways=(1, -1), first=False, follows=True):
    """The exercise's answer, with `near` (value, printed) in place of rounding, one way only, or
    the first name only."""
    number, half = half_unit(printed)
    near = near or (lambda value, number: abs(value - number) <= half)
    if follows and near(recomputed, number):
        return "it follows"
    names = [
        name
        for name, factor in slips
        if any(near(recomputed * factor**way, number) for way in ways)
    ]
    return ", ".join(names[:1] if first else names) or "none"


def rate(text, i=1024, bits=8, commas=""):
    number = "".join(findall(r"[\d.,]", text)).replace(",", commas)
    power = next((p for p, letter in enumerate("kMGT", 1) if letter in text.replace("K", "k")), 0)
    return (
        float(number)
        * (i if "i" in text.replace("bit", "") else 1000) ** power
        / (1 if "B" in text else bits)
    )


def slip_count(published, recomputed, factors, ways=(1, -1), most=3, again=True):
    steps = [(at, factor**way) for at, factor in enumerate(factors) for way in ways]
    for count in range(most + 1):
        for taken in product(steps, repeat=count):
            fair = again or len({at for at, _ in taken}) == count
            if fair and abs(recomputed * prod(step for _, step in taken) / published - 1) <= 0.004:
                return count
    return inf


WRONG_ANSWERS = {
    "real_share": [
        lambda s, a, r, p, x: s * rl.machine(a).peak(p) / rl.machine(r).peak(p),
        lambda s, a, r, p, x: s / (1 + x),
        lambda s, a, r, p, x: s * rl.machine(a).peak(p) / rl.machine(r).peak(p) / (1 + x),
        lambda s, a, r, p, x: min(100, s * (1 + x) * rl.machine(a).peak(p) / rl.machine(r).peak(p)),
    ],
    "byte_rate": [
        lambda t: rate(t, i=1000),
        lambda t: rate(t, bits=1),
        lambda t: rate(t.replace("k", "")),
        lambda t: 8 * rate(t),
        lambda t: rate(t, commas=".") if t.count(",") + t.count(".") < 2 else rate(t),
    ],
    "suspects": [
        lambda *a: named(*a, near=lambda v, n: abs(v / n - 1) <= 0.004),
        lambda *a: named(*a, ways=(1,)),
        lambda *a: named(*a, first=True),
        lambda *a: named(*a, follows=False),
        lambda p, r, s: named(p, r, s, near=lambda v, n: abs(v - n) <= half_unit(p, -1)[1]),
        lambda p, r, s: named(p, r, s, near=lambda v, n: int(v) == int(n)),
        lambda p, r, s: named(p.rstrip("0").rstrip(".") if "." in p else p, r, s),
    ],
    "sequences": [
        lambda m, w, c, t: [
            floor((m - w) * 1e9 / (c * 1024 * t)),
            floor((m - w) * 2**30 / (c * 1000 * t)),
        ],
        lambda m, w, c, t: [
            floor((m * 1e9 - w * 2**30) / (c * 1024 * t)),
            floor((m * 2**30 - w * 1e9) / (c * 1000 * t)),
        ],
        lambda m, w, c, t: [
            max(0, floor((m * g - w * g) / (c * k * t))) for g, k in ((1e9, 1000), (2**30, 1024))
        ],
        lambda m, w, c, t: [
            max(0, floor((m * g - w * h) / (c * k * t)))
            for g, h, k in ((1e9, 2**30, 1000), (2**30, 1e9, 1024))
        ],
    ],
    "fewest_slips": [
        lambda *a: slip_count(*a, ways=(1,)),
        lambda *a: slip_count(*a, most=2),
        lambda *a: slip_count(*a, most=4),
        lambda *a: slip_count(*a, again=False),
        lambda *a: max(1, slip_count(*a)),
    ],
}

H200, LLAMA3 = rl.machine("H200 SXM"), rl.transformer("llama-3-70b")
TOKEN, WEIGHTS = LLAMA3.kv_bytes_per_token("bf16"), LLAMA3.weight_bytes("fp8")
CACHE, FREE, STEP = 128 * 8192 * TOKEN, H200.capacity("DRAM") - WEIGHTS, H200.bandwidth() / 60
BINARY = [["k for Ki", 1.024], ["M for Mi", 1.024**2], ["G for Gi", 1.024**3]]


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        (
            "with the A100 assumed, were "
            f"{f['real_share'](104, 'A100 80GB SXM', 'H100 SXM', 'bf16', False):.1f}"
        ),
        f'makes {f["byte_rate"]("819 GB/s") / 1e11:.2f}e11, `"800 GiBps"` '
        f'{f["byte_rate"]("800 GiBps"):,.0f}, and `"800 Gbps"` '
        f"{f['byte_rate']('800 Gbps') / 1e11:.0f}e11",
        f'a printed 6.7 where 6.25 is right makes `"{f["suspects"]("6.7", 6.25, BINARY)}"`',
        f'16 where 17.18 is right makes `"{f["suspects"]("16", 17.18, BINARY)}"`',
        f'as 16.0, it is `"{f["suspects"]("16.0", 17.18, BINARY)}"`',
        f"makes `{f['sequences'](256, 18.385, 128, 262144)}`",
        "takes {}, a prefix and a half. A factor of 8.59 takes {}, bits for bytes and G for Gi. A "
        "factor of 1.153 takes {}, G for Gi twice. "
        "And 1.07 takes {}".format(
            *(
                f["fewest_slips"](*figures, [1.024**3, 2, 8, 1000])
                for figures in ((12.7, 25423), (8.59, 1), (1.153, 1), (1.07, 1))
            )
        ),
        f"has {LLAMA3.parameters / 1e9:.1f}e9 parameters",
        f"Weights {WEIGHTS / 1e9:.1f} GB in fp8",
        f"{TOKEN / 1e3:.0f} kB in bf16, {TOKEN / 2e3:.0f}",
        (
            f"are {CACHE / 1e9:.0f} GB, or {CACHE / 2e9:.0f} GB with an fp8 cache; "
            f"{FREE / 1e9:.1f} GB are free"
        ),
        f"for {FREE // (8192 * TOKEN):.0f} users, or {FREE // (4096 * TOKEN):.0f}",
        f"leave {1e3 / 60:.1f} ms a step",
        f"bring {STEP / 1e9:.0f} GB",
        f"so {(STEP - WEIGHTS) / 1e9:.1f} GB are left",
        f"{round((STEP - WEIGHTS) / TOKEN, -2):,.0f} tokens in all",
        (
            f"in all, {(STEP - WEIGHTS) / TOKEN / 128:.0f} for each of 128 users, "
            f"{(STEP - WEIGHTS) / TOKEN / 64:.0f} in fp8"
        ),
        f"by factors of {CACHE / FREE:.0f} and of {CACHE / (STEP - WEIGHTS):.0f}",
        f"({H200.bandwidth() / WEIGHTS:.0f} is what one user",
        f"there {(WEIGHTS + CACHE) / 1e9:.0f} GB fit into {8 * H200.capacity('DRAM') / 1e9:.0f}, "
        "and take "
        f"{1e3 * (WEIGHTS + CACHE) / (8 * H200.bandwidth()):.1f} ms",
        f"which is {100 * (WEIGHTS + CACHE) / (8 * STEP):.0f} percent of the 16.7",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("lies.activation", "it is right", "gib-for-gb"),
    ("lies.activation", "numbers counted, not bytes", "elements-not-bytes"),
    ("lies.activation", "80 Mbit printed as MB", "bits-for-bytes"),
    ("lies.mi355x", "34.9 %", "sparse-peak"),
    ("lies.mi355x", "134.4 %", "wrong-chip"),
    ("lies.l4", 58, "true-not-claimed"),
    ("lies.l4", 120, "mac-is-flop"),
    ("lies.follows", "A100", "wrong-chip"),
    ("lies.follows", "MI300X", "rounded-early"),
    ("lies.follows", "H100", "rounded-early"),
    ("lies.x-driver", "81.559 GB", "gib-for-gb"),
    ("lies.x-driver", "79.65 GB", "gib-for-gb"),
    ("lies.x-pcie", "29.04 %", "wrong-chip"),
    ("lies.x-pcie", "24.86 %", "sparse-peak"),
    ("lies.x-early", "2.344 %", "one-of-several"),
    ("lies.x-early", "4.633 %", "one-of-several"),
    ("lies.x-mega", "43.98 TB", "elements-not-bytes"),
    ("lies.x-mega", "83.89 TB", "gib-for-gb"),
    ("lies.x-not-this", "bits for bytes", "bits-for-bytes"),
    ("lies.x-not-this", "heads for KV heads", "heads-not-kv-heads"),
]

FEWER = {
    "lies.x-suspects": "its answers are names, and a wrong rule of rounding gives other names each",
    "lies.x-sequences": "a reading left out changes now the fewest and now the most",
    "lies.x-fewest-slips": "the likely slips (one way only, two at most) have no name of their own",
}
