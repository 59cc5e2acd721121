"""A folder handed in and what is written of it, whatever the names, the lists and the disk."""

import csv
import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness.grading import FIRST, LESSONS, grade, read, rows, write, write_class

from roofline_lib import grading
from roofline_lib.grading import batch, report, roster, sandbox, spreadsheets
from roofline_lib.grading.judging import Marks
from roofline_lib.grading.report import Report
from roofline_lib.grading.solutions import solution, solution_folders
from roofline_lib.grading.submissions import (
    LARGEST,
    MOST_READ,
    Submission,
    collect,
    one_folder,
    packed_by_platform,
    passed_over,
)
from roofline_lib.grading.words import LessonWords

NO_WORDS = LessonWords(FIRST, FIRST, {})


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory):
    return write_class(tmp_path_factory.mktemp("class"))


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


@pytest.mark.parametrize("first", "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
def test_no_name_is_a_formula(tmp_path, first):
    report.write(tmp_path / "m.csv", Report([Marks(f"{first}1", "empty")], [], NO_WORDS))
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        shown = first if first.isprintable() else repr(first)[1:-1]
        assert list(csv.reader(file))[1][0] == f"'{shown}1"


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
        "2 notebooks: took b.ipynb",
        b"[]",
    )
    assert (found["dan"].status, found["huge"].status) == ("missing", "unreadable")


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a, @SUM(1)", "a, '@SUM(1)"),
        ("  =1", "  '=1"),
        ("a\x1b[2J", "a\\x1b[2J"),
        ("a\u202eb", "a\\u202eb"),
        ("Anne-Marie O'Neill", "Anne-Marie O'Neill"),
        ("1 + 1 = 2; right", "1 + 1 = 2; right"),
    ],
)
def test_texts_are_safe_in_a_spreadsheet_and_a_terminal(name, safe, capsys):
    assert spreadsheets.plain(name) == safe
    batch.remark(name)
    assert "\x1b" not in capsys.readouterr().err


CANVAS = ["doejane_101_9001_01.ipynb", "roejo_LATE_102_9002_01.ipynb", "li_103_9003_01-1.ipynb"]
MOODLE = ["Jane Doe_11_assignsubmission_file_01.ipynb", "Jo Roe_12_assignsubmission_file_01.ipynb"]
BLACKBOARD = [
    "Week 1_jdoe_attempt_2026-11-29-09-15-00_01.ipynb",
    "Week 1_jroe_attempt_2026-11-30-09-15-00_01.ipynb",
]
BRIGHTSPACE = [
    "101-9 - Jane Doe - Nov 30, 2026 915 AM - 01.ipynb",
    "102-9 - Jo Roe - Nov 30, 2026 1215 PM - 01.ipynb",
]


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (CANVAS, ["doejane", "li", "roejo"]),
        (MOODLE, ["Jane Doe", "Jo Roe"]),
        (BLACKBOARD, ["jdoe", "jroe"]),
        (BRIGHTSPACE, ["Jane Doe", "Jo Roe"]),
    ],
    ids=["Canvas", "Moodle", "Blackboard", "Brightspace"],
)
def test_what_learning_platforms_pack(names, students, tmp_path):
    for name in names:
        (tmp_path / name).write_text(name)
    found = collect(tmp_path, FIRST)
    assert [one.student for one in found] == students
    assert {one.data.decode() for one in found} == set(names)
    # one that came by mail is taken as it stands
    (tmp_path / "zoe.ipynb").write_text("x")
    assert {one.student for one in collect(tmp_path, FIRST)} == {*students, "zoe"}
    assert packed_by_platform(tmp_path)[1] == ["zoe.ipynb"]


def test_folders_that_a_platform_packs(tmp_path):
    for name in ("Jane Doe_11_assignsubmission_file_", "Jo Roe_12_assignsubmission_file_"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.ipynb").write_text(name)
    assert [one.student for one in collect(tmp_path, FIRST)] == ["Jane Doe", "Jo Roe"]


def test_a_text_typed_on_the_platform_is_nobodys_notebook(tmp_path):
    for kind in ("file", "onlinetext"):
        (tmp_path / f"Jo Roe_12_assignsubmission_{kind}_").mkdir()
    write(tmp_path / "Jo Roe_12_assignsubmission_file_", x="{}")
    (jo,) = collect(tmp_path, FIRST)
    assert (jo.student, jo.data, jo.note) == ("Jo Roe", b"{}", "")


def test_a_class_unpacked_a_level_too_deep_is_told(tmp_path):
    write(tmp_path / "class", ada="{}", bob="{}")
    assert one_folder(tmp_path) == "class"
    write(tmp_path, cy="{}")
    assert one_folder(tmp_path) == ""


def test_plain_names_stay_plain_where_one_looks_like_a_platforms(tmp_path):
    write(tmp_path, ada="{}", bob="{}", **{"cy_1_2_x": "{}"})
    assert [one.student for one in collect(tmp_path, FIRST)] == ["ada", "bob", "cy_1_2_x"]


def test_the_notebook_with_the_lessons_functions_counts(tmp_path):
    """Beside the lesson itself, which has the lesson's name, and beside an older version."""
    answer = '"def product_flops(m, n, k):"'
    write(tmp_path / "ada", **{FIRST: '"product_flops"', "exercises_01": answer})
    write(tmp_path / "bob", v2=answer, v10=f"{answer} ", v9=answer)
    ada, bob = collect(tmp_path, FIRST, functions=["product_flops"])
    assert ada.note == "2 notebooks: took exercises_01.ipynb"
    assert bob.note == "3 notebooks: took v10.ipynb"
    many = {f"v{i}": "x" for i in range(MOST_READ)}
    write(tmp_path / "cy", **many, a=answer)
    cy = collect(tmp_path, FIRST, functions=["product_flops"])[2]
    assert cy.note.endswith(f"took v{MOST_READ - 1}.ipynb")


def test_two_students_of_one_name_are_told_apart_by_the_platforms_number(tmp_path):
    for number in (11, 12):
        (tmp_path / f"Jo Roe_{number}_assignsubmission_file_01.ipynb").write_text(str(number))
    found = {one.student: one.data for one in collect(tmp_path, FIRST)}
    assert found == {"Jo Roe 11": b"11", "Jo Roe 12": b"12"}
    # on the list under the name alone, nobody more is missing
    assert len(collect(tmp_path, FIRST, {"Jo Roe"})) == 2


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("jo_LATE_7_9001_new.ipynb", "jo_7_9002_OLD.ipynb"),
        ("jo_7_9999_x-1.ipynb", "jo_7_10000_x.ipynb"),
        ("W_jo_attempt_2026-11-09-10-00-00_x.ipynb", "W_jo_attempt_2026-11-30-09-00-00_x.ipynb"),
        ("1-9 - Jo - Nov 9, 2026 1015 PM - x.ipynb", "1-9 - Jo - Nov 30, 2026 915 AM - x.ipynb"),
        ("1-9 - Jo - Nov 30, 2026 1115 AM - x.ipynb", "1-9 - Jo - Nov 30, 2026 115 PM - x.ipynb"),
    ],
)
def test_of_several_attempts_the_last_counts_and_is_named(earlier, later, tmp_path):
    for name in (earlier, later):
        (tmp_path / name).write_text(name)
    (jo,) = collect(tmp_path, FIRST)
    assert jo.data.decode() == later and jo.note == f"handed in 2 times: took {later}"


def test_nobodys_notebook_is_dropped(tmp_path):
    """Two spellings of one name, with extensions that could be taken for one another."""
    names = ["\u00e9.ipynb", "e\u0301.ipynb", "e\u0301.ipynb.ipynb", "\u00e9.IPYNB"]
    for name in names:
        (tmp_path / name).write_text(name)
    found = collect(tmp_path, FIRST)
    assert sorted(one.data.decode() for one in found) == sorted(names)
    assert len({one.student for one in found}) == len(names)


def test_who_is_not_on_the_list_is_named(class_folder, tmp_path):
    (tmp_path / "students.txt").write_text("ada\nbob\n", encoding="utf-8")
    said = grade(
        FIRST, class_folder, "--out", tmp_path / "m.csv", "--students", tmp_path / "students.txt"
    )
    assert "not in --students: cy, dan" in said.stderr
    missing = grade(FIRST, class_folder, "--out", tmp_path / "m.csv", "--students", tmp_path / "no")
    assert (
        missing.returncode == 2
        and missing.stderr == f"{tmp_path / 'no'}: No such file or directory\n"
    )


def test_moodle_gets_the_pages_under_its_own_names(tmp_path):
    names = ("Zo\u00eb Li_11_assignsubmission_file_x", "Jo Roe_12_assignsubmission_file_x")
    folder = write(tmp_path / "in", **dict.fromkeys(names, ""), **{"by mail": ""})
    for _ in range(2):
        grading.grade(FIRST, folder, out=tmp_path / "m.csv")
        data = (tmp_path / "m_moodle_feedback.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(data)) as pack:
        # what Moodle makes of a name: explode("_", name, 5), of which [1] is the participant
        parts = [name.split("_", 4) for name in pack.namelist()]
        assert {(one[1], *one[2:]) for one in parts} == {
            (number, "assignsubmission", "file", "/feedback.html") for number in ("11", "12")
        }
        page = pack.read("Zo\u00eb Li_11_assignsubmission_file_/feedback.html").decode()
        assert page == (tmp_path / "m_feedback/Zo\u00eb Li.html").read_text(encoding="utf-8")


def test_odd_names_do_not_keep_moodles_pages_back(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in (b"caf\xe9_11", b"a\nb_12", b"x\\up_13", b"=1_14"):
        open(os.fsencode(folder) + b"/" + name + b"_assignsubmission_file_x.ipynb", "wb").close()
    grading.grade(FIRST, folder, out=tmp_path / "m.csv")
    with zipfile.ZipFile(tmp_path / "m_moodle_feedback.zip") as pack:
        names = pack.namelist()
    assert {name.split("_", 4)[1] for name in names} == {"11", "12", "13", "14"}
    assert all(name.isprintable() and ".." not in Path(name).parts for name in names)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\n\n", "names no student"),
        (b"ada;7\n", "line 1: needs one name and no columns; got ada;7"),
        (b"PK\x03\x04...", "is a workbook; save its sheet as CSV"),
    ],
)
def test_a_list_of_names_that_is_none(data, said, tmp_path):
    (tmp_path / "names.txt").write_bytes(data)
    with pytest.raises(ValueError, match=re.escape(said)):
        roster.read_names(tmp_path / "names.txt")


@pytest.mark.parametrize("name", ["handout", "marks.xlsx"])
def test_marks_go_into_a_csv_file_and_nothing_is_left_where_not(name, class_folder, tmp_path):
    (tmp_path / "handout").mkdir()
    with pytest.raises(ValueError, match="must be a CSV file to write"):
        grading.grade(FIRST, class_folder, out=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["handout"]


def test_the_notebook_of_another_lesson_is_told(class_folder, tmp_path, capsys):
    folder = write(tmp_path / "in", ada=read("exercises", LESSONS[1]))
    (row,) = grading.grade(FIRST, folder, out=tmp_path / "m.csv")
    assert row.score == 0 and "the notebook of another one?" in row.note
    said = capsys.readouterr().err
    assert "1 of 1 notebooks have no function of this lesson: are lesson and folder" in said
    assert f"1 graded; marks in {tmp_path / 'm.csv'}, pages in {tmp_path / 'm_feedback'}" in said
    (row,) = grading.grade(
        FIRST, write(tmp_path / "own", bob=read("exercises", FIRST)), out=tmp_path / "m.csv"
    )
    assert row.note == ""


# What is written


def marked(student):
    return Marks(student, "graded")


def test_a_full_disk_costs_no_older_file(tmp_path, monkeypatch):
    out = tmp_path / "m.csv"
    report.write(out, Report([marked("ada")], [], NO_WORDS))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=re.escape(str(out))):
        report.write(out, Report([marked("ada"), marked("bob")], [], NO_WORDS))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


def test_a_page_that_cannot_be_written_costs_no_marks(tmp_path):
    out = tmp_path / "m.csv"
    (report.pages_of(out) / "bob.html").mkdir()
    with pytest.raises(OSError, match="bob.html"):
        report.write(out, Report([marked("ada"), marked("bob"), marked("cy")], [], NO_WORDS))
    assert list(rows(out)) == ["ada", "bob", "cy"]


@pytest.mark.parametrize("line", ["[]", "3", "null", "{", '{"student": "ada"}', "[" * 100_000])
def test_a_foreign_line_among_marks_of_an_interrupted_run_is_passed_over(line, tmp_path):
    (tmp_path / "m.csv.partial").write_text(line + "\n")
    assert batch.Progress(tmp_path / "m.csv", [], [Submission("ada")]).marks == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"cells": {}}', "\ufeff3"])
def test_a_solution_that_is_no_notebook_is_named(text, tmp_path):
    path = tmp_path / FIRST / "mine.ipynb"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"{re.escape(str(path))} is no notebook"):
        solution(FIRST, solution_folders(tmp_path))


def test_a_long_field_of_a_list_is_one_clear_line(tmp_path):
    path = tmp_path / "manual.csv"
    path.write_text(f"student,question,mark\nada,{'x' * 200_000},1\n")
    with pytest.raises(ValueError, match="line 2: field larger"):
        roster.read_hand_marks(path, {"ada"}, [])


@pytest.mark.parametrize(
    ("name", "value"), [("timeout", 10**20), ("workers", 10**6), ("timeout", 0)]
)
def test_limits_out_of_range_name_the_argument(name, value, tmp_path):
    with pytest.raises(ValueError, match=name):
        grading.grade(FIRST, tmp_path, out=tmp_path / "m.csv", **{name: value})


ENDLESS = "def product_flops(m, n, k):\n    while True:\n        pass"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_an_end_from_outside_leaves_nothing_behind(name, tmp_path):
    """A run that is killed leaves its folders, and the next run removes them."""
    book = {"cells": [{"cell_type": "code", "source": ENDLESS}]}
    folder, temporary = write(tmp_path / "in", ada=book), tmp_path / "temporary"
    temporary.mkdir()
    command = [
        sys.executable,
        "-m",
        "roofline_lib",
        "grade",
        FIRST,
        folder,
        "--out",
        tmp_path / "m.csv",
    ]
    environment = os.environ | {"TMPDIR": str(temporary)}
    running = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while not list(temporary.glob("roofline-grade-*")):
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(getattr(signal, name))
    code = running.wait(60)
    left = list(temporary.glob("roofline-grade-*"))
    assert bool(left) == (name == "SIGKILL") and (code == 130 or left)
    sandbox.sweep(temporary)
    assert list(temporary.glob("roofline-grade-*")) == []


def test_a_class_of_large_notebooks_is_not_in_memory_at_once(tmp_path):
    """Each is read when it is its turn, and what has changed since it was found is not graded."""
    (tmp_path / "ada.ipynb").write_bytes(b"{}" + b" " * 9_000_000)
    (tmp_path / "bob.ipynb").write_bytes(b"{}")
    (tmp_path / "cy.ipynb").write_bytes(b"{}")
    tracemalloc.start()
    ada, bob, cy = collect(tmp_path, FIRST)
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most > 9_000_000 > 10 * held
    assert (ada.taken().status, len(ada.taken().data)) == ("", 9_000_002)
    (tmp_path / "bob.ipynb").write_bytes(b"[]")
    (tmp_path / "cy.ipynb").unlink()
    assert (bob.taken().status, bob.taken().note) == ("error", "changed while the class was graded")
    assert cy.taken().note == "gone meanwhile: No such file or directory"


def test_few_notebooks_are_handed_out_at_a_time(monkeypatch):
    """As many as are asked for, also while the last ones are waited for."""
    running, most, marks = 0, 0, []

    class Executor(ThreadPoolExecutor):
        def submit(self, job, *inputs):
            nonlocal running, most
            running += 1
            most = max(most, running)
            return super().submit(job, *inputs)

    def graded(submission, *_):
        return Marks(submission.student, "graded")

    def add(of_one):
        nonlocal running
        running -= 1
        marks.append(of_one.student)

    monkeypatch.setattr(batch, "grade_one", graded)
    jobs = ((Submission(f"s{number}"),) for number in range(20))
    with Executor(4) as executor:
        batch._run(executor, jobs, 20, SimpleNamespace(add=add), 3)
    assert sorted(marks) == sorted(f"s{number}" for number in range(20)) and most == 3
