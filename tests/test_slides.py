"""The lessons as lectures: slides from Jupyter's own metadata, and the plan of lectures."""

import json
from pathlib import Path

import nbformat
import pytest
import slides
from nbconvert import SlidesExporter
from refresh_notebooks import cleaned

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_cell_says_what_it_is_in_a_lecture(path):
    text = path.read_text(encoding="utf-8")
    assert slides.with_slides(text) == text, "run tools/slides.py"
    kinds = [cell["metadata"]["slideshow"]["slide_type"] for cell in json.loads(text)["cells"]]
    assert kinds[0] == "slide"
    assert set(kinds) <= {"slide", "subslide", "fragment", "skip"}


def test_a_refreshed_lesson_keeps_its_slides_and_cell_ids():
    before = nbformat.read(LESSONS[1], as_version=4)
    after = cleaned(nbformat.read(LESSONS[1], as_version=4))
    for one, other in zip(before.cells, after.cells, strict=True):
        assert (one.id, one.metadata.slideshow) == (other.id, other.metadata.slideshow)


def test_slides_show_what_a_lecture_shows():
    notebook = nbformat.read(LESSONS[1], as_version=4)
    page, _ = SlidesExporter(reveal_scroll=True).from_notebook_node(notebook)
    kinds = [cell.metadata.slideshow.slide_type for cell in notebook.cells]
    assert page.count("<section>") == 2 * kinds.count("slide") + kinds.count("subslide")
    assert "Same count, different clock" in page and "import matplotlib" not in page


def test_the_plan_of_lectures_is_what_the_lessons_say():
    assert slides.PLAN.read_text(encoding="utf-8") == slides.plan(), "run tools/slides.py"
