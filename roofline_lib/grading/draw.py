"""Runs the key: draws each student's inputs and computes the solution's answers to them.

`marked` is what a solution notebook says of each marked question. It writes the question down, and
two readers go by that: whoever runs the notebook has the function held against its second way at
once, and the grader collects the questions of a whole notebook, to draw from them.

A solution runs in a sandbox as a student's notebook does, but with all of this package in it:
`serve_key` is its side, `run_key` the grader's.
"""

import ast
import json
import random
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from roofline_lib.grading.inside.protocol import json_value
from roofline_lib.grading.inside.serve import enter, namespace
from roofline_lib.grading.judging import called, same
from roofline_lib.grading.sandbox import KeySandbox

DRAWS = 20  # drawn inputs a question, besides its edge cases
PATIENCE = 60  # seconds for one student's inputs and answers


@dataclass(frozen=True)
class MarkedQuestion:
    """A function that is graded by calling it."""

    name: str
    points: float
    without: list  # names of roofline_lib that are out of reach
    tolerance: float  # relative
    question: str = ""  # id of the practice question that asks the same, if there is one


@dataclass(frozen=True)
class OpenQuestion:
    """A question whose answer is a text, marked by hand."""

    name: str
    points: float


@dataclass(frozen=True)
class Lesson:
    """What a solution notebook asks, in its order, and the imports of its cells."""

    questions: list  # of MarkedQuestion and OpenQuestion
    prelude: str

    @property
    def marked(self):
        return [one for one in self.questions if isinstance(one, MarkedQuestion)]

    @property
    def open(self):
        return [one for one in self.questions if isinstance(one, OpenQuestion)]


@dataclass(frozen=True)
class Draw:
    """The order to draw one student's inputs for a term."""

    seed: str
    student: str


@dataclass(frozen=True)
class Drawn:
    """One student's inputs to one question, edge cases first, and the solution's answers."""

    inputs: list  # JSON texts, each a list of arguments
    answers: list
    edges: int  # how many of the inputs are edge cases, which everybody gets


@dataclass(frozen=True)
class Table:
    """All that was drawn for one student."""

    drawn: dict  # name of a question: Drawn


@dataclass(frozen=True)
class Marking:
    """What a call of `marked` says."""

    function: Callable
    library: Callable | str
    edges: Iterable
    draw: Callable
    without: Iterable
    tolerance: float

    def draw_inputs(self, seed):
        """The edge cases, then drawn inputs, as JSON texts: the same for the same seed."""
        rng = random.Random(seed)
        return [
            json.dumps(inputs) for inputs in (*self.edges, *(self.draw(rng) for _ in range(DRAWS)))
        ]

    def drawn(self, seed):
        inputs = self.draw_inputs(seed)
        answers = [answer_to(self.function, text) for text in inputs]
        return Drawn(inputs, answers, edges=len(inputs) - DRAWS)

    def hold(self):
        """AssertionError where the function and its second way differ."""
        library = self.library
        if isinstance(library, str):
            from roofline_lib.questions import find_question

            library = find_question(library).reference
        name = self.function.__name__
        for text in self.draw_inputs(name):
            given, wanted = answer_to(self.function, text), answer_to(library, text)
            assert same(given, wanted, self.tolerance), called(name, text)


# the list that `marked` writes into, where somebody collects
_COLLECTED = ContextVar("collected", default=None)


@contextmanager
def collected():
    """Inside this, `marked` only writes into the list that it gives."""
    markings = []
    token = _COLLECTED.set(markings)
    try:
        yield markings
    finally:
        _COLLECTED.reset(token)


def marked(function, library, *, edges=(), draw, without=(), tolerance=1e-6):
    """Say that `function` is the answer to a marked question, and hold it against `library` on its
    edge cases and on drawn inputs; AssertionError at the first difference.

    `edges` are lists of arguments, `draw(rng)` gives one more from a random.Random; numbers, texts
    and lists of them only. `library` is a second way to the right answer: a function, or the id of
    the practice question that has it. `tolerance` is relative. `python -m roofline_lib grade` reads
    the same line otherwise: it draws inputs for each student and holds the student's function
    against the solution's own, with `without` (names from roofline_lib, or whole modules of it) out
    of reach.
    """
    marking = Marking(function, library, edges, draw, without, tolerance)
    markings = _COLLECTED.get()
    if markings is None:
        marking.hold()
    else:
        markings.append(marking)


def answer_to(function, text):
    """What a function returns for inputs given as JSON, as JSON has it."""
    return json_value(function(*json.loads(text)))


def run_key(data, students, seed, draft=False):
    """(the Lesson that a solution notebook asks, {student: {name of a question: Drawn}}). Broken
    where the solution does not run: its own error stands on stderr by then."""
    with KeySandbox(data, draft=draft) as sandbox:
        lesson = sandbox.hear(Lesson, MarkedQuestion, OpenQuestion)
        tables = {}
        for student in students:
            table = sandbox.ask(Draw(seed, student), Table, Drawn, seconds=PATIENCE)
            tables[student] = table.drawn
    return lesson, tables


def serve_key():
    """The sandbox's side of `run_key`."""
    channel, notebook, _ = enter()
    lesson, markings = read_solution(notebook)
    channel.send(lesson)
    for order in channel.receive_all(Draw):
        drawn = {
            name: marking.drawn(repr((order.seed, order.student, name)))
            for name, marking in markings.items()
        }
        channel.send(Table(drawn))


def read_solution(data):
    """Execute a solution notebook; gives (its Lesson, {name of a marked question: Marking})."""
    questions, markings, imports, names = [], {}, [], namespace()
    for cell in json.loads(data)["cells"]:
        grader = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            imports += imports_of(tree)
            with collected() as found:
                exec(compile(tree, f"<cell {cell.get('id')}>", "exec"), names)
            for marking in found:
                question = marked_question(marking, grader)
                questions.append(question)
                markings[question.name] = marking
        elif grader.get("grade"):
            questions.append(OpenQuestion(grader["grade_id"], grader["points"]))
    return Lesson(questions, "\n".join(dict.fromkeys(imports))), markings


def marked_question(marking, grader):
    """The question of a marking, with the points that stand in its cell."""
    name = marking.function.__name__
    if "points" not in grader:
        raise SystemExit(
            f"no points in the cell that marks {name}; run tools/make_exercises.py --solutions DIR"
        )
    return MarkedQuestion(
        name=name,
        points=grader["points"],
        without=sorted(marking.without),
        tolerance=marking.tolerance,
        question=marking.library if isinstance(marking.library, str) else "",
    )


def imports_of(tree):
    """The imports of a cell, but for those of its hidden tests."""
    return [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and getattr(node, "module", None) != "roofline_lib.grading"
    ]
