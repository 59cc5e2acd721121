"""The kinds of question. Each knows how to judge an answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from roofline_lib.checks.answers import (
    LETTERS,
    OtherUnit,
    amount,
    is_blank,
    meant,
    safely,
    without_counted,
)
from roofline_lib.checks.judging import Verdict, not_answered, right, within, wrong
from roofline_lib.checks.slips import unit_slips
from roofline_lib.quantities import parse_quantity, quantity, significant

# so close, and not within the tolerance, it is the rounding more often than the reasoning
_NEAR = 0.05
# a slip is named only where the answer is the slip's own value to within this
_SLIP_TOLERANCE = 0.004


@dataclass(frozen=True)
class Question(ABC):
    """What all questions have. `reference` computes the answer; it is never typed.

    `slips` are pairs of a slip's name (checks/slips.toml) and a function that computes the answer
    it gives: only those that this question's inputs can produce. A name may stand twice, where a
    slip can go two ways.
    """

    id: str
    prompt: str
    reference: Callable
    _: KW_ONLY
    slips: Sequence[tuple[str, Callable]] = ()
    hint: str = ""

    def judge(self, answer: object = ...) -> Verdict:
        """The verdict on an answer. May raise whatever the answer's own methods raise."""
        return self._not_answered() if is_blank(answer) else self._judge(answer)

    @abstractmethod
    def _judge(self, answer: object) -> Verdict: ...

    @property
    def how_to_answer(self) -> str:
        """What is told behind the prompt: the unit, or the choices."""
        return ""

    def _not_answered(self) -> Verdict:
        return not_answered(self.id, self.prompt, self.how_to_answer)

    def _wrong(self, what: str, slips: Sequence[str] = (), computed: str | None = None) -> Verdict:
        return wrong(self.id, what, self.hint, slips, computed)


@dataclass(frozen=True)
class NumberQuestion(Question):
    """A question for one number. `reference()` gives it in the base unit (FLOP, byte, s, ...).

    `unit` is what the question asks for ("GFLOP", "MB", "FLOP/byte", "" for a bare number) and
    `tolerance` is relative. `counts` are the things that a bare number counts: where it is "days",
    the answer "26 days" will do.
    """

    _: KW_ONLY
    unit: str = ""
    tolerance: float = 0.01
    counts: str = ""

    @property
    def scale_and_base(self) -> tuple[float, str]:
        """(1e9, "FLOP") for the unit "GFLOP"."""
        scale, base, _ = parse_quantity(f"1 {self.unit}")
        return scale, base

    @property
    def how_to_answer(self) -> str:
        return f" (in {self.unit})" if self.unit else ""

    def _judge(self, answer: object) -> Verdict:
        scale, base = self.scale_and_base
        reference = float(self.reference())
        computed = f"{significant(reference, 4)}%" if base == "%" else quantity(reference, base, 4)
        answer = without_counted(answer, self.counts)
        try:
            read = amount(answer, scale, base)
        except ValueError as error:
            asked = self.unit or "plain count"
            return self._wrong(f"{error}. Give a number in {asked}, or a text with its unit")
        if isinstance(read, OtherUnit):
            what = f"you gave {safely(str, answer)!r}, asked for is {self.unit or 'a plain number'}"
            return self._wrong(what, read.slips, computed)
        given = quantity(read.value, base, 4)
        if within(read.value, reference, self.tolerance):
            return right(self.id, f". You say {given}; computed: {computed}.")
        slips = self._slips_that_give(read.value, reference, base, scale if read.bare else 1)
        return self._wrong(f"you say {given}", slips, computed)

    def _slips_that_give(self, value: float, reference: float, base: str, scale: float):
        known = [(name, slip()) for name, slip in self.slips]
        found = [
            name
            for name, slipped in [*known, *unit_slips(reference, base, scale)]
            if within(value, slipped, _SLIP_TOLERANCE)
            and not within(slipped, reference, self.tolerance)
        ]
        if not found and within(value, reference, _NEAR):
            return ["rounding"]
        return found


@dataclass(frozen=True)
class ChoiceQuestion(Question):
    """A question with `choices`, of which `reference()` gives the right one."""

    _: KW_ONLY
    choices: tuple[str, ...]

    @property
    def how_to_answer(self) -> str:
        lettered = zip(LETTERS, self.choices, strict=False)
        listed = " / ".join(f"{letter}: {choice}" for letter, choice in lettered)
        return f" ({listed}; the letter will do)"

    def _judge(self, answer: object) -> Verdict:
        text = safely(str, answer).strip()
        chosen = meant(text, self.choices)
        reference = self.reference()
        if chosen is None:
            offered = " / ".join(self.choices)
            return self._wrong(f"{text[:60]!r} is none of the choices {offered}, or fits several")
        if chosen == reference:
            return right(self.id, f": {reference}. {self.hint}")
        slips = [name for name, slip in self.slips if slip() == chosen]
        return self._wrong(f"you say {chosen!r}", slips, repr(reference))


@dataclass(frozen=True)
class FunctionQuestion(Question):
    """A question for a function, which is compared with `reference` on the argument tuples that
    `inputs()` gives. `tolerance` is relative."""

    _: KW_ONLY
    inputs: Callable[[], Sequence[tuple]]
    tolerance: float = 0.01

    def _judge(self, answer: object) -> Verdict:
        if not callable(answer):
            return self._wrong(f"asked for is a function; you gave {safely(repr, answer)[:60]}")
        tried, first_wrong = [], None
        for arguments in self.inputs():
            reference = self.reference(*arguments)
            try:
                value = answer(*arguments)
                if value is ... or value is None:
                    return self._not_answered()
                agrees = _agrees(value, reference, self.tolerance)
            except Exception as error:
                if isinstance(error, NotImplementedError) and not error.args:
                    return self._not_answered()
                raised = f"{type(error).__name__}: {safely(str, error)}"
                return self._wrong(f"for {arguments} your function raised {raised}")
            tried.append((arguments, value))
            if not agrees and first_wrong is None:
                first_wrong = arguments, value, reference
        if first_wrong is None:
            return right(self.id, " on every input tried.")
        arguments, value, reference = first_wrong
        what = f"for {arguments} you say {safely(_shown, value)}"
        return self._wrong(what, self._slips_that_give(tried), _shown(reference))

    def _slips_that_give(self, tried: Sequence[tuple]) -> list[str]:
        """One input can match by chance: a slip is named that fits them all."""
        return [
            name
            for name, slip in self.slips
            if all(_agrees(value, slip(*inputs), _SLIP_TOLERANCE) for inputs, value in tried)
        ]


def _agrees(value: object, reference: object, tolerance: float) -> bool:
    """Whether a function's value is the reference: a number to within the tolerance, a list of
    such, a text or a yes/no exactly."""
    if isinstance(reference, list | tuple):
        return np.shape(value) == np.shape(reference) and all(
            _agrees(v, r, tolerance) for v, r in zip(value, reference, strict=True)
        )
    if isinstance(reference, str | bool):
        return bool(value == reference)
    return (
        not isinstance(value, str)
        and np.size(value) == 1
        and within(np.asarray(value).item(), reference, tolerance)
    )


def _shown(value: object) -> str:
    if np.isscalar(value) and not isinstance(value, str | bool) and np.isfinite(value):
        return significant(value, 5)
    return repr(value)[:60]
