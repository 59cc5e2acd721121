"""docs/teaching.md, Monday to Friday, to the letter: the commands are taken from the page."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness.grading import FIRST, ROOT, read, rows

PAGE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
WEEK = PAGE[PAGE.index("## A week") : PAGE.index("## The marks")]
DAYS = re.split(r"^### ", WEEK, flags=re.MULTILINE)[1:]
GRADEBOOK = (
    "Student,ID,SIS Login ID,Section,01_arithmetic_intensity (4711)\n"
    '    Points Possible,,,,9\n"Lovelace, Ada",17,ada,A,\n"Roe, Bob",18,bob,A,\n'
)


def commands(day):
    return re.findall(r"^```sh\n(.*?)^```", day, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The course's folder, as a teacher has it."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("notebooks", "exercises", "solutions", "tools"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def typed(command, folder):
    """Run a command of the page as it is typed in the course's folder."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def handed_in(folder):
    """What students do between Tuesday and Thursday."""
    (folder / "submissions").mkdir()
    book = json.loads((folder / f"handout/{FIRST}/bob.ipynb").read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["id"] == "product_flops":
            cell["source"] = "def product_flops(m, n, k):\n    return m * n * k"
        if cell["id"] == "one_user":
            cell["source"] = "Batch, since bytes set the time."
    (folder / "submissions/bob.ipynb").write_text(json.dumps(book))
    (folder / "submissions/ada.ipynb").write_text(json.dumps(read("solutions", FIRST)))


def test_a_week_to_the_letter(folder):
    assert [day.split(":")[0] for day in DAYS] == ["Monday", "Tuesday", "Thursday", "Friday"]
    monday, tuesday, thursday, friday = map(commands, DAYS)
    for command in monday:
        typed(command, folder)
    assert "reveal" in (folder / f"slides/{FIRST}.slides.html").read_text(encoding="utf-8")

    (folder / "names.txt").write_text("ada\nbob\neve\n")
    for command in tuesday:
        typed(command, folder)
    handed_in(folder)

    for command in thursday:
        typed(command, folder)
    assert {name: row["score"] for name, row in rows(folder / "marks.csv").items()} == {
        "ada": "5",
        "bob": "0",
        "eve": "0",
    }
    assert "1 × mac-is-flop" in (folder / "marks_class.html").read_text(encoding="utf-8")
    assert "Batch, since bytes" in (folder / "marks_open.html").read_text(encoding="utf-8")

    (folder / "marks_by_hand.csv").write_text(
        "student,question,mark,comment\nada,one_user,4,\n"
        '"bob","one_user","3","With numbers, please."\n'
    )
    (folder / "late.csv").write_text("student,days\nbob,1\n")
    (folder / "gradebook.csv").write_text(GRADEBOOK)
    said = [typed(command, folder) for command in friday]
    assert "not in the gradebook, so without a mark there: eve" in said[-1]
    assert rows(folder / "marks.csv")["bob"]["score"] == "2.7"
    assert (folder / "marks_canvas.csv").read_text(encoding="utf-8").splitlines()[2:] == [
        '"Lovelace, Ada",17,ada,A,9',
        '"Roe, Bob",18,bob,A,2.7',
    ]
    page = (folder / "marks_feedback/bob.html").read_text(encoding="utf-8")
    for told in (
        "With numbers, please.",
        "1 day late: 10 % off 3 points",
        "Looks like mac-is-flop",
    ):
        assert told in page


def test_the_week_names_the_files_that_are_written(folder):
    """Every file that the page promises is there by Friday."""
    for name in re.findall(r"`((?:marks|slides)[\w./]*)`", WEEK):
        if "moodle" not in name:
            assert (folder / name).exists(), name
