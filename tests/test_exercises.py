"""The exercises themselves: slips that students make lose their mark and no other, and the numbers
in the text are the computed ones.

What is particular to a topic stands in exercises/; what holds for every solution notebook, whatever
it asks, is tested in test_grading_exercises.py.
"""

import io
import json
import re
from contextlib import redirect_stdout
from importlib import import_module
from math import inf
from pathlib import Path
from pkgutil import iter_modules

import pytest

import exercises
import roofline_lib as rl
from roofline_lib.grading.draw import run_key
from roofline_lib.grading.inside.protocol import Ended, Reply, json_value
from roofline_lib.grading.judging import grade_one, judge
from roofline_lib.grading.solutions import solution, solution_folders
from roofline_lib.grading.submissions import Submission
from roofline_lib.questions import find_question

ROOT = Path(__file__).resolve().parents[1]
STUDENTS = [f"student {i}" for i in range(5)]
LESSONS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
TOPICS = [import_module(f"exercises.{topic.name}") for topic in iter_modules(exercises.__path__)]
OF_FUNCTIONS = [topic.WRONG_ANSWERS for topic in TOPICS if hasattr(topic, "WRONG_ANSWERS")]
WRONG_ANSWERS = {function: wrong for topic in OF_FUNCTIONS for function, wrong in topic.items()}
SHOWN_IN_THE_TEXT = {
    topic.LESSON: topic.shown_in_the_text for topic in TOPICS if hasattr(topic, "LESSON")
}


def source(cell):
    return "".join(cell["source"])


@pytest.fixture(scope="module", params=LESSONS)
def lesson(request):
    """(name, its solution, its functions, what it asks, inputs and answers of some students)."""
    book, names = solution(request.param, solution_folders()), {}
    with redirect_stdout(io.StringIO()):
        for cell in book["cells"]:
            if cell["cell_type"] == "code" and not cell["id"].startswith("test_"):
                exec(source(cell), names)
    return (request.param, book, names, *run_key(json.dumps(book).encode(), STUDENTS, "tests"))


def judged(function, question, drawn):
    """The Outcome of a function, for one student's inputs."""
    lines = [
        json.dumps({"defined": True, "skipped": {}}),
        *(json.dumps({"value": json_value(function(*json.loads(text)))}) for text in drawn.inputs),
    ]
    return judge(question, drawn, Reply(lines, Ended.DONE))


def is_right(function, question, drawn):
    """Whether a function gets the mark."""
    return judged(function, question, drawn).right


def test_slips_that_students_make_lose_the_mark(lesson):
    """For whatever inputs a student draws; the question's own slips too."""
    _, book, names, asked, tables = lesson
    checked = re.findall(r'rl\.check\("([^"]+)", (\w+)\)', "\n".join(map(source, book["cells"])))
    by_name = {function: find_question(question) for question, function in checked}
    for question in asked.marked:
        name = question.name
        slips = [*WRONG_ANSWERS.get(name, ()), *(slip for _, slip in by_name[name].slips)]
        for student in STUDENTS:
            drawn = tables[student][name]
            assert is_right(names[name], question, drawn)
            unnoticed = [i for i, slip in enumerate(slips) if is_right(slip, question, drawn)]
            assert unnoticed == [], name


def test_the_grader_names_the_slip_of_a_wrong_function(lesson):
    """From what the function gave for the inputs drawn, as rl.check names it for its own."""
    _, _, _, asked, tables = lesson
    for question in asked.marked:
        drawn = tables[STUDENTS[0]][question.name]
        for name, slip in find_question(question.question).slips:
            assert name in judged(slip, question, drawn).slips, (question.name, name)


def test_wrong_answers_are_for_functions_that_are_asked_for():
    """A name misspelled here would take its wrong answers out of the test without a word."""
    asked = set()
    for lesson in LESSONS:
        cells = solution(lesson, solution_folders())["cells"]
        asked |= set(re.findall(r"^def (\w+)", "\n".join(map(source, cells)), re.MULTILINE))
    assert sum(map(len, OF_FUNCTIONS)) == len(WRONG_ANSWERS)
    assert set(WRONG_ANSWERS) <= asked
    assert set(SHOWN_IN_THE_TEXT) <= {lesson.partition("_")[2] for lesson in LESSONS}


def test_a_wrong_function_loses_its_own_mark_only(lesson):
    """In the sandbox; every other function gives its answer a little changed, and then the rest."""
    name, book, _, asked, tables = lesson
    functions = [question.name for question in asked.marked]
    for wrong, student in zip((functions[::2], functions[1::2]), STUDENTS, strict=False):
        spoilt = json.loads(json.dumps(book))
        for cell in spoilt["cells"]:
            if (function := cell["id"]) in wrong:
                cell["source"] = source(cell) + (
                    f"\n\nright_{function} = {function}\n\ndef {function}(*inputs):\n"
                    f"    value = right_{function}(*inputs)\n"
                    "    if isinstance(value, str):\n        return f'not {value}'\n"
                    "    return [9, *value[1:]] if isinstance(value, list) else value * 1.001 + 1\n"
                )
        work = Submission(student, json.dumps(spoilt).encode())
        got = grade_one(work, asked, tables[student], 60)  # seconds; a busy machine needs some
        assert got.status == "graded", got.note
        assert {question: outcome.word for question, outcome in got.outcomes.items()} == {
            question: "wrong" if question in wrong else "right" for question in functions
        }


def test_numbers_in_the_text(lesson):
    name, book, names, *_ = lesson
    text = " ".join(source(cell) for cell in book["cells"] if cell["cell_type"] == "markdown")
    text = " ".join(text.split())
    shown = SHOWN_IN_THE_TEXT.get(name.partition("_")[2], lambda _: [])
    assert [said for said in shown(names) if said not in text] == []


def test_words_on_the_case_on_the_ridge():
    """2 x 2 x 2 is even at the second column, and the lesson's LoRA never pays; twenty rows never
    reach 10 FLOP/byte."""
    left, right = (rl.chain_cost((2, 2, 2, 2), order).flops for order in (((0, 1), 2), (0, (1, 2))))
    assert left == right and find_question("chains.x-merge-from").reference(2, 2, 2) == 3
    assert (
        find_question("chains.x-merge-from").reference(4096, 16, 4096)
        == inf
        == find_question("tiling.x-narrowest").reference(20, 4, 10)
    )
