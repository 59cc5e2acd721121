"""A student's line in the CSV: the points of each question, and what late days leave of them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from roofline_lib.grading.draw import MarkedQuestion, OpenQuestion
from roofline_lib.grading.judging import Marks
from roofline_lib.grading.lateness import Lateness
from roofline_lib.grading.roster import HandMark

Question = MarkedQuestion | OpenQuestion
HandMarks = dict[tuple[str, str], HandMark]  # by (student, question)


@dataclass(frozen=True)
class Row:
    """A student's line in the CSV. `points` has those of each question that counts, None for one
    that nobody has marked yet; `late` is None where late days are not counted. `comments` are those
    given by hand, `unmarked` the open questions that count, were answered and have no mark yet."""

    student: str
    score: float
    max_score: float
    points: dict[str, float | None]
    status: str
    note: str
    late: Lateness | None = None
    comments: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()

    @property
    def has_work(self) -> bool:
        """Whether there was a notebook to mark."""
        return self.status in ("graded", "draft")

    @property
    def before_late_days(self) -> float:
        """The points without what late days take off."""
        return sum(got or 0 for got in self.points.values())


def row_of(
    marks: Marks,
    questions: Sequence[Question],
    by_hand: HandMarks | None,
    late: Lateness | None = None,
    answered: Collection[str] = (),
) -> Row:
    """The Row of a student's Marks. `by_hand` are marks by (student, question); None where open
    questions do not count. `answered` are the open questions with an answer of this student."""
    asked = counted(questions, by_hand)
    points = {question.name: points_for(question, marks, by_hand or {}) for question in asked}
    reached = sum(got or 0 for got in points.values())
    unmarked = tuple(name for name in points if points[name] is None and name in answered)
    said = [(by_hand or {}).get((marks.student, question.name)) for question in asked]
    notes = [
        marks.note,
        f"not marked yet: {', '.join(unmarked)}" if unmarked else "",
        late.sentence(reached) if late else "",
    ]
    return Row(
        student=marks.student,
        score=late.left_of(reached) if late else reached,
        max_score=sum(question.points for question in asked),
        points=points,
        status=marks.status,
        note="; ".join(filter(None, notes)),
        late=late,
        comments=tuple(mark.comment for mark in said if mark and mark.comment),
        unmarked=unmarked,
    )


def counted(questions: Sequence[Question], by_hand: HandMarks | None) -> list[Question]:
    """The questions that count: open ones only where there are marks by hand."""
    if by_hand is not None:
        return list(questions)
    return [one for one in questions if not isinstance(one, OpenQuestion)]


def open_ones(questions: Sequence[Question]) -> list[OpenQuestion]:
    """Those of the questions that are marked by hand."""
    return [one for one in questions if isinstance(one, OpenQuestion)]


def points_for(question: Question, marks: Marks, by_hand: HandMarks) -> float | None:
    """A student's points for one question; None for an open one that has no mark yet."""
    if isinstance(question, OpenQuestion):
        mark = by_hand.get((marks.student, question.name))
        return mark.points if mark else None
    outcome = marks.outcomes.get(question.name)
    return question.points if outcome and outcome.right else 0
