"""How every picture of the course looks: colours, axes in powers of ten, and their ticks."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, NullLocator

from roofline_lib.quantities import significant

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


@contextmanager
def settings(own: dict, keep: tuple[str, ...] = ()) -> Iterator[None]:
    """Draw under matplotlib's defaults and `own` settings on top, whatever the user has set.

    Settings whose names start with one of `keep` stay as the user has them.
    """
    with matplotlib.rc_context():
        kept = {name: value for name, value in matplotlib.rcParams.items() if name.startswith(keep)}
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(kept | own)
        yield


def decades(values: Iterable[float], at_least: tuple[float, ...] = ()) -> tuple[float, float]:
    """The range (low, high) of whole powers of ten that holds all positive, finite values.

    It holds `at_least` (low, high) too, and is one decade wide or more.
    """
    values = np.array([v for v in (*values, *at_least) if 0 < v < np.inf])
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()) - 1e-9)
    return float(10.0**low), float(10.0 ** max(high, low + 1))


def log_axes(
    ax: Axes,
    xlim: tuple[float, float],
    ylim: tuple[float, float],
    xlabel: str,
    ylabel: str,
    xlog: bool = True,
    ylog: bool = True,
) -> None:
    """Quiet axes in powers of ten: one tick and one faint line a decade, and two spines.

    An axis without a label gets no ticks; `xlog=False` or `ylog=False` makes one linear.
    """
    ax.set(
        xscale="log" if xlog else "linear", yscale="log" if ylog else "linear", xlim=xlim, ylim=ylim
    )
    _mark_axis(ax.xaxis, xlim, xlabel, _tick_step(ax, xlim, 0.45, ax.bbox.width) if xlog else None)
    _mark_axis(ax.yaxis, ylim, ylabel, _tick_step(ax, ylim, 0.2, ax.bbox.height) if ylog else None)
    ax.grid(color=GRID, lw=0.8)
    ax.set_axisbelow(True)
    ax.tick_params(color=FAINT, labelcolor=INK, length=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)


def _tick_step(ax: Axes, limits: tuple[float, float], inches: float, room: float) -> int:
    """Every how many decades a tick stands, so that labels of `inches` do not meet in `room`
    pixels."""
    low, high = _exponents(limits)
    return int(np.ceil((high - low + 1) * inches * ax.figure.dpi / room))


def _exponents(limits: tuple[float, float]) -> tuple[int, int]:
    return round(np.log10(limits[0])), round(np.log10(limits[1]))


def _mark_axis(
    axis: Axis, limits: tuple[float, float], label: str, decade_step: int | None
) -> None:
    """Ticks, their numbers and the label of one axis; `decade_step` is None where it is linear."""
    if not label:
        axis.set_major_locator(NullLocator())
    elif decade_step is not None:
        low, high = _exponents(limits)
        ticks = [float(f"1e{exponent}") for exponent in range(low, high + 1, decade_step)]
        axis.set_major_locator(FixedLocator(ticks))
    # FLOP/s and seconds get a prefix; tokens and the like stay plain
    prefixed = label != INTENSITY and (limits[1] > 1e6 or limits[1] <= 1)
    axis.set_major_formatter(EngFormatter() if prefixed else FuncFormatter(tick_text))
    axis.set_minor_locator(NullLocator())  # minor ticks cost half of a draw
    axis.label.set(text=label, color=INK)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tick_text(value: float, _position: float | None = None) -> str:
    """The number at a tick: 0.001, ..., 1, ..., 1000, and beyond them 10⁻⁴, 10⁴.

    These are short enough for every decade to have one. Matplotlib hands the tick's position too.
    """
    exponent = round(np.log10(value)) if value > 0 else 0
    if -4 < exponent < 4 or not np.isclose(value, 10.0**exponent):
        return significant(value).replace(",", "")
    return "10" + str(exponent).translate(_RAISED)
