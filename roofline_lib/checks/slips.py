"""Slips that learners make: what each is called, and what those of unit and prefix come to."""

import math
from collections.abc import Iterator
from functools import cache

from roofline_lib.checks.answers import Amount
from roofline_lib.quantities import parse_quantity
from roofline_lib.tables import read_table

_COUNTED_IN_THOUSANDS = ("FLOP", "FLOP/s", "s", "Hz", "byte/s", "byte")
# steps of 1000 against 1024 up to each prefix: a number in MB has two in which it can go wrong
_BINARY_STEPS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@cache
def slip_texts() -> dict[str, str]:
    """Each slip's name and one sentence on what happened."""
    return read_table("checks/slips.toml")


def unit_slips(reference: float, unit: str, given: Amount) -> Iterator[tuple[str, float]]:
    """Pairs of a slip's name and the answer it gives, for any question in this unit, the likeliest
    first. `reference` and the answers are in the base unit."""
    scale, base, _ = parse_quantity(f"1 {unit}")
    if given.bare:
        yield "raw-number", reference * scale  # no slip where the scale is 1: that is right
    if given.in_bits:
        yield "bits-for-bytes", reference / 8
    if base in _COUNTED_IN_THOUSANDS:
        yield "giga-slip", reference * 1000
        yield "giga-slip", reference / 1000
    if base == "byte":
        for power in range(1, 1 + _BINARY_STEPS.get(given.prefix.removesuffix("i"), 0)):
            yield "gib-for-gb", reference * 1.024**power
            yield "gib-for-gb", reference / 1.024**power
    if base == "FLOP/byte" and reference:
        yield "upside-down", 1 / reference
    if base == "%":
        yield "fraction-for-percent", reference / 100


def is_rounded(value: float, reference: float, unit: str) -> bool:
    """Whether `value` is the reference with two digits or one, in the unit asked for."""
    scale, _, _ = parse_quantity(f"1 {unit}")
    shown = [float(f"{reference / scale:.{digits}g}") for digits in (1, 2)]
    return any(math.isclose(value / scale, rounded, rel_tol=1e-9) for rounded in shown)
