"""Judging an answer: right, not answered yet, or wrong, and then which slip it is. Nothing here
raises, whatever the answer is."""

import re
import textwrap
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources

import numpy as np

from roofline_lib.arguments import unknown
from roofline_lib.quantities import parse_quantity, quantity, significant

# so close, and not within the tolerance, it is the rounding more often than the reasoning
_NEAR = 0.05
# a slip is named only where the answer is the slip's own value to within this
_SLIP_TOLERANCE = 0.004


@dataclass(frozen=True)
class Question:
    """One practice question. `reference()` computes the answer: a number in `unit`'s base unit, one
    of `choices`, or a function.

    `unit` is what the question asks for ("GFLOP", "MB", "FLOP/byte", "" for a bare number). `slips`
    maps a slip's name (data/slips.toml) to a function computing the answer that it gives: only
    those that this question's inputs can produce. `tolerance` is relative. For a function answer,
    `inputs()` gives the argument tuples to compare on.
    """

    id: str
    prompt: str
    reference: Callable
    unit: str = ""
    slips: Mapping = field(default_factory=dict)
    tolerance: float = 0.01
    choices: tuple = ()
    hint: str = ""
    inputs: Callable | None = None

    @property
    def scale_and_base(self):
        """(1e9, "FLOP") for the unit "GFLOP"."""
        scale, base, _ = parse_quantity(f"1 {self.unit}")
        return scale, base


@dataclass(frozen=True)
class Verdict:
    """What came of a check: `.right`, the names of the `.slips` that the answer matches, and the
    `.message` that was printed."""

    right: bool
    slips: tuple
    message: str
    answered: bool = True

    def _ipython_display_(self):
        """Shows nothing: the message has been printed already."""


def check(question, answer=...):
    """Judge an answer to a question (its id, such as "01.gemm-flops", or a Question), print the
    verdict and return it. Never raises.

    `answer`: a number in the unit that the question asks for, a text with a unit ("2.147 GFLOP"), a
    choice, or a function.
    """
    try:
        verdict = _judge(
            find_question(question) if not isinstance(question, Question) else question, answer
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an answer may carry any code at all in its methods
        verdict = Verdict(
            False,
            (),
            f"This answer cannot be judged: {_safe(str, error)}",
            answered=answer is not ...,
        )
    try:
        print(wrapped(verdict.message))
    except UnicodeEncodeError:  # half of a surrogate pair, or a terminal that knows no µ
        print(wrapped(ascii(verdict.message)))
    return verdict


def find_question(name):
    """The Question of that id. UnknownName lists the nearest; inside the grading sandbox there are
    none."""
    questions = _questions()
    if not isinstance(name, str) or name not in questions:
        raise unknown("question", _safe(str, name), questions or ["(no references here)"])
    return questions[name]


@cache
def _questions():
    try:
        package = import_module("roofline_lib.questions")
    except ImportError as error:
        if error.name != "roofline_lib.questions":
            raise
        return {}  # the grading sandbox has no references
    return {question.id: question for question in package.all_questions()}


def _judge(question, answer):
    if answer is ... or answer is None or (isinstance(answer, str) and not answer.strip()):
        return _unanswered(question)
    return (
        _judge_choice if question.choices else _judge_function if question.inputs else _judge_number
    )(question, answer)


def _unanswered(question):
    lettered = " / ".join(
        f"{letter}: {choice}" for letter, choice in zip("abcdefgh", question.choices, strict=False)
    )
    unit = (
        f" (in {question.unit})"
        if question.unit
        else f" ({lettered}; the letter will do)"
        if lettered
        else ""
    )
    return Verdict(
        False, (), f"{question.id}: not answered yet. {question.prompt}{unit}", answered=False
    )


def _judge_number(question, answer):
    scale, base = question.scale_and_base
    reference = float(question.reference())
    if base == "" and isinstance(answer, str):  # "26 days", where the question is how many days
        for counted in re.findall(r"how many ([a-z]+?)s?\b", question.prompt.lower()):
            answer = re.sub(rf"(?i)(?<=[\d. ]){counted}s?\s*$", "", answer)
    try:
        value, slips = _base_value(answer, scale, base)
        if value is not None and not np.isfinite(value):
            raise ValueError(f"{_safe(str, answer)[:60]} is not a finite number")
    except ValueError as error:
        return _wrong(
            question,
            f"{error}. Give a number in {question.unit or 'plain count'}, or a text with its unit",
            (),
        )
    shown = quantity(reference, base, 4) if base != "%" else f"{significant(reference, 4)}%"
    if value is None:
        return _wrong(
            question,
            f"you gave {_safe(str, answer)!r}, asked for is {question.unit or 'a plain number'}",
            slips,
            shown,
        )
    given = quantity(value, base, 4)
    if within(value, reference, question.tolerance):
        return Verdict(True, (), f"{question.id}: right. You say {given}; computed: {shown}.")
    bare = not isinstance(answer, str) or parse_quantity(answer)[1] == ""
    computed = {name: wrong() for name, wrong in question.slips.items()} | _unit_slips(
        reference, base, scale if bare else 1
    )
    found = tuple(
        name
        for name, wrong in computed.items()
        if within(value, wrong, _SLIP_TOLERANCE)
        and not within(wrong, reference, question.tolerance)
    )
    found = found or ("rounding",) * within(value, reference, _NEAR)
    return _wrong(question, f"you say {given}", found, shown)


def _base_value(answer, scale, base):
    """(value in base units or None, slips that the unit shows)."""
    given = answer
    if isinstance(answer, list | tuple | np.ndarray) and _safe(np.size, answer) == 1:
        answer = np.asarray(answer).reshape(-1)[0]
    if isinstance(answer, str):
        value, unit, _ = parse_quantity(answer)
        if unit == base:
            return value, ()
        if unit == "" and base != "":
            return value * scale, ()
        if (unit, base) in (("%", ""), ("bit", "byte"), ("bit/s", "byte/s")):
            return value / (100 if unit == "%" else 8), ()
        if {unit, base} == {"FLOP", "FLOP/s"}:
            return None, ("flops-rate",)
        return None, {
            ("MAC", "FLOP"): ("mac-is-flop",),
            ("byte/FLOP", "FLOP/byte"): ("upside-down",),
        }.get((unit, base), ())
    try:
        if isinstance(
            answer, bool | np.bool_ | complex | np.complexfloating | bytes | bytearray | np.ndarray
        ):
            raise TypeError
        value = float(answer)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{_safe(repr, given)[:60]} is not one number") from None
    return value * scale, ()


def _unit_slips(reference, base, scale):
    """What a slip of unit or prefix gives, for any question with a unit that takes one."""
    slips = {"raw-number": reference * scale}  # no slip where the scale is 1: that is right
    if base in ("FLOP", "FLOP/s", "s", "Hz", "byte/s", "byte"):
        slips |= {"giga-slip": reference * 1000, "giga-slip (down)": reference / 1000}
    if base in ("byte", "byte/s"):
        slips |= {"bits-for-bytes": reference * 8, "bits-for-bytes (down)": reference / 8}
        slips |= {
            f"gib-for-gb ({power}{sign})": reference * (1.024**power) ** (1 if sign == "+" else -1)
            for power in (1, 2, 3, 4)
            for sign in "+-"
        }
    if base == "FLOP/byte" and reference:
        slips["upside-down"] = 1 / reference
    return slips | ({"fraction-for-percent": reference / 100} if base == "%" else {})


def _judge_choice(question, answer):
    text = _safe(str, answer).strip()
    chosen, reference = meant(text, question.choices), question.reference()
    if chosen is None:
        return _wrong(
            question,
            f"{text[:60]!r} is none of the choices {' / '.join(question.choices)}, or fits several",
            (),
        )
    if chosen == reference:
        return Verdict(True, (), f"{question.id}: right: {reference}. {question.hint}".rstrip())
    found = tuple(name for name, wrong in question.slips.items() if wrong() == chosen)
    return _wrong(question, f"you say {chosen!r}", found, repr(reference))


def _judge_function(question, answer):
    if not callable(answer):
        return _wrong(question, f"asked for is a function; you gave {_safe(repr, answer)[:60]}", ())
    tried, first_wrong = [], None
    for arguments in question.inputs():
        reference = question.reference(*arguments)
        try:
            value = answer(*arguments)
            if value is ... or value is None:
                raise NotImplementedError
            right = _agrees(value, reference, question.tolerance)
        except Exception as error:
            if isinstance(error, NotImplementedError) and not error.args:
                return _unanswered(question)
            return _wrong(
                question,
                f"for {arguments} your function raised {type(error).__name__}: {_safe(str, error)}",
                (),
            )
        tried.append((arguments, value))
        if not right and first_wrong is None:
            first_wrong = f"for {arguments} you say {_safe(_shown, value)}", _shown(reference)
    if first_wrong is None:
        return Verdict(True, (), f"{question.id}: right on every input tried.")
    # one input can match by chance: a slip is named that fits them all
    found = tuple(
        name
        for name, wrong in question.slips.items()
        if all(_agrees(value, wrong(*arguments), _SLIP_TOLERANCE) for arguments, value in tried)
    )
    return _wrong(question, first_wrong[0], found, first_wrong[1])


def _agrees(value, reference, tolerance):
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


def _shown(value):
    return (
        significant(value, 5)
        if np.isscalar(value) and not isinstance(value, str | bool) and np.isfinite(value)
        else repr(value)[:60]
    )


def within(value, reference, tolerance):
    """Whether `value` is at most `tolerance` (relative) from `reference`; an infinite reference
    only by itself."""
    value, reference = float(value), float(reference)
    return value == reference or bool(
        np.isfinite(value - reference) and abs(value - reference) <= tolerance * abs(reference)
    )


def _wrong(question, what, slips, reference=None):
    names = tuple(dict.fromkeys(name.split(" (")[0] for name in slips))
    lines = [f"{question.id}: not right: {what}."]
    lines += [f"  Looks like {name}: {_slip_texts().get(name, 'see the lesson')}" for name in names]
    if question.hint:
        lines.append(f"  Hint: {question.hint}")
    if reference is not None:
        lines.append(f"  Computed: {reference}.")
    return Verdict(False, names, "\n".join(lines))


@cache
def _slip_texts():
    """Each slip's name and one sentence on what happened."""
    return tomllib.loads(
        resources.files("roofline_lib").joinpath("data/slips.toml").read_text(encoding="utf-8")
    )


def _safe(function, value):
    """str or repr of anything, even where its own method raises."""
    try:
        return function(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"an object of type {type(value).__name__}"


def meant(text, choices):
    """The one of `choices` that a text means: in full, by its letter, or by its beginning or some
    of its words if no other has them."""

    # small, 3n² as 3n2, without quotes and what stands for nothing, such as an article
    def words(text):
        found = re.findall(
            r"(?:(?<!\w)-(?=\d))?[^\W_]+(?:(?<=\d)[.,/](?=\d)\d+)*",
            unicodedata.normalize("NFKC", text).lower(),
        )
        return [
            word for word in found if word not in ("a", "an", "the", "is", "are", "was", "it")
        ] or found

    def begins(whole):
        # 25 is not the beginning of 256
        return whole.startswith(key) and not re.match(r"\d\d", whole[len(key) - 1 :])

    given, key, letter = (
        words(text),
        "".join(words(text)),
        re.fullmatch(r"\W*([a-h])\W*", text.lower()),
    )
    # in (AB)C every sign counts
    loose = [] if any("(" in choice for choice in choices) else choices
    exact = [
        choice
        for choice in choices
        if re.sub(r"[\s'\"]", "", choice.lower()) == re.sub(r"[\s'\"]", "", text.lower())
    ]
    same = [choice for choice in loose if "".join(words(choice)) == key]
    some = [
        choice
        for choice in loose
        if set(given) <= set(words(choice)) or begins("".join(words(choice)))
    ]
    found = exact or letter and list(choices["abcdefgh".index(letter[1]) :][:1]) or same or some
    return found[0] if key and len(found) == 1 else None


def wrapped(message):
    """The lines of a message broken at spaces, since a notebook breaks a long one anywhere."""
    return "\n".join(
        textwrap.fill(
            line, 88, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        for line in message.split("\n")
    )
