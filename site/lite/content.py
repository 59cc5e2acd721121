"""What the browser edition's file browser holds: lessons, exercises, model answers and pages in the
repository's own folders, so that every link stays true, below a folder named after the release.

JupyterLite keeps what a learner changes in the browser, under its path, and shows that in place of
what the site has. A release in a folder of its own is never hidden so, and old work stays where it
was.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

import roofline_lib
from roofline_lib.course.copies import learners_text

ROOT = Path(roofline_lib.__file__).resolve().parents[1]
NOTEBOOKS = ("notebooks/[0-9][0-9]_*.ipynb", "exercises/*/*.ipynb", "solutions/*/*.ipynb")
PAGES = ("docs/*.md", "docs/*.csv", "docs/*.png")
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
TIMED = "nbval-ignore-output"
MEASURES = "measuring.measure("
TIMED_OTHERWISE = """\
*In the browser Python has one thread and no BLAS, so what is timed above comes out otherwise.
Recorded on a machine with both:*

```
{printed}
```"""
IS_RECORDED = """\
*Recorded: a page's Python cannot measure the machine under it. The numbers above are those of a
record that ships with the course, not of your machine.*"""
DRAWS_RECORDED = """\
*Recorded: the picture above is drawn from that record, not from your machine.*"""


@cache
def release() -> str:
    """The folder of this release: it changes with any file in it, and with any file's name."""
    found = hashlib.sha256()
    for place, content in served().items():
        found.update(f"{place} {len(content)}\n".encode() + content)
    return f"course-{found.hexdigest()[:8]}"


@cache
def served() -> dict[str, bytes]:
    """What a release holds: the place of each file in it, and the file."""
    notebooks = {source: in_browser(source).encode() for source in sources(NOTEBOOKS)}
    pages = {source: source.read_bytes() for source in sources(PAGES)}
    return {
        source.relative_to(ROOT).as_posix(): content
        for source, content in {**notebooks, **pages}.items()
    }


def sources(patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def write_content(folder: Path) -> None:
    """Fill `folder` with this release."""
    for place, content in served().items():
        path = folder / release() / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def in_browser(source: Path) -> str:
    """The learner's copy of a notebook. Behind each cell that times something it says what such a
    cell printed where Python has a machine to itself, and behind each that measures the machine, or
    draws what was measured, that a record stands in for it."""
    book = json.loads(learners_text(source, {source: source}))
    stored = json.loads(source.read_text(encoding="utf-8"))["cells"]
    book["metadata"]["kernelspec"] = KERNEL
    cells = []
    for cell, with_output in zip(book["cells"], stored, strict=True):
        cells.append(cell)
        if TIMED in cell["metadata"].get("tags", []):
            cells.append(note_behind(with_output))
    return json.dumps(book | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


def note_behind(cell: dict) -> dict:
    """What a page says behind a cell that times, measures, or draws what was measured."""
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"]).rstrip()
    if MEASURES in "".join(cell["source"]):
        note = IS_RECORDED
    elif printed:
        note = TIMED_OTHERWISE.format(printed=printed)
    else:
        note = DRAWS_RECORDED
    return {"cell_type": "markdown", "id": f"{cell['id']}-recorded", "metadata": {}, "source": note}
