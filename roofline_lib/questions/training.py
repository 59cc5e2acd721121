"""Questions on one training step."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion
from roofline_lib.questions.shared import HOUSE, smallest_whole
from roofline_lib.training import TrainingMemory

_DAY = 86_400
_PARTS = {
    "the forward pass": lambda: rl.training_step(_SMALL, 4, 2048)["forward"],
    "the optimizer": lambda: rl.training_step(_SMALL, 4, 2048)["optimizer"],
    "the longest product": lambda: _SMALL.prefill(4, 2048)["ffn up"],
}
_A100 = rl.machine("A100 80GB SXM")
_SMALL = rl.transformer("tinyllama-1.1b")


def _activation():
    return rl.bytes_per_element("bf16") * 8192 * 14336


def _cluster(worth=6, factor=1):
    """Days of 13e9 parameters and 1e12 tokens on 256 A100 at 45 percent."""
    return (
        worth
        / 6
        * rl.training_flops(13e9, 1e12)
        / (256 * 0.45 * factor * _A100.peak("bf16"))
        / _DAY
    )


def _useful():
    """Percent of the peak for useful work where 52 percent are busy, the second forward pass among
    them."""
    step = rl.training_step(_SMALL, 1, 2048, keep="layer inputs")
    once = step["forward"].flops + step["backward"].flops
    return 52 * once / (once + step["recompute"].flops)


def _states(model):
    """Bytes a parameter before the first token."""
    held = rl.training_memory(model, 1, 1)
    return (held.total - held.activations) / model.parameters


def _longer(full=128, part=60):
    """Percent that `full` rows through a layer take longer than `part`."""
    times = [
        rl.bound(rl.gemm(rows, 16384, 4096, "bf16"), HOUSE, "bf16").time for rows in (full, part)
    ]
    return 100 * (times[0] / times[1] - 1)


def _fills():
    held = rl.training_memory(rl.transformer("llama-3-8b"), 2, 8192)
    parts = {
        "weights and gradients": held.weights + held.gradients,
        "the optimizer": held.optimizer,
        "activations": held.activations,
    }
    return max(parts, key=parts.get)


def _days(parameters, tokens, chips, peak, busy, recompute):
    flops = rl.training_flops(parameters, tokens)
    return (flops * 4 / 3 if recompute else flops) / (peak * busy) / chips / _DAY


def _kept(layers, d_model, query_width, kv_width, d_ff, vocab, rows, gated, keep):
    """A model with a single KV head as wide as all of them."""
    model = rl.Transformer(
        layers, d_model, query_width // kv_width, 1, kv_width, d_ff, vocab, gated=gated
    )
    return rl.training_memory(model, 1, rows, keep).activations


def _micro_batch(memory, parameters, cards, sequence_bytes):
    def too_many(sequences):
        return (
            TrainingMemory(
                2 * parameters, 2 * parameters, 12 * parameters / cards, sequences * sequence_bytes
            ).total
            > memory
        )

    return smallest_whole(too_many) - 1


def _step_rate(rows, width, layers, accumulation, peak, bandwidth):
    def time(*works):
        return sum(rl.Bound(work, peak, bandwidth).time for work in works)

    forward, inputs = rl.gemm(rows, width, width, "bf16"), rl.gemm(rows, width, width, "bf16")
    weights, adding = (rl.gemm(width, width, rows, "bf16", beta=beta) for beta in (0, 1))
    update = rl.Work(0, 28 * width**2)
    spent = time(forward, inputs, weights, update) + (accumulation - 1) * time(
        forward, inputs, adding
    )
    return accumulation * rows / spent / layers


def _best_rate(parameters, room, tokens, all_bytes, input_bytes, peak, bandwidth):
    rates = [0.0]
    for sequence, passes in ((all_bytes, 3), (input_bytes, 4)):
        if rows := room // sequence * tokens:
            rates.append(
                rows
                / (
                    passes
                    * rl.Bound(rl.Work(2 * parameters * rows, 2 * parameters), peak, bandwidth).time
                )
            )
    return max(rates)


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
        "How many days is that on one chip of 300 TFLOP/s at 40 % utilisation?",
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
        "training.states",
        "tinyllama-1.1b in bf16 with Adam, 2 + 2 + 12 bytes a parameter, nothing else: how many "
        "GB?",
        unit="GB",
        reference=lambda: 16 * _SMALL.parameters,
        tolerance=0.005,
        slips=[
            ("elements-not-bytes", lambda: _SMALL.parameters),
            ("weights-only", lambda: 2 * _SMALL.parameters),
            ("forgot-optimizer", lambda: 4 * _SMALL.parameters),
        ],
        hint="rl.transformer('tinyllama-1.1b').parameters is the exact count.",
    ),
    NumberQuestion(
        "training.activation",
        "8192 tokens pass a layer whose inner width is 14,336. How large is that one bf16 "
        "activation?",
        unit="MB",
        reference=_activation,
        tolerance=0.005,
        slips=[
            ("elements-not-bytes", lambda: _activation() / rl.bytes_per_element("bf16")),
            ("wrong-width", lambda: 2 * _activation()),
        ],
        hint="tokens x width x 2 bytes.",
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
        reference=lambda: min(_PARTS, key=lambda name: _PARTS[name]().intensity),
        hint="half a FLOP a byte, over every parameter: nothing in a step lies further left.",
    ),
    NumberQuestion(
        "training.x-cluster",
        "13e9 parameters, 1e12 tokens, 256 chips A100 80GB SXM at 45 % utilisation: how many "
        "days, by the rule?",
        reference=_cluster,
        slips=[
            ("mac-is-flop", lambda: _cluster(worth=3)),
            ("sparse-peak", lambda: _cluster(factor=2)),
            ("forward-only", lambda: _cluster(worth=2)),
        ],
        hint="6 N D over 256 times 0.45 of the dense bf16 peak; a day has 86,400 s.",
        counts="days",
    ),
    NumberQuestion(
        "training.x-useful",
        "A run keeps layer inputs only and computes its forward pass twice. Its chips compute for "
        "52 % of the time, at their peak. What is the model FLOP utilisation?",
        unit="%",
        reference=_useful,
        hint="useful are 6 FLOP a parameter and token; how many are done?",
    ),
    NumberQuestion(
        "training.x-largest-model",
        "How many 1e9 parameters can a model have at most, so that weights, gradients and "
        "optimizer (bf16 with Adam) fit into one H200, which holds 150.1 GB of 1e9 byte?",
        reference=lambda: rl.machine("H200 SXM").capacity("DRAM") / _states(_SMALL) / 1e9,
        tolerance=0.005,
        hint="2 + 2 + 12 bytes each.",
    ),
    NumberQuestion(
        "training.x-padded",
        "The last micro-batch has 60 tokens and is padded to 128. How much longer does [tokens, "
        "4096] @ [4096, 16384] in bf16 take at least on the house chip?",
        unit="%",
        reference=_longer,
        hint="twice the rows and twice the FLOP, but on which side of the ridge point are the two?",
    ),
    ChoiceQuestion(
        "training.x-fills",
        "llama-3-8b trains with Adam in bf16, micro-batches of 2 x 8192 tokens, everything kept "
        "but the scores. What takes the most memory, if nothing is spread over cards?",
        reference=_fills,
        choices=("weights and gradients", "the optimizer", "activations"),
        hint='rl.training_memory(rl.transformer("llama-3-8b"), 2, 8192) has all four parts.',
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
        ],
        hint=(
            "6 FLOP a parameter and token, 2 more for another forward pass; over all that the "
            "chips do in a second."
        ),
    ),
    FunctionQuestion(
        "training.x-kept",
        "A function: bytes of activations that the backward pass finds.",
        reference=_kept,
        tolerance=1e-6,
        inputs=lambda: [
            (24, 1024, 1024, 1024, 4096, 50257, 1024, False, "no scores"),
            (24, 1024, 1024, 1024, 4096, 50257, 1024, False, "layer inputs"),
            (32, 4096, 4096, 1024, 14336, 128256, 8192, True, "no scores"),
        ],
        slips=[
            ("elements-not-bytes", lambda *args: _kept(*args) / rl.bytes_per_element("bf16")),
            ("wrong-width", lambda *args: 2 * _kept(*args)),
            ("heads-not-kv-heads", lambda ls, d, q, kv, *rest: _kept(ls, d, q, q, *rest)),
        ],
        hint=(
            "add up the widths of what one layer keeps for one token; times layers, the logits "
            "once, times rows, 2 bytes each."
        ),
    ),
    FunctionQuestion(
        "training.x-micro-batch",
        "A function: the largest micro-batch that fits, with the optimizer spread over cards; 0 "
        "where none does.",
        reference=_micro_batch,
        tolerance=1e-9,
        inputs=lambda: [(80e9, 7e9, 1, 10e9), (80e9, 7e9, 8, 10e9), (80e9, 7e9, 4096, 10e9)],
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
            (7e9, 20e9, 4096, 17.5e9, 1.34e9, 312e12, 2039e9),
            (7e9, 10e9, 4096, 17.5e9, 1.34e9, 312e12, 2039e9),
            (7e9, 1e9, 4096, 17.5e9, 1.34e9, 312e12, 2039e9),
        ],
        hint=(
            "three passes with few rows or four with many. On the slope more rows are faster, on "
            "the flat roof they are not."
        ),
    ),
]
