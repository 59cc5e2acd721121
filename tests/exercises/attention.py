"""Attention: wrong answers as students give them, by the function that they stand in for."""


def wrong_step(
    scores=lambda t, context: t * context - t * (t - 1) / 2, keys=lambda heads, kv: kv, rows=2
):
    return lambda heads, kv, t, context, a, b: (
        4 * heads * scores(t, context) / (rows * heads * t * a + 2 * keys(heads, kv) * context * b)
    )


def wrong_trips(keys=lambda at, queries, tokens: min(at + queries, tokens), rows=2):
    return lambda heads, tokens, d, queries, s: (
        heads
        * d
        * s
        * (rows * tokens + sum(2 * keys(at, queries, tokens) for at in range(0, tokens, queries)))
    )


WRONG_ANSWERS = {
    "step_intensity": [
        wrong_step(lambda t, c: t * c),
        wrong_step(lambda t, c: t * c / 2),
        wrong_step(lambda t, c: c * (t + 1) / 2),
        wrong_step(lambda t, c: t * c - t * (t + 1) / 2),
        wrong_step(keys=lambda heads, kv: heads),
        wrong_step(rows=0),
        lambda h, kv, t, c, a, b: 2 / b * h / kv * t * c / (h / kv * t + c),
    ],
    "tiled_attention": [
        wrong_trips(lambda at, q, tokens: tokens),
        wrong_trips(lambda at, q, tokens: at + q),
        wrong_trips(lambda at, q, tokens: tokens / 2),
        wrong_trips(lambda at, q, tokens: at + 1),
        wrong_trips(lambda at, q, tokens: (tokens + 1) / 2),
        wrong_trips(rows=1),
        lambda heads, tokens, d, q, s: 4 * heads * tokens * d * s,
    ],
}

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("attention.scores", "4.295 GB", "four-passes"),
    ("attention.scores", "8.59 GB", "elements-not-bytes"),
    ("attention.scores", "34.36 GB", "wrong-width"),
    ("attention.shared-keys", "2 FLOP/byte", "heads-not-kv-heads"),
    ("attention.shared-keys", "7.996 FLOP/byte", "wrong-width or mac-is-flop"),
    ("attention.shared-keys", "7.992 FLOP/byte", "wrong-width or mac-is-flop"),
    ("attention.causal", "50 %", "half-is-the-limit"),
    ("attention.causal", "46.88 %", "forgot-self"),
    ("attention.x-trips", "545.3 MB", "wrong-width"),
    ("attention.x-trips", "136.3 MB", "elements-not-bytes"),
    ("attention.x-chunk", "50 %", "half-is-the-limit"),
    ("attention.x-chunk", "85.94 %", "forgot-self"),
]
