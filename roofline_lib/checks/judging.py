"""Verdicts: what is said of a right answer, a wrong one, and none."""

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from roofline_lib.checks.answers import safely
from roofline_lib.checks.slips import slip_texts

_COLUMNS = 88


@dataclass(frozen=True)
class Verdict:
    """What came of a check: `.right`, the names of the `.slips` that the answer matches, and the
    `.message` that was printed."""

    right: bool
    slips: tuple[str, ...]
    message: str
    answered: bool = True

    def _ipython_display_(self):
        """Shows nothing: the message has been printed already."""


def not_answered(id: str, prompt: str, how_to_answer: str) -> Verdict:
    """The verdict on the dots: the question once more, with its unit or choices."""
    return Verdict(False, (), f"{id}: not answered yet. {prompt}{how_to_answer}", answered=False)


def right(id: str, said: str) -> Verdict:
    return Verdict(True, (), f"{id}: right{said}".rstrip())


def wrong(
    id: str, what: str, hint: str, slips: Iterable[str] = (), computed: str | None = None
) -> Verdict:
    """The verdict on a wrong answer: `what` came, each of the `slips` that it looks like, the hint,
    and what was `computed`, unless it cannot be told yet."""
    names = tuple(dict.fromkeys(slips))
    lines = [f"{id}: not right: {what}."]
    lines += [f"  Looks like {name}: {slip_texts().get(name, 'see the lesson')}" for name in names]
    if hint:
        lines.append(f"  Hint: {hint}")
    if computed is not None:
        lines.append(f"  Computed: {computed}.")
    return Verdict(False, names, "\n".join(lines))


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
