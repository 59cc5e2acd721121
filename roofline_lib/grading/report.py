"""What a teacher and each student get: the CSV of marks and the pages."""

import csv
import html
import io
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from roofline_lib.grading.draw import OpenQuestion

HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="generator" content="roofline_lib grade">'
)
STYLE = (
    "<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
    "td{padding:.3em 1em .3em 0;vertical-align:top}"
    "td:nth-child(2){white-space:nowrap}td:last-child{overflow-wrap:anywhere}</style>"
)
# what a spreadsheet would take for the beginning of one, also as wide characters
FORMULA = re.compile(r"(^\s*|[;,|]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20]|\\t|\\r|\\n)")
LONGEST_PAGE_NAME = 250  # bytes of a student's name; a file's may have 255


@dataclass(frozen=True)
class Row:
    """A student's line in the CSV. `points` has those of each question that counts, None for one
    that nobody has marked yet."""

    student: str
    score: float
    max_score: float
    points: dict
    status: str
    note: str


def row_of(marks, questions, by_hand):
    """The Row of a student's Marks. `by_hand` are marks by (student, question); None where open
    questions do not count."""
    asked = counted(questions, by_hand)
    points = {question.name: _points(question, marks, by_hand or {}) for question in asked}
    return Row(
        student=marks.student,
        score=sum(got or 0 for got in points.values()),
        max_score=sum(question.points for question in asked),
        points=points,
        status=marks.status,
        note=marks.note,
    )


def counted(questions, by_hand):
    """The questions that count: open ones only where there are marks by hand."""
    if by_hand is not None:
        return questions
    return [one for one in questions if not isinstance(one, OpenQuestion)]


def _points(question, marks, by_hand):
    if isinstance(question, OpenQuestion):
        return by_hand.get((marks.student, question.name))
    outcome = marks.outcomes.get(question.name)
    return question.points if outcome and outcome.right else 0


def pages_of(out):
    """The folder of the students' pages, made where it is not there."""
    folder = out.with_name(f"{out.stem}_feedback")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write(out, marks, questions, by_hand, lesson):
    """The CSV, and a page for each student in `<out>_feedback/`; gives the rows. Pages of an
    earlier run that nobody of this one has are removed.

    Each file is there whole or as it was before. OSError names one that could not be written; the
    CSV comes first.
    """
    rows = [row_of(one, questions, by_hand) for one in marks]
    write_csv(out, rows, [question.name for question in counted(questions, by_hand)])
    write_pages(pages_of(out), marks, rows, questions, by_hand or {}, lesson)
    return rows


def replace(path, text):
    """Put a text in the place of a file at once: what stood there stays whole until it is written,
    also where the disk is full. OSError names the file."""
    new = path.with_name(".roofline-grade.new")
    try:
        with new.open("w", newline="", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_csv(out, rows, names):
    """The table of marks, with a column for each question of `names`."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["student", "score", "max_score", *names, "status", "note"])
    for row in rows:
        cells = ["" if got is None else f"{got:g}" for got in row.points.values()]
        numbers = [f"{row.score:g}", f"{row.max_score:g}", *cells]
        table.writerow([plain(row.student), *numbers, row.status, plain(row.note)])
    replace(out, text.getvalue().encode("utf-8", "backslashreplace").decode())


def plain(text):
    """A text that no spreadsheet takes for a formula, at its beginning or behind what some take for
    the end of a cell, and in which line breaks and other controls are written out."""
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return FORMULA.sub(r"\1'\2", shown)


def write_pages(folder, marks, rows, questions, by_hand, lesson):
    """A page for each student; those of an earlier run that are left over are removed."""
    names = set()
    for one, row in zip(marks, rows, strict=True):
        name = _page_name(row.student)
        page = _page(one, row, questions, by_hand, lesson)
        replace(folder / name, page.encode("utf-8", "replace").decode())
        names.add(name)
    for path in folder.glob("*.html"):
        is_left_over = path.name not in names and not path.is_symlink() and path.is_file()
        if is_left_over and path.read_bytes().startswith(HEAD.encode()):
            path.unlink()


def _page_name(student):
    """`<student>.html`; a name too long for that (a folder's may have 255 bytes, and so may a
    page's) is cut and told apart by a hash."""
    name = os.fsencode(student)
    if len(name) <= LONGEST_PAGE_NAME:
        return f"{student}.html"
    return f"{os.fsdecode(name[:200])}-{sha256(name).hexdigest()[:16]}.html"


def _page(marks, row, questions, by_hand, lesson):
    title = f"{html.escape(lesson)}: {html.escape(row.student)}"
    lines = [_line(question, marks, by_hand) for question in questions]
    return (
        f"{HEAD}<title>{title}</title>{STYLE}<h1>{title}</h1>"
        f"<p>{row.score:g} of {row.max_score:g} points. Status: {html.escape(row.status)}. "
        f"{html.escape(row.note)}</p><table>{''.join(lines)}</table></html>\n"
    )


def _line(question, marks, by_hand):
    """A question's line on a student's page."""
    got = _points(question, marks, by_hand)
    outcome = marks.outcomes.get(question.name)
    if isinstance(question, OpenQuestion):
        sentence = "Marked by hand."
        if got is None:
            sentence = "To be marked by hand; it is not in these points."
    else:
        sentence = outcome.sentence if outcome else "Not graded."
    points = "no mark yet" if got is None else f"{got:g} of {question.points:g}"
    name = html.escape(question.name)
    return f"<tr><td><code>{name}</code><td>{points}<td>{html.escape(sentence)}"
