"""Copies of the lessons and exercises, which a learner edits while the originals stay as they are.

A copy has no stored outputs, so that a guess can be made before its answer shows. Its links lead
where those of the original lead, and to the copies where there are some.
"""

import json
import os
import re
from collections.abc import Collection
from itertools import count
from pathlib import Path

# the file that a link of the text leads to; addresses of the web are left out
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")


def bring_copies(root: Path, target: Path, renew: Collection[str] = ()) -> list[Path]:
    """Copy the lessons and exercises under `root` into the folder `target`; gives the files
    written. Where `target` lies outside `root`, what they link to comes along: docs/, solutions/.

    A copy that is there already stays as it is. Those of the lessons whose stems `renew` holds are
    brought anew: one that differs from a clean copy is kept under the name `old-1_...`,
    `old-2_...`, and a clean one takes its place.

    Raises OSError where the folder cannot be written to.
    """
    written, places = [], copy_places(root, target)
    for source, copy in places.items():
        content = _content(source, places)
        if copy.exists():
            if source.stem not in renew or copy.read_bytes() == content:
                continue
            copy.rename(_unused_old_name(copy))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        written.append(copy)
    return written


def copy_places(root: Path, target: Path) -> dict[Path, Path]:
    """Each file under `root` that is copied, with the place of its copy. An exercise has a name of
    its own, by which one tells its tab from that of its lesson."""
    places = {lesson: target / lesson.name for lesson in sorted(root.glob("notebooks/*.ipynb"))}
    places |= _with_names_of_their_own(root, target, "exercises")
    if not target.is_relative_to(root):
        places |= _with_names_of_their_own(root, target, "solutions")
        pages = sorted(path for path in root.glob("docs/*") if path.is_file())
        places |= {page: target / "docs" / page.name for page in pages}
    return places


def _with_names_of_their_own(root: Path, target: Path, room: str) -> dict[Path, Path]:
    notebooks = sorted(root.glob(f"{room}/*/*.ipynb"))
    return {
        notebook: target / notebook.parent.relative_to(root) / f"{room}_{notebook.name}"
        for notebook in notebooks
    }


def _content(source: Path, places: dict[Path, Path]) -> bytes:
    if source.suffix == ".ipynb":
        return learners_text(source, places).encode()
    return source.read_bytes()


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


def _unused_old_name(copy: Path) -> Path:
    numbered = (copy.with_name(f"old-{number}_{copy.name}") for number in count(1))
    return next(place for place in numbered if not place.exists())
