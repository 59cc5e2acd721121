"""Rooflines drawn on given matplotlib axes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import blended_transform_factory

from roofline_lib.arguments import number
from roofline_lib.labels import (
    Covered,
    sample,
    sample_box,
    spot_beside,
    spot_on_roof,
    text_size,
    turned,
)
from roofline_lib.machines import Machine, as_machine
from roofline_lib.model import Work, attainable_performance
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import (
    COMPUTE,
    FAINT,
    INK,
    INTENSITY,
    MEMORY,
    PERFORMANCE,
    decades,
    log_axes,
    settings,
)

_ALONG_SLOPE = (0.4, 0.5, 0.3, 0.6, 0.7, 0.2, 0.8)  # shares of a slope where its label may stand
_DASHES = ("-", "--", "-.", (0, (1, 1)))
# Fonts are the reader's; TeX would read a job's name as its own language.
_OWN, _KEPT = {"text.usetex": False}, ("font.",)

Spot = tuple[float, float]


@dataclass(frozen=True)
class Roofline:
    """What draw_roofline drew, as matplotlib artists: lines by precision, `memory` the common
    slope, one-point lines by name, texts."""

    memory: Line2D
    roofs: dict[str, Line2D]
    ridge_marks: dict[str, Line2D]
    points: dict[str, Line2D]
    labels: tuple[Text, ...]


def draw_roofline(
    ax: Axes,
    machine: Machine | str,
    precisions: str | Iterable[str],
    works: Mapping | None = None,
    level: str = "DRAM",
    *,
    accumulate: str | None = None,
) -> Roofline:
    """Draw a machine's roofs at one or more precisions, each with its ridge point, and named Works
    under the first roof. Gives a Roofline.

    `machine` is a Machine or a name, `precisions` a name or several, `works` a dict name -> Work
    (one number each), at the attainable performance of the first precision; (Work, performance in
    FLOP/s) puts a measured point. `accumulate` ("fp16", "fp32") picks among several peaks of each
    precision. Sets limits, ticks and axis labels of `ax`; the fonts are those of the reader's own
    settings, lines and colours are ours whatever these say.
    """
    if not isinstance(ax, Axes):
        raise ValueError(
            "ax must be the Axes of a figure, such as `figure, ax = plt.subplots()` gives; "
            f"got {ax!r:.80}"
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
    peaks = {precision: machine.peak(precision, accumulate) for precision in precisions}
    spots = {
        name: _spot(name, work, peaks[precisions[0]], bandwidth)
        for name, work in (works or {}).items()
    }
    with settings(_OWN, keep=_KEPT):
        return _draw(ax, peaks, bandwidth, level, spots)


def _spot(name: str, work: object, peak: float, bandwidth: float) -> Spot:
    """(intensity, FLOP/s) of a Work under the roof, or of a (Work, measured FLOP/s)."""
    measured = None
    if isinstance(work, tuple) and len(work) == 2:
        work, measured = work
    if not isinstance(work, Work) or np.ndim(work.intensity):
        raise ValueError(
            f"works[{name!r}] must be a Work of one number each, or (Work, FLOP/s); "
            f"got {work!r:.80}"
        )
    if measured is None:
        return work.intensity, attainable_performance(work.intensity, peak, bandwidth)
    return work.intensity, number(f"works[{name!r}][1]", measured, "FLOP/s", above=0, single=True)


def _draw(
    ax: Axes, peaks: dict[str, float], bandwidth: float, level: str, spots: dict[str, Spot]
) -> Roofline:
    ridges = [peak / bandwidth for peak in peaks.values()]
    xlim, ylim = _limits(peaks.values(), ridges, bandwidth, spots.values())
    log_axes(ax, xlim, ylim, INTENSITY, PERFORMANCE)
    roofs: dict[str, Line2D] = {}
    ridge_marks: dict[str, Line2D] = {}
    texts: dict[float, str] = {}
    for shade, (peak, names) in enumerate(_by_peak(peaks).items()):
        ridge = peak / bandwidth
        intensity = np.array([xlim[0], ridge, xlim[1]])
        height = attainable_performance(intensity, peak, bandwidth)
        (roof,) = ax.plot(intensity, height, color=COMPUTE, lw=2, ls=_DASHES[shade % 4])
        (mark,) = ax.plot([ridge, ridge], [ylim[0], peak], color=FAINT, lw=1, ls=":")
        roofs |= dict.fromkeys(names, roof)
        ridge_marks |= dict.fromkeys(names, mark)
        texts[peak] = f"{', '.join(names)} {quantity(peak, 'FLOP/s', 4)}"
    above, beside = _name_roofs(ax, texts, bandwidth, list(spots.values()))
    labels = [*above, *beside]
    labels += _number_ridges(ax, sorted(peak / bandwidth for peak in texts))
    slope = np.array([xlim[0], max(ridges)])
    (memory,) = ax.plot(slope, bandwidth * slope, color=MEMORY, lw=3)
    slope_label = f"{level} {quantity(bandwidth, 'byte/s', 4)}"
    in_the_way = [ax.transData.transform(list(spots.values()))] if spots else []
    in_the_way += [_covered(text) for text in beside]
    labels.append(_name_slope(ax, memory, slope_label, in_the_way))
    points = {
        name: ax.plot([x], [y], "o", color=INK, ms=7, label=name, zorder=5)[0]
        for name, (x, y) in spots.items()
    }
    lines = _pixels(ax, (memory, *roofs.values()), 4)
    lines += _pixels(ax, ridge_marks.values(), 12)  # a name may rather cross a dotted line
    labels += _name_points(ax, spots, lines, labels)
    return Roofline(memory, roofs, ridge_marks, points, tuple(labels))


def _limits(
    peaks: Iterable[float], ridges: list[float], bandwidth: float, spots: Iterable[Spot]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Whole decades (xlim, ylim) with room for roofs and points."""
    # no marker is cut in half at an edge
    around = [np.multiply(spot, factor) for spot in spots for factor in (0.8, 1.25)]
    xlim = decades([*ridges, *(x for x, _ in around)], (0.1, 1e4))
    highs = [*peaks, *(y for _, y in around), bandwidth * xlim[0], 2 * max(peaks)]
    return xlim, decades(highs)


def _by_peak(peaks: dict[str, float]) -> dict[float, list[str]]:
    """The precisions that share each peak, and so one line."""
    merged: dict[float, list[str]] = {}
    for precision, peak in peaks.items():
        merged.setdefault(peak, []).append(precision)
    return merged


def _letter_size(ax: Axes) -> float:
    """Size in pixels of a text that is not told another one."""
    return matplotlib.rcParams["font.size"] * ax.figure.dpi / 72


@dataclass(frozen=True)
class _OverRoof:
    """A flat roof's label above it, `offset` in points from the roof's right end; `struck` where
    the next higher roof or the slope would go through the label."""

    text: str
    offset: tuple[float, float]
    struck: bool


def _over_roof(
    ax: Axes, texts: dict[float, str], peak: float, bandwidth: float, spots: list[Spot]
) -> _OverRoof:
    """The label of one of the roofs {peak: text}, where none of the `spots` is in its way: points,
    and the feet of other roofs."""
    per_pixel, to_pixels = 72 / ax.figure.dpi, ax.transData.transform
    higher = [other for other in texts if other > peak]
    feet = [(other / bandwidth, peak) for other in higher]
    end = ax.get_xlim()[1]
    right, y = to_pixels((end, peak))
    size = width, height = text_size(texts[peak], _letter_size(ax))
    top = ax.transData.inverted().transform((0, y + height))[1] if higher else peak
    left = to_pixels((top / bandwidth, peak))[0]  # where the slope has passed over the label
    dots = to_pixels([*spots, *feet]) if spots or feet else np.empty((0, 2))
    place, lift = spot_on_roof(size, (left, right), y, dots)
    struck = False
    if higher:
        capitals = y + lift / per_pixel + 0.8 * _letter_size(ax)
        next_roof = to_pixels((end, min(higher)))[1]
        struck = next_roof < capitals or place - width < left
    return _OverRoof(texts[peak], ((place - right) * per_pixel, lift), struck)


def _name_roofs(
    ax: Axes, texts: dict[float, str], bandwidth: float, spots: list[Spot]
) -> tuple[list[Text], list[Text]]:
    """The labels of flat roofs, {peak: text}: those at their roofs, and those that have no room
    there and stand left of the slope. Below its roof stands the lowest one alone."""
    over = {peak: _over_roof(ax, texts, peak, bandwidth, spots) for peak in texts}
    struck = {peak: texts[peak] for peak in sorted(over) if over[peak].struck}
    lowest = min(texts)
    end = ax.get_xlim()[1]
    at_roof: list[Text] = [
        ax.annotate(
            label.text,
            (end, peak),
            label.offset,
            ha="right",
            color=COMPUTE,
            textcoords="offset points",
        )
        for peak, label in over.items()
        if not label.struck
    ]
    lowest = min(texts)
    width = text_size(texts[lowest], _letter_size(ax))[0]
    ridge = ax.transData.transform((lowest / bandwidth, lowest))[0]
    frame = ax.get_window_extent()
    if lowest in struck and (width < frame.x1 - ridge - 8 or width > ridge - frame.x0 - 24):
        at_roof.append(_name_under(ax, struck.pop(lowest), lowest, bandwidth, spots))
    return at_roof, _name_ridges(ax, struck, bandwidth)


def _name_under(ax: Axes, text: str, peak: float, bandwidth: float, spots: list[Spot]) -> Text:
    """A flat roof's label below it, where none of the `spots` is in its way."""
    end = ax.get_xlim()[1]
    (left, y), (right, _) = ax.transData.transform([(peak / bandwidth, peak), (end, peak)])
    dots = ax.transData.transform(spots) if spots else np.empty((0, 2))
    size = text_size(text, _letter_size(ax))
    mirrored = np.column_stack([dots[:, 0], 2 * y - dots[:, 1]])
    place, drop = spot_on_roof(size, (left, right), y, mirrored)
    offset = (place - right) * 72 / ax.figure.dpi, -drop
    return ax.annotate(
        text, (end, peak), offset, ha="right", va="top", color=COMPUTE, textcoords="offset points"
    )


def _name_ridges(ax: Axes, texts: dict[float, str], bandwidth: float) -> list[Text]:
    """The labels of roofs too close for them, {peak: text}, the lowest first: one above the other
    left of the slope, where nothing else is, each led to its own ridge."""
    sizes = [text_size(text, _letter_size(ax)) for text in texts.values()]
    ridges = ax.transData.transform(
        [(peak / bandwidth, peak) for peak in texts] or np.empty((0, 2))
    )
    frame = ax.get_window_extent()
    foot, feet = frame.y0, []
    for (_, height), (_, level) in zip(sizes, ridges, strict=True):
        foot = max(foot, level - height / 2)
        feet.append(foot)
        foot += height
    too_high = max(0.0, foot - frame.y1)
    per_pixel = 72 / ax.figure.dpi
    labels: list[Text] = []
    for (peak, text), (width, height), ridge, low in zip(
        texts.items(), sizes, ridges, feet, strict=True
    ):
        low -= too_high
        performance = ax.transData.inverted().transform((0, low))[1]
        slope = ax.transData.transform((performance / bandwidth, performance))[0]
        right = max(slope - 10, frame.x0 + width + 2)
        offset = (np.array([right, low + height / 2]) - ridge) * per_pixel
        labels.append(
            ax.annotate(
                text,
                (peak / bandwidth, peak),
                offset,
                textcoords="offset points",
                ha="right",
                va="center",
                color=COMPUTE,
                arrowprops={
                    "arrowstyle": "-",
                    "color": FAINT,
                    "lw": 0.8,
                    "relpos": (1, 0.5),
                    "shrinkA": 1,
                    "shrinkB": 2,
                },
            )
        )
    return labels


def _number_ridges(ax: Axes, ridges: list[float]) -> list[Text]:
    """The ridge points' numbers at the feet of their lines, from left to right: one above another
    where they would touch."""
    foot = blended_transform_factory(ax.transData, ax.transAxes)
    ends: list[float] = []  # of each row of numbers, in pixels
    labels: list[Text] = []
    for ridge in ridges:
        text = f" {significant(ridge)}"
        width, height = text_size(text, _letter_size(ax))
        left = ax.transData.transform((ridge, 1))[0]
        row = next((row for row, end in enumerate(ends) if end < left), len(ends))
        ends[row : row + 1] = [left + width]
        labels.append(
            ax.annotate(
                text,
                (ridge, 0.015),
                (0, row * height * 72 / ax.figure.dpi),
                xycoords=foot,
                textcoords="offset points",
                color=FAINT,
                va="bottom",
            )
        )
    return labels


def _name_slope(ax: Axes, memory: Line2D, label: str, in_the_way: list[np.ndarray]) -> Text:
    """The memory roof's label on the line, turned as the line is, where none of the pixels (n, 2)
    `in_the_way` is."""
    ends = ax.transData.transform(memory.get_xydata())
    length = np.hypot(*(ends[1] - ends[0]))
    half = (text_size(label, _letter_size(ax))[0] / 2 + 8) / length
    dots = np.concatenate([np.empty((0, 2)), *in_the_way])
    # how far along the slope what is near it stands, and how far off
    unit = (ends[1] - ends[0]) / length
    along = (dots - ends[0]) @ unit / length
    off = abs((dots - ends[0]) @ (-unit[1], unit[0]))
    on_it = along[off < 30]
    places = [share for share in _ALONG_SLOPE if not np.any(abs(on_it - share) < half)]
    start, end = ax.transAxes.inverted().transform(ends)
    step = end - start
    x, y = start + (places or _ALONG_SLOPE)[0] * step + (0, 0.015)
    return ax.text(
        x,
        y,
        label,
        color=MEMORY,
        ha="center",
        va="bottom",
        rotation=np.degrees(np.arctan2(*step[::-1])),
        rotation_mode="anchor",
        # turns with the slope, also when the axes are resized
        transform_rotates_text=True,
        transform=ax.transAxes,
    )


def _covered(text: Text) -> np.ndarray:
    """Pixels (n, 2) all over a Text that is there already, turned as it is."""
    text.get_window_extent()  # an annotation finds its place here, and gives its leader's too
    box = Text.get_window_extent(text)
    width, height = text_size(text.get_text(), float(text.get_fontsize()) * text.figure.dpi / 72)
    around_origin = sample_box(-width / 2, -height / 2, width, height)
    return turned(around_origin, text.get_rotation()) + (box.p0 + box.p1) / 2


def _pixels(ax: Axes, lines: Iterable[Line2D], step: float) -> list[np.ndarray]:
    """Pixels (n, 2) of each line, one every `step`."""
    return [sample(ax.transData.transform(line.get_xydata()), step) for line in lines]


def _name_points(
    ax: Axes, spots: dict[str, Spot], lines: list[np.ndarray], there: list[Text]
) -> list[Text]:
    """Names beside their points, where neither a line (pixels) nor another point or name is, nor a
    label that is `there`."""
    solid = [_covered(text) for text in there]
    for left, low in ax.transData.transform(list(spots.values())) - 5 if spots else ():
        solid.append(sample_box(left, low, 10, 10))
    frame = ax.get_window_extent()
    labels: list[Text] = []
    for name, spot in spots.items():
        width, height = text_size(name, _letter_size(ax))
        point = ax.transData.transform(spot)
        corners = frame.x0, frame.y0, frame.x1, frame.y1
        x, y, _ = spot_beside(point, (width, height), Covered.of(lines, solid), corners)
        solid.append(sample_box(x, y, width, height))
        offset = (np.array([x, y + height * 0.2]) - point) * 72 / ax.figure.dpi
        labels.append(ax.annotate(name, spot, offset, textcoords="offset points", color=INK))
    return labels
