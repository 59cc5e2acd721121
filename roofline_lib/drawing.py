"""Rooflines on given matplotlib axes, and what every picture of the course shares: colours, ticks,
and where a label finds room."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import findfont, get_font
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import blended_transform_factory

from roofline_lib.arguments import number
from roofline_lib.machines import as_machine
from roofline_lib.model import Work, attainable_performance
from roofline_lib.quantities import quantity, significant

# One colour, one idea, and never colour alone. All are at least 4.5:1 on the card and stay apart
# for the colour-blind.
INK = "#1f2328"  # the learner's own point, words
MEMORY = "#0f52c4"  # bandwidth, bytes, memory-bound
COMPUTE = "#b85010"  # peak, FLOP, compute-bound
ROOM = "#0e562d"  # room that is used and suffices
OVER = "#892f90"  # more than there is
FAINT = "#626a73"  # references and what is not chosen
GRID = "#e3e6e8"
CARD = "#fffefb"
INTENSITY = "arithmetic intensity (FLOP/byte)"
PERFORMANCE = "performance (FLOP/s)"


@dataclass(frozen=True)
class Roofline:
    """What draw_roofline drew, as matplotlib artists: lines by precision, `memory` the common
    slope, one-point lines by name, texts."""

    memory: object
    roofs: dict
    ridge_marks: dict
    points: dict
    labels: tuple


def draw_roofline(ax, machine, precisions, works=None, level="DRAM"):
    """Draw a machine's roofs at one or more precisions, each with its ridge point, and named Works
    under the first roof. Gives a Roofline.

    `machine` is a Machine or a name, `precisions` a name or several, `works` a dict name -> Work
    (one number each), at the attainable performance of the first precision; (Work, performance in
    FLOP/s) puts a measured point. Sets limits, ticks and axis labels of `ax`.
    """
    if not isinstance(ax, Axes):
        raise ValueError(
            f"ax must be the Axes of a figure, such as `figure, ax = plt.subplots()` gives; got {ax!r:.80}"
        )
    if works is not None and not (
        isinstance(works, Mapping) and all(isinstance(name, str) for name in works)
    ):
        raise ValueError(
            f"works must be a dict name -> Work, such as {{'my job': work}}; got {works!r:.80}"
        )
    machine = as_machine(machine)
    precisions = (precisions,) if isinstance(precisions, str) else tuple(precisions)
    if not precisions:
        raise ValueError("precisions must name at least one precision; got none")
    bandwidth = machine.bandwidth(level)
    peaks = {precision: machine.peak(precision) for precision in precisions}
    spots = {
        name: _spot(name, work, peaks[precisions[0]], bandwidth)
        for name, work in (works or {}).items()
    }
    ridges = {precision: peak / bandwidth for precision, peak in peaks.items()}
    # no marker is cut in half at an edge
    around = [np.multiply(spot, factor) for spot in spots.values() for factor in (0.8, 1.25)]
    xlim = decades([*ridges.values(), *(x for x, _ in around)], (0.1, 1e4))
    ylim = decades(
        [*peaks.values(), *(y for _, y in around), bandwidth * xlim[0], 2 * max(peaks.values())]
    )
    log_axes(ax, xlim, ylim, INTENSITY, PERFORMANCE)

    roofs, marks, points, labels, merged = {}, {}, {}, [], {}
    for precision, peak in peaks.items():
        merged.setdefault(peak, []).append(precision)
    for shade, (peak, names) in enumerate(merged.items()):
        ridge = peak / bandwidth
        intensity = np.array([xlim[0], ridge, xlim[1]])
        (roof,) = ax.plot(
            intensity,
            attainable_performance(intensity, peak, bandwidth),
            color=COMPUTE,
            lw=2,
            ls=_DASHES[shade % 4],
        )
        (mark,) = ax.plot([ridge, ridge], [ylim[0], peak], color=FAINT, lw=1, ls=":")
        roofs |= dict.fromkeys(names, roof)
        marks |= dict.fromkeys(names, mark)
        labels.append(
            _name_roof(
                ax,
                f"{', '.join(names)} {quantity(peak, 'FLOP/s', 4)}",
                (ridge, xlim[1]),
                peak,
                spots.values(),
            )
        )
        labels.append(
            ax.text(
                ridge,
                0.015,
                f" {significant(ridge)}",
                color=FAINT,
                va="bottom",
                transform=blended_transform_factory(ax.transData, ax.transAxes),
            )
        )
    slope = np.array([xlim[0], max(ridges.values())])
    (memory,) = ax.plot(slope, bandwidth * slope, color=MEMORY, lw=3)
    start, end = ax.transAxes.inverted().transform(
        ax.transData.transform(np.column_stack([slope, bandwidth * slope]))
    )
    labels.append(
        ax.text(
            *(start + 0.4 * (end - start) + (0, 0.015)),
            f"{level} {quantity(bandwidth, 'byte/s', 4)}",
            color=MEMORY,
            ha="center",
            va="bottom",
            rotation=np.degrees(np.arctan2(*(end - start)[::-1])),
            rotation_mode="anchor",
            # turns with the slope, also when the axes are resized
            transform_rotates_text=True,
            transform=ax.transAxes,
        )
    )
    for name, (x, y) in spots.items():
        (points[name],) = ax.plot([x], [y], "o", color=INK, ms=7, label=name, zorder=5)
    labels += _name_points(
        ax,
        spots,
        [line.get_xydata() for line in (memory, *roofs.values(), *marks.values())],
        labels,
    )
    return Roofline(memory, roofs, marks, points, tuple(labels))


_DASHES = ("-", "--", "-.", (0, (1, 1)))


def _spot(name, work, peak, bandwidth):
    """(intensity, FLOP/s) of a Work under the roof, or of a (Work, measured FLOP/s)."""
    measured = None
    if isinstance(work, tuple) and len(work) == 2:
        work, measured = work
    if not isinstance(work, Work) or np.ndim(work.intensity):
        raise ValueError(
            f"works[{name!r}] must be a Work of one number each, or (Work, FLOP/s); got {work!r:.80}"
        )
    if measured is None:
        return work.intensity, attainable_performance(work.intensity, peak, bandwidth)
    return work.intensity, number(f"works[{name!r}][1]", measured, "FLOP/s", above=0, single=True)


def _name_roof(ax, label, ends, peak, spots):
    """A flat roof's label above it: as far right as no point is in its way; where each place has
    one, at the end and above that too."""
    width, height = text_size(label, matplotlib.rcParams["font.size"] * ax.figure.dpi / 72)
    (left, y), (right, _) = ax.transData.transform([(end, peak) for end in ends])
    points = ax.transData.transform(list(spots)) if spots else np.empty((0, 2))
    x, beside = points[abs(points[:, 1] - y - height / 2) < height / 2 + 8, 0], width + 8
    places = [
        place for place in sorted({right - 4, *(x - 8)}, reverse=True) if place - width > left
    ]
    at, lift = next(
        ((place, 3) for place in places if not np.any((x > place - beside) & (x < place + 8))),
        (right - 4, 8),
    )
    offset = (at - right) * 72 / ax.figure.dpi, lift
    return ax.annotate(
        label, (ends[1], peak), offset, ha="right", color=COMPUTE, textcoords="offset points"
    )


def _covered(text):
    """Points all over a Text that is there already, turned as it is."""
    angle, text_box = np.radians(text.get_rotation()), text.get_window_extent()
    width, height = text_size(text.get_text(), text.get_fontsize() * text.figure.dpi / 72)
    box = sample_box(-width / 2, -height / 2, width, height)
    return (
        box @ np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
        + (text_box.p0 + text_box.p1) / 2
    )


def _name_points(ax, spots, lines, there):
    """Names beside their points, where neither a roof nor another point or name is, nor a label
    that is `there`."""
    taken = [sample(ax.transData.transform(line)) for line in lines] + [
        _covered(text) for text in there
    ]
    taken += [sample_box(*(ax.transData.transform(spot) - 5), 10, 10) for spot in spots.values()]
    size = matplotlib.rcParams["font.size"] * ax.figure.dpi / 72
    box = ax.get_window_extent()
    labels = []
    for name, spot in spots.items():
        width, height = text_size(name, size)
        point = ax.transData.transform(spot)
        x, y = free_spot(point, (width, height), np.vstack(taken), (box.x0, box.y0, box.x1, box.y1))
        taken.append(sample_box(x, y, width, height))
        offset = (np.array([x, y + height * 0.2]) - point) * 72 / ax.figure.dpi
        labels.append(ax.annotate(name, spot, offset, textcoords="offset points", color=INK))
    return labels


def decades(values, at_least=()):
    """The range of whole powers of ten that holds all positive values, and `at_least` (low, high)
    too."""
    values = np.array([v for v in (*values, *at_least) if 0 < v < np.inf])
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()) - 1e-9)
    return float(10.0**low), float(10.0 ** max(high, low + 1))


def log_axes(ax, xlim, ylim, xlabel, ylabel, xlog=True, ylog=True):
    """Quiet axes in powers of ten: one tick and one faint line a decade, no minor ones (they cost
    half of a draw), two spines."""
    ax.set(
        xscale="log" if xlog else "linear", yscale="log" if ylog else "linear", xlim=xlim, ylim=ylim
    )
    for axis, limits, label, log in (
        (ax.xaxis, xlim, xlabel, xlog),
        (ax.yaxis, ylim, ylabel, ylog),
    ):
        # FLOP/s, seconds; tokens and the like stay plain
        prefixed = label != INTENSITY and (limits[1] > 1e6 or limits[1] <= 1)
        if not label:
            axis.set_major_locator(NullLocator())
        elif log:
            low, high = round(np.log10(limits[0])), round(np.log10(limits[1]))
            room = ax.bbox.width if axis is ax.xaxis else ax.bbox.height
            # labels must not meet
            step = int(
                np.ceil(
                    (high - low + 1) * (0.45 if axis is ax.xaxis else 0.2) * ax.figure.dpi / room
                )
            )
            axis.set_major_locator(
                FixedLocator([float(f"1e{e}") for e in range(low, high + 1, step)])
            )
        axis.set_major_formatter(EngFormatter() if prefixed else FuncFormatter(_tick))
        axis.set_minor_locator(NullLocator())
        axis.label.set(text=label, color=INK)
    ax.grid(color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(color=FAINT, labelcolor=INK, length=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)


_RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def _tick(value, _):
    """0.001, ..., 1, ..., 1000, and beyond them 10\u207b\u2074, 10\u2074: short enough for every
    decade to have one."""
    exponent = round(np.log10(value)) if value > 0 else 0
    if -4 < exponent < 4 or not np.isclose(value, 10.0**exponent):
        return significant(value).replace(",", "")
    return "10" + str(exponent).translate(_RAISED)


@lru_cache(maxsize=4096)
def text_size(text, size):
    """(width, height) of a text in matplotlib's own font at `size` pixels: close for browser fonts,
    and on the safe side."""
    font = get_font(findfont("DejaVu Sans"))
    font.set_size(size, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64, 1.25 * size


def sample(points, step=4.0):
    """Points every `step` pixels along a polyline of shape (n, 2): how lines tell labels that they
    are there."""
    points = np.asarray(points, float)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    at = np.append(np.arange(0, along[-1], step), along[-1])
    return np.column_stack([np.interp(at, along, points[:, 0]), np.interp(at, along, points[:, 1])])


def sample_box(x, y, width, height, step=4.0):
    """Points all over a box with its lowest corner at (x, y)."""
    columns, rows = int(width / step) + 1, int(height / step) + 1
    grid = np.empty((rows + 1, columns + 1, 2))
    grid[..., 0] = x + width / columns * np.arange(columns + 1)
    grid[..., 1] = y + height / rows * np.arange(rows + 1)[:, None]
    return grid.reshape(-1, 2)


_AROUND = (
    (1, -1),
    (1, 1),
    (-1, -1),
    (-1, 1),
    (1, 0),
    (-1, 0),
    (0, -1),
    (0, 1),
    (0.4, -1),
    (0.4, 1),
    (-0.4, -1),
    (-0.4, 1),
)
_REACH = np.array([(reach, *around) for reach in (1, 2, 3.5, 5.5) for around in _AROUND])


def free_spot(point, size, taken, frame, clear=9.0):
    """Lowest corner (x, y) of a box of `size` (width, height) near `point` that covers the fewest
    of the `taken` points (n, 2), within `frame` (x0, y0, x1, y1). All in pixels. Near spots are
    tried first, so that a label jumps only where it must."""
    (width, height), reach = size, _REACH[:, 0]
    dx, dy = _REACH[:, 1:].T
    x = (
        point[0]
        + dx * clear * np.where(dy == 0, reach, np.minimum(reach, 1.5))
        - width * (1 - dx) / 2
    )
    y = point[1] + dy * clear * reach - height * (1 - dy) / 2
    outside = sum(
        np.maximum(0, over)
        for over in (frame[0] - x, x + width - frame[2], frame[1] - y, y + height - frame[3])
    )
    # those that any spot could cover
    taken = taken[(abs(taken - point) < (width + 7 * clear, height + 7 * clear)).all(axis=1)]
    inside = [
        (low < mine[:, None]) & (mine[:, None] < low + reach)
        for mine, low, reach in ((taken[:, 0], x - 3, width + 6), (taken[:, 1], y - 1, height + 2))
    ]
    hits = np.count_nonzero(inside[0] & inside[1], axis=0)
    best = np.argmin(40 * (outside > 0) + outside + hits)  # the first of the cheapest
    return x[best], y[best]
