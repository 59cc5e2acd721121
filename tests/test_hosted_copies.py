"""Copies for Colab, Kaggle and the like: what their first cell says, and where their links lead.
That the cell does what it says is seen in test_wheel.py, which has a wheel."""

import json
import re
import sys

import hosted_copies
from harness.repository import PYPROJECT, ROOT
from IPython.core.inputtransformer2 import TransformerManager

from roofline_lib.course.lessons import lessons

PAGES = "https://pages.example/course"


def pip_of(monkeypatch, cell, *loaded):
    """What the cell hands to pip where the library is missing and these modules are loaded."""
    asked = []

    class Shell:
        def run_line_magic(self, name, line):
            asked.append((name, line))

    code = TransformerManager().transform_cell("".join(cell["source"]))
    with monkeypatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        for name in loaded:
            patch.setitem(sys.modules, name, object())
        names = {"get_ipython": Shell}
        exec(code, names)
    ((name, line),) = asked
    return name, line.format(**names).split()


def test_colab_keeps_the_widgets_that_its_page_knows(monkeypatch):
    cell = hosted_copies.install_cell("https://pages.example/a.whl")
    name, elsewhere = pip_of(monkeypatch, cell)
    _, colab = pip_of(monkeypatch, cell, "google", "google.colab")
    assert name == "pip" and set(colab) - set(elsewhere) == {"--no-deps"}
    assert '"https://pages.example/a.whl"' in elsewhere


def test_the_first_cell_is_folded_and_asks_for_what_the_course_asks_for():
    wanted = PYPROJECT["project"]["optional-dependencies"]["course"]
    names = {re.match(r"[\w-]+", one)[0] for one in wanted}
    assert set(hosted_copies.BESIDE) <= names
    metadata = hosted_copies.install_cell("a.whl")["metadata"]
    assert metadata["cellView"] == "form" and metadata["jupyter"]["source_hidden"]


def test_each_link_of_a_copy_leads_to_a_page(tmp_path):
    written = hosted_copies.write_copies(tmp_path, "a.whl", f"{PAGES}/")
    assert len(written) > len(lessons())
    for copy in written:
        cells = json.loads(copy.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        for link in re.findall(r"\]\(([^)\s]+)\)", "\n".join(texts)):
            if link.startswith(f"{PAGES}/"):
                place = link.removeprefix(f"{PAGES}/").partition("#")[0].removesuffix(".html")
                kinds = (place, f"{place}.ipynb", f"{place}.md")
                assert any((ROOT / kind).is_file() for kind in kinds), (copy, link)
            else:
                assert link.startswith(("https://", "#")), (copy, link)
