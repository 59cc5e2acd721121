"""A lesson as a JupyterHub serves it: below a prefix, behind a proxy that carries websockets."""

import sys

import browser as driver
import pytest
from harness.proxy import proxied

from roofline_lib.course.command import CONFIG
from roofline_lib.course.copies import learners_text
from roofline_lib.course.lessons import lessons

pytestmark = pytest.mark.browser
PREFIX = "/user/learner@school.edu/"
SLIDER = ".control-m .noUi-handle"
SENTENCE = ".GemmExplorer .roofline-picture svg + div"


@pytest.fixture
def hub(tmp_path):
    """A learner's copy of the first lesson, served below PREFIX; yields (address, token) of the
    proxy, and the paths outside the prefix that were asked for."""
    source = driver.ROOT / "notebooks" / lessons()[0].file
    copy = tmp_path / source.name
    copy.write_text(learners_text(source, {source: copy}), encoding="utf-8")
    command = [
        *(sys.executable, "-m", "jupyterlab", "--allow-root", f"--config={CONFIG}"),
        f"--ServerApp.root_dir={tmp_path}",
        f"--ServerApp.base_url={PREFIX}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with (
        driver.serving(command, tmp_path, windowing="none") as (behind, token),
        proxied(behind) as (address, lost),
    ):
        yield (address, token), lost


def test_a_lesson_runs_behind_a_proxy(chrome, hub):
    server, lost = hub
    book = driver.Notebook(chrome, server, lessons()[0].file, width=1366, height=900)
    asked = []
    book.page.on("request", lambda request: asked.append(request.url))
    assert book.run_all() == []
    handle, sentence = book.page.locator(SLIDER).first, book.page.locator(SENTENCE).first
    before = sentence.inner_text()
    handle.focus()
    book.page.keyboard.press("ArrowRight")
    after = driver.until(
        lambda: (said := sentence.inner_text()) != before and said, "the slider is answered"
    )
    assert "FLOP/byte" in after
    book.close()
    outside = [url for url in asked if not url.startswith((server[0], "data:", "blob:"))]
    assert (outside, lost, book.errors) == ([], [], [])
