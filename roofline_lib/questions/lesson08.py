"""Lesson 08: operators."""

import roofline_lib as rl
from roofline_lib.checks import Question

_CHIP = rl.machine("house chip")


def _add_norm(kept):
    """Percent of the bytes that one kernel saves over a residual add and an RMSNorm, [8192, 4096]
    in bf16; the sum itself is `kept`."""
    add, norm = rl.elementwise(8192 * 4096, "bf16"), rl.rms_norm(8192, 4096, "bf16")
    one_pass = 2.0 * 8192 * 4096
    return 100 * (1 if kept else 2) * one_pass / (add + norm).bytes_moved


def _scores(precision="bf16"):
    """Bytes that scores and probabilities add to attention over 8192 tokens with 32 heads of
    128."""
    apart, one = (
        rl.attention(1, 32, 32, 8192, 8192, 128, precision, flash=flash) for flash in (False, True)
    )
    return apart.bytes_moved - one.bytes_moved


def _shared_keys(kv_heads=8, kv="fp8"):
    return rl.attention(1, 64, kv_heads, 1, 16384, 128, "bf16", flash=True, kv=kv).intensity


def _share(tokens, causal=True):
    work, full = (
        rl.attention(1, 1, 1, tokens, tokens, 64, causal=causal).flops for causal in (True, False)
    )
    return 100 * work / full


def _epilogues():
    """{operator: the share of its time that merging the ReLU after it saves}, in bf16 on the house
    chip."""
    pairs = {
        "a product with n = 4096": (rl.gemm(4096, 4096, 4096, "bf16"), 4096 * 4096),
        "the same with one row": (rl.gemm(1, 4096, 4096, "bf16"), 4096),
        "an RMSNorm of 4096 rows": (rl.rms_norm(4096, 4096, "bf16"), 4096 * 4096),
    }
    return {
        name: 1
        - rl.bound(work, _CHIP, "bf16").time
        / rl.time_in_sequence([work, rl.elementwise(n, "bf16", 1, 1)], _CHIP, "bf16")
        for name, (work, n) in pairs.items()
    }


QUESTIONS = [
    Question(
        "08.add-norm",
        "A block adds its result to the residual stream (two arrays in, one out), then RMSNorm reads the sum (one "
        "in, one out). All are [8192, 4096] in bf16, and the sum itself is needed later. What share of the time does one kernel save?",
        unit="%",
        reference=lambda: _add_norm(kept=True),
        slips={"kept-result": lambda: _add_norm(kept=False)},
        hint="five crossings apart; fused, two arrays come in and two go out.",
    ),
    Question(
        "08.scores",
        "One sequence of 8192 tokens, 32 heads of 128, bf16, attention step by step. How many bytes of its traffic are "
        "scores and probabilities?",
        unit="GB",
        reference=_scores,
        tolerance=0.005,
        slips={
            "four-passes": lambda: _scores() / 4,
            "elements-not-bytes": lambda: _scores() / 2,
            "wrong-width": lambda: _scores("fp32"),
        },
        hint="32 heads x 8192 x 8192 numbers, out and in as scores, out and in as probabilities.",
    ),
    Question(
        "08.shared-keys",
        "Decode with 64 query heads on 8 KV heads of 128 and 16,384 tokens of context; the KV cache is in fp8, "
        "queries and results in bf16. What is attention's intensity?",
        unit="FLOP/byte",
        reference=_shared_keys,
        slips={
            "heads-not-kv-heads": lambda: _shared_keys(kv_heads=64),
            "wrong-width": lambda: _shared_keys(kv="bf16"),
            "mac-is-flop": lambda: _shared_keys() / 2,
        },
        hint="8 queries share each key of 1 byte a number; bf16 alone would give about 8.",
    ),
    Question(
        "08.causal",
        "A causal mask over 16 tokens: what share of the 16 x 16 scores is work?",
        unit="%",
        reference=lambda: _share(16),
        tolerance=0.005,
        slips={"half-is-the-limit": lambda: 50.0, "forgot-self": lambda: 100 - _share(16)},
        hint="1 + 2 + ... + 16 of 256.",
    ),
    Question(
        "08.mxfp4",
        "How large are 70 billion weights in MXFP4, 32 numbers of 4 bits to a scale of 8?",
        unit="GB",
        reference=lambda: 70e9 * rl.bytes_per_element("mxfp4"),
        slips={
            "forgot-scale": lambda: 70e9 * rl.bytes_per_element("fp4"),
            "elements-not-bytes": lambda: 70e9,
        },
        hint="4.25 bits a number.",
    ),
    Question(
        "08.which-gains",
        "In bf16 on the house chip a ReLU follows each of these, and is merged into its kernel. Which one saves the "
        "largest share of its time?",
        reference=lambda: max(_epilogues(), key=_epilogues().get),
        choices=tuple(_epilogues()),
        hint="Memory-bound is not enough: with one row the bytes are weights, and the ReLU has only 4096 numbers to move.",
    ),
]
