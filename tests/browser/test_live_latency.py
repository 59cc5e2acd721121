"""A drag of a slider shows no blank frame. How soon a step answers is no test but a benchmark
(`make bench`), and that a step sends the moving layer only is held by tests/test_explorers.py."""

import browser as driver
import latency
import pytest

pytestmark = pytest.mark.browser


def test_a_drag_shows_no_blank_frame(chrome):
    results = latency.measure(["ours"], keys=1, drags=2, config=driver.CONFIG, chrome=chrome)
    drags = results["ours"]["drags"]
    assert all(drag["changed"] > 1 for drag in drags), drags
    assert [drag["blank"] for drag in drags] == [0] * len(drags), drags
