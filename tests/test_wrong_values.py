"""Each question names its likeliest wrong answers: rows of the tables in exercises/, as a student
types them, or slips of its own."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

import exercises
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion
from roofline_lib.questions import all_questions, find_question

TOPICS = [import_module(f"exercises.{topic.name}") for topic in iter_modules(exercises.__path__)]
ROWS = [row for topic in TOPICS for row in getattr(topic, "WRONG_VALUES", ())]
FEWER = {id: why for topic in TOPICS for id, why in getattr(topic, "FEWER", {}).items()}


@pytest.mark.parametrize(("name", "answer", "slips"), ROWS)
def test_the_slip_of_each_wrong_answer_is_named(name, answer, slips):
    verdict = find_question(name).judge(answer)
    assert not verdict.right
    assert set(verdict.slips) == set(slips.split(" or "))


def told_apart(question):
    """How many wrong answers to a question have a name of their own."""
    if isinstance(question, FunctionQuestion):
        return len({name for name, _ in question.slips})
    rows = {str(answer) for name, answer, _ in ROWS if name == question.id}
    return len(rows) or len(set(named_by_itself(question)))


def named_by_itself(question):
    """The values of a question's own slips that are told by their names."""
    for name, slipped in question.slips:
        answer = slipped()
        if isinstance(question, NumberQuestion):
            answer = float(answer) / question.scale_and_base[0]  # as typed in the asked unit
        verdict = question.judge(answer)
        if not verdict.right and name in verdict.slips:
            yield str(answer)


def test_a_question_of_its_own_tells_its_slips_by_name():
    question = NumberQuestion(
        "tiling.other",
        "How many kFLOP has a product of two 8 x 8 matrices?",
        lambda: 1024.0,
        unit="kFLOP",
        slips=[("mac-is-flop", lambda: 512.0), ("read-c", lambda: 1024.0)],
        hint="2 m n k",
    )
    assert list(named_by_itself(question)) == ["0.512"]


def enough(question):
    """Two, where there are two: a question with two choices has one wrong answer."""
    return min(2, len(question.choices) - 1) if isinstance(question, ChoiceQuestion) else 2


@pytest.mark.parametrize("question", all_questions(), ids=lambda question: question.id)
def test_the_two_likeliest_wrong_answers_have_a_name(question):
    has_enough = told_apart(question) >= enough(question)
    assert has_enough or FEWER.get(question.id), "name them in questions/, or say why in FEWER"


def test_only_questions_that_need_it_are_let_off():
    known = {question.id: question for question in all_questions()}
    assert {name for name, _, _ in ROWS} <= set(known)
    assert [id for id in FEWER if told_apart(known[id]) >= enough(known[id])] == []
