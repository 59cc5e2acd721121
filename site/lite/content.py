"""What the browser edition's file browser holds: lessons, exercises, model answers and pages in the
repository's own folders, so that every link stays true, below a folder named after the release.

JupyterLite keeps what a learner changes in the browser, under its path, and shows that in place of
what the site has. A release in a folder of its own is never hidden so, and old work stays where it
was.
"""

import hashlib
import json
from pathlib import Path

import roofline_lib
from roofline_lib.course.copies import learners_text

ROOT = Path(roofline_lib.__file__).resolve().parents[1]
NOTEBOOKS = ("notebooks/[0-9][0-9]_*.ipynb", "exercises/*/*.ipynb", "solutions/*/*.ipynb")
PAGES = ("docs/*.md", "docs/*.csv", "docs/*.png")
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
TIMED = "nbval-ignore-output"


def release() -> str:
    """The folder of this release: it changes with any notebook."""
    found = hashlib.sha256()
    for source in sources(NOTEBOOKS):
        found.update(source.read_bytes())
    return f"course-{found.hexdigest()[:8]}"


def sources(patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def write_content(folder: Path) -> None:
    """Fill `folder` with this release."""
    for source in sources(NOTEBOOKS):
        write(folder, source, in_browser(source).encode())
    for source in sources(PAGES):
        write(folder, source, source.read_bytes())


def write(folder: Path, source: Path, content: bytes) -> None:
    place = folder / release() / source.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def in_browser(source: Path) -> str:
    """The learner's copy of a notebook. Behind each cell that measures it says what such a cell
    printed where Python has a machine to itself."""
    book = json.loads(learners_text(source, {source: source}))
    stored = json.loads(source.read_text(encoding="utf-8"))["cells"]
    book["metadata"]["kernelspec"] = KERNEL
    cells = []
    for cell, with_output in zip(book["cells"], stored, strict=True):
        cells.append(cell)
        if TIMED in cell["metadata"].get("tags", []):
            cells += recorded(with_output)
    return json.dumps(book | {"cells": cells}, indent=1, ensure_ascii=False) + "\n"


def recorded(cell: dict) -> list[dict]:
    """The note behind a cell that measures: what it printed when the lesson was written."""
    printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
    if not printed.strip():
        return []
    note = (
        "*In the browser Python has one thread and no BLAS, so what is timed above comes out "
        f"otherwise. Recorded on a machine with both:*\n\n```\n{printed.rstrip()}\n```"
    )
    return [
        {"cell_type": "markdown", "id": f"{cell['id']}-recorded", "metadata": {}, "source": note}
    ]
