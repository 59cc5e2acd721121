"""How soon our pictures answer, as ratios to an echo and to `interact` measured in the same run;
wide margins, since machines are shared. `make bench` gives the figures themselves."""

import browser as driver
import latency
import pytest

pytestmark = pytest.mark.browser


TRIES = 3


@pytest.fixture(scope="module")
def measurements(chrome):
    """Up to three tables, each measured when it is first asked for: what else the machine does may
    spoil one, a slow picture spoils them all."""
    kept = []

    def tables():
        yield from kept
        while len(kept) < TRIES:
            results = latency.measure(
                ["ours", "echo", "interact"], keys=15, drags=2, config=driver.CONFIG, chrome=chrome
            )
            kept.append(latency.table(results))
            yield kept[-1]

    return tables


def test_a_step_takes_about_as_long_as_an_echo(measurements):
    def is_near(rows):
        ours, roof = rows["ours"], rows["ours, roof"]
        return ours["over_echo"] < 2 and roof["over_echo"] < 2.5 and ours["over_interact"] < 1 / 3

    assert any(map(is_near, measurements())), list(measurements())


def test_a_drag_is_smooth(measurements):
    def is_smooth(rows):
        ours, echo = rows["ours"], rows["echo"]
        late = ours["late"] >= 4 * echo["median_ms"] + 50
        return ours["blank"] == 0 and ours["changed"] > 0.5 * echo["changed"] and not late

    assert any(map(is_smooth, measurements())), list(measurements())
