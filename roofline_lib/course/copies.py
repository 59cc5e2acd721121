"""Copies of the lessons and exercises, which a learner edits while the originals stay as they are.

A copy has no stored outputs, so that a guess can be made before its answer shows. Its links lead
where those of the original lead, and to the copies where there are some.
"""

import json
import os
import re
from itertools import count
from pathlib import Path

# the file that a link of the text leads to; addresses of the web are left out
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")


def bring_copies(root: Path, fresh: bool = False) -> list[Path]:
    """Copy the lessons and exercises under `root` into `root/work`; gives the files written.

    A copy that is there already stays as it is. With `fresh` one that differs from a clean copy is
    kept under the name `old-1_...`, `old-2_...`, and a clean one takes its place.

    Raises OSError where the folder cannot be written to.
    """
    written, places = [], copy_places(root)
    for source, copy in places.items():
        text = learners_text(source, places)
        if copy.exists():
            if not fresh or copy.read_text(encoding="utf-8") == text:
                continue
            copy.rename(_unused_old_name(copy))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8", newline="\n")
        written.append(copy)
    return written


def copy_places(root: Path) -> dict[Path, Path]:
    """Each lesson and exercise under `root` with the place of its copy."""
    work = root / "work"
    lessons = sorted(root.glob("notebooks/*.ipynb"))
    exercises = sorted(root.glob("exercises/*/*.ipynb"))
    return {source: work / source.name for source in lessons} | {
        source: work / source.relative_to(root) for source in exercises
    }


def learners_text(source: Path, places: dict[Path, Path]) -> str:
    """The text of the copy of `source`: without outputs, its links leading from its own place."""
    here = places[source].parent

    def relinked(match):
        target = Path(os.path.normpath(source.parent / match[0]))
        return Path(os.path.relpath(places.get(target, target), here)).as_posix()

    book = json.loads(source.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
        else:
            text = LINK.sub(relinked, "".join(cell["source"]))
            cell["source"] = text.splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def _unused_old_name(copy):
    for number in count(1):
        place = copy.with_name(f"old-{number}_{copy.name}")
        if not place.exists():
            return place
