"""Every lesson opened in real JupyterLab and run to the end."""

import json

import browser as driver
import pytest

pytestmark = pytest.mark.browser
LESSONS = sorted(path.name for path in (driver.ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_runs_to_the_end(chrome, server, lesson):
    book = driver.Notebook(chrome, server, f"notebooks/{lesson}", width=1000, height=1200)
    assert book.run_all() == []
    stored = json.loads((driver.ROOT / "notebooks" / lesson).read_text())
    shown = sum(
        "Explorer: " in "".join(output.get("data", {}).get("text/plain", ""))
        for cell in stored["cells"]
        for output in cell.get("outputs", ())
    )
    for place in range(shown):
        picture = book.page.locator(".roofline-picture").nth(place)
        picture.locator("svg").scroll_into_view_if_needed()
        assert picture.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
        assert picture.locator("svg").get_attribute("aria-label")
    assert "model not found" not in book.page.locator(".jp-Notebook").inner_text().lower()
    assert book.errors == []
    book.close()
