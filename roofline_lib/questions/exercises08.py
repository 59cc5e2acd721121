"""Exercises of lesson 08: practice values and choices, and what the marked functions are checked
with on the spot."""

import roofline_lib as rl
from roofline_lib.checks import Question
from roofline_lib.model import fused

_NAMES = {4: "fp32", 2: "bf16", 1: "fp8", 0.5: "int4"}
_HOUSE = rl.machine("house chip")


def _gelu(precision="bf16"):
    """Bytes that one kernel saves over eight."""
    step = rl.elementwise(8192 * 16384, precision, reads=1)
    return (8 * step).bytes_moved - fused(*8 * [step], bytes_moved=step.bytes_moved).bytes_moved


def _tiles(tokens, head_dim, queries, precision, causal, heads=1):
    """Bytes of attention tile by tile, each a small attention of its own."""
    firsts = range(0, tokens, queries)
    tiles = [
        (min(queries, tokens - first), min(first + queries, tokens) if causal else tokens)
        for first in firsts
    ]
    return sum(
        rl.attention(1, heads, heads, rows, keys, head_dim, precision, flash=True).bytes_moved
        for rows, keys in tiles
    )


def _chunk(new, context):
    """Percent of the scores of the last `new` queries that the mask leaves."""
    left, full = (
        rl.attention(1, 1, 1, new, context, 64, causal=causal).flops for causal in (True, False)
    )
    return 100 * left / full


def _narrow(weights):
    return (
        rl.bound(rl.gemm(1, 28672, 8192, "bf16"), _HOUSE, "bf16").time
        / rl.bound(rl.gemm(1, 28672, 8192, "bf16", b=weights), _HOUSE, "bf16").time
    )


def _raises():
    """The change that raises decode attention's intensity most."""
    changes = {
        "twice the context": (1, 8, 1, 1, 16384),
        "twice the users": (2, 8, 1, 1, 8192),
        "twice the query heads a KV head": (1, 16, 1, 1, 8192),
    }
    return max(
        changes,
        key=lambda change: rl.attention(*changes[change], 128, "bf16", flash=True).intensity,
    )


def _crossings(steps, needed, elements, element_bytes):
    """Each array's way followed through the steps."""
    name, on_chip, crossed = _NAMES[element_bytes], set(), 0
    apart = sum(
        rl.elementwise(elements, name, reads=len(set(inputs)), writes=1).bytes_moved
        for inputs, _ in steps
    )
    for inputs, output in steps:
        crossed += len(set(inputs) - on_chip) + (output in needed)
        on_chip |= {*inputs, output}
    return [apart, rl.elementwise(elements, name, reads=crossed, writes=0).bytes_moved]


def _step(heads, kv_heads, new_tokens, context, activation_bytes, kv_bytes, causal=True):
    return rl.attention(
        1,
        heads,
        kv_heads,
        new_tokens,
        context,
        64,
        _NAMES[activation_bytes],
        flash=True,
        causal=causal,
        kv=_NAMES[kv_bytes],
    ).intensity


def _tiled_attention(heads, tokens, head_dim, queries, element_bytes, causal=True):
    return _tiles(tokens, head_dim, queries, _NAMES[element_bytes], causal, heads)


def _narrow_gain(rows, inputs, outputs, bits, block, scale_bits, peak, bandwidth):
    wide, eight, four = (
        rl.gemm(rows, outputs, inputs, "bf16", b=name) for name in ("bf16", "int8", "int4")
    )
    bit = (eight.bytes_moved - four.bytes_moved) / 4  # of every weight, in bytes
    scales = -(-inputs // block) * outputs * scale_bits / 8
    narrow = rl.Work(wide.flops, eight.bytes_moved + (bits - 8) * bit + scales)
    return rl.Bound(wide, peak, bandwidth).time / rl.Bound(narrow, peak, bandwidth).time


def _fastest_plan(first_bytes, steps, room, launch, peak, bandwidth):
    """From the end: the best that can follow each cut."""
    works = [
        rl.Work(flops, side + result + (steps[i - 1][2] if i else first_bytes))
        for i, (flops, side, result, _) in enumerate(steps)
    ]
    after = {len(steps): 0.0}
    for i in reversed(range(len(steps))):
        found = []
        for j in range(i + 1, len(steps) + 1):
            if sum(step[3] for step in steps[i:j]) > room:
                break
            # written and read again, were they apart
            kept = sum(2 * step[2] for step in steps[i : j - 1])
            kernel = fused(
                *works[i:j], bytes_moved=sum(work.bytes_moved for work in works[i:j]) - kept
            )
            found.append(launch + rl.Bound(kernel, peak, bandwidth).time + after[j])
        after[i] = min(found)
    return after[0]


QUESTIONS = [
    Question(
        "08.x-gelu",
        "An activation function is spelled out in eight kernels; each reads and writes all [8192, 16384] numbers, in "
        "bf16. How many GB of traffic does one kernel save?",
        unit="GB",
        reference=_gelu,
        tolerance=0.005,
        slips={"wrong-width": lambda: _gelu("fp32"), "elements-not-bytes": lambda: _gelu("int8")},
        hint="sixteen crossings become two.",
    ),
    Question(
        "08.x-trips",
        "Attention in one kernel over 8192 tokens, one head of 128, bf16, no mask. Keys and values make one trip for "
        "every 128 queries. How many MB are moved?",
        unit="MB",
        tolerance=0.005,
        reference=lambda: _tiles(8192, 128, 128, "bf16", causal=False),
        slips={
            "wrong-width": lambda: _tiles(8192, 128, 128, "fp32", causal=False),
            "elements-not-bytes": lambda: _tiles(8192, 128, 128, "int8", causal=False),
        },
        hint="queries and results once, keys and values 64 times; each of the four is 2.1 MB.",
    ),
    Question(
        "08.x-chunk",
        "24 tokens are in the cache, 8 new ones come as a chunk. Under the causal mask, what share of the 8 x 32 "
        "scores is work?",
        unit="%",
        reference=lambda: _chunk(8, 32),
        tolerance=0.005,
        slips={
            "half-is-the-limit": lambda: 50.0,
            "forgot-self": lambda: _chunk(8, 32) - 100 * 8 / (8 * 32),
        },
        hint="25 + 26 + ... + 32 of 256.",
    ),
    Question(
        "08.x-narrow",
        "One row goes through a layer [8192] -> [28672] of the house chip, in bf16. How many times as fast is it at "
        "the roof with its weights in MXFP4?",
        reference=lambda: _narrow("mxfp4"),
        tolerance=0.005,
        slips={"forgot-scale": lambda: _narrow("fp4")},
        hint="16 bits a weight against 4.25.",
    ),
    Question(
        "08.x-raises",
        "Decode attention in bf16, 8 query heads on one KV head, 8192 tokens of context. Which change raises its "
        "intensity most?",
        reference=_raises,
        choices=("twice the context", "twice the users", "twice the query heads a KV head"),
        hint="bS/(b + S): which of the two is the small one, and who shares a trip with whom?",
    ),
    Question(
        "08.x-crossings",
        "A function: [bytes of steps in kernels of their own, bytes in one kernel].",
        reference=_crossings,
        tolerance=1e-6,
        inputs=lambda: [
            ([[["x", "y"], "sum"], [["sum", "g"], "out"]], ["sum", "out"], 10**6, 2),
            ([[["x"], "a"], [["a", "a"], "b"], [["b", "x"], "c"]], ["c"], 1000, 4),
        ],
        slips={
            "kept-result": lambda steps, needed, *rest: _crossings(steps, [steps[-1][1]], *rest),
            "elements-not-bytes": lambda *args: [moved / args[3] for moved in _crossings(*args)],
        },
        hint="apart: distinct inputs and one output a step. Fused: what comes from outside, once, and what is needed.",
    ),
    Question(
        "08.x-step-intensity",
        "A function: FLOP/byte of causal attention for the last few tokens of a text.",
        reference=_step,
        tolerance=1e-6,
        inputs=lambda: [(32, 8, 1, 4096, 2, 2), (32, 8, 8, 4096, 2, 2), (64, 8, 512, 1024, 2, 1)],
        slips={
            "causal-half": lambda *args: _step(*args, causal=False),
            "mac-is-flop": lambda *args: _step(*args) / 2,
            "heads-not-kv-heads": lambda heads, kv_heads, *rest: _step(heads, heads, *rest),
        },
        hint="the first of the new tokens sees context - new_tokens + 1 keys, the last one all of them.",
    ),
    Question(
        "08.x-tiled-attention",
        "A function: bytes of causal attention in tiles of queries.",
        reference=_tiled_attention,
        tolerance=1e-6,
        inputs=lambda: [(1, 1024, 64, 128, 2), (1, 1024, 64, 1024, 2), (8, 1000, 128, 128, 1)],
        slips={
            "causal-half": lambda *args: _tiled_attention(*args, causal=False),
            "elements-not-bytes": lambda *args: _tiled_attention(*args) / args[4],
        },
        hint="a tile that ends with token t sends t keys and t values past; the last one ends with the text.",
    ),
    Question(
        "08.x-narrow-gain",
        "A function: how many times as fast a layer gets with weights in a block format.",
        reference=_narrow_gain,
        tolerance=1e-6,
        inputs=lambda: [
            (1, 4096, 4096, 4, 32, 8, 3e14, 2e12),
            (100, 4096, 4096, 4, 32, 8, 3e14, 2e12),
            (1, 1000, 4096, 4, 128, 16, 3e14, 2e12),
        ],
        slips={
            "forgot-scale": lambda rows, inputs, outputs, bits, block, scale, *rest: _narrow_gain(
                rows, inputs, outputs, bits, block, 0, *rest
            )
        },
        hint="bytes of the weights: bits, and a scale for each block or part of one; then two times for each format.",
    ),
    Question(
        "08.x-fastest-plan",
        "A function: the least seconds of a chain of steps cut into kernels.",
        reference=_fastest_plan,
        tolerance=1e-6,
        inputs=lambda: [
            (4, [[0, 0, 4, 1], [2, 0, 4, 1]], 1, 0, 1, 1),
            (10, [[0, 0, 1, 1], [0, 0, 9, 1], [0, 0, 9, 1]], 2, 0, 1, 1),
            (10, [[20, 0, 9, 1], [0, 0, 9, 1], [0, 0, 9, 1]], 3, 2, 1, 1),
        ],
        hint="as with brackets: the best plan of the first j steps ends in some kernel i to j; before it stands a best plan too.",
    ),
]
