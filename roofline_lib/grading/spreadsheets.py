"""Tables as spreadsheets and learning platforms read and write them."""

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SEPARATORS = (",", ";", "\t")
_UTF8 = "utf-8-sig"
# what a spreadsheet would take for the beginning of one, also as wide characters
FORMULA = re.compile(r"(^\s*|[;,|]\s*)([=+\-@\uff1d\uff0b\uff0d\uff20]|\\t|\\r|\\n)")


@dataclass(frozen=True)
class Table:
    """A CSV file: its columns, and its lines as dicts, each with where it stands. A line that is
    too short has None in the columns that it lacks."""

    columns: tuple[str, ...]
    lines: tuple[tuple[str, dict[str, str | None]], ...]


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula, at its beginning or behind what some take for
    the end of a cell, and in which line breaks and other controls are written out."""
    shown = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return FORMULA.sub(r"\1'\2", shown)


def csv_text(lines: Iterable[Sequence[str]]) -> str:
    """Lines of cells as the text of a CSV file, with commas."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode("utf-8", "backslashreplace").decode()


def read_table(path: Path, needs: Sequence[str]) -> Table:
    """A CSV file that has the columns `needs`, with commas or, as spreadsheets in many countries
    write them, with semicolons or tabs; a ValueError that names the file where it has others, or
    the line that cannot be read."""
    text = read_text(path)
    for separator in SEPARATORS:
        table = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        columns = tuple(_first_line(table, path))
        if set(needs) <= set(columns):
            return Table(columns, tuple(_lines(table, path, ",".join(needs))))
    raise ValueError(
        f"{path}, line 1: needs the header {','.join(needs)}, with commas, semicolons or tabs; "
        f"got {text.partition(chr(10))[0].strip()[:100]!r}"
    )


def _first_line(table: csv.DictReader, path: Path) -> Sequence[str]:
    try:
        return table.fieldnames or ()
    except csv.Error as error:
        raise ValueError(f"{path}, line 1: {error}") from None


def _lines(
    table: csv.DictReader, path: Path, header: str
) -> Iterator[tuple[str, dict[str, str | None]]]:
    try:
        for row in table:
            yield f"{path}, line {table.line_num} ({header})", row
    except csv.Error as error:
        raise ValueError(f"{path}, line {table.line_num + 1}: {error}") from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a mark in front, or in UTF-16 with one, which is
    what a spreadsheet calls Unicode text; a ValueError for any other."""
    data = path.read_bytes()
    if data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise ValueError(f"{path} is a workbook; save its sheet as CSV, in UTF-8")
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else _UTF8
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
