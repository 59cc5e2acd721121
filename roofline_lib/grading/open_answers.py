"""The page on which a teacher marks the open questions: every student's answer with the rubric
beside it, a box for the mark and one for a comment. The button gives the CSV that `--manual` takes.

What a student wrote is shown as text, letter by letter; nothing of it is read as HTML."""

import base64
import html
from collections.abc import Mapping, Sequence
from hashlib import sha256

from roofline_lib.grading.draw import OpenQuestion
from roofline_lib.grading.pages import markdown, page
from roofline_lib.grading.roster import HandMark
from roofline_lib.grading.rows import HandMarks
from roofline_lib.grading.spreadsheets import plain
from roofline_lib.grading.words import LessonWords, Words

_SCRIPT = """
const quoted = text => '"' + text.replaceAll('"', '""') + '"';
const answers = [...document.querySelectorAll('.answer')];
const markOf = one => one.querySelector('input').value.trim().replace(',', '.');
const isWrong = one => {
  const mark = markOf(one), most = Number(one.querySelector('input').dataset.most);
  return mark !== '' && !(/^(\\d+\\.?\\d*|\\.\\d+)$/.test(mark) && Number(mark) <= most);
};
const look = one => one.querySelector('input').setAttribute('aria-invalid', isWrong(one));
for (const one of answers) one.addEventListener('input', () => look(one));
document.querySelector('button').addEventListener('click', () => {
  answers.forEach(look);
  const wrong = answers.filter(isWrong);
  if (wrong.length) {
    const names = wrong.map(one => one.dataset.student).join(', ');
    document.querySelector('output').textContent =
      `Nothing is saved yet: no number, or more than the question has: ${names}`;
    wrong[0].querySelector('input').focus();
    return;
  }
  const lines = ['student,question,mark,comment'];
  for (const one of answers) {
    const mark = markOf(one), comment = one.querySelector('textarea').value.trim();
    const cells = [one.dataset.student, one.dataset.question, mark, comment];
    if (mark || comment) lines.push(cells.map(quoted).join(','));
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([lines.join('\\n') + '\\n'], {type: 'text/csv'}));
  link.download = document.querySelector('button').dataset.file;
  link.click();
  document.querySelector('output').textContent = (lines.length - 1) + ' lines written';
  left = false;
});
let left = false;
addEventListener('input', () => { left = true; });
addEventListener('beforeunload', event => { if (left) event.preventDefault(); });
"""


def open_page(
    answers: Mapping[tuple[str, str], str],
    questions: Sequence[OpenQuestion],
    by_hand: HandMarks,
    words: LessonWords,
    file: str,
) -> str:
    """The page with all `answers`, texts by (student, question). `by_hand` are the marks that there
    are already; the button offers the CSV under the name `file`."""
    sections = [
        _question(question, answers, by_hand, words.questions[question.name])
        for question in questions
    ]
    allows = base64.b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    body = (
        f"<header><h1>{html.escape(words.title)}: open answers</h1>"
        "<p>Marks and comments stay in this page until the button writes them into a file; give "
        f"that to <code>--manual</code>.</p><p><button data-file={_quoted(file)}>"
        f"Save {html.escape(file)}</button> <output></output></p></header>{''.join(sections)}"
    )
    title = f"{words.title}: open answers"
    return page(title, body, wide=True, script=_SCRIPT, allows=f"'sha256-{allows}'")


def _question(
    question: OpenQuestion,
    answers: Mapping[tuple[str, str], str],
    by_hand: HandMarks,
    words: Words,
) -> str:
    """The answers to one question on the left, and on the right, in sight all the time, what to
    look for in them."""
    given = [
        _answer(question, student, text, by_hand.get((student, question.name)))
        for (student, name), text in answers.items()
        if name == question.name
    ]
    return (
        f"<section><h2>{html.escape(words.heading)} <code>{html.escape(question.name)}</code></h2>"
        f'{markdown(words.text)}</section><div class="beside"><div>{"".join(given)}</div>'
        f"<aside><section>{markdown(words.rubric)}</section></aside></div>"
    )


def _answer(question: OpenQuestion, student: str, text: str, mark: HandMark | None) -> str:
    answer = html.escape(text) if text else "No answer."
    value = "" if mark is None or mark.points is None else f"{mark.points:g}"
    most = f"{question.points:g}"
    named = f"{student}, {question.name}"
    box = (
        f'<input inputmode="decimal" size="5" data-most="{most}" value="{value}" '
        f"aria-label={_quoted(f'Mark of {named}')}>"
    )
    comment = (
        f'<textarea placeholder="Comment for the student" '
        f"aria-label={_quoted(f'Comment for {named}')}>"
        f"{html.escape(mark.comment) if mark else ''}</textarea>"
    )
    return (
        f'<section class="answer" data-student={_quoted(plain(student))} '
        f"data-question={_quoted(question.name)}><h2>{html.escape(student)}</h2>"
        f'<p class="said">{answer}</p><p><label>Mark {box}</label> of {most}</p>'
        f"{comment}</section>"
    )


def _quoted(text: str) -> str:
    """A text as an attribute's value."""
    return f'"{html.escape(text)}"'
