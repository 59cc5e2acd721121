"""Chains: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, comb, floor, inf

import roofline_lib as rl

LESSON = "chain_ordering"


def greedy(dims, s):
    """The cheapest product first, again and again."""
    dims, moved = list(dims), 0
    while len(dims) > 2:
        price, i = min(
            (dims[i - 1] * dims[i] + dims[i] * dims[i + 1] + dims[i - 1] * dims[i + 1], i)
            for i in range(1, len(dims) - 1)
        )
        moved += s * price
        del dims[i]
    return moved


def prices(dims, order, s, change):
    cost = rl.chain_cost(dims, order, {4: "fp32", 2: "bf16", 1: "int8"}[s])
    return change(cost, dims, s)


WRONG_ANSWERS = {
    "two_orders": [
        lambda p, q, r, t: [2 * q * r * t + 2 * p * q * t, 2 * p * q * r + 2 * p * r * t],
        lambda p, q, r, t: [2 * p * q * r + 2 * p * r * t, 2 * q * r * t + 2 * p * r * t],
        lambda p, q, r, t: [
            p * r * (2 * q - 1) + p * t * (2 * r - 1),
            q * t * (2 * r - 1) + p * t * (2 * q - 1),
        ],
    ],
    "merge_from": [
        lambda p, q, r: ceil(p * q * r / (q * (p + r) - p * r)) if q * (p + r) > p * r else inf,
        lambda p, q, r: p * q * r // (q * (p + r)) + 1,
        lambda p, q, r: abs(p * q * r // ((q * (p + r) - p * r) or 1)) + 1,
        lambda p, q, r: inf,
    ],
    "order_prices": [
        lambda *a: prices(
            *a,
            lambda c, d, s: [
                c.flops,
                c.bytes_moved,
                max(c.largest_intermediate, s * d[0] * d[-1]),
            ],
        ),
        lambda *a: prices(
            *a,
            lambda c, d, s: [
                c.flops,
                s * sum(map(int.__mul__, d, d[1:])),
                c.largest_intermediate,
            ],
        ),
        lambda *a: prices(*a, lambda c, d, s: [c.flops, c.bytes_moved, c.largest_intermediate / s]),
        lambda dims, order, s: prices(
            dims,
            rl.best_chain_order(dims).order,
            s,
            lambda c, d, s: [c.flops, c.bytes_moved, c.largest_intermediate],
        ),
    ],
    "fewest_bytes": [
        greedy,
        lambda d, s: s * sum(map(int.__mul__, d, d[1:])),
        lambda d, s: (
            rl.best_chain_order(d, "flops", {4: "fp32", 2: "bf16", 1: "int8"}[s]).bytes_moved
        ),
        lambda d, s: (
            rl.best_chain_order(
                d, "largest_intermediate", {4: "fp32", 2: "bf16", 1: "int8"}[s]
            ).bytes_moved
        ),
    ],
    "strassen_from": [
        lambda s, p, w: 20,
        lambda s, p, w: 2 * floor(75 / 16 * s * p / w) + 2,
        lambda s, p, w: floor(max(18, 75 / 8 * s * p / w)) + 1,
        lambda s, p, w: 2 * floor(max(18, 27 / 4 * s * p / w) / 2) + 2,
        lambda s, p, w: 2 * floor(max(18, 1.5 * s * p / w) / 2) + 2,
    ],
}

LAYER, ADAPTER = (
    rl.bytes_per_element("bf16") * 4096**2,
    rl.bytes_per_element("bf16") * 2 * 16 * 4096,
)
MIXED = {"merged": 64 * LAYER, "apart": LAYER + 64 * ADAPTER}
LORA = [rl.chain_cost([4096, 16, 4096, 1], order).flops for order in (((0, 1), 2), (0, (1, 2)))]


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        f"2, 3, 4 and 5 make `{f['two_orders'](2, 3, 4, 5)}`",
        f"60 × 6000 × 60 pays from the {f['merge_from'](60, 6000, 60)}st column",
        f"makes `{f['order_prices']([8, 8, 16, 4096, 32], [[[0, 1], 2], 3], 4)}`",
        f"so {comb(30, 15) // 16:,} orders",
        f"need at least {f['fewest_bytes']((8, 8, 16, 4096, 32), 4):,} bytes",
        f"makes {f['strassen_from'](2, 989.4e12, 3350e9)}",
        f"2 TB/s, fp32) it is {f['strassen_from'](4, 1e12, 2e12)}",
        (
            f"A layer is {LAYER / 1e6:.1f} MB, an adapter {ADAPTER / 1e3:.0f} kB, "
            f"{100 * ADAPTER / LAYER:.1f} percent"
        ),
        f"{MIXED['merged'] / 1e9:.2f} GB, {1e3 * MIXED['merged'] / 2e12:.2f} ms a layer",
        f"{500 * 14e9 / 1e12:.0f} TB besides",
        f"are {64 * ADAPTER / 1e6:.1f} MB: {MIXED['apart'] / 1e6:.1f} MB, "
        f"{1e6 * MIXED['apart'] / 2e12:.0f} µs, "
        f"{MIXED['merged'] / MIXED['apart']:.0f} times less",
        f"are {100 * 2 * 16 * 8192 / (2 * 4096**2):.1f} percent",
        f"{LORA[0] / 1e6:.0f} MFLOP instead of {LORA[1] / 1e3:.0f} kFLOP and {LAYER / 1e6:.1f} MB",
        f"their {1e6 * 64 * ADAPTER / 2e12:.0f} µs",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("chains.right-flops", "2.097 MFLOP", "mac-is-flop"),
    ("chains.right-flops", "402.7 MFLOP", "other-order"),
    ("chains.intermediate", "4.194 MB", "elements-not-bytes"),
    ("chains.intermediate", "16.78 MB", "wrong-width"),
    ("chains.across", "yes", "not-a-product"),
    ("chains.best", "A((BC)D)", "fewest-flops"),
    ("chains.best", "((AB)C)D", "left-to-right"),
    ("chains.strassen", 18, "equal-not-fewer"),
    ("chains.strassen", 2, "forgot-additions"),
    ("chains.x-lora", "4.194 MFLOP", "mac-is-flop"),
    ("chains.x-lora", "5.369 GFLOP", "other-order"),
    ("chains.x-moved", "8.651 MB", "wrong-width"),
    ("chains.x-moved", "2.163 MB", "elements-not-bytes"),
    ("chains.x-again", 25, "round-up"),
    ("chains.x-again", 51, "one-pass"),
    ("chains.x-strassen", "67.78 FLOP/byte", "wrong-width"),
    ("chains.x-strassen", "382.3 FLOP/byte", "one-level"),
    ("chains.x-affine", "no", "not-a-nonlinearity"),
]
