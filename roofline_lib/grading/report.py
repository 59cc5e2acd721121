"""What a teacher and each student get: the CSV of marks, the students' pages, the class's page and
the page of open answers."""

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from roofline_lib.grading.class_page import class_page
from roofline_lib.grading.feedback import feedback_page
from roofline_lib.grading.judging import Marks
from roofline_lib.grading.lateness import Lateness
from roofline_lib.grading.open_answers import open_page
from roofline_lib.grading.pages import HEAD
from roofline_lib.grading.platforms import Packed
from roofline_lib.grading.rows import HandMarks, Question, Row, counted, open_ones, row_of
from roofline_lib.grading.spreadsheets import csv_text, plain
from roofline_lib.grading.words import LessonWords

LONGEST_PAGE_NAME = 250  # bytes of a student's name; a file's may have 255


@dataclass(frozen=True)
class Report:
    """A lesson of a class, graded: all that is written of it."""

    marks: Sequence[Marks]
    questions: Sequence[Question]
    words: LessonWords
    by_hand: HandMarks | None = None  # None where open questions do not count
    late: Mapping[str, Lateness] | None = None  # of every student; None where they do not count
    answers: Mapping[tuple[str, str], str] | None = None  # to open questions, by (student, name)

    @property
    def rows(self) -> list[Row]:
        """A Row for each of the marks, in their order."""
        late, answered = self.late or {}, defaultdict(set)
        for (student, name), text in (self.answers or {}).items():
            if text:
                answered[student].add(name)
        return [
            row_of(one, self.questions, self.by_hand, late.get(one.student), answered[one.student])
            for one in self.marks
        ]


def pages_of(out: Path) -> Path:
    """The folder of the students' pages, made where it is not there."""
    folder = out.with_name(f"{out.stem}_feedback")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(out: Path, report: Report) -> list[Row]:
    """The CSV, a page for each student in `<out>_feedback/`, and for the teacher `<out>_class.html`
    and `<out>_open.html`; gives the rows. Pages of an earlier run that nobody of this one has are
    removed.

    Each file is there whole or as it was before. OSError names one that could not be written; the
    CSV comes first.
    """
    rows = report.rows
    write_csv(out, rows, [one.name for one in counted(report.questions, report.by_hand)])
    _write_feedback(pages_of(out), report, rows)
    page = class_page(report.marks, rows, report.questions, report.words)
    _write_page(out.with_name(f"{out.stem}_class.html"), page)
    if asked := open_ones(report.questions):
        file = f"{out.stem}_by_hand.csv"
        page = open_page(report.answers or {}, asked, report.by_hand or {}, report.words, file)
        _write_page(out.with_name(f"{out.stem}_open.html"), page)
    return rows


def replace(path: Path, text: str) -> None:
    """Put a text in the place of a file at once: what stood there stays whole until it is written,
    also where the disk is full. OSError names the file."""
    _replace(path, text.encode("utf-8"))


def _replace(path: Path, data: bytes) -> None:
    new = path.with_name(".roofline-grade.new")
    try:
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_moodle_feedback(out: Path, packed: Packed) -> None:
    """`<out>_moodle_feedback.zip`: the students' pages under the names that Moodle packed, which is
    what it takes under "Upload multiple feedback files in a zip" (moodle/moodle,
    mod/assign/feedback/file/importziplib.php)."""
    text = BytesIO()
    with ZipFile(text, "w", ZIP_DEFLATED) as pack:
        for name, said in sorted(packed.names.items()):
            page = pages_of(out) / _page_name(said.student)
            who, kind, _ = name.partition("_assignsubmission_file")
            # a name may hold what no path and no UTF-8 has; Moodle goes by the number behind it
            who = plain(who).replace("\\", "-").encode("utf-8", "replace").decode()
            moment = ZipInfo(f"{who}{kind}_/feedback.html", date_time=(1980, 1, 1, 0, 0, 0))
            if page.is_file():
                pack.writestr(moment, page.read_bytes(), ZIP_DEFLATED)
    _replace(out.with_name(f"{out.stem}_moodle_feedback.zip"), text.getvalue())


def write_csv(out: Path, rows: Sequence[Row], names: Sequence[str]) -> None:
    """The table of marks, with a column for each question of `names`, and one for late days where
    they count."""
    counts_days = any(row.late for row in rows)
    days = ["late_days"] if counts_days else []
    lines = [["student", "score", "max_score", *names, *days, "status", "note"]]
    for row in rows:
        cells = ["" if got is None else f"{got:g}" for got in row.points.values()]
        days = [f"{row.late.days if row.late else 0}"] if counts_days else []
        numbers = [f"{row.score:g}", f"{row.max_score:g}", *cells, *days]
        lines.append([plain(row.student), *numbers, row.status, plain(row.note)])
    replace(out, csv_text(lines))


def _write_feedback(folder: Path, report: Report, rows: Sequence[Row]) -> None:
    """A page for each student; those of an earlier run that are left over are removed."""
    names = set()
    for one, row in zip(report.marks, rows, strict=True):
        name = _page_name(row.student)
        page = feedback_page(one, row, report.questions, report.by_hand or {}, report.words)
        _write_page(folder / name, page)
        names.add(name)
    for path in folder.glob("*.html"):
        is_left_over = path.name not in names and not path.is_symlink() and path.is_file()
        if is_left_over and path.read_bytes().startswith(HEAD.encode()):
            path.unlink()


def _write_page(path: Path, page: str) -> None:
    replace(path, page.encode("utf-8", "replace").decode())


def _page_name(student: str) -> str:
    """`<student>.html`; a name too long for that (a folder's may have 255 bytes, and so may a
    page's) is cut and told apart by a hash."""
    name = os.fsencode(student)
    if len(name) <= LONGEST_PAGE_NAME:
        return f"{student}.html"
    return f"{os.fsdecode(name[:200])}-{sha256(name).hexdigest()[:16]}.html"
