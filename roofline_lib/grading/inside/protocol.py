"""What the grader and its sandbox say to each other: each message is a class, and one line of JSON
on its way. Used on both sides, stands alone.

The grader sends `Start`, with the notebook's bytes behind it, and hears `Ready` or `Unreadable`.
Then each `Task` gets a `Reply`. The lines in a reply were written by the process in which the
student's code ran, so they may be anything: `read_facts` and `read_answer` take them apart.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Complex, Real

DEEPEST = 16  # lists in lists in a student's line, at most; a value goes 9 deep (json_value)
WHOLE_NOTEBOOK = 3  # times the CPU seconds, where the whole notebook is executed


@dataclass(frozen=True)
class Start:
    """The first line to a sandbox; `size` bytes of notebook follow it."""

    size: int
    uid: int  # the user to run as; 0 in an unsafe draft, which runs as whoever started it
    processor: int | None  # the only one to run on, where one is given


@dataclass(frozen=True)
class Ready:
    """The notebook has been read, and tasks may come: one only where there is no fork."""

    one_task: bool


@dataclass(frozen=True)
class Unreadable:
    """There will be no answers, for what came is no notebook."""

    why: str


@dataclass(frozen=True)
class Task:
    """One question: call the function `name` with each of `inputs`."""

    name: str
    inputs: list  # JSON texts, each a list of arguments
    whole: bool  # execute the whole notebook, not only what the function leans on
    seconds: int  # of CPU time, times WHOLE_NOTEBOOK for a whole notebook
    wall: float  # seconds by the clock, at most
    prelude: str  # the lesson's own imports, executed first


class Ended(StrEnum):
    """How the process that answered a task ended."""

    DONE = "done"
    OUT_OF_TIME = "out of time"
    TOO_MUCH_OUTPUT = "too much output"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Reply:
    """What came of a task: the lines of the student's process (`Facts`, then a `Returned` or a
    `Raised` for each input) and how it ended."""

    lines: list
    ended: Ended


@dataclass(frozen=True)
class Facts:
    """What a student's process says of the notebook before it answers."""

    skipped: dict | None  # number of a cell that is not Python: why; None in a forged line
    untouched: bool  # a stub of the function was left as it was handed out
    defined: bool  # there is a function of the name asked for
    kind: str  # what else has that name, "a number" for example; "" for nothing
    error: str  # what the notebook's first failing statement raised; "" for nothing


@dataclass(frozen=True)
class Returned:
    """The function returned `value`, as JSON has it."""

    value: object


@dataclass(frozen=True)
class Raised:
    """The function raised an exception."""

    error: str


def to_line(message):
    """A message, and any messages that are parts of it, as one line of JSON."""
    return json.dumps(message, default=_tagged).encode() + b"\n"


def _tagged(message):
    return {"message": type(message).__name__, **vars(message)}


def from_line(line, *kinds):
    """The message in a line that the other side's own code wrote. It, and the messages that are
    parts of it, are of the classes `kinds`; ValueError for any other line."""
    classes = {kind.__name__: kind for kind in kinds}

    def build(record):
        if "message" not in record:
            return record
        fields = dict(record)
        return classes[fields.pop("message")](**fields)

    try:
        message = json.loads(line, object_hook=build)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no message of {', '.join(classes)}") from error
    if not isinstance(message, kinds):
        raise ValueError(f"no message of {', '.join(classes)}")
    return message


def read_facts(line):
    """The Facts in the first line of a student's process, whatever that line is."""
    record = _record(line)
    skipped = record.get("skipped")
    return Facts(
        skipped=skipped if _is_of_texts(skipped) else None,
        untouched=bool(record.get("untouched")),
        defined=record.get("defined") is not False,
        kind=_text(record.get("kind")),
        error=_text(record.get("error")),
    )


def read_answer(line):
    """The Returned or Raised in a later line of a student's process, whatever that line is."""
    record = _record(line)
    if "error" in record:
        return Raised(str(record["error"]))
    return Returned(record.get("value"))


def _record(line):
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or _is_deeper(record, DEEPEST):
        return {"error": "something that is no answer"}
    return record


def _is_deeper(value, most):
    """Whether lists and dicts are nested more than so deep. By levels, not by recursion: json reads
    deeper nests than Python can walk."""
    level = [value]
    for _ in range(most + 1):
        inner = [one.values() if isinstance(one, dict) else one for one in level if _nests(one)]
        if not inner:
            return False
        level = [part for parts in inner for part in parts]
    return True


def _nests(value):
    return isinstance(value, dict | list)


def _is_of_texts(skipped):
    return isinstance(skipped, dict) and all(isinstance(why, str) for why in skipped.values())


def _text(value):
    return str(value) if value else ""


def json_value(value, depth=0):
    """A returned value as JSON has it: a number, a text, or a list of them, which any sequence will
    do for (a tuple, an array, a deque). What is none of these becomes {"odd": its type}; `...`
    becomes None."""
    if value is ...:
        return None
    if hasattr(type(value), "tolist"):  # arrays, memoryviews, columns of a table
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        value = list(value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Complex) and not isinstance(value, Real):
        return float(value.real) if value.imag == 0 else {"odd": "complex"}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, list) and depth < 8:
        return [json_value(item, depth + 1) for item in value]
    return float(value) if hasattr(type(value), "__float__") else {"odd": type(value).__name__[:60]}
