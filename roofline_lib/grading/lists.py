"""The lists that a teacher writes, read and checked before anything is graded: names of a class,
marks given by hand."""

import csv
import io
import math
import unicodedata
from contextlib import suppress

HEADER = "student,question,mark"


def normal(name):
    """A name in one spelling: an e with an accent is one character here and two in macOS's
    files."""
    return unicodedata.normalize("NFC", name)


def read_text(path):
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def read_names(path):
    """The names of a class, one a line; a ValueError that names the line at fault."""
    names = set()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        name = normal(line.strip())
        if name.startswith(".") or set(name) & set("/\\\0") or len(name.encode()) > 240:
            raise ValueError(
                f"{path}, line {number}: {name[:60]!r} cannot name a page; no / or \\, no dot first, 240 bytes at most"
            )
        names.add(name)
    return names - {""}


def read_manual(path, students, questions):
    """{(student, question): mark} from a CSV, None without one; a ValueError that names the line at
    fault."""
    if not path:
        return None
    marks, most = {}, {q["name"]: q["points"] for q in questions if q.get("by_hand")}
    table = csv.DictReader(io.StringIO(read_text(path), newline=""))
    if not set(HEADER.split(",")) <= set(table.fieldnames or ()):
        raise ValueError(
            f"{path}, line 1: needs the header {HEADER}, with commas; got {','.join(table.fieldnames or ())[:100]!r}"
        )
    for row in table:
        student, question, mark, text = (
            normal(row["student"] or ""),
            row["question"],
            math.nan,
            row["mark"],
        )
        where = f"{path}, line {table.line_num} ({HEADER})"
        if student not in students:
            raise ValueError(
                f"{where}: {student!r} has no row in this class: no notebook, and no line in --students"
            )
        if question not in most:
            raise ValueError(
                f"{where}: {question!r} is no question marked by hand; choose one of {', '.join(most)}"
            )
        if text is not None and not text.strip():
            continue  # not marked yet
        with suppress(ValueError, TypeError):
            mark = float(text)
        if not 0 <= mark <= most[question]:
            raise ValueError(
                f"{where}: needs a mark from 0 to {most[question]:g}, with a decimal point; got {text}"
            )
        if (student, question) in marks:
            raise ValueError(f"{where}: a second mark for {student}, {question}")
        marks[student, question] = mark
    return marks
