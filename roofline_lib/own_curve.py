"""The learner's own curves, each beside an H200's, as `measure --lab` draws them: how fast a layer
runs with m rows, under the roof that its cores are counted to have and the one that it kept up; and
how fast streams of all sizes run, with the roof of each memory."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from roofline_lib.measuring import NoNominalRoof, Record, load, nominal_roof, sustained_roof
from roofline_lib.measuring.command import measured, parser
from roofline_lib.measuring.record import BANDWIDTH_FAMILIES, Point, ProductShape
from roofline_lib.model import bound
from roofline_lib.quantities import quantity
from roofline_lib.style import CARD, COMPUTE, FAINT, MEMORY
from roofline_lib.surroundings import in_browser

BESIDE = "h200_a1", "bf16"  # the record that stands on the same figure
_COLORS = (MEMORY, COMPUTE)


def draw_own_curve(ax: Axes, own: Record, precision: str = "fp32") -> None:
    """Draw GFLOP/s over m, both logarithmic: the products of `own` (a Record) at `precision` as
    points, the model under the sustained roof as a line, the counted peak dashed where it can be
    counted, and the same of a recorded H200 in bf16. ValueError where the record has no product
    over m at that precision."""
    if not own.select("gemm_m", precision=precision):
        raise ValueError(f"own must hold products over m in {precision}; this record has none")
    name, beside = BESIDE
    curves = ((own, precision, _owner()), (load(name), beside, "H200"))
    for (record, at, who), color in zip(curves, _COLORS, strict=True):
        _draw_curve(ax, record, at, f"{who}, {at}", color)
    ax.set(xlabel="m, rows of the layer", ylabel="GFLOP/s")
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)


def _draw_curve(ax: Axes, record: Record, precision: str, name: str, color: str) -> None:
    points, roof = record.select("gemm_m", precision=precision), sustained_roof(record)
    rows = [_rows(point) for point in points]
    limits = [bound(p.work, roof, precision).attainable_performance / 1e9 for p in points]
    ax.loglog(rows, limits, color=color, lw=1.5)
    ax.loglog(rows, [p.performance / 1e9 for p in points], "o", color=color, ms=5)
    ax.annotate(
        name, (rows[-1], limits[-1]), (0, -20), textcoords="offset points", ha="right", color=color
    )
    try:
        peak = nominal_roof(record).peak(precision) / 1e9
    except NoNominalRoof:
        return
    kind = "sheet" if record.chip.kind == "GPU" else "counted"
    ax.axhline(peak, color=FAINT, lw=1, ls=(0, (5, 4)))
    text = f"{kind} {quantity(1e9 * peak, 'FLOP/s')}"
    ax.annotate(
        text, (rows[0], peak), (0, 3), textcoords="offset points", color=FAINT, fontsize="small"
    )


def draw_streams(ax: Axes, own: Record) -> None:
    """Draw GB/s over the bytes of the arrays, both logarithmic: each stream of `own` (a Record) as
    a point, for each memory that it shows a line as high as its best stream, and a mark at the size
    of each cache; and the same of a recorded H200. Where the machine does not tell its caches there
    is one line, DRAM's, which says so. ValueError where the record has no stream."""
    if not own.select(*BANDWIDTH_FAMILIES):
        raise ValueError("own must hold streams; this record has none")
    curves = ((own, _owner()), (load(BESIDE[0]), "H200"))
    for (record, who), color in zip(curves, _COLORS, strict=True):
        streams = record.select(*BANDWIDTH_FAMILIES)
        sizes = [stream.working_set for stream in streams]
        rates = [stream.bandwidth / 1e9 for stream in streams]
        ax.loglog(sizes, rates, "o", color=color, ms=3, zorder=4)  # no label hides one
        _draw_memories(ax, record, (min(sizes), max(sizes)), who, color)
    ax.set_ylim(bottom=ax.get_ylim()[0] / 6)  # room for the caches' names below the points
    for (record, _), color in zip(curves, _COLORS, strict=True):
        _mark_caches(ax, record, color)
    ax.xaxis.set_major_formatter(EngFormatter("B", sep=" "))
    ax.set(xlabel="bytes of the arrays", ylabel="GB/s")
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)


def _draw_memories(
    ax: Axes, record: Record, ends: tuple[float, float], who: str, color: str
) -> None:
    """A line for each memory that the record's streams show, from where the memory above is full,
    with its bandwidth."""
    first, last = ends
    sizes = {level: size for size, level in record.chip.caches}
    bandwidths = record.sustained.bandwidths
    for level, bandwidth in bandwidths.items():
        end = sizes.get(level, last)
        start = max([first, *(size for size in sizes.values() if size < end)])
        height = bandwidth / 1e9
        ax.plot([start, max(end, start)], [height, height], color=color, lw=2)
        fastest = bandwidth == max(bandwidths.values())
        name = f"{who}, {level}" if fastest else level
        at, side = (end, "right") if fastest or level == "DRAM" else (start, "left")
        unknown = "" if sizes else " (caches unknown)"
        ax.annotate(
            f"{name}{unknown} {quantity(bandwidth, 'byte/s')}",
            (at, height),
            (0, -11 if level == "DRAM" else 4),
            textcoords="offset points",
            ha=side,
            color=color,
            fontsize="small",
            bbox={"fc": CARD, "ec": "none", "pad": 0.4, "alpha": 0.8},
        )


def _mark_caches(ax: Axes, record: Record, color: str) -> None:
    """A dotted line at the size of each cache within the figure, and its name at the foot."""
    foot = ax.get_xaxis_transform()
    left, right = ax.get_xlim()
    for size, level in record.chip.caches:
        if left < size < right:
            ax.axvline(size, color=color, lw=1, ls=":", zorder=1)
            ax.text(
                size,
                0.02,
                f"{level} {quantity(size, 'byte')}",
                color=color,
                fontsize="small",
                rotation=90,
                ha="right",
                va="bottom",
                transform=foot,
            )


def _owner() -> str:
    """Whose record is drawn: in a browser's page it cannot be that of the machine under it."""
    return "recorded CPU" if in_browser() else "this machine"


def _rows(product: Point) -> int:
    assert isinstance(product.shape, ProductShape)
    return int(product.shape.m)


def plateau(record: Record, precision: str = "fp32") -> int:
    """The smallest m at which the record's products over m run at nine tenths of their fastest."""
    products = record.select("gemm_m", precision=precision)
    speed = {_rows(product): product.performance for product in products}
    return min(m for m in speed if speed[m] >= 0.9 * max(speed.values()))


def main(argv: Sequence[str]) -> int:
    """`python -m roofline_lib measure`: measure, write the record, and with --lab draw the curve
    beside it. Gives the exit code."""
    options = parser().parse_args(argv)
    status, record = measured(options, argv)
    if record is None or not options.lab:
        return status
    picture = Path(options.out).with_suffix(".png")
    with matplotlib.rc_context({"figure.dpi": 110}):
        fig = Figure(figsize=(10, 4), layout="constrained")
        curve, streams = fig.subplots(1, 2)
        draw_own_curve(curve, record)
        draw_streams(streams, record)
        fig.savefig(picture)
    most = f"nine tenths of your fastest from m = {plateau(record)}"
    print(f"{picture}: your curve and streams, and an H200's; {most}")
    return status
