"""Lesson 7: measured matrix products under the sheet's roof and the sustained one, and what
explains the gap of one of them."""

import numpy as np

from roofline_lib.explorers.base import Explorer, Scene, roofline, roofline_axes
from roofline_lib.explorers.controls import Choice, Number
from roofline_lib.explorers.marks import Bar, Gap, Line, Point
from roofline_lib.measuring.record import Record, load, recorded, validate
from roofline_lib.measuring.roofs import nominal_roof, sustained_roof
from roofline_lib.measuring.verdicts import explain, launch_floor, verdict
from roofline_lib.model import bound
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, ROOM

_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
_FAMILIES = {"over m, one layer": "gemm_m", "over n = m = k": "gemm_n"}
_NAMES = {
    "clock": "clock under load",
    "bandwidth": "bandwidth kept up",
    "waves": "SMs with a tile",
    "latency": "time not spent waiting",
    "rest": "all the rest",
}
_LADDER = [
    mantissa << shift
    for shift in range(15)
    for mantissa in ((2, 3) if shift else (1, 2, 3))
    if mantissa << shift <= 16384
]


class MeasuredExplorer(Explorer):
    """The recorded products of one machine: what the model allows (hollow), what was measured
    (filled), and the factors between the two.

    `record` is the name of a record, the path of one (.json), or a Record such as `measure()` gives;
    `precision` one that it has; `family` is "over m, one layer" or "over n = m = k"; `m` is m or n,
    of which the nearest recorded size is shown. Controls: the arguments' names.
    """

    def __init__(self, record="h200_a1", precision="bf16", family="over m, one layer", m=1):
        records = {name: found for name in recorded() if (found := load(name)).points}
        if isinstance(record, str) and record.endswith(".json"):
            records, record = {"this record": load(record)} | records, "this record"
        elif isinstance(record, Record):
            records, record = {"this record": validate(record)} | records, "this record"
        super().__init__(
            Choice("record", record, records),
            Choice("precision", precision, _PRECISIONS),
            Choice("family", family, _FAMILIES),
            Number("m", m, 1, 16384, "rows", "m or n (rows)", ladder=_LADDER),
        )

    @staticmethod
    def scene(record, precision, family, m):
        found = record.select(family, precision=precision)
        if not found:
            return _nothing(record, precision)
        kept_up = sustained_roof(record)
        roof, unknown = _sheet(record, kept_up)
        shown = min(found, key=lambda p: abs(np.log(p.shape.m / m)))
        places = [
            (
                p.work.intensity,
                bound(p.work, roof, precision).attainable_performance,
                p.performance,
            )
            for p in found
        ]
        x, reach, rate = places[found.index(shown)]
        axes = roofline_axes(
            [x for x, _, _ in places], [2 * roof.peak(precision), min(y for _, _, y in places) / 2]
        )
        ridge, edges = kept_up.ridge_point(precision), axes.xlim
        marks = (
            *roofline(axes, roof.peak(precision), roof.bandwidth(), precision),
            Line(
                (edges[0], ridge),
                tuple(kept_up.bandwidth() * at for at in (edges[0], ridge)),
                MEMORY,
                "",
                1.3,
                (5, 4),
            ),
            Line(
                (ridge, edges[1]),
                (kept_up.peak(precision),) * 2,
                COMPUTE,
                f"kept up {quantity(kept_up.peak(precision), 'FLOP/s')}",
                1.3,
                (5, 4),
            ),
            *(Point(at, allowed, "", FAINT, hollow=True, radius=4) for at, allowed, _ in places),
            *(Point(at, got, "", FAINT, radius=4) for at, _, got in places),
            Gap(x, *sorted((rate, reach)), _percent(rate / reach)),
            Point(x, reach, "", INK, hollow=True),
            Point(x, rate, f"measured, {_side(family)} = {shown.shape.m}", INK, bold=True),
        )
        factors = explain(shown, roof, kept_up, launch_floor(record, precision))
        bars = {_NAMES[name]: share for name, share in factors.items()} | {
            "all five multiplied": rate / reach
        }
        marks += tuple(
            Bar(
                name,
                (share,),
                significant(share),
                (74 + 290 * (i % 2), 386 + 42 * (i // 2), 258),
                (ROOM,),
            )
            for i, (name, share) in enumerate(bars.items())
        )
        alt = (
            f"Roofline of {roof.name} in {precision} with its sustained roof dashed below it; {len(found)} products, each as the model "
            "allows it (hollow) and as measured (filled). Under it a bar for each factor of the gap."
        )
        asked, size = _side(family), shown.shape.m
        instead = (
            ""
            if size == m
            else f"{asked} = {m} was not recorded: this is the nearest that was, {asked} = {size}. "
        )
        return Scene(
            (axes,), marks, instead + _readout(record, shown, roof, factors) + unknown, alt, 520
        )


def _sheet(record, kept_up):
    """The roof to hold the record against, and what to say where the catalogue does not know the
    machine."""
    try:
        return nominal_roof(record), ""
    except KeyError:
        return (
            kept_up,
            f" The catalogue has no {record.chip.name}: this is the roof that it kept up.",
        )


def _readout(record, p, roof, factors):
    shape, most = p.shape, min(factors, key=factors.get)
    said = (
        f"[{shape.m}, {shape.k}] @ [{shape.k}, {shape.n}] in {p.precision} on {record.chip.name}: "
        f"measured {quantity(p.performance, 'FLOP/s')} in {quantity(p.seconds, 's')}, "
        f"{verdict(p, roof)}."
    )
    if p.performance < bound(p.work, roof, p.precision).attainable_performance:
        said += f" Most of the gap: {_NAMES[most]}, {significant(factors[most])}."
    if p.clock is not None:
        held = ", held down by the power limit" if (p.power_capped or 0) > 0.5 else ""
        said += f" The clock stood at {quantity(p.clock, 'Hz')}{held}."
    return said


def _nothing(record, precision):
    there = dict.fromkeys(p.precision for p in record.select(*_FAMILIES.values()))
    said = f"The record of {record.chip.name} has no products in {precision}. It has {', '.join(there)}."
    return Scene((roofline_axes(),), (), said, "Axes of a roofline, empty.")


def _side(family):
    return "m" if family == "gemm_m" else "n"


def _percent(share):
    return f"{significant(100 * share)} %"
