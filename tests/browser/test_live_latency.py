"""How soon our pictures answer, as ratios to an echo and to `interact` measured in the same run;
wide margins, since machines are shared. `make bench` gives the figures themselves."""

import browser as driver
import latency
import pytest

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def rows(chrome):
    results = latency.measure(
        ["ours", "echo", "interact"],
        keys=15,
        drags=2,
        config=driver.CONFIG,
        chrome=chrome,
    )
    return latency.table(results)


def test_a_step_takes_about_as_long_as_an_echo(rows):
    assert rows["ours"]["over_echo"] < 2 and rows["ours, roof"]["over_echo"] < 2.5
    assert rows["ours"]["over_interact"] < 1 / 3


def test_a_drag_is_smooth(rows):
    assert rows["ours"]["blank"] == 0
    assert rows["ours"]["changed"] > 0.5 * rows["echo"]["changed"]
    assert rows["ours"]["late"] < 4 * rows["echo"]["median_ms"] + 50
