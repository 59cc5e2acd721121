"""What a teacher and each student get: the CSV of marks and the pages."""

import csv
import html
import os
from hashlib import sha256

HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="generator" content="roofline_lib grade">'
FORMULA = "=+-@\t\r"  # what a spreadsheet would take for the beginning of one


def pages_of(out):
    """The folder of the students' pages, made where it is not there."""
    folder = out.with_name(f"{out.stem}_feedback")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _page_name(student):
    """`<student>.html`; a name too long for that (a folder's may have 255 bytes, and so may a
    page's) is cut and told apart by a hash."""
    name = os.fsencode(student)
    return (
        f"{student}.html"
        if len(name) <= 250
        else f"{os.fsdecode(name[:200])}-{sha256(name).hexdigest()[:16]}.html"
    )


def write(out, rows, questions, by_hand, lesson):
    """The CSV, and a page for each student in `<out>_feedback/`. Pages of an earlier run that
    nobody of this one has are removed."""
    asked = [q for q in questions if not q.get("by_hand") or by_hand is not None]
    folder = pages_of(out)
    for path in folder.glob("*.html"):
        if not path.is_symlink() and path.is_file() and path.read_bytes().startswith(HEAD.encode()):
            path.unlink()
    with out.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(
            ["student", "score", "max_score", *(q["name"] for q in asked), "status", "note"]
        )
        for marks in rows:
            points = [_points(q, marks, by_hand) for q in asked]
            score, most = sum(p or 0 for p in points), sum(q["points"] for q in asked)
            cells = ["" if p is None else f"{p:g}" for p in points]
            # a spreadsheet would take it for a formula
            student = f"'{marks.student}" if marks.student[0] in FORMULA else marks.student
            row = [student, f"{score:g}", f"{most:g}", *cells, marks.status, marks.note]
            # which the csv module would leave bare
            table.writerow([text.replace("\r", "\\r") for text in row])
            page = _page(
                marks,
                questions,
                [_points(q, marks, by_hand or {}) for q in questions],
                lesson,
                f"{score:g} of {most:g}",
            )
            (folder / _page_name(marks.student)).write_text(
                page, encoding="utf-8", errors="replace"
            )


def _points(question, marks, by_hand):
    if question.get("by_hand"):
        return by_hand.get((marks.student, question["name"]))
    return (
        question["points"]
        if question["name"] in marks.outcomes and marks.outcomes[question["name"]].right
        else 0
    )


def _page(marks, questions, points, lesson, score):
    lines = []
    for question, got in zip(questions, points, strict=True):
        outcome = marks.outcomes.get(question["name"])
        sentence = outcome.sentence if outcome else "Not graded."
        if question.get("by_hand"):
            sentence = (
                "To be marked by hand; it is not in these points."
                if got is None
                else "Marked by hand."
            )
        got = "no mark yet" if got is None else f"{got:g} of {question['points']:g}"
        lines.append(
            f"<tr><td><code>{html.escape(question['name'])}</code><td>{got}<td>{html.escape(sentence)}"
        )
    title = f"{html.escape(lesson)}: {html.escape(marks.student)}"
    return (
        f"{HEAD}<title>{title}</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
        f"td{{padding:.3em 1em .3em 0;vertical-align:top}}td:nth-child(2){{white-space:nowrap}}td:last-child{{overflow-wrap:anywhere}}"
        f"</style><h1>{title}</h1><p>{score} points. Status: {html.escape(marks.status)}. "
        f"{html.escape(marks.note)}</p><table>{''.join(lines)}</table></html>\n"
    )
