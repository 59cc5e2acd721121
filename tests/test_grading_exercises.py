"""The exercises and what their solutions ask the grader to draw."""

import io
import json
import math
import re
import runpy
import sys
from contextlib import redirect_stdout

import pytest
from harness.grading import FIRST, LESSONS, ROOT, ran, read, source

from roofline_lib.grading.draw import run_key
from roofline_lib.grading.judging import grade_one
from roofline_lib.grading.solutions import solution, solution_folders
from roofline_lib.grading.submissions import Submission
from roofline_lib.questions import all_questions


@pytest.fixture(scope="module", params=LESSONS)
def lesson(request):
    """(name, what its solution asks, one student's inputs and answers)."""
    data = json.dumps(solution(request.param, solution_folders())).encode()
    asked, tables = run_key(data, ["somebody", "somebody else"], "tests")
    return request.param, asked, tables


def test_exercises_are_what_the_tool_makes(tmp_path, monkeypatch):
    before = {path: path.read_bytes() for path in (ROOT / "solutions").rglob("*.ipynb")}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["make_exercises.py", "--out", str(tmp_path)])
    with redirect_stdout(io.StringIO()):
        runpy.run_path(str(ROOT / "tools/make_exercises.py"), run_name="__main__")
    made = {
        path.relative_to(tmp_path): path.read_text(encoding="utf-8")
        for path in tmp_path.rglob("*.ipynb")
    }
    kept = {
        path.relative_to(ROOT / "exercises"): path.read_text(encoding="utf-8")
        for path in (ROOT / "exercises").rglob("*.ipynb")
    }
    assert made == kept
    assert {path: path.read_bytes() for path in before} == before, (
        "tools/make_exercises.py has metadata to add to solutions/"
    )


def test_questions_are_known_and_the_open_one_has_a_rubric(lesson):
    text = "\n".join(source(cell) for cell in read("solutions", lesson[0])["cells"])
    asked = set(re.findall(r'rl\.check\("([^"]+)"', text))
    assert asked and asked <= {question.id for question in all_questions()}
    assert re.search(r"[Rr]ubric", text)


def test_every_marked_question_has_a_draw(lesson):
    """Each function that has an answer in the solution is graded, with inputs drawn for it."""
    name, asked, tables = lesson
    answered = {
        cell["id"]
        for cell in read("solutions", name)["cells"]
        if cell["cell_type"] == "code" and "BEGIN SOLUTION" in source(cell)
    }
    assert {question.name for question in asked.marked} == answered
    for drawn in tables.values():
        assert set(drawn) == answered


def test_nothing_of_the_solution_is_in_the_exercise(lesson):
    text = json.dumps(read("exercises", lesson[0]))
    assert not re.search("SOLUTION|HIDDEN|marked\\(|[Rr]ubric", text)
    lines = [
        line.strip()
        for cell in read("solutions", lesson[0])["cells"]
        for block in re.findall(r"### BEGIN SOLUTION\n(.*?)### END", source(cell), re.DOTALL)
        for line in block.splitlines()
    ]
    assert not [line for line in lines if len(line) > 20 and json.dumps(line)[1:-1] in text]


def test_untouched_exercise_runs_and_says_so(lesson):
    book = read("exercises", lesson[0])
    asked = len(
        re.findall(
            r"rl\.check\(", "\n".join(source(c) for c in book["cells"] if c["cell_type"] == "code")
        )
    )
    printed = ran(book)
    assert printed.count("not answered yet") == asked > 0


def test_solution_runs_and_its_hidden_tests_pass(lesson):
    """The hidden tests hold the solution against the library on drawn inputs; the visible checks
    say right."""
    printed = ran(read("solutions", lesson[0]))
    assert printed.count("right on every input tried") == len(lesson[1].marked)


def test_hidden_tests_fail_a_wrong_function(lesson):
    """The same hidden tests, with each function giving a little more than it should."""
    book = read("solutions", lesson[0])
    for question in (one.name for one in lesson[1].marked):
        names, failed = {}, False
        for cell in book["cells"]:
            if cell["cell_type"] == "code":
                try:
                    with redirect_stdout(io.StringIO()):
                        exec(source(cell), names)
                except AssertionError:
                    failed = cell["id"] == f"test_{question}"
                if cell["id"] == question:
                    names[question] = named(
                        question, lambda *args, right=names[question]: other(right(*args))
                    )
        assert failed, question


def named(name, function):
    function.__name__ = name
    return function


def other(value):
    """A value that is near `value` and wrong."""
    if isinstance(value, list | tuple):
        return [*value[:-1], other(value[-1])]
    if isinstance(value, bool | str):
        return not value
    return 7.0 if math.isinf(value) else value * 1.001 + 1


def test_drawn_inputs_are_many_and_tell_answers_apart(lesson):
    _, asked, tables = lesson
    for question in asked.marked:
        one, two = (tables[student][question.name] for student in ("somebody", "somebody else"))
        assert len(one.inputs) >= 20 and one.inputs != two.inputs
        assert len(set(one.inputs)) >= 15
        assert all(answer is not None and not isinstance(answer, dict) for answer in one.answers)
        answers = [json.dumps(answer) for answer in one.answers]
        most = max(map(answers.count, answers))
        assert most <= 0.8 * len(answers), (
            f"{question.name}: one constant answers {most} of {len(answers)}"
        )


def test_the_solution_gets_every_mark_and_the_untouched_exercise_none(lesson):
    """With out of reach what the questions put out of reach, and for many draws."""
    name, asked, _ = lesson
    data = json.dumps(solution(name, solution_folders())).encode()
    students = [f"student {i}" for i in range(4)]
    asked, tables = run_key(data, students, "another term")
    for student in students:
        got = grade_one(Submission(student, data), asked, tables[student], 5)
        assert {outcome.word for outcome in got.outcomes.values()} == {"right"}, got
    untouched = json.dumps(read("exercises", name)).encode()
    got = grade_one(Submission("untouched", untouched), asked, tables[students[0]], 5)
    assert {outcome.word for outcome in got.outcomes.values()} == {"not answered"}


def test_examples_in_the_prose_of_lesson_01():
    names = {}
    for cell in read("solutions", FIRST)["cells"]:
        if cell["cell_type"] == "code":
            with redirect_stdout(io.StringIO()):
                exec(source(cell), names)
    text = " ".join(source(cell) for cell in read("exercises", FIRST)["cells"])
    assert f"2 × 3 × 4 makes {names['product_flops'](2, 3, 4)}." in text.replace("\n", " ")
    assert f"without the old C moves {names['product_bytes'](2, 3, 4, 4, False)} byte" in text
    assert f"that makes {names['layer_intensity'](64, 4096, 16384, 0.5, 2):.0f} FLOP/byte" in text
    assert f"makes `{names['convolution_product'](8, 8, 1, 5, 3)}`" in text
    assert f"it takes {names['rows_for'](50, 4096, 4096, 2)}, not 50" in text
