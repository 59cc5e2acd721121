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
    attention = 3 * LLAMA.prefill(2, 512)["attention"].flops
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
def test_activations_are_korthikantis_without_the_dropout_masks(tokens):
    """Their s b h (34 + 5 a s / h) holds 2 bytes of dropout masks a number and, in the scores, one
    a score."""
    kept = rl.training_memory(GPT, 3, tokens, "everything").activations - 2 * 3 * tokens * GPT.vocab
    published = tokens * 3 * 1024 * (34 + 5 * 16 * tokens / 1024) * 24
    masks = tokens * 3 * 1024 * (2 + 16 * tokens / 1024) * 24
    assert kept == pytest.approx(published - masks)
    assert rl.training_memory(GPT, 3, tokens, "layer inputs").activations == 2 * 3 * tokens * (
        24 * 1024 + GPT.vocab
    )


def test_states_take_sixteen_bytes_a_parameter():
    held = rl.training_memory(LLAMA, 1, 1)
    assert held.weights + held.gradients + held.optimizer == 16 * LLAMA.parameters
    assert held.total == 16 * LLAMA.parameters + held.activations


def test_accumulation_does_the_same_arithmetic_and_more_traffic():
    whole, parts = rl.training_step(LLAMA, 16, 512, 1), rl.training_step(LLAMA, 4, 512, 4)
    assert sum(whole.values()).flops == pytest.approx(sum(parts.values()).flops)
    assert sum(whole.values()).bytes_moved < sum(parts.values()).bytes_moved
    assert (
        parts["gradient sums"].bytes_moved == 3 * 2 * LLAMA.parameters
        and whole["gradient sums"].bytes_moved == 0
    )


def test_recomputing_is_one_more_forward_pass_and_less_memory():
    step = rl.training_step(LLAMA, 4, 512, 2, "layer inputs")
    assert step["recompute"] == step["forward"]
    held = [rl.training_memory(LLAMA, 4, 512, keep).activations for keep in KEEP]
    assert held == sorted(held, reverse=True) and len(set(held)) == 3


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
    ],
)
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()
