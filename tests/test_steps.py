"""The time of a step: bound and forecast, and kernels estimated from the architecture."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import roofline_lib as rl

LLAMA = rl.transformer("llama-3-8b")


@dataclass
class Moved:
    """Stands for a transfer: something with a time."""

    time: float


def test_without_kernels_and_transfers_forecast_and_bound_are_the_roof():
    works = LLAMA.decode(4, 1000)
    step = rl.step_time(works, "H200 SXM", "bf16")
    alone = rl.time_in_sequence(works.values(), "H200 SXM", "bf16")
    assert step.bound == step.forecast == pytest.approx(alone, rel=1e-12)
    assert rl.step_time(list(works.values()), "H200 SXM", "bf16") == step


def test_every_kernel_pays_in_the_forecast_and_none_in_the_bound():
    works = LLAMA.decode(1, 128)
    bare = rl.step_time(works, "H200 SXM", "bf16")
    step = rl.step_time(works, "H200 SXM", "bf16", kernels=931, per_kernel=2.62e-6)
    assert step.bound == bare.bound
    assert step.forecast - bare.forecast == pytest.approx(931 * 2.62e-6)
    # nearly as much again as the bytes of the whole model
    assert 0.7 < step.launch_time / step.work_time < 0.85


def test_transfers_hide_in_the_bound_and_add_in_the_forecast():
    works = [rl.Work(0, 2e9)]
    machine = rl.Machine(name="as given", peaks={"bf16": 1e12}, bandwidths={"DRAM": 1e12})
    for moved, bound in ((0.5e-3, 2e-3), (3e-3, 3e-3)):
        for transfers in ([Moved(moved / 2)] * 2, {"a": Moved(moved)}):
            step = rl.step_time(works, machine, "bf16", transfers=transfers)
            assert step.bound == pytest.approx(bound)
            assert step.forecast == pytest.approx(2e-3 + moved)


def test_a_bound_is_never_above_the_forecast():
    batches = 2.0 ** np.arange(10)
    step = rl.step_time(LLAMA.decode(batches, 500), "H200 SXM", "bf16", 900, 2e-6)
    assert step.bound.shape == step.forecast.shape == (10,)
    assert (step.bound < step.forecast).all()
    assert (np.diff(step.bound) > 0).all()


def test_kernels_against_those_that_a_profiler_counted():
    """931 and 964 kernels a step of Llama-3-8B in two plain PyTorch programs."""
    assert rl.kernels_per_step("llama-3-8b") == pytest.approx(931, rel=0.05)
    assert rl.kernels_per_step(LLAMA) == pytest.approx(964, rel=0.05)


def test_kernels_grow_with_the_layers_and_shrink_when_fused():
    for name in rl.transformers():
        model = rl.transformer(name)
        twice = replace(
            model,
            layers=2 * model.layers,
            dense_layers=2 * model.dense_layers,
            windowed_layers=2 * model.windowed_layers if model.windowed_layers else None,
        )
        for fused in (False, True):
            one, two = (rl.kernels_per_step(m, fused=fused) for m in (model, twice))
            assert two - one == one - 4
        assert rl.kernels_per_step(name, fused=True) < rl.kernels_per_step(name)
    wider = replace(LLAMA, d_ff=2 * LLAMA.d_ff, vocab=2 * LLAMA.vocab)
    assert rl.kernels_per_step(wider) == rl.kernels_per_step(LLAMA)


def test_shared_keys_are_repeated_for_their_heads():
    one_each = replace(LLAMA, kv_heads=LLAMA.heads)
    assert rl.kernels_per_step(LLAMA) - rl.kernels_per_step(one_each) == 2 * LLAMA.layers


def test_experts_cost_kernels_for_their_routing():
    small = dict(layers=1, d_model=64, heads=4, kv_heads=2, head_dim=16, d_ff=96, vocab=10)
    plain = rl.kernels_per_step(rl.Transformer(**small))
    routed = rl.kernels_per_step(rl.Transformer(**small, experts=8, experts_per_token=2))
    shared = rl.kernels_per_step(
        rl.Transformer(**small, experts=8, experts_per_token=2, shared_experts=1)
    )
    assert routed == plain + 7  # the router's product and six passes
    assert shared == routed + 5  # another network
