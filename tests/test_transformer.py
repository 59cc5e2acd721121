"""Transformers: the Work of prefill and decode against matrices that are really there and against
rules of thumb that must nearly hold."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import roofline_lib as rl

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
