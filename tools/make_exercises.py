"""Write exercises/ from solutions/: what stands between BEGIN SOLUTION and END SOLUTION goes, and
so do the hidden tests.

    python tools/make_exercises.py                              all lessons of solutions/ into
    exercises/ python tools/make_exercises.py --solutions mine --out to    the same with a folder of
    your own laid over solutions/ python tools/make_exercises.py --variants names.txt --seed TERM
    --lesson 01 --out to    one lesson for each student, as to/<lesson>/<student>.ipynb

With --variants, practice questions ask each student with other numbers, so that a neighbour's
answer is wrong. What a notebook holds of it is a name, `rl.check(..., variant="3f0c9a1b")`, made
from student and term; the library draws the numbers from that and computes the answer. Questions
that have one set of numbers only (VARIED in roofline_lib/questions/ lists the others) stay as they
are. Marked questions are not touched: the grader draws inputs for each student anyway.

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
from hashlib import sha256
from pathlib import Path

from roofline_lib.grading.roster import read_names
from roofline_lib.grading.solutions import lesson_name, solution, solution_folders
from roofline_lib.questions import varied_on

SOLUTION = re.compile(
    r"^([ \t]*)### BEGIN SOLUTION\n.*?^[ \t]*### END SOLUTION\n?", re.MULTILINE | re.DOTALL
)
HIDDEN = re.compile(
    r"^[ \t]*### BEGIN HIDDEN TESTS\n.*?^[ \t]*### END HIDDEN TESTS\n?", re.MULTILINE | re.DOTALL
)
# what is said to somebody who learns alone: the sentence that links to the answers
TO_ANSWERS = re.compile(
    r" ?(?:Do you learn alone\? )?(?:[^.?!\n]|\n(?!\n))*\]\([./]*solutions/[^)]*\)\."
)
TO_REPOSITORY = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")
CHECK = re.compile(r'rl\.check\("((\w+)\.[\w-]+)", \.\.\.\)')
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


def handed_out(book):
    """An exercise that leaves the repository: it does not lead to the model answers, and names what
    it cannot link to."""
    cells = []
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            text = TO_ANSWERS.sub("", "".join(cell["source"]))
            text = TO_REPOSITORY.sub(r"\1", text).strip("\n")
            cell = {**cell, "source": text.splitlines(keepends=True)}
        cells.append(cell)
    return {**book, "cells": cells}


def for_student(book, student, term):
    """An exercise with the practice questions in this student's variant."""
    variant = variant_of(student, term)

    def varied(match):
        name, topic = match.groups()
        if name not in varied_on(topic):
            return match[0]
        return f'rl.check("{name}", ..., variant="{variant}")'

    cells = [
        {**cell, "source": [CHECK.sub(varied, line) for line in cell["source"]]}
        if cell["cell_type"] == "code"
        else cell
        for cell in book["cells"]
    ]
    return {**book, "cells": cells}


def variant_of(student, term):
    """The name of a student's variant, from which nobody reads student or numbers."""
    return sha256(repr((term, student)).encode()).hexdigest()[:8]


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
    parser.add_argument("--lesson", metavar="LESSON", help="this lesson alone, such as 01")
    parser.add_argument(
        "--variants",
        type=Path,
        metavar="FILE",
        help="names, one a line: a notebook for each, with numbers of its own (needs --out)",
    )
    parser.add_argument(
        "--seed", default="", metavar="TERM", help="what the variants' numbers are drawn from"
    )
    args = parser.parse_args(argv)
    if args.variants and args.out == Path("exercises"):
        parser.error("--variants needs an --out of its own, for a notebook each")
    try:
        folders = solution_folders(args.solutions)
        only = lesson_name(args.lesson, folders) if args.lesson else None
        students = sorted(read_names(args.variants)) if args.variants else []
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    except ValueError as error:
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
        if only in (None, lesson):
            book = exercise(solution(lesson, folders))
            if args.variants or args.solutions:
                book = handed_out(book)
            books = {student: for_student(book, student, args.seed) for student in students}
            write(args.out / lesson, books if args.variants else {lesson: book})


def write(folder, books):
    """Each of the notebooks, under its name, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, book in books.items():
        (folder / f"{name}.ipynb").write_text(dump(book), encoding="utf-8")
        print(folder / f"{name}.ipynb")


if __name__ == "__main__":
    main()
