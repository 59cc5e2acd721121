"""What the questions of several topics need."""

from collections.abc import Callable

import roofline_lib as rl

HOUSE = rl.machine("house chip")
# bytes an element, as the exercises give them: a precision of that width
PRECISION_OF_WIDTH = {4: "fp32", 2: "bf16", 1: "int8", 0.5: "int4"}


def smallest_whole(holds: Callable[[int], bool]) -> int:
    """The smallest whole number from 1 on for which `holds` is true, where it stays true from there
    on: found by doubling, then by halving the interval."""
    above = 1
    while not holds(above):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        if holds(middle):
            above = middle
        else:
            below = middle
    return above


def written(count: int) -> str:
    """A whole number as the questions write it: 4096, and 16,384."""
    return f"{count:,}" if count >= 10_000 else str(count)
