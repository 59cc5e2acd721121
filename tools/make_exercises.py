"""Write exercises/ from solutions/: what stands between BEGIN SOLUTION and END SOLUTION goes, and
so do the hidden tests.

    python tools/make_exercises.py                              all lessons of solutions/ into
    exercises/ python tools/make_exercises.py --solutions mine --out to    the same with a folder of
    your own laid over solutions/

How to write solutions/<lesson>/<lesson>.ipynb (solutions/01_arithmetic_intensity is the model to
follow):

* A marked question is two cells. The first defines the function; the answer stands between `###
  BEGIN SOLUTION` and `### END SOLUTION`, which become `return ...`. The second starts with a
  visible `rl.check("intensity.x-name", function)`, and then, between `### BEGIN HIDDEN TESTS` and
  `### END HIDDEN TESTS`, imports `roofline_lib.grading.marked` and calls it once: edge cases, how
  to draw more (20 are drawn), and what of the library is out of reach. Name whole modules there,
  or the other ways to the same number stay open. Arguments are numbers, texts and lists; so are
  answers. Draw no input where two honest ways to compute differ by rounding alone, and let no
  constant be right for most of them. In solutions/ the cells' ids are the function's name and
  `test_<function>`; the grader goes by the function's name alone.
* A practice question is one cell, `rl.check("intensity.x-name", ...)`; the question itself stands
  in roofline_lib/questions/intensity.py.
* The open question is a text cell that holds `### BEGIN SOLUTION` and `### END SOLUTION` around
  model answer and rubric.

nbgrader's metadata is added here to the cells of solutions/ that lack it: 1 point a marked
question, 2 for an open one; change the number in the cell's metadata where it should count
otherwise.
"""

import argparse
import json
import re
from pathlib import Path

from roofline_lib.grading.solutions import solution, solution_folders

SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION\n?", re.MULTILINE | re.DOTALL
)
HIDDEN = re.compile(
    r"^[ \t]*### BEGIN HIDDEN TESTS\n.*?^[ \t]*### END HIDDEN TESTS\n?", re.MULTILINE | re.DOTALL
)
STUBS = {"code": r"\1return ...  # your answer" + "\n", "markdown": "*Your answer.*\n"}


def complete(cell):
    """Give a cell of a solution the metadata that nbgrader asks for, where it has none."""
    text = "".join(cell["source"])
    asks, tests = bool(SOLUTION.search(text)), bool(HIDDEN.search(text))
    if (asks or tests) and "nbgrader" not in cell["metadata"]:
        graded = tests or cell["cell_type"] == "markdown"
        points = {"points": 1 if tests else 2} if graded else {}
        cell["metadata"]["nbgrader"] = {
            "grade": graded,
            "grade_id": cell["id"],
            "locked": tests,
            **points,
            "schema_version": 3,
            "solution": asks,
            "task": False,
        }
    if cell["cell_type"] == "code":
        cell.update(execution_count=None, outputs=[])


def exercise(book):
    """The notebook without its answers."""
    cells = []
    for cell in book["cells"]:
        text = HIDDEN.sub(
            "", SOLUTION.sub(STUBS.get(cell["cell_type"], ""), "".join(cell["source"]))
        ).rstrip("\n")
        cells.append({**cell, "source": text.splitlines(keepends=True)})
    return {**book, "cells": cells}


def dump(book):
    """A notebook as text, the same every time."""
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--solutions", type=Path, metavar="DIR", help="a folder of your own, laid over solutions/"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("exercises"),
        metavar="DIR",
        help="where to write (%(default)s)",
    )
    args = parser.parse_args(argv)
    try:
        folders = solution_folders(args.solutions)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for path in sorted(path for folder in folders for path in folder.glob("*/*.ipynb")):
        text = path.read_text(encoding="utf-8")
        book = json.loads(text)
        for cell in book["cells"]:
            complete(cell)
            cell["source"] = "".join(cell["source"]).splitlines(keepends=True)
        if dump(book) != text:
            path.write_text(dump(book), encoding="utf-8")
    for lesson in sorted(
        {path.parent.name for folder in folders for path in folder.glob("*/*.ipynb")}
    ):
        out = args.out / lesson / f"{lesson}.ipynb"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(dump(exercise(solution(lesson, folders))), encoding="utf-8")
        print(out)


if __name__ == "__main__":
    main()
