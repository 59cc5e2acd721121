"""Questions on prefill and decode."""

import math
from dataclasses import replace

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import HOUSE, PRECISION_OF_WIDTH, smallest_whole, written

_HALF = rl.bytes_per_element("bf16")
_ROUNDED = rl.Machine("a chip", peaks={"bf16": 1.97e14}, bandwidths={"DRAM": 8.2e11})
_MLA = rl.transformer("deepseek-v3")


def _ffn_pair():
    """The two FFN products of a prefill with 8 prompts of 2048 tokens, width 4096, inner width
    16384, in bf16."""
    return rl.gemm(8 * 2048, 16384, 4096, "bf16") + rl.gemm(8 * 2048, 4096, 16384, "bf16")


def _cache_of_8192_tokens(kv_heads):
    """KV bytes of 8192 tokens of a model with 32 layers, heads of 128 and this many KV heads, in
    bf16."""
    return 8192 * rl.Transformer(32, 4096, 32, kv_heads, 128, 14336, 128256).kv_bytes_per_token(
        "bf16"
    )


def _attention_adds(tokens, mask=True, products=2):
    """Percent that attention's two products add to those with weights, for llama-2-7b and a prompt
    of so many tokens."""
    model = rl.transformer("llama-2-7b")
    works = model.prefill(1, tokens)
    attention = works.pop("attention").flops
    if not mask:
        attention = model.layers * rl.attention(1, 32, 32, tokens, tokens, 128, "bf16").flops
    return 100 * products / 2 * attention / sum(works.values()).flops


def _busy(chip, weights="int8", flop_share=1):
    """Percent of the time of one row through a 4096 x 4096 layer for which a chip computes."""
    work = rl.gemm(1, 4096, 4096, "bf16", b=weights)
    limit = rl.bound(rl.Work(flop_share * work.flops, work.bytes_moved), chip, "bf16")
    return 100 * limit.compute_time / limit.time


def _alone(parameters, precision="fp8", name="H200 SXM"):
    """Tokens/s at most of one user, the KV cache left out."""
    return rl.decode_tokens_per_second(
        parameters * rl.bytes_per_element(precision), rl.machine(name).bandwidth()
    )


def _per_token(model, precision="bf16"):
    return model.kv_bytes_per_token(precision)


def _as_full_heads(model):
    return rl.Transformer(
        model.layers,
        model.d_model,
        model.heads,
        model.heads,
        model.head_dim,
        model.d_ff,
        model.vocab,
    )


def _one_user():
    """The change after which llama-2-7b writes fastest for one user with 1024 tokens."""
    model = rl.transformer("llama-2-7b")
    faster = rl.Machine(
        "twice the FLOP/s", {"bf16": 2 * HOUSE.peak("bf16")}, {"DRAM": HOUSE.bandwidth()}
    )
    steps = {
        "an fp8 cache": (HOUSE, model.decode(1, 1024, kv="fp8")),
        "int8 weights": (HOUSE, model.decode(1, 1024, weights="int8")),
        "twice the FLOP/s": (faster, model.decode(1, 1024)),
    }
    return min(
        steps,
        key=lambda change: rl.time_in_sequence(steps[change][1].values(), steps[change][0], "bf16"),
    )


def _what_helps():
    """What was fastest on an H200, of what one step of llama-2-7b can do without its bytes in
    int4, its arithmetic, or the starts of its kernels from Python."""
    steps = measuring.load("h200_llama2_quick").select("decode")
    eager, graph = (
        next(step for step in steps if step.shape.batch == 1 and step.label == label)
        for label in ("eager", "graph")
    )
    eager_time, chip = eager.timing.median, rl.machine("H200 SXM")
    step = rl.bound(eager.work, chip, "bf16")
    narrow = rl.bytes_per_element("int4") / rl.bytes_per_element("bf16")
    times = {
        "int4 weights": eager_time - step.memory_time * (1 - narrow),
        "twice the FLOP/s": eager_time - step.compute_time / 2,
        "starting all its kernels by one call": graph.timing.median,
    }
    return min(times, key=times.get)


def _cache(tokens, layers, heads, group, head_dim, latent, element_bytes):
    model = rl.Transformer(
        layers, heads * head_dim, heads, heads // group, head_dim, 4, 2, kv_lora_rank=latent
    )
    return tokens * model.kv_bytes_per_token(PRECISION_OF_WIDTH[element_bytes])


def _step(batch, context, parameters, element_bytes, kv_per_token, peak, bandwidth):
    """The Bound of a whole step as one job."""
    moved = element_bytes * parameters + batch * context * kv_per_token
    return rl.Bound(rl.Work(2 * parameters * batch, moved), peak, bandwidth)


def _rate(batch, *rest):
    return batch / _step(batch, *rest).time


def _largest(memory, weight_bytes, context, kv_per_token, bandwidth, longest):
    def too_many(batch):
        held = weight_bytes + batch * context * kv_per_token
        return held > memory or rl.Bound(rl.Work(0, held), 1.0, bandwidth).memory_time > longest

    return smallest_whole(too_many) - 1


def _experts(tokens, experts, active, expert_bytes):
    """Through the library's decode step: what wider weights add to its bytes is what it reads of
    them."""
    model = rl.Transformer(1, 64, 1, 1, 64, 64, 2, experts=experts, experts_per_token=active)
    wide, narrow = (
        model.decode(tokens, 1, weights=name)["experts down"].bytes_moved
        for name in ("bf16", "fp8")
    )
    return (wide - narrow) / 64**2 * expert_bytes


def _batch_for(share, weight_bytes, context, kv_per_token):
    if share == 1:
        return math.inf
    cache = context * kv_per_token
    most = rl.decode_tokens_per_second(cache, 1.0)  # where the weights no longer count
    return float(
        smallest_whole(
            lambda batch: (
                rl.decode_tokens_per_second(weight_bytes + batch * cache, 1.0, batch)
                >= share * most
            )
        )
    )


def _long_prompt(tokens=65536):
    return NumberQuestion(
        "decode.x-long-prompt",
        "llama-2-7b (32 layers, width 4096, FFN 11,008, logits for the last token only) reads one "
        f"prompt of {written(tokens)} tokens. By how much do attention's two products, where a "
        "token looks back only, raise the FLOP of the products with weights?",
        unit="%",
        reference=lambda: _attention_adds(tokens),
        slips=[
            ("forgot-mask", lambda: _attention_adds(tokens, mask=False)),
            ("one-of-two-products", lambda: _attention_adds(tokens, products=1)),
        ],
        hint=(
            "a layer has 2 x 202 million FLOP of weights a token; its attention 4 x 4096 for each "
            "token that is looked at, on average half of them."
        ),
    )


def _fp8_tokens(billions=70):
    parameters = 1e9 * billions
    return NumberQuestion(
        "decode.x-fp8-tokens",
        f"{billions}e9 parameters in fp8 on an H200 SXM, one user, the KV cache left out. How many "
        "tokens a second at most?",
        unit="token/s",
        reference=lambda: _alone(parameters),
        slips=[
            ("wrong-width", lambda: _alone(parameters, "bf16")),
            ("wrong-chip", lambda: _alone(parameters, name="H100 SXM")),
        ],
        hint="every weight is read once for each token.",
    )


def _busy_asked(peak=None, bandwidth=None):
    chip, of = HOUSE, "the house chip"
    if peak is not None:
        chip = rl.Machine("a chip", {"bf16": 1e12 * peak}, {"DRAM": 1e12 * bandwidth})
        of = f"a chip of {peak} TFLOP/s and {bandwidth} TB/s"
    return NumberQuestion(
        "decode.x-decode-busy",
        f"One token goes through a 4096 x 4096 layer of {of}: weights in int8, "
        "everything else, the arithmetic too, in bf16. For what share of the time does the chip "
        "compute?",
        unit="%",
        reference=lambda: _busy(chip),
        slips=[
            ("mac-is-flop", lambda: _busy(chip, flop_share=0.5)),
            ("wrong-width", lambda: _busy(chip, "bf16")),
        ],
        hint=(
            f"2 x 4096² FLOP at {peak or 300} TFLOP/s, against one byte a weight at "
            f"{bandwidth or 2} TB/s."
        ),
    )


def _latent_asked(layers=_MLA.layers, latent=_MLA.kv_lora_rank):
    model = replace(_MLA, layers=layers, kv_lora_rank=latent)
    return NumberQuestion(
        "decode.x-mla",
        f"A model of {layers} layers keeps neither keys nor values. For each token and layer it "
        f"keeps one latent of {latent} numbers and 64 numbers on the position, for all its 128 "
        "heads together, in bf16. How large is the cache of one token?",
        unit="kB",
        reference=lambda: _per_token(model),
        tolerance=0.005,
        slips=[
            ("elements-not-bytes", lambda: _per_token(model, "fp8")),
            ("heads-not-kv-heads", lambda: _per_token(_as_full_heads(model))),
        ],
        hint=(
            f"{latent + 64} numbers a layer, and no factor 2: keys and values are made from the "
            "same latent."
        ),
    )


# with other numbers for each student
VARIED = (
    Varied(_long_prompt, lambda rng: {"tokens": 1024 * rng.randint(20, 120)}),
    Varied(_fp8_tokens, lambda rng: {"billions": rng.randint(7, 130)}),
    Varied(
        _busy_asked, lambda rng: {"peak": 20 * rng.randint(6, 40), "bandwidth": rng.randint(1, 6)}
    ),
    Varied(
        _latent_asked,
        lambda rng: {"layers": rng.randint(24, 96), "latent": 64 * rng.randint(4, 12)},
    ),
)

QUESTIONS = [
    NumberQuestion(
        "decode.ffn-time",
        "8 prompts of 2048 tokens go through a feed-forward block of an older kind, two products, "
        "4096 -> 16,384 -> 4096. How long does that take on the house chip in bf16, at least?",
        unit="ms",
        reference=lambda: rl.bound(_ffn_pair(), HOUSE, "bf16").time,
        slips=[
            ("mac-is-flop", lambda: rl.bound(_ffn_pair(), HOUSE, "bf16").time / 2),
            ("third-product", lambda: rl.bound(1.5 * _ffn_pair(), HOUSE, "bf16").time),
            ("wrong-peak", lambda: rl.bound(_ffn_pair(), HOUSE, "fp32").time),
            ("shorter-time", lambda: rl.bound(_ffn_pair(), HOUSE, "bf16").memory_time),
        ],
        hint="M is batch times tokens, 16,384; each product is 2 M N K; 300 TFLOP/s.",
    ),
    NumberQuestion(
        "decode.kv-heads",
        "32 layers, 32 query heads, 8 KV heads, head dimension 128, bf16: how large is the KV "
        "cache of 8192 tokens?",
        unit="GB",
        reference=lambda: _cache_of_8192_tokens(8),
        tolerance=0.005,
        slips=[
            ("heads-not-kv-heads", lambda: _cache_of_8192_tokens(32)),
            ("elements-not-bytes", lambda: _cache_of_8192_tokens(8) / _HALF),
        ],
        hint="2 (K and V) x layers x KV heads x head dimension x bytes, for each token.",
    ),
    NumberQuestion(
        "decode.critical-batch",
        "int8 weights, bf16 activations and products, a 4096 x 4096 layer, a chip of 197 TFLOP/s "
        "bf16 and 820 GB/s, all three matrices counted: how many sequences must a batch hold at "
        "least to be compute-bound? The smallest whole number.",
        reference=lambda: rl.critical_batch(4096, 4096, _ROUNDED, "bf16", b="int8"),
        tolerance=0,
        slips=[
            ("rule-for-exact", lambda: _ROUNDED.ridge_point("bf16") / 2),
            ("rule-for-exact", lambda: math.ceil(_ROUNDED.ridge_point("bf16") / 2)),
            ("wrong-width", lambda: rl.critical_batch(4096, 4096, _ROUNDED, "bf16")),
            ("wrong-width", lambda: _ROUNDED.ridge_point("bf16")),
        ],
        hint=(
            "the ridge is 240 FLOP/byte and a weight is 1 byte: about 120, and then the "
            "activations' own bytes. Round up."
        ),
        counts="sequences",
        rounded="up",
    ),
    ChoiceQuestion(
        "decode.slow-tokens",
        "A step of decode takes 35 ms. Its bytes over the bandwidth make 3 ms, its FLOP over the "
        "peak 0.02 ms. Which change can take the most off it?",
        choices=("int4 weights", "twice the FLOP/s", "starting all its kernels by one call"),
        reference=_what_helps,
        slips=[
            ("not-the-limit", lambda: "int4 weights"),
            ("not-the-limit", lambda: "twice the FLOP/s"),
        ],
        hint="32 of the 35 ms are neither bytes nor FLOP: kernel after kernel waits to be started.",
    ),
    _long_prompt(),
    _busy_asked(),
    _fp8_tokens(),
    _latent_asked(),
    ChoiceQuestion(
        "decode.x-one-user",
        "One user writes with llama-2-7b in bf16 on the house chip, 1024 tokens of context. What "
        "gets the next token sooner: an fp8 cache, int8 weights, or twice the FLOP/s?",
        reference=_one_user,
        choices=("an fp8 cache", "int8 weights", "twice the FLOP/s"),
        slips=[
            ("not-the-limit", lambda: "an fp8 cache"),
            ("not-the-limit", lambda: "twice the FLOP/s"),
        ],
        hint="13.5 GB of weights against 0.5 GB of cache, and the arithmetic is idle anyway.",
    ),
    FunctionQuestion(
        "decode.x-cache",
        "A function: bytes of the KV cache, for grouped queries and for a latent.",
        reference=_cache,
        tolerance=1e-6,
        inputs=lambda: [
            (4096, 32, 32, 4, 128, 0, 2),
            (1, 61, 128, 1, 128, 576, 2),
            (100, 2, 8, 8, 64, 0, 0.5),
        ],
        slips=[
            ("heads-not-kv-heads", lambda t, ls, h, group, *rest: _cache(t, ls, h, 1, *rest)),
            ("elements-not-bytes", lambda *args: _cache(*args) / args[6]),
        ],
        hint="a key and a value for each KV head, or one latent and nothing else.",
    ),
    FunctionQuestion(
        "decode.x-rate",
        "A function: tokens a second at most, weights, cache and arithmetic counted.",
        reference=_rate,
        tolerance=1e-6,
        inputs=lambda: [
            (1, 4096, 7e9, 2, 524288, 3e14, 2e12),
            (16, 4096, 7e9, 2, 524288, 3e14, 2e12),
            (400, 10, 7e9, 2, 1e5, 3e14, 2e12),
        ],
        slips=[
            ("mac-is-flop", lambda b, c, p, s, kv, peak, bw: _rate(b, c, p, s, kv, 2 * peak, bw)),
            (
                "elements-not-bytes",
                lambda b, c, p, s, kv, peak, bw: _rate(b, c, p, 1, kv, peak, bw),
            ),
        ],
        hint=(
            "the weights once, the cache for each sequence; the longer of two times; a token for "
            "each sequence."
        ),
    ),
    FunctionQuestion(
        "decode.x-largest-batch",
        "A function: the largest batch that fits into memory and waits no longer than `longest`; "
        "0 where none does.",
        reference=_largest,
        tolerance=1e-9,
        inputs=lambda: [
            (80e9, 14e9, 4096, 524288, 2e12, 0.03),
            (80e9, 14e9, 4096, 524288, 2e12, 1),
            (24e9, 26e9, 4096, 524288, 2e12, 1),
        ],
        slips=[
            ("one-of-two-limits", lambda m, w, c, kv, bw, t: _largest(m, w, c, kv, bw, math.inf)),
            ("one-of-two-limits", lambda m, w, c, kv, bw, t: _largest(bw * t, w, c, kv, bw, t)),
            ("round-down", lambda *args: _largest(*args) + 1.0),
        ],
        hint="two limits, each linear in the batch; round down, and a negative batch is none.",
    ),
    FunctionQuestion(
        "decode.x-experts",
        "A function: bytes of expert weights that a step is expected to read.",
        reference=_experts,
        tolerance=1e-6,
        inputs=lambda: [(1, 8, 2, 3e8), (16, 8, 2, 3e8), (64, 256, 8, 1e7)],
        slips=[
            ("one-token", lambda tokens, e, active, size: active * size),
            ("no-two-alike", lambda tokens, e, active, size: min(tokens * active, e) * size),
        ],
        hint="an expert is read unless all the tokens miss it; how likely does one token miss it?",
    ),
    FunctionQuestion(
        "decode.x-batch-for",
        "A function: the smallest batch with `share` of the tokens/s that no batch passes; "
        "math.inf where none has.",
        reference=_batch_for,
        tolerance=1e-9,
        inputs=lambda: [
            (0.9, 14e9, 4096, 524288),
            (0.5, 14e9, 1024, 131072),
            (1, 14e9, 4096, 524288),
        ],
        slips=[
            ("round-up", lambda share, *rest: max(1.0, _batch_for(share, *rest) - 1)),
            ("share-of-weights", lambda share, w, c, kv: float(math.ceil(share * w / (c * kv)))),
        ],
        hint=(
            "tokens/s tend to bandwidth over one sequence's cache. Divide by that: what is left "
            "depends on weights over cache only."
        ),
    ),
]
