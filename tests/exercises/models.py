"""Whole models: wrong answers as students give them, by the function that they stand in for, and
the numbers that the text shows."""

from math import ceil, floor, inf
from statistics import median

import roofline_lib as rl
from roofline_lib import measuring

LESSON = "whole_model"


def wrong_parameters(outputs=lambda h, kv: 2 * h + 2 * kv, wide=3, norms=1, tables=(2, 1)):
    def count(layers, d, h, kv, hd, f, v, tied):
        layer = d * outputs(h, kv) * hd + wide * d * f + 2 * norms * d
        return layers * layer + tables[tied] * v * d + norms * d

    return count


def wrong_constant(middle=median, kept=lambda seconds: seconds >= 0, over=lambda kernels: kernels):
    def constant(rows, bandwidth):
        left = [(seconds - moved / bandwidth, kernels) for _, seconds, moved, kernels in rows]
        return middle([seconds / over(kernels) for seconds, kernels in left if kept(seconds)])

    return constant


def wrong_cheapest(
    whole=floor, room=min, launched=lambda all_of_them: all_of_them, paid=lambda users: users
):
    def least(cards, weights, user, kernels, each, wait):
        launches, found = launched(kernels * each), [inf]
        for price, memory, bandwidth in cards:
            users = whole((room(memory, bandwidth * (wait - launches)) - weights) / user)
            if users >= 1:
                step = (weights + users * user) / bandwidth + launches
                found.append(price / 3600 * step / paid(users) * 1e6)
        return min(found)

    return least


def wrong_goodput(
    gaps=lambda tokens: max(tokens - 1, 1), since=lambda sent, first: first, both=all
):
    def rate(requests, duration, ttft_limit, tpot_limit):
        good = [
            both(
                (
                    first - sent <= ttft_limit,
                    (last - since(sent, first)) / gaps(tokens) <= tpot_limit,
                )
            )
            for sent, first, last, tokens in requests
        ]
        return sum(good) / duration

    return rate


def wrong_guesses(yields=None, rows=lambda users, g: users * (g + 1), together=max, drafts=1):
    def best(a, users, step, row, draft, most):
        def rate(g):
            tokens = yields(a, g) if yields else sum(a**n for n in range(g + 1))
            return tokens / (together((step, rows(users, g) * row)) + drafts * g * draft)

        return max(range(most + 1), key=rate)

    return best


WRONG_ANSWERS = {
    "parameters": [
        wrong_parameters(lambda h, kv: 4 * h),
        wrong_parameters(lambda h, kv: h + 2 * kv),
        wrong_parameters(wide=2),
        wrong_parameters(norms=0),
        wrong_parameters(tables=(1, 1)),
        wrong_parameters(tables=(2, 2)),
        lambda ls, d, h, kv, hd, f, v, tied: (
            ls * (d * (2 * d + 2 * kv * hd) + 3 * d * f + 2 * d) + (2 - tied) * v * d + d
        ),
    ],
    "launch_constant": [
        wrong_constant(lambda found: sum(found) / len(found)),
        wrong_constant(kept=lambda seconds: True),
        wrong_constant(over=lambda kernels: 1),
        wrong_constant(min),
        lambda rows, bandwidth: median(row[1] / row[3] for row in rows),
    ],
    "cheapest": [
        wrong_cheapest(whole=float),
        wrong_cheapest(whole=ceil),
        wrong_cheapest(room=max),
        wrong_cheapest(room=lambda memory, read: memory),
        wrong_cheapest(room=lambda memory, read: read),
        wrong_cheapest(launched=lambda all_of_them: 0),
        wrong_cheapest(paid=lambda users: 1),
    ],
    "goodput": [
        wrong_goodput(gaps=lambda tokens: tokens),
        wrong_goodput(since=lambda sent, first: sent),
        wrong_goodput(both=any),
        wrong_goodput(both=lambda kept: kept[0]),
        wrong_goodput(both=lambda kept: kept[1]),
    ],
    "best_guesses": [
        wrong_guesses(lambda a, g: 1 + a * g),
        wrong_guesses(lambda a, g: sum(a**n for n in range(1, g + 1))),
        wrong_guesses(rows=lambda users, g: g + 1),
        wrong_guesses(rows=lambda users, g: users),
        wrong_guesses(together=sum),
        wrong_guesses(drafts=0),
    ],
}

LLAMA = rl.transformer("llama-3-8b")
RECORD = measuring.load("h200_llama3_a")
ROOF = measuring.sustained_roof(RECORD)
KERNEL = measuring.launch_floor(measuring.load("h200_a1"), "bf16")
RECORD_ROWS = [
    [1, 6.616e-3, 15.15e9, 1027],
    [16, 7.234e-3, 17.24e9, 995],
    [64, 8.977e-3, 23.95e9, 930],
]


def measured(batch, label="graph"):
    """Milliseconds of a step with 1,024 tokens a sequence, as recorded."""
    (point,) = (
        point
        for point in RECORD.select("decode")
        if point.label == label and point.shape == type(point.shape)(batch, 1024)
    )
    return 1e3 * point.seconds


def step(kernels=930, **how):
    """Milliseconds of a step for 64 callers: (bound, launches)."""
    found = rl.step_time(LLAMA.decode(64, 1024, **how), ROOF, "bf16", kernels, KERNEL)
    return 1e3 * found.bound, 1e3 * found.launch_time


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    bound, launches = step()
    fewer = launches - step(578)[1]
    narrow = bound - step(weights="fp8")[0]
    checked = sum(step(queries=5))
    tokens = rl.expected_tokens(0.8, 4)
    prompt = next(point for point in RECORD.select("prefill") if point.shape.tokens == 2048)
    limits = 1, 0.45
    requests = [[0, 0.25, 2.25, 5], [1, 1.5, 2.5, 5], [2, 4, 4.5, 3], [2, 2.5, 6.5, 5]]
    return [
        f"model makes {f['parameters'](32, 4096, 32, 8, 128, 14336, 128256, False):,}.",
        f"At 4.4 TB/s they make {1e6 * f['launch_constant'](RECORD_ROWS, 4.4e12):.2f}e-6.",
        "makes {:.4f}.".format(
            f["cheapest"]([[3.6, 150e9, 4.4e12]], 15e9, 134e6, 900, 2.6e-6, 0.03)
        ),
        f"make {f['goodput'](requests, 8, *limits)}.",
        "of 0.8 it is {} for one user, and {} for 128".format(
            *(f["best_guesses"](0.8, users, 6e-3, 24e-6, 0.6e-3, 16) for users in (1, 128))
        ),
        f"{measured(64):.2f} ms a token. The bound of such a step is {bound:.2f} ms",
        f"{bound:.2f} ms are bytes, 930 kernels make {launches:.2f} ms, and "
        f"{measured(64) - bound - launches:.2f} ms have no name",
        f"takes {930 - 578} kernels off, {fewer:.2f} ms by the forecast: "
        f"{measured(64) - fewer:.2f} ms",
        f"measured, {measured(64, 'compiled'):.2f} ms",
        f"{narrow:.2f} ms at 4.4 TB/s; after (a) that leaves "
        f"{measured(64, 'compiled') - narrow:.2f} ms",
        f"the record has {measured(32):.2f} ms for 32 callers",
        f"over {5 * 64} rows",
        f"the forecast is {checked:.1f} ms, {checked + 2.4:.1f} with the guesses, for "
        f"{tokens:.2f} tokens: {(checked + 2.4) / tokens:.2f} ms a token",
        f"holds everyone up for {1e3 * prompt.seconds:.1f} ms",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("models.users", 3, "heads-not-kv-heads"),
    ("models.users", 55, "forgot-weights"),
    ("models.users", 59, "keys-only"),
    ("models.users", 30, "round-down"),
    ("models.forecast", "2 ms", "forgot-launches"),
    ("models.forecast", "1.5 ms", "launches-alone"),
    ("models.small", "int4 weights", "not-the-limit"),
    ("models.small", "twice the bandwidth", "not-the-limit"),
    ("models.latency", "525 ms", "one-gap-too-many"),
    ("models.latency", "200 ms", "forgot-first-token"),
    ("models.latency", "225 ms", "forgot-first-token"),
    ("models.cost", 18, "one-user"),
    ("models.cost", 0.1875, "one-card"),
    ("models.x-unused", "2097 MB", "whole-page"),
    ("models.x-unused", "1049 MB", "half-a-page"),
    ("models.x-in-flight", 20, "forgot-first-token"),
    ("models.x-in-flight", 2, "until-the-first-token"),
    ("models.x-prefix", "72.3 ms", "hits-for-misses"),
    ("models.x-prefix", "96.5 ms", "forgot-hits"),
    ("models.x-prefix", "12.06 ms", "mac-is-flop"),
    ("models.x-speculation", 3.1, "guesses-in-a-row"),
    ("models.x-speculation", 4, "all-guesses-hold"),
    ("models.x-pace", "the memory", "not-the-limit"),
    ("models.x-pace", "the arithmetic", "not-the-limit"),
]
