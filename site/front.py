"""The front page: what this is, and the ways in."""

from roofline_lib.course.lessons import Lesson

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
docs/sheet
docs/glossary
docs/api
docs/roofline_vs_measured
docs/teaching
CONTRIBUTING
CHANGELOG
```
"""


def front_page(listed: list[Lesson], figure: str) -> str:
    """The front page in MyST: the figure, three sentences, four ways in, the lessons."""
    rows = [
        f"| [{lesson.number} {lesson.title}](notebooks/{lesson.file}) | {lesson.question} "
        f"| {lesson.minutes} |"
        for lesson in listed
    ]
    table = "\n".join(["| lesson | question | minutes |", "|---|---|---|", *rows])
    return f"# Why a GPU is fast at some things only\n\n{figure}\n\n{table}\n{NAVIGATION}"
