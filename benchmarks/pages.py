"""How soon an explorer on the web pages answers its slider: from the key press to the end of the
frame that shows the change, beside a bare slider on the same page that writes a text.

    make site; python benchmarks/pages.py [--keys 40] [--slow 4]

Each control of the front page's explorer takes its turn, and after each step the bare slider. A
frame is 17 ms, so medians closer than that are the same. `--slow 4` has Chromium hold the processor
to a quarter, as a phone's might be. Milliseconds depend on the machine; the ratio is what counts.
"""

import argparse
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import browser as driver  # noqa: E402

SITE = ROOT / "site" / "_build" / "html"
PICTURE = "figure.explorer.live .layers"
BARE = """() => {
  const make = (kind, values) => Object.assign(document.createElement(kind), values);
  const slider = make("input", { type: "range", id: "bare-slider" });
  const text = make("p", { id: "bare-text", textContent: "50" });
  slider.addEventListener("input", () => { text.textContent = slider.value });
  document.querySelector("figure.explorer").before(slider, text);
}"""


def key_step(page, slider, picture: str, turn: int) -> float:
    """Milliseconds of one key on a slider, there and back by turns."""
    slider.focus()
    driver.watch(page, picture)
    page.wait_for_timeout(100)  # what the watch itself draws is over
    return driver.step(page, lambda: page.keyboard.press(("ArrowLeft", "ArrowRight")[turn % 2]))


def measured(page, keys: int) -> dict[str, list[float]]:
    """{control or "bare": [ms of each step]}; the first two steps of each warm up."""
    page.wait_for_selector(PICTURE)
    page.evaluate(BARE)
    sliders = {
        slider.get_attribute("id"): slider
        for slider in page.locator("figure.explorer.live input[type=range]").all()
    }
    bare = page.locator("#bare-slider")
    steps: dict[str, list[float]] = {"bare": [], **{name: [] for name in sliders}}
    for turn in range(keys + 2):
        for name, slider in sliders.items():
            steps[name].append(key_step(page, slider, PICTURE, turn))
            steps["bare"].append(key_step(page, bare, "#bare-text", len(steps["bare"])))
    return {name: ms[2:] for name, ms in steps.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=40, help="key presses for each control")
    parser.add_argument("--slow", type=float, default=1, help="hold the processor to 1/SLOW")
    arguments = parser.parse_args()
    if not driver.chromium():
        raise SystemExit(driver.HOW)
    if not (SITE / "index.html").exists():
        raise SystemExit("no pages yet: run `make site` first")
    with driver.browser() as chrome, driver.served(SITE) as address:
        page = chrome.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{address}/index.html")
        page.context.new_cdp_session(page).send(
            "Emulation.setCPUThrottlingRate", {"rate": arguments.slow}
        )
        found = measured(page, arguments.keys)
    bare = statistics.median(found["bare"])
    print(f"{'':24}{'median':>9}{'p95':>9}{'/bare':>8}")
    for name, ms in found.items():
        median, late = statistics.median(ms), statistics.quantiles(ms, n=20)[-1]
        print(f"{name:24}{median:6.0f} ms{late:6.0f} ms{median / bare:8.2f}")


if __name__ == "__main__":
    main()
