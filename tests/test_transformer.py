"""Transformers: the Work of prefill and decode against matrices that are really there and against
rules of thumb that must nearly hold."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.layers import GROUPS

SMALL = dict(layers=3, d_model=64, heads=8, kv_heads=2, head_dim=16, d_ff=96, vocab=500)
PLAIN = rl.Transformer(**SMALL)
MIXED = rl.Transformer(
    **SMALL,
    experts=8,
    experts_per_token=2,
    shared_experts=1,
    shared_d_ff=48,
    dense_layers=1,
    dense_d_ff=200,
)
LATENT = rl.Transformer(
    **SMALL | {"kv_heads": 8}, q_lora_rank=24, kv_lora_rank=32, rope_head_dim=8, v_head_dim=12
)
WINDOWED = replace(PLAIN, window=5, windowed_layers=2)


def total(works):
    return sum(works.values())


def test_parameters_are_those_of_the_arrays():
    """The arrays of a gated, grouped-query model, listed by hand."""
    layer = [(64, 128), (64, 32), (64, 32), (128, 64), (64, 96), (64, 96), (96, 64), (64,), (64,)]
    assert PLAIN.parameters == sum(
        np.zeros(shape).size for shape in 3 * layer + [(500, 64), (64, 500), (64,)]
    )
    assert (
        rl.Transformer(**SMALL, tied=True, gated=False).parameters
        == PLAIN.parameters - 500 * 64 - 3 * 64 * 96
    )
    moe = 8 * 3 * 64 * 96 + 3 * 64 * 48 + 64 * 8
    assert MIXED.parameters == PLAIN.parameters + 2 * (moe - 3 * 64 * 96) + 3 * 64 * (200 - 96)
    assert PLAIN.weight_bytes("int4") == PLAIN.parameters / 2


def test_parameters_of_a_latent_model_are_those_of_its_arrays():
    """Queries through a latent of 24, keys and values from one of 32 and 8 numbers of position;
    heads of 16 + 8, values of 12."""
    attention = [(64, 24), (24, 8 * 24), (64, 32 + 8), (32, 8 * (16 + 12)), (8 * 12, 64)]
    layer = [*attention, (64, 96), (64, 96), (96, 64), (64,), (64,), (24,), (32,)]
    arrays = 3 * layer + [(500, 64), (64, 500), (64,)]
    assert LATENT.parameters == sum(np.zeros(shape).size for shape in arrays)
    assert LATENT.kv_bytes_per_token("int8") == 3 * (32 + 8)


@pytest.mark.parametrize(
    "field, value, more",
    [
        ("norm_biases", True, (3 * 2 + 1) * 64),
        ("norms_per_layer", 4, 3 * 2 * 64),
        ("qk_norm", True, 3 * 2 * 16),
        ("qkv_biases", True, 3 * (8 + 2 + 2) * 16),
        ("attention_biases", True, 3 * ((8 + 2 + 2) * 16 + 64)),
        ("ffn_biases", True, 3 * (96 + 96 + 64)),
        ("learned_positions", 10, 10 * 64),
        ("extra_parameters", 7, 7),
    ],
)
def test_what_each_field_adds(field, value, more):
    assert replace(PLAIN, **{field: value}).parameters == PLAIN.parameters + more


@pytest.mark.parametrize("name", rl.transformers())
def test_decode_reads_every_weight_once(name):
    """With a batch that reaches every expert, a step reads all parameters but the looked-up
    embeddings, norms, biases and extras."""
    model = rl.transformer(name)
    small = 0.02 * model.parameters  # norms, biases and positions are less than this
    wide, narrow = (
        sum(model.decode(1e6, 1, weights=weights).values()).bytes_moved
        for weights in ("bf16", "int8")
    )
    embeddings = 0 if model.tied else model.vocab * model.d_model
    # bf16 less int8 is one byte a weight
    assert wide - narrow == pytest.approx(model.parameters - embeddings, abs=small)


@pytest.mark.parametrize(
    "model", [PLAIN, MIXED, LATENT, rl.transformer("deepseek-v3"), rl.transformer("llama-3-70b")]
)
def test_decode_at_a_batch_of_one_touches_only_the_active_weights(model):
    works = model.decode(1, 1)
    # a multiply-add for each weight that is used
    matrices = sum(work.flops for name, work in works.items() if name != "attention") / 2
    wide, narrow = (
        sum(model.decode(1, 1, weights=weights).values()).bytes_moved
        for weights in ("bf16", "int8")
    )
    assert wide - narrow == pytest.approx(matrices, rel=1e-9)


@pytest.mark.parametrize("model", [PLAIN, MIXED, LATENT])
def test_decode_reads_the_cache_once_per_step(model):
    for kv in ("bf16", "fp8"):
        long, short = (
            sum(model.decode(4, context, kv=kv).values()).bytes_moved for context in (2000, 1000)
        )
        assert long - short == pytest.approx(4 * 1000 * model.kv_bytes_per_token(kv))


@pytest.mark.parametrize("model", [PLAIN, MIXED])
def test_prefill_is_decode_token_by_token(model):
    """Causal attention of t tokens does the FLOP of t decode steps; only the logits of all but the
    last token are saved."""
    tokens = 7
    steps = sum(sum(model.decode(2, context).values()) for context in range(1, tokens + 1))
    prefill = model.prefill(2, tokens)
    assert sum(prefill.values()).flops + (tokens - 1) * prefill["logits"].flops == pytest.approx(
        steps.flops
    )
    assert sum(prefill.values()).intensity > 3 * steps.intensity


def test_latent_attention_against_its_matrices():
    """Decode works on the latent, prefill on keys and values made from it; the FLOP of each einsum,
    counted by numpy."""
    heads, latent, rope, nope, value, context = 8, 32, 8, 16, 12, 50

    def flops(spec, *shapes):
        report = np.einsum_path(spec, *map(np.zeros, shapes))[1]
        return float(report.split("Naive FLOP count:")[1].split()[0])

    decode, prefill = LATENT.decode(1, context), LATENT.prefill(1, context)
    scores = flops("hc,kc->hk", (heads, latent + rope), (context, latent + rope)) + flops(
        "hk,kc->hc", (heads, context), (context, latent)
    )
    assert decode["attention"].flops == pytest.approx(3 * scores, rel=1e-3)
    absorb = flops("hd,hdc->hc", (heads, nope), (heads, nope, latent)) + flops(
        "hc,hcv->hv", (heads, latent), (heads, latent, value)
    )
    assert decode["kv up"].flops == pytest.approx(3 * absorb, rel=1e-3)
    full = flops(
        "qhd,khd->hqk", (context, heads, nope + rope), (context, heads, nope + rope)
    ) + flops("hqk,khv->qhv", (heads, context, context), (context, heads, value))
    assert prefill["attention"].flops == pytest.approx(
        3 * full * (context + 1) / (2 * context), rel=1e-3
    )
    assert prefill["kv up"].flops == pytest.approx(3 * context * absorb, rel=1e-3)


def test_the_cache_is_written_and_read_in_its_own_precision():
    wide, narrow = PLAIN.decode(3, 40), PLAIN.decode(3, 40, kv="int8")
    token = PLAIN.kv_bytes_per_token("int8")  # one byte a number, and bf16 one more
    assert wide["kv"].bytes_moved - narrow["kv"].bytes_moved == 3 * token
    assert wide["attention"].bytes_moved - narrow["attention"].bytes_moved == 3 * 40 * token


def test_expected_experts_against_every_draw():
    """Two tokens draw 2 of 4 experts each: the mean number of experts hit, over all draws."""
    model = rl.Transformer(**SMALL, experts=4, experts_per_token=2)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    hit = np.mean([len({*first, *second}) for first, second in product(pairs, pairs)])
    read = (
        model.decode(2, 9)["experts up"].bytes_moved
        - model.decode(2, 9, weights="int8")["experts up"].bytes_moved
    )
    assert read == pytest.approx(3 * hit * 64 * 2 * 96)


def test_fields_that_mean_nothing_are_refused():
    for field, value in (("rope_head_dim", 8), ("q_lora_rank", 8), ("v_head_dim", 8)):
        with pytest.raises(ValueError, match=f"{field} .* kv_lora_rank"):
            rl.Transformer(**SMALL, **{field: value})


def test_arrays_of_batches_and_contexts():
    batch, context = np.array([[1], [64]]), np.array([1, 100, 1000])
    works = MIXED.decode(batch, context)
    total = sum(works.values())
    assert total.flops.shape == (2, 3)
    assert total.bytes_moved[1, 2] == pytest.approx(
        sum(MIXED.decode(64, 1000).values()).bytes_moved
    )
    assert sum(LATENT.prefill(batch, context).values()).flops[1, 1] == pytest.approx(
        sum(LATENT.prefill(64, 100).values()).flops
    )


def test_names():
    assert rl.transformer("LLAMA 2 7B") is rl.transformer("llama-2-7b")
    with pytest.raises(KeyError, match="nearest: llama-2-7b"):
        rl.transformer("lama-2-7b")
    assert (
        rl.Transformer(32, 4096, 32, 32, 128, 11008, 32000).parameters
        == rl.transformer("llama-2-7b").parameters
    )


def test_a_replaced_width_reaches_every_layer():
    wider = replace(rl.transformer("llama-2-7b"), d_ff=2 * 11008)
    assert wider.parameters == rl.transformer("llama-2-7b").parameters + 32 * 3 * 4096 * 11008


# Windows, several queries, tokens that lie in the cache already


def counted_attention(model, queries, context):
    """FLOP of attention's two products and keys that are read, token by token and key by key."""
    pairs = keys = 0
    for layer in range(model.layers):
        windowed = model.window and layer < (model.windowed_layers or 0)
        window = model.window if windowed else context
        seen = set()
        for query in range(context - queries, context):
            mine = {key for key in range(context) if query - window < key <= query}
            pairs += len(mine)
            seen |= mine
        keys += len(seen)
    return pairs, keys


@pytest.mark.parametrize("model", [PLAIN, WINDOWED])
@pytest.mark.parametrize(
    "cached, tokens", [(0, 1), (0, 4), (0, 9), (3, 1), (3, 2), (4, 1), (5, 7), (20, 3)]
)
def test_attention_against_a_count_of_tokens_and_keys(model, cached, tokens):
    pairs, keys = counted_attention(model, tokens, cached + tokens)
    for works in (
        model.prefill(2, tokens, cached=cached),
        model.decode(2, cached + tokens, queries=tokens),
    ):
        assert works["attention"].flops == 2 * 4 * 8 * 16 * pairs
        queries_and_outputs = 3 * 2 * tokens * 8 * 16
        assert works["attention"].bytes_moved == 2 * 2 * (queries_and_outputs + 2 * 2 * 16 * keys)


def test_a_cache_holds_what_the_next_token_reads():
    """Held are the keys and values that a step reads: all tokens, or the window's last ones."""
    for model in (PLAIN, WINDOWED, LATENT):
        for context in (1, 4, 5, 6, 40):
            wide, narrow = (
                total(model.decode(3, context, kv=kv)).bytes_moved for kv in ("bf16", "int8")
            )
            written = 3 * model.kv_bytes_per_token("int8")
            assert wide - narrow - written == model.kv_bytes(3, context, "int8")
    assert WINDOWED.kv_bytes(1, [3, 9], "int8").tolist() == [3 * 3 * 64, (2 * 5 + 9) * 64]


def test_a_window_as_wide_as_the_context_changes_nothing():
    wide = replace(PLAIN, window=40)
    for step in (lambda m: m.decode(3, 40), lambda m: m.prefill(3, 30, cached=10)):
        assert step(wide) == step(PLAIN)
    assert wide.kv_bytes(3, 40) == PLAIN.kv_bytes(3, 40)
    assert total(wide.decode(3, 41)).bytes_moved < total(PLAIN.decode(3, 41)).bytes_moved


@pytest.mark.parametrize("model", [PLAIN, WINDOWED, MIXED])
def test_chunks_of_a_prefill_add_up_to_the_whole(model):
    whole, chunks = (
        model.prefill(2, 30),
        [
            model.prefill(2, 12),
            model.prefill(2, 8, cached=12),
            model.prefill(2, 10, cached=20),
        ],
    )
    again = sum(total(chunk) for chunk in chunks)
    assert again.flops - 2 * whole["logits"].flops == pytest.approx(total(whole).flops)
    # weights are read again by every chunk
    assert again.bytes_moved > total(whole).bytes_moved


def test_chunks_with_a_latent_make_the_cached_keys_again():
    whole = LATENT.prefill(2, 30)
    first, second = LATENT.prefill(2, 12), LATENT.prefill(2, 18, cached=12)
    for name in set(whole) - {"logits", "kv up"}:
        assert first[name].flops + second[name].flops == pytest.approx(whole[name].flops), name
    assert second["kv up"].flops == whole["kv up"].flops


def test_a_latent_is_attended_to_in_the_way_with_fewer_flop():
    """DeepSeek-V3 on 4096 cached tokens: chunks of up to about 170 tokens work on the latent."""
    model = rl.transformer("deepseek-v3")

    def flops(tokens):
        works = model.prefill(1, tokens, cached=4096)
        return (works["attention"] + works["kv up"]).flops / model.layers / 128

    def on_the_latent(tokens):
        pairs = tokens * (4096 + tokens - (tokens - 1) / 2)
        return 2 * 512 * 256 * tokens + 2 * pairs * (512 + 64 + 512)

    def with_keys_made(tokens):
        pairs = tokens * (4096 + tokens - (tokens - 1) / 2)
        return 2 * 512 * 256 * (4096 + tokens) + 2 * pairs * (128 + 64 + 128)

    for tokens in (1, 20, 150, 160, 180, 300, 4000):
        ways = on_the_latent(tokens), with_keys_made(tokens)
        assert flops(tokens) == pytest.approx(min(ways))
        assert (ways[0] < ways[1]) == (tokens < 171), tokens
    many = model.prefill(1, [20, 300], cached=4096)["attention"]
    for i, tokens in enumerate((20, 300)):
        one = model.prefill(1, tokens, cached=4096)["attention"]
        assert (many.flops[i], many.bytes_moved[i]) == pytest.approx((one.flops, one.bytes_moved))


@pytest.mark.parametrize("model", [PLAIN, WINDOWED, LATENT])
def test_queries_on_a_cache_are_steps_that_read_the_weights_once(model):
    steps = [model.decode(2, context) for context in (28, 29, 30)]
    verified = model.decode(2, 30, queries=3)
    assert total(verified).flops == pytest.approx(sum(total(step) for step in steps).flops)
    assert model.decode(2, 30, queries=1) == steps[-1]
    one, three = (
        total(model.decode(1, 30, queries=queries, weights="bf16")).bytes_moved
        - total(model.decode(1, 30, queries=queries, weights="int8")).bytes_moved
        for queries in (1, 3)
    )
    assert one == three


def test_more_queries_than_keys_are_refused():
    with pytest.raises(ValueError, match=r"context \(tokens\) .* queries, 4"):
        PLAIN.decode(1, 3, queries=4)


def test_a_step_of_a_model_with_windows():
    """Mistral-7B v0.1 looks back 4096 tokens: 64 sequences of 32k fit an H200 beside the weights,
    and a step reads 49 GB, not 289."""
    mistral, h200 = rl.transformer("mistral-7b"), rl.machine("H200 SXM")
    moved = total(mistral.decode(64, 32768)).bytes_moved
    assert moved == pytest.approx(49e9, rel=0.01)
    rate = rl.decode_tokens_per_second(moved, h200.bandwidth(), batch=64)
    assert rate == pytest.approx(6300, rel=0.01)
    assert mistral.kv_bytes(64, 32768) == pytest.approx(34e9, rel=0.02)


def test_a_model_whose_layers_take_turns_with_a_window():
    model = rl.transformer("gpt-oss-120b")
    assert model.kv_bytes(1, 131072) == 4_836_556_800
    step = total(model.decode(1, 131072, weights="mxfp4"))
    assert rl.bound(step, "H100 SXM", "bf16").time == pytest.approx(2.26e-3, rel=2e-3)


# Precisions by group


def test_experts_have_a_precision_of_their_own():
    """gpt-oss as it is published, experts in MXFP4 and the rest in bf16, reads 5.04 GB a token."""
    model = rl.transformer("gpt-oss-120b")
    published = {"experts": "mxfp4", "other": "bf16"}
    assert total(model.decode(1, 1024, weights=published)).bytes_moved == pytest.approx(
        5.04e9, rel=2e-3
    )
    # 60.8 GiB: the size that its makers print
    assert model.weight_bytes(published) == pytest.approx(60.8 * 2**30, rel=0.01)


@pytest.mark.parametrize("model", [PLAIN, MIXED, LATENT, replace(PLAIN, tied=True)])
def test_groups_add_up(model):
    assert sum(model.parameters_by_group.values()) == model.parameters
    assert set(model.parameters_by_group) <= set(GROUPS)
    same = dict.fromkeys(GROUPS, "fp8")
    assert model.weight_bytes(same) == model.weight_bytes("fp8")
    assert model.decode(3, 9, weights=same) == model.decode(3, 9, weights={"other": "fp8"})
    assert model.decode(3, 9, weights=same) == model.decode(3, 9, weights="fp8")
    for group, count in model.parameters_by_group.items():
        mixed = {group: "int8", "other": "bf16"}
        if group != "other":
            assert model.weight_bytes() - model.weight_bytes(mixed) == count


@pytest.mark.parametrize("model", [PLAIN, MIXED, LATENT])
def test_a_step_reads_each_group_in_its_precision(model):
    """With every expert hit, a step reads each group's matrices once, but for the embedding."""
    for group in set(model.parameters_by_group) - {"embedding", "other"}:
        wide = total(model.decode(1e6, 1)).bytes_moved
        narrow = total(model.decode(1e6, 1, weights={group: "int8", "other": "bf16"})).bytes_moved
        assert wide - narrow == pytest.approx(model.parameters_by_group[group], abs=1e-4 * wide)
        assert wide > narrow


# What is no matrix product


def test_passes_over_memory_come_on_top():
    rows = 3 * 4
    for model in (PLAIN, MIXED, LATENT, replace(PLAIN, qk_norm=True, norm_biases=True)):
        bare = model.decode(3, 9, queries=4)
        whole = model.decode(3, 9, queries=4, elementwise=True)
        assert {name: whole[name] for name in bare} == bare
        assert whole["residual sums"].flops == 2 * model.layers * rows * 64
        # a row of the embedding is read and written for each token
        assert whole["embedding rows"] == rl.Work(0, 2 * 2 * rows * 64)
    whole = PLAIN.decode(3, 9, queries=4, elementwise=True)
    assert whole["norms"] == 7 * rl.rms_norm(rows, 64, "bf16")
    normed = replace(PLAIN, qk_norm=True).decode(3, 9, queries=4, elementwise=True)
    of_heads = rl.rms_norm(rows * (8 + 2), 16, "bf16")
    assert normed["norms"] == 7 * rl.rms_norm(rows, 64, "bf16") + 3 * of_heads
    # gate and up in, one out
    assert whole["activation functions"].bytes_moved == 3 * 2 * 3 * rows * 96
    assert whole["rotary turns"].bytes_moved == 3 * 2 * 2 * rows * (8 + 2) * 16
    mixed = MIXED.decode(3, 9, queries=4, elementwise=True)["activation functions"]
    per_layer = (1 * 200, 2 * 96 + 48, 2 * 96 + 48)
    assert mixed.bytes_moved == 2 * 3 * rows * sum(per_layer)


def test_passes_over_memory_weigh_more_in_a_small_model():
    def share(name):
        whole = rl.transformer(name).prefill(1, 2048, elementwise=True)
        bare = rl.transformer(name).prefill(1, 2048)
        times = [rl.time_in_sequence(works.values(), "H100 SXM", "bf16") for works in (bare, whole)]
        return 1 - times[0] / times[1]

    assert 0.05 < share("llama-3-70b") < share("llama-3-8b") < share("tinyllama-1.1b") < 0.6


def test_active_parameters():
    unused = 6 * 3 * 64 * 96  # of each MoE layer
    assert MIXED.active_parameters == MIXED.parameters - 2 * unused
    assert PLAIN.active_parameters == PLAIN.parameters
    assert replace(MIXED, ffn_biases=True).active_parameters == replace(
        MIXED, ffn_biases=True
    ).parameters - 2 * (unused + 6 * (2 * 96 + 64))


def test_a_window_needs_layers_that_can_have_one():
    with pytest.raises(ValueError, match="window .* MLA"):
        replace(LATENT, window=9)
    with pytest.raises(ValueError, match="windowed_layers .* window"):
        replace(PLAIN, windowed_layers=2)
