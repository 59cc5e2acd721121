"""Questions on whole models: their price, their step, and serving them."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, NumberQuestion

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
        hint="its bytes take 0.57 ms, its kernels 1.36.",
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
]
