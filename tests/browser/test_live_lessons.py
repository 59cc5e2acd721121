"""Every lesson in real JupyterLab, as a learner's copy on a small laptop's screen: the answer to a
guess is not in sight of it, and the lesson runs to the end. Each is opened once."""

import browser as driver
import lesson_loop
import nbformat
import notebook_rules as rules
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from prose_numbers import numbers
from refresh_notebooks import NOTEBOOK_METADATA

from roofline_lib.course.copies import learners_text

pytestmark = pytest.mark.browser

# the text of each block that is in sight, as it stands on the screen
IN_SIGHT = """() => {
  const blocks = 'p, li, td, th, h1, h2, h3, pre, summary, .cm-line';
  const inSight = box => box.width && box.height && box.bottom > 0 && box.top < window.innerHeight;
  return [...document.querySelectorAll('.jp-Notebook')].flatMap(book =>
    [...book.querySelectorAll(blocks)]
      .filter(block => block.checkVisibility() && inSight(block.getBoundingClientRect()))
      .map(block => block.innerText)).join('\\n');
}"""
# every cell is in the page, every text rendered
ALL_THERE = """texts => document.querySelectorAll(
  '.jp-Notebook .jp-MarkdownCell .jp-RenderedMarkdown > *:first-child').length === texts"""
TO_THE_TOP = """place => {
  const book = window.jupyterapp.shell.currentWidget.content;
  book.widgets[place].node.scrollIntoView({ block: 'start' });
}"""


@pytest.fixture(scope="module")
def whole(chrome, folder):
    """A server that keeps all cells in the page, so that none appears late."""
    with driver.jupyter(folder, windowing="none") as server:
        yield server


TIMED = "nbval-ignore-output"


def write_copy(source, folder):
    """The copy that a learner gets of this lesson, without what measures for half a minute: nbval
    runs the lessons whole, and those cells show nothing of a page."""
    copy = folder / f"copy_of_{source.name}"
    book = nbformat.reads(learners_text(source, {source: copy}), as_version=4)
    if source.stem == "08_measured":
        timed = [cell for cell in book.cells if TIMED in cell.metadata.get("tags", ())]
        assert timed and "measuring.measure(" in timed[0].source
        book.cells = [cell for cell in book.cells if cell not in timed]
    nbformat.write(book, copy)
    return copy.name


def open_copy(chrome, whole, folder, source):
    """A learner's copy in JupyterLab, with every text rendered."""
    book = driver.Notebook(chrome, whole, write_copy(source, folder), width=1366, height=768)
    texts = sum(cell.cell_type == "markdown" for cell in rules.read(source).cells)
    book.page.wait_for_function(ALL_THERE, arg=texts)
    return book


@pytest.fixture(scope="module", params=rules.lessons(), ids=lambda path: path.stem)
def lesson(request, chrome, whole, folder):
    """(path of the lesson, its copy in the browser), for all tests that look at it."""
    book = open_copy(chrome, whole, folder, request.param)
    yield request.param, book
    book.close()


def answers_in_sight(book, source):
    """For each guess of a lesson, by the name of its cell, the answers that can be read beside
    it."""
    stored = rules.read(source)
    found = {}
    for loop in lesson_loop.loops(stored):
        if loop.answer is None:
            continue
        answers = lesson_loop.folded_answers(stored, loop, rules.printed)
        seen = {number.text for number in numbers(text_beside(book, stored, loop.guess))}
        found[stored.cells[loop.guess].id] = [a.text for a in answers if a.text in seen]
    return found


def text_beside(book, stored, place):
    """All that can be read with the cell at this place at the top of the screen."""
    first = stored.cells[place].source.splitlines()[0]

    def text():
        book.page.evaluate(TO_THE_TOP, place)
        book.painted()
        in_sight = book.page.evaluate(IN_SIGHT)
        return in_sight if first in in_sight else ""

    return driver.until(text, f"{first!r} in sight")


def test_no_answer_is_on_the_screen_of_its_guess(lesson):
    source, book = lesson
    found = answers_in_sight(book, source)
    assert [name for name, answers in found.items() if answers] == [], found


def test_lesson_runs_to_the_end(lesson):
    source, book = lesson
    assert book.run_all() == []
    shown = sum(
        "Explorer: " in "".join(output.get("data", {}).get("text/plain", ""))
        for cell in rules.read(source).cells
        for output in cell.get("outputs", ())
    )
    for place in range(shown):
        picture = book.page.locator(".roofline-picture").nth(place)
        picture.locator("svg").scroll_into_view_if_needed()
        assert picture.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
        assert picture.locator("svg").get_attribute("aria-label")
    assert "model not found" not in book.page.locator(".jp-Notebook").inner_text().lower()
    assert book.errors == []


def small_lesson(path, behind):
    """A guess, its answer, and `behind` it the text that tells."""
    answer = new_code_cell(
        "share = 100 / 120\nprint(share)\nrl.guessed(guess, share, 'percent')", id="answer"
    )
    answer.outputs = [new_output("stream", name="stdout", text="0.833 percent\n")]
    cells = [
        new_markdown_cell("A job takes 120 ms; what share?", id="predict"),
        new_code_cell("guess = ...  # percent", id="guess"),
        answer,
        new_markdown_cell(behind, id="why"),
        new_markdown_cell("\n\n".join(["The end."] * 40), id="rest"),
    ]
    nbformat.write(new_notebook(cells=cells, metadata=NOTEBOOK_METADATA), path)
    return path


FOLDED = "<details><summary>Run, then open</summary>\n\nIt is 0.833 percent.\n\n</details>"


@pytest.mark.parametrize(
    ("behind", "seen"),
    [(FOLDED, []), (FOLDED.replace("<details>", "<details open>"), ["0.833 percent"])],
    ids=["folded", "open"],
)
def test_an_answer_in_the_open_is_seen(chrome, whole, folder, tmp_path, behind, seen):
    lesson = small_lesson(tmp_path / "small.ipynb", FOLDED)
    text = lesson.read_text(encoding="utf-8")
    stored = lesson_loop.folded_answers(
        rules.read(lesson), lesson_loop.loops(rules.read(lesson))[0], rules.printed
    )
    assert [number.text for number in stored] == ["0.833 percent"]
    lesson.write_text(text.replace("<details>", behind.partition("<summary>")[0]), encoding="utf-8")
    book = open_copy(chrome, whole, folder, lesson)
    assert answers_in_sight(book, lesson) == {"guess": seen}
    book.close()
