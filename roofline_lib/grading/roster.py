"""The lists that a teacher writes, read and checked before anything is graded: names of a class,
marks given by hand, late days."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from roofline_lib.grading.spreadsheets import plain, read_table, read_text

HEADER = ("student", "question", "mark")
LATE_HEADER = ("student", "days")
LONGEST_NAME = 240  # bytes
MOST_LATE_DAYS = 1000
FAULTS_SHOWN = 20


@dataclass(frozen=True)
class HandMark:
    """A mark given by hand, None for none yet, and what the student is told."""

    points: float | None
    comment: str = ""


class Open(Protocol):
    """A question that is marked by hand."""

    @property
    def name(self) -> str: ...

    @property
    def points(self) -> float: ...


def one_spelling(name: str) -> str:
    """A name in one spelling: an e with an accent is one character here and two in macOS's
    files."""
    return unicodedata.normalize("NFC", name)


def read_names(path: Path) -> set[str]:
    """The names of a class, one a line; a ValueError that names the line at fault."""
    names = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        name = one_spelling(line.strip())
        has_path = name.startswith(".") or set(name) & set("/\\\0")
        if has_path or len(name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"{path}, line {number}: {name[:60]!r} cannot name a page; "
                f"no / or \\, no dot first, {LONGEST_NAME} bytes at most"
            )
        if set(name) & set(";\t"):
            raise ValueError(
                f"{path}, line {number}: needs one name and no columns; got {name[:60]}"
            )
        names.add(name)
    if not names - {""}:
        raise ValueError(f"{path} names no student; needs one name a line")
    return names - {""}


def read_hand_marks(
    path: Path, students: Collection[str], open_questions: Sequence[Open]
) -> dict[tuple[str, str], HandMark]:
    """{(student, question): HandMark} from a CSV with the columns student, question and mark, and
    comment where it has that one.

    `students` are the names that have a row, `open_questions` what is marked by hand. An empty mark
    is none yet. A ValueError names the lines at fault.
    """
    marks: dict[tuple[str, str], HandMark] = {}
    most = {question.name: question.points for question in open_questions}
    faults = []
    for where, row in read_table(path, HEADER).lines:
        try:
            student, question, mark = _hand_mark(row, most, students, where)
            if (student, question) in marks:
                raise ValueError(f"{where}: a second mark for {student}, {question}")
        except ValueError as error:
            faults.append(str(error))
            continue
        if mark.points is not None or mark.comment:
            marks[student, question] = mark
    if faults:
        more = f"\n... and {len(faults) - FAULTS_SHOWN} more" if len(faults) > FAULTS_SHOWN else ""
        raise ValueError("\n".join(faults[:FAULTS_SHOWN]) + more)
    return marks


def _hand_mark(
    row: Mapping[str, str | None], most: Mapping[str, float], students: Collection[str], where: str
) -> tuple[str, str, HandMark]:
    student, question = _student(row["student"], students, where), row["question"] or ""
    if question not in most:
        raise ValueError(
            f"{where}: {question!r} is no question marked by hand; choose one of {', '.join(most)}"
        )
    is_empty = row["mark"] is not None and not row["mark"].strip()
    points = None if is_empty else _mark(row["mark"], most[question], f"{where}: {student}")
    return student, question, HandMark(points, (row.get("comment") or "").strip())


def read_late_days(path: Path, students: Collection[str]) -> dict[str, int]:
    """{student: days late} from a CSV with the columns student and days; nothing in `days` is 0.
    Whoever is not on it was not late. A ValueError names the line at fault."""
    late: dict[str, int] = {}
    for where, row in read_table(path, LATE_HEADER).lines:
        student, days = _student(row["student"], students, where), (row["days"] or "0").strip()
        if not (days.isascii() and days.isdigit()) or int(days[:9]) > MOST_LATE_DAYS:
            raise ValueError(
                f"{where}: needs whole days from 0 to {MOST_LATE_DAYS}, a day begun being one; "
                f"got {days[:60]}"
            )
        if student in late:
            raise ValueError(f"{where}: a second line for {student}")
        late[student] = int(days)
    return late


def _student(text: str | None, students: Collection[str], where: str) -> str:
    """The student that a line names, as the folder has the name or as our own CSV shows it."""
    name = one_spelling(text or "")
    if name in students:
        return name
    for student in students:
        if plain(student) == name:
            return student
    raise ValueError(
        f"{where}: {name!r} has no row in this class: no notebook, and no line in --students"
    )


def _mark(text: str | None, most: float, where: str) -> float:
    try:
        mark = float((text or "").replace(",", "."))
    except ValueError:  # a word, or a line that is too short
        mark = -1
    if not 0 <= mark <= most:
        raise ValueError(f"{where}: needs a mark from 0 to {most:g}, such as 2.5; got {text}")
    return mark
