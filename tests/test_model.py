"""The roofline model: its laws, for random machines and works."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

RATES = st.floats(1e6, 1e18)
AMOUNTS = st.floats(0, 1e20)
WORKS = st.builds(rl.Work, AMOUNTS, AMOUNTS)
ROOFS = [
    (name, precision, level)
    for name in rl.machines()
    for precision in rl.machine(name).precisions
    for level in rl.machine(name).bandwidths
]


@pytest.mark.parametrize(("name", "precision", "level"), ROOFS)
def test_roofs_meet_at_the_ridge(name, precision, level):
    chip = rl.machine(name)
    peak, bandwidth, ridge = (
        chip.peak(precision),
        chip.bandwidth(level),
        chip.ridge_point(precision, level),
    )
    assert (
        rl.attainable_performance(ridge, peak, bandwidth)
        == pytest.approx(peak)
        == pytest.approx(ridge * bandwidth)
    )
    assert rl.attainable_performance(ridge / 2, peak, bandwidth) == pytest.approx(peak / 2)
    assert rl.attainable_performance(ridge * 2, peak, bandwidth) == peak


@given(st.floats(0, 1e9), st.floats(0, 1e9), RATES, RATES)
def test_more_intensity_never_attains_less(one, other, peak, bandwidth):
    low, high = (rl.attainable_performance(i, peak, bandwidth) for i in sorted((one, other)))
    assert low <= high <= peak and low <= bandwidth * min(one, other)


@given(WORKS, RATES, RATES)
def test_bound_is_the_slower_of_two_times(work, peak, bandwidth):
    chip = rl.Machine("any", {"bf16": peak}, {"DRAM": bandwidth})
    bound = rl.bound(work, chip, "bf16")
    assert bound.time == max(bound.compute_time, bound.memory_time)
    assert bound.compute_time == pytest.approx(
        work.flops / peak
    ) and bound.memory_time == pytest.approx(work.bytes_moved / bandwidth)
    if not math.isclose(bound.compute_time, bound.memory_time):
        assert bound.bound_by == ("compute" if bound.compute_time > bound.memory_time else "memory")
    if work.flops and work.bytes_moved:
        assert bound.attainable_performance * bound.time == pytest.approx(work.flops)


def test_a_point_on_the_ridge_is_compute_bound():
    for n, precision in ((60, "fp32"), (450, "bf16")):
        assert rl.bound(rl.gemm(n, n, n, precision), "house chip", precision).bound_by == "compute"
        assert (
            rl.bound(rl.gemm(n, n, n - 1, precision), "house chip", precision).bound_by == "memory"
        )


@given(st.lists(WORKS, min_size=1, max_size=6), st.integers(0, 1000))
def test_works_add_in_any_grouping(works, times):
    total = sum(works)
    for other in (works[0] + sum(works[1:]), sum(reversed(works)), sum(works[:-1]) + works[-1]):
        assert other.flops == pytest.approx(total.flops) and other.bytes_moved == pytest.approx(
            total.bytes_moved
        )
    assert total.flops == pytest.approx(sum(work.flops for work in works))
    many = sum([works[0]] * times) if times else rl.Work(0, 0)
    for product in (
        times * works[0],
        works[0] * times,
        np.int16(times) * works[0],
        np.float64(times) * works[0],
    ):
        assert product.flops == pytest.approx(many.flops) and product.bytes_moved == pytest.approx(
            many.bytes_moved
        )


@given(st.lists(WORKS, min_size=1, max_size=5), st.floats(0, 1))
def test_fused_keeps_the_flops_and_never_moves_more(works, share):
    apart = sum(works)
    fused = rl.fused(*works, bytes_moved=share * apart.bytes_moved)
    assert (
        fused.flops == pytest.approx(apart.flops) and fused.bytes_moved == share * apart.bytes_moved
    )
    with pytest.raises(ValueError, match=r"bytes_moved must be at most .* byte; got"):
        rl.fused(*works, bytes_moved=2 * apart.bytes_moved + 1)


@pytest.mark.parametrize("bad", [(), (3,), ([rl.Work(1, 1)],), (None, rl.Work(1, 1))])
def test_fused_and_sequences_take_works_only(bad):
    with pytest.raises(ValueError, match="fused takes one Work or more"):
        rl.fused(*bad, bytes_moved=1)
    if bad:
        with pytest.raises(ValueError, match="work must be a Work"):
            rl.time_in_sequence(bad, "house chip", "bf16")
    with pytest.raises(ValueError, match=r"bytes_moved must be a number of at least 0 \(byte\)"):
        rl.fused(rl.Work(1, 1), bytes_moved="1")


@pytest.mark.parametrize("bad", [1, 0.0, "work", None])
def test_a_work_adds_only_to_works(bad):
    with pytest.raises(TypeError):
        rl.Work(1, 1) + bad
    with pytest.raises((TypeError, ValueError)):
        rl.Work(1, 1) * (bad if isinstance(bad, str | None) else -1)


def test_time_in_sequence_does_not_overlap():
    works = [rl.Work(3e14, 2e9), rl.Work(3e11, 2e12)]  # 1 s of arithmetic, then 1 s of traffic
    assert rl.time_in_sequence(works, "house chip", "bf16") == pytest.approx(2.0)
    assert rl.bound(sum(works), "house chip", "bf16").time == pytest.approx(1.001)


def test_accumulate_picks_the_peak_wherever_a_peak_is_asked_for():
    """With fp16 sums the chip is twice as fast: half the time, twice the ridge point."""
    card = rl.Machine(
        "two widths of sums",
        {"fp16": (rl.Peak(150e12, "fp16", "fp32"), rl.Peak(300e12, "fp16", "fp16"))},
        {"DRAM": 1e12},
    )
    work = rl.Work(3e14, 1e9)
    for asked in (
        lambda **sums: 1 / rl.bound(work, card, "fp16", **sums).time,
        lambda **sums: 1 / rl.time_in_sequence([work, work], card, "fp16", **sums),
        lambda **sums: card.ridge_point("fp16", **sums),
    ):
        assert asked(accumulate="fp16") == 2 * asked(accumulate="fp32") == 2 * asked()


def test_bytes_cross_the_level_that_is_asked_for():
    chip, work = (
        rl.Machine("two levels", {"fp32": 20e12}, {"DRAM": 2e12, "L2": 8e12}),
        rl.Work(1e12, 8e12),
    )
    assert (
        rl.bound(work, chip, "fp32").time == 4.0 and rl.bound(work, chip, "fp32", "L2").time == 1.0
    )


def test_intensity_at_its_ends():
    assert rl.Work(6, 3).intensity == 2.0 and rl.Work(0, 3).intensity == 0.0
    assert rl.Work(6, 0).intensity == math.inf and math.isnan(rl.Work(0, 0).intensity)
    assert rl.bound(rl.Work(6, 0), "house chip", "fp32").attainable_performance == 20e12
    assert math.isnan(rl.bound(rl.Work(0, 0), "house chip", "fp32").attainable_performance)
    assert np.isnan(
        rl.bound(rl.Work([0, 6], [0, 0]), "house chip", "fp32").attainable_performance
    ).tolist() == [True, False]


def test_arrays_broadcast_and_shapes_must_fit():
    bound = rl.bound(
        rl.Work(np.array([[1e12], [1e15]]), np.array([1e9, 1e12, 1e13])), "house chip", "bf16"
    )
    assert bound.time.shape == bound.attainable_performance.shape == (2, 3)
    assert bound.bound_by.tolist() == [
        ["compute", "memory", "memory"],
        ["compute", "compute", "memory"],
    ]
    assert np.allclose(bound.attainable_performance * bound.time, [[1e12], [1e15]])
    with pytest.raises(
        ValueError, match="flops .* and bytes_moved .* must have shapes that fit together"
    ):
        rl.Work(np.ones(3), np.ones(4))


def test_results_are_plain_floats_and_read_well():
    bound = rl.bound(rl.gemm(1024, 1024, 1024), "house chip", "fp32")
    for value in (
        bound.time,
        bound.compute_time,
        bound.memory_time,
        bound.attainable_performance,
        bound.work.intensity,
    ):
        assert type(value) is float
    assert (
        str(bound.work) == "2.15 GFLOP, 12.6 MB, 171 FLOP/byte"
        and str(bound) == "compute-bound: 107 µs compute, 6.29 µs memory"
    )
    assert str(rl.Work(np.ones(3), 1)) == "Work of shape (3,)" and repr(bound) == str(bound)
    many = rl.bound(rl.Work([[1e12], [1e15]], [1e9, 1e12, 1e13]), "house chip", "bf16")
    assert str(many) == repr(many) == "Bound of shape (2, 3), 3 of 6 compute-bound"
