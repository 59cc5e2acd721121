"""What stands in an explorer's place when its Python is gone: after a restart, and in a notebook
that was saved and opened again."""

import json

import browser as driver
import pytest

pytestmark = pytest.mark.browser

# the texts that are seen, and how many pictures are
SEEN = """() => {
  const cell = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')].at(-1);
  const pictures = [...cell.querySelectorAll('.jp-OutputArea img')].filter(image => image.offsetParent);
  const note = [...cell.querySelectorAll('.roofline-note')].filter(note => note.offsetParent)
    .filter(note => getComputedStyle(note, '::after').content.startsWith('url("data:image/png'));
  return { text: cell.querySelector('.jp-Cell-outputWrapper').innerText, pictures: pictures.length + note.length,
           heading: getComputedStyle(cell.querySelector('.roofline-explorer') ?? cell, '::before').content,
           chains: [...cell.querySelectorAll('.jupyter-widgets-disconnected')].filter(node => node.offsetParent)
             .filter(node => getComputedStyle(node, '::before').content.includes('\uf127')).length,
           sliders: [...cell.querySelectorAll('.noUi-base')].filter(track => track.offsetParent).length } }"""
READOUT = "compute-bound. The arithmetic takes at least 110"


def seen_when(book, condition, what):
    """What the page shows of the explorer's cell, once that holds."""

    def seen():
        found = book.page.evaluate(SEEN)
        return found if condition(found) else None

    return driver.until(seen, what)


@pytest.mark.parametrize(
    "classic",
    [
        pytest.param(False, id="JupyterLab"),
        pytest.param(True, id="Notebook 7", marks=pytest.mark.slow),
    ],
)
def test_an_explorer_without_its_python_asks_to_be_run(chrome, server, folder, classic):
    name = f"reopened-{int(classic)}.ipynb"
    driver.write_notebook(folder / name, "import roofline_lib as rl", "rl.GemmExplorer()")
    book = driver.Notebook(chrome, server, name, classic=classic)
    assert book.run_all() == []
    live = seen_when(book, lambda seen: seen["sliders"] == 3, "the explorer is live")
    assert live["pictures"] == 1 and "Run this cell" not in live["text"]
    book.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    book.page.evaluate(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()"
    )
    restarted = seen_when(book, lambda seen: seen["sliders"] == 0, "the controls are gone")
    assert "run this cell" in restarted["heading"] and restarted["chains"] == 0
    assert restarted["pictures"] == 1 and READOUT in restarted["text"]
    book.close()

    book = driver.Notebook(chrome, server, name, classic=classic)
    again = seen_when(book, lambda seen: "Run this cell" in seen["text"], "the note is seen")
    assert again["pictures"] == 1 and READOUT in again["text"]
    assert "not found" not in again["text"]
    assert book.run_all() == []
    live = seen_when(book, lambda seen: seen["sliders"] == 3, "the explorer is live again")
    assert live["pictures"] == 1 and "Run this cell" not in live["text"]
    book.close()

    # a copy that this Jupyter does not trust: the still picture, once
    saved = json.loads((folder / name).read_text())
    saved["cells"][0]["source"] = "import roofline_lib as rl  # sent by somebody"
    (folder / name).write_text(json.dumps(saved))
    book = driver.Notebook(chrome, server, name, classic=classic)
    sent = seen_when(book, lambda seen: seen["pictures"], "a picture is seen")
    assert sent["pictures"] == 1 and "not found" not in sent["text"] and sent["sliders"] == 0
    book.close()
