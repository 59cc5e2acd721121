"""Reading what a learner gave: a number, a text with a unit, or a choice in other words."""

import dis
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from roofline_lib.quantities import parse_quantity, significant

T = TypeVar("T")

LETTERS = "abcdefgh"
# Python counts each of these as a number, or as something close to one; as an answer it is none
_NO_REAL_NUMBER = (
    bool | np.bool_ | complex | np.complexfloating | bytes | bytearray | memoryview | np.ndarray
)
# units that are another way to write the one asked for: (given, asked for): divide by
_SAME_KIND = {("%", ""): 100, ("bit", "byte"): 8, ("bit/s", "byte/s"): 8}
# units that show a slip: (given, asked for): its name
_TELLING_UNITS = {
    ("FLOP", "FLOP/s"): "flops-rate",
    ("FLOP/s", "FLOP"): "flops-rate",
    ("MAC", "FLOP"): "mac-is-flop",
    ("byte/FLOP", "FLOP/byte"): "upside-down",
}
_OF_AN_EMPTY_BODY = {"RESUME", "NOP", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}
# words that stand for nothing
_FILLERS = ("a", "an", "the", "is", "are", "was", "it")


@dataclass(frozen=True)
class Amount:
    """A number as it was given: `value` in base units (FLOP, byte, s, ...), `said` as a verdict
    repeats it.

    `prefix` is that of its unit ("G", "Ki"). `bare` says that it came without a unit and was read
    in the one that the question asks for; `in_bits` that bytes were asked for and bits came.
    """

    value: float
    said: str
    prefix: str
    bare: bool = False
    in_bits: bool = False


@dataclass(frozen=True)
class OtherUnit:
    """What was given has a unit of something else; `slips` names the mix-up where it is known."""

    slips: tuple[str, ...]


def is_blank(answer: object) -> bool:
    """Whether the dots, or nothing at all, stand where an answer belongs."""
    return answer is ... or answer is None or (isinstance(answer, str) and not answer.strip())


def does_nothing(function: object) -> bool:
    """Whether a function's body is empty, or the dots: nobody has written it yet."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return {step.opname for step in dis.get_instructions(code)} <= _OF_AN_EMPTY_BODY


def amount(answer: object, unit: str) -> Amount | OtherUnit:
    """The answer to a question that asks for `unit` ("GFLOP", "%", "" for a bare number).

    ValueError where it is not one finite number, and where it may have a decimal comma.
    """
    given = answer
    _ask_about_a_decimal_comma(answer)
    if isinstance(answer, list | tuple | np.ndarray) and safely(np.size, answer) == 1:
        answer = np.asarray(answer).reshape(-1)[0]
    if isinstance(answer, str):
        read = _amount_in_text(answer, unit)
    else:
        read = _bare(_plain_number(answer, given), unit)
    if isinstance(read, Amount) and not np.isfinite(read.value):
        raise ValueError(f"{safely(str, given)[:60]} is not a finite number")
    return read


def _amount_in_text(text: str, asked: str) -> Amount | OtherUnit:
    value, unit, prefix = parse_quantity(text)
    _, base, _ = parse_quantity(f"1 {asked}")
    if unit == "":
        return _bare(value, asked)
    if unit == base:
        return Amount(value, text.strip(), prefix)
    if (unit, base) in _SAME_KIND:
        in_bits = unit.startswith("bit")
        value /= _SAME_KIND[unit, base]
        return Amount(value, text.strip(), prefix, in_bits=in_bits)
    slip = _TELLING_UNITS.get((unit, base))
    return OtherUnit((slip,) if slip else ())


def _bare(number: float, unit: str) -> Amount:
    scale, _, prefix = parse_quantity(f"1 {unit}")
    return Amount(number * scale, with_unit(number, unit), prefix, bare=True)


def with_unit(number: float, unit: str) -> str:
    """ "96 KiB": four digits, in the very unit that a question asks for."""
    gap = "" if unit == "%" else " "
    return f"{significant(number, 4)}{gap}{unit}".rstrip()


def _ask_about_a_decimal_comma(answer: object) -> None:
    """12,5 is two numbers to Python and a decimal to half of the world."""
    halves: tuple | None = None
    if isinstance(answer, str):
        text = re.match(r"\s*([-+]?\d+),(\d+)(?![\d.,_])", answer)
        halves = (text[1], text[2]) if text and len(text[2]) != 3 else None
    elif isinstance(answer, tuple) and len(answer) == 2 and set(map(type, answer)) == {int}:
        halves = answer
    if halves:
        point = f"{halves[0]}.{halves[1]}"
        raise ValueError(
            f"{safely(str, answer)[:60]} has a comma; if you mean {point}, write {point}"
        )


def has_three_decimals(answer: object) -> bool:
    """Whether the comma of this text may be a decimal one: 2,147 is read as 2147, but may be
    2.147."""
    return isinstance(answer, str) and bool(re.match(r"\s*[-+]?\d{1,3},\d{3}(?![\d.,_])", answer))


def _plain_number(answer: Any, given: object) -> float:
    try:
        if isinstance(answer, _NO_REAL_NUMBER):
            raise TypeError
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{safely(repr, given)[:60]} is not one number") from None


def without_counted(answer: object, counted: str) -> object:
    """ "26" for "26 days", where the question is how many `counted` ("days") there are."""
    if not counted or not isinstance(answer, str):
        return answer
    one = re.escape(counted.removesuffix("s"))
    return re.sub(rf"(?<=[\d. ]){one}s?\s*$", "", answer, flags=re.IGNORECASE)


def meant(text: str, choices: Sequence[str], prompt: str = "") -> str | None:
    """The one of `choices` that a text means, None where none or several fit.

    A choice is meant in full, by its letter, by its beginning or some of its words if no other
    choice has them, or in words of the question's own `prompt`.
    """
    if not _words(text):
        return None
    # in (AB)C every sign counts: such choices have no words to be known by
    worded = [] if any("(" in choice for choice in choices) else choices
    found = (
        _named_in_full(text, choices)
        or _named_by_letter(text, choices)
        or _with_the_same_words(text, worded)
        or _with_these_words(text, worded)
        or _in_words_of_the_question(text, worded, prompt)
    )
    return found[0] if len(found) == 1 else None


def same_words(text: str, other: str) -> bool:
    """Whether two texts say the same but for case, signs and articles, or `text` begins
    `other`."""
    return bool(_words(text)) and bool(_with_these_words(text, [other]))


def _named_in_full(text: str, choices: Sequence[str]) -> list[str]:
    def key(words):
        return re.sub(r"[\s'\"]", "", words.lower())

    return [choice for choice in choices if key(choice) == key(text)]


def _named_by_letter(text: str, choices: Sequence[str]) -> list[str]:
    """By "b", or by "b: half the wait" as the choices are listed."""
    letter = re.fullmatch(rf"\W*([{LETTERS}])(?:\W*|\s*[:)]\s*(?P<rest>.+))", text.lower())
    if letter is None:
        return []
    at = LETTERS.index(letter[1])
    choice = list(choices[at : at + 1])
    return choice if letter["rest"] is None else _with_the_same_words(letter["rest"], choice)


def _with_the_same_words(text: str, choices: Sequence[str]) -> list[str]:
    key = "".join(_words(text))
    return [choice for choice in choices if "".join(_words(choice)) == key]


def _with_these_words(text: str, choices: Sequence[str]) -> list[str]:
    """Those that begin with the text, or have all of its words."""
    given = _words(text)
    key = "".join(given)
    return [
        choice
        for choice in choices
        if set(given) <= set(_words(choice)) or _begins("".join(_words(choice)), key)
    ]


def _in_words_of_the_question(text: str, choices: Sequence[str], prompt: str) -> list[str]:
    """Where the text stands in the question word for word: those that share a word with it."""
    asked, given = (f" {' '.join(_words(words))} " for words in (prompt, text))
    if given not in asked:
        return []
    return [choice for choice in choices if set(_words(choice)) & set(_words(text))]


def _begins(whole: str, key: str) -> bool:
    if not whole.startswith(key):
        return False
    cuts_a_number = re.match(r"\d\d", whole[len(key) - 1 :])  # 25 is not the beginning of 256
    return not cuts_a_number


def _words(text: str) -> list[str]:
    """The words of a text in lower case, 3n² as 3n2, without quotes and articles."""
    found = re.findall(
        r"(?:(?<!\w)-(?=\d))?[^\W_]+(?:(?<=\d)[.,/](?=\d)\d+)*",
        unicodedata.normalize("NFKC", text).lower(),
    )
    return [word for word in found if word not in _FILLERS] or found


def safely(function: Callable[[Any], T], value: object) -> T | str:
    """str or repr of anything, even where its own method raises."""
    try:
        return function(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"an object of type {type(value).__name__}"
