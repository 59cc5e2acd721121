"""The front page: what this is, the ways in, and what each lesson asks."""

from html import escape

from roofline_lib.course.lessons import Lesson

TITLE = "Why a GPU is fast at some things only"
LEAD = """\
A GPU that does 300 trillion multiplications and additions a second spends most of its life waiting
for memory. This course shows when, by how much, and what to do about it, in pictures that answer
while you move a slider. Every number in it is computed, and agrees with more than a hundred
published ones; where a published number is wrong, the last lesson shows why.
"""
ABOVE_THE_PICTURE = (
    "Here is a product of two matrices under the roof of a chip. Left of the ridge it waits for "
    "memory, right of it for arithmetic. Make k small."
)
NAVIGATION = """
```{toctree}
:hidden:
:caption: Lessons
:glob:
notebooks/*
```
```{toctree}
:hidden:
:caption: Exercises
:glob:
exercises/*/*
```
```{toctree}
:hidden:
:caption: Reference
:glob:
docs/sheet
docs/glossary
docs/api
docs/*
CONTRIBUTING
CHANGELOG
```
"""


def front_page(listed: list[Lesson], figure: str, browser: str) -> str:
    """The front page in MyST: the lead, the figure, the ways in, the lessons. `browser` is the
    address at which the browser edition opens the first lesson."""
    parts = [f"# {TITLE}", LEAD, f"<p>{ABOVE_THE_PICTURE}</p>", figure]
    parts += ["## Ways in", ways_in(listed, browser), "## The lessons", table(listed), NAVIGATION]
    return "\n\n".join(parts)


def ways_in(listed: list[Lesson], browser: str) -> str:
    """Four ways to the first lesson, from nothing at all to the whole repository."""
    first = listed[1].file.replace(".ipynb", ".html")
    ways = [
        (
            f'<a href="notebooks/{first}">Read</a>',
            "All lessons are here, with their pictures and answers.",
        ),
        (
            f'<a href="{browser}">Run in your browser</a>',
            "Python starts in the page. Nothing to install.",
        ),
        (
            "Install with pip",
            "In a clone <code>pip install '.[course]'</code> and then, anywhere, "
            "<code>roofline course</code>",
        ),
        ("From a clone", "<code>make lab</code> opens lesson 0 in JupyterLab."),
    ]
    items = "".join(f"<li><strong>{way}</strong> <span>{how}</span></li>" for way, how in ways)
    return f'<ul class="ways">{items}</ul>'


def table(listed: list[Lesson]) -> str:
    """What each lesson asks, and the minutes that it takes."""
    rows = [
        f"| [{lesson.number} {lesson.title}](notebooks/{lesson.file}) "
        f"| {escape(lesson.question, quote=False)} | {lesson.minutes} |"
        for lesson in listed
    ]
    return "\n".join(["| lesson | question | minutes |", "|---|---|---:|", *rows])
