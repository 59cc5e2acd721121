"""Writes what Sphinx reads: the course's own pages in the repository's own folders, so that every
relative link stays true, with what a page needs and a notebook does not have.

Lessons are taken with the outputs that they store; nothing is run. Used by build.py.
"""

import base64
import copy
import json
import re
import shutil
import struct
from html import escape
from pathlib import Path

from api import api_page
from content import release
from front import front_page

from roofline_lib.course.lessons import lessons
from roofline_lib.questions import find_question

ROOT = Path(__file__).resolve().parents[1]
# copied as they are, beside all of docs/
OTHERS = ["CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"]
HIDDEN_TESTS = re.compile(r"### BEGIN HIDDEN TESTS\n.*?### END HIDDEN TESTS\n?", re.S)
MARKS = re.compile(r"^ *### (?:BEGIN|END) SOLUTION *\n?", re.M)
# what a page's reader cannot do before opening an answer
TO_RUN = re.compile(r"(?<=<summary>)Run the cells?, then open(?=</summary>)")
GUESS_FIRST = "Guess, then see what comes out"
UNANSWERED = re.compile(r'rl\.check\("([^"]+)", \.\.\.\)')


def stage(folder: Path) -> None:
    """Fill `folder`, which is emptied before, with the sources of the site."""
    shutil.rmtree(folder, ignore_errors=True)
    pictures = folder / "_pictures" / "pictures"
    pictures.mkdir(parents=True)
    for kind in ("notebooks", "exercises", "solutions"):
        for source in sorted((ROOT / kind).glob("**/[0-9][0-9]_*.ipynb")):
            place = source.relative_to(ROOT)
            notebook = json.loads(source.read_text(encoding="utf-8"))
            write(folder / place, json.dumps(page_of(notebook, place, pictures)))
    shutil.copytree(ROOT / "docs", folder / "docs")
    for name in OTHERS:
        shutil.copy(ROOT / name, folder / name)
    write(folder / "docs" / "api.md", api_page())
    listed = lessons()
    browser = browser_address(Path("notebooks") / listed[0].file)
    write(folder / "index.md", front_page(listed, front_figure(pictures), browser))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def browser_address(place: Path) -> str:
    """Where the browser edition opens this notebook, seen from the site's root."""
    return f"lite/lab/index.html?path={release()}/{place.as_posix()}"


def page_of(notebook: dict, place: Path, pictures: Path) -> dict:
    """The notebook at `place` in the repository as a page of the site; its explorers' pictures are
    written into `pictures`."""
    page = copy.deepcopy(notebook)
    up = "../" * (len(place.parts) - 1)
    answers = answering(page["cells"])
    for cell in page["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = TO_RUN.sub("See what the cell prints, then open", text_of(cell))
        if cell["cell_type"] == "code":
            cell["metadata"] = shown_as(cell, cell["id"] in answers)
            cell["outputs"] = asked(cell) or cell["outputs"]
            for output in cell["outputs"]:
                if is_explorer(output):
                    name = f"{place.stem[:2]}-{cell['id']}"
                    run = up + browser_address(place)
                    output["data"]["text/html"] = explorer_figure(output, name, pictures, up, run)
                    del output["data"]["image/png"]
    if place.parts[0] == "solutions":
        page["cells"] = [as_answer(cell) for cell in page["cells"]]
        page["metadata"] |= {"orphan": True, "nosearch": True}
    else:
        page["cells"].insert(1, run_here(place, up))
    return page


def as_answer(cell: dict) -> dict:
    """A cell of a solution as who learns alone reads it: without the grader's tests and marks."""
    source = HIDDEN_TESTS.sub("", text_of(cell))
    source = MARKS.sub("", source)
    return cell | {"source": source.replace("# Exercises ", "# Model answers ", 1)}


def text_of(cell: dict) -> str:
    return "".join(cell["source"])


def answering(cells: list[dict]) -> set[str]:
    """The ids of the cells whose outputs answer a guess: each that holds one against its answer,
    and what stands between it and the text that tells the answer."""
    found, guessed = set(), False
    for cell in cells:
        guessed = cell["cell_type"] == "code" and (guessed or "rl.guessed(" in text_of(cell))
        if guessed and cell["outputs"]:
            found.add(cell["id"])
    return found


def shown_as(cell: dict, answers: bool) -> dict:
    """A code cell's metadata as myst-nb reads them: what its picture shows, and what is folded.
    Folded is what the notebook folds, and what answers a guess: a page has it before anybody ran
    anything."""
    metadata, tags, options = cell["metadata"], [], {}
    if "alt" in metadata:
        options["image"] = {"alt": metadata["alt"], "classes": "card"}
    folded = metadata.get("jupyter", {}).get("source_hidden")
    if answers:
        tags.append("hide-cell" if folded else "hide-output")
        options["code_prompt_show"] = GUESS_FIRST
    elif folded:
        tags.append("hide-input")
    return {"mystnb": options, "tags": tags}


def asked(cell: dict) -> list[dict]:
    """What a check that nobody has answered says when it is run, the question in words, as a
    paragraph that a narrow page can break."""
    found = UNANSWERED.search(text_of(cell))
    if not found:
        return []
    said = f'<p class="asked">{escape(find_question(found[1]).judge().message)}</p>'
    return [{"output_type": "display_data", "metadata": {}, "data": {"text/html": said}}]


def run_here(place: Path, up: str) -> dict:
    """The line below a page's title: where to run what the page shows."""
    link = f'<a href="{up}{browser_address(place)}">Run this page in your browser</a>'
    text = f'<p class="run-here">{link}: nothing to install, the first start takes a while.</p>'
    return {"cell_type": "markdown", "id": "run-here", "metadata": {}, "source": text}


def is_explorer(output: dict) -> bool:
    data = output.get("data", {})
    return "image/png" in data and "Explorer: " in "".join(data["text/plain"])[:30]


def explorer_figure(output: dict, name: str, pictures: Path, up: str, run: str) -> str:
    """An explorer's still picture with its sentence. `data-scenes` says where the scenes lie with
    which a script makes it live, `data-run` where the whole of it runs; without script or scenes
    the picture stays."""
    picture = base64.b64decode("".join(output["data"]["image/png"]))
    (pictures / f"{name}.png").write_bytes(picture)
    width, height = struct.unpack(">II", picture[16:24])
    sentence = " ".join("".join(output["data"]["text/plain"]).split()).partition("Explorer: ")[2]
    return (
        f'<figure class="explorer" data-scenes="{up}_static/scenes/{name}" '
        f'data-run="{run}">'
        f'<img class="card" src="{up}_static/pictures/{name}.png" width="{width}" '
        f'height="{height}" alt="{escape(sentence)}"><figcaption>{escape(sentence)}</figcaption>'
        "</figure>"
    )


def front_figure(pictures: Path) -> str:
    """The first explorer that a learner meets, lesson 0's, for the front page."""
    source = sorted((ROOT / "notebooks").glob("00_*.ipynb"))[0]
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            if is_explorer(output):
                place = source.relative_to(ROOT)
                name, run = f"00-{cell['id']}", browser_address(place)
                return explorer_figure(output, name, pictures, "", run)
    raise ValueError(f"{source.name} stores no explorer's picture for the front page")
