"""Lesson 04: prefill and decode."""

import roofline_lib as rl
from roofline_lib.checks import Question

_CHIP = rl.machine("house chip")
_HALF = rl.bytes_per_element("bf16")


def _ffn_pair():
    """The two FFN products of a prefill with 8 prompts of 2048 tokens, width 4096, inner width
    16384, in bf16."""
    return rl.gemm(8 * 2048, 16384, 4096, "bf16") + rl.gemm(8 * 2048, 4096, 16384, "bf16")


def _decode():
    return rl.gemm(1, 4096, 4096, "bf16")


def _cache(kv_heads):
    """KV bytes of 8192 tokens of a model with 32 layers, heads of 128 and this many KV heads, in
    bf16."""
    return 8192 * rl.Transformer(32, 4096, 32, kv_heads, 128, 14336, 128256).kv_bytes_per_token(
        "bf16"
    )


QUESTIONS = [
    Question(
        "04.ffn-flops",
        "8 prompts of 2048 tokens, width 4096, FFN 4096 -> 16384 -> 4096: how many FLOP do its two products take?",
        unit="TFLOP",
        reference=lambda: _ffn_pair().flops,
        slips={"mac-is-flop": lambda: _ffn_pair().flops / 2},
        hint="M is batch times tokens, 16384; each product is 2 M N K.",
    ),
    Question(
        "04.ffn-time",
        "How long do those two products take on the house chip in bf16, at least?",
        unit="ms",
        reference=lambda: rl.bound(_ffn_pair(), _CHIP, "bf16").time,
        slips={
            "mac-is-flop": lambda: rl.bound(_ffn_pair(), _CHIP, "bf16").time / 2,
            "wrong-width": lambda: rl.bound(_ffn_pair(), _CHIP, "fp32").time,
        },
        hint="compute-bound: FLOP over 300 TFLOP/s.",
    ),
    Question(
        "04.decode-time",
        "One token through a 4096 x 4096 bf16 layer on the house chip (2 TB/s): how long at least?",
        unit="µs",
        reference=lambda: rl.bound(_decode(), _CHIP, "bf16").time,
        slips={
            "wrong-width": lambda: 2 * rl.bound(_decode(), _CHIP, "bf16").time,
            "elements-not-bytes": lambda: rl.bound(_decode(), _CHIP, "bf16").time / _HALF,
        },
        hint="memory-bound: the weights' bytes over the bandwidth.",
    ),
    Question(
        "04.kv-heads",
        "32 layers, 32 query heads, 8 KV heads, head dimension 128, bf16: how large is the KV cache of 8192 tokens?",
        unit="GB",
        reference=lambda: _cache(8),
        tolerance=0.005,
        slips={
            "heads-not-kv-heads": lambda: _cache(32),
            "elements-not-bytes": lambda: _cache(8) / _HALF,
        },
        hint="2 (K and V) x layers x KV heads x head dimension x bytes, for each token.",
    ),
    Question(
        "04.critical-batch",
        "int8 weights, bf16 activations and products, a 4096 x 4096 layer, a chip of 197 TFLOP/s bf16 and "
        "820 GB/s, all three matrices counted: how many sequences must a batch hold at least to be compute-bound? The smallest whole "
        "number.",
        reference=lambda: rl.critical_batch(4096, 4096, _ROUNDED, "bf16", b="int8"),
        tolerance=0,
        slips={
            "rule-for-exact": lambda: _ROUNDED.ridge_point("bf16") / 2,
            "wrong-width": lambda: rl.critical_batch(4096, 4096, _ROUNDED, "bf16"),
        },
        hint="the ridge is 240 FLOP/byte and a weight is 1 byte: about 120, and then the activations' own bytes. Round up.",
    ),
    Question(
        "04.slow-tokens",
        "A server's first token comes as fast as the roofline says, but its decode runs at a third of bandwidth "
        "/ bytes. What do you look at first?",
        choices=("a slow GPU", "many small kernels and scattered KV reads", "too few FLOP/s"),
        reference=lambda: "many small kernels and scattered KV reads",
        hint="prefill near its bound says that the chip is healthy; decode is made of short kernels that each read little.",
    ),
]

_ROUNDED = rl.Machine("a chip", peaks={"bf16": 1.97e14}, bandwidths={"DRAM": 8.2e11})
