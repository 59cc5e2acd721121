"""Decode: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, floor, inf

import roofline_lib as rl

LESSON = "prefill_decode"


WRONG_ANSWERS = {
    "cache_bytes": [
        lambda t, ls, h, g, d, latent, s: t * ls * s * (latent or h // g * d),
        lambda t, ls, h, g, d, latent, s: t * ls * s * 2 * (latent or h // g * d),
        lambda t, ls, h, g, d, latent, s: t * ls * s * (latent or 2 * g * d),
        lambda t, ls, h, g, d, latent, s: t * ls * s * 2 * h // g * d,
    ],
    "tokens_per_second": [
        lambda b, c, n, s, kv, p, w: b * w / (n * s + b * c * kv),
        lambda b, c, n, s, kv, p, w: b / max((n * s + c * kv) / w, 2 * n * b / p),
        lambda b, c, n, s, kv, p, w: 1 / max((n * s + b * c * kv) / w, 2 * n * b / p),
        lambda b, c, n, s, kv, p, w: b / ((n * s + b * c * kv) / w + 2 * n * b / p),
        lambda b, c, n, s, kv, p, w: b / max(n * s / w, 2 * n * b / p),
    ],
    "largest_batch": [
        lambda m, w, c, kv, bw, t: max(0, floor((m - w) / (c * kv))),
        lambda m, w, c, kv, bw, t: max(0, floor((bw * t - w) / (c * kv))),
        lambda m, w, c, kv, bw, t: floor((min(m, bw * t) - w) / (c * kv)),
        lambda m, w, c, kv, bw, t: max(1, floor((min(m, bw * t) - w) / (c * kv))),
        lambda m, w, c, kv, bw, t: max(0, ceil((min(m, bw * t) - w) / (c * kv))),
        lambda m, w, c, kv, bw, t: max(0, floor(min((m - w) / (c * kv), bw * t / (c * kv)))),
    ],
    "experts_read": [
        lambda t, e, a, b: min(t * a, e) * b,
        lambda t, e, a, b: a * b,
        lambda t, e, a, b: e * b,
        lambda t, e, a, b: e * (1 - (1 - 1 / e) ** t) * b,
        lambda t, e, a, b: e * (1 - (a / e) ** t) * b,
    ],
    "batch_for": [
        lambda f, w, c, kv: ceil(w / (c * kv)),
        lambda f, w, c, kv: ceil(f * w / (c * kv)),
        lambda f, w, c, kv: floor(f / (1 - f) * w / (c * kv)) if f < 1 else inf,
        lambda f, w, c, kv: ceil(f / (1 - f) * w / (c * kv)) if f < 1 else 10**9,
    ],
}

LLAMA2, LLAMA3 = rl.transformer("llama-2-7b"), rl.transformer("llama-3-8b")
CACHE = {model: 100 * 4096 * model.kv_bytes_per_token() for model in (LLAMA2, LLAMA3)}
HELD = {model: CACHE[model] + model.weight_bytes() for model in (LLAMA2, LLAMA3)}
CARD = rl.machine("A100 80GB SXM").bandwidth()


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    step = sum(LLAMA2.decode(100, 4096).values())
    arithmetic = step.flops / rl.machine("A100 80GB SXM").peak("bf16")
    return [
        f"no latent: {f['cache_bytes'](4096, 32, 32, 4, 128, 0, 2) / 1e6:.0f} MB",
        f"2 TB/s: {f['tokens_per_second'](16, 4096, 7e9, 2, 524288, 3e14, 2e12):.0f}",
        f"it is {f['largest_batch'](80e9, 14e9, 4096, 524288, 2e12, 1)} sequences, with 30 ms it "
        "is "
        f"{f['largest_batch'](80e9, 14e9, 4096, 524288, 2e12, 0.03)}",
        f"one token reads {f['experts_read'](1, 8, 2, 3e8) / 1e6:.0f} MB",
        f"but {f['experts_read'](16, 8, 2, 3e8) / 1e9:.3f} GB",
        f"nine tenths: {f['batch_for'](0.9, 14e9, 4096, 524288)} sequences",
        f"({LLAMA2.weight_bytes() / 1e9:.1f} GB of weights",
        f"llama-3-8b, {LLAMA3.weight_bytes() / 1e9:.1f} GB",
        f"leaves {LLAMA2.kv_bytes_per_token() / 1024:.0f} KiB",
        f"are {CACHE[LLAMA2] / 1e9:.0f} GB: with the weights {HELD[LLAMA2] / 1e9:.0f} GB",
        f"take {1e3 * HELD[LLAMA2] / CARD:.0f} ms",
        f"The cache is {100 * CACHE[LLAMA2] / HELD[LLAMA2]:.0f} percent",
        (
            f"{CACHE[LLAMA2] / 2e9:.0f} + {LLAMA2.weight_bytes() / 1e9:.1f} = "
            f"{(HELD[LLAMA2] - CACHE[LLAMA2] / 2) / 1e9:.0f} GB"
        ),
        f"takes {(LLAMA2.weight_bytes() - LLAMA2.weight_bytes('int4')) / 1e9:.0f} GB off",
        f"takes {1e3 * arithmetic:.0f} ms",
        (
            f"{CACHE[LLAMA3] / 1e9:.1f} + {LLAMA3.weight_bytes() / 1e9:.1f} = "
            f"{HELD[LLAMA3] / 1e9:.0f} GB"
        ),
        (
            f"takes {1e3 * HELD[LLAMA3] / CARD:.0f} ms a step, so {CARD / HELD[LLAMA3]:.0f} "
            "tokens a second"
        ),
        (
            f"it is {(HELD[LLAMA3] - CACHE[LLAMA3] / 2) / 1e9:.0f} GB and "
            f"{1e3 * (HELD[LLAMA3] - CACHE[LLAMA3] / 2) / CARD:.0f} ms"
        ),
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("decode.ffn-time", "7.33 ms", "mac-is-flop"),
    ("decode.ffn-time", "219.9 ms", "wrong-peak"),
    ("decode.ffn-time", "22 ms", "third-product"),
    ("decode.ffn-time", "0.8053 ms", "shorter-time"),
    ("decode.slow-tokens", "int4 weights", "not-the-limit"),
    ("decode.slow-tokens", "twice the FLOP/s", "not-the-limit"),
    ("decode.kv-heads", "4.295 GB", "heads-not-kv-heads"),
    ("decode.kv-heads", "0.5369 GB", "elements-not-bytes"),
    ("decode.critical-batch", 120.1, "rule-for-exact"),
    ("decode.critical-batch", 273, "wrong-width"),
    ("decode.critical-batch", 240.2, "wrong-width"),
    ("decode.x-long-prompt", "265 %", "forgot-mask"),
    ("decode.x-long-prompt", "66.3 %", "one-of-two-products"),
    ("decode.x-one-user", "an fp8 cache", "not-the-limit"),
    ("decode.x-one-user", "twice the FLOP/s", "not-the-limit"),
    ("decode.x-decode-busy", "0.666 %", "mac-is-flop or wrong-width"),
    ("decode.x-decode-busy", "0.6663 %", "mac-is-flop or wrong-width"),
    ("decode.x-fp8-tokens", "34.29 token/s", "wrong-width"),
    ("decode.x-fp8-tokens", "47.86 token/s", "wrong-chip"),
    ("decode.x-mla", "35.14 kB", "elements-not-bytes"),
    ("decode.x-mla", "3998 kB", "heads-not-kv-heads"),
]
