"""How soon a picture answers its slider, measured in a real browser: the peers, one step, a table.

benchmarks/sliders.py prints the figures and says what they mean; a test holds wide margins on them.
"""

import statistics
import tempfile

import browser as driver
import numpy as np
from tqdm import tqdm

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
from roofline_lib.style import log_axes
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
