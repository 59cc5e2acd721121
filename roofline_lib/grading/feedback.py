"""The page that a student gets back: each question in its own words, what came of the answer, and
for a slip that the course knows its name and what to do about it."""

import html
from collections.abc import Sequence

from roofline_lib.checks.slips import slip_texts
from roofline_lib.grading.draw import MarkedQuestion, OpenQuestion
from roofline_lib.grading.judging import Marks, Outcome
from roofline_lib.grading.pages import markdown, page, points
from roofline_lib.grading.roster import HandMark
from roofline_lib.grading.rows import HandMarks, Question, Row, points_for
from roofline_lib.grading.words import LessonWords, Words
from roofline_lib.questions import find_question


def feedback_page(
    marks: Marks,
    row: Row,
    questions: Sequence[Question],
    by_hand: HandMarks,
    words: LessonWords,
) -> str:
    """One student's page. No key is on it, and nobody else's data."""
    sections = [
        _section(question, marks, by_hand, words.questions.get(question.name, Words(question.name)))
        for question in (questions if marks.outcomes else ())
    ]
    again = ""
    if any("Looks like" in section for section in sections):
        again = f"<p>To read again: <code>notebooks/{html.escape(words.stem)}.ipynb</code>.</p>"
    body = f"{_header(row, words)}{''.join(sections)}{again}"
    return page(f"{words.title}: {row.student}", body)


def _header(row: Row, words: LessonWords) -> str:
    late = row.late.sentence(row.before_late_days) if row.late else ""
    remarks = [one for one in (row.note.removesuffix(late).removesuffix("; "), late) if one]
    said = "".join(f"<p>{html.escape(_sentence(remark))}</p>" for remark in remarks)
    return (
        f'<header><h1>{html.escape(words.title)}</h1><p class="who">{html.escape(row.student)}</p>'
        f'<p class="score">{row.score:g} of {row.max_score:g} points</p>'
        f'<p class="who">Status: {html.escape(row.status)}.</p>{said}</header>'
    )


def _sentence(remark: str) -> str:
    return f"{remark[:1].upper()}{remark[1:]}{'' if remark.endswith(('?', '.')) else '.'}"


def _section(question: Question, marks: Marks, by_hand: HandMarks, words: Words) -> str:
    got = points_for(question, marks, by_hand)
    if isinstance(question, OpenQuestion):
        look, inside = "open", _by_hand(by_hand.get((marks.student, question.name)))
    else:
        outcome = marks.outcomes[question.name]
        look, inside = ("right" if outcome.right else "wrong"), _outcome(question, outcome)
    sign = {"right": "✓ ", "wrong": "✗ ", "open": ""}[look]
    asked = f"<details><summary>The question</summary>{markdown(words.text)}</details>"
    return (
        f'<section class="{look}"><span class="got">{sign}{points(got, question.points)}</span>'
        f"<h2>{html.escape(words.heading)} <code>{html.escape(question.name)}</code></h2>"
        f"{inside}{asked if words.text else ''}</section>"
    )


def _by_hand(mark: HandMark | None) -> str:
    is_marked = mark is not None and mark.points is not None
    state = "Marked by hand." if is_marked else "To be marked by hand; it is not in these points."
    comment = mark.comment if mark else ""
    said = f'<p class="said">{html.escape(comment)}</p>' if comment else ""
    return f"<p>{state}</p>{said}"


def _outcome(question: MarkedQuestion, outcome: Outcome) -> str:
    parts = [f"<p>{html.escape(outcome.sentence)}</p>"]
    texts = slip_texts()
    parts += [
        f'<p class="slip"><b>Looks like {html.escape(name)}</b>: {html.escape(texts[name])}</p>'
        for name in outcome.slips
        if name in texts
    ]
    hint = find_question(question.question).hint if question.question else ""
    if outcome.word == "wrong" and hint:
        parts.append(f'<p class="hint"><b>Hint</b>: {html.escape(hint)}</p>')
    return "".join(parts)
