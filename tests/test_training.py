"""A training step: 6 N D against the products really counted, activations against a published
formula, accumulation against one batch."""

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.training import KEEP

GPT = rl.Transformer(24, 1024, 16, 16, 64, 4096, 32000, gated=False)
LLAMA = rl.transformer("llama-2-7b")


def test_six_n_d_is_the_products_without_attention_and_embedding():
    """Of a step's products, all but attention's take 6 FLOP a token and parameter of the matrices
    (the embedding is a look-up)."""
    step = rl.training_step(LLAMA, 2, 512)
    attention = 3.5 * LLAMA.prefill(2, 512)["attention"].flops
    # without embedding and norm gains
    matrices = LLAMA.parameters - LLAMA.vocab * LLAMA.d_model - (2 * 32 + 1) * 4096
    assert step["forward"].flops + step["backward"].flops - attention == pytest.approx(
        rl.training_flops(matrices, 1024), rel=1e-12
    )


def test_the_name_of_a_model_will_do():
    assert rl.training_step("Llama 2 7B", 2, 512) == rl.training_step(LLAMA, 2, 512)
    assert rl.training_memory("llama-2-7b", 2, 512) == rl.training_memory(LLAMA, 2, 512)
    with pytest.raises(KeyError, match="nearest: llama-2-7b"):
        rl.training_step("llama-7b", 2, 512)


def test_facts_f7():
    assert rl.training_flops(7e9, 4e6) == pytest.approx(1.68e17)
    assert rl.training_flops(7e9, 4e6) / 300e12 == pytest.approx(560)


@pytest.mark.parametrize("tokens", [128, 2048])
def test_activations_are_korthikantis_without_dropout(tokens):
    """Their s b h (34 + 5 a s / h) holds two masks of a byte a number and, for each score, a mask
    and the dropped-out copy of the softmax's output."""
    kept = rl.training_memory(GPT, 3, tokens, "everything").activations
    published = tokens * 3 * 1024 * (34 + 5 * 16 * tokens / 1024) * 24
    dropout = tokens * 3 * 1024 * (2 + 3 * 16 * tokens / 1024) * 24
    assert kept == pytest.approx(published - dropout)
    assert (
        rl.training_memory(GPT, 3, tokens, "layer inputs").activations == 2 * 3 * tokens * 24 * 1024
    )


def test_the_softmaxs_output_is_all_that_scores_leave():
    """2 a s^2 b bytes a layer: the scores before the softmax are not needed backward."""
    small = rl.transformer("gemma-2b")
    kept = {keep: rl.training_memory(small, 16, 2048, keep).activations for keep in KEEP}
    scores = 2 * small.heads * 2048**2 * 16 * small.layers
    assert kept["everything"] - kept["no scores"] == scores == pytest.approx(19.3e9, rel=2e-3)


def test_logits_are_fp32_and_so_is_their_gradient():
    """Korthikanti's total has 4 s b v for the logits. Measured for the loss alone of Gemma-2-2B at
    8,192 tokens: 24 GB (arXiv:2411.09009), of which these two are 16.8."""
    held = rl.training_memory("gemma-2b", 4, 2048)
    assert held.logits == 2 * 4 * 8192 * 256_000
    assert 0.5 * 24e9 < held.logits <= 24e9
    assert held.states + held.activations + held.logits / 2 == pytest.approx(66.8e9, rel=1e-3)


def test_one_layer_is_live_while_it_is_recomputed():
    held = rl.training_memory("gemma-2b", 16, 2048, "layer inputs")
    assert held.recomputed == pytest.approx(4.06e9, rel=1e-3)
    kept = rl.training_memory("gemma-2b", 16, 2048)
    assert held.recomputed == pytest.approx(kept.activations / 18)
    # with the logits once and the live layer on top it is over 80e9 byte already
    assert held.states + held.activations + held.logits / 2 + held.recomputed == pytest.approx(
        80.1e9, rel=1e-3
    )


@pytest.mark.parametrize("dense_d_ff", [64, 9999])
def test_the_live_layer_is_the_larger_kind(dense_d_ff):
    """One of the layers with a plain FFN, or one of those with experts."""
    sizes = dict(layers=4, d_model=512, heads=8, kv_heads=8, head_dim=64, d_ff=256, vocab=1000)
    model = rl.Transformer(
        **sizes, experts=8, experts_per_token=2, dense_layers=1, dense_d_ff=dense_d_ff
    )
    widest = 3 * max(2 * 256, dense_d_ff)
    held = rl.training_memory(model, 3, 100, "layer inputs")
    assert held.recomputed == 2 * 300 * (4 * 512 + 4 * 512 + widest)


def test_the_worst_moment_counts_and_not_the_sum():
    """The loss is over before the first layer is recomputed."""
    held = rl.training_memory(GPT, 2, 512, "layer inputs")
    assert held.total == held.states + held.activations + max(held.logits, held.recomputed)
    wide = rl.Transformer(2, 1024, 16, 16, 64, 65536, 1000)
    held = rl.training_memory(wide, 2, 512, "layer inputs")
    assert held.recomputed > held.logits
    assert held.total == held.states + held.activations + held.recomputed


def test_experts_and_latents_leave_activations_too():
    """deepseek-v3 for one token and layer: 9 experts of 2048, q and k 192 wide in 128 heads,
    latents of 2,112, four rows of 7168."""
    layer = 9 * 3 * 2048 + 128 * (2 * 192 + 2 * 128) + 2112 + 4 * 7168
    deep = rl.transformer("deepseek-v3")
    assert layer == 168_000
    assert rl.training_memory(deep, 1, 1).activations == 2 * 61 * layer


@pytest.mark.parametrize(
    "change",
    [{"shared_experts": 2}, {"shared_d_ff": 4096}, {"dense_d_ff": 999}, {"experts_per_token": 1}],
)
def test_each_size_of_an_expert_counts(change):
    sizes = dict(layers=4, d_model=512, heads=8, kv_heads=8, head_dim=64, d_ff=256, vocab=1000)
    sizes |= dict(experts=8, experts_per_token=2, shared_experts=1, dense_layers=1, dense_d_ff=1024)
    plain, changed = rl.Transformer(**sizes), rl.Transformer(**(sizes | change))
    assert (
        rl.training_memory(plain, 1, 8).activations != rl.training_memory(changed, 1, 8).activations
    )


def test_states_take_sixteen_bytes_a_parameter():
    held = rl.training_memory(LLAMA, 1, 1)
    assert held.states == 16 * LLAMA.parameters
    assert rl.training_memory(LLAMA, 1, 1, gradients="fp32").states == 18 * LLAMA.parameters


def test_attention_backward_is_four_products_or_five():
    """dV = P^T dO, dP = dO V^T, dQ = dS K, dK = dS^T Q; and Q K^T again where P was not kept.
    A step of llama-2-7b grows by 2.3 % at 8k tokens and by 12 % at 128k."""
    one = LLAMA.prefill(1, 8192)["attention"].flops / 2
    for tokens, share in ((8192, 0.0233), (131072, 0.1204)):
        one = LLAMA.prefill(1, tokens)["attention"].flops / 2
        kept = sum(rl.training_step(LLAMA, 1, tokens, keep="everything").values()).flops
        again = sum(rl.training_step(LLAMA, 1, tokens).values()).flops
        assert again - kept == pytest.approx(one)
        assert again / kept - 1 == pytest.approx(share, rel=2e-3)


def test_accumulation_does_the_same_arithmetic_and_more_traffic():
    whole, parts = rl.training_step(LLAMA, 16, 512, 1), rl.training_step(LLAMA, 4, 512, 4)
    assert sum(whole.values()).flops == pytest.approx(sum(parts.values()).flops)
    assert sum(whole.values()).bytes_moved < sum(parts.values()).bytes_moved
    assert (
        parts["gradient sums"].bytes_moved == 3 * 2 * LLAMA.parameters
        and whole["gradient sums"].bytes_moved == 0
    )


def test_recomputing_is_one_more_pass_through_the_layers_and_less_memory():
    """Checkpoints are per layer, so the logits' product is done once: 20 % of gemma-2b's forward
    FLOP."""
    for model, share in ((LLAMA, 0.02), (rl.transformer("gemma-2b"), 0.2)):
        step = rl.training_step(model, 4, 512, 2, "layer inputs")
        logits = 2 * rl.gemm(4 * 512, model.vocab, model.d_model, "bf16")
        assert step["recompute"].flops == pytest.approx(step["forward"].flops - logits.flops)
        assert logits.flops / step["forward"].flops == pytest.approx(share, rel=0.1)
    held = [rl.training_memory(LLAMA, 4, 512, keep).activations for keep in KEEP]
    assert held == sorted(held, reverse=True) and len(set(held)) == 3


def test_fp32_gradients_cost_traffic_and_memory():
    half, whole = (rl.training_step(LLAMA, 4, 512, 4, gradients=p) for p in ("bf16", "fp32"))
    assert whole["gradient sums"].bytes_moved == 2 * half["gradient sums"].bytes_moved
    more = whole["optimizer"].bytes_moved - half["optimizer"].bytes_moved
    assert more == 2 * LLAMA.parameters


def test_a_sweep_is_one_call():
    sizes = np.arange(1, 100)
    sweep = rl.training_memory(LLAMA, sizes, 512).total
    assert sweep[6] == rl.training_memory(LLAMA, 7, 512).total
    assert rl.training_step(LLAMA, sizes, 512)["forward"].flops[6] == pytest.approx(
        rl.training_step(LLAMA, 7, 512)["forward"].flops
    )


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: rl.training_flops(-1, 10), "parameters"),
        (lambda: rl.training_flops(1e9, 0.5), "tokens"),
        (lambda: rl.training_memory(LLAMA, 0, 10), "micro_batch"),
        (lambda: rl.training_memory(LLAMA, 1, "x"), "tokens"),
        (lambda: rl.training_memory(LLAMA, 1, 1, "all"), "keep"),
        (lambda: rl.training_step(LLAMA, 1, 1, 0), "accumulation"),
        (lambda: rl.training_step(LLAMA, 1, 1, 1, None), "keep"),
        (lambda: rl.training_step("llama-7", 1, 1), "transformer"),
        (lambda: rl.training_step(7e9, 1, 1), "model"),
        (lambda: rl.training_memory(LLAMA, 1, 1, gradients="half a byte"), "gradients"),
    ],
)
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()
