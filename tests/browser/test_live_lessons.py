"""Every lesson opened in real JupyterLab and run to the end."""

import browser as driver
import pytest

pytestmark = pytest.mark.browser
LESSONS = sorted(path.name for path in (driver.ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_runs_to_the_end(chrome, server, folder, lesson):
    book = driver.Notebook(chrome, server, f"notebooks/{lesson}", width=1000, height=1200)
    assert book.run_all() == []
    shown = (folder / "notebooks" / lesson).read_text().count('"explorer"')
    for place in range(shown):
        book.page.locator(".roofline-picture svg").nth(place).scroll_into_view_if_needed()
        picture = book.page.locator(".roofline-picture").nth(place)
        assert picture.locator("img").evaluate("image => image.complete && image.naturalWidth > 0")
        assert picture.locator("svg").get_attribute("aria-label")
    assert "model not found" not in book.page.locator(".jp-Notebook").inner_text().lower()
    assert book.errors == []
    book.close()
