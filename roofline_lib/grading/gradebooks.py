"""Marks in the form that a learning platform imports, with the platform's own ids.

The teacher exports the gradebook, which names everybody with their ids; the same file comes back
with the marks in it, so nobody types an id. What each platform needs:

* **Canvas** (Gradebook, Export; its source is instructure/canvas-lms, lib/gradebook_importer.rb):
  the columns Student, ID, perhaps SIS User ID, SIS Login ID, Integration ID and Root Account, then
  Section; then the assignment, as `Name (id)`, or under a new name, which makes a new assignment. A
  line that begins with "Points Possible" has what the assignment counts. A student whose cell is
  empty loses the mark that there was, so only students with a row here have a line.
* **Moodle, an assignment** (View all submissions, Download grading worksheet; moodle/moodle,
  mod/assign/feedback/offline/importgradeslib.php): the columns Identifier, Grade and Last modified
  (grade) must be there, the names are compared letter by letter; Feedback comments is optional.
* **Moodle, the gradebook** (Grades, Export; docs.moodle.org, "Grade import"): any columns, which
  are matched with Moodle's on import; a mark without its feedback, or the other way round, loses
  what is not given, so both are written.
"""

import csv
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roofline_lib.grading.roster import one_spelling
from roofline_lib.grading.rows import Row
from roofline_lib.grading.spreadsheets import (
    SEPARATORS,
    Table,
    csv_text,
    plain,
    read_table,
    read_text,
)

_CANVAS_IDS = (
    "Student",
    "LastName",
    "FirstName",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Integration ID",
    "Root Account",
    "Section",
)
_WORKSHEET = ("Identifier", "Grade", "Last modified (grade)")
_NEEDS = (
    ("Canvas", {"Student", "ID", "Section"}),
    ("Canvas", {"LastName", "ID", "Section"}),
    ("Moodle worksheet", set(_WORKSHEET)),
    ("Moodle grades", {"ID number"}),
    ("Moodle grades", {"Email address"}),
)
_COMMENTS = "Feedback comments"
_MOODLE_IDS = ("First name", "Last name", "Surname", "ID number", "Username", "Email address")
_POINTS_POSSIBLE = "Points Possible"
_EXCUSED = "EX"
# what an earlier run has put behind a teacher's own comment
_OURS = re.compile(r"\s*\[[\d.]+ of [\d.]+;.*", re.DOTALL)
_WHY = {
    "excused": "who is excused there",
    "has a mark": "with a mark there and no notebook here",
    "open answer unmarked": "as an open answer has no mark yet",
}
NAMES_SHOWN = 20


@dataclass(frozen=True)
class Exported:
    """A gradebook as a platform exported it."""

    kind: str  # "Canvas", "Moodle worksheet" or "Moodle grades"
    table: Table


@dataclass(frozen=True)
class FilledIn:
    """The same with marks: the platform, the text of the file, and what the teacher is told."""

    platform: str
    text: str
    remarks: tuple[str, ...]


def read_gradebook(path: Path) -> Exported:
    """The gradebook in a file; ValueError where it is none that is known."""
    columns = read_text(path).partition("\n")[0]
    for separator in SEPARATORS:
        found = set(next(csv.reader([columns], delimiter=separator), ()))
        for kind, needs in _NEEDS:
            if needs <= found:
                return Exported(kind, read_table(path, sorted(needs)))
    raise ValueError(
        f"{path} is no known gradebook: needs the columns Student, ID and Section (Canvas), "
        f"{', '.join(_WORKSHEET)} (a Moodle grading worksheet), or ID number or Email address "
        "(grades exported from Moodle), as the platform calls them in English; "
        f"got {columns[:200]!r}"
    )


def filled_in(exported: Exported, rows: Sequence[Row], lesson: str) -> FilledIn:
    """The gradebook with the scores of these rows. `lesson` is what the assignment is called where
    the gradebook has none that is called so."""
    found, remarks = _matched(exported, rows)
    given, kept = _given(exported, found, lesson)
    fill = {
        "Canvas": _canvas,
        "Moodle worksheet": _worksheet,
        "Moodle grades": _moodle_grades,
    }[exported.kind]
    lines = fill(exported.table, given, rows, lesson)
    platform = exported.kind.partition(" ")[0]
    return FilledIn(platform, csv_text(lines), (*remarks, *kept))


def check_points(exported: Exported, lesson: str, most: float) -> None:
    """A ValueError where the gradebook counts the assignment with other points than `most`."""
    for where, line in exported.table.lines:
        if exported.kind == "Canvas":
            if _POINTS_POSSIBLE not in (line.get("Student") or line.get("LastName") or ""):
                continue
            text = line.get(_assignment_called(lesson, exported.table.columns))
        else:
            text = line.get("Maximum Grade")
        try:
            counts = float((text or "").replace(",", "."))
        except ValueError:  # nothing, or a word such as (read only)
            continue
        if counts != most:
            raise ValueError(
                f"{where}: {lesson} counts {counts:g} points there and {most:g} here (open "
                "questions count where --manual is given); set the assignment to as many and "
                "export the gradebook again"
            )


def _given(
    exported: Exported, found: Mapping[int, Row], lesson: str
) -> tuple[dict[int, Row], list[str]]:
    """(the rows whose marks go into the gradebook, what is told of those that stay as they are): an
    excused student stays excused, a mark that is there stays where nothing was handed in, and one
    whose open answers are not all marked waits for that."""
    column = {
        "Canvas": _assignment_called(lesson, exported.table.columns),
        "Moodle worksheet": "Grade",
        "Moodle grades": lesson,
    }[exported.kind]
    given: dict[int, Row] = {}
    stays: dict[str, list[str]] = {"excused": [], "has a mark": [], "open answer unmarked": []}
    for place, row in found.items():
        cell = (exported.table.lines[place][1].get(column) or "").strip()
        if cell.upper() == _EXCUSED:
            stays["excused"].append(row.student)
        elif row.unmarked:
            stays["open answer unmarked"].append(row.student)
        elif cell.strip("-") and not row.has_work:
            stays["has a mark"].append(row.student)
        else:
            given[place] = row
    return given, [
        f"left as the gradebook has it, {_WHY[why]}: {_listed(students)}"
        for why, students in stays.items()
        if students
    ]


def _canvas(
    table: Table, found: Mapping[int, Row], rows: Sequence[Row], lesson: str
) -> Iterator[list[str]]:
    ids = [column for column in table.columns if column in _CANVAS_IDS]
    assignment = _assignment_called(lesson, table.columns)
    yield [*ids, assignment]
    most = f"{rows[0].max_score:g}" if rows else "0"
    for _, line in table.lines:
        if _POINTS_POSSIBLE in (line[ids[0]] or ""):  # what an assignment counts there, it counts
            most = line.get(assignment) or most
    yield [_POINTS_POSSIBLE, *[""] * (len(ids) - 1), most]
    for place, row in sorted(found.items()):
        line = table.lines[place][1]
        yield [*[line[column] or "" for column in ids], f"{row.score:g}"]


def _assignment_called(lesson: str, columns: Sequence[str]) -> str:
    """The column of the assignment, whose name there has a number behind it: `01_x (1234)`."""
    called = rf"{re.escape(lesson)}(?: \(\d+\))?"
    return next((column for column in columns if re.fullmatch(called, column)), lesson)


def _worksheet(
    table: Table, found: Mapping[int, Row], rows: Sequence[Row], lesson: str
) -> Iterator[list[str]]:
    comments = [] if _COMMENTS in table.columns else [_COMMENTS]
    columns = [*table.columns, *comments]
    yield columns
    for place, (_, line) in enumerate(table.lines):
        cells = {column: line.get(column) or "" for column in columns}
        if place in found:
            row = found[place]
            teachers = _OURS.sub("", cells[_COMMENTS])
            cells |= {"Grade": f"{row.score:g}", _COMMENTS: f"{teachers} {_comment(row)}".strip()}
        yield [cells[column] for column in columns]


def _moodle_grades(
    table: Table, found: Mapping[int, Row], rows: Sequence[Row], lesson: str
) -> Iterator[list[str]]:
    ids = [column for column in table.columns if column in _MOODLE_IDS]
    yield [*ids, lesson, f"{lesson} (feedback)"]
    for place, row in sorted(found.items()):
        line = table.lines[place][1]
        yield [*[line[column] or "" for column in ids], f"{row.score:g}", _comment(row)]


def _comment(row: Row) -> str:
    """The points of each question in a line, as Moodle shows it to the student, and what was said
    by hand. It ends a cell: the next run takes it off again."""
    parts = [f"{name}: {'–' if got is None else f'{got:g}'}" for name, got in row.points.items()]
    line = "; ".join(filter(None, [f"{row.score:g} of {row.max_score:g}", *parts, row.note]))
    return plain(" ".join([f"[{line}]", *row.comments]))


def _matched(exported: Exported, rows: Sequence[Row]) -> tuple[dict[int, Row], list[str]]:
    """(the row of each line of the gradebook, by the line's place; what the teacher is told): a
    student is a line where exactly one line has that name or id."""
    places: dict[str, set[int]] = {}
    for place, (_, line) in enumerate(exported.table.lines):
        for name in _names(line):
            places.setdefault(name, set()).add(place)
    found: dict[int, Row] = {}
    nowhere: list[str] = []
    several: list[str] = []
    # whoever handed in first: a name on the list alone must not take another's place
    for row in sorted(rows, key=lambda row: not row.has_work):
        at = places.get(_key(row.student), set())
        if len(at) == 1 and not at & set(found):
            found[next(iter(at))] = row
        else:
            (several if at else nowhere).append(row.student)
    remarks = []
    if nowhere:
        remarks.append(f"not in the gradebook, so without a mark there: {_listed(nowhere)}")
    if several:
        remarks.append(f"not the only one of that name there, so left out: {_listed(several)}")
    return found, remarks


def _names(line: Mapping[str, str | None]) -> set[str]:
    """All that a student of this line may be called: ids, login, address, and the name in either
    order, also run together as Canvas does for the files of submissions."""
    cells = {column: (text or "").strip() for column, text in line.items() if column}
    if _POINTS_POSSIBLE in cells.get("Student", cells.get("LastName", "")):
        return set()
    names = {
        cells.get(column, "")
        for column in (
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "ID number",
            "Username",
            "Email address",
        )
    }
    names.add(cells.get("Email address", "").partition("@")[0])
    number = cells.get("Identifier", "").rpartition(" ")[2]
    first = cells.get("First name", cells.get("FirstName", ""))
    last = cells.get("Last name", cells.get("Surname", cells.get("LastName", "")))
    student = cells.get("Student") or (f"{last}, {first}" if first or last else "")
    last, _, first = (part.strip() for part in student.partition(","))
    full = cells.get("Full name") or f"{first} {last}".strip()
    names |= {number, student, full, f"{full} {number or cells.get('ID', '')}"}
    together = re.sub(r"\W", "", f"{last}{first}" if student else full)
    names |= {together, _without_marks(together)}
    return {_key(name) for name in names if name.strip()}


def _without_marks(text: str) -> str:
    """A text without the marks on its letters: Zoe for Zoë."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(one for one in parts if not unicodedata.combining(one))


def _key(name: str) -> str:
    return " ".join(one_spelling(name).casefold().split())


def _listed(names: Sequence[str]) -> str:
    more = " ..." if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"
