"""Practice questions with other numbers for each student."""

import json
import random
import re
from itertools import combinations

import make_exercises
import pytest
from harness.grading import FIRST, ran, read

import roofline_lib as rl
from roofline_lib.checks import NumberQuestion, within
from roofline_lib.grading import grade
from roofline_lib.questions import TOPICS, find_question, varied_on

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


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("variants")
    (folder / "names.txt").write_text("ada\nbob\n", encoding="utf-8")
    arguments = ["--variants", str(folder / "names.txt"), "--seed", "2026", "--lesson", "01"]
    make_exercises.main([*arguments, "--out", str(folder / "out")])
    return folder / "out" / FIRST


def test_each_student_gets_a_notebook_that_asks_with_own_numbers(handed_out):
    assert sorted(path.name for path in handed_out.iterdir()) == ["ada.ipynb", "bob.ipynb"]
    ada, bob = (json.loads((handed_out / f"{s}.ipynb").read_text()) for s in ("ada", "bob"))
    plain = read("exercises", FIRST)
    assert [cell["id"] for cell in ada["cells"]] == [cell["id"] for cell in plain["cells"]]
    asked = [re.findall(r"x-(?:levels|weights|macs): not .*", ran(book)) for book in (ada, bob)]
    assert len(asked[0]) == len(asked[1]) == 3 and not set(asked[0]) & set(asked[1])
    assert "variant" not in json.dumps(plain)


def test_a_notebook_of_a_variant_is_graded_as_any_other(handed_out, tmp_path):
    """The functions are called on drawn inputs; what a variant changes carries no marks."""
    book = json.loads((handed_out / "ada.ipynb").read_text())
    answers = {cell["id"]: cell["source"] for cell in read("solutions", FIRST)["cells"]}
    for cell in book["cells"]:
        if cell["id"] in ("product_flops", "rows_for"):
            cell["source"] = answers[cell["id"]]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ada.ipynb").write_text(json.dumps(book))
    (row,) = grade("01", tmp_path / "in", out=tmp_path / "marks.csv")
    assert (row.score, row.note) == (2, "")


def test_check_judges_by_the_students_own_numbers(capsys):
    name, (mine, theirs) = "intensity.x-macs", STUDENTS[:2]
    answer = shown(find_question(name, mine))
    assert rl.check(name, answer, variant=mine).right
    assert not rl.check(name, answer, variant=theirs).right
    assert not rl.check(name, answer).right


def test_variants_never_take_the_place_of_the_courses_exercises(tmp_path, capsys):
    (tmp_path / "names.txt").write_text("ada\n")
    with pytest.raises(SystemExit):
        make_exercises.main(["--variants", str(tmp_path / "names.txt")])
    assert "needs an --out of its own" in capsys.readouterr().err
