"""The loop of a lesson: a guess, the cell that answers it, and the folded text that explains.

What answers a guess stands in `<details>` behind the cell that computes it, so that nobody reads it
before having thought.
"""

import ast
import re
from dataclasses import dataclass

from prose_numbers import derived, numbers

DETAILS = re.compile(r"<details\b[^>]*>.*?</details>", re.DOTALL)
# > **Optional.** ..., and what is folded under a summary that says so
OPTIONAL = re.compile(
    r"^> \*\*Optional\.\*\*[^\n]*(?:\n>[^\n]*)*|<details>\s*<summary>Optional.*?</details>",
    re.MULTILINE | re.DOTALL,
)

WORDS_A_MINUTE = 130
CODE_CELL, GUESS, CHECK = 20 / 60, 90 / 60, 2  # minutes
# of exercises: a value, a function, half a page of text
VALUE, FUNCTION, HALF_A_PAGE = 3, 10, 15


@dataclass(frozen=True)
class Loop:
    """A guess by the number of its cell, and that of the cell that holds it against the answer;
    None where no cell does."""

    name: str
    guess: int
    answer: int | None


def tree_of(source):
    """The cell's code parsed, without the lines that only IPython reads."""
    try:
        return ast.parse(re.sub(r"^\s*[%!].*$", "", source, flags=re.M))
    except SyntaxError:
        return ast.Module([], [])


def blanks(source):
    """The names to which a cell gives the dots, for the learner to fill in."""
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Assign) and _has_dots(node.value):
            for target in node.targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def _has_dots(value):
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(part, ast.Constant) and part.value is ... for part in parts)


def comparisons(source):
    """The calls of rl.guessed in a cell."""
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "guessed" and node.args:
            yield node


def held(source):
    """The names that a cell hands to rl.guessed."""
    for call in comparisons(source):
        yield from (name.id for name in ast.walk(call.args[0]) if isinstance(name, ast.Name))


def loops(notebook):
    """Every guess of a lesson; answers to a check that a cell asks at once are none."""
    found = []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "code" or "rl.check(" in cell.source:
            continue
        for name in dict.fromkeys(blanks(cell.source)):
            answers = (
                later
                for later, other in enumerate(notebook.cells[place + 1 :], place + 1)
                if other.cell_type == "code" and name in held(other.source)
            )
            found.append(Loop(name, place, next(answers, None)))
    return found


def in_the_open(markdown):
    """The text of a cell without what is folded."""
    return DETAILS.sub("", markdown)


def given_away(notebook, loop, printed):
    """The numbers that the answering cell prints first and that stand in the open before it, or in
    the text right behind it. `printed` gives the text of a code cell's outputs.

    Of the text before the guess only headings count: what else stands there belongs to the case.
    """
    cells = notebook.cells
    inputs = _inputs(notebook, loop)
    answers = _printed_first(notebook, loop, printed)
    headings = [n for cell in cells[: loop.guess] for n in _in_headings(_text(cell))]
    shown = [
        said
        for cell in cells[loop.guess + 1 : _behind(notebook, loop) + 1]
        for said in derived(in_the_open(_text(cell)))
        if said.text not in inputs
    ]
    return sorted(
        {
            said.text
            for said in headings + shown
            if any(said.stated_by(answer) for answer in answers)
        }
    )


def folded_answers(notebook, loop, printed):
    """The numbers that the answering cell prints first and that the folded text behind it states,
    the case's own left out: what a reader would take for the answer."""
    inputs = _inputs(notebook, loop)
    folded = DETAILS.findall(_text(notebook.cells[_behind(notebook, loop)]))
    answers = _printed_first(notebook, loop, printed)
    return [
        said
        for text in folded
        for said in derived(text)
        if said.text not in inputs and any(said.stated_by(answer) for answer in answers)
        if said.unit or said.value >= 10  # a digit alone is found on any screen
    ]


def _inputs(notebook, loop):
    """The numbers of the case, as they are written: those in the open before the guess, and those
    that are declared as given."""
    said = [n for cell in notebook.cells[: loop.guess] for n in derived(in_the_open(_text(cell)))]
    declared = [
        n
        for where in [notebook, *notebook.cells]
        for text in where.metadata.get("given", [])
        for n in numbers(str(text), glued=True)
    ]
    return {number.text for number in said + declared}


def _behind(notebook, loop):
    """The place of the first text behind the answering cell, or of that cell where none comes."""
    places = range(loop.answer + 1, len(notebook.cells))
    texts = (n for n in places if notebook.cells[n].cell_type == "markdown")
    return next(texts, loop.answer)


def _printed_first(notebook, loop, printed):
    """The numbers that the answering cell prints and no cell before the guess."""
    before = [cell for cell in notebook.cells[: loop.guess] if cell.cell_type == "code"]
    known = {n.text for cell in before for n in numbers(printed(cell), glued=True)}
    shown = numbers(printed(notebook.cells[loop.answer]), glued=True)
    return [number for number in shown if number.text not in known]


def _text(cell):
    return cell.source if cell.cell_type == "markdown" else ""


def _in_headings(markdown):
    """The numbers in headings; a digit alone counts the lesson or its parts."""
    lines = re.findall(r"^#+ (?:\d+ · )?(.*)$", markdown, re.M)
    found = [number for line in lines for number in numbers(line)]
    return [number for number in found if number.unit or number.value >= 10]


def minutes(notebook):
    """What a lesson takes: reading, running, guessing, answering. Optional boxes and folded code do
    not count."""
    words = sum(
        len(OPTIONAL.sub("", cell.source).split())
        for cell in notebook.cells
        if cell.cell_type == "markdown"
    )
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    open_code = [cell for cell in code if not cell.metadata.get("jupyter", {}).get("source_hidden")]
    guesses = {loop.guess for loop in loops(notebook)}
    checks = sum(cell.source.count("rl.check(") for cell in code)
    return (
        words / WORDS_A_MINUTE + len(open_code) * CODE_CELL + len(guesses) * GUESS + checks * CHECK
    )


def minutes_of_exercises(notebook):
    """What a set of exercises takes, from the notebook that learners get."""
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    functions = sum("# your answer" in source for source in code)
    checks = sum(source.count("rl.check(") for source in code)
    values = checks - functions
    return words / WORDS_A_MINUTE + values * VALUE + functions * FUNCTION + HALF_A_PAGE
