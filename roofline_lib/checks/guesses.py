"""Holding a guess against the answer: one line on how far off it was, and no judgement."""

from collections.abc import Mapping

import numpy as np

from roofline_lib.checks.answers import (
    Amount,
    amount,
    is_blank,
    safely,
    same_words,
    without_counted,
)
from roofline_lib.checks.judging import say
from roofline_lib.quantities import parse_quantity, quantity, significant

# so close counts as right: a guess is made before any formula
_CLOSE = 0.05
_ANSWER_DIGITS = 3
_MOST_DIGITS = 7


def guessed(guess: object, answer: object, unit: str = "") -> None:
    """Print how far a guess was off: "You said 10 percent, it is 0.833 percent: 12 times too high."

    `answer` is a number in `unit` ("percent", "GB", "byte"; "" for a bare number), or a text. A
    guess is a number in that unit, a text with a unit of its own ("640 GB"), or a text. Several
    guesses are a tuple; their answers are a tuple too, or a dict from a name to an answer, and each
    gets a line, under its name. What is no guess at such an answer is told so, and the answer is
    kept. Prints nothing where the guess is still `...`, and never raises.
    """
    try:
        lines = _lines(guess, answer, unit)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a guess may carry any code at all in its methods
        lines = [f"You said {safely(repr, guess)}, which cannot be read as a guess."]
    if lines:
        say("\n".join(lines))


def _lines(guess: object, answer: object, unit: str) -> list[str]:
    if is_blank(guess):
        return []
    answers = _several(answer)
    if answers is None:
        return [_line(guess, answer, unit)]
    heads = [f"{name}: " for name in answer] if isinstance(answer, Mapping) else [""] * len(answers)
    guesses = _several(guess) or [guess]
    if len(guesses) != len(answers):
        wanted = f", one each for {', '.join(answer)}" if isinstance(answer, Mapping) else ""
        return [f"You gave {len(guesses)} of {len(answers)} guesses{wanted}: guess them all."]
    return [
        head + _line(one, its_answer, unit)
        for head, one, its_answer in zip(heads, guesses, answers, strict=True)
        if not is_blank(one)
    ]


def _several(value: object) -> list | None:
    """The values of a list, a tuple, a row or a dict; None for a single one."""
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return list(value)
    return None


def _line(guess: object, answer: object, unit: str) -> str:
    said = f"You said {_shown_guess(guess, unit)}"
    given, reference = _number(guess, unit), _number(answer, unit)
    if given is None and reference is not None:
        wanted = f"a number of {unit}" if unit else "a number"
        return f"{said}. Guess {wanted}, and run the cell again."
    if given is None or reference is None:
        right = not isinstance(guess, str) and bool(guess == answer)
        if isinstance(answer, str) and isinstance(guess, str | int | float):
            right = right or same_words(str(guess), answer)  # 4 will do for "4, four times over"
        return f"{said}: right." if right else f"{said}, it is {_shown_answer(answer, unit)}."
    if given == reference:
        return f"{said}: exactly right."
    return f"{said}, it is {_shown_answer(answer, unit)}{_how_far(given, reference)}."


def _how_far(given: float, reference: float) -> str:
    """Nothing where there is no ratio to tell: at zero, at infinity, across the sign."""
    if not (np.isfinite(given) and np.isfinite(reference)) or given * reference <= 0:
        return ""
    ratio = given / reference
    if abs(ratio - 1) <= _CLOSE:
        return ": right to within 5 %"
    way = "high" if ratio > 1 else "low"
    times = max(ratio, 1 / ratio)
    if times >= 2:
        return f": {significant(times, 2)} times too {way}"
    return f": {round(100 * abs(ratio - 1))} % too {way}"


def _number(value: object, unit: str) -> float | None:
    """In base units; None for a text without a number, and for a number of something else."""
    known = _is_known(unit)
    try:
        read = amount(value, unit) if known else amount(without_counted(value, unit), "")
    except ValueError:
        return None
    return read.value if isinstance(read, Amount) else None


def _is_known(unit: str) -> bool:
    """Whether it can be converted: "rows" and "days" are only counted."""
    try:
        parse_quantity(f"1 {unit}")
    except ValueError:
        return False
    return True


def _shown_guess(guess: object, unit: str) -> str:
    if isinstance(guess, str):
        text = guess.strip()
        number = _number(text, unit)
        if number is None:
            return repr(text)
        if any(sign.isalpha() or sign == "%" for sign in text):
            return text  # it brings its own unit
        scale = parse_quantity(f"1 {unit}")[0] if _is_known(unit) else 1
        return quantity(number / scale, unit, _MOST_DIGITS)
    return _shown(guess, unit, _MOST_DIGITS)


def _shown_answer(answer: object, unit: str) -> str:
    counted = isinstance(answer, int | np.integer)
    return _shown(answer, unit, _MOST_DIGITS if counted else _ANSWER_DIGITS)


def _shown(value: object, unit: str, digits: int) -> str:
    if isinstance(value, str | bool | np.bool_) or _number(value, unit) is None:
        return repr(value)
    return quantity(float(np.asarray(value).item()), unit, digits)
