"""Judging an answer: right, not answered yet, or wrong, and then which slip it is.

A question of each kind judges its own answers. Which questions there are, and under which id one is
found, is not known here: that is `roofline_lib.questions`.
"""

from roofline_lib.checks.guesses import guessed
from roofline_lib.checks.judging import Verdict, never_raising, tell, within
from roofline_lib.checks.questions import (
    ChoiceQuestion,
    FunctionQuestion,
    NumberQuestion,
    Question,
)
from roofline_lib.checks.tries import Tries
from roofline_lib.checks.variants import Varied

__all__ = [
    "ChoiceQuestion",
    "FunctionQuestion",
    "NumberQuestion",
    "Question",
    "Tries",
    "Varied",
    "Verdict",
    "guessed",
    "never_raising",
    "tell",
    "within",
]
