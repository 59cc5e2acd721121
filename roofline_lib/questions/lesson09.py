"""Lesson 09: one training step."""

import roofline_lib as rl
from roofline_lib.checks import Question

_DAY = 86_400
_CHIP = rl.machine("house chip")


def _model():
    return rl.transformer("tinyllama-1.1b")


def _activation():
    return rl.bytes_per_element("bf16") * 8192 * 14336


_PARTS = {
    "the forward pass": lambda: rl.training_step(_model(), 4, 2048)["forward"],
    "the optimizer": lambda: rl.training_step(_model(), 4, 2048)["optimizer"],
    "the longest product": lambda: _model().prefill(4, 2048)["ffn up"],
}

QUESTIONS = [
    Question(
        "09.six-n-d",
        "A model of 1.5e9 parameters is trained on 30e9 tokens. How many FLOP is that, by the rule?",
        unit="EFLOP",
        reference=lambda: rl.training_flops(1.5e9, 30e9),
        slips={
            "mac-is-flop": lambda: rl.training_flops(1.5e9, 30e9) / 2,
            "forward-only": lambda: rl.training_flops(1.5e9, 30e9) / 3,
        },
        hint="2 FLOP a parameter and token forward, and twice that backward.",
    ),
    Question(
        "09.days",
        "How many days is that on one chip of 300 TFLOP/s at 40 % utilisation?",
        reference=lambda: rl.training_flops(1.5e9, 30e9) / (0.4 * _CHIP.peak("bf16")) / _DAY,
        slips={
            "mac-is-flop": lambda: (
                rl.training_flops(1.5e9, 30e9) / 2 / (0.4 * _CHIP.peak("bf16")) / _DAY
            ),
            "forward-only": lambda: (
                rl.training_flops(1.5e9, 30e9) / 3 / (0.4 * _CHIP.peak("bf16")) / _DAY
            ),
            "sparse-peak": lambda: (
                rl.training_flops(1.5e9, 30e9) / (0.4 * 2 * _CHIP.peak("bf16")) / _DAY
            ),
        },
        hint="FLOP / (0.4 x 300e12) seconds; a day has 86,400 of them.",
    ),
    Question(
        "09.states",
        "tinyllama-1.1b in bf16 with Adam, 2 + 2 + 12 bytes a parameter, nothing else: how many GB?",
        unit="GB",
        reference=lambda: 16 * _model().parameters,
        tolerance=0.005,
        slips={"elements-not-bytes": lambda: _model().parameters},
        hint="rl.transformer('tinyllama-1.1b').parameters is the exact count.",
    ),
    Question(
        "09.activation",
        "8192 tokens pass a layer whose inner width is 14,336. How large is that one bf16 activation?",
        unit="MB",
        reference=_activation,
        tolerance=0.005,
        slips={
            "elements-not-bytes": lambda: _activation() / rl.bytes_per_element("bf16"),
            "wrong-width": lambda: 2 * _activation(),
        },
        hint="tokens x width x 2 bytes.",
    ),
    Question(
        "09.ragged",
        "The last micro-batch holds 60 tokens. What is the intensity of [60, 4096] @ [4096, 16384] in bf16?",
        unit="FLOP/byte",
        reference=lambda: rl.gemm(60, 16384, 4096, "bf16").intensity,
        tolerance=0.004,
        slips={
            "rule-for-exact": lambda: 60.0,
            "wrong-width": lambda: rl.gemm(60, 16384, 4096, "fp32").intensity,
        },
        hint="all three matrices count: the rule 'about M' says 60.",
    ),
    Question(
        "09.swing",
        "Within each step the tensor cores are busy for 900 ms, then idle for 60 ms while memory is busy. "
        "What runs in those 60 ms?",
        choices=tuple(_PARTS),
        reference=lambda: min(_PARTS, key=lambda name: _PARTS[name]().intensity),
        hint="half a FLOP a byte, over every parameter: nothing in a step lies further left.",
    ),
]
