"""Attention: wrong answers as students give them, by the function that they stand in for, and the
numbers that the text shows."""

from math import exp

import roofline_lib as rl

LESSON = "attention"


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


def wrong_merge(shrink=lambda own, common: exp(min(own - common, 700)), top=max, mix=None):
    def both(t, w, m, t2, w2, m2):
        highest = top(t, t2)
        a, b = shrink(t, highest), shrink(t2, highest)
        mixed = mix(a * w, m, b * w2, m2) if mix else a * m + b * m2
        return [highest, a * w + b * w2, mixed]

    return both


def wrong_looks(seen=lambda t, window: min(t, window), mac=4):
    return lambda heads, tokens, d, window: (
        mac * heads * d * sum(seen(t, window) for t in range(1, tokens + 1))
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
    "merge": [
        wrong_merge(lambda own, common: 1.0),
        wrong_merge(lambda own, common: exp(min(common - own, 700))),
        wrong_merge(top=min),
        wrong_merge(mix=lambda w, m, w2, m2: m + m2),
        wrong_merge(mix=lambda w, m, w2, m2: (w * m + w2 * m2) / (w + w2)),
    ],
    "looks_back": [
        wrong_looks(lambda t, window: t),
        wrong_looks(lambda t, window: min(t - 1, window)),
        wrong_looks(lambda t, window: min(t, window + 1)),
        wrong_looks(mac=2),
    ],
}

HOUSE, LONG = rl.machine("house chip"), 32768


def milliseconds(**how):
    """One layer's attention over the whole prompt, at its roof."""
    work = rl.attention(1, 32, 8, LONG, LONG, 128, "bf16", **how)
    return 1e3 * rl.bound(work, HOUSE, "bf16").time


def microseconds(kv="bf16", window=None):
    """One layer's attention for one token."""
    work = rl.attention(1, 32, 8, 1, LONG, 128, "bf16", flash=True, kv=kv, window=window)
    return 1e6 * rl.bound(work, HOUSE, "bf16").time


APART = milliseconds()
MASKED = milliseconds(flash=True, causal=True)
NARROW = milliseconds(flash=True, causal=True, window=4096)


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        "{:.3f} for one new token, {:.1f} for eight".format(
            *(f["step_intensity"](32, 8, new, 4096, 2, 2) for new in (1, 8))
        ),
        "{:.2f} MB in tiles of 128, and {:.2f} MB if".format(
            *(f["tiled_attention"](1, 1024, 64, q, 2) / 1e6 for q in (128, 1024))
        ),
        "gives `[{}, {:.3f}, {:.3f}]`".format(*f["merge"](3, 2, 5, 5, 1.5, 4)),
        f"{f['looks_back'](1, 4, 1, 2)} FLOP",
        f"takes {APART:.1f} ms a layer",
        f"to {milliseconds(flash=True):.1f} ms, and with the mask to {MASKED:.1f} ms",
        f"leaves {NARROW:.1f} ms",
        f"from {microseconds():.1f} µs to {microseconds('fp8'):.1f} µs",
        f"to {microseconds(window=4096):.1f} µs",
        f"{APART / MASKED:.1f} times as fast",
        f"another {MASKED / NARROW:.1f} times",
    ]


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
    ("attention.window", "12.5 %", "whole-square"),
    ("attention.window", "11.72 %", "whole-square"),
    ("attention.window", "25 %", "window-start"),
    ("attention.x-raises", "a", "larger-side"),
    ("attention.x-raises", "b", "own-keys"),
    ("attention.x-kept", "0.537 GB", "every-layer"),
    ("attention.x-kept", "17.18 GB", "no-window"),
    ("attention.x-kept", "4.429 GB", "elements-not-bytes"),
]
