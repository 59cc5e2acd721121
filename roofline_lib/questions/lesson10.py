"""Lesson 10: numbers that lie. Claims that the lesson has not treated, to be recomputed from their
inputs."""

import roofline_lib as rl
from roofline_lib.checks import Question, within

_A100, _H100, _L4, _MI355X = (
    rl.machine(name) for name in ("A100 80GB SXM", "H100 SXM", "L4", "MI355X")
)


def _slip_of(published, recomputed):
    """The name of the slip whose factor lies between two figures."""
    ratio = max(published / recomputed, recomputed / published)
    factors = {
        "it is right": 1,
        "two decimal steps for two binary ones": 1.024**2,
        "a multiply-add counted once": 2,
        "bits for bytes": 8,
    }
    return next(name for name, factor in factors.items() if within(ratio, factor, 0.005))


def _that_follows():
    """Which of the last question's four figures follows from its inputs to within half a
    percent."""
    claims = {
        "A10": (208, 125e12 / 600e9),
        "A100": (156, _A100.ridge_point("bf16")),
        "MI300X": (1300, rl.peak_flops(1216, 256, 2.1e9) / 1e12),
        "H100": (298, _H100.ridge_point("bf16")),
    }
    (right,) = (
        name
        for name, (published, recomputed) in claims.items()
        if within(published, recomputed, 0.005)
    )
    return right


def _opt_cache(tokens):
    """KV bytes of OPT-13B in fp16: 40 layers, 40 heads of 128."""
    return tokens * rl.Transformer(
        40, 5120, 40, 40, 128, 20480, 50272, gated=False
    ).kv_bytes_per_token("fp16")


QUESTIONS = [
    Question(
        "10.activation",
        "A text says that one bf16 activation of 8192 x 5120 numbers takes 80 MB. What happened there?",
        reference=lambda: _slip_of(
            80e6, rl.elementwise(8192 * 5120, "bf16", reads=1, writes=0).bytes_moved
        ),
        choices=(
            "it is right",
            "two decimal steps for two binary ones",
            "a multiply-add counted once",
            "bits for bytes",
        ),
        hint="Two bytes a number; then look at the ratio.",
    ),
    Question(
        "10.opt-cache",
        "The paper on vLLM gives OPT-13B (40 layers, 40 heads of 128, fp16) 800 KB of KV cache a token, and 1.6 GB "
        "for 2048 tokens. How many GB, of 1e9 byte, is the latter exactly?",
        unit="GB",
        reference=lambda: _opt_cache(2048),
        tolerance=0.002,
        slips={"elements-not-bytes": lambda: _opt_cache(2048) / rl.bytes_per_element("fp16")},
        hint="a token leaves 2 x 40 x 40 x 128 numbers of 2 byte.",
    ),
    Question(
        "10.mi355x",
        "A training tool that does not know the MI355X silently takes the A100's bf16 peak, 312 TFLOP/s, and reports "
        "563 % utilisation (Primus, pull request 772). What was it really?",
        unit="%",
        reference=lambda: 563 * _A100.peak("bf16") / _MI355X.peak("bf16"),
        slips={"sparse-peak": lambda: 563 * _A100.peak("bf16") / _MI355X.peak("bf16") / 2},
        hint='rl.machine("MI355X").peak("bf16") is the dense one.',
    ),
    Question(
        "10.l4",
        "A site gives the L4 125.3 TFLOP/s in bf16. Each of its SMs does 1024 FLOP a cycle, at 2.04 GHz. For how many SMs "
        "did the site count?",
        reference=lambda: round(125.3e12 / rl.peak_flops(1, 512, 2.04e9)),
        tolerance=0.005,
        hint=f"The card has {_L4.units}.",
    ),
    Question(
        "10.follows",
        "Four figures: A10, ridge point 208 from 125 TFLOP/s and 600 GB/s. A100 80GB SXM, ridge point 156 from "
        "312 TFLOP/s and 2039 GB/s. MI300X, 1300 TFLOP/s from 1216 cores x 256 multiply-adds x 2.1 GHz. H100 SXM, ridge point 298 "
        "from 989.4 TFLOP/s and 3.35 TB/s. Which one follows from its inputs to within half a percent?",
        choices=("A10", "A100", "MI300X", "H100"),
        reference=_that_follows,
        hint="Four divisions; round at the end.",
    ),
]
