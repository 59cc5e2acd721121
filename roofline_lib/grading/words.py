"""What a lesson's questions say: their headings and texts, and the rubric of an open one, as they
stand in the solution notebook."""

import json
import re
from dataclasses import dataclass

from roofline_lib.course.lessons import lessons
from roofline_lib.grading.draw import Lesson, MarkedQuestion, OpenQuestion

_HEADING = re.compile(r"^#+ +(.*?)[ #]*$", re.MULTILINE)
_SOLUTION = re.compile(r"^### (?:BEGIN|END) SOLUTION$\n?", re.MULTILINE)
LONGEST_ANSWER = 20_000  # characters of an open answer that a page shows


@dataclass(frozen=True)
class Words:
    """A question's heading and text, as Markdown; of an open one the model answer and rubric."""

    heading: str
    text: str = ""
    rubric: str = ""


@dataclass(frozen=True)
class LessonWords:
    """A lesson as it is called on a page, and the words of each of its questions by name."""

    stem: str  # 01_arithmetic_intensity
    title: str  # Lesson 1: Arithmetic intensity
    questions: dict[str, Words]


def words_of(book: dict, stem: str, asked: Lesson) -> LessonWords:
    """The words of all questions that a solution notebook asks. `stem` is the lesson's name."""
    cells = [_Cell.read(cell) for cell in book["cells"]]
    return LessonWords(
        stem=stem,
        title=lesson_title(stem),
        questions={question.name: _words(question, cells) for question in asked.questions},
    )


def lesson_title(stem: str) -> str:
    """`Lesson 1: Arithmetic intensity` for a lesson of the course; any other is called by its
    stem."""
    titles = {lesson.stem: f"Lesson {lesson.number}: {lesson.title}" for lesson in lessons()}
    return titles.get(stem, stem)


def open_answer(data: bytes, name: str, handed_out: frozenset[str]) -> str:
    """What a student wrote for the open question `name`: the text cell that was handed out for it,
    and the text cells that the student put behind that one.

    `data` is the notebook as it was handed in and `handed_out` the ids of the exercise's cells. ""
    where the cell is not there, was left as it was, or the notebook cannot be read. At most
    LONGEST_ANSWER characters.
    """
    try:
        cells = [_Cell.read(cell) for cell in json.loads(data.decode("utf-8-sig"))["cells"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    place = next((i for i, cell in enumerate(cells) if cell.is_called(name)), None)
    if place is None:
        return ""
    texts = [cells[place].text]
    for cell in cells[place + 1 :]:
        if not cell.is_text or cell.id in handed_out:
            break
        texts.append(cell.text)
    answer = "\n\n".join(texts).replace("*Your answer.*", "").strip()
    return answer[:LONGEST_ANSWER]


@dataclass(frozen=True)
class _Cell:
    """One cell of a notebook."""

    id: str
    is_text: bool
    text: str
    grade_id: str

    @classmethod
    def read(cls, cell: dict) -> "_Cell":
        source = cell.get("source", "")
        grader = cell.get("metadata", {}).get("nbgrader", {})
        return cls(
            id=str(cell.get("id", "")),
            is_text=cell.get("cell_type") == "markdown",
            text=source if isinstance(source, str) else "".join(source),
            grade_id=str(grader.get("grade_id", "")) if isinstance(grader, dict) else "",
        )

    def is_called(self, name: str) -> bool:
        return self.is_text and name in (self.grade_id, self.id)

    def defines(self, name: str) -> bool:
        return not self.is_text and f"\ndef {name}(" in f"\n{self.text}"


def _words(question: MarkedQuestion | OpenQuestion, cells: list[_Cell]) -> Words:
    """The text above a question's answer; a teacher's own question may have none."""
    name, rubric = question.name, ""
    if isinstance(question, OpenQuestion):
        place = next(i for i, cell in enumerate(cells) if cell.is_called(name))
        rubric = _SOLUTION.sub("", cells[place].text).strip()
    else:
        place = next((i for i, cell in enumerate(cells) if cell.defines(name)), 0)
    above = cells[place - 1] if place else None
    if above is None or not above.is_text or above.grade_id:
        return Words(name, "", rubric)
    heading = _HEADING.search(above.text)
    text = _HEADING.sub("", above.text, count=1).strip()
    return Words(heading[1] if heading else name, text, rubric)
