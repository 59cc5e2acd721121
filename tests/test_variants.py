"""Practice questions with other numbers for each student."""

import random
from itertools import combinations

import make_exercises
import pytest
from harness.repository import ROOT

import roofline_lib as rl
from roofline_lib.checks import NumberQuestion, within
from roofline_lib.questions import TOPICS, all_questions, find_question, varied_on

VARIED = {name: one for topic in TOPICS for name, one in varied_on(topic).items()}
STUDENTS = [make_exercises.variant_of(f"student {i}", "tests") for i in range(30)]


@pytest.mark.parametrize("name", VARIED)
def test_a_neighbours_answer_is_wrong(name):
    questions = [find_question(name, variant) for variant in STUDENTS]
    pairs = list(combinations(questions, 2))
    same = sum(one.judge(shown(other)).right for one, other in pairs)
    assert same <= 0.1 * len(pairs)


@pytest.mark.parametrize("name", VARIED)
def test_a_variant_is_the_same_question_with_slips_of_its_own(name):
    plain = find_question(name)
    for variant in STUDENTS:
        question = find_question(name, variant)
        assert isinstance(question, NumberQuestion)
        assert (question.id, question.unit) == (plain.id, plain.unit)
        assert question.prompt == find_question(name, variant).prompt
        assert question.judge(shown(question)).right
        right = float(question.reference())
        for slip, wrong in question.slips:
            assert not within(wrong(), right, question.tolerance), (slip, question.prompt)


def test_the_docs_count_what_varies():
    values = [q.id for q in all_questions() if isinstance(q, NumberQuestion) and ".x-" in q.id]
    told = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    assert f"Of the {len(values)} practice questions for a number {len(VARIED)} have others" in told


def shown(question):
    scale, _ = question.scale_and_base
    return float(question.reference()) / scale


def test_numbers_as_the_course_has_them_without_a_variant():
    for name, one in VARIED.items():
        assert one.ask().prompt == find_question(name).prompt != one.variant("x").prompt


def test_a_draw_leaves_everybody_elses_chance_alone():
    random.seed(1)
    before = random.getstate()
    find_question(next(iter(VARIED)), "x")
    assert random.getstate() == before


def test_check_judges_by_the_students_own_numbers(capsys):
    name, (mine, theirs) = "intensity.x-macs", STUDENTS[:2]
    answer = shown(find_question(name, mine))
    assert rl.check(name, answer, variant=mine).right
    assert not rl.check(name, answer, variant=theirs).right
    assert not rl.check(name, answer).right
