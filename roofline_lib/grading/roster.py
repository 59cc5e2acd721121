"""The lists that a teacher writes, read and checked before anything is graded: names of a class,
marks given by hand."""

import csv
import io
import unicodedata

HEADER = ("student", "question", "mark")
LONGEST_NAME = 240  # bytes


def one_spelling(name):
    """A name in one spelling: an e with an accent is one character here and two in macOS's
    files."""
    return unicodedata.normalize("NFC", name)


def read_names(path):
    """The names of a class, one a line; a ValueError that names the line at fault."""
    names = set()
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        name = one_spelling(line.strip())
        has_path = name.startswith(".") or set(name) & set("/\\\0")
        if has_path or len(name.encode()) > LONGEST_NAME:
            raise ValueError(
                f"{path}, line {number}: {name[:60]!r} cannot name a page; "
                f"no / or \\, no dot first, {LONGEST_NAME} bytes at most"
            )
        names.add(name)
    return names - {""}


def read_hand_marks(path, students, open_questions):
    """{(student, question): mark} from a CSV with the columns student, question and mark.

    `students` are the names that have a row, `open_questions` what is marked by hand. An empty mark
    is none yet. A ValueError names the line at fault.
    """
    marks, most = {}, {question.name: question.points for question in open_questions}
    table = csv.DictReader(io.StringIO(_read_text(path), newline=""))
    columns = table.fieldnames or ()
    if not set(HEADER) <= set(columns):
        raise ValueError(
            f"{path}, line 1: needs the header {','.join(HEADER)}, with commas; "
            f"got {','.join(columns)[:100]!r}"
        )
    for row in _rows_of(table, path):
        where = f"{path}, line {table.line_num} ({','.join(HEADER)})"
        student, question = one_spelling(row["student"] or ""), row["question"]
        if student not in students:
            raise ValueError(
                f"{where}: {student!r} has no row in this class: "
                "no notebook, and no line in --students"
            )
        if question not in most:
            raise ValueError(
                f"{where}: {question!r} is no question marked by hand; "
                f"choose one of {', '.join(most)}"
            )
        if row["mark"] is not None and not row["mark"].strip():
            continue
        mark = _mark(row["mark"], most[question], where)
        if (student, question) in marks:
            raise ValueError(f"{where}: a second mark for {student}, {question}")
        marks[student, question] = mark
    return marks


def _rows_of(table, path):
    try:
        yield from table
    except csv.Error as error:
        raise ValueError(f"{path}, line {table.line_num + 1}: {error}") from None


def _mark(text, most, where):
    try:
        mark = float(text)
    except (ValueError, TypeError):  # a word, or a line that is too short
        mark = None
    if mark is None or not 0 <= mark <= most:
        raise ValueError(
            f"{where}: needs a mark from 0 to {most:g}, with a decimal point; got {text}"
        )
    return mark


def _read_text(path):
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
