"""From submissions to marks: who handed in what, one student's answers held against the solution's,
points and what to say of them."""

import json
import math
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from roofline_lib.grading.inside.serve import DRAWS, WHOLE
from roofline_lib.grading.lists import normal
from roofline_lib.grading.sandbox import Broken, Sandbox

LARGEST = 32 << 20  # bytes of a notebook


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the notebook's bytes, or why there is none (`status` and a
    `note`)."""

    student: str
    data: bytes = b""
    status: str = ""
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """One question of one student: a right answer or not, a word for the CSV and a sentence for the
    student."""

    right: bool
    word: str
    sentence: str = ""


@dataclass(frozen=True)
class Marks:
    """One student's outcomes by question, with the status and note of the submission as a whole."""

    student: str
    status: str
    note: str = ""
    outcomes: dict = field(default_factory=dict)


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
    if not os.path.isdir(folder):
        raise ValueError(
            f"{folder} is no folder; needs one with <student>.ipynb or <student>/<anything>.ipynb"
        )
    files, folders, strays = {}, {}, {}
    for entry in sorted(_entries(folder), key=lambda entry: entry.name):
        kind, student = files, normal(entry.name)
        if entry.is_dir(follow_symlinks=False):
            kind = folders
        elif _is_notebook(entry):
            student = student[:-6]
        elif entry.is_symlink():
            kind = strays
        else:
            continue
        # two spellings of one name are two students
        kind[entry.name if student in kind else student] = entry.path
    if not files and not folders and not strays:
        raise ValueError(
            f"{folder} holds no notebook; needs <student>.ipynb or <student>/<anything>.ipynb"
        )
    return [
        _collect_one(student, files.get(student), folders.get(student), student in strays, lesson)
        for student in sorted({*files, *folders, *strays, *roster})
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


def _collect_one(student, file, folder, stray, lesson):
    note = f"took {os.path.basename(file)}, not the folder of that name" if file and folder else ""
    try:
        found = (
            sorted(entry.name for entry in _entries(folder) if _is_notebook(entry))
            if folder and not file
            else []
        )
        if found:
            chosen = f"{lesson}.ipynb" if f"{lesson}.ipynb" in found else found[0]
            file, note = (
                Path(folder) / chosen,
                f"{len(found)} notebooks: took {chosen}" if len(found) > 1 else "",
            )
        if file is None:
            deep = (
                f"no notebook; one level too deep lies {deeper[0]}"
                if folder and (deeper := _deeper(folder))
                else "no notebook"
            )
            return Submission(
                student, b"", *(("unreadable", "a symbolic link") if stray else ("missing", deep))
            )
        data = _read(file)
    except OSError as error:
        return Submission(student, b"", "unreadable", error.strerror or "not to be read")
    if not data.strip():
        return Submission(student, b"", "empty", "an empty file")
    return Submission(student, data, "", note)


def _deeper(folder):
    """The notebooks in the folders of a student's folder, as they would be written from there."""
    inside = [entry for entry in _entries(folder) if entry.is_dir(follow_symlinks=False)]
    return sorted(
        f"{entry.name}/{one.name}"
        for entry in inside
        for one in _entries(entry.path)
        if _is_notebook(one)
    )


def _read(path):
    """The bytes of an ordinary file; OSError for anything else, a symbolic link too, and for what
    is too large."""
    if os.path.islink(path):
        raise OSError(0, "a symbolic link")
    with open(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)),
        "rb",
    ) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(0, "no ordinary file")
        if facts.st_size > LARGEST:
            raise OSError(0, f"larger than {LARGEST >> 20} MB")
        return file.read(LARGEST)


def same(answer, reference, tolerance):
    """Whether an answer, as plain JSON, is the reference. One number may stand in lists, [[3.5]];
    NaN is never right."""
    if isinstance(reference, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(reference)
            and all(same(a, r, tolerance) for a, r in zip(answer, reference, strict=True))
        )
    while isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if isinstance(reference, str):
        return isinstance(answer, str) and answer.strip().casefold() == reference.casefold()
    if not isinstance(answer, int | float):
        return False
    try:
        return math.isclose(answer, reference, rel_tol=tolerance, abs_tol=0 if reference else 1e-12)
    except OverflowError:  # a whole number that no float holds
        return answer == reference


def grade_one(submission, lesson, table, seconds, draft=False):  # noqa: C901
    """The Marks of a submission. `lesson` is what `references` gives, `table` this student's drawn
    inputs and the solution's answers.

    Runs anywhere that has this package and bubblewrap; takes and gives plain records, so any
    executor can carry it.
    """
    if submission.status:
        return Marks(submission.student, submission.status, submission.note)
    running, outcomes = {}, {}

    def ask(question, whole, wall):
        without, task = (
            tuple(question["without"]),
            {"name": question["name"], "inputs": table[question["name"]]["inputs"]},
        )
        task |= {"whole": whole, "seconds": seconds, "wall": wall, "prelude": lesson["prelude"]}
        if without not in running:
            running[without] = Sandbox(submission.data, without=without, draft=draft)
        sandbox = running[without]
        try:
            if "problem" in sandbox.hello:
                raise ValueError(sandbox.hello["problem"])
            reply = sandbox.ask(task, seconds=3 * seconds * (WHOLE if whole else 1))
        except Broken:  # that question's own doing; the next one starts a new sandbox
            reply = {"lines": [], "ended": "stopped"}
        if reply["ended"] == "stopped" or sandbox.hello.get("once"):
            running.pop(without).close()
        return judge(question, table[question["name"]], reply)

    try:
        for question in lesson["questions"]:
            if not question.get("by_hand"):
                begun, wall = time.monotonic(), 2 * seconds + 3
                outcome = ask(question, False, wall)
                left = wall - (time.monotonic() - begun)  # both tries together have the time of one
                if outcome.word == "error" and (
                    second := ask(question, True, max(1, left))
                ).word in ("right", "wrong", "not answered"):
                    outcome = second
                outcomes[question["name"]] = outcome
    except ValueError as error:
        return Marks(submission.student, "unreadable", str(error))
    except (Broken, OSError) as error:
        return Marks(
            submission.student,
            "error",
            f"the grader itself failed ({type(error).__name__}: {error})",
        )
    finally:
        for sandbox in running.values():
            sandbox.close()
    words = [
        f"{name}: {outcome.word}"
        for name, outcome in outcomes.items()
        if outcome.word not in ("right", "wrong", "not answered")
    ]
    return Marks(
        submission.student,
        "draft" if draft else "graded",
        "; ".join(filter(None, [submission.note, *words])),
        outcomes,
    )


def judge(question, key, reply):
    """The Outcome of one question: what the sandbox replied, held against the solution's answers on
    the same inputs."""
    wanted = len(key["inputs"])
    facts, *answers = [_record(line) for line in reply["lines"][: wanted + 1]] or [{}]
    skipped = facts.get("skipped")
    answers = answers if isinstance(skipped, dict) else []
    ended = {
        "out of time": "It ran out of time",
        "too much output": "It gave back too much",
        "stopped": "It ended the process it ran in",
        "done": "It ended early",
    }[reply["ended"]]
    unread = (
        "; ".join(f"cell {number} ({why})" for number, why in skipped.items())
        if isinstance(skipped, dict)
        else ""
    )
    unread = f" Not read as Python: {unread}."[:400] if unread else ""
    where = (
        f"at {called(question['name'], key['inputs'][len(answers)])}"
        if 0 < len(answers) < wanted
        else "before its first answer"
    )
    if facts.get("defined") is False:
        if facts.get("untouched") and not facts.get("error"):
            return Outcome(False, "not answered", "Not answered.")
        why = f", because of {facts['error']}"[:400] if facts.get("error") else ""
        told = (
            f"{question['name']} is {facts['is']}, not a function"
            if facts.get("is")
            else "There is no function of this name"
        )
        return Outcome(False, "error", f"{told[:200]}{why}.{unread}")
    for text, record in zip(key["inputs"], answers, strict=False):
        if "error" in record:
            return Outcome(
                False, "error", f"{called(question['name'], text)} raised {record['error']}"[:400]
            )
    if len(answers) < wanted:
        return Outcome(
            False, reply["ended"] if reply["ended"] != "done" else "stopped", f"{ended}, {where}."
        )
    values = [record.get("value") for record in answers]
    if all(value is None for value in values):
        return Outcome(False, "not answered", "Not answered.")
    right = [
        same(value, reference, question["tolerance"])
        for value, reference in zip(values, key["answers"], strict=True)
    ]
    if all(right):
        return Outcome(True, "right", f"Right on all {wanted} inputs.")
    wrong = [i for i, is_right in enumerate(right) if not is_right]
    # a drawn input says more than an edge case
    first = next((i for i in wrong if i >= wanted - DRAWS), wrong[0])
    sentence = f"Right on {sum(right)} of {wanted} inputs."
    # of two possible answers, one's own would give away the other
    if not isinstance(key["answers"][first], bool | str):
        value = values[first]
        given = f"something of type {value.get('odd')}" if isinstance(value, dict) else repr(value)
        given = given if len(given) < 80 else given[:80] + "..."
        sentence += f" For example, {called(question['name'], key['inputs'][first])} gave {given}."
    return Outcome(False, "wrong", sentence)


def called(name, inputs):
    """A call as a student would write it: `product_flops(2, 3, 4)`."""
    return f"{name}({', '.join(map(repr, json.loads(inputs)))})"


def _record(line):
    """One line of a student's process, which may be anything, as a dict."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    return record if isinstance(record, dict) else {"error": "something that is no answer"}


def references(data, students, seed, draft=False):
    """What a solution notebook asks, its imports, and for each student the inputs drawn and the
    solution's answers to them."""
    with Sandbox(data, reference=True, draft=draft) as sandbox:
        lesson = sandbox.hello
        return lesson, {
            student: sandbox.ask({"seed": seed, "student": student}, seconds=60)["drawn"]
            for student in students
        }
