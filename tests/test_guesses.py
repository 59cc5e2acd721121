"""A guess held against its answer: how far off, in words, and never an exception."""

import io
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.checks.guesses import _how_far


def said(capsys, *arguments):
    assert rl.guessed(*arguments) is None
    return capsys.readouterr().out.rstrip("\n")


@pytest.mark.parametrize(
    ("guess", "answer", "unit", "line"),
    [
        (10, 0.8333, "percent", "You said 10 percent, it is 0.833 percent: 12 times too high."),
        (
            "10 percent",
            0.8333,
            "percent",
            "You said 10 percent, it is 0.833 percent: 12 times too high.",
        ),
        (0.1, 0.8333, "%", "You said 0.1%, it is 0.833%: 8.3 times too low."),
        (80, 100.0, "ms", "You said 80 ms, it is 100 ms: 20 % too low."),
        (180, 100.0, "ms", "You said 180 ms, it is 100 ms: 80 % too high."),
        (50, 100.0, "ms", "You said 50 ms, it is 100 ms: 2 times too low."),
        ("0.2 s", 100.0, "ms", "You said 0.2 s, it is 100 ms: 2 times too high."),
        ("50", 100.0, "ms", "You said 50 ms, it is 100 ms: 2 times too low."),
        (41, 40.6, "", "You said 41, it is 40.6: right to within 5 %."),
        (143, 143, "token/s", "You said 143 token/s: exactly right."),
        (20_000, 20_655, "rows", "You said 20,000 rows, it is 20,655 rows: right to within 5 %."),
        (640e9, 64e9, "byte", "You said 640 GB, it is 64 GB: 10 times too high."),
        (3, 0, "", "You said 3, it is 0."),
        (-3, 3, "", "You said -3, it is 3."),
        ("slow", 2.5, "ms", "You said 'slow'. Guess a number of ms, and run the cell again."),
        ("3 GB", 2.5, "ms", "You said '3 GB'. Guess a number of ms, and run the cell again."),
        ("The memory", "memory", "", "You said 'The memory': right."),
        (4, "4, four times over", "", "You said 4: right."),
        (240, "b = 128", "", "You said 240, it is 'b = 128'."),
        ("clock", "memory", "", "You said 'clock', it is 'memory'."),
        (True, True, "", "You said True: right."),
        (np.float64(2), np.int64(4), "", "You said 2, it is 4: 2 times too low."),
    ],
)
def test_how_far_off_is_told_in_one_line(capsys, guess, answer, unit, line):
    assert said(capsys, guess, answer, unit) == line


@pytest.mark.parametrize("blank", [..., None, "", "  "])
def test_nothing_is_said_before_there_is_a_guess(capsys, blank):
    assert said(capsys, blank, 3.0, "ms") == said(capsys, blank, (1, 2)) == ""
    assert said(capsys, (blank, blank), (1, 2)) == ""


def test_several_guesses_get_a_line_each(capsys):
    assert said(capsys, (1, ..., "memory"), (2, 3, "memory")) == (
        "You said 1, it is 2: 2 times too low.\nYou said 'memory': right."
    )
    assert said(capsys, (1, 2), (1.5, 2, 3), "ms") == ("You gave 2 of 3 guesses: guess them all.")
    assert said(capsys, 5, (1, 2)).startswith("You gave 1 of 2 guesses:")


def test_each_of_several_guesses_stands_under_its_name(capsys):
    answers = {"gemv": 1, "gemm": 2}
    assert said(capsys, (1, 4), answers, "times") == (
        "gemv: You said 1 times: exactly right.\n"
        "gemm: You said 4 times, it is 2 times: 2 times too high."
    )
    assert said(capsys, (1, 2, 3), answers) == (
        "You gave 3 of 2 guesses, one each for gemv, gemm: guess them all."
    )
    assert said(capsys, {"gemv": 1, "gemm": ...}, answers) == "gemv: You said 1: exactly right."


class Hostile:
    def refuse(self, *_):
        raise SystemExit

    __repr__ = __str__ = __float__ = __eq__ = __array__ = __hash__ = refuse


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@given(ANYTHING, ANYTHING, st.sampled_from(["", "%", "GB", "rows", "token/s"]))
def test_never_raises(guess, answer, unit):
    rl.guessed(guess, answer, unit)


@pytest.mark.parametrize("odd", [Hostile(), [Hostile()], np.ones((2, 2)), 10**400, lambda: 1])
def test_never_raises_for_odd_guesses(odd, capsys):
    for answer in (3.0, "memory", (1, 2), math.inf):
        assert said(capsys, odd, answer).startswith("You ")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp932"])
def test_any_console_can_print_it(monkeypatch, encoding):
    written = io.BytesIO()
    console = io.TextIOWrapper(written, encoding=encoding)
    monkeypatch.setattr(sys, "stdout", console)
    rl.guessed("3 µs \U0001f600", 6e-6, "s")
    rl.guessed(3, 6, "µs")
    console.flush()
    assert written.getvalue().count(b"You said") == 2


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_the_factor_told_leads_from_the_answer_to_the_guess(guess, answer):
    told = _how_far(guess, answer)
    assert ("high" in told) == (guess > answer * 1.05)
    if "times" in told:
        factor = float(told.split()[1].replace(",", ""))
        factor = factor if guess > answer else 1 / factor
        assert math.isclose(answer * factor, guess, rel_tol=0.06)
