"""The exercises, the grader's command, its sandbox and its judgement. The hostile notebooks are
test_grading_corpus.py's."""

import ast
import csv
import io
import json
import math
import os
import random
import re
import runpy
import shutil
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

import roofline_lib as rl
from roofline_lib import grading
from roofline_lib.grading import batch, command, judging, marked, report, roster, sandbox
from roofline_lib.grading.draw import Lesson, OpenQuestion, run_key
from roofline_lib.grading.inside import slicing, syscalls
from roofline_lib.grading.inside.protocol import (
    Ended,
    Raised,
    Returned,
    Task,
    json_value,
    read_answer,
    read_facts,
)
from roofline_lib.grading.inside.serve import execute
from roofline_lib.grading.judging import Marks, called, grade_one, same
from roofline_lib.grading.solutions import lesson_name, solution, solution_folders
from roofline_lib.grading.submissions import LARGEST, Submission, collect, passed_over
from roofline_lib.questions import all_questions

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
FIRST = "01_arithmetic_intensity"


def read(kind, lesson):
    return json.loads((ROOT / kind / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def ran(book):
    """What a notebook's code cells print, run from top to bottom in one namespace."""
    names, printed = {}, io.StringIO()
    with redirect_stdout(printed):
        for cell in book["cells"]:
            if cell["cell_type"] == "code":
                exec(compile(source(cell), cell["id"], "exec"), names)
    return printed.getvalue()


def write(folder, **books):
    folder.mkdir(parents=True, exist_ok=True)
    for student, book in books.items():
        (folder / f"{student}.ipynb").write_text(
            book if isinstance(book, str) else json.dumps(book), encoding="utf-8"
        )
    return folder


def grade(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "roofline_lib", "grade", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


# Exercises


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


# The command


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory):
    book = read("exercises", FIRST)
    half = json.loads(json.dumps(book))
    for cell in half["cells"]:
        if cell["id"] == "product_flops":
            cell["source"] = "def product_flops(m, n, k):\n    return 2 * m * n * k"
    return write(
        tmp_path_factory.mktemp("class"), ada=read("solutions", FIRST), bob=book, cy=half, dan=""
    )


def test_marks_pages_and_exit_code(class_folder, tmp_path):
    (tmp_path / "students.txt").write_text("ada\neve\n\n", encoding="utf-8")
    done = grade(
        FIRST,
        class_folder,
        "--out",
        tmp_path / "marks.csv",
        "--seed",
        "2026",
        "--students",
        tmp_path / "students.txt",
    )
    assert done.returncode == 0, done.stderr
    names = ["product_flops", "product_bytes", "layer_intensity", "convolution_product", "rows_for"]
    assert (tmp_path / "marks.csv").read_text(encoding="utf-8") == (
        f"student,score,max_score,{','.join(names)},status,note\n"
        "ada,5,5,1,1,1,1,1,graded,\nbob,0,5,0,0,0,0,0,graded,\ncy,1,5,1,0,0,0,0,graded,\n"
        "dan,0,5,0,0,0,0,0,empty,an empty file\neve,0,5,0,0,0,0,0,missing,no notebook\n"
    )
    assert sorted(path.stem for path in (tmp_path / "marks_feedback").iterdir()) == [
        "ada",
        "bob",
        "cy",
        "dan",
        "eve",
    ]
    assert "Right on all 23 inputs." in (tmp_path / "marks_feedback/ada.html").read_text(
        encoding="utf-8"
    )
    assert not (tmp_path / "marks.csv.partial").exists()


def test_the_function_gives_the_rows_that_the_command_writes(class_folder, tmp_path):
    done = grade("01", class_folder, "--out", tmp_path / "command.csv", "--seed", "x")
    given = grading.grade("01", str(class_folder), out=tmp_path / "function.csv", seed="x")
    assert done.returncode == 0
    assert (tmp_path / "function.csv").read_bytes() == (tmp_path / "command.csv").read_bytes()
    written = rows(tmp_path / "function.csv")
    assert {row.student: f"{row.score:g}" for row in given} == {
        student: row["score"] for student, row in written.items()
    }
    assert given[0].points["product_flops"] == 1 and given[-1].status == "empty"


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"timeout": 1.5}, {"workers": -1}])
def test_the_function_names_an_argument_that_is_wrong(class_folder, tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        grading.grade("01", class_folder, out=tmp_path / "m.csv", **wrong)


def test_the_same_byte_for_byte_whatever_the_workers(class_folder, tmp_path):
    texts = []
    for workers in (1, 3):
        out = tmp_path / f"{workers}.csv"
        assert (
            grade("01", class_folder, "--out", out, "--workers", workers, "--seed", "x").returncode
            == 0
        )
        texts.append(
            [
                out.read_bytes(),
                *(
                    path.read_bytes()
                    for path in sorted((tmp_path / f"{workers}_feedback").iterdir())
                ),
            ]
        )
    assert texts[0] == texts[1]


def test_another_term_draws_other_inputs():
    data = json.dumps(solution(FIRST, solution_folders())).encode()
    first, again, later = (
        run_key(data, ["ada"], seed)[1] for seed in ("spring", "spring", "autumn")
    )
    assert first == again != later


def test_an_interrupted_run_goes_on(class_folder, tmp_path, monkeypatch):
    calls = []

    def stops_after_two(submission, *rest):
        calls.append(submission.student)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return grade_one(submission, *rest)

    arguments = [FIRST, str(class_folder), "--out", str(tmp_path / "m.csv"), "--workers", "1"]
    monkeypatch.setattr(batch, "grade_one", stops_after_two)
    monkeypatch.setattr(batch, "_own_code", lambda: "this version")
    assert command.main(arguments) == 130
    kept = (tmp_path / "m.csv.partial").read_text(encoding="utf-8").splitlines()
    assert not (tmp_path / "m.csv").exists() and len(kept) == 2
    # torn while it was written
    (tmp_path / "m.csv.partial").write_text(
        "\n".join([*kept, '{"student": "cy", "ke']), encoding="utf-8"
    )
    before = len(calls)
    assert command.main(arguments) == 0
    assert calls[before:] == ["cy", "dan"] and list(rows(tmp_path / "m.csv")) == [
        "ada",
        "bob",
        "cy",
        "dan",
    ]


def test_a_changed_notebook_is_graded_anew_after_an_interruption(
    class_folder, tmp_path, monkeypatch
):
    folder = write(tmp_path / "in", ada=read("solutions", FIRST), bob=read("exercises", FIRST))
    arguments = [FIRST, str(folder), "--out", str(tmp_path / "m.csv"), "--workers", "1"]
    monkeypatch.setattr(batch, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert command.main(arguments) == 130
    monkeypatch.undo()
    write(folder, ada=read("exercises", FIRST))
    assert command.main(arguments) == 0
    assert {student: row["score"] for student, row in rows(tmp_path / "m.csv").items()} == {
        "ada": "0",
        "bob": "0",
    }


def test_hand_marks_join(class_folder, tmp_path):
    (tmp_path / "hand.csv").write_text(
        "student,question,mark\nada,one_user,3.5\nbob,one_user,0\n", encoding="utf-8"
    )
    done = grade(
        FIRST, class_folder, "--out", tmp_path / "m.csv", "--manual", tmp_path / "hand.csv"
    )
    assert done.returncode == 0 and "by hand" not in done.stderr
    found = rows(tmp_path / "m.csv")
    assert [(row["score"], row["max_score"], row["one_user"]) for row in found.values()] == [
        ("8.5", "9", "3.5"),
        ("0", "9", "0"),
        ("1", "9", ""),
        ("0", "9", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "nobody,one_user,1",
        "ada,product_flops,1",
        "ada,one_user,5",
        "ada,one_user,-1",
        "ada,one_user,x",
        "ada,one_user",
    ],
)
def test_a_wrong_hand_mark_is_refused(class_folder, tmp_path, line):
    (tmp_path / "hand.csv").write_text(f"student,question,mark\n{line}\n", encoding="utf-8")
    done = grade(
        FIRST, class_folder, "--out", tmp_path / "m.csv", "--manual", tmp_path / "hand.csv"
    )
    assert done.returncode == 2 and "line 2" in done.stderr and not (tmp_path / "m.csv").exists()


def test_unknown_lesson_and_folder(class_folder, tmp_path):
    done = grade("99", class_folder, "--out", tmp_path / "m.csv")
    assert done.returncode == 2 and FIRST in done.stderr
    assert grade(FIRST, tmp_path / "nowhere", "--out", tmp_path / "m.csv").returncode == 2


def test_without_a_sandbox_it_refuses_unless_a_draft_is_asked_for(class_folder, tmp_path):
    nothing = {**os.environ, "PATH": str(tmp_path)}
    done = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", env=nothing)
    assert (
        done.returncode == 3
        and "docker run" in done.stderr
        and "--unsafe-draft" in done.stderr
        and not (tmp_path / "m.csv").exists()
    )
    assert (
        grade(
            FIRST, class_folder, "--out", tmp_path / "m.csv", "--unsafe-draft", env=nothing
        ).returncode
        == 0
    )
    found = rows(tmp_path / "m.csv")
    assert found["ada"]["score"] == "5" and found["bob"]["score"] == "0"
    assert {row["status"] for row in found.values()} == {"draft", "empty"}


def test_a_draft_does_without_fork_too(tmp_path, monkeypatch):
    """As on Windows: one question a process."""
    data = json.dumps(solution(FIRST, solution_folders())).encode()
    asked, tables = run_key(data, ["ada"], "")
    copy = shutil.copytree(sandbox._INSIDE, tmp_path / "inside")
    serve = (copy / "serve.py").read_text(encoding="utf-8")
    without_fork = serve.replace("import os\n", "import os\n\ndel os.fork\n", 1)
    assert without_fork != serve
    (copy / "serve.py").write_text(without_fork, encoding="utf-8")
    monkeypatch.setattr(sandbox, "_INSIDE", copy)
    got = grade_one(Submission("ada", data), asked, tables["ada"], 5, draft=True)
    assert {outcome.word for outcome in got.outcomes.values()} == {"right"}


def test_a_solution_that_does_not_run(class_folder, tmp_path):
    book = read("solutions", FIRST)
    book["cells"][1]["source"] = "raise RuntimeError('unfinished')"
    write(tmp_path / "mine" / FIRST, **{FIRST: book})
    done = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", "--solutions", tmp_path / "mine")
    assert done.returncode == 4 and "unfinished" in done.stderr


def test_a_failure_of_the_grader_itself_is_a_status_and_an_exit_code(
    class_folder, tmp_path, monkeypatch
):
    class Fails(sandbox.StudentSandbox):
        def __init__(self, data, **options):
            if b"BEGIN SOLUTION" in data:
                raise sandbox.Broken("no memory")
            super().__init__(data, **options)

    monkeypatch.setattr("roofline_lib.grading.judging.StudentSandbox", Fails)
    arguments = [FIRST, str(class_folder), "--out", str(tmp_path / "m.csv"), "--workers", "1"]
    assert command.main(arguments) == 1
    assert {student: row["status"] for student, row in rows(tmp_path / "m.csv").items()} == {
        "ada": "error",
        "bob": "graded",
        "cy": "graded",
        "dan": "empty",
    }
    monkeypatch.undo()
    assert command.main(arguments) == 0 and rows(tmp_path / "m.csv")["ada"]["score"] == "5"


@pytest.mark.parametrize("where", ["the judgement", "a worker"])
def test_whatever_fails_for_one_student_is_that_students_row(
    class_folder, tmp_path, monkeypatch, where
):
    """In the judgement, or in a worker that carries it: the others keep their marks."""

    def lost(submission, *rest):
        if submission.student == "ada":
            raise RuntimeError("a worker was lost")
        return grade_one(submission, *rest)

    if where == "a worker":
        monkeypatch.setattr(batch, "grade_one", lost)
    else:
        monkeypatch.setattr(judging, "judge", fails_for_a_whole_solution(judging.judge))
    arguments = [FIRST, str(class_folder), "--out", str(tmp_path / "m.csv"), "--workers", "2"]
    assert command.main(arguments) == 1
    found = rows(tmp_path / "m.csv")
    assert [row["status"] for row in found.values()] == ["error", "graded", "graded", "empty"]
    assert "the grader itself failed (R" in found["ada"]["note"] and found["cy"]["score"] == "1"
    monkeypatch.undo()
    assert command.main(arguments) == 0 and rows(tmp_path / "m.csv")["ada"]["score"] == "5"


def fails_for_a_whole_solution(judge):
    """A judgement that fails where the last question is right, as only the solution's is."""

    def judged(question, drawn, reply):
        outcome = judge(question, drawn, reply)
        if question.name == "rows_for" and outcome.right:
            raise RecursionError("maximum recursion depth exceeded")
        return outcome

    return judged


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [17, 200, 1495, 100_000])
def test_a_nest_that_is_too_deep_is_no_answer(depth):
    """Python 3.12 reads nests with json that it cannot print or walk."""
    facts = read_facts(f'{{"skipped": {{"1": {nested(depth)}}}, "kind": "x"}}')
    assert (facts.skipped, facts.kind, facts.error) == (None, "", "something that is no answer")
    for field in ("value", "error"):
        line = f'{{"{field}": {nested(depth)}}}'
        assert read_answer(line) == Raised("something that is no answer")


def test_whatever_json_value_gives_is_shallow_enough():
    deep = [1]
    for _ in range(40):
        deep = [deep]
    for value in (deep, np.ones((1,) * 20), [np.ones((1,) * 20)]):
        line = json.dumps({"value": json_value(value)})
        assert isinstance(read_answer(line), Returned)


def test_cells_not_read_are_named_by_texts():
    assert read_facts('{"skipped": {"1": "why"}}').skipped == {"1": "why"}
    assert read_facts('{"skipped": {"1": ["why"]}}').skipped is None


def test_one_dispatcher():
    done = subprocess.run(
        [sys.executable, "-m", "roofline_lib", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and all(
        name in done.stdout for name in ("grade", "measure", "machines")
    )
    assert (
        subprocess.run(
            [sys.executable, "-m", "roofline_lib", "mark"], capture_output=True
        ).returncode
        == 2
    )
    assert "exit codes" in grade("--help").stdout


def test_dask(class_folder, tmp_path):
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        done = grade(
            FIRST, class_folder, "--out", tmp_path / "dask.csv", "--dask", cluster.scheduler_address
        )
    assert done.returncode == 0, done.stderr
    assert grade(FIRST, class_folder, "--out", tmp_path / "own.csv").returncode == 0
    assert (tmp_path / "dask.csv").read_bytes() == (tmp_path / "own.csv").read_bytes()


@pytest.mark.parametrize(
    "option", [("--timeout", "0"), ("--timeout", "-3"), ("--workers", "0"), ("--workers", "x")]
)
def test_limits_below_one_are_refused(class_folder, tmp_path, option):
    done = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", *option)
    assert done.returncode == 2 and "at least 1" in done.stderr


def test_a_misspelt_without_is_refused_before_anything_is_graded(class_folder, tmp_path):
    book = read("solutions", FIRST)
    text = json.dumps(book).replace("without=[", 'without=[\\"gemmm\\", ')
    assert text != json.dumps(book)
    write(tmp_path / "mine" / FIRST, **{FIRST: text})
    done = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", "--solutions", tmp_path / "mine")
    assert (
        done.returncode == 2
        and "gemmm; near it are gemm" in done.stderr
        and not (tmp_path / "m.csv").exists()
    )


def test_a_solution_without_points_and_a_folder_with_a_short_name(class_folder, tmp_path):
    book = read("solutions", FIRST)
    for cell in book["cells"]:
        cell["metadata"] = {}
    write(tmp_path / "mine" / FIRST, **{FIRST: book})
    done = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", "--solutions", tmp_path / "mine")
    assert (
        done.returncode == 4
        and "make_exercises.py" in done.stderr
        and "Traceback" not in done.stderr
    )
    write(tmp_path / "short" / "01", energy="{}")
    done = grade(
        FIRST, class_folder, "--out", tmp_path / "m.csv", "--solutions", tmp_path / "short"
    )
    assert done.returncode == 2 and f"full name, {FIRST}" in done.stderr
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tools/make_exercises.py",
            "--solutions",
            tmp_path / "short",
            "--out",
            tmp_path / "to",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and FIRST in done.stderr and not (tmp_path / "to").exists()


def test_where_the_marks_go_is_looked_at_first(tmp_path):
    folder = write(tmp_path / "in", ada="")
    (tmp_path / "in" / "otto.zip").touch()
    done = grade(FIRST, folder, "--out", folder / "m.csv")
    assert (
        done.returncode == 2
        and "choose another folder" in done.stderr
        and not (folder / "m_feedback").exists()
    )
    (tmp_path / "a_folder.csv").mkdir()
    assert grade(FIRST, folder, "--out", tmp_path / "a_folder.csv").returncode == 2
    done = grade(FIRST, folder, "--out", tmp_path / "m.csv")
    assert done.returncode == 0 and "passed over, as they are no .ipynb: otto.zip" in done.stderr
    assert grade(FIRST, tmp_path / "m.csv", "--out", tmp_path / "n.csv").returncode == 2
    (tmp_path / "empty").mkdir()
    done = grade(FIRST, tmp_path / "empty", "--out", tmp_path / "n.csv")
    assert done.returncode == 2 and "no notebook" in done.stderr


def test_pages_of_an_earlier_run_go_and_nothing_else(tmp_path):
    write(tmp_path / "in", ada="", bob=json.dumps(read("exercises", FIRST)))
    assert grade(FIRST, tmp_path / "in", "--out", tmp_path / "m.csv").returncode == 0
    (tmp_path / "m_feedback/mine.html").write_text("<p>mine", encoding="utf-8")
    assert "To be marked by hand" in (tmp_path / "m_feedback/bob.html").read_text(encoding="utf-8")
    (tmp_path / "in/ada.ipynb").unlink()
    assert grade(FIRST, tmp_path / "in", "--out", tmp_path / "m.csv").returncode == 0
    assert sorted(path.name for path in (tmp_path / "m_feedback").iterdir()) == [
        "bob.html",
        "mine.html",
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("1", LESSONS[0]),
        ("01", LESSONS[0]),
        ("10", LESSONS[9]),
        ("7", LESSONS[6]),
        ("03_t", LESSONS[2]),
    ],
)
def test_a_lesson_by_its_number_or_its_beginning(given, meant):
    assert lesson_name(given, solution_folders()) == meant


@pytest.mark.parametrize("given", ["0", "99", "", "tiling", "1_"])
def test_no_lesson_or_several(given):
    with pytest.raises(ValueError, match="is not known; choose one of 01_"):
        lesson_name(given, solution_folders())


def test_a_second_submission_and_one_that_lies_too_deep_are_named(tmp_path):
    write(tmp_path, ada="{}")
    write(tmp_path / "ada", hw="[]")
    write(tmp_path / "bob/hw1", hw="{}")
    (tmp_path / "cy").mkdir()
    found = {one.student: one for one in collect(tmp_path, FIRST)}
    assert (found["ada"].data, found["ada"].note) == (
        b"{}",
        "took ada.ipynb, not the folder of that name",
    )
    assert (found["bob"].status, found["bob"].note) == (
        "missing",
        "no notebook; one level too deep lies hw1/hw.ipynb",
    )
    assert (found["cy"].status, found["cy"].note) == ("missing", "no notebook")


def test_a_name_too_long_for_its_page(tmp_path):
    twins = [("n" * 254 + end) for end in "ab"]
    for student in twins:
        (tmp_path / "in" / student).mkdir(parents=True)
        (tmp_path / "in" / student / f"{FIRST}.ipynb").write_text(
            json.dumps(read("exercises", FIRST)), encoding="utf-8"
        )
    assert grade(FIRST, tmp_path / "in", "--out", tmp_path / "m.csv").returncode == 0
    assert list(rows(tmp_path / "m.csv")) == twins
    assert len(list((tmp_path / "m_feedback").iterdir())) == 2


def test_an_interrupt_says_what_it_waits_for(class_folder, tmp_path, monkeypatch, capsys):
    import threading

    begun = threading.Event()

    def slow(submission, *rest):
        if submission.student == "ada":
            begun.wait(9)
            raise KeyboardInterrupt
        begun.set()
        time.sleep(1)
        return grade_one(submission, *rest)

    monkeypatch.setattr(batch, "grade_one", slow)
    assert (
        command.main([FIRST, str(class_folder), "--out", str(tmp_path / "m.csv"), "--workers", "2"])
        == 130
    )
    assert re.match("interrupted: waiting for [12] notebooks", capsys.readouterr().err)


def test_both_tries_have_the_time_of_one():
    book = {
        "cells": [
            {
                "cell_type": "code",
                "source": (
                    "import time\ndef product_flops(m, n, k):\n"
                    "    time.sleep(4)\n    raise KeyError"
                ),
            }
        ]
    }
    data = json.dumps(solution(FIRST, solution_folders())).encode()
    asked, tables = run_key(data, ["ada"], "")
    asked = Lesson([one for one in asked.marked if one.name == "product_flops"], asked.prelude)
    begun = time.monotonic()
    got = grade_one(Submission("ada", json.dumps(book).encode()), asked, tables["ada"], 2)
    assert (
        got.outcomes["product_flops"].word in ("error", "out of time")
        and time.monotonic() - begun < 10
    )


def test_sentences(class_folder):
    def sentence(*sources):
        book = {"cells": [{"cell_type": "code", "source": text} for text in sources]}
        got = grade_one(Submission("ada", json.dumps(book).encode()), asked, tables["ada"], 2)
        return got.outcomes["product_flops"].sentence

    asked, tables = run_key(json.dumps(solution(FIRST, solution_folders())).encode(), ["ada"], "")
    assert sentence("product_flops = 7") == "product_flops is a number, not a function."
    assert (
        "cell 1 (" in (text := sentence("def product_flops(m, n, k):\n    return 2 * (m"))
        and "never closed, line 2)" in text
    )
    drawn = json.loads(tables["ada"]["product_flops"].inputs[-20])
    assert f"product_flops({', '.join(map(str, drawn))}) gave 0." in sentence(
        "def product_flops(m, n, k):\n    return 0"
    )
    assert "gave something of type dict" in sentence("def product_flops(m, n, k):\n    return {}")
    assert called("f", '[1, null, true, 0.5, "a"]') == "f(1, None, True, 0.5, 'a')"


@pytest.mark.parametrize(
    "text, said",
    [
        ("student;question;mark\nada;one_user;1\n", "student,question,mark, with commas"),
        ("ada,one_user,1\n", "line 1"),
        ("", "line 1"),
        ("student,question,mark\nada,one_user,1\nada,one_user,2\n", "line 3"),
        ("student,question,mark\neve,one_user,\n", "'eve' has no row"),
    ],
)
def test_lists_of_hand_marks(tmp_path, text, said):
    (tmp_path / "h.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)):
        roster.read_hand_marks(tmp_path / "h.csv", {"ada", "bob"}, [OpenQuestion("one_user", 2)])


def test_an_empty_hand_mark_is_none_yet(tmp_path):
    (tmp_path / "h.csv").write_text(
        "student,question,mark,why\nada,one_user,,\nbob,one_user,2,good\n", encoding="utf-8-sig"
    )
    questions = [OpenQuestion("one_user", 2)]
    marks = roster.read_hand_marks(tmp_path / "h.csv", {"ada", "bob"}, questions)
    assert marks == {("bob", "one_user"): 2}


def test_names_of_a_class(tmp_path):
    path = tmp_path / "names.txt"
    path.write_bytes("\ufeffada\r\nZoe\u0308\r\n\r\n".encode())
    assert roster.read_names(path) == {"ada", "Zo\xeb"}
    for name in ("../../eve", "a/b", ".."):
        path.write_text(f"ada\n{name}\n", encoding="utf-8")
        with pytest.raises(ValueError, match="line 2"):
            roster.read_names(path)
    path.write_bytes("Zo\xeb".encode("latin-1"))
    with pytest.raises(ValueError, match="names.txt is not UTF-8"):
        roster.read_names(path)


# Handing in


def test_collect_odd_names_and_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    write(tmp_path, **{"Zoe\u0308": "{}"})
    (tmp_path / "nina.IPYNB").write_text("{}")
    (tmp_path / "mia.py").touch()
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "shut").mkdir()
    scandir = os.scandir

    def guarded(path):
        if str(path).endswith("shut"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = {s.student: s.status for s in collect(tmp_path, FIRST, {"Zo\xeb"})}
    assert found == {"Zo\xeb": "", "nina": "", "shut": "unreadable"}
    assert passed_over(tmp_path) == ["mia.py"]


@pytest.mark.parametrize("first", "=+-@\t\r")
def test_no_name_is_a_formula(tmp_path, first):
    report.write(tmp_path / "m.csv", [Marks(f"{first}1", "empty")], [], None, FIRST)
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file))[1][0] == f"'{first}1".replace("\r", "\\r")


def test_collect(tmp_path):
    write(tmp_path, ada="{}", zoe="{}")
    write(tmp_path / "bob", b="{}", a="{}")
    write(tmp_path / "cy", x="{}", **{FIRST: "[]"})
    write(tmp_path / "ada", y="[]")
    (tmp_path / ".DS_Store").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "huge.ipynb").touch()
    os.truncate(tmp_path / "huge.ipynb", LARGEST + 1)
    found = {s.student: s for s in collect(tmp_path, FIRST, {"dan", "ada"})}
    assert list(found) == ["ada", "bob", "cy", "dan", "huge", "zoe"]
    assert (found["ada"].data, found["bob"].note, found["cy"].data) == (
        b"{}",
        "2 notebooks: took a.ipynb",
        b"[]",
    )
    assert (found["dan"].status, found["huge"].status) == ("missing", "unreadable")


# The sandbox


@pytest.fixture(
    params=[sandbox.as_root, sandbox.as_user] if os.geteuid() == 0 else [sandbox.as_user]
)
def user(request, monkeypatch):
    """Both modes of bubblewrap, where there are two."""
    monkeypatch.setattr(sandbox, "working_mode", lambda: request.param)


def reply_inside(body, **options):
    """What the sandbox replies when it has called a function of this body with 3."""
    book = {
        "cells": [
            {
                "cell_type": "code",
                "source": "def f(n):\n" + "\n".join(f"    {line}" for line in body.splitlines()),
            }
        ]
    }
    with sandbox.StudentSandbox(json.dumps(book).encode(), **options) as box:
        prelude = "import roofline_lib as rl"
        return box.answer(Task("f", ["[3]"], whole=False, seconds=2, wall=7, prelude=prelude))


def values_inside(body, **options):
    """([the function's value or error], how it ended)."""
    reply = reply_inside(body, **options)
    return [json.loads(line) for line in reply.lines[1:]], reply.ended


def test_a_plain_call(user):
    assert values_inside("return n + 1") == ([{"value": 4}], "done")


def test_what_is_to_be_seen(user):
    body = (
        "import os\nreturn [sorted(os.listdir('/')), sorted(os.environ), os.listdir('/tmp'), "
        "os.getuid() > 1e9, os.getpid() < 9]"
    )
    (listed, environment, home, is_nobody, own_processes) = values_inside(body)[0][0]["value"]
    assert set(listed) <= {
        "course",
        "dev",
        "python",
        "tmp",
        "usr",
        "lib",
        "lib32",
        "lib64",
        "libx32",
    }
    assert set(environment) <= {
        "OPENBLAS_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "PYTHONHASHSEED",
        "HOME",
        "MPLBACKEND",
        "LANG",
        "PWD",
        "LD_LIBRARY_PATH",
    }
    assert home == [] and is_nobody and own_processes


@pytest.mark.parametrize(
    "call",
    [
        "os.fork()",
        "os.kill(1, 9)",
        "os.kill(-1, 9)",
        "os.kill(os.getppid(), 9)",
        "socket.socket()",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        "os.execv('/usr/bin/true', ['true'])",
        "os.posix_spawn(sys.executable, ['python'], {})",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), {0})",
        "os.memfd_create('x')",
        "os.pidfd_open(os.getppid())",
        "socket.socket(socket.AF_UNIX)",
        "os.chroot('/tmp')",
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(0, 10, 9)",
        "os.setxattr('/tmp', 'system.posix_acl_default', b'1')",
        "os.setxattr('/tmp', 'user.x', b'1', follow_symlinks=False)",
        "os.setxattr(os.open('/tmp', 0), 'system.posix_acl_default', b'1')",
        "fcntl.fcntl(open(fcntl.__file__), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
        "fcntl.fcntl(os.open('/tmp', 0), fcntl.F_NOTIFY, fcntl.DN_CREATE)",
        "fcntl.fcntl(open(os.__file__), 1036, (2).to_bytes(8, 'little'))",
        "fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
    ],
)
def test_system_calls_that_are_refused(user, call):
    (value,), ended = values_inside(
        f"import fcntl, os, socket, resource, sys\n{call}\nreturn 'done'"
    )
    assert ended == "done" and value["error"].startswith("PermissionError"), value


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/course/x",
        "/course/library/x",
        "/course/inside/serve.py",
        "/course/packages/x",
        "/dev/x",
        "/usr/lib/x",
    ],
)
def test_nothing_but_tmp_can_be_written(user, path):
    assert "error" in values_inside(f"open({path!r}, 'a')\nreturn 1")[0][0]
    assert values_inside("open('/tmp/x', 'w').write('abc')\nreturn open('/tmp/x').read()")[0] == [
        {"value": "abc"}
    ]


def test_limits(user):
    assert values_inside("return len(bytearray(2 << 30))")[0][0]["error"].startswith("MemoryError")
    assert (
        "File too large" in values_inside("open('/tmp/x', 'wb').truncate(1 << 30)")[0][0]["error"]
    )
    names = "CPU", "AS", "NPROC", "NOFILE", "FSIZE", "CORE"
    limits = values_inside(
        "import resource\n"
        f"return [resource.getrlimit(getattr(resource, 'RLIMIT_' + name)) for name in {names}]"
    )[0]
    others = [[most, most] for most in (1 << 30, 64, 64, 16 << 20, 0)]
    assert limits == [{"value": [[2, 3], *others]}]
    assert values_inside("while True: pass") == ([], "out of time")
    # the kernel's word counts, whatever is measured afterwards
    by_signal = "import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)"
    assert values_inside(by_signal) == ([], "out of time")
    deaf = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert values_inside(deaf) == ([], "out of time")
    assert reply_inside("return list(range(10 ** 6))").ended == Ended.TOO_MUCH_OUTPUT
    assert values_inside("import os\nos._exit(3)") == ([], "stopped")
    threads = (
        "import threading\ndone = []\nt = threading.Thread(target=done.append, args=(n,))\n"
        "t.start()\nt.join()\nreturn done"
    )
    assert values_inside(threads)[0] == [{"value": [3]}]


def test_own_namespaces_and_nothing_left_running(user):
    with sandbox.StudentSandbox(b'{"cells": []}') as box:
        inner = Path(f"/proc/{box.process.pid}/task/{box.process.pid}/children").read_text().split()
        for kind in ("net", "pid", "ipc", "uts", "mnt"):
            assert os.readlink(f"/proc/{inner[0]}/ns/{kind}") != os.readlink(
                f"/proc/self/ns/{kind}"
            )
        assert Path(f"/proc/{inner[0]}/oom_score_adj").read_text() == "1000\n"
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}/cwd").exists() for pid in inner) and time.monotonic() < end:
        time.sleep(0.01)
    assert not [pid for pid in inner if Path(f"/proc/{pid}/cwd").exists()]


def test_a_sandbox_that_breaks_costs_the_question_that_broke_it(monkeypatch):
    class Breaks(sandbox.StudentSandbox):
        def answer(self, task):
            if task.name == "layer_intensity":
                self.process.kill()
            return super().answer(task)

    data = json.dumps(solution(FIRST, solution_folders())).encode()
    asked, tables = run_key(data, ["ada"], "")
    monkeypatch.setattr("roofline_lib.grading.judging.StudentSandbox", Breaks)
    got = grade_one(Submission("ada", data), asked, tables["ada"], 5)
    assert {name: outcome.word for name, outcome in got.outcomes.items()} == {
        name: "stopped" if name == "layer_intensity" else "right" for name in tables["ada"]
    }
    assert got.note == "layer_intensity: stopped"


def test_what_a_question_asks_for_is_out_of_reach(user):
    calls = {
        "gemm": "return rl.gemm(n, n, n).flops",
        "operators": "return rl.critical_size('house chip', 'fp32')",
        "Transformer": "return rl.transformer('llama-2-7b').parameters",
    }
    for name, body in calls.items():
        assert "value" in values_inside(body)[0][0]
        assert "out of reach" in values_inside(body, without=(name,))[0][0]["error"]
    assert (
        "error" in values_inside("import roofline_lib.questions.intensity")[0][0]
        and "error" in values_inside("import roofline_lib.grading")[0][0]
    )
    assert values_inside(
        "return rl.machine('house chip').ridge_point('fp32')", without=("operators", "tiling")
    )[0] == [{"value": 10.0}]
    with pytest.raises(ValueError, match="nothing_of_the_kind"):
        sandbox.library_copy(("nothing_of_the_kind",))


def test_a_package_is_out_of_reach_as_a_whole():
    copy = sandbox.library_copy(("checks",))
    left = (copy / "checks/judging.py").read_text(encoding="utf-8")
    assert "def within" in left and "within is out of reach" in left


def test_no_copy_of_the_library_has_what_was_taken_out():
    """No line of a function that is out of reach is left, not even of those that it is made of."""
    copy = sandbox.library_copy(("operators",))
    left = (copy / "operators.py").read_text(encoding="utf-8")
    tree = ast.parse((ROOT / "roofline_lib/operators.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "gemm" in {function.name for function in functions}
    for function in functions:
        for line in function.body[1:]:
            assert ast.unparse(line) not in left
    copy = sandbox.library_copy(())
    assert [path.name for path in (copy / "questions").glob("*.py")] == ["__init__.py"]
    assert not (copy / "grading").exists()


def run_filter(program, number, arguments=(0, 0), arch=None, kind="x86_64"):
    """A reading of the filter by hand: what the kernel would do with a system call."""
    arch = syscalls.AUDIT_ARCHITECTURES[kind] if arch is None else arch
    steps = [program[i : i + 8] for i in range(0, len(program), 8)]
    at, value = 0, None
    while True:
        step = steps[at]
        code, yes, no, k = (
            int.from_bytes(step[:2], "little"),
            step[2],
            step[3],
            int.from_bytes(step[4:], "little"),
        )
        at += 1
        if code == 0x20:
            value = {0: number, 4: arch, 16: arguments[0], 24: arguments[1]}[k]
        elif code == 0x06:
            return {
                0x7FFF0000: "allow",
                0x80000000: "kill",
                0x50001: "refuse",
                0x50026: "not there",
            }[k]
        else:
            at += yes if {0x15: value == k, 0x45: bool(value & k), 0x35: value >= k}[code] else no


@pytest.mark.parametrize("kind", syscalls.KINDS)
def test_filter(kind):
    calls = syscalls.program(77, kind)

    def verdict(call, *arguments, **rest):
        number = call if isinstance(call, int) else getattr(call, kind)
        return run_filter(calls, number, (*arguments, 0, 0)[:2], kind=kind, **rest)

    assert verdict(syscalls.CLONE, 0x11) == "refuse"
    assert verdict(syscalls.CLONE, 0x3D0F00) == "allow"
    assert verdict(syscalls.CLONE3) == "not there"
    for call in (syscalls.KILL, syscalls.TGKILL):
        assert verdict(call, 77) == "allow"
        assert {verdict(call, pid) for pid in (1, 78, 0, 2**32 - 1)} == {"refuse"}
    assert [verdict(syscalls.PRLIMIT, pid) for pid in (0, 77)] == ["allow", "allow"]
    assert [verdict(syscalls.PRLIMIT, pid) for pid in (1, 78)] == ["refuse", "refuse"]
    ordinary = (0, 1, 2, 3, 4, 5, 6, 7, 1030)  # copies, flags and locks
    assert {verdict(syscalls.FCNTL, 4, command) for command in ordinary} == {"allow"}
    others = {*range(100), *range(1024, 1100), 2**31} - set(ordinary)
    assert {verdict(syscalls.FCNTL, 4, command) for command in others} == {"refuse"}
    denied = [number for call in syscalls.DENIED for number in syscalls.numbers(call, kind)]
    assert {verdict(number) for number in denied} == {"refuse"}
    assert len(set(denied)) == len(denied)
    assert verdict(1 << 30) == "refuse" and verdict(0, arch=3) == "kill"
    assert verdict({"x86_64": 0, "aarch64": 63}[kind]) == "allow"  # read


def test_no_call_has_dropped_out_of_the_filter():
    """Written out once more: a line lost from the table would be noticed by nothing else."""
    names = """
    fork vfork execve execveat
    tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open pidfd_getfd
    ptrace process_vm_readv process_vm_writev process_madvise kcmp
    socket unshare setns
    mount umount2 pivot_root chroot open_by_handle_at
    open_tree move_mount fsopen fsmount mount_setattr
    shmget msgget semget mq_open memfd_create memfd_secret
    setxattr lsetxattr fsetxattr setxattrat
    io_uring_setup keyctl add_key request_key
    bpf perf_event_open userfaultfd personality
    setpriority sched_setaffinity sched_setscheduler sched_setattr sched_setparam ioprio_set
    migrate_pages move_pages process_mrelease
    """
    assert [call.name for call in syscalls.DENIED] == names.split()


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("kind", syscalls.KINDS)
def test_the_kernel_has_the_same_numbers_for_these_calls(kind):
    """Held against the headers that the kernel's own sources make, where they are installed."""
    header = Path(HEADERS[kind])
    if not header.exists():
        pytest.skip(f"no {header} here")
    text = header.read_text(encoding="utf-8")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    official = {name: int(number) for name, number in found}
    looked_at = ("CLONE", "CLONE3", "FCNTL", "KILL", "TGKILL", "PRLIMIT")
    for call in (*syscalls.DENIED, *(getattr(syscalls, name) for name in looked_at)):
        number = getattr(call, kind)
        is_newer = number is not None and number > max(official.values())
        assert is_newer or number == official.get(call.name), call


# Slices


def slices(*sources, name="f"):
    names = {}
    for code in slicing.slice_for(name, slicing.read_statements(sources, name).statements):
        exec(code, names)
    return names


def test_slice_takes_what_the_function_leans_on_and_no_more():
    names = slices(
        "import math, os\nunused = 1 / 0",
        "w = 4",
        "table = {}\nprint(oops)",
        "for k in 'ab':\n    table[k] = w",
        "def g(x):\n    return x * table['b']",
        "while False:\n    pass\nmath.pi = 4\n(os.x)",
        "w += 1",
        "def f(x):\n    return g(x) + w + math.floor(math.pi)",
    )
    assert names["f"](2) == 16 and "unused" not in names and math.pi > 3.1


def test_slice_follows_changes_made_by_calls():
    assert (
        slices("w = 1\ndef two():\n    global w\n    w = 2", "two()", "def f():\n    return w")[
            "f"
        ]()
        == 2
    )
    assert slices(
        "t = []\ndef fill(x):\n    x.append(5)", "fill(t)", "t.append(6)", "def f():\n    return t"
    )["f"]() == [5, 6]


def test_slice_ends_with_the_cell_of_the_function():
    after = ("s = 5", "del two", "math = 3", "def total(x):\n    return 0", "t.clear()")
    names = slices(
        "import math\ns, two, t = 1, 2, [4]\ndef total(x):\n    return x + s",
        "def f(x):\n    return math.floor(two * total(x)) + t[0]",
        *after,
    )
    assert names["f"](3) == 12 and names["s"] == 1
    assert (
        slices(
            "def f():\n    return g() + h()",
            "def g():\n    return 1",
            "def h():\n    return 2",
            "def g():\n    return 9",
        )["f"]()
        == 3
    )
    assert slices("def f():\n    return sum([1])", "sum = 3")["f"]() == 1
    assert slices("w = 1\ndef f():\n    return 1", "def f():\n    return w", "w = 2")["f"]() == 1


@pytest.mark.parametrize(
    "fill",
    [
        "for k in (1, 2):\n    t.append(k)",
        "with open('/dev/null'):\n    t.append(1)",
        "if True:\n    t.append(1)",
        "import heapq\nheapq.heappush(t, 1)",
        "[t.append(k) for k in (1, 2)]",
        "_ = t.append(1)",
        "def fill():\n    t.append(1)\nfor k in (1, 2):\n    fill()",
        "try:\n    t.append(1)\nfinally:\n    pass",
    ],
)
def test_slice_has_what_fills_an_object(fill):
    assert slices("t = []", fill, "def f():\n    return t")["f"]()


def test_slice_leaves_out_who_only_looks_at_the_function():
    names = slices(
        "def g(x):\n    return x",
        "def f(x):\n    return g(x)\nseen = 1\nfor k in range(3):\n    seen += f(k) + g(k)",
    )
    assert "seen" not in names and "k" not in names


def test_future_await_and_continued_lines():
    assert (
        slices("from __future__ import annotations", "def f(x: nobody) -> nothing:\n    return x")[
            "f"
        ](2)
        == 2
    )
    assert (
        slices(
            "%precision 3\ndef f(x):\n    text = ('%d'\n            % x)\n    return text\n"
            "!ls it's ("
        )["f"](2)
        == "2"
    )
    text = "import asyncio\nawait asyncio.sleep(0)\nasync def g():\n    return 5\nfive = await g()"
    names = {}
    assert [
        execute(code, names, None) for _, code, _ in slicing.read_statements([text], "f").statements
    ] == [None] * 4 and names["five"] == 5


def test_slice_is_not_fooled_by_local_names():
    assert "endless" not in slices(
        "endless = n = 1", "def f(n):\n    endless_ = n\n    return endless_"
    )


def test_magics_and_other_languages():
    texts = (
        "%time x",
        "%%bash\nls",
        "%%time\nx = 1",
        "if 1:\n    !ls\nx = !ls",
        "x = (5\n  % 3)",
        "f?",
    )
    assert [len(slicing.parse(text)) for text in texts] == [1, 0, 1, 2, 1, 1]


@pytest.mark.parametrize(
    "cell",
    [
        "    def f(a):\n        return a + w\n    w = 2",
        "\n\n  %time\n  def f(a):\n      return a + w\n\n  w = 2\n",
        ">>> def f(a):\n...     return a + w\n...\n>>> w = 2\n",
        "  >>> w = 2\n  >>> def f(a):\n  ...     return a + w\n",
        "In [3]: def f(a):\n   ...:     return a + w\n   ...:\nIn [4]: w = 2",
        "!pip install a \\\n  b\nw = 2\ndef f(a):\n    return a + w",
        "w = 2\nfiles = !ls \\\n  -l\ndef f(a):\n    return a + w",
        "%pip install a \\\n  b \\\n  c\nw = 2\ndef f(a):\n    return a + w",
        "!ls \\\n -l\n" * 40 + "w = 2\ndef f(a):\n    return a + w",
    ],
)
def test_cells_that_only_jupyter_reads(cell):
    """Held against IPython's own reading: what a student has run is what is judged."""
    reading = slicing.read_statements([cell], "f")
    assert not reading.skipped and slices(cell)["f"](1) == 3
    names = {"get_ipython": Mock()}
    exec(TransformerManager().transform_cell(cell), names)
    assert names["f"](1) == 3


@pytest.mark.parametrize("cell", ["x = 1\n  y = 2", "...\n>> x", ">>> x = (", "x = 1 \\\n  y = 2"])
def test_cells_that_nobody_reads(cell):
    assert list(slicing.read_statements([cell], "f").skipped) == [1]


def test_prompts_in_a_text_stay_where_python_reads_the_cell():
    text = "def f():\n    '''Doubles.\n\n    >>> f(1)\n    ... more\n    '''\n    return f.__doc__"
    assert ">>> f(1)" in slices(text)["f"]()


def test_a_cell_too_long_to_be_read_costs_no_other_its_answer():
    """A picture pasted as text, for example; what is read is bounded all the same."""
    answer = "def f():\n    return 3"
    reading = slicing.read_statements(["x = '" + "a" * 1_200_000 + "'", answer], "f")
    assert list(reading.skipped) == [1] and len(reading.statements) == 1
    many = ["x = '" + "a" * 90_000 + "'"] * 20
    assert list(slicing.read_statements(many, "f").skipped) == list(range(12, 21))


@pytest.mark.parametrize(
    "body",
    [
        "...",
        "pass",
        "'words'",
        "return ...",
        "return",
        "return None",
        "raise NotImplementedError",
        "raise NotImplementedError()",
        "'words'\n    return ...  # your answer",
    ],
)
def test_stubs(body):
    assert slicing.is_stub(slicing.parse(f"def f(x):\n    {body}")[0])


@pytest.mark.parametrize(
    "body", ["return 0", "return x", "x = ...", "raise ValueError", "return 'words'", "print()"]
)
def test_no_stubs(body):
    assert not slicing.is_stub(slicing.parse(f"def f(x):\n    {body}")[0])


# Judgement

numbers = st.floats(
    allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300
).filter(lambda x: x == 0 or abs(x) > 1e-280)


@given(numbers, st.floats(-0.9e-6, 0.9e-6))
def test_within_the_tolerance_is_right(reference, off):
    for answer in (
        reference * (1 + off),
        np.float64(reference * (1 + off)),
        [reference],
        np.array(reference),
        np.array([reference]),
        np.array([[reference]]),
    ):
        assert same(json.loads(json.dumps(json_value(answer))), reference, 1e-6)


@given(numbers.filter(bool), st.floats(1.1e-6, 1e3), st.sampled_from([-1, 1]))
def test_outside_the_tolerance_is_wrong(reference, off, sign):
    assert not same(reference * (1 + sign * off), reference, 1e-6)
    assert not same([reference, reference], reference, 1e-6) and not same(
        reference, [reference, reference], 1e-6
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(json_values, st.sampled_from([3.5, [1.0, 2.0], "memory", True, math.inf, 0]))
def test_judging_never_raises_and_needs_the_value(answer, reference):
    flat = answer
    while isinstance(flat, list) and len(flat) == 1 and not isinstance(reference, list):
        flat = flat[0]
    if same(answer, reference, 1e-6):
        assert np.shape(flat) == np.shape(reference) and (
            flat == reference or np.allclose(flat, reference, rtol=2e-6, atol=1e-11)
        )
    else:
        assert flat != reference or type(flat) is not type(reference)


def test_odd_answers():
    assert not same(float("nan"), float("nan"), 1e-6) and not same(float("nan"), 1.0, 1e-6)
    assert (
        same(math.inf, math.inf, 1e-6)
        and not same(1e308, math.inf, 1e-6)
        and not same(-math.inf, math.inf, 1e-6)
    )
    assert (
        not same(10**400, 1.0, 1e-6)
        and not same(None, 0, 1e-6)
        and not same("3.5", 3.5, 1e-6)
        and not same({}, 0, 1e-6)
    )
    assert (
        same("Memory ", "memory", 1e-6)
        and not same("memory-bound", "memory", 1e-6)
        and not same(0.0, "memory", 1e-6)
    )
    assert same(1e-13, 0.0, 1e-6) and not same(1e-13, 1e-12, 1e-6)


def test_plain():
    import fractions

    assert json_value((1, np.int64(2), np.array([3.0, 4.0]), ...)) == [1, 2, [3.0, 4.0], None]
    assert json_value(fractions.Fraction(1, 2)) == 0.5 and json_value(2 + 0j) == 2.0
    assert json_value(2j) == {"odd": "complex"} and json_value({}) == {"odd": "dict"}


def test_marked_takes_a_question_or_a_function():
    draw = random.Random.random
    marked(lambda x: 2 * x, lambda x: x + x, edges=[(0,)], draw=lambda rng: [draw(rng)])
    with pytest.raises(AssertionError):
        marked(lambda x: 2 * x, lambda x: x * x, edges=[(2,), (0,)], draw=lambda rng: [draw(rng)])
    marked(
        lambda m, n, k: 2 * m * n * k,
        "intensity.x-product-flops",
        draw=lambda rng: [rng.randint(1, 99) for _ in range(3)],
    )


def test_checks_know_no_answer_in_the_sandbox():
    (value,), _ = values_inside(
        "verdict = rl.check('intensity.gemm-flops', 2.147)\nreturn [verdict.right, verdict.message]"
    )
    assert value["value"][0] is False and "no reference" in value["value"][1]
    assert rl.check("intensity.gemm-flops", 2.147).right


def test_nbgrader_takes_the_solutions_in(tmp_path):
    """A school's own way: nbgrader makes the assignment, then autogrades a good and an untouched
    copy."""
    from nbgrader.api import Gradebook

    shutil.copy(ROOT / "solutions/nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / FIRST, tmp_path / "source" / FIRST)

    def nbgrader(*arguments):
        tools = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["nbgrader", *arguments], cwd=tmp_path, env=tools, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    nbgrader("generate_assignment", FIRST)
    released = json.loads(
        (tmp_path / "release" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8")
    )
    assert [source(cell) for cell in released["cells"]] == [
        source(cell) for cell in read("exercises", FIRST)["cells"]
    ]
    good = {cell["id"]: cell["source"] for cell in read("solutions", FIRST)["cells"]}
    for student, answers in {"good": good, "untouched": {}}.items():
        book = json.loads(json.dumps(released))
        for cell in book["cells"]:
            if cell["id"] in answers and cell["metadata"].get("nbgrader", {}).get("solution"):
                cell["source"] = answers[cell["id"]]
        write(tmp_path / "submitted" / student / FIRST, **{FIRST: book})
    nbgrader("autograde", FIRST)
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        scores = {
            student: book.find_submission(FIRST, student) for student in ("good", "untouched")
        }
        assert {student: (found.score, found.max_score) for student, found in scores.items()} == {
            "good": (5, 9),
            "untouched": (0, 9),
        }


# A folder of one's own


def own_cells():
    """The cells of the worked example in docs/teaching.md."""
    section = (
        (ROOT / "docs/teaching.md").read_text(encoding="utf-8").split("## Your own questions")[1]
    )
    texts = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return [
        {
            "cell_type": "code",
            "id": name,
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for name, text in zip(("5e0f1c2a", "b7d39e40"), texts, strict=True)
    ]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    write(
        folder / "mine" / FIRST,
        energy={"cells": own_cells(), "metadata": {}, "nbformat": 4, "nbformat_minor": 5},
    )
    subprocess.run(
        [
            sys.executable,
            ROOT / "tools/make_exercises.py",
            "--solutions",
            "mine",
            "--out",
            "handout",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    handout = json.loads(
        (folder / "handout" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8")
    )
    right, wrong = json.loads(json.dumps(handout)), json.loads(json.dumps(handout))
    for book, factor in ((right, "1e-12"), (wrong, "1e-9")):
        cell = next(cell for cell in book["cells"] if cell["id"] == "5e0f1c2a")
        cell["source"] = source(cell).replace(
            "...", f"{factor} * (flops * picojoules_per_flop + bytes_moved * picojoules_per_byte)"
        )
    write(folder / "in", right=right, wrong=wrong)
    return folder


def test_a_folder_of_ones_own_adds_questions(own):
    handout = json.loads((own / "handout" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8"))
    added = [source(cell) for cell in handout["cells"][len(read("exercises", FIRST)["cells"]) :]]
    assert added[0].startswith("def joules(flops, bytes_moved,") and added[0].endswith(
        "    return ...  # your answer"
    )
    assert added[1:] == ["print(joules(1e12, 1e9, 0.5, 60))"]
    ran(handout)
    done = grade("01", own / "in", "--out", own / "m.csv", "--solutions", own / "mine")
    assert done.returncode == 0, done.stderr
    found = rows(own / "m.csv")
    assert {
        student: (row["joules"], row["score"], row["max_score"]) for student, row in found.items()
    } == {"right": ("1", "1", "6"), "wrong": ("0", "0", "6")}


def test_a_folder_of_ones_own_replaces_a_lesson(own, tmp_path):
    only = json.loads((own / "mine" / FIRST / "energy.ipynb").read_text(encoding="utf-8"))
    write(tmp_path / "mine" / FIRST, **{FIRST: only})
    assert solution(FIRST, solution_folders(tmp_path / "mine"))["cells"] == only["cells"]
    write(tmp_path / "mine" / "99_a_lesson_of_mine", **{"99_a_lesson_of_mine": only})
    done = grade("99", own / "in", "--out", tmp_path / "m.csv", "--solutions", tmp_path / "mine")
    assert done.returncode == 0 and rows(tmp_path / "m.csv")["right"]["score"] == "1"


@pytest.fixture(scope="module")
def packages_with_copies(tmp_path_factory):
    """A folder of packages in which copies of the library lie that are not the one that runs."""
    packages = tmp_path_factory.mktemp("installed")
    packages.chmod(0o755)  # to be read by the sandbox's own user
    hidden = shutil.ignore_patterns("__pycache__", "tests")
    for found in sandbox._PACKAGES.glob("numpy*"):
        shutil.copytree(found, packages / found.name, ignore=hidden)
    installed = ("roofline_lib", "~oofline_lib", "other/vendor/roofline_lib", "course/roofline_lib")
    for name in installed:
        shutil.copytree(sandbox._OWN, packages / name, ignore=hidden)
    shutil.copytree(sandbox._OWN, packages / "hidden_place", ignore=hidden)
    (packages / "linked").mkdir()
    (packages / "linked/roofline_lib").symlink_to(packages / "hidden_place")
    (packages / "course/solutions").mkdir()
    (packages / "course/solutions/answers.ipynb").write_text("the key")
    (packages / "roofline_lib-0.1.0-py3-none-any.whl").write_bytes(b"the key")
    return packages


def test_no_copy_of_the_library_shows_a_key_inside(user, packages_with_copies, monkeypatch):
    """Whichever copy is imported, and wherever others are installed."""
    monkeypatch.setattr(sandbox, "_PACKAGES", packages_with_copies)
    look = (
        "import os\nfound = []\nfor folder, _, files in os.walk('/'):\n"
        "    if '/questions' in folder or folder.endswith('/solutions'):\n"
        "        found += [folder + '/' + name for name in files]\n"
        "    found += [folder + '/' + name for name in files if name.endswith('.whl') and "
        "'roofline' in name and os.path.getsize(folder + '/' + name)]\n"
        "return [name for name in found if '/questions/__' not in name]"
    )
    assert values_inside(look) == ([{"value": []}], "done")


def test_an_installed_copy_answers_no_question(user, packages_with_copies, monkeypatch):
    monkeypatch.setattr(sandbox, "_PACKAGES", packages_with_copies)
    attack = (
        "import sys\nsys.path.insert(0, '/course/packages')\n"
        "for name in [name for name in sys.modules if name.startswith('roofline_lib')]:\n"
        "    del sys.modules[name]\n"
        "from roofline_lib.questions import find_question\n"
        "return find_question('intensity.gemm-flops').reference()"
    )
    (value,), _ = values_inside(attack)
    assert "error" in value, value


def test_of_python_only_its_libraries_are_bound(user):
    """A course may lie in the prefix: /usr/local/src, /opt/conda/share."""
    (value,), _ = values_inside("import os\nreturn sorted(os.listdir('/python'))")
    assert set(value["value"]) <= {"bin", "lib", "lib64"}
    packages = "import glob\nreturn [glob.glob('/*/lib/python3*/*-packages/*')]"
    assert values_inside(packages)[0] == [{"value": [[]]}]
