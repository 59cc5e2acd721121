"""How soon a picture answers its slider: our explorers beside what others offer, interleaved, in
one browser.

    python benchmarks/sliders.py [--keys 40] [--drags 3] [--default-server] [--json FILE] python
    benchmarks/sliders.py --every-control [--keys 10]      every control of every explorer beside
    the echo

Every peer draws the same roofline with a point that the slider moves, in a notebook and a kernel of
its own, as a learner would have it (in one kernel they change each other: with ipympl loaded, the
same `interact` took 200 ms instead of 300). Latency runs from the key press to the end of the frame
that shows the change; a frame is 17 ms, so medians that lie closer than that are the same.
Milliseconds depend on the machine; the ratios are what counts. `echo` is a slider whose value is
written into a label, in the notebook of ours: the round trip to the kernel and back, without a
picture. `interact` draws the picture anew with `plt.subplots` on matplotlib's own log axes;
`interact-quiet` does so on ours, which have no minor ticks and no powers set as mathematics. In the
JSON file `over_interact` and `over_echo` are our median divided by theirs (smaller is better);
`times_sooner_than_interact` is the first upside down.

With --every-control each control goes there and back between two positions, whose axes have been
drawn by then. A position that needs axes not drawn before takes a draw of matplotlib more, 20 to 50
ms, once.
"""

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import browser as driver  # noqa: E402
import latency  # noqa: E402

import roofline_lib as rl  # noqa: E402
from roofline_lib.explorers import EXPLORERS  # noqa: E402


def measure_controls(keys, config, chrome):
    """{"echo": [ms], "GemmExplorer m": [ms], ...} for each control that shows at first, each step
    of one followed by one of the echo."""
    names = list(EXPLORERS)
    controls = [
        (name, key)
        for name in names
        for explorer in [getattr(rl, name)()]
        for key in explorer.controls
        if key not in explorer.now.hidden
    ]
    results = {"echo": []} | {f"{name} {key}": [] for name, key in controls}
    with tempfile.TemporaryDirectory() as folder:
        driver.write_notebook(
            f"{folder}/controls.ipynb",
            latency.COMMON,
            latency.PEERS["echo"],
            *(f"rl.{name}()" for name in names),
        )
        with driver.jupyter(folder, config, windowing="none") as server:
            book = driver.Notebook(chrome, server, "controls.ipynb", width=1400, height=1000)
            if errors := book.run_all():
                raise SystemExit("the benchmark's notebook failed: " + "; ".join(errors))
            book.page.wait_for_timeout(3000)
            for count in tqdm(range(keys + 2), unit="round", disable=None):  # the first two warm up
                for place, (name, key) in enumerate(controls):
                    # so that the echo's slider goes there and back
                    turn = 4 * (place + count * len(controls))
                    taken = (
                        step_control(book, name, key, count),
                        latency.step_key(book, "echo", turn),
                    )
                    if count > 1:
                        results[f"{name} {key}"].append(taken[0])
                        results["echo"].append(taken[1])
            book.close()
    return results


def step_control(book, name, key, count):
    """Move any control of an explorer by one step, sliders back and forth, others there and back;
    milliseconds."""
    place, shown = (
        book.page.locator(f".{name} .control-{key}"),
        f".{name} .roofline-picture > :nth-child(2)",
    )
    handle, list_, buttons = (place.locator(kind) for kind in (".noUi-handle", "select", "button"))
    if handle.count():
        low, now, high = handle.evaluate(
            "h => [h.ariaValueMin, h.ariaValueNow, h.ariaValueMax].map(parseFloat)"
        )
        return latency.press(
            book,
            handle,
            "ArrowRight" if now == low or now != high and count % 2 else "ArrowLeft",
            shown,
        )
    if list_.count():
        now = list_.evaluate("list => list.selectedIndex")
        there, back = (
            partial(list_.select_option, index=index) for index in (now - 1 if now else 1, now)
        )
        latency.ready(book, list_, shown)
        taken = book.step(there)
        book.step(back)
        return taken
    now = buttons.evaluate_all(
        "buttons => buttons.findIndex(button => button.classList.contains('mod-active'))"
    )
    there, back = (
        (buttons.nth(now - 1 if now else 1), buttons.nth(now))
        if buttons.count()
        else (place.locator("input"),) * 2
    )
    taken = latency.press(book, there, "Space", shown)
    latency.press(book, back, "Space", shown)
    return taken


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=40, help="key presses for each peer")
    parser.add_argument("--drags", type=int, default=3, help="drags of 60 events for each peer")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=latency.PEERS,
        default=list(latency.PEERS),
        help="these peers only",
    )
    parser.add_argument(
        "--default-server", action="store_true", help="without the server settings of `make lab`"
    )
    parser.add_argument(
        "--every-control",
        action="store_true",
        help="every control of our own explorers, beside the echo only",
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures here")
    arguments = parser.parse_args()
    if not driver.chromium():
        raise SystemExit(driver.HOW)
    config = None if arguments.default_server else driver.CONFIG
    if arguments.every_control:
        with driver.browser() as chrome:
            results = measure_controls(arguments.keys, config, chrome)
        print(f"{'':28}{'median':>9}{'p95':>9}{'/echo':>8}{'p95/echo':>10}")
        for name, row in sorted(
            latency.table({name: {"ms": ms} for name, ms in results.items()}).items(),
            key=lambda item: item[1]["over_echo"],
        ):
            print(
                f"{name:28}{row['median_ms']:6.0f} ms{row['p95_ms']:6.0f} ms"
                f"{row['over_echo']:8.2f}{row['p95_over_echo']:10.2f}"
            )
        return
    with driver.browser() as chrome:
        rows = latency.table(
            latency.measure(arguments.only, arguments.keys, arguments.drags, config, chrome)
        )
    print(
        f"{'':16}{'median':>9}{'p95':>9}{'/interact':>11}{'/echo':>8}{'p95/echo':>10}{'frames':>8}{'blank':>7}{'late':>8}"
    )
    for name, row in rows.items():
        print(
            f"{name:16}{row['median_ms']:6.0f} ms{row['p95_ms']:6.0f} ms"
            f"{row.get('over_interact', float('nan')):11.3f}"
            f"{row.get('over_echo', float('nan')):8.2f}"
            f"{row.get('p95_over_echo', float('nan')):10.2f}"
            + (
                f"{row['changed']:8.0f}{row['blank']:7.0f}{row['late']:5.0f} ms"
                if "changed" in row
                else ""
            )
        )
    if arguments.json and {"ours", "echo", "interact"} <= set(rows):
        ours = rows["ours"]
        record = {
            "over_interact": ours["over_interact"],
            "over_echo": ours["over_echo"],
            "frames_per_drag": ours["changed"],
            "echo_frames_per_drag": rows["echo"]["changed"],
            "times_sooner_than_interact": 1 / ours["over_interact"],
            "p95_over_echo": ours["p95_over_echo"],
            "blank_frames_per_drag": ours["blank"],
            "keys": arguments.keys,
            "drags": arguments.drags,
            "date": time.strftime("%Y-%m-%d"),
            "peers": rows,
        }
        Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
