"""The page that a teacher reads before the next lecture: who got what, how many were right on each
question, how near the others came, and which slips they made."""

import html
from collections import Counter
from collections.abc import Sequence

from roofline_lib.checks.slips import slip_texts
from roofline_lib.grading.draw import MarkedQuestion, OpenQuestion
from roofline_lib.grading.judging import Marks
from roofline_lib.grading.pages import markdown, page
from roofline_lib.grading.rows import Question, Row
from roofline_lib.grading.words import LessonWords, Words

BINS = 10  # of a distribution, besides one for all inputs right


def class_page(
    marks: Sequence[Marks],
    rows: Sequence[Row],
    questions: Sequence[Question],
    words: LessonWords,
) -> str:
    """The page of a class: `marks` and `rows` of the same students, in the same order."""
    there = [one for one in marks if one.outcomes]
    sections = [
        _question(question, there, words.questions.get(question.name, Words(question.name)))
        for question in questions
        if isinstance(question, MarkedQuestion)
    ]
    body = (
        f"<header><h1>{html.escape(words.title)}</h1>"
        f'<p class="who">{_headcount(marks, there)}</p></header>'
        f"{_scores(rows)}{_slips(there)}{''.join(sections)}{_students(marks, rows, questions)}"
    )
    return page(f"{words.title}: the class", body, wide=True)


def _headcount(marks: Sequence[Marks], there: Sequence[Marks]) -> str:
    without = Counter(one.status for one in marks if not one.outcomes)
    others = "".join(f", {count} {html.escape(status)}" for status, count in without.items())
    return f"{len(marks)} students: {len(there)} graded{others}."


def _scores(rows: Sequence[Row]) -> str:
    graded = [row for row in rows if row.status in ("graded", "draft")]
    if not graded or not graded[0].max_score:
        return ""
    shares = [row.score / row.max_score for row in graded]
    mean = sum(row.score for row in graded) / len(graded)
    said = f"Mean of those graded: {mean:.3g} of {graded[0].max_score:g} points."
    return (
        f"<section><h2>Scores</h2><p>{said}</p>{_distribution(shares, 'points reached')}</section>"
    )


def _slips(there: Sequence[Marks]) -> str:
    """The slips of the whole lesson, the commonest first."""
    counts = Counter(
        slip
        for one in there
        for slip in {name for outcome in one.outcomes.values() for name in outcome.slips}
    )
    if not counts:
        return ""
    lines = "".join(
        f'<tr><td class="number">{count}<td><b>{html.escape(name)}</b>'
        f"<td>{html.escape(slip_texts().get(name, ''))}"
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    return (
        '<section><h2>Slips</h2><div class="scroll"><table>'
        f'<tr><th class="number">students<th>slip<th>what it is{lines}</table></div></section>'
    )


def _question(question: MarkedQuestion, there: Sequence[Marks], words: Words) -> str:
    outcomes = [one.outcomes[question.name] for one in there if question.name in one.outcomes]
    right = sum(outcome.right for outcome in outcomes)
    others = Counter(outcome.word for outcome in outcomes if not outcome.right)
    slips = Counter(name for outcome in outcomes for name in outcome.slips)
    told = "; ".join(f"{count} {word}" for word, count in others.most_common())
    if slips:
        named = ", ".join(f"{count} × {name}" for name, count in slips.most_common())
        told += f". Slips among them: {named}"
    shares = [outcome.right_on / outcome.inputs for outcome in outcomes if outcome.inputs]
    asked = f"<details><summary>The question</summary>{markdown(words.text)}</details>"
    return (
        f'<section><span class="got">{right} of {len(outcomes)} right</span>'
        f"<h2>{html.escape(words.heading)} <code>{html.escape(question.name)}</code></h2>"
        f"<p>{html.escape(told)}</p>"
        f"{_distribution(shares, 'inputs right') if shares else ''}"
        f"{asked if words.text else ''}</section>"
    )


def _distribution(shares: Sequence[float], of_what: str) -> str:
    """Bars: how many students have which share, in tenths, with a bar of its own for all."""
    counts = [0] * (BINS + 1)
    for share in shares:
        counts[int(share * BINS + 1e-9)] += 1
    most = max(counts)
    names = [f"{100 * i // BINS}" for i in range(BINS)] + ["all"]
    bars = []
    for place, (count, name) in enumerate(zip(counts, names, strict=True)):
        x, height = 10 + 44 * place, 60 * count / most
        look = {0: " none", BINS: " full"}.get(place, "")
        number = f'<text x="{x + 18}" y="{76 - height:.1f}" text-anchor="middle">{count}</text>'
        bars.append(
            f'<rect class="bar{look}" x="{x}" y="{80 - height:.1f}" width="36" '
            f'height="{height:.1f}"/>{number if count else ""}'
            f'<text x="{x + 18}" y="95" text-anchor="middle">{name}</text>'
        )
    said = ", ".join(
        f"{count} at {name}{'' if name == 'all' else ' %'}"
        for count, name in zip(counts, names, strict=True)
        if count
    )
    label = html.escape(f"Students by {of_what}: {said}")
    return (
        f'<svg viewBox="0 0 500 120" width="500" role="img" aria-label="{label}">{"".join(bars)}'
        '<line class="axis" x1="6" x2="494" y1="80.5" y2="80.5"/>'
        f'<text x="250" y="115" text-anchor="middle">% of {of_what}, from</text></svg>'
    )


def _students(marks: Sequence[Marks], rows: Sequence[Row], questions: Sequence[Question]) -> str:
    heads = "".join(f"<th><code>{html.escape(question.name)}</code>" for question in questions)
    lines = []
    for one, row in zip(marks, rows, strict=True):
        cells = "".join(f"<td>{_sign(one, row, question)}" for question in questions)
        lines.append(
            f'<tr><td>{html.escape(row.student)}<td class="number">{row.score:g}{cells}'
            f'<td class="status">{html.escape(row.status)}<td class="note">{html.escape(row.note)}'
        )
    return (
        '<section><h2>Students</h2><div class="scroll"><table>'
        f'<tr><th>student<th class="number">score{heads}<th>status<th>note{"".join(lines)}'
        "</table></div></section>"
    )


def _sign(marks: Marks, row: Row, question: Question) -> str:
    if isinstance(question, OpenQuestion):
        got = row.points.get(question.name)
        return "–" if got is None else f"{got:g}"
    outcome = marks.outcomes.get(question.name)
    if outcome is None:
        return "–"
    slips = html.escape(", ".join(outcome.slips))
    return "✓" if outcome.right else f"✗ {slips or html.escape(outcome.word)}"
