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
