"""ServingExplorer: its point is what the library says, its limits are where they bind, and its grey
points are a record's."""

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.explorers.marks import Point
from roofline_lib.explorers.serving import ServingExplorer, figures
from roofline_lib.measuring import load

LLAMA, H200 = rl.transformer("llama-3-8b"), rl.machine("H200 SXM")


def shown(batch=16, context=1024, kernels=932, wait=0.05, model=LLAMA, machine=H200):
    return figures(model, machine, batch, context, "bf16", "bf16", kernels, wait)


def test_the_point_is_a_step():
    found = shown(batch=48)
    step = rl.step_time(LLAMA.decode(48, 1024), H200, "bf16", 932, 2.6e-6)
    assert found.at_bound == pytest.approx(step.bound)
    assert found.at_forecast == pytest.approx(step.forecast)
    assert found.rate == pytest.approx(48 / step.forecast)


def test_without_launches_the_forecast_is_the_bound():
    found = shown(kernels=0)
    np.testing.assert_allclose(found.bound.wait, found.forecast.wait)


def test_patience_and_memory_end_where_they_say():
    found = shown(context=8192, wait=0.02)

    def wait(batch):
        return rl.step_time(LLAMA.decode(batch, 8192), H200, "bf16", 932, 2.6e-6).forecast

    assert wait(found.within_wait) <= 0.02 < wait(found.within_wait + 1)
    held = LLAMA.weight_bytes("bf16") + LLAMA.kv_bytes(found.fits, 8192, "bf16")
    assert held <= H200.capacity() < held + LLAMA.kv_bytes(1, 8192, "bf16")


def test_grey_points_are_measured_and_none_beats_the_bound():
    explorer = ServingExplorer()
    grey = [m for m in explorer.now.marks if isinstance(m, Point) and m.radius == 4]
    steps = [
        point
        for name in ("h200_llama3_a", "h200_llama3_b")
        for point in load(name).select("decode")
        if point.label == "graph" and point.shape.context == 1024
    ]
    assert sorted(1e3 * step.seconds for step in steps) == sorted(point.x for point in grey)
    for point in grey:
        works = LLAMA.decode(round(point.x * point.y / 1e3), 1024)
        assert rl.time_in_sequence(works.values(), H200, "bf16") < point.x / 1e3
    assert "measured on H200s at 1,024 keys" in explorer.readout


@pytest.mark.parametrize("change", [{"machine": "H100 SXM"}, {"weights": "fp8"}, {"kv": "fp8"}])
def test_another_case_has_no_measured_points(change):
    assert "measured" not in ServingExplorer(**change).readout


def test_a_model_brings_its_kernels_and_experts_their_control():
    explorer = ServingExplorer()
    assert explorer.controls["experts"].layout.display == "none"
    explorer.controls["model"].value = "mixtral-8x7b"
    assert explorer.controls["kernels"].value == rl.kernels_per_step("mixtral-8x7b")
    assert explorer.controls["experts"].layout.display is None


def test_too_large_a_model_says_how_many_chips():
    assert "need 6 chips for their memory alone" in ServingExplorer("llama-3.1-405b").readout


@pytest.mark.parametrize(
    ("batch", "wait", "said", "not_said"),
    [
        (16, 0.05, "998 sequences fit beside the weights into 150 GB, and each", "Up to"),
        (1024, 0.05, "Batch 1,024 does not fit.", "Up to"),
        (16, 0.01, "Up to batch 152 a token comes within 10 ms. 998", "ends the batch"),
        (16, 0.001, "No batch brings a token within 1 ms.", "ends the batch"),
    ],
)
def test_one_limit_is_told_as_the_one_that_binds(batch, wait, said, not_said):
    readout = str(ServingExplorer(batch=batch, wait=wait).readout)
    assert said in readout and not_said not in readout


def test_a_batch_that_is_not_drawn_is_not_promised():
    readout = str(ServingExplorer("llama-2-7b", context=1, kv="int4", wait=1).readout)
    assert "Even at batch 1,024 a token comes within 1 s." in readout
