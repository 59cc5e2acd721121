"""Questions on attention."""

import numpy as np

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import PRECISION_OF_WIDTH, written


def _scores(precision="bf16"):
    """Bytes that scores and probabilities add to attention over 8192 tokens with 32 heads of
    128."""
    apart, one = (
        rl.attention(1, 32, 32, 8192, 8192, 128, precision, flash=flash) for flash in (False, True)
    )
    return apart.bytes_moved - one.bytes_moved


def _shared_keys(kv_heads=8, kv="fp8"):
    return rl.attention(1, 64, kv_heads, 1, 16384, 128, "bf16", flash=True, kv=kv).intensity


def _causal_share(tokens, causal=True):
    work, full = (
        rl.attention(1, 1, 1, tokens, tokens, 64, causal=causal).flops for causal in (True, False)
    )
    return 100 * work / full


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


def _step(heads, kv_heads, new_tokens, context, activation_bytes, kv_bytes, causal=True):
    return rl.attention(
        1,
        heads,
        kv_heads,
        new_tokens,
        context,
        64,
        PRECISION_OF_WIDTH[activation_bytes],
        flash=True,
        causal=causal,
        kv=PRECISION_OF_WIDTH[kv_bytes],
    ).intensity


def _tiled_attention(heads, tokens, head_dim, queries, element_bytes, causal=True):
    return _tiles(tokens, head_dim, queries, PRECISION_OF_WIDTH[element_bytes], causal, heads)


def _window_share(tokens, window):
    """Percent of the causal work that a window leaves."""
    narrow, full = (
        rl.attention(1, 1, 1, tokens, tokens, 64, causal=True, window=keys).flops
        for keys in (window, None)
    )
    return 100 * narrow / full


def _kept(tokens, window):
    """Bytes of keys and values that 32 layers keep, every second one with a window."""
    model = rl.Transformer(
        layers=32,
        d_model=4096,
        heads=32,
        kv_heads=8,
        head_dim=128,
        d_ff=14336,
        vocab=32000,
        window=window,
        windowed_layers=16,
    )
    return model.kv_bytes(1, tokens, "bf16")


def _looks_back(heads, tokens, head_dim, window):
    return rl.attention(1, heads, heads, tokens, tokens, head_dim, causal=True, window=window).flops


def _merge(top, weight, mix, other_top, other_weight, other_mix):
    """The state of all keys from those of two halves."""
    highest = max(top, other_top)
    mine, theirs = np.exp(top - highest), np.exp(other_top - highest)
    return [
        float(highest),
        float(mine * weight + theirs * other_weight),
        float(mine * mix + theirs * other_mix),
    ]


def _kept_asked(tokens=131072, window=4096):
    return NumberQuestion(
        "attention.x-kept",
        "A model of 32 layers keeps keys and values of 8 KV heads of 128 in bf16. Every second "
        f"layer has a window of {window} tokens. How many GB does one sequence of "
        f"{written(tokens)} tokens keep?",
        unit="GB",
        reference=lambda: _kept(tokens, window),
        tolerance=0.005,
        slips=[
            ("every-layer", lambda: _kept(window, window)),
            ("no-window", lambda: _kept(tokens, tokens)),
            ("elements-not-bytes", lambda: _kept(tokens, window) / 2),
        ],
        hint=(f"16 layers of {written(tokens)} keys and 16 of {window}, and as many values."),
    )


def _trips_asked(tokens=8192, queries=128):
    return NumberQuestion(
        "attention.x-trips",
        f"Attention in one kernel over {tokens} tokens, one head of 128, bf16, no mask. Keys and "
        f"values make one trip for every {queries} queries. How many MB are moved?",
        unit="MB",
        tolerance=0.005,
        reference=lambda: _tiles(tokens, 128, queries, "bf16", causal=False),
        slips=[
            ("wrong-width", lambda: _tiles(tokens, 128, queries, "fp32", causal=False)),
            ("elements-not-bytes", lambda: _tiles(tokens, 128, queries, "int8", causal=False)),
        ],
        hint=(
            f"queries and results once, keys and values {tokens // queries} times; each of the "
            f"four is {256e-6 * tokens:.1f} MB."
        ),
    )


def _chunk_asked(cached=24, new=8):
    whole = cached + new
    return NumberQuestion(
        "attention.x-chunk",
        f"{cached} tokens are in the cache, {new} new ones come as a chunk. Under the causal "
        f"mask, what share of the {new} x {whole} scores is work?",
        unit="%",
        reference=lambda: _chunk(new, whole),
        tolerance=0.005,
        slips=[
            ("half-is-the-limit", lambda: 50.0),
            ("forgot-self", lambda: _chunk(new, whole) - 100 / whole),
        ],
        hint=f"{cached + 1} + {cached + 2} + ... + {whole} of {new * whole}.",
    )


# with other numbers for each student
VARIED = (
    Varied(
        _kept_asked,
        lambda rng: {
            "tokens": 4096 * rng.randint(12, 60),
            "window": rng.choice([1024, 2048, 4096, 8192]),
        },
    ),
    Varied(
        _trips_asked,
        lambda rng: {"tokens": 1024 * rng.randint(3, 9), "queries": rng.choice([64, 128, 256])},
    ),
    Varied(_chunk_asked, lambda rng: {"cached": rng.randint(8, 50), "new": rng.randint(8, 60)}),
)

QUESTIONS = [
    NumberQuestion(
        "attention.scores",
        "One sequence of 8192 tokens, 32 heads of 128, bf16, attention step by step. How many "
        "bytes of its traffic are scores and probabilities?",
        unit="GB",
        reference=_scores,
        tolerance=0.005,
        slips=[
            ("four-passes", lambda: _scores() / 4),
            ("elements-not-bytes", lambda: _scores() / 2),
            ("wrong-width", lambda: _scores("fp32")),
        ],
        hint="32 heads x 8192 x 8192 numbers, out and in as scores, out and in as probabilities.",
    ),
    NumberQuestion(
        "attention.shared-keys",
        "Decode with 64 query heads on 8 KV heads of 128 and 16,384 tokens of context; the KV "
        "cache is in fp8, queries and results in bf16. What is attention's intensity?",
        unit="FLOP/byte",
        reference=_shared_keys,
        slips=[
            ("heads-not-kv-heads", lambda: _shared_keys(kv_heads=64)),
            ("wrong-width", lambda: _shared_keys(kv="bf16")),
            ("mac-is-flop", lambda: _shared_keys() / 2),
        ],
        hint="8 queries share each key of 1 byte a number; bf16 alone would give about 8.",
    ),
    NumberQuestion(
        "attention.causal",
        "A causal mask over 16 tokens: what share of the 16 x 16 scores is work?",
        unit="%",
        reference=lambda: _causal_share(16),
        tolerance=0.005,
        slips=[
            ("half-is-the-limit", lambda: 50.0),
            ("forgot-self", lambda: 100 - _causal_share(16)),
        ],
        hint="1 + 2 + ... + 16 of 256.",
    ),
    NumberQuestion(
        "attention.window",
        "In a model that writes, a layer looks back over the last 4096 tokens, the token itself "
        "among them. Of a causal layer's work for a prompt of 32,768 tokens, what share is left?",
        unit="%",
        reference=lambda: _window_share(32768, 4096),
        slips=[
            ("whole-square", lambda: 100 * 4096 / 32768),
            ("whole-square", lambda: _window_share(32768, 4096) * _causal_share(32768) / 100),
            ("window-start", lambda: 100 * 4096 * 32768 / (32768 * 32769 / 2)),
        ],
        hint="1 + 2 + ... + 4096, then 4096 for each later token, of 1 + 2 + ... + 32,768.",
    ),
    _trips_asked(),
    _chunk_asked(),
    ChoiceQuestion(
        "attention.x-raises",
        "Decode attention in bf16, 8 query heads on one KV head, 8192 tokens of context. Which "
        "change raises its intensity most?",
        reference=_raises,
        choices=("twice the context", "twice the users", "twice the query heads a KV head"),
        slips=[
            ("larger-side", lambda: "twice the context"),
            ("own-keys", lambda: "twice the users"),
        ],
        hint="qT/(q + T): which of the two is the small one, and who shares a trip with whom?",
    ),
    FunctionQuestion(
        "attention.x-step-intensity",
        "A function: FLOP/byte of causal attention for the last few tokens of a text.",
        reference=_step,
        tolerance=1e-6,
        inputs=lambda: [(32, 8, 1, 4096, 2, 2), (32, 8, 8, 4096, 2, 2), (64, 8, 512, 1024, 2, 1)],
        slips=[
            ("causal-half", lambda *args: _step(*args, causal=False)),
            ("mac-is-flop", lambda *args: _step(*args) / 2),
            ("heads-not-kv-heads", lambda heads, kv_heads, *rest: _step(heads, heads, *rest)),
        ],
        hint=(
            "the first of the new tokens sees context - new_tokens + 1 keys, the last one all of "
            "them."
        ),
    ),
    FunctionQuestion(
        "attention.x-tiled-attention",
        "A function: bytes of causal attention in tiles of queries.",
        reference=_tiled_attention,
        tolerance=1e-6,
        inputs=lambda: [(1, 1024, 64, 128, 2), (1, 1024, 64, 1024, 2), (8, 1000, 128, 128, 1)],
        slips=[
            ("causal-half", lambda *args: _tiled_attention(*args, causal=False)),
            ("elements-not-bytes", lambda *args: _tiled_attention(*args) / args[4]),
        ],
        hint=(
            "a tile that ends with token t sends t keys and t values past; the last one ends with "
            "the text."
        ),
    ),
    _kept_asked(),
    FunctionQuestion(
        "attention.x-merge",
        "A function: [largest score, sum, mix] of all keys from those of two halves.",
        reference=_merge,
        tolerance=1e-6,
        inputs=lambda: [(3, 2, 5, 5, 1.5, 4), (5, 1.5, 4, 3, 2, 5), (0, 1, -2, 0, 3, 1)],
        slips=[
            (
                "not-shrunk",
                lambda t, w, m, t2, w2, m2: [float(max(t, t2)), float(w + w2), float(m + m2)],
            ),
            (
                "mean-of-two",
                lambda *halves: [*_merge(*halves)[:2], (halves[2] + halves[5]) / 2],
            ),
        ],
        hint="each half was made with its own largest score: multiply by e^(own - common).",
    ),
    FunctionQuestion(
        "attention.x-looks-back",
        "A function: FLOP of causal attention over a prompt, with a window.",
        reference=_looks_back,
        tolerance=1e-6,
        inputs=lambda: [(32, 8192, 128, 1024), (1, 100, 64, 100), (8, 50, 64, 4096)],
        slips=[
            (
                "window-start",
                lambda heads, tokens, d, window: 4 * heads * d * tokens * min(tokens, window),
            ),
            ("mac-is-flop", lambda *args: _looks_back(*args) / 2),
        ],
        hint="token t sees t keys, itself among them, and at most the window.",
    ),
]
