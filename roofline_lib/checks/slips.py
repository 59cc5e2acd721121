"""Slips that learners make: what each is called, and what those of unit and prefix come to."""

from collections.abc import Iterator
from functools import cache

from roofline_lib.tables import read_table

_COUNTED_IN_THOUSANDS = ("FLOP", "FLOP/s", "s", "Hz", "byte/s", "byte")


@cache
def slip_texts() -> dict[str, str]:
    """Each slip's name and one sentence on what happened."""
    return read_table("checks/slips.toml")


def unit_slips(reference: float, base: str, scale: float) -> Iterator[tuple[str, float]]:
    """Pairs of a slip's name and the answer it gives, for any question with a unit that takes it.

    `reference` is in the base unit; `scale` is that of the unit asked for, 1 where the answer
    brought its own.
    """
    yield "raw-number", reference * scale  # no slip where the scale is 1: that is right
    if base in _COUNTED_IN_THOUSANDS:
        yield "giga-slip", reference * 1000
        yield "giga-slip", reference / 1000
    if base in ("byte", "byte/s"):
        yield "bits-for-bytes", reference * 8
        yield "bits-for-bytes", reference / 8
        for power in (1, 2, 3, 4):
            yield "gib-for-gb", reference * 1.024**power
            yield "gib-for-gb", reference / 1.024**power
    if base == "FLOP/byte" and reference:
        yield "upside-down", 1 / reference
    if base == "%":
        yield "fraction-for-percent", reference / 100
