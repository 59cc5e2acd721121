"""Every hostile and unlucky notebook of tests/submissions gets the mark that it must, and leaves
everybody else's alone."""

import csv
import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roofline_lib.grading.sandbox import working_mode

sys.path.insert(0, str(Path(__file__).parent / "submissions"))
import generate  # noqa: E402

EXPECTED = generate.expected()


def printed(student):
    """A name as the CSV has it: a name of the file system that is no UTF-8 with its bytes written
    out."""
    return student.encode("utf-8", "backslashreplace").decode()


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["student"].removeprefix("'"): row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(marks by student, folder of feedback pages) of one run of the command over the whole
    corpus."""
    working_mode()
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "in").mkdir()
    generate.write(folder / "in")
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "roofline_lib",
            "grade",
            generate.LESSON,
            folder / "in",
            "--out",
            folder / "marks.csv",
            "--timeout",
            "2",
            "--workers",
            "2",
            "--seed",
            "tests",
        ],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return read(folder / "marks.csv"), folder / "marks_feedback"


@pytest.mark.parametrize("student", EXPECTED)
def test_mark(graded, student):
    right, status = EXPECTED[student]
    row = graded[0][printed(student)]
    assert {name for name in generate.ALL if row[name] == "1"} == set(right), row
    assert (row["status"], float(row["score"]), float(row["max_score"])) == (
        status,
        len(right),
        len(generate.ALL),
    )


def test_a_row_for_everybody_in_order(graded):
    assert list(graded[0]) == list(map(printed, sorted(EXPECTED)))


def test_nobody_changes_the_marks_of_others(graded, tmp_path):
    """Those who only stood beside the attackers get the same rows without them."""
    quiet = ["all_right", "partly_right", "edge_case_forgotten", "sympy", "untouched"]
    (tmp_path / "in").mkdir()
    for student in quiet:
        generate.place(tmp_path / "in", student)
    subprocess.run(
        [
            sys.executable,
            "-m",
            "roofline_lib",
            "grade",
            generate.LESSON,
            tmp_path / "in",
            "--out",
            tmp_path / "marks.csv",
            "--timeout",
            "2",
            "--workers",
            "1",
            "--seed",
            "tests",
        ],
        check=True,
        capture_output=True,
    )
    assert read(tmp_path / "marks.csv") == {
        student: graded[0][student] for student in sorted(quiet)
    }


# of a page's own, and of the questions' texts
ELEMENTS = set(
    "!doctype html meta title style main header section h1 h2 p span b code details summary "
    "strong em".split()
)


def test_pages_hold_no_key_no_code_and_nobody_else(graded):
    """A page names its own student only, and of what a student wrote nothing is markup."""
    for student in EXPECTED:
        page = (graded[1] / f"{student}.html").read_text(encoding="utf-8")
        assert html.escape(student).encode("utf-8", "replace").decode() in page
        assert set(re.findall(r"<(!?/?\w*)", page.replace("</", "<"))) <= ELEMENTS
        assert not [
            other
            for other in EXPECTED
            if len(other) > 12 and other not in student and other in page
        ]


def test_every_attack_leaves_the_machine_as_it_was(graded):
    assert not list(Path("/tmp").glob("owned*"))
    assert not [
        path
        for path in (generate.ROOT, generate.ROOT / "tests", Path("/"))
        if (path / "owned.txt").exists()
    ]
