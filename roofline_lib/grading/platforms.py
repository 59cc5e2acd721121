"""How learning platforms name what they pack: who handed it in, and when.

The shapes, with what each platform calls them: Canvas, "Download Submissions"
(`doejane_12345_67890_x.ipynb`, `_LATE` after the name where it came late); Moodle, "Download all
submissions" (`Jane Doe_12345_assignsubmission_file_`, a folder or in front of the file's name);
Blackboard, "Assignment File Download" (`Week 1_jdoe_attempt_2026-11-30-09-15-00_x.ipynb`);
Brightspace, "Download" of an assignment (`12345-678 - Jane Doe - Nov 30, 2026 915 AM`, likewise).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

_DATE = r"[A-Z][a-z]{2,8} \d{1,2}, \d{4} \d{3,4} [AP]M"
SHAPES = {
    "Canvas": r"(?P<student>[^_]+)_(?:LATE_)?(?P<id>\d+)_(?P<attempt>\d+)_.+",
    "Moodle": r"(?P<student>[^_].*)_(?P<id>\d+)_assignsubmission_file(?:_.*)?",
    "Blackboard": r".+?_(?P<student>[^_]+)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_.*)?",
    "Brightspace": rf"(?P<id>\d+-\d+) ?- ?(?P<student>.+?) ?- ?(?P<when>{_DATE})(?: ?- ?.*)?",
}
# a text typed on the platform, which stands beside the files
_TYPED = {"Moodle": r"[^_].*_\d+_assignsubmission_onlinetext(?:_.*)?"}
_CLOCKS = ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p", "%B %d, %Y %I%M %p")


@dataclass(frozen=True)
class HandedIn:
    """What the name of one file or folder says. `when` is the time in it, `datetime.min` where it
    has none, and `attempt` the number that grows with each file handed in, 0 where there is
    none. `called` is the student without the number that tells two of one name apart."""

    student: str
    when: datetime
    attempt: int
    called: str


@dataclass(frozen=True)
class Packed:
    """What a learning platform packed: its name, what each name of its shape says, and the names
    of texts that were typed there, which hold no notebook."""

    platform: str = ""
    names: Mapping[str, HandedIn] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()


def read_names(names: Iterable[str]) -> Packed:
    """What these names, without `.ipynb`, say: those of the platform whose shape most of them
    have. A file that came by mail lies beside them, and says nothing.

    Two students of one name are told apart by the platform's number for each.
    """
    names = list(names)
    for platform, shape in SHAPES.items():
        typed = {
            name for name in names if re.fullmatch(_TYPED.get(platform, r"(?!)"), name, re.DOTALL)
        }
        others = [name for name in names if name not in typed]
        found = [re.fullmatch(shape, name, re.DOTALL) for name in others]
        read = {match[0]: match.groupdict() for match in found if match}
        if 2 * len(read) > len(others):
            return Packed(platform, _told_apart(read), frozenset(typed))
    return Packed()


def _told_apart(read: dict[str, dict[str, str]]) -> dict[str, HandedIn]:
    numbers = defaultdict(set)
    for parts in read.values():
        numbers[parts["student"]].add(parts.get("id"))
    return {
        name: HandedIn(
            parts["student"] if len(numbers[parts["student"]]) == 1 else _numbered(parts),
            _time(parts.get("when", "")),
            int(parts.get("attempt", 0)),
            parts["student"],
        )
        for name, parts in read.items()
    }


def _numbered(parts: dict[str, str]) -> str:
    return f"{parts['student']} {parts['id']}"


def _time(text: str) -> datetime:
    if text and text[0].isalpha():  # 915 AM
        text = re.sub(r" (\d{3} [AP]M)$", r" 0\1", text)
    for clock in _CLOCKS:
        try:
            return datetime.strptime(text, clock)
        except ValueError:
            pass
    return datetime.min
