"""Where a lesson's questions come from: its solution notebook, and a teacher's own folder laid over
it."""

import json
from pathlib import Path

import roofline_lib


def solution_folders(own=None):
    """The folders with solutions, the first one found first: a teacher's `own`, and this
    repository's."""
    here = [Path.cwd() / "solutions", Path(roofline_lib.__file__).parents[1] / "solutions"]
    ours = [folder for folder in here if folder.is_dir()][:1]
    lessons = {path.name for folder in ours for path in folder.iterdir()}
    for path in Path(own).iterdir() if own else ():
        if (
            path.is_dir()
            and path.name not in lessons
            and (meant := _begun(path.name, sorted(lessons)))
        ):
            raise ValueError(
                f"{path} would be a lesson of its own; give it the full name, {' or '.join(meant)}"
            )
    return [*([Path(own)] if own else []), *ours]


def lesson_name(lesson, folders):
    """The full name of a lesson that may be given by its number or its beginning; a ValueError that
    lists what there is."""
    names = sorted(
        {
            path.name
            for folder in folders
            for path in folder.iterdir()
            if path.is_dir() and any(path.glob("*.ipynb"))
        }
    )
    found = [name for name in names if name == lesson] or _begun(lesson, names)
    if len(found) != 1:
        raise ValueError(f"lesson {lesson!r} is not known; choose one of {', '.join(names)}")
    return found[0]


def _begun(start, names):
    """The names that begin so; where that is a number, those of that number: 1 and 01 are lesson
    01, not lesson 10."""
    if start.isdecimal():
        return [
            name
            for name in names
            if name.partition("_")[0].isdecimal() and int(name.partition("_")[0]) == int(start)
        ]
    return [name for name in names if name.startswith(start)]


def solution(lesson, folders):
    """The lesson's solution as one notebook: `<lesson>.ipynb` from the first folder that has it,
    then the cells of the other notebooks."""
    files = {
        path.name: path
        for folder in reversed(folders)
        for path in sorted((folder / lesson).glob("*.ipynb"))
    }
    main = f"{lesson}.ipynb"
    books = [
        json.loads(files[name].read_text(encoding="utf-8"))
        for name in sorted(files, key=lambda name: (name != main, name))
    ]
    return {**books[0], "cells": [cell for book in books for cell in book["cells"]]}
