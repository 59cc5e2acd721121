"""Questions on one training step."""

import math

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import HOUSE

_DAY = 86_400
_A100 = rl.machine("A100 80GB SXM")
_SMALL = rl.transformer("tinyllama-1.1b")
_PARTS = {
    "the forward pass": lambda: rl.training_step(_SMALL, 4, 2048)["forward"],
    "the optimizer": lambda: rl.training_step(_SMALL, 4, 2048)["optimizer"],
    "the longest product": lambda: _SMALL.prefill(4, 2048)["ffn up"],
}


def _logits():
    return rl.training_memory("llama-3-8b", 1, 8192).logits


def _cluster(billions, chips, worth=6, factor=1):
    """Days of so many 1e9 parameters and 1e12 tokens on A100 at 45 percent."""
    flops = worth / 6 * rl.training_flops(1e9 * billions, 1e12)
    return flops / (chips * 0.45 * factor * _A100.peak("bf16")) / _DAY


def _useful(busy):
    """Percent of the peak for useful work, by the rule, where so many percent are busy, the second
    forward pass among them."""
    useful = rl.training_flops(1, 1)
    return busy * useful / (useful + useful / 3)


def _longer(full, part):
    """Percent that `full` rows through a layer take longer than `part`."""
    times = [
        rl.bound(rl.gemm(rows, 16384, 4096, "bf16"), HOUSE, "bf16").time for rows in (full, part)
    ]
    return 100 * (times[0] / times[1] - 1)


def _fills():
    held = rl.training_memory("llama-3-8b", 2, 8192)
    parts = {
        "weights and gradients": held.weights + held.gradients,
        "the optimizer": held.optimizer,
        "activations": held.activations,
        "logits and their gradient": held.logits,
    }
    return max(parts, key=parts.get)


def _days(parameters, tokens, chips, peak, busy, recompute):
    flops = rl.training_flops(parameters, tokens)
    return (flops * 4 / 3 if recompute else flops) / (peak * busy) / chips / _DAY


def _kept(layers, d_model, query_width, kv_width, d_ff, vocab, rows, gated, keep, logit_bytes=8):
    """A model with a single KV head as wide as all of them; `logit_bytes` with the gradient."""
    model = rl.Transformer(
        layers, d_model, query_width // kv_width, 1, kv_width, d_ff, vocab, gated=gated
    )
    held = rl.training_memory(model, 1, rows, keep)
    return held.activations + max(held.logits * logit_bytes / 8, held.recomputed)


def _sequences(memory, parameters, cards, sequence_bytes):
    """Sequences that fit, not rounded."""
    states = rl.zero_memory(parameters, cards, 1).states
    return (memory - states) / sequence_bytes


def _micro_batch(memory, parameters, cards, sequence_bytes):
    return max(0, math.floor(_sequences(memory, parameters, cards, sequence_bytes)))


def _all_spread(memory, parameters, cards, sequence_bytes):
    """As if weights and gradients were spread too."""
    states = rl.zero_memory(parameters, cards, 3).states
    return max(0, math.floor((memory - states) / sequence_bytes))


def _step_rate(rows, width, layers, accumulation, peak, bandwidth, beta=1):
    def time(*works):
        return sum(rl.Bound(work, peak, bandwidth).time for work in works)

    forward, inputs = rl.gemm(rows, width, width, "bf16"), rl.gemm(rows, width, width, "bf16")
    weights = rl.gemm(width, width, rows, "bf16")
    adding = rl.gemm(width, width, rows, "bf16", beta=beta)
    update = rl.Work(0, 28 * width**2)
    spent = time(forward, inputs, weights, update) + (accumulation - 1) * time(
        forward, inputs, adding
    )
    return accumulation * rows / spent / layers


def _best_rate(
    parameters, room, tokens, all_bytes, input_bytes, peak, bandwidth, again=4, whole=math.floor
):
    rates = [0.0]
    for sequence, passes in ((all_bytes, 3), (input_bytes, again)):
        if rows := whole(room / sequence) * tokens:
            work = rl.Work(2 * parameters * rows, 2 * parameters)
            rates.append(rows / (passes * rl.Bound(work, peak, bandwidth).time))
    return max(rates)


def _cluster_asked(billions=13, chips=256):
    return NumberQuestion(
        "training.x-cluster",
        f"{billions}e9 parameters, 1e12 tokens, {chips} chips A100 80GB SXM at 45 % utilisation: "
        "how many days, by the rule?",
        reference=lambda: _cluster(billions, chips),
        slips=[
            ("mac-is-flop", lambda: _cluster(billions, chips, worth=3)),
            ("sparse-peak", lambda: _cluster(billions, chips, factor=2)),
            ("forward-only", lambda: _cluster(billions, chips, worth=2)),
        ],
        hint=f"6 N D over {chips} times 0.45 of the dense bf16 peak; a day has 86,400 s.",
        counts="days",
    )


def _useful_asked(busy=52):
    return NumberQuestion(
        "training.x-useful",
        "A run keeps layer inputs only and computes its forward pass twice. Its chips compute for "
        f"{busy} % of the time, at their peak. What is the model FLOP utilisation?",
        unit="%",
        reference=lambda: _useful(busy),
        slips=[("forgot-recompute", lambda: float(busy))],
        hint="useful are 6 FLOP a parameter and token; how many are done?",
    )


def _largest_model_asked(gigabytes=None):
    card, memory = "one H200", rl.machine("H200 SXM").capacity("DRAM")
    if gigabytes is not None:
        card, memory = "one chip", 1e9 * gigabytes
    return NumberQuestion(
        "training.x-largest-model",
        "How many 1e9 parameters can a model have at most, so that weights, gradients and "
        f"optimizer (bf16 with Adam) fit into {card}, which holds {memory / 1e9:.4g} GB of 1e9 "
        "byte?",
        reference=lambda: memory / 16 / 1e9,
        tolerance=0.005,
        slips=[
            ("weights-only", lambda: memory / 2 / 1e9),
            ("forgot-optimizer", lambda: memory / (2 + 2) / 1e9),
        ],
        hint="2 + 2 + 12 bytes each.",
    )


def _padded_asked(full=128, part=60):
    return NumberQuestion(
        "training.x-padded",
        f"The last micro-batch has {part} tokens and is padded to {full}. How much longer does "
        "[tokens, 4096] @ [4096, 16384] in bf16 take at least on the house chip?",
        unit="%",
        reference=lambda: _longer(full, part),
        slips=[
            ("arithmetic-sets-the-time", lambda: 100 * (full / part - 1)),
            ("rule-for-exact", lambda: 0.0),
        ],
        hint=(
            f"{full} rows for {part}, and as many times the FLOP: but on which side of the ridge "
            "point are the two?"
        ),
    )


# with other numbers for each student
VARIED = (
    Varied(
        _cluster_asked,
        lambda rng: {"billions": rng.randint(6, 40), "chips": 32 * rng.randint(4, 31)},
    ),
    Varied(_useful_asked, lambda rng: {"busy": rng.randint(30, 90)}),
    Varied(_largest_model_asked, lambda rng: {"gigabytes": rng.randint(10, 300)}),
    Varied(_padded_asked, lambda rng: {"full": 128, "part": rng.randint(12, 100)}),
)

QUESTIONS = [
    NumberQuestion(
        "training.six-n-d",
        "A model of 1.5e9 parameters is trained on 30e9 tokens. How many FLOP is that, by the "
        "rule?",
        unit="EFLOP",
        reference=lambda: rl.training_flops(1.5e9, 30e9),
        slips=[
            ("mac-is-flop", lambda: rl.training_flops(1.5e9, 30e9) / 2),
            ("forward-only", lambda: rl.training_flops(1.5e9, 30e9) / 3),
        ],
        hint="2 FLOP a parameter and token forward, and twice that backward.",
    ),
    NumberQuestion(
        "training.days",
        "A model of 1.5e9 parameters is trained on 30e9 tokens. How many days does it take on one "
        "chip of 300 TFLOP/s at 40 % utilisation?",
        reference=lambda: rl.training_flops(1.5e9, 30e9) / (0.4 * HOUSE.peak("bf16")) / _DAY,
        slips=[
            (
                "mac-is-flop",
                lambda: rl.training_flops(1.5e9, 30e9) / 2 / (0.4 * HOUSE.peak("bf16")) / _DAY,
            ),
            (
                "forward-only",
                lambda: rl.training_flops(1.5e9, 30e9) / 3 / (0.4 * HOUSE.peak("bf16")) / _DAY,
            ),
            (
                "sparse-peak",
                lambda: rl.training_flops(1.5e9, 30e9) / (0.4 * 2 * HOUSE.peak("bf16")) / _DAY,
            ),
            (
                "forgot-utilisation",
                lambda: rl.training_flops(1.5e9, 30e9) / HOUSE.peak("bf16") / _DAY,
            ),
        ],
        hint="FLOP / (0.4 x 300e12) seconds; a day has 86,400 of them.",
        counts="days",
    ),
    NumberQuestion(
        "training.logits",
        "A micro-batch has 8192 tokens, the vocabulary 128,256 words. How much do the logits and "
        "their gradient take while the loss is computed?",
        unit="GB",
        reference=_logits,
        tolerance=0.005,
        slips=[
            ("forgot-gradient", lambda: _logits() / 4),  # and in bf16
            ("elements-not-bytes", lambda: _logits() / rl.bytes_per_element("fp32")),
            ("elements-not-bytes", lambda: _logits() / 8),  # of one of the two
            ("wrong-width", lambda: _logits() / 2),
            ("forgot-gradient", lambda: _logits() / 2),
        ],
        hint="tokens x vocabulary, in fp32, twice.",
    ),
    NumberQuestion(
        "training.ragged",
        "The last micro-batch holds 60 tokens. What is the intensity of [60, 4096] @ [4096, "
        "16384] in bf16?",
        unit="FLOP/byte",
        reference=lambda: rl.gemm(60, 16384, 4096, "bf16").intensity,
        tolerance=0.004,
        slips=[
            ("rule-for-exact", lambda: 60.0),
            ("wrong-width", lambda: rl.gemm(60, 16384, 4096, "fp32").intensity),
        ],
        hint="all three matrices count: the rule 'about M' says 60.",
    ),
    ChoiceQuestion(
        "training.swing",
        "Within each step the tensor cores are busy for 900 ms, then idle for 60 ms while memory "
        "is busy. What runs in those 60 ms?",
        choices=tuple(_PARTS),
        slips=[
            ("keeps-cores-busy", lambda: "the forward pass"),
            ("keeps-cores-busy", lambda: "the longest product"),
        ],
        reference=lambda: min(_PARTS, key=lambda name: _PARTS[name]().intensity),
        hint="Half a FLOP a byte, over every parameter: bytes that hardly compute.",
    ),
    _cluster_asked(),
    _useful_asked(),
    _largest_model_asked(),
    _padded_asked(),
    ChoiceQuestion(
        "training.x-fills",
        "llama-3-8b trains with Adam in bf16, micro-batches of 2 x 8192 tokens, everything kept "
        "but the scores. What takes the most memory, if nothing is spread over cards?",
        reference=_fills,
        choices=(
            "weights and gradients",
            "the optimizer",
            "activations",
            "logits and their gradient",
        ),
        hint='rl.training_memory(rl.transformer("llama-3-8b"), 2, 8192) has all the parts.',
    ),
    FunctionQuestion(
        "training.x-days",
        "A function: the days of a training run.",
        reference=_days,
        tolerance=1e-6,
        inputs=lambda: [
            (7e9, 1e12, 64, 312e12, 0.45, False),
            (7e9, 1e12, 64, 312e12, 0.45, True),
            (70e9, 15e12, 1024, 1e15, 0.4, True),
        ],
        slips=[
            ("mac-is-flop", lambda *args: _days(*args) / 2),
            ("forgot-utilisation", lambda n, d, c, peak, busy, re: _days(n, d, c, peak, 1, re)),
        ],
        hint=(
            "6 FLOP a parameter and token, 2 more for another forward pass; over all that the "
            "chips do in a second."
        ),
    ),
    FunctionQuestion(
        "training.x-kept",
        "A function: bytes beside the states at the worst moment of a step.",
        reference=_kept,
        tolerance=1e-6,
        inputs=lambda: [
            (24, 1024, 1024, 1024, 4096, 50257, 1024, False, "no scores"),
            (24, 1024, 1024, 1024, 4096, 50257, 1024, False, "layer inputs"),
            (32, 4096, 4096, 1024, 14336, 128256, 8192, True, "no scores"),
            (4, 4096, 4096, 2048, 16384, 1000, 512, False, "layer inputs"),
        ],
        slips=[
            ("wrong-width", lambda *args: _kept(*args, logit_bytes=4)),
            ("forgot-gradient", lambda *args: _kept(*args, logit_bytes=4)),
            ("heads-not-kv-heads", lambda ls, d, q, kv, *rest: _kept(ls, d, q, q, *rest)),
        ],
        hint=(
            "add up what one layer keeps for one token, 2 bytes each; times layers and rows. Then "
            "the larger of what comes and goes: 8 bytes a logit, or one layer computed again."
        ),
    ),
    FunctionQuestion(
        "training.x-micro-batch",
        "A function: the largest micro-batch that fits, with the optimizer spread over cards; 0 "
        "where none does.",
        reference=_micro_batch,
        tolerance=1e-9,
        inputs=lambda: [(80e9, 7e9, 1, 10e9), (80e9, 7e9, 8, 10e9), (80e9, 7e9, 4096, 10e9)],
        slips=[
            ("spread-too-much", _all_spread),
            ("round-down", lambda *args: max(0, math.ceil(_sequences(*args)))),
        ],
        hint=(
            "4 bytes a parameter on each card, 12 divided by the cards; what is left, in whole "
            "sequences."
        ),
    ),
    FunctionQuestion(
        "training.x-step-rate",
        "A function: tokens a second of a step with accumulation, every product at its roof.",
        reference=_step_rate,
        tolerance=1e-6,
        inputs=lambda: [
            (32, 4096, 24, 1, 312e12, 2039e9),
            (32, 4096, 24, 8, 312e12, 2039e9),
            (8192, 4096, 24, 2, 312e12, 2039e9),
        ],
        slips=[
            (
                "mac-is-flop",
                lambda rows, width, layers, times, peak, bandwidth: _step_rate(
                    rows, width, layers, times, 2 * peak, bandwidth
                ),
            ),
            ("forgot-old-values", lambda *args: _step_rate(*args, beta=0)),
        ],
        hint=(
            "three products a layer and micro-batch, each the longer of its two times; the update "
            "once a step."
        ),
    ),
    FunctionQuestion(
        "training.x-best-rate",
        "A function: tokens a second of the better way, everything kept or the forward pass run "
        "twice.",
        reference=_best_rate,
        tolerance=1e-6,
        inputs=lambda: [
            (7e9, 20e9, 4096, 18.3e9, 2.12e9, 312e12, 2039e9),
            (7e9, 10e9, 4096, 18.3e9, 2.12e9, 312e12, 2039e9),
            (7e9, 1e9, 4096, 18.3e9, 2.12e9, 312e12, 2039e9),
        ],
        slips=[
            ("forgot-recompute", lambda *args: _best_rate(*args, again=3)),
            ("round-down", lambda *args: _best_rate(*args, whole=float)),
        ],
        hint=(
            "three passes with few rows or four with many. On the slope more rows are faster, on "
            "the flat roof they are not."
        ),
    ),
]
