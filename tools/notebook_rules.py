"""What every lesson keeps to, one function a rule; each gives the faults it finds as sentences.

    python tools/notebook_rules.py notebooks/03*.ipynb     prints the faults of these, lessons or
    exercises; none named: of every lesson

A number that the prose takes as an input is declared, with its unit, in the metadata of the
notebook or of a cell, for the whole lesson: {"given": ["20 TFLOP/s", "2 TB/s"]}. Literals in the
source of a cell count as declared.
"""

import ast
import json
import re
import statistics
import sys
from pathlib import Path

import lesson_loop
import nbformat
from prose_numbers import numbers, unsupported
from refresh_notebooks import (
    CELL_METADATA,
    NOTEBOOK_METADATA,
    SOURCE_HIDDEN,
    WIDGET_VIEW,
    code_cells,
)

from roofline_lib.course.lessons import lessons as listed_lessons

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 100
LONGEST = 35  # minutes
# how far the minutes of the list may be from the estimate
MINUTES_OFF = 3


def counted(notebook, path):
    """nbval compares nothing where a cell has no execution count."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts {counts} are not those of one run from top to bottom"


def quiet(notebook, path):
    """No errors, warnings, addresses in memory or paths of one machine in the outputs; no `;`,
    which nbval does not honour."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"cell {cell.id} stores an error: {output.ename}"
            if output.output_type == "stream" and output.name == "stderr":
                yield f"cell {cell.id} writes to stderr: {output.text[:80]!r}"
        text = printed(cell)
        for pattern, what in [
            (r"\b\w*Warning\b", "a warning"),
            (r"\bat 0x[0-9a-f]{6,}", "an address in memory"),
            (r"(?<![\w.])/(?:home|root|tmp|work|usr|Users)/\S*", "a path of one machine"),
            # fmt: skip
            (r"\bnp\.\w+\(", "a bare numpy value, whose look depends on the version"),
        ]:
            if found := re.search(pattern, text):
                yield f"cell {cell.id} prints {what}: {found[0]}"
        if cell.source.rstrip().endswith(";"):
            yield f"cell {cell.id} ends in ';': end it with plt.show() instead"


def named(notebook, path):
    """Cell ids are unique and mean something; those that editors make up do not."""
    ids = [cell.id for cell in notebook.cells]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"cell id {name} stands twice"
    for name in ids:
        random = re.fullmatch(r"[0-9a-f-]{8,}", name) and re.search(r"\d", name)
        if (
            random
            or re.fullmatch(r"(?:cell|code|markdown|id)?[-_]?\d*", name)
            or not re.fullmatch(r"[a-z][a-z0-9-]*", name)
        ):
            yield f"cell id {name} does not say what the cell is for"


def small(notebook, path):
    """Under 200 KB, so that it opens at once and its diffs can be read."""
    size = len(json.dumps(notebook, indent=1, ensure_ascii=False).encode())
    if size >= 200_000:
        yield f"{size // 1000} KB; at most 200: fewer or smaller figures"


def plain(notebook, path):
    """Format 4.5 and no metadata but what refresh_notebooks keeps, so that reruns give no diff."""
    if (notebook.nbformat, notebook.nbformat_minor) != (4, 5):
        yield f"format {notebook.nbformat}.{notebook.nbformat_minor}, not 4.5"
    if {
        key: value for key, value in notebook.metadata.items() if key != "given"
    } != NOTEBOOK_METADATA:
        yield f"notebook metadata {sorted(notebook.metadata)}: run make refresh"
    for cell in notebook.cells:
        extra = set(cell.metadata) - CELL_METADATA
        if cell.metadata.get("jupyter", SOURCE_HIDDEN) != SOURCE_HIDDEN:
            extra.add("jupyter")
        if extra:
            yield f"cell {cell.id} has metadata {sorted(extra)}: run make refresh"


def still(notebook, path):
    """No stored widget view: without a kernel it hides the picture."""
    for cell in code_cells(notebook):
        if any(WIDGET_VIEW in output.get("data", {}) for output in cell.outputs):
            yield f"cell {cell.id} stores a widget view: run make refresh"


def linked(notebook, path):
    """Links to files lead somewhere."""
    for cell in notebook.cells:
        for target in re.findall(
            r"\]\(([^)\s#]+)[^)]*\)", cell.source if cell.cell_type == "markdown" else ""
        ):
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                yield f"cell {cell.id} links to {target}, which is not there"


def proven(notebook, path):
    """A number of the prose that is bold or carries a unit is printed by a cell, to the prose's
    precision, or is an input."""
    given = [
        text for where in [notebook, *notebook.cells] for text in where.metadata.get("given", [])
    ]
    missing, unused = unsupported(
        [cell.source for cell in notebook.cells if cell.cell_type == "markdown"],
        [printed(cell) for cell in code_cells(notebook)],
        [n for cell in code_cells(notebook) for n in literals(cell.source)],
        [n for text in given for n in numbers(str(text), glued=True)],
    )
    yield from (f"the prose says {text!r}, which no cell prints" for text in missing)
    yield from (f"{text!r} is declared as given, but the prose does not use it" for text in unused)


def used(notebook, path):
    """Each guess is held against its answer by a later cell, with rl.guessed."""
    for loop in lesson_loop.loops(notebook):
        cell = notebook.cells[loop.guess]
        if not loop.name.startswith("guess"):
            yield f"cell {cell.id} calls a guess {loop.name}: name it guess or guess_..."
        if loop.answer is None:
            yield f"cell {cell.id} asks for {loop.name}, which no rl.guessed(...) reads"


def folded(notebook, path):
    """What answers a guess stands in <details>, not in the open before the answer or behind it."""
    for loop in lesson_loop.loops(notebook):
        if loop.answer is not None:
            for text in lesson_loop.given_away(notebook, loop, printed):
                name = notebook.cells[loop.guess].id
                yield f"the answer to {name}, {text!r}, stands in the open: fold it into <details>"


def covered(notebook, path):
    """An answer that is not computed does not stand in open code under its guess."""
    for cell in code_cells(notebook):
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            continue
        for call in lesson_loop.comparisons(cell.source):
            if len(call.args) > 1 and is_plain(call.args[1]):
                answer = ast.unparse(call.args[1])
                yield f"cell {cell.id} has the answer {answer} in open code: hide its source"


def is_plain(expression):
    """Whether no name stands in it, so that a reader can see its value."""
    return not any(isinstance(part, ast.Name) for part in ast.walk(expression))


def narrow(notebook, path):
    """Code lines fit into the window: at most 100 columns."""
    for cell in code_cells(notebook):
        widest = max(map(len, cell.source.splitlines()), default=0)
        if widest > COLUMNS:
            yield f"cell {cell.id} has a line of {widest} columns, more than {COLUMNS}"


def short(notebook, path):
    """At most 35 minutes, and those of the list are the honest ones: 130 words a minute, 20 s a
    code cell, 90 s a guess, 2 minutes a check."""
    estimate = lesson_loop.minutes(notebook)
    if estimate > LONGEST + 0.5:
        yield f"{estimate:.0f} minutes, more than {LONGEST}"
    for lesson in listed_lessons():
        if path.name == lesson.file and abs(lesson.minutes - estimate) > MINUTES_OFF:
            yield f"lessons.toml says {lesson.minutes} minutes; it takes {estimate:.0f}"


def described(notebook, path):
    """A picture that matplotlib drew says in words what it shows: the cell's metadata "alt"."""
    for cell in code_cells(notebook):
        drawn = any(
            "image/png" in output.get("data", {})
            and output.data.get("text/plain", "").startswith("<Figure")
            for output in cell.outputs
        )
        if drawn and len(str(cell.metadata.get("alt", "")).split()) < 5:
            yield f"cell {cell.id} shows a picture without alt text"


def literals(source):
    """The numbers that stand in a cell's code, comments and texts left out."""
    return [
        n.value
        for n in ast.walk(lesson_loop.tree_of(source))
        if isinstance(n, ast.Constant) and type(n.value) in (int, float)
    ]


def printed(cell):
    """All text that a code cell's outputs show."""
    return "\n".join(
        o.text if "text" in o else o.get("data", {}).get("text/plain", "") for o in cell.outputs
    )


RULES = [
    counted,
    quiet,
    named,
    small,
    plain,
    still,
    linked,
    proven,
    used,
    folded,
    covered,
    narrow,
    short,
    described,
]


def timed(notebook, path):
    """A set of exercises says its minutes at the top, to a quarter of an hour."""
    said = re.search(r"\b(\d+) minutes", notebook.cells[0].source)
    estimate = lesson_loop.minutes_of_exercises(notebook)
    if not said:
        yield f"its first cell does not say how many minutes it takes; about {estimate:.0f}"
    elif abs(int(said[1]) - estimate) > 15:
        yield f"says {said[1]} minutes; it takes about {estimate:.0f}"


def led_on(notebook, path):
    """Somebody who learns alone finds the model answers, and what comes next."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    answers = f"](../../solutions/{path.parent.name}/{path.name})"
    if answers not in text:
        yield f"does not lead to the model answers: [...{answers}"
    if not re.search(r"^Next: \[", text, re.M):
        yield "has no line 'Next: [...](...)'"


EXERCISE_RULES = [linked, narrow, timed, led_on]


def read(path):
    """The notebook as it stands; nbformat.read would give a cell with a doubled id a new one
    without a word."""
    return nbformat.v4.reads(path.read_text(encoding="utf-8"))


def faults(notebook, path, rules=RULES):
    return [f"{rule.__name__}: {fault}" for rule in rules for fault in rule(notebook, path)]


def median_code_lines(notebooks):
    """The median number of lines of the code cells, blank ones left out."""
    cells = [cell for notebook in notebooks for cell in code_cells(notebook)]
    return statistics.median(
        sum(bool(line.strip()) for line in cell.source.splitlines()) for cell in cells
    )


def lessons():
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def exercises():
    return sorted((ROOT / "exercises").glob("*/*.ipynb"))


def main(paths):
    found = []
    for path in paths or lessons():
        book = read(path)
        of_a_lesson = path.resolve().parent.name == "notebooks"
        took = lesson_loop.minutes if of_a_lesson else lesson_loop.minutes_of_exercises
        print(f"{path.name}: {took(book):.0f} minutes")
        rules = RULES if of_a_lesson else EXERCISE_RULES
        found += [f"{path.name}: {fault}" for fault in faults(book, path, rules)]
    print("\n".join(found) or "no faults")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
