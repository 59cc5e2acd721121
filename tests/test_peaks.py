"""Peaks counted from units and clocks: both directions, and real figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

COUNT, CLOCK = st.integers(1, 20_000), st.floats(1e6, 1e10)


@given(COUNT, COUNT, CLOCK, st.sampled_from([1, 2, 4, 0.5]))
def test_the_clock_comes_back(units, lanes, clock, flops_per_lane):
    peak = rl.peak_flops(units, lanes, clock, flops_per_lane)
    assert rl.clock_from(peak, units, lanes, flops_per_lane) == pytest.approx(clock)
    assert peak == pytest.approx(sum(flops_per_lane * clock for _ in range(3)) / 3 * units * lanes)


@given(COUNT, COUNT, CLOCK)
def test_a_multiply_add_is_two_flop(units, lanes, clock):
    assert rl.peak_flops(units, lanes, clock) == 2 * rl.peak_flops(units, lanes, clock, 1)
    assert (
        rl.peak_flops(2 * units, lanes, clock)
        == rl.peak_flops(units, 2 * lanes, clock)
        == rl.peak_flops(units, lanes, 2 * clock)
    )


@given(CLOCK, st.integers(1, 8192), st.sampled_from([1, 2, 4, 8]))
def test_a_bus_moves_bits_not_bytes(clock, bus_bits, transfers):
    assert rl.memory_bandwidth(clock, bus_bits, transfers) * 8 == pytest.approx(
        clock * bus_bits * transfers
    )
    assert rl.memory_bandwidth(clock, bus_bits) == rl.memory_bandwidth(clock, bus_bits, 2)


@pytest.mark.parametrize(
    ("chip", "lanes", "clock", "precision"),
    [
        ("A100 40GB SXM", 64, 1.410e9, "fp32"),
        ("V100 SXM2", 64, 1.530e9, "fp32"),
        ("RTX 4090", 128, 2.520e9, "fp32"),
        ("H100 SXM", 128, 1.980e9, "fp32"),
    ],
)
def test_printed_peaks_are_counted_ones(chip, lanes, clock, precision):
    machine = rl.machine(chip)
    assert rl.peak_flops(machine.units, lanes, clock) == pytest.approx(
        machine.peak(precision), rel=5e-3
    )
    assert rl.clock_from(machine.peak(precision), machine.units, lanes) == pytest.approx(
        clock, rel=5e-3
    )


def test_arrays_of_clocks():
    clocks = np.array([1e9, 2e9, 2.572e9])
    assert rl.peak_flops(36, 128, clocks).tolist() == [
        rl.peak_flops(36, 128, clock) for clock in clocks
    ]
