"""Peaks counted from units and clocks."""

from __future__ import annotations

from roofline_lib.arguments import Number, Value, number, size


def peak_flops(units: Number, lanes: Number, clock: Number, flops_per_lane: Number = 2) -> Value:
    """FLOP/s = units * lanes * flops_per_lane * clock (Hz). A lane that does a multiply-add each
    cycle has flops_per_lane = 2."""
    return _per_cycle(units, lanes, flops_per_lane) * number("clock", clock, "Hz", above=0)


def clock_from(
    performance: Number, units: Number, lanes: Number, flops_per_lane: Number = 2
) -> Value:
    """The clock (Hz) at which units * lanes * flops_per_lane give this performance (FLOP/s)."""
    return number("performance", performance, "FLOP/s", above=0) / _per_cycle(
        units, lanes, flops_per_lane
    )


def memory_bandwidth(clock: Number, bus_bits: Number, transfers_per_clock: Number = 2) -> Value:
    """byte/s of a memory bus = clock (Hz) * transfers_per_clock * bus_bits / 8. Double data rate is
    2 transfers a clock."""
    bits = size("bus_bits", bus_bits, "bit") * number(
        "transfers_per_clock", transfers_per_clock, "transfers", above=0
    )
    return number("clock", clock, "Hz", above=0) * bits / 8


def _per_cycle(units, lanes, flops_per_lane):
    return (
        size("units", units, "multiprocessors or cores")
        * size("lanes", lanes, "lanes a unit")
        * number("flops_per_lane", flops_per_lane, "FLOP a lane and cycle", above=0)
    )
