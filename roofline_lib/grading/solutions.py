"""Where a lesson's questions come from: its solution notebook, and a teacher's own folder laid over
it."""

import json
import re
from difflib import get_close_matches
from pathlib import Path

import roofline_lib


def solution_folders(own=None):
    """The folders with solutions, in order of precedence: a teacher's `own`, then this
    repository's, or those that came with an installed library. ValueError where a folder in `own`
    looks like a misspelt lesson of ours, or where none holds a notebook."""
    library = Path(roofline_lib.__file__).parent
    roots = [Path.cwd(), library.parent, library / "course" / "files"]
    candidates = [root / "solutions" for root in roots]
    ours = [folder for folder in candidates if folder.is_dir()][:1]
    if not own:
        return ours
    lessons = sorted(path.name for folder in ours for path in folder.iterdir())
    if not any(Path(own).glob("*/*.ipynb")):
        raise ValueError(
            f"{own} has no notebook in a folder of its own; needs <lesson>/<anything>.ipynb, "
            f"such as {own}/{lessons[0] if lessons else 'my_lesson'}/mine.ipynb"
        )
    for path in Path(own).iterdir():
        if path.is_dir() and path.name not in lessons:
            similar = _beginning_with(path.name, lessons) or get_close_matches(
                path.name, lessons, n=1, cutoff=0.9
            )
            if similar:
                raise ValueError(
                    f"{path} would be a lesson of its own; "
                    f"give it the full name, {' or '.join(similar)}"
                )
    return [Path(own), *ours]


def lesson_name(lesson, folders):
    """The full name of a lesson that may be given by its number or its beginning; a ValueError that
    lists what there is."""
    names = {
        path.name
        for folder in folders
        for path in folder.iterdir()
        if path.is_dir() and any(path.glob("*.ipynb"))
    }
    found = [lesson] if lesson in names else _beginning_with(lesson, sorted(names))
    if len(found) != 1:
        choices = ", ".join(found or sorted(names))
        state = "may be several" if found else "is not known"
        raise ValueError(f"lesson {lesson!r} {state}; choose one of {choices}")
    return found[0]


def _beginning_with(start, names):
    """The names that begin with `start`; where that is a number, those of that number: 1 and 01 are
    lesson 01, not lesson 10."""
    if not start.isdecimal():
        return [name for name in names if name.startswith(start)]
    numbers = {name: name.partition("_")[0] for name in names}
    return [
        name for name, number in numbers.items() if number.isdecimal() and int(number) == int(start)
    ]


def solution(lesson, folders):
    """The lesson's solution as one notebook: `<lesson>.ipynb` from the first folder that has it,
    then the cells of the other notebooks."""
    files = {
        path.name: path
        for folder in reversed(folders)
        for path in sorted((folder / lesson).glob("*.ipynb"))
    }
    main = f"{lesson}.ipynb"
    books = [_book(files[name]) for name in sorted(files, key=lambda name: (name != main, name))]
    return {**books[0], "cells": [cell for book in books for cell in book["cells"]]}


def functions_of(book):
    """The names of the functions that a solution notebook asks for."""
    cells = ("".join(cell.get("source", "")) for cell in book["cells"])
    answers = (text for text in cells if "### BEGIN SOLUTION" in text)
    return [name for text in answers for name in re.findall(r"^def (\w+)\(", text, re.MULTILINE)]


def _book(path):
    """A notebook's JSON; a ValueError that names a file which holds none."""
    try:
        book = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is no notebook: {error}") from None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise ValueError(f"{path} is no notebook: it has no list of cells")
    return book
