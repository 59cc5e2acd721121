"""The kinds of question. Each knows how to judge an answer."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeGuard

import numpy as np

from roofline_lib.checks.answers import (
    LETTERS,
    Amount,
    OtherUnit,
    amount,
    does_nothing,
    has_three_decimals,
    is_blank,
    meant,
    safely,
    with_unit,
    without_counted,
)
from roofline_lib.checks.judging import Verdict, not_answered, right, within, wrong
from roofline_lib.checks.slips import is_rounded, unit_slips
from roofline_lib.quantities import parse_quantity, significant

# relative: how far an answer may be off where its question names no tolerance of its own
TOLERANCE = 0.01
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

    @property
    @abstractmethod
    def computed(self) -> str:
        """The right answer in words."""

    @property
    def _asked(self) -> str:
        return self.prompt + self.how_to_answer

    def _not_answered(self) -> Verdict:
        return not_answered(self.id, self._asked)

    def _right(self, said: str) -> Verdict:
        return right(self.id, self._asked, said)

    def _wrong(
        self, what: str, slips: Sequence[str] = (), tried: str = "", computed: str = ""
    ) -> Verdict:
        """`tried` is the answer as it was read; where there is none the value is not told."""
        return wrong(self.id, self._asked, what, self.hint, slips, tried, computed)


@dataclass(frozen=True)
class NumberQuestion(Question):
    """A question for one number. `reference()` gives it in the base unit (FLOP, byte, s, ...).

    `unit` is what the question asks for ("GFLOP", "MB", "FLOP/byte", "" for a bare number) and
    `tolerance` is relative. `counts` are the things that a bare number counts: where it is "days",
    the answer "26 days" will do. `rounded` is "up" where the least whole number is asked for that
    does something, "down" where it is the most.
    """

    _: KW_ONLY
    unit: str = ""
    tolerance: float = TOLERANCE
    counts: str = ""
    rounded: Literal["", "up", "down"] = ""

    @property
    def scale_and_base(self) -> tuple[float, str]:
        """(1e9, "FLOP") for the unit "GFLOP"."""
        scale, base, _ = parse_quantity(f"1 {self.unit}")
        return scale, base

    @property
    def how_to_answer(self) -> str:
        return f" (in {self.unit})" if self.unit else ""

    @property
    def computed(self) -> str:
        scale, _ = self.scale_and_base
        return with_unit(float(self.reference()) / scale, self.unit)

    def _judge(self, answer: object) -> Verdict:
        answer = without_counted(answer, self.counts)
        try:
            read = amount(answer, self.unit)
        except ValueError as error:
            asked = self.unit or "plain count"
            return self._wrong(f"{error}. Give a number in {asked}, or a text with its unit")
        if isinstance(read, OtherUnit):
            given = safely(str, answer)
            what = f"you gave {given!r}, asked for is {self.unit or 'a plain number'}"
            return self._wrong(what, read.slips, given, self.computed)
        reference = float(self.reference())
        if within(read.value, reference, self.tolerance):
            return self._right(f". You say {read.said}; computed: {self.computed}.")
        if has_three_decimals(answer) and within(read.value / 1000, reference, self.tolerance):
            return self._wrong(f"{answer!r} is read as {read.said}; write a decimal point")
        slips = self._slips_that_give(read, reference)
        tried = f"{read.value:.6g}"
        return self._wrong(f"you say {read.said}", slips, tried, self.computed)

    def _slips_that_give(self, read: Amount, reference: float) -> list[str]:
        """The question's own slips that give this answer; where there are none, the likeliest of
        those that go with its unit, and then with rounding."""

        def giving(slips: Iterable[tuple[str, float]]) -> list[str]:
            return [
                name
                for name, slipped in slips
                if within(read.value, slipped, _SLIP_TOLERANCE)
                and not within(slipped, reference, self.tolerance)
            ]

        return (
            giving((name, slip()) for name, slip in self.slips)
            or giving(unit_slips(reference, self.unit, read))[:1]
            or self._slip_of_rounding(read.value, reference)
        )

    def _slip_of_rounding(self, value: float, reference: float) -> list[str]:
        scale, _ = self.scale_and_base
        too_much = (value - reference) / scale
        if self.rounded:
            short = -too_much if self.rounded == "up" else too_much
            return [f"round-{self.rounded}"] if 0 < short <= 1 else []
        digits_lost = self.tolerance > 0 and is_rounded(value, reference, self.unit)
        return ["rounding"] if digits_lost else []


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

    @property
    def computed(self) -> str:
        return repr(self.reference())

    def _judge(self, answer: object) -> Verdict:
        text = safely(str, answer).strip()
        chosen = meant(text, self.choices, self.prompt)
        reference = self.reference()
        if chosen is None:
            offered = " / ".join(self.choices)
            return self._wrong(f"{text[:60]!r} is none of the choices {offered}, or fits several")
        if chosen == reference:
            return self._right(f": {reference}. {self.hint}")
        slips = [name for name, slip in self.slips if slip() == chosen]
        return self._wrong(f"you say {chosen!r}", slips, chosen, self.computed)


@dataclass(frozen=True)
class FunctionQuestion(Question):
    """A question for a function, which is compared with `reference` on the argument tuples that
    `inputs()` gives. `tolerance` is relative."""

    _: KW_ONLY
    inputs: Callable[[], Sequence[tuple]]
    tolerance: float = TOLERANCE

    @property
    def computed(self) -> str:
        arguments = self.inputs()[0]
        return f"{_shown(self.reference(*arguments))} for {_call(arguments)}"

    def _judge(self, answer: object) -> Verdict:
        if not callable(answer):
            return self._wrong(f"asked for is a function; you gave {safely(repr, answer)[:60]}")
        tried, first_wrong = [], None
        for arguments in self.inputs():
            reference = self.reference(*arguments)
            try:
                value = answer(*arguments)
                if value is ... or value is None and does_nothing(answer):
                    return self._not_answered()
                if value is None:
                    what = f"for {_call(arguments)} your function gave nothing back"
                    return self._wrong(f"{what}. Is its last line without `return`?".rstrip("."))
                agrees = _agrees(value, reference, self.tolerance)
            except Exception as error:
                if isinstance(error, NotImplementedError) and not error.args:
                    return self._not_answered()
                raised = f"{type(error).__name__}: {safely(str, error)}"
                return self._wrong(f"for {_call(arguments)} your function raised {raised}")
            tried.append((arguments, value))
            if not agrees and first_wrong is None:
                first_wrong = arguments, value, reference
        if first_wrong is None:
            return self._right(" on every input tried.")
        arguments, value, reference = first_wrong
        said = safely(_shown, value)
        what = f"for {_call(arguments)} you say {said}"
        computed = f"{_shown(reference)} for {_call(arguments)}"
        return self._wrong(what, self.slips_that_give(tried), said, computed)

    def slips_that_give(self, tried: Sequence[tuple]) -> list[str]:
        """The slips whose function gives every value of `tried`, pairs of (arguments, value), since
        one input can match by chance; or every wrong one, where half of the values or more are
        wrong: rounding down is right on whole numbers."""
        wrong = [(arguments, value) for arguments, value in tried if not self._is(value, arguments)]
        enough = [tried, wrong] if 2 * len(wrong) >= len(tried) else [tried]
        return [
            name
            for name, slip in self.slips
            if any(all(_gives(slip, *pair) for pair in pairs) for pairs in enough)
        ]

    def _is(self, value: object, arguments: Sequence[object]) -> bool:
        """Whether this is the reference's value."""
        try:
            return _agrees(value, self.reference(*arguments), self.tolerance)
        except Exception:
            return False


def _gives(slip: Callable, arguments: Sequence[object], value: object) -> bool:
    """Whether a slip's function gives this value; it need not be able to, on any input at all. A
    NaN, which no right answer is, may be a slip's."""
    try:
        slipped = slip(*arguments)
        is_nan = isinstance(slipped, float) and slipped != slipped
        return bool(value != value) if is_nan else _agrees(value, slipped, _SLIP_TOLERANCE)
    except Exception:
        return False


def _agrees(value: Any, reference: object, tolerance: float) -> bool:
    """Whether a function's value is the reference: a number to within the tolerance, a list of
    such, a text or a yes/no exactly."""
    if isinstance(reference, list | tuple):
        return np.shape(value) == np.shape(reference) and all(
            _agrees(v, r, tolerance) for v, r in zip(value, reference, strict=True)
        )
    if isinstance(reference, str | bool):
        return bool(value == reference)
    return (
        isinstance(reference, int | float | np.number)
        and not isinstance(value, str)
        and np.size(value) == 1
        and within(np.asarray(value).item(), float(reference), tolerance)
    )


def _shown(value: object) -> str:
    """42,300 and [42,300; 64; 147]: whole numbers in full, others with five digits."""
    if isinstance(value, list | tuple):
        return f"[{'; '.join(map(_shown, value))}]"[:120]
    if _is_finite_number(value):
        if value == round(value) and abs(value) < 1e9:
            return f"{round(value):,}"
        return significant(value, 5) if 1e-4 <= abs(value) < 1e7 else _typed(float(value))
    return repr(value)[:60]


def _is_finite_number(value: Any) -> TypeGuard[float]:
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool) and bool(np.isfinite(value))


def _call(arguments: Sequence[object]) -> str:
    """The arguments as one would type them: (4096, 2e13, [128, 64])."""
    return f"({', '.join(map(_typed, arguments))})"


def _typed(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.5g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")
    if isinstance(value, list):
        return f"[{', '.join(map(_typed, value))}]"
    return repr(value)
