"""Questions on whole models: their price, their step, and serving them."""

from math import inf
from statistics import mean, median

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied

_LLAMA = rl.transformer("llama-3-70b")
_CARD = rl.machine("H200 SXM")
_BANDWIDTH = 4.4e12  # kept up by the lesson's card
_KERNEL = 2.62e-6


def _users(weight_bytes=None, token=None):
    """How many sequences of 8,192 tokens fit beside the weights in fp8."""
    held = _LLAMA.weight_bytes("fp8") if weight_bytes is None else weight_bytes
    token = _LLAMA.kv_bytes_per_token("bf16") if token is None else token
    return (_CARD.capacity() - held) // (8192 * token)


def _small_model():
    """What takes the most off a step of 2.5 GB and 520 kernels."""
    read, started = 2.5e9 / _BANDWIDTH, 520 * _KERNEL
    saved = {
        "int4 weights": read * 3 / 4,
        "half as many kernels": started / 2,
        "twice the bandwidth": read / 2,
    }
    return max(saved, key=saved.get)


def _cost(cards=2, users=48):
    return rl.cost_per_million_tokens(cards * 2.70, users / 12e-3)


def _pace():
    """What sets the pace of the steps that Python launches: the host, where the record has them
    equally long whatever the batch, though their bound grows."""
    record = measuring.load("h200_llama3_a")
    steps = [point for point in record.select("decode") if point.label == "eager"]
    roof = measuring.sustained_roof(record)
    longest = max((rl.bound(step.work, roof, "bf16") for step in steps), key=lambda it: it.time)
    spread = max(step.seconds for step in steps) / min(step.seconds for step in steps)
    if spread < 1.1:
        return "the host"
    return "the arithmetic" if longest.bound_by == "compute" else "the memory"


def _prefix(tokens, worth=2):
    """Seconds of the products with weights for so many tokens of a prompt."""
    return worth * rl.transformer("llama-3-8b").parameters * tokens / 682e12


def _in_flight(rate, gaps, ttft=0.4):
    return rl.requests_in_flight(rate, ttft + gaps * 0.020)


def _unused(users, tokens):
    """Bytes of so many users' last pages that hold nothing, `tokens` in each."""
    return users * tokens * rl.transformer("llama-3-8b").kv_bytes_per_token("bf16")


def _parameters(layers, d_model, heads, kv_heads, head_dim, d_ff, vocab, tied):
    model = rl.Transformer(layers, d_model, heads, kv_heads, head_dim, d_ff, vocab, tied=tied)
    return model.parameters


def _missing(rows, bandwidth):
    """(seconds that the bytes do not explain, kernels) of each row that can be true."""
    left = [(seconds - moved / bandwidth, kernels) for _, seconds, moved, kernels in rows]
    return [(seconds, kernels) for seconds, kernels in left if seconds >= 0]


def _launch_constant(rows, bandwidth, middle=median):
    return middle(seconds / kernels for seconds, kernels in _missing(rows, bandwidth))


def _of_all_rows(rows, bandwidth):
    return median((seconds - moved / bandwidth) / kernels for _, seconds, moved, kernels in rows)


def _of_sums(rows, bandwidth):
    seconds, kernels = zip(*_missing(rows, bandwidth), strict=True)
    return sum(seconds) / sum(kernels)


def _cheapest(cards, weight_bytes, user_bytes, kernels, per_kernel, wait):
    """Least price of a million tokens over the cards; inf where none serves one user in time."""
    best = inf
    for price, memory, bandwidth in cards:
        room = min(memory, bandwidth * (wait - kernels * per_kernel))
        users = (room - weight_bytes) // user_bytes
        if users >= 1:
            step = (weight_bytes + users * user_bytes) / bandwidth + kernels * per_kernel
            best = min(best, rl.cost_per_million_tokens(price, users / step))
    return best


def _goodput(requests, duration, ttft_limit, tpot_limit, gaps=lambda tokens: max(tokens - 1, 1)):
    ttft = [first - sent for sent, first, _, _ in requests]
    tpot = [(last - first) / gaps(tokens) for _, first, last, tokens in requests]
    return float(rl.goodput(ttft, tpot, duration, rl.Limits(ttft_limit, tpot_limit)))


def _best_guesses(acceptance, users, step, row, draft, most, yields=rl.expected_tokens):
    """The fewest guesses at which the most tokens come in a second."""

    def rate(guesses):
        verified = max(step, users * (guesses + 1) * row)
        return yields(acceptance, guesses) / (verified + guesses * draft)

    return max(range(most + 1), key=rate)


def _in_flight_asked(rate=5, gaps=200):
    return NumberQuestion(
        "models.x-in-flight",
        f"{rate} requests a second come in. Each gets its first token after 0.4 s and then {gaps} "
        "more, 20 ms apart. How many are being served at a time, on average?",
        reference=lambda: _in_flight(rate, gaps),
        counts="requests",
        slips=[
            ("forgot-first-token", lambda: _in_flight(rate, gaps, ttft=0)),
            ("until-the-first-token", lambda: _in_flight(rate, gaps=0)),
        ],
        hint="Little's law: requests a second times the seconds that each stays.",
    )


def _unused_asked(users=1000, page=16):
    return NumberQuestion(
        "models.x-unused",
        f"{users:,} users' caches lie in pages of {page} tokens, at 131,072 byte a token. How "
        "much of that room stands empty in their last pages, on average over all lengths?",
        unit="MB",
        reference=lambda: _unused(users, rl.page_waste(page)),
        slips=[
            ("whole-page", lambda: _unused(users, page)),
            ("half-a-page", lambda: _unused(users, page / 2)),
        ],
        hint=f"the last page holds 1 to {page} tokens, so {page - 1} to 0 are missing.",
    )


def _prefix_asked(tokens=4096, quarters=3):
    left = tokens * (4 - quarters) // 4
    share = {1: "one quarter lies", 3: "three quarters lie"}[quarters]
    return NumberQuestion(
        "models.x-prefix",
        f"Of a prompt of {tokens:,} tokens {share} in the prefix cache. How long do the "
        "products with Llama-3-8B's weights take for it, at least, on the lesson's card? It keeps "
        "up 682 TFLOP/s; count 2 FLOP for each of 8.03e9 parameters and token.",
        unit="ms",
        reference=lambda: _prefix(left),
        slips=[
            ("hits-for-misses", lambda: _prefix(tokens - left)),
            ("forgot-hits", lambda: _prefix(tokens)),
            ("mac-is-flop", lambda: _prefix(left, worth=1)),
        ],
        hint=f"{left:,} tokens are left to compute.",
    )


def _speculation_asked(guesses=3, holds=0.7):
    return NumberQuestion(
        "models.x-speculation",
        f"A small model guesses {guesses} tokens, and each guess holds with probability {holds}. "
        "How many tokens does a step of the large model yield on average?",
        reference=lambda: rl.expected_tokens(holds, guesses),
        counts="tokens",
        slips=[
            ("guesses-in-a-row", lambda: 1 + guesses * holds),
            ("all-guesses-hold", lambda: guesses + 1.0),
        ],
        hint=(
            f"its own token always; the first guess in {holds} of the steps, the second in "
            f"{holds} x {holds}."
        ),
    )


# with other numbers for each student
VARIED = (
    Varied(
        _in_flight_asked, lambda rng: {"rate": rng.randint(3, 12), "gaps": 10 * rng.randint(10, 60)}
    ),
    Varied(
        _unused_asked,
        lambda rng: {"users": 50 * rng.randint(4, 60), "page": rng.choice([8, 16, 32])},
    ),
    Varied(
        _prefix_asked,
        lambda rng: {"tokens": 256 * rng.randint(8, 64), "quarters": rng.choice([1, 3])},
    ),
    Varied(
        _speculation_asked,
        lambda rng: {"guesses": rng.randint(2, 7), "holds": rng.randint(50, 88) / 100},
    ),
)

QUESTIONS = [
    NumberQuestion(
        "models.users",
        "Llama-3-70B has 80 layers, 64 query heads of 128 numbers and 8 KV heads. In fp8 its "
        "weights take 70.6 GB of a card's 150.1 GB. The cache is bf16. How many users with 8,192 "
        "tokens each fit in beside the weights?",
        reference=_users,
        counts="users",
        rounded="down",
        slips=[
            (
                "heads-not-kv-heads",
                lambda: _users(token=_LLAMA.kv_bytes_per_token("bf16") * 64 / 8),
            ),
            ("forgot-weights", lambda: _users(weight_bytes=0)),
            ("keys-only", lambda: _users(token=_LLAMA.kv_bytes_per_token("bf16") / 2)),
        ],
        hint="key and value, 80 layers, 8 KV heads, 128 numbers, 2 bytes: what is that for a user?",
    ),
    NumberQuestion(
        "models.forecast",
        "A step reads 6.6 GB in 600 kernels, played back from a graph, on a card that keeps up "
        "3.3 TB/s. A kernel's start and end take 2.5 µs. What is the forecast?",
        unit="ms",
        reference=lambda: 6.6e9 / 3.3e12 + 600 * 2.5e-6,
        slips=[
            ("forgot-launches", lambda: 6.6e9 / 3.3e12),
            ("launches-alone", lambda: 600 * 2.5e-6),
        ],
        hint="the bytes over the bandwidth, and the kernels on top.",
    ),
    ChoiceQuestion(
        "models.small",
        "A model of a billion parameters reads 2.5 GB for a token, in 520 kernels, for one user "
        "on the lesson's card. What takes the most off its step?",
        choices=("int4 weights", "half as many kernels", "twice the bandwidth"),
        reference=_small_model,
        slips=[
            ("not-the-limit", lambda: "int4 weights"),
            ("not-the-limit", lambda: "twice the bandwidth"),
        ],
        hint="Its bytes take 0.57 ms, its kernels 1.36.",
    ),
    NumberQuestion(
        "models.latency",
        "TTFT is 300 ms and TPOT 25 ms. When is an answer of 9 tokens complete?",
        unit="ms",
        reference=lambda: rl.request_latency(0.3, 0.025, 9),
        slips=[
            ("one-gap-too-many", lambda: 0.3 + 9 * 0.025),
            ("forgot-first-token", lambda: 8 * 0.025),
            ("forgot-first-token", lambda: 9 * 0.025),
        ],
        hint="the first token, and then a gap for each of the others.",
    ),
    NumberQuestion(
        "models.cost",
        "Two cards at 2.70 dollars an hour each serve 48 users together, and each user gets a "
        "token every 12 ms. What do a million tokens cost, in dollars?",
        reference=_cost,
        counts="dollars",
        slips=[
            ("one-user", lambda: _cost(users=1)),
            ("one-card", lambda: _cost(cards=1)),
        ],
        hint="48 tokens every 12 ms; an hour has 3600 s and costs 5.40 dollars.",
    ),
    _unused_asked(),
    _in_flight_asked(),
    _prefix_asked(),
    _speculation_asked(),
    ChoiceQuestion(
        "models.x-pace",
        "Started from Python, kernel by kernel, the lesson's step takes 30.4 ms for one user, 30.2 "
        "for 16 and 30.8 for 256. What sets its pace?",
        choices=("the host", "the memory", "the arithmetic"),
        reference=_pace,
        slips=[
            ("not-the-limit", lambda: "the memory"),
            ("not-the-limit", lambda: "the arithmetic"),
        ],
        hint="Bytes and FLOP grow with the users; only the number of kernels stays.",
    ),
    FunctionQuestion(
        "models.x-parameters",
        "A function: the parameters of a model, to the last digit.",
        reference=_parameters,
        tolerance=1e-12,
        inputs=lambda: [
            (32, 4096, 32, 8, 128, 14336, 128256, False),
            (36, 2560, 32, 8, 128, 9728, 151936, True),
            (26, 2304, 8, 4, 256, 9216, 256000, True),
        ],
        slips=[
            (
                "heads-not-kv-heads",
                lambda ls, d, h, kv, hd, f, v, t: _parameters(ls, d, h, h, hd, f, v, t),
            ),
            (
                "one-table",
                lambda ls, d, h, kv, hd, f, v, t: _parameters(ls, d, h, kv, hd, f, v, not t),
            ),
            (
                "forgot-norms",
                lambda ls, d, *rest: _parameters(ls, d, *rest) - (2 * ls + 1) * d,
            ),
        ],
        hint=(
            "Q and O are d_model x (heads x head_dim), K and V have the KV heads; three wide "
            "matrices, two norms a layer and one at the end; the table, and the logits' matrix."
        ),
    ),
    FunctionQuestion(
        "models.x-launch-constant",
        "A function: the seconds that a kernel costs, from the rows of a record.",
        reference=_launch_constant,
        tolerance=1e-6,
        inputs=lambda: [
            ([[1, 5e-3, 8e9, 1000], [4, 6e-3, 1e10, 1000], [64, 9e-3, 1.2e10, 900]], 4e12),
            ([[1, 5e-3, 8e9, 500], [4, 1e-3, 1e10, 500], [8, 4e-3, 1e10, 400]], 4e12),
        ],
        slips=[
            ("mean-for-median", lambda rows, bw: _launch_constant(rows, bw, lambda x: mean(x))),
            ("ratio-of-sums", _of_sums),
            ("impossible-row", _of_all_rows),
        ],
        hint="for each row what its bytes leave unexplained, over its kernels; then the median.",
    ),
    FunctionQuestion(
        "models.x-cheapest",
        "A function: the least price of a million tokens within a wait; math.inf where no card "
        "can.",
        reference=_cheapest,
        tolerance=1e-6,
        inputs=lambda: [
            ([[3.6, 150e9, 4.4e12], [1.8, 86e9, 1.8e12]], 15e9, 134e6, 900, 2.6e-6, 0.03),
            ([[3.6, 150e9, 4.4e12], [0.9, 24e9, 0.9e12]], 15e9, 134e6, 900, 2.6e-6, 0.02),
            ([[3.6, 150e9, 4.4e12]], 15e9, 134e6, 900, 2.6e-6, 0.005),
        ],
        slips=[
            ("forgot-launches", lambda c, w, u, k, t, wait: _cheapest(c, w, u, 0, t, wait)),
            ("one-of-two-limits", lambda c, w, u, k, t, wait: _cheapest(c, w, u, k, t, 1e9)),
        ],
        hint=(
            "on each card the largest batch is the cheapest: what memory holds, and what the wait "
            "allows when the kernels have had theirs."
        ),
    ),
    FunctionQuestion(
        "models.x-goodput",
        "A function: requests a second that keep both limits.",
        reference=_goodput,
        tolerance=1e-6,
        inputs=lambda: [
            ([[0, 0.25, 2.25, 5], [1, 1.5, 2.5, 5], [2, 4, 4.5, 3], [2, 2.5, 6.5, 5]], 8, 1, 0.45),
            ([[0, 0.25, 0.25, 1], [0, 0.5, 8.5, 9], [1, 1.5, 5.5, 3]], 4, 1, 0.95),
        ],
        slips=[
            (
                "one-gap-too-many",
                lambda *given: _goodput(*given, gaps=lambda tokens: tokens),
            ),
            ("one-of-two-limits", lambda r, d, ttft, tpot: _goodput(r, d, ttft, 1e9)),
        ],
        hint="TTFT from sent to first; TPOT is (last - first)/(tokens - 1), where there are gaps.",
    ),
    FunctionQuestion(
        "models.x-best-guesses",
        "A function: how many guesses bring the most tokens a second.",
        reference=_best_guesses,
        tolerance=1e-9,
        inputs=lambda: [
            (0.8, 1, 6e-3, 24e-6, 0.6e-3, 16),
            (0.8, 128, 6e-3, 24e-6, 0.6e-3, 16),
            (0.95, 32, 6e-3, 24e-6, 0.1e-3, 16),
        ],
        slips=[
            (
                "guesses-in-a-row",
                lambda *given: _best_guesses(*given, yields=lambda a, g: 1 + a * g),
            ),
            (
                "rows-are-free",
                lambda a, users, step, row, draft, most: _best_guesses(
                    a, 0, step, row, draft, most
                ),
            ),
        ],
        hint=(
            "tokens a pass over the seconds of the pass and of its guesses; try every number. A "
            "pass has users x (guesses + 1) rows."
        ),
    ),
]
