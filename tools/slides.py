"""Make a lecture of each lesson: say in the notebooks which cell is a slide, and write the plan of
lectures.

    python tools/slides.py                         all lessons, and docs/lectures.md
    python tools/slides.py notebooks/03*.ipynb     these, and docs/lectures.md

Jupyter keeps this in a cell's metadata ("slideshow"); nbconvert and JupyterLab's slideshow views
read it. What is what follows from the cell alone, so that nobody keeps it by hand:

* a heading `##` begins a slide, a heading `###` and any other text one below it
* a text that is folded in the lesson comes one step later, with what runs before it
* imports, cells that wait for a guess, hidden helpers and optional remarks are no slides
* a picture and an explorer have a slide of their own; other code appears step by step
"""

import argparse
import json
import re
from pathlib import Path

from roofline_lib.checks.slips import slip_texts
from roofline_lib.course.lessons import Lesson, lessons
from roofline_lib.questions import find_question

ROOT = Path(__file__).resolve().parents[1]
PLAN = ROOT / "docs" / "lectures.md"
HEAD = """# Plan of lectures

One lesson a lecture; `python tools/slides.py` writes this page from the lessons. The minutes are
what a student needs who reads and answers alone. [Teaching with this course](teaching.md) says how
to show the slides.
"""


def slide_type(cell: dict) -> str:
    """`slide`, `subslide`, `fragment` or `skip`, as Jupyter's slideshow calls them."""
    text, is_code = "".join(cell["source"]), cell["cell_type"] == "code"
    return _of_code(cell, text) if is_code else _of_text(text)


def _of_text(text: str) -> str:
    if re.match(r"##? ", text):
        return "slide"
    if text.startswith("<details>"):
        return "fragment"
    return "skip" if text.startswith("> **Optional.**") else "subslide"


def _of_code(cell: dict, text: str) -> str:
    if cell["id"] == "setup" or re.match(r"guess\w* = \.\.\.", text):
        return "skip"
    if any("image/png" in output.get("data", {}) for output in cell["outputs"]):
        return "subslide"
    is_hidden = "source_hidden" in cell["metadata"].get("jupyter", {})
    return "skip" if is_hidden and not cell["outputs"] else "fragment"


def with_slides(text: str) -> str:
    """A notebook's JSON text with the slideshow metadata of every cell."""
    book = json.loads(text)
    for cell in book["cells"]:
        cell["metadata"]["slideshow"] = {"slide_type": slide_type(cell)}
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def plan() -> str:
    """The page with each lecture's question, goal, slides, slips to expect, and exercises."""
    return "\n".join([HEAD, *map(_lecture, lessons())])


def _lecture(lesson: Lesson) -> str:
    path = ROOT / "notebooks" / lesson.file
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    headings = [match[1] for text in texts if (match := re.match(r"## +(.+)", text))]
    explorers = sorted(set(re.findall(r"rl\.(\w+Explorer)\(", "\n".join(texts))))
    parts = [
        f"## {lesson.number} · [{lesson.title}](../notebooks/{lesson.file})\n",
        f"*{lesson.question}* {lesson.minutes} minutes.\n",
        f"**Goal.** {_goal(texts[0])}\n",
        f"**Slides.** {' · '.join(headings)}\n",
    ]
    if explorers:
        shown = ", ".join(f"`{name}`" for name in explorers)
        parts.append(f"**To move in front of the class.** {shown}\n")
    exercise = f"exercises/{lesson.stem}/{lesson.file}"
    if (ROOT / exercise).exists():
        parts.append(f"**Homework.** [{lesson.stem}](../{exercise})\n")
        texts.append((ROOT / exercise).read_text(encoding="utf-8"))
    slips = _slips("\n".join(texts))
    if slips:
        parts.append("**Slips to expect.**\n")
        parts += [f"- *{name}*: {slip_texts()[name]}" for name in slips]
        parts.append("")
    return "\n".join(parts)


def _goal(title: str) -> str:
    paragraphs = [" ".join(part.split()) for part in title.split("\n\n")]
    return next((part for part in paragraphs if part.startswith("After this")), paragraphs[1])


def _slips(text: str) -> list[str]:
    """Names of the slips that the questions asked in a text can tell, in their order."""
    asked = re.findall(r'rl\.check\(\\?"([\w.-]+)\\?"', text)
    named = [name for id in asked for name, _ in find_question(id).slips]
    return [name for name in dict.fromkeys(named) if name in slip_texts()]


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; none: every lesson")
    for path in parser.parse_args(argv).paths or sorted((ROOT / "notebooks").glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        after = with_slides(before)
        print(f"{path}: {'unchanged' if after == before else 'written'}")
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
    PLAN.write_text(plan(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
