"""Training: wrong answers as students give them, by the function that they stand in for,
and the numbers that the text shows."""

from math import ceil, floor

import roofline_lib as rl

LESSON = "training_step"


def wrong_step(first=(1, 1, 1), later=(1, 1, 2), update=28, together=max, always=False):
    """Tokens/s; `first` and `later`: how often the three products of the first and of later
    micro-batches move the width x width matrix."""

    def rate(rows, width, layers, accumulation, peak, bandwidth):
        def time(passes):
            return sum(
                together(
                    (2 * rows * width**2 / peak, 2 * (2 * rows * width + n * width**2) / bandwidth)
                )
                for n in passes
            )

        updates = (accumulation if always else 1) * update * width**2 / bandwidth
        return (
            rows
            * accumulation
            / layers
            / (time(first) + (accumulation - 1) * time(later) + updates)
        )

    return rate


def wrong_kept(logits=8, arrays=None, queries=2, together=max):
    """Bytes at the worst moment; `logits`: bytes of one with its gradient, `together`: of logits
    and the layer that is computed again."""

    def held(layers, d_model, query, kv, d_ff, vocab, rows, gated, keep):
        wide = arrays or 2 + gated
        layer = 2 * rows * (4 * d_model + queries * query + 2 * kv + wide * d_ff)
        if keep == "layer inputs":
            return 2 * rows * layers * d_model + together(logits * rows * vocab, layer)
        return layers * layer + logits * rows * vocab

    return held


def ways(*choices):
    """Tokens a second of (bytes of a sequence, passes) with whole sequences or not."""

    def rate(parameters, room, tokens, all_bytes, input_bytes, peak, bandwidth):
        rates = []
        for which, passes, whole in choices:
            rows = whole(room / (all_bytes, input_bytes)[which]) * tokens
            rates.append(min(peak, rows * bandwidth) / (passes * 2 * parameters))
        return max(rates)

    return rate


def llama_step(sequences, tokens=4096):
    """(intensity of its products, tokens/s) with 16 sequences a step."""
    step = rl.training_step(LLAMA2, sequences, tokens, 16 // sequences)
    return step["forward"].intensity, 16 * tokens / rl.time_in_sequence(step.values(), A100, "bf16")


WRONG_ANSWERS = {
    "training_days": [
        lambda n, d, c, p, b, r: 6 * n * d / (c * p * b) / 86400,
        lambda n, d, c, p, b, r: (6 + 2 * r) * n * d / (c * p) / 86400,
        lambda n, d, c, p, b, r: (6 + 6 * r) * n * d / (c * p * b) / 86400,
        lambda n, d, c, p, b, r: (6 + 2 * r) * n * d / (c * p * b) / 3600,
    ],
    "kept_bytes": [
        wrong_kept(logits=2),
        wrong_kept(logits=4),
        wrong_kept(arrays=3),
        wrong_kept(queries=1),
        wrong_kept(together=lambda logits, layer: logits + layer),
        wrong_kept(together=lambda logits, layer: logits),
        wrong_kept(together=lambda logits, layer: layer),
    ],
    "largest_micro_batch": [
        lambda m, p, c, s: max(0, floor((m - 16 * p) / s)),
        lambda m, p, c, s: max(0, floor((m - 16 * p / c) / s)),
        lambda m, p, c, s: floor((m - 4 * p - 12 * p / c) / s),
        lambda m, p, c, s: max(0, ceil((m - 4 * p - 12 * p / c) / s)),
        lambda m, p, c, s: max(0, c * floor((m - 4 * p - 12 * p / c) / s)),
        lambda m, p, c, s: max(0, floor((m - 4 * p - 12 * p / c) / s - 1e-9)),
    ],
    "step_rate": [
        wrong_step(later=(1, 1, 1)),
        wrong_step(first=(1, 1, 2)),
        wrong_step(update=24),
        wrong_step(together=sum),
        wrong_step(always=True),
        lambda r, w, ls, times, p, bw: times * wrong_step()(r, w, ls, 1, p, bw),
    ],
    "best_rate": [
        ways((0, 3, floor)),
        ways((0, 3, floor), (1, 3, floor)),
        ways((0, 3, float), (1, 4, float)),
        ways((1, 4, floor)),
        lambda p, room, t, a, i, pk, bw: (
            ways((0, 3, floor))(p, room, t, a, i, pk, bw)
            or ways((1, 4, floor))(p, room, t, a, i, pk, bw)
        ),
        lambda p, room, t, a, i, pk, bw: pk / (6 if a <= room else 8) / p if i <= room else 0,
    ],
}

LLAMA2, A100 = rl.transformer("llama-2-7b"), rl.machine("A100 80GB SXM")
HELD = rl.training_memory(LLAMA2, 1, 4096)
LEAST = rl.training_memory(LLAMA2, 1, 4096, "layer inputs")
TOKENS = 0.52 * A100.peak("bf16") / (8 * LLAMA2.parameters)


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        f"of the time: {f['training_days'](7e9, 1e12, 64, 312e12, 0.45, False):.1f} days, or "
        f"{f['training_days'](7e9, 1e12, 64, 312e12, 0.45, True):.1f} with",
        "{:,.1f} MB, and {:.1f} MB with layer inputs".format(
            *(
                f["kept_bytes"](24, 1024, 1024, 1024, 4096, 50257, 1024, False, keep) / 1e6
                for keep in ("no scores", "layer inputs")
            )
        ),
        "{} on one card, {} on eight. And however many cards you buy, it is never "
        "more than {}".format(
            *(f["largest_micro_batch"](80e9, 7e9, cards, 10e9) for cards in (1, 8, 10**9))
        ),
        "GB/s it is {:,.0f}. With 8 micro-batches a step it is {:,.0f}:".format(
            *(f["step_rate"](32, 4096, 24, times, 312e12, 2039e9) for times in (1, 8))
        ),
        (
            f"that take {(HELD.total - HELD.states) / 1e9:.1f} or "
            f"{(LEAST.total - LEAST.states) / 1e9:.2f} GB"
        ),
        "room it is {:,.0f}, everything kept. With 10 GB it is {:,.0f}:".format(
            *(
                f["best_rate"](7e9, room, 4096, 18.3e9, 2.12e9, 312e12, 2039e9)
                for room in (20e9, 10e9)
            )
        ),
        f"TFLOP/s are {TOKENS:,.0f} tokens a second",
        f"are real: {TOKENS * 1400 / 4096:,.0f}, so two thirds",
        f"stand at {llama_step(1)[0]:,.0f} FLOP/byte",
        f"ridge point of {A100.ridge_point('bf16'):.0f}",
        f"rise by {100 * (llama_step(4)[1] / llama_step(1)[1] - 1):.1f} percent",
        f"still stand at {llama_step(1, 300)[0]:.0f} FLOP/byte",
        f"take {(HELD.weights + HELD.gradients) / 1e9:.1f} GB, an eighth of the optimizer "
        f"{HELD.optimizer / 8e9:.1f}, and one sequence with "
        f"everything but the scores {(HELD.total - HELD.states) / 1e9:.1f}, its logits among them: "
        f"{(HELD.total - 7 / 8 * HELD.optimizer) / 1e9:.1f} GB in all, which fits into "
        f"{A100.capacity() / 1e9:.1f}",
        f"It saves 2 FLOP of 8: {8 / 6:.2f} times",
        f"from {100 * 1400 / 4096:.0f} percent to 90: {0.9 * 4096 / 1400:.1f} times",
        f"make {8 / 6 * 0.9 * 4096 / 1400:.1f} times",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("training.six-n-d", "135 EFLOP", "mac-is-flop"),
    ("training.six-n-d", "90 EFLOP", "forward-only"),
    ("training.days", 13.02, "mac-is-flop or sparse-peak"),
    ("training.days", 8.681, "forward-only"),
    ("training.days", 10.42, "forgot-utilisation"),
    ("training.logits", "2.1 GB", "forgot-gradient or elements-not-bytes"),
    ("training.logits", "1.05 GB", "elements-not-bytes"),
    ("training.logits", "4.2 GB", "wrong-width or forgot-gradient"),
    ("training.ragged", "60 FLOP/byte", "rule-for-exact"),
    ("training.ragged", "29.46 FLOP/byte", "wrong-width"),
    ("training.x-cluster", 12.56, "mac-is-flop or sparse-peak"),
    ("training.x-cluster", 8.372, "forward-only"),
    ("training.swing", "the forward pass", "keeps-cores-busy"),
    ("training.swing", "the longest product", "keeps-cores-busy"),
    ("training.x-useful", "52 %", "forgot-recompute"),
    ("training.x-largest-model", 75.05, "weights-only"),
    ("training.x-largest-model", 37.53, "forgot-optimizer"),
    ("training.x-padded", "113.3 %", "arithmetic-sets-the-time"),
    ("training.x-padded", "0 %", "rule-for-exact"),
]

# questions with fewer than two: why
FEWER = {
    "training.x-useful": "the busy share is the one wrong answer that students give",
    "training.x-fills": "a part picked by feel has no arithmetic of its own",
}
