"""Questions with other numbers for each student, so that a neighbour's answer is wrong."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roofline_lib.checks.questions import Question


@dataclass(frozen=True)
class Varied:
    """A question that can be asked with other numbers.

    `ask()` gives it as the course has it, and `ask(**numbers)` with the numbers that `draw(rng)`
    gives for a random.Random.
    """

    ask: Callable[..., Question]
    draw: Callable[[random.Random], Mapping[str, Any]]

    def variant(self, name: str) -> Question:
        """The question with the numbers of a variant: the same for the same name, a text that says
        nothing of them."""
        rng = random.Random(f"{self.ask().id} {name}")
        return self.ask(**self.draw(rng))
