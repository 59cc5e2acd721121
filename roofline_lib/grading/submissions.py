"""Who handed in what: a folder of notebooks, read as files and no more."""

import hashlib
import os
import re
import stat
from dataclasses import dataclass

from roofline_lib.grading.platforms import read_names
from roofline_lib.grading.roster import one_spelling

LARGEST = 32 << 20  # bytes of a notebook
MOST_READ = 20  # notebooks of one student, to see which is the lesson's


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the notebook's bytes, or why there is none (`status` and a
    `note`)."""

    student: str
    data: bytes = b""
    status: str = ""
    note: str = ""


@dataclass(frozen=True)
class Stored:
    """A notebook that lies in a class's folder. Its bytes are read when it is its turn, so that a
    class of large ones is never in memory at once; `digest` is what they were when it was found."""

    student: str
    path: str
    digest: str
    note: str = ""
    status: str = ""

    @property
    def data(self) -> bytes:
        """The notebook's bytes as they are now."""
        return _read(self.path)

    def taken(self) -> Submission:
        """What is graded; where it has changed since it was found, why there is nothing."""
        try:
            data = self.data
        except OSError as error:
            return Submission(self.student, b"", "error", f"gone meanwhile: {error.strerror}")
        if _digest(data) != self.digest:
            return Submission(self.student, b"", "error", "changed while the class was graded")
        return Submission(self.student, data, "", self.note)


def passed_over(folder):
    """Names of files in a class's folder that are no notebooks, a zip file for example."""
    return sorted(
        entry.name
        for entry in _entries(folder)
        if entry.is_file(follow_symlinks=False) and not _is_notebook(entry)
    )


@dataclass(frozen=True)
class _Trace:
    """One file or folder of a class's folder."""

    name: str
    stem: str  # in one spelling, without .ipynb
    path: str
    kind: str  # "file", "folder" or "link"


def collect(folder, lesson, roster=(), functions=()):
    """A Stored notebook, or a Submission without one, for everybody of whom there is a trace:
    `<student>.ipynb`, `<student>/`, a name as a learning platform makes it (see platforms.py), or a
    name on the roster; sorted by name. Of several notebooks in a folder that one counts which
    defines most of the lesson's `functions`."""
    wanted = "<student>.ipynb or <student>/<anything>.ipynb"
    if not os.path.isdir(folder):
        raise ValueError(f"{folder} is no folder; needs one with {wanted}")
    traces = _traces(folder)
    if not traces:
        raise ValueError(f"{folder} holds no notebook; needs {wanted}")
    packed = read_names(trace.stem for trace in traces)
    students = _by_student(traces, packed)
    apart = set(namesakes(packed))
    return [
        _collect_one(student, students.get(student, []), lesson, functions)
        for student in sorted({*students, *(set(roster) - (apart - set(students)))})
    ]


def packed_by_platform(folder):
    """(what a learning platform packed into a class's folder, the names there that are not of its
    shape); nothing where none did."""
    traces = _traces(folder)
    packed = read_names(trace.stem for trace in traces)
    known = {*packed.names, *packed.typed}
    strange = [trace.name for trace in traces if packed.platform and trace.stem not in known]
    return packed, strange


def one_folder(folder):
    """The name of the one folder in a class's folder, where it holds several notebooks or folders:
    a class that was unpacked a level too deep, perhaps. "" where there is more."""
    traces = _traces(folder)
    if [trace.kind for trace in traces] != ["folder"]:
        return ""
    inside = [entry for entry in _entries(traces[0].path) if _is_notebook(entry) or entry.is_dir()]
    return traces[0].name if len(inside) > 1 else ""


def namesakes(packed):
    """{a name: the students that have it, told apart by their numbers}."""
    several = {}
    for one in packed.names.values():
        if one.student != one.called:
            several.setdefault(one.called, set()).add(one.student)
    return several


def _traces(folder):
    return sorted(filter(None, map(_trace, _entries(folder))), key=lambda trace: trace.name)


def _trace(entry):
    stem = one_spelling(entry.name)
    if entry.is_dir(follow_symlinks=False):
        return _Trace(entry.name, stem, entry.path, "folder")
    if _is_notebook(entry):
        return _Trace(entry.name, stem[: -len(".ipynb")], entry.path, "file")
    return _Trace(entry.name, stem, entry.path, "link") if entry.is_symlink() else None


def _by_student(traces, packed):
    """{student: the traces of that student, the one that counts first}."""
    said, found = packed.names, {}
    named = [trace for trace in traces if trace.stem in said]
    for trace in sorted(
        named, key=lambda one: (said[one.stem].when, said[one.stem].attempt), reverse=True
    ):
        found.setdefault(said[trace.stem].student, []).append(trace)
    traces = [one for one in traces if one.stem not in said and one.stem not in packed.typed]
    for trace in sorted(traces, key=lambda one: ("file", "folder", "link").index(one.kind)):
        student = trace.stem
        # two spellings of one name are two students
        while any(other.kind == trace.kind for other in found.get(student, ())):
            student = trace.name if student == trace.stem else f"{student} (again)"
        found.setdefault(student, []).append(trace)
    return found


def _entries(folder):
    with os.scandir(folder) as entries:
        return [
            entry
            for entry in entries
            if not entry.name.startswith(".") and entry.name != "__MACOSX"
        ]


def _is_notebook(entry):
    return entry.name.lower().endswith(".ipynb")


def _collect_one(student, traces, lesson, functions):
    """One student's notebook, from the first of these traces that holds one."""
    try:
        notebooks = [one for trace in traces for one in _notebooks_of(trace, lesson, functions)]
        if not notebooks:
            folder = next((trace.path for trace in traces if trace.kind == "folder"), None)
            if not folder and traces:
                return Submission(student, b"", "unreadable", "a symbolic link")
            return Submission(student, b"", "missing", _why_missing(folder))
        data = _read(notebooks[0])
    except OSError as error:
        return Submission(student, b"", "unreadable", error.strerror or "not to be read")
    if not data.strip():
        return Submission(student, b"", "empty", "an empty file")
    return Stored(student, notebooks[0], _digest(data), _which_was_taken(traces, notebooks))


def _notebooks_of(trace, lesson, functions):
    """The paths of the notebooks in a trace, the one that counts first: which defines most of the
    lesson's functions; of several such the one of the lesson's name, or else the last by name, v10
    behind v2."""
    if trace.kind != "folder":
        return [trace.path] if trace.kind == "file" else []
    paths = [os.path.join(trace.path, name) for name in _notebooks_in(trace.path)]
    if len(paths) < 2:
        return paths
    own = f"{lesson}.ipynb"
    if len(paths) > MOST_READ:
        functions = ()

    def worth(path):
        return _defined(path, functions), os.path.basename(path) == own, _natural(path)

    return sorted(paths, key=worth, reverse=True)


def _defined(path, functions):
    """How many of these functions a notebook seems to define."""
    if not functions:
        return 0
    try:
        data = _read(path)
    except OSError:
        return 0
    return sum(
        bool(re.search(rf"def\s+{name}\s*\(|\b{name}\s*=[^=]".encode(), data))
        for name in map(re.escape, functions)
    )


def _natural(path):
    """A key that sorts numbers in names by their size."""
    parts = re.split(r"(\d+)", os.path.basename(path).removesuffix(".ipynb"))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _which_was_taken(traces, notebooks):
    taken = os.path.basename(notebooks[0])
    if len(traces) == 1:
        return f"{len(notebooks)} notebooks: took {taken}" if len(notebooks) > 1 else ""
    if [trace.kind for trace in traces] == ["file", "folder"]:
        return f"took {taken}, not the folder of that name"
    return f"handed in {len(traces)} times: took {traces[0].name}"


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


def _digest(data):
    return hashlib.sha256(data).hexdigest()


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
