"""One student's answers held against the solution's: outcomes, points, and what to say of them."""

import json
import math
import time
from dataclasses import dataclass, field

from roofline_lib.grading.inside.protocol import (
    Ended,
    Facts,
    Raised,
    Reply,
    Task,
    read_answer,
    read_facts,
)
from roofline_lib.grading.sandbox import Broken, NoNotebook, NoSandbox, StudentSandbox, a_processor
from roofline_lib.grading.slips import slips_of

# words for how an outcome came about that need no note in the CSV
_ORDINARY = ("right", "wrong", "not answered")
_NO_FUNCTION = "no function"
OTHER_LESSON = "it has no function of this lesson"
_NO_FACTS = Facts(skipped=None, untouched=False, defined=True, kind="", error="")
_ENDED = {
    Ended.OUT_OF_TIME: "It ran out of time",
    Ended.TOO_MUCH_OUTPUT: "It gave back too much",
    Ended.STOPPED: "It ended the process it ran in",
    Ended.DONE: "It ended early",
}


@dataclass(frozen=True)
class Outcome:
    """One question of one student: a right answer or not, a word for the CSV and a sentence for the
    student; for a function that answered, on how many of how many inputs it is right, and the
    names of the slips that give what it gave."""

    right: bool
    word: str
    sentence: str = ""
    right_on: int = 0
    inputs: int = 0
    slips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Marks:
    """One student's outcomes by question, with the status and note of the submission as a whole."""

    student: str
    status: str
    note: str = ""
    outcomes: dict = field(default_factory=dict)


def same(answer, reference, tolerance):
    """Whether an answer, as plain JSON, is the reference. One number may stand in lists, [[3.5]];
    NaN is never right."""
    if isinstance(reference, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(reference)
            and all(same(a, r, tolerance) for a, r in zip(answer, reference, strict=True))
        )
    while isinstance(answer, list) and len(answer) == 1:
        answer = answer[0]
    if isinstance(reference, str):
        return isinstance(answer, str) and answer.strip().casefold() == reference.casefold()
    if not isinstance(answer, int | float):
        return False
    try:
        return math.isclose(answer, reference, rel_tol=tolerance, abs_tol=0 if reference else 1e-12)
    except OverflowError:  # a whole number that no float holds
        return answer == reference


def called(name, text):
    """A call as a student would write it, `product_flops(2, 3, 4)`, from its inputs as JSON."""
    return f"{name}({', '.join(map(repr, json.loads(text)))})"


def grade_one(submission, lesson, drawn, seconds, draft=False):
    """The Marks of a Submission. `lesson` and `drawn` (this student's inputs and the solution's
    answers, by question) are what `run_key` gives; `seconds` of CPU time for each question.

    Runs anywhere that has this package and bubblewrap; takes and gives plain records, so any
    executor can carry it.
    """
    student = submission.student
    if submission.status:
        return Marks(student, submission.status, submission.note)
    outcomes = {}
    try:
        with a_processor() as processor, _Sandboxes(submission.data, draft, processor) as sandboxes:
            for question in lesson.marked:
                ask = _Asking(sandboxes, question, drawn[question.name], lesson.prelude, seconds)
                outcomes[question.name] = ask.outcome()
    except NoNotebook as error:
        return Marks(student, "unreadable", str(error))
    except NoSandbox:  # a fault of the machine, and so of no row
        raise
    except Exception as error:  # whatever it is, it is this student's row and nobody else's
        return failed(student, error)
    words = [
        f"{name}: {outcome.word}"
        for name, outcome in outcomes.items()
        if outcome.word not in _ORDINARY
    ]
    if outcomes and all(outcome.word == _NO_FUNCTION for outcome in outcomes.values()):
        words = [f"{OTHER_LESSON}: the notebook of another one?"]
    note = "; ".join(filter(None, [submission.note, *words]))
    return Marks(student, "draft" if draft else "graded", note, outcomes)


def failed(student, error):
    """The Marks where the grader itself failed on a submission: to be graded again."""
    return Marks(student, "error", f"the grader itself failed ({type(error).__name__}: {error})")


class _Sandboxes:
    """The running sandboxes of one submission: one for each set of names that its questions put out
    of reach. One that a question has stopped is started again for the next."""

    def __init__(self, data, draft, processor):
        self._data, self._running = data, {}
        self._options = {"draft": draft, "processor": processor}

    def answer(self, without, task):
        """The Reply to a task."""
        if without not in self._running:
            self._running[without] = StudentSandbox(self._data, without=without, **self._options)
        sandbox = self._running[without]
        try:
            reply = sandbox.answer(task)
        except Broken:  # that question's own doing
            reply = Reply([], Ended.STOPPED)
        if reply.ended == Ended.STOPPED or sandbox.one_task:
            self._running.pop(without).close()
        return reply

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sandbox in self._running.values():
            sandbox.close()


@dataclass(frozen=True)
class _Asking:
    """One question put to one submission."""

    sandboxes: _Sandboxes
    question: object  # a MarkedQuestion
    drawn: object  # a Drawn
    prelude: str
    seconds: int

    def outcome(self):
        """Of the function with the statements that it leans on; where these raise an error, of the
        function in the whole notebook. Both tries together have the time of one."""
        begun, wall = time.monotonic(), 2 * self.seconds + 3
        first = self._try(whole=False, wall=wall)
        if first.word not in ("error", _NO_FUNCTION):
            return first
        left = wall - (time.monotonic() - begun)
        second = self._try(whole=True, wall=max(1, left))
        return second if second.word in _ORDINARY else first

    def _try(self, whole, wall):
        task = Task(
            name=self.question.name,
            inputs=self.drawn.inputs,
            whole=whole,
            seconds=self.seconds,
            wall=wall,
            prelude=self.prelude,
        )
        reply = self.sandboxes.answer(tuple(self.question.without), task)
        return judge(self.question, self.drawn, reply)


def judge(question, drawn, reply):
    """The Outcome of one question: what the sandbox replied, held against the solution's answers on
    the same inputs."""
    wanted = len(drawn.inputs)
    facts = read_facts(reply.lines[0]) if reply.lines else _NO_FACTS
    answers = [read_answer(line) for line in reply.lines[1 : wanted + 1]]
    if facts.skipped is None:  # a forged line, so the others count for nothing
        answers = []
    if not facts.defined:
        return _not_defined(question, facts)
    for text, answer in zip(drawn.inputs, answers, strict=False):
        if isinstance(answer, Raised):
            said = f"{called(question.name, text)} raised {answer.error}"
            return Outcome(False, "error", said[:400])
    if len(answers) < wanted:
        return _ended_early(question, drawn, reply.ended, len(answers))
    return _compared(question, drawn, [answer.value for answer in answers], facts.untouched)


def _not_defined(question, facts):
    """The Outcome where there is no function of that name."""
    if facts.untouched and not facts.error:
        return Outcome(False, "not answered", "Not answered.")
    said = "There is no function of this name"
    if facts.kind:
        said = f"{question.name} is {facts.kind}, not a function"
    why = f", because of {facts.error}"[:400] if facts.error else ""
    unread = ""
    if facts.skipped:
        cells = "; ".join(f"cell {number} ({why})" for number, why in facts.skipped.items())
        unread = f" Not read as Python: {cells}."[:400]
    word = "error" if facts.kind or facts.error or facts.skipped else _NO_FUNCTION
    return Outcome(False, word, f"{said[:200]}{why}.{unread}")


def _ended_early(question, drawn, ended, given):
    """The Outcome where there are only so many answers `given`."""
    where = "before its first answer"
    if given:
        where = f"at {called(question.name, drawn.inputs[given])}"
    word = Ended.STOPPED if ended == Ended.DONE else ended
    return Outcome(False, str(word), f"{_ENDED[ended]}, {where}.")


def _compared(question, drawn, values, untouched):
    """The Outcome where there is an answer to each input."""
    if all(value is None for value in values):
        said = "Its last line may lack `return`: it gives nothing back."
        return Outcome(False, "not answered", "Not answered." if untouched else said)
    right = [
        same(value, answer, question.tolerance)
        for value, answer in zip(values, drawn.answers, strict=True)
    ]
    if all(right):
        count = len(right)
        return Outcome(True, "right", f"Right on all {count} inputs.", count, count)
    sentence = f"Right on {sum(right)} of {len(right)} inputs."
    wrong = [i for i, is_right in enumerate(right) if not is_right]
    # a drawn input says more than an edge case
    example = next((i for i in wrong if i >= drawn.edges), wrong[0])
    # of two possible answers, one's own would give away the other
    if not isinstance(drawn.answers[example], bool | str):
        call = called(question.name, drawn.inputs[example])
        sentence += f" For example, {call} gave {_shown(values[example])}."
    slips = slips_of(question.question, drawn.inputs, values)
    return Outcome(False, "wrong", sentence, sum(right), len(right), slips)


def _shown(value):
    text = f"something of type {value.get('odd')}" if isinstance(value, dict) else repr(value)
    kind = ", a text" if isinstance(value, str) else ""
    return (text if len(text) < 80 else text[:80] + "...") + kind
