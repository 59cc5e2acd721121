"""Tables as spreadsheets and learning platforms read and write them."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """A CSV file with commas that has the columns `needs`; a ValueError that names the file where
    it has others, or the line that cannot be read."""
    table = csv.DictReader(io.StringIO(read_text(path), newline=""))
    columns = tuple(_first_line(table, path))
    if not set(needs) <= set(columns):
        raise ValueError(
            f"{path}, line 1: needs the header {','.join(needs)}, with commas; "
            f"got {','.join(columns)[:100]!r}"
        )
    return Table(columns, tuple(_lines(table, path, ",".join(needs))))


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
    """The text of a file in UTF-8, with or without a mark in front; a ValueError for any other."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
