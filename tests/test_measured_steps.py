"""Whole models and links, measured on H200s: what the records say of the bound and the forecast."""

import measured_steps
import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.measuring import load, sustained_roof
from roofline_lib.measuring.links import fits

MODELS = ("h200_llama3_a", "h200_llama3_b")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("label", ["graph", "eager", "compiled"])
def test_no_step_beats_its_bound(name, label):
    steps = measured_steps.steps(load(name), label)
    assert steps
    assert all(step.bound < step.point.seconds for step in steps)


@pytest.mark.parametrize("name", MODELS)
def test_launches_explain_most_of_what_the_bound_leaves_out(name):
    """Nothing is fitted: the constant is the shortest product of an older record."""
    steps = measured_steps.steps(load(name))
    bound, forecast = (
        np.median([abs(step.error(seconds)) for step, seconds in pairs])
        for pairs in (
            [(step, step.bound) for step in steps],
            [(step, step.forecast) for step in steps],
        )
    )
    assert bound > 0.4 and forecast < 0.1


def test_two_cards_agree():
    """Another card, another machine: each step within 5 %."""
    first, second = (
        {step.point.shape: step.point.seconds for step in measured_steps.steps(load(name))}
        for name in MODELS
    )
    assert load(MODELS[0]).chip.card != load(MODELS[1]).chip.card
    assert first.keys() == second.keys()
    assert all(second[shape] == pytest.approx(first[shape], rel=0.05) for shape in first)


def test_the_estimate_of_kernels_is_near_what_a_profiler_counted():
    record = load(MODELS[0])
    counted = [point.kernels for point in record.select("decode") if point.label == "graph"]
    assert rl.kernels_per_step(record.transformer) == pytest.approx(np.median(counted), rel=0.1)


def test_fusing_small_kernels_pays_as_the_forecast_says():
    record = load(MODELS[0])
    plain = {step.point.shape: step for step in measured_steps.steps(record)}
    for fused in measured_steps.steps(record, "compiled"):
        before = plain[fused.point.shape]
        assert fused.point.kernels < before.point.kernels
        saved = before.point.seconds - fused.point.seconds
        said = before.forecast - fused.forecast
        assert 0.5 < saved / said < 2


def test_llama_2_7b_is_held_against_its_143_tokens_a_second():
    """Lesson 5: at most 143 token/s at 2 TB/s; this card keeps up 4.4 TB/s, and one token takes
    6.8 ms there."""
    record = load("h200_llama2_quick")
    (one,) = (
        point
        for point in record.select("decode")
        if point.label == "graph" and point.shape.batch == 1
    )
    works = record.transformer.decode(1, 1024)
    bound = rl.time_in_sequence(works.values(), sustained_roof(record), "bf16")
    assert 1 / bound == pytest.approx(318, rel=0.02)
    assert 1 / one.seconds == pytest.approx(147, rel=0.02)


def test_a_straight_line_predicts_what_a_second_card_brings():
    record = load("h200_links")
    found = measured_steps.speed_ups(record, fits(record.points)["all_reduce, graph"])
    assert [each.m for each in found] == [1, 16, 128, 512, 1024, 2048, 4096, 8192]
    for each in found:
        assert each.predicted == pytest.approx(each.measured, rel=0.08)


def test_no_message_beats_its_link():
    """One way, payload: what a rank sends in the time it took is under the sheet's 450 GB/s."""
    record = load("h200_links")
    sheet = rl.links("H200 SXM")[0].total_bandwidth
    for family in ("all_gather", "reduce_scatter", "all_reduce", "peer_copy"):
        for point in record.select(family):
            assert point.bandwidth < sheet
