"""Who handed in what: a folder of notebooks, read as files and no more."""

import os
import stat
from dataclasses import dataclass

from roofline_lib.grading.roster import one_spelling

LARGEST = 32 << 20  # bytes of a notebook


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the notebook's bytes, or why there is none (`status` and a
    `note`)."""

    student: str
    data: bytes = b""
    status: str = ""
    note: str = ""


def passed_over(folder):
    """Names of files in a class's folder that are no notebooks, a zip file for example."""
    return sorted(
        entry.name
        for entry in _entries(folder)
        if entry.is_file(follow_symlinks=False) and not _is_notebook(entry)
    )


def collect(folder, lesson, roster=()):
    """A Submission for everybody of whom there is a trace: `<student>.ipynb`, `<student>/`, or a
    name on the roster; sorted by name."""
    wanted = "<student>.ipynb or <student>/<anything>.ipynb"
    if not os.path.isdir(folder):
        raise ValueError(f"{folder} is no folder; needs one with {wanted}")
    files, folders, links = {}, {}, {}
    for entry in sorted(_entries(folder), key=lambda entry: entry.name):
        student = one_spelling(entry.name)
        if entry.is_dir(follow_symlinks=False):
            kind = folders
        elif _is_notebook(entry):
            kind, student = files, student[: -len(".ipynb")]
        elif entry.is_symlink():
            kind = links
        else:
            continue
        # two spellings of one name are two students
        kind[entry.name if student in kind else student] = entry.path
    if not files and not folders and not links:
        raise ValueError(f"{folder} holds no notebook; needs {wanted}")
    return [
        _collect_one(student, files.get(student), folders.get(student), student in links, lesson)
        for student in sorted({*files, *folders, *links, *roster})
    ]


def _entries(folder):
    with os.scandir(folder) as entries:
        return [
            entry
            for entry in entries
            if not entry.name.startswith(".") and entry.name != "__MACOSX"
        ]


def _is_notebook(entry):
    return entry.name.lower().endswith(".ipynb")


def _collect_one(student, file, folder, is_link, lesson):
    """One student's Submission, from the notebook of that name or else the folder."""
    try:
        if file:
            note = f"took {os.path.basename(file)}, not the folder of that name" if folder else ""
        elif folder and (notebooks := _notebooks_in(folder)):
            main = f"{lesson}.ipynb"
            chosen = main if main in notebooks else notebooks[0]
            file = os.path.join(folder, chosen)
            note = f"{len(notebooks)} notebooks: took {chosen}" if len(notebooks) > 1 else ""
        elif is_link:
            return Submission(student, b"", "unreadable", "a symbolic link")
        else:
            return Submission(student, b"", "missing", _why_missing(folder))
        data = _read(file)
    except OSError as error:
        return Submission(student, b"", "unreadable", error.strerror or "not to be read")
    if not data.strip():
        return Submission(student, b"", "empty", "an empty file")
    return Submission(student, data, "", note)


def _notebooks_in(folder):
    return sorted(entry.name for entry in _entries(folder) if _is_notebook(entry))


def _why_missing(folder):
    """What to say where there is no notebook: perhaps one lies a level too deep."""
    too_deep = sorted(
        f"{entry.name}/{notebook}"
        for entry in (_entries(folder) if folder else ())
        if entry.is_dir(follow_symlinks=False)
        for notebook in _notebooks_in(entry.path)
    )
    return f"no notebook; one level too deep lies {too_deep[0]}" if too_deep else "no notebook"


def _read(path):
    """The bytes of an ordinary file; OSError for anything else, a symbolic link too, and for what
    is too large."""
    if os.path.islink(path):
        raise OSError(0, "a symbolic link")
    # a pipe must not make us wait, nor a link appear since we looked
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    with open(
        os.open(path, flags),
        "rb",
    ) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(0, "no ordinary file")
        if facts.st_size > LARGEST:
            raise OSError(0, f"larger than {LARGEST >> 20} MB")
        return file.read(LARGEST)
