"""Verdicts: what is said of a right answer, a wrong one, and none."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from roofline_lib.checks.answers import safely
from roofline_lib.checks.slips import slip_texts

_COLUMNS = 88
_NOT_YET = "Try again: another answer, or show=True, gets the value told."


@dataclass(frozen=True)
class Verdict:
    """What came of a check: `.right`, the names of the `.slips` that the answer matches, and the
    `.message` that was printed.

    `.answered` is False for the dots. `.tried` is a wrong answer as it was read and `.computed` the
    value in words, which the message may keep back; both are "" where the answer was not read.
    """

    right: bool
    slips: tuple[str, ...]
    message: str
    answered: bool = True
    tried: str = field(default="", repr=False)
    computed: str = field(default="", repr=False)

    def telling(self, computed: str) -> "Verdict":
        """The same with the value at the end of its message."""
        told = f"{self.message}\n  Computed: {computed}."
        return replace(self, message=told, computed=computed)

    def keeping_the_value(self) -> "Verdict":
        """The same, and how to get at the value."""
        return replace(self, message=f"{self.message}\n  {_NOT_YET}")

    def _ipython_display_(self):
        """Shows nothing: the message has been printed already."""


def not_answered(id: str, asked: str) -> Verdict:
    """The verdict on the dots: what is `asked`, with its unit or choices."""
    return Verdict(False, (), f"{id}: not answered yet. {asked}", answered=False)


def right(id: str, asked: str, said: str) -> Verdict:
    """The verdict on a right answer: what was `asked` once more, and what is `said` of it."""
    return Verdict(True, (), f"{id}: right{said}".rstrip() + f"\n  Asked: {asked}")


def wrong(
    id: str,
    asked: str,
    what: str,
    hint: str,
    slips: Iterable[str] = (),
    tried: str = "",
    computed: str = "",
) -> Verdict:
    """The verdict on a wrong answer: `what` came, what was `asked`, each of the `slips` that it
    looks like, and the hint. What was `computed` is not told yet."""
    names = tuple(dict.fromkeys(slips))
    lines = [f"{id}: not right: {what}.", f"  Asked: {asked}"]
    lines += [f"  Looks like {name}: {slip_texts().get(name, 'see the lesson')}" for name in names]
    if hint:
        lines.append(f"  Hint: {hint}")
    return Verdict(False, names, "\n".join(lines), tried=tried, computed=computed)


def never_raising(judge: Callable[[], Verdict], answer: object) -> Verdict:
    """What `judge()` gives; where it raises, a verdict that says so. Only a key press gets through:
    an answer may carry any code at all in its methods."""
    try:
        return judge()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"This answer cannot be judged: {safely(str, error)}"
        return Verdict(False, (), message, answered=answer is not ...)


def tell(verdict: Verdict) -> None:
    """Print a verdict's message."""
    say(verdict.message)


def say(message: str) -> None:
    """Print a message, whatever letters the terminal has."""
    text = wrapped(message)
    try:
        print(text)
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal that knows no µ
        print(text.encode("ascii", "backslashreplace").decode("ascii"))


def wrapped(message: str) -> str:
    """The lines of a message broken at spaces, since a notebook breaks a long one anywhere."""
    return "\n".join(
        textwrap.fill(
            line,
            _COLUMNS,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in message.split("\n")
    )


def within(value: float, reference: float, tolerance: float) -> bool:
    """Whether `value` is at most `tolerance` (relative) from `reference`; an infinite reference
    only by itself."""
    value, reference = float(value), float(reference)
    if value == reference:
        return True
    distance = abs(value - reference)
    return bool(np.isfinite(distance) and distance <= tolerance * abs(reference))
