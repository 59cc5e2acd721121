"""The grader's command: from a folder handed in to marks. The hostile notebooks are
test_grading_corpus.py's."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from harness.grading import FIRST, LESSONS, ROOT, grade, read, rows, write, write_class

from roofline_lib import grading
from roofline_lib.grading import batch, command, judging, roster, sandbox
from roofline_lib.grading.draw import Lesson, OpenQuestion, run_key
from roofline_lib.grading.inside.protocol import (
    Raised,
    Returned,
    json_value,
    read_answer,
    read_facts,
)
from roofline_lib.grading.judging import called, grade_one
from roofline_lib.grading.solutions import lesson_name, solution, solution_folders
from roofline_lib.grading.submissions import Submission, collect

# The command


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory):
    return write_class(tmp_path_factory.mktemp("class"))


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
    with pytest.raises(ValueError, match="(is not known|may be several); choose one of 01_"):
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
    assert "', a text." in sentence("def product_flops(m, n, k):\n    return str(2 * m * n * k)")
    assert "lack `return`" in sentence("def product_flops(m, n, k):\n    print(2 * m * n * k)")
    assert called("f", '[1, null, true, 0.5, "a"]') == "f(1, None, True, 0.5, 'a')"


@pytest.mark.parametrize(
    "text, said",
    [
        ("student question mark\nada one_user 1\n", "with commas, semicolons or tabs; got 'stu"),
        ("student;question;mark\nada;one_user;x\n", "needs a mark from 0 to 2, such as 2.5; got x"),
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


def test_all_faulty_hand_marks_are_told_at_once_with_their_students(tmp_path):
    (tmp_path / "h.csv").write_text(
        "student,question,mark\nada,one_user,5\nbob,one_user,1\neve,one_user,x\nbob,two,1\n"
    )
    with pytest.raises(ValueError, match="line 2") as told:
        roster.read_hand_marks(
            tmp_path / "h.csv", {"ada", "bob", "eve"}, [OpenQuestion("one_user", 2)]
        )
    lines = str(told.value).splitlines()
    assert ["ada" in lines[0], "eve" in lines[1], "'two'" in lines[2], len(lines)] == [True] * 3 + [
        3
    ]


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("mine.ipynb", "needs <lesson>/<anything>.ipynb"),
        ("01_arithmetic_intensity/notes.txt", "needs <lesson>/<anything>.ipynb"),
        ("01_arithmetic_intensty/mine.ipynb", "give it the full name, 01_arithmetic_intensity"),
    ],
)
def test_a_folder_of_ones_own_that_is_laid_over_nothing(inside, said, tmp_path):
    (tmp_path / inside).parent.mkdir(exist_ok=True)
    (tmp_path / inside).write_text("{}")
    with pytest.raises(ValueError, match=said):
        solution_folders(tmp_path)


def test_an_empty_hand_mark_is_none_yet(tmp_path):
    (tmp_path / "h.csv").write_text(
        "student,question,mark,comment\nada,one_user,,\nbob,one_user,2,good\n", encoding="utf-8-sig"
    )
    questions = [OpenQuestion("one_user", 2)]
    marks = roster.read_hand_marks(tmp_path / "h.csv", {"ada", "bob"}, questions)
    assert marks == {("bob", "one_user"): roster.HandMark(2, "good")}


@pytest.mark.parametrize(
    ("separator", "encoding", "mark"),
    [(",", "utf-8", "1.5"), (";", "utf-8-sig", "1,5"), ("\t", "utf-16", "1,5")],
)
def test_tables_are_read_as_spreadsheets_write_them(tmp_path, separator, encoding, mark):
    lines = ["student,question,mark", f"Zo\xeb,one_user,{mark.replace(',', '.')}"]
    text = "\r\n".join(lines).replace(",", separator).replace("1.5", mark)
    (tmp_path / "h.csv").write_bytes(text.encode(encoding))
    found = roster.read_hand_marks(tmp_path / "h.csv", {"Zo\xeb"}, [OpenQuestion("one_user", 2)])
    assert found == {("Zo\xeb", "one_user"): roster.HandMark(1.5)}


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
