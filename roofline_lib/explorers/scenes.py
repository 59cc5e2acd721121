"""A scene is a picture in words and marks; here are also the parts that several scenes share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from roofline_lib.explorers.marks import Bar, Drop, Line, Mark, Point, Side
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.precisions import PRECISIONS
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import (
    COMPUTE,
    FAINT,
    INK,
    INTENSITY,
    MEMORY,
    PERFORMANCE,
    ROOM,
    decades,
)


@dataclass(frozen=True)
class Scene:
    """What an explorer shows.

    `axes` is a tuple of Axes, all that the background depends on; `marks` is all that moves;
    `sentences` stand under the picture, with the numbers; `alt` says what the picture shows, for
    those who do not see it. `height` is in pixels, the width is 640. `hidden` names controls that
    mean nothing now.
    """

    axes: tuple[Axes, ...]
    marks: tuple[Mark, ...]
    sentences: tuple[str, ...]
    alt: str
    height: int = 386
    hidden: tuple[str, ...] = ()

    @property
    def readout(self) -> str:
        """The sentences as one paragraph."""
        return " ".join(self.sentences)


# Words


def percent(share: float) -> str:
    """A share of 1 in percent, to three digits."""
    return f"{significant(100 * share)} %"


def plural(number: float, noun: str) -> str:
    """The noun as it stands after that number."""
    return noun if number == 1 else f"{noun}s"


# Lines and bars


def dashed(
    x: tuple, y: tuple, color: str, label: str = "", width: float = 1.3, panel: int = 0
) -> Line:
    """A reference: what could be, or what is held against the picture's own line."""
    return Line(x, y, color, label, width, (5, 4), panel)


@dataclass(frozen=True)
class Share:
    """A share of 1 to be shown as a bar: its name, and what is said of it."""

    name: str
    value: float
    said: str
    color: str = ROOM


def bar_row(shares: Sequence[Share], left: float, right: float, top: float, places: int) -> tuple:
    """Bars side by side between two edges in pixels, of which each takes one of equal `places`."""
    gap = 20
    width = (right - left - gap * (places - 1)) / places
    return tuple(
        Bar(
            share.name,
            (share.value,),
            share.said,
            (left + place * (width + gap), top, width),
            (share.color,),
        )
        for place, share in enumerate(shares)
    )


# Rooflines


def roofline_axes(values_x: Iterable[float] = (), values_y: Iterable[float] = ()) -> Axes:
    """Axes for a roofline: the same for every chip of the catalogue, so that a change of machine
    moves the roof and not the scale; further decades where `values_x` (FLOP/byte) or `values_y`
    (FLOP/s) need them."""
    return Axes(
        decades(values_x, (0.1, 1e5)), decades(values_y, (1e10, 1e16)), INTENSITY, PERFORMANCE
    )


def roofline(
    axes: Axes, peak: float, bandwidth: float, precision: str, level: str = "DRAM"
) -> tuple[Mark, ...]:
    """The marks of one roof: both sides tinted and named, the ridge with a drop line to its number,
    the two roofs labelled. `peak` is in FLOP/s, `bandwidth` in byte/s."""
    ridge, (x0, x1) = peak / bandwidth, axes.xlim
    flat = f"{precision} {quantity(peak, 'FLOP/s', 4)}"
    return (
        Side(x0, ridge, "memory-bound", MEMORY),
        Side(ridge, x1, "compute-bound", COMPUTE),
        Drop(ridge, peak, f"ridge {significant(ridge)}"),
        Line((x0, ridge), (x0 * bandwidth, peak), MEMORY, _slope_label(bandwidth, level), 3),
        Line((ridge, x1), (peak, peak), COMPUTE, flat, 3),
    )


def _slope_label(bandwidth: float, level: str) -> str:
    return f"{level} {quantity(bandwidth, 'byte/s', 4)}"


def no_peak(
    machine: Machine,
    precision: str,
    control: str = "precision",
    among: Sequence[str] = PRECISIONS,
) -> Scene:
    """The Scene where a machine has no peak at the precision asked for: its memory roof alone.

    It lists the precisions that the machine has, and suggests those of them that the `control`
    offers (`among`), or another machine.
    """
    axes, bandwidth = roofline_axes(), machine.bandwidth()
    heights = tuple(bandwidth * x for x in axes.xlim)
    slope = Line(axes.xlim, heights, MEMORY, _slope_label(bandwidth, "DRAM"), 3)
    offered = " or ".join(one for one in among if one in machine.precisions)
    has = ", ".join(machine.precisions)
    return Scene(
        (axes,),
        (slope,),
        (
            f"{machine.name} has no {precision} peak in the catalogue, only {has}.",
            f"Set {control} to {offered}, or choose another machine."
            if offered
            else "Choose another machine.",
        ),
        f"The memory roof of {machine.name}, without a peak.",
    )


# A roofline with two curves beside it


@dataclass(frozen=True)
class Curve:
    """A quantity over a size that a control sets, in a panel of its own: values `y` at sizes `x`,
    and the `value` at the size `at` that is set now, with its label.

    `unit` labels the axis, which spans `usual` (low, high) at least.
    """

    x: tuple
    y: tuple
    color: str
    unit: str
    usual: tuple[float, float]
    at: float
    value: float
    label: str
    point_color: str = INK
    hollow: bool = False

    def axes(self, rect: tuple, xlabel: str = "") -> Axes:
        return Axes((self.x[0], self.x[-1]), decades(self.y, self.usual), xlabel, self.unit, rect)

    def marks(self, panel: int) -> tuple[Mark, ...]:
        return (
            Line(self.x, self.y, self.color, panel=panel),
            Drop(self.at, self.value, "", FAINT, panel),
            Point(
                self.at,
                self.value,
                self.label,
                self.point_color,
                hollow=self.hollow,
                panel=panel,
                bold=True,
            ),
        )


WIDE = 74, 550  # left edge and width of a bar under all three panels


def three_panels(
    intensities: tuple[float, float],
    reached: Iterable[float],
    upper: Curve,
    lower: Curve,
    size: str,
) -> tuple[Axes, Axes, Axes]:
    """A roofline on the left, over `intensities` (FLOP/byte) and as high as what is `reached`
    (FLOP/s) needs; on the right two curves over the same `size`, which the lower one names."""
    roof = Axes(
        intensities, decades(reached, (1e10, 1e16)), INTENSITY, PERFORMANCE, (74, 14, 286, 318)
    )
    return roof, upper.axes((440, 14, 184, 132)), lower.axes((440, 186, 184, 146), size)
