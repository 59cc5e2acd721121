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
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import browser as driver  # noqa: E402

import roofline_lib as rl  # noqa: E402

COMMON = """
import ipywidgets as widgets, numpy as np, roofline_lib as rl
from roofline_lib.explorers.controls import log_ladder
chip, sizes = rl.machine("A100 40GB SXM"), log_ladder(1, 65536)
peak, bandwidth = chip.peak("fp32"), chip.bandwidth()
x = np.array([0.1, chip.ridge_point("fp32"), 1e5])
y = rl.attainable_performance(x, peak, bandwidth)
def at(step):
    limit = rl.bound(rl.gemm(sizes[step], 1024, 1024, "fp32"), chip, "fp32")
    return limit.work.intensity, limit.attainable_performance, f"{limit.work.intensity:.1f} FLOP/byte"
def draw(ax, step):
    "The picture that ours shows, with matplotlib; the point and its label."
    ax.loglog(x[:2], y[:2], lw=3)
    ax.loglog(x[1:], y[1:], lw=3)
    ax.axvspan(0.1, x[1], alpha=0.07)
    ax.axvspan(x[1], 1e5, alpha=0.07, color="C1")
    ax.vlines(x[1], 1e10, peak, ls=":")
    for where, text in ((1, "DRAM 1.555 TB/s"), (500, "fp32 19.5 TFLOP/s")):
        ax.annotate(text, (where, min(peak, bandwidth * where)), (0, 6), textcoords="offset points", ha="center")
    for where, height, text in ((1, 4e15, "memory-bound"), (500, 4e15, "compute-bound"), (1.1 * x[1], 1.5e10, f"ridge {x[1]:.3g}")):
        ax.text(where, height, text)
    px, py, text = at(step)
    point, = ax.plot([px], [py], "o")
    note = ax.annotate(text, (px, py), (8, -14), textcoords="offset points")
    ax.set(xlim=(0.1, 1e5), ylim=(1e10, 1e16), xlabel="arithmetic intensity (FLOP/byte)", ylabel="performance (FLOP/s)")
    ax.grid()
    return point, note
def named(name, slider, picture):
    slider.add_class(f"{name}-slider"), picture.add_class(f"{name}-picture")
def new_slider():
    return widgets.IntSlider(30, 0, len(sizes) - 1, layout=widgets.Layout(width="700px"))
"""
PEERS = {
    "ours": """
ours = rl.GemmExplorer(chip, m=sizes[30], precision="fp32")
named("ours", ours.controls["m"].slider, ours.stage.moving)
ours.children[0].layout.grid_template_columns = "1fr"  # as long a slider as the others have
ours""",
    "echo": """
slider, label = new_slider(), widgets.Label("30")
slider.observe(lambda change: setattr(label, "value", str(change.new)), "value")
named("echo", slider, label)
widgets.VBox([slider, label])""",
    "interact": """
%matplotlib inline
import matplotlib.pyplot as plt
def picture(step):
    fig, ax = plt.subplots(figsize=(7, 4.2))
    draw(ax, step)
    plt.show()
moved = widgets.interactive(picture, step=new_slider())
named("interact", moved.children[0], moved.children[-1])
moved""",
    "interact-quiet": """
%matplotlib inline
import matplotlib.pyplot as plt
from roofline_lib.drawing import log_axes
def quiet(step):
    fig, ax = plt.subplots(figsize=(7, 4.2))
    draw(ax, step)
    log_axes(ax, ax.get_xlim(), ax.get_ylim(), ax.get_xlabel(), ax.get_ylabel())
    plt.show()
quiet_moved = widgets.interactive(quiet, step=new_slider())
named("interact-quiet", quiet_moved.children[0], quiet_moved.children[-1])
quiet_moved""",
    "ipympl": """
import ipympl.backend_nbagg as nbagg
from matplotlib.figure import Figure
fig = Figure(figsize=(7, 4.2))
canvas = nbagg.Canvas(fig)
manager = nbagg.FigureManager(canvas, 0)
point, note = draw(fig.add_subplot(), 30)
def move(change):
    px, py, text = at(change.new)
    point.set_data([px], [py]); note.xy = px, py; note.set_text(text)
    canvas.draw_idle()
slider = new_slider(); slider.observe(move, "value")
named("ipympl", slider, canvas)
widgets.VBox([slider, canvas])""",
    "plotly": """
import plotly.graph_objects as go
px, py, text = at(30)
chart = go.FigureWidget([go.Scatter(x=x, y=y, mode="lines"), go.Scatter(x=[px], y=[py], text=[text], mode="markers+text")])
chart.update_layout(width=700, height=420, xaxis=dict(type="log", range=(-1, 5), title="arithmetic intensity (FLOP/byte)"),
                    yaxis=dict(type="log", range=(10, 16), title="performance (FLOP/s)"), showlegend=False)
def move_plotly(change):
    px, py, text = at(change.new)
    chart.data[1].update(x=[px], y=[py], text=[text])
slider = new_slider(); slider.observe(move_plotly, "value")
named("plotly", slider, chart)
widgets.VBox([slider, chart])""",
    "bqplot": """
import bqplot
px, py, text = at(30)
scales = dict(x=bqplot.LogScale(min=0.1, max=1e5), y=bqplot.LogScale(min=1e10, max=1e16))
spot = bqplot.Scatter(x=[px], y=[py], names=[text], scales=scales)
plot = bqplot.Figure(marks=[bqplot.Lines(x=x, y=y, scales=scales), spot], layout=widgets.Layout(width="700px", height="420px"), axes=[
    bqplot.Axis(scale=scales["x"], label="arithmetic intensity (FLOP/byte)"),
    bqplot.Axis(scale=scales["y"], label="performance (FLOP/s)", orientation="vertical")])
def move_bqplot(change):
    px, py, text = at(change.new)
    with spot.hold_sync():
        spot.x, spot.y, spot.names = [px], [py], [text]
slider = new_slider(); slider.observe(move_bqplot, "value")
named("bqplot", slider, plot)
widgets.VBox([slider, plot])""",
}
ROOF = """
roof = rl.GemmExplorer(chip, m=512, precision="fp32")
named("roof", roof.controls["precision"].picker, roof.stage.moving)
roof"""


def measure(names, keys, drags, config, chrome):
    """{name: {"ms": [...], "drags": [{changed, frames, blank, late}]}}; "ours, roof" steps a
    control that moves the roofs."""
    cells = {name: PEERS[name] for name in names} | {"ours, roof": ROOF}
    results = {name: {"ms": [], "drags": []} for name in cells}
    homes = {name: "ours" if name in ("echo", "ours, roof") else name for name in cells}
    with tempfile.TemporaryDirectory() as folder:
        for home in homes.values():
            driver.write_notebook(
                f"{folder}/{home}.ipynb",
                COMMON,
                *(cells[name] for name in cells if homes[name] == home),
            )
        with driver.jupyter(folder, config, windowing="none") as server:
            pages = {
                home: driver.Notebook(chrome, server, f"{home}.ipynb", width=1400, height=1000)
                for home in dict.fromkeys(homes.values())
            }
            for home, book in pages.items():
                if errors := book.run_all():
                    raise SystemExit(f"the notebook of {home} failed: " + "; ".join(errors))
            books = {name: pages[home] for name, home in homes.items()}
            for name in cells.keys() - {"echo"}:  # an exception in a callback is no error of a cell
                books[name].page.locator(picture(name)).locator("img, svg, canvas").first.wait_for()
            book.page.wait_for_timeout(3000)
            with tqdm(
                total=(keys + 2) * len(results) + drags * len(names), unit="step", disable=None
            ) as progress:
                for count in range(keys + 2):  # the first two warm up
                    for name, result in results.items():
                        taken = step_key(books[name], name, count)
                        result["ms"] += [taken] if count > 1 else []
                        progress.update()
                for _ in range(drags):
                    for name in names:
                        ready(
                            books[name],
                            books[name].page.locator(f".{name}-slider .noUi-handle"),
                            picture(name),
                        )
                        results[name]["drags"].append(books[name].drag(f".{name}-slider"))
                        progress.update()
            for book in pages.values():
                book.close()
    return results


def measure_controls(keys, config, chrome):
    """{"echo": [ms], "GemmExplorer m": [ms], ...} for each control that shows at first, each step
    of one followed by one of the echo."""
    names = [name for name in rl._LAZY if name.endswith("Explorer")]
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
            f"{folder}/controls.ipynb", COMMON, PEERS["echo"], *(f"rl.{name}()" for name in names)
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
                    taken = step_control(book, name, key, count), step_key(book, "echo", turn)
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
        return press(
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
        ready(book, list_, shown)
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
    taken = press(book, there, "Space", shown)
    press(book, back, "Space", shown)
    return taken


def step_key(book, name, count):
    """Press a key on a peer's control once; milliseconds."""
    if name == "ours, roof":
        return press(
            book,
            book.page.locator(".roof-slider button").nth((3, 1)[count % 2]),
            "Space",
            picture(name),
        )
    handle = book.page.locator(f".{name}-slider .noUi-handle")
    return press(book, handle, ("ArrowRight", "ArrowLeft")[count // 4 % 2], picture(name))


def picture(name):
    """The selector of a peer's picture."""
    return ".roof-picture" if name == "ours, roof" else f".{name}-picture"


def press(book, control, key, shown):
    """Press a key on a control that has had the focus for a while; milliseconds until the picture
    shows it."""
    ready(book, control, shown)
    return book.step(lambda: book.page.keyboard.press(key))


def ready(book, control, shown):
    """Bring a control and its picture into view, give the control the focus, and wait until the
    page is at rest."""
    book.page.locator(shown).scroll_into_view_if_needed()
    control.scroll_into_view_if_needed()
    control.focus()
    book.watch(shown)
    book.settle(120)


def table(results):
    """One row a peer: median and 95th percentile in ms, as ratios to interact and to the echo,
    frames in a drag."""
    rows = {}
    for name, result in results.items():
        ms = result["ms"]
        rows[name] = {"median_ms": statistics.median(ms), "p95_ms": float(np.percentile(ms, 95))}
        if result.get("drags"):
            for entry in ("changed", "blank", "late"):
                rows[name][entry] = statistics.median(drag[entry] for drag in result["drags"])
    for row in rows.values():
        for other in ("interact", "echo"):
            if other in rows:
                row[f"over_{other}"] = row["median_ms"] / rows[other]["median_ms"]
                row[f"p95_over_{other}"] = row["p95_ms"] / rows[other]["p95_ms"]
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, default=40, help="key presses for each peer")
    parser.add_argument("--drags", type=int, default=3, help="drags of 60 events for each peer")
    parser.add_argument(
        "--only", nargs="+", choices=PEERS, default=list(PEERS), help="these peers only"
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
            table({name: {"ms": ms} for name, ms in results.items()}).items(),
            key=lambda item: item[1]["over_echo"],
        ):
            print(
                f"{name:28}{row['median_ms']:6.0f} ms{row['p95_ms']:6.0f} ms{row['over_echo']:8.2f}{row['p95_over_echo']:10.2f}"
            )
        return
    with driver.browser() as chrome:
        rows = table(measure(arguments.only, arguments.keys, arguments.drags, config, chrome))
    print(
        f"{'':16}{'median':>9}{'p95':>9}{'/interact':>11}{'/echo':>8}{'p95/echo':>10}{'frames':>8}{'blank':>7}{'late':>8}"
    )
    for name, row in rows.items():
        print(
            f"{name:16}{row['median_ms']:6.0f} ms{row['p95_ms']:6.0f} ms{row.get('over_interact', float('nan')):11.3f}"
            f"{row.get('over_echo', float('nan')):8.2f}{row.get('p95_over_echo', float('nan')):10.2f}"
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
