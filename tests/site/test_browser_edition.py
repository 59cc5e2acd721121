"""The browser edition: what it is built of, that it asks no index, and what it says where a network
keeps Python's files away. That it boots is tested where Pyodide's core is at hand."""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path

import browser as driver
import content
import nbformat
import pytest
from harness.built_site import PYTHON, built
from harness.repository import ROOT, run

from roofline_lib.course.lessons import lessons

IN_KERNEL = """async code => {
  const session = window.jupyterapp.shell.currentWidget.sessionContext;
  await session.ready;
  const future = session.session.kernel.requestExecute({ code, store_history: false });
  let printed = '';
  future.onIOPub = ({ header, content }) => {
    if (header.msg_type === 'stream') printed += content.text;
    if (header.msg_type === 'error') printed += content.ename + ': ' + content.evalue;
  };
  await future.done;
  return printed;
}"""
RUN_ALL = """async () => {
  const { commands, shell } = window.jupyterapp;
  await shell.currentWidget.sessionContext.ready;
  await commands.execute('notebook:run-all-cells');
  return [...shell.currentWidget.content.model.cells].filter(cell => cell.type === 'code')
    .map(cell => ({ id: cell.id, outputs: cell.outputs.toJSON() }));
}"""
READY = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session"


@pytest.fixture(scope="module")
def edition(tmp_path_factory):
    return built("lite", tmp_path_factory) / "lite"


def lock_of(edition):
    return json.loads((edition / "static/packages/pyodide-lock.json").read_text(encoding="utf-8"))


def test_the_lock_names_what_the_site_serves_and_what_the_release_has(edition):
    packages = lock_of(edition)["packages"]
    for name, one in packages.items():
        if "://" not in one["file_name"]:
            wheel = edition / "static" / "packages" / one["file_name"]
            assert hashlib.sha256(wheel.read_bytes()).hexdigest() == one["sha256"], name
        else:
            assert re.search(r"/v[\d.]+/full/[\w.-]+wasm32\.whl$", one["file_name"]), name
        assert {need.lower().replace("_", "-") for need in one["depends"]} <= set(packages)
    assert packages["roofline-lib"]["imports"] == ["roofline_lib"]


def test_nothing_is_looked_for_in_an_index(edition):
    told = json.loads((edition / "jupyter-lite.json").read_text())["jupyter-config-data"]
    (kernel,) = told["litePluginSettings"].values()
    assert kernel["disablePyPIFallback"] is True
    assert kernel["loadPyodideOptions"]["lockFileURL"].startswith("./")


def test_the_core_of_the_lock_and_of_the_kernel_are_one_release(edition):
    told = json.loads((edition / "jupyter-lite.json").read_text())["jupyter-config-data"]
    (kernel,) = told["litePluginSettings"].values()
    release = kernel["pyodideUrl"].rpartition("/")[0]
    outside = [one["file_name"] for one in lock_of(edition)["packages"].values()]
    assert {name.rpartition("/")[0] for name in outside if "://" in name} == {release}
    extension = next(Path(PYTHON).parents[1].glob("share/**/pyodide-kernel-extension"))
    bundled = "".join(path.read_text(errors="ignore") for path in extension.rglob("*.js"))
    assert release in bundled, "the kernel was made for another release of Pyodide"


def test_a_learner_gets_every_notebook_and_links_lead_to_files(edition):
    folder = edition / "files" / content.release()
    for source in content.sources(content.NOTEBOOKS):
        place = folder / source.relative_to(ROOT)
        book = nbformat.read(place, as_version=4)
        assert not any(cell.get("outputs") for cell in book.cells)
        for cell in book.cells:
            if cell.cell_type == "markdown":
                for link in re.findall(r"\]\((?![a-z]+:)([^)\s#]+)", cell.source):
                    assert (place.parent / link).exists(), (source.name, link)


def test_a_cell_that_measures_is_followed_by_what_was_recorded(edition):
    folder = edition / "files" / content.release() / "notebooks"
    for source in content.sources(content.NOTEBOOKS[:1]):
        cells = nbformat.read(folder / source.name, as_version=4).cells
        stored = nbformat.read(source, as_version=4).cells
        timed = [cell for cell in stored if content.TIMED in cell.metadata.get("tags", [])]
        after = {cell.id: later for cell, later in zip(cells, cells[1:], strict=False)}
        assert len(cells) == len(stored) + len(timed)
        for cell in timed:
            note, printed = after[cell.id], "".join(one.get("text", "") for one in cell.outputs)
            assert note.id == f"{cell.id}-recorded" and "Recorded" in note.source
            # what a page says of the machine is recorded itself
            shown = "" if "measuring.measure(" in cell.source else printed.rstrip()
            assert shown in note.source and ("```" in note.source) == bool(shown)


def copy_of_the_course(folder):
    """What a release is made of, in a repository of its own."""
    for pattern in (*content.NOTEBOOKS, *content.PAGES):
        source = sorted(ROOT.glob(pattern))[-1]
        place = folder / source.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
    return folder


def reworded(path):
    """Other words in a notebook, or another byte in what is none."""
    text = path.read_bytes()
    path.write_bytes(text.replace(b"# ", b"# On ", 1) if path.suffix == ".ipynb" else text + b" ")


CHANGES = {
    "a lesson": lambda folder: reworded(next(folder.glob("notebooks/*"))),
    "an exercise": lambda folder: reworded(next(folder.glob("exercises/*/*"))),
    "a model answer": lambda folder: reworded(next(folder.glob("solutions/*/*"))),
    "a page": lambda folder: reworded(next(folder.glob("docs/*.md"))),
    "a table": lambda folder: reworded(next(folder.glob("docs/*.csv"))),
    "a picture": lambda folder: reworded(next(folder.glob("docs/*.png"))),
    "a name": lambda folder: next(folder.glob("docs/*.md")).rename(folder / "docs" / "new.md"),
    "one more": lambda folder: (folder / "docs" / "new.md").write_text(""),
    "one less": lambda folder: next(folder.glob("docs/*.png")).unlink(),
}


@pytest.fixture
def forget():
    """Releases are kept once they are known: not those of this test."""

    def clear():
        content.served.cache_clear()
        content.release.cache_clear()

    yield clear
    clear()


@pytest.mark.parametrize("change", CHANGES)
def test_a_learners_copy_hides_no_change_of_a_release(change, tmp_path, monkeypatch, forget):
    """JupyterLite shows a kept copy under its path, so that whatever changes changes the folder."""
    monkeypatch.setattr(content, "ROOT", copy_of_the_course(tmp_path))
    forget()
    before = content.release()
    forget()
    assert content.release() == before
    CHANGES[change](tmp_path)
    forget()
    assert content.release() != before


def test_what_the_build_adds_to_a_lesson_changes_the_release_too(tmp_path, monkeypatch, forget):
    monkeypatch.setattr(content, "ROOT", copy_of_the_course(tmp_path))
    forget()
    before = content.release()
    monkeypatch.setattr(content, "KERNEL", {"name": "another"})
    forget()
    assert content.release() != before


def login_page(kind):
    return {"status": 200, "content_type": "text/html", "body": "<h1>Log in for loadPyodide</h1>"}


def only_small_files(kind):
    return the_release(kind) if kind == "mjs" else {"status": 403}


def another_file(kind):
    return {"status": 200, "content_type": "text/javascript", "body": "blocked()"}


def the_release(kind):
    core = {"content_type": "text/javascript", "body": "export { loadPyodide };"}
    return {"status": 200, **(core if kind == "mjs" else {"content_type": "application/wasm"})}


@pytest.fixture
def lab(alone, edition):
    """opened(answers): JupyterLab's page in a network that answers so for the release."""
    context = alone.new_context(viewport={"width": 1366, "height": 768})
    with driver.served(edition.parent) as address:

        def opened(answers=None):
            page = context.new_page()
            if answers:
                from_elsewhere = {"access-control-allow-origin": "*"}

                def answer(route):
                    told = answers(route.request.url.rpartition(".")[2])
                    route.fulfill(headers=from_elsewhere, **told)

                page.route(lambda url: not url.startswith(address), answer)
            page.goto(f"{address}/lite/lab/index.html")
            return page

        yield opened
    context.close()


@pytest.mark.parametrize("answers", [None, login_page, only_small_files, another_file])
def test_where_the_network_blocks_python_the_page_says_so(lab, answers):
    page = lab(answers)
    said = page.get_by_role("alert").filter(has_text="Python cannot start here")
    said.wait_for(timeout=60_000)
    assert said.get_by_role("link").get_attribute("href") == "../../index.html"


def test_what_is_said_of_the_network_covers_no_menu_and_can_be_closed(lab):
    page = lab()
    said = page.get_by_role("alert").filter(has_text="Python cannot start here")
    said.wait_for(timeout=60_000)
    menu = page.locator("#jp-MainMenu")
    menu.wait_for(timeout=60_000)
    top, banner = menu.bounding_box(), said.bounding_box()
    assert top["y"] + top["height"] <= banner["y"] and banner["height"] < 120
    said.get_by_role("button", name="Close").click()
    assert said.count() == 0


def test_where_the_network_lets_python_through_nothing_is_said(lab):
    page = lab(the_release)
    page.wait_for_selector("#jp-MainMenu", timeout=60_000)
    assert page.get_by_text("Python cannot start here").count() == 0


def test_it_boots_and_finds_our_wheel_without_an_index(alone, tmp_path):
    """Up to where numpy would come: its compiled wheel lies with Pyodide's release, outside."""
    core = unpacked_core()
    out = tmp_path / "html" / "lite"
    known = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [PYTHON, ROOT / "site/lite/build.py", out, "--pyodide", core]
    assert run(*command, env=known).returncode == 0
    context = alone.new_context()
    page, asked = context.new_page(), []
    context.on("request", lambda request: asked.append(request.url))
    with driver.served(out.parent) as address:
        lesson = f"{content.release()}/notebooks/00_start_here.ipynb"
        page.goto(f"{address}/lite/lab/index.html?path={lesson}")
        page.wait_for_function(READY, timeout=120_000)
        first = page.evaluate(IN_KERNEL, "import ipywidgets, sys; print(sys.platform)")
        ours = page.evaluate(IN_KERNEL, "import roofline_lib")
    assert first.strip() == "emscripten"
    assert ours == "<class 'ModuleNotFoundError'>: No module named 'numpy'"
    assert any("/roofline_lib-" in url for url in asked)
    assert {url.split("/")[2].split(":")[0] for url in asked if "://" in url} == {"127.0.0.1"}
    context.close()


@pytest.fixture(scope="module")
def open_network():
    """A Chromium that reaches what this machine reaches."""
    with driver.browser() as chrome:
        yield chrome


@pytest.mark.online
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.stem)
def test_a_lesson_runs_in_a_page_to_its_end(open_network, edition, lesson):
    """With numpy and matplotlib from Pyodide's release: each cell shows what the lesson stores, but
    for those that time something."""
    stored = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4).cells
    wanted = {cell.id: said_in(cell.outputs) for cell in stored if cell.cell_type == "code"}
    timed = {cell.id for cell in stored if content.TIMED in cell.metadata.get("tags", [])}
    context = open_network.new_context()
    page = context.new_page()
    with driver.served(edition.parent) as address:
        place = f"{content.release()}/notebooks/{lesson.file}"
        page.goto(f"{address}/lite/lab/index.html?path={place}")
        page.wait_for_function(READY, timeout=300_000)
        page.set_default_timeout(900_000)
        cells = {cell["id"]: cell["outputs"] for cell in page.evaluate(RUN_ALL)}
    context.close()
    errors = [one for outputs in cells.values() for one in outputs if one["output_type"] == "error"]
    assert errors == [] and cells.keys() == wanted.keys()
    shown = {name: said_in(outputs) for name, outputs in cells.items()}
    assert [name for name in wanted if name not in timed and shown[name] != wanted[name]] == []


def said_in(outputs):
    """What a cell prints, and what it shows in words; of a picture that it is there."""
    printed = "".join("".join(output.get("text", "")) for output in outputs)
    values = [
        "".join(output["data"].get("text/plain", "")) for output in outputs if "data" in output
    ]
    return printed, values


def test_what_a_cell_says_is_read_alike_from_both():
    stored = [
        {"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "Explorer: a\nb", "image/png": ""},
        },
    ]
    in_a_page = [
        {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
        {"output_type": "stream", "name": "stdout", "text": ["two\n"]},
        {"output_type": "execute_result", "data": {"text/plain": ["Explorer: a\n", "b"]}},
    ]
    assert said_in(stored) == said_in(in_a_page) == ("one\ntwo\n", ["Explorer: a\nb"])


def unpacked_core():
    """Pyodide's core as npm has it, under the checksum of tests/data/pyodide/package-lock.json;
    kept, as pip's packages are."""
    locked = ROOT / "tests" / "data" / "pyodide"
    digest = hashlib.sha256((locked / "package-lock.json").read_bytes()).hexdigest()[:8]
    kept = Path(PYTHON).parents[1] / f"pyodide-{digest}"
    if not kept.exists():
        if not shutil.which("npm"):
            pytest.skip("no npm, which fetches Pyodide's core: `make test-all` installs it")
        unpacking = Path(f"{kept}-{os.getpid()}")
        shutil.copytree(locked, unpacking)
        fetched = run("npm", "ci", "--silent", cwd=unpacking)
        assert fetched.returncode == 0, fetched.stdout + fetched.stderr
        unpacking.rename(kept)
    return kept / "node_modules" / "pyodide"
