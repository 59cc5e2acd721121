"""Write copies of the lessons and exercises for notebook services that have Python and not the
course: Colab, Kaggle and the like.

    python tools/hosted_copies.py FOLDER --wheel ADDRESS --pages ADDRESS

Each copy has a first cell that installs the wheel where the library is missing, and does nothing
where it is there; its code is folded away. `--wheel` is where that cell finds the wheel: an
address, or a path on the machine that runs it. `--pages` is where the course's web pages are: a
service shows a single notebook, so links to other lessons, the glossary and the docs lead there.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from roofline_lib.course.copies import LINK, learners_text

ROOT = Path(__file__).resolve().parents[1]
BOOKS = ("notebooks/[0-9][0-9]_*.ipynb", "exercises/*/*.ipynb")
# what a lesson imports beside the library's own requirements: of the extra `course`, without
# JupyterLab, since the service has a page of its own
BESIDE = ("jsonschema", "threadpoolctl", "tqdm")
# Colab's page works with the ipywidgets that Colab has, so pip may not bring another there; the
# other requirements are there already
INSTALL = """\
# @title Run this first: it brings the course's library {{ display-mode: "form" }}
import sys
from importlib.util import find_spec

if find_spec("roofline_lib") is None:
    as_it_is = "--no-deps" if "google.colab" in sys.modules else ""
    %pip install --quiet --disable-pip-version-check {{as_it_is}} "{wheel}" {beside}"""
# each service folds a cell by its own sign: Colab, Kaggle, Jupyter
FOLDED = {"cellView": "form", "_kg_hide-input": True, "jupyter": {"source_hidden": True}}


def write_copies(folder: Path, wheel: str, pages: str) -> list[Path]:
    """Write the copies below `folder`, in the repository's own folders; gives the files written."""
    written = []
    for pattern in BOOKS:
        for source in sorted(ROOT.glob(pattern)):
            copy = folder / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(hosted_text(source, wheel, pages), encoding="utf-8")
            written.append(copy)
    return written


def hosted_text(source: Path, wheel: str, pages: str) -> str:
    """The text of the copy of this notebook: a learner's, which no outputs give away."""
    book = json.loads(learners_text(source, {source: source}))
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            text = LINK.sub(lambda link: on_pages(link[0], source, pages), "".join(cell["source"]))
            cell["source"] = text.splitlines(keepends=True)
    book["cells"].insert(1, install_cell(wheel))  # below the title
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def on_pages(link: str, source: Path, pages: str) -> str:
    """The address on the web pages of what a link of `source` leads to."""
    place = Path(os.path.relpath(os.path.normpath(source.parent / link), ROOT))
    if place.suffix in (".ipynb", ".md"):
        place = place.with_suffix(".html")
    return f"{pages.rstrip('/')}/{place.as_posix()}"


def install_cell(wheel: str) -> dict:
    """The folded cell that brings the library where it is missing."""
    return {
        "cell_type": "code",
        "id": "bring-the-library",
        "metadata": FOLDED,
        "execution_count": None,
        "outputs": [],
        "source": INSTALL.format(wheel=wheel, beside=" ".join(BESIDE)).splitlines(keepends=True),
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--wheel", required=True, metavar="ADDRESS")
    parser.add_argument("--pages", required=True, metavar="ADDRESS")
    args = parser.parse_args(argv)
    written = write_copies(args.folder, args.wheel, args.pages)
    print(f"{len(written)} notebooks in {args.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
