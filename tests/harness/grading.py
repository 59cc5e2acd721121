"""What tests of the grader share: the course's exercises, a folder handed in, its command."""

import csv
import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.name for path in (ROOT / "solutions").iterdir() if path.is_dir())
FIRST = "01_arithmetic_intensity"


def read(kind, lesson):
    return json.loads((ROOT / kind / lesson / f"{lesson}.ipynb").read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def ran(book):
    """What a notebook's code cells print, run from top to bottom in one namespace."""
    names, printed = {}, io.StringIO()
    with redirect_stdout(printed):
        for cell in book["cells"]:
            if cell["cell_type"] == "code":
                exec(compile(source(cell), cell["id"], "exec"), names)
    return printed.getvalue()


def write(folder, **books):
    folder.mkdir(parents=True, exist_ok=True)
    for student, book in books.items():
        (folder / f"{student}.ipynb").write_text(
            book if isinstance(book, str) else json.dumps(book), encoding="utf-8"
        )
    return folder


def grade(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "roofline_lib", "grade", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def write_class(folder):
    """A class of four: all right, nothing done, one function right, an empty file."""
    book = read("exercises", FIRST)
    half = json.loads(json.dumps(book))
    for cell in half["cells"]:
        if cell["id"] == "product_flops":
            cell["source"] = "def product_flops(m, n, k):\n    return 2 * m * n * k"
    return write(folder, ada=read("solutions", FIRST), bob=book, cy=half, dan="")
