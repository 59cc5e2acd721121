"""Measured matrix products: the share of attainable that each reaches, where it stands under the
sheet's roof and the sustained one, and what explains the gap of one of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, NamedChoice, Number
from roofline_lib.explorers.marks import Bar, Gap, Line, Mark, Point
from roofline_lib.explorers.scenes import Scene, dashed, percent, roofline, roofline_axes
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.measuring.record import Point as Timed
from roofline_lib.measuring.record import ProductShape, Record, load, recorded, validate
from roofline_lib.measuring.roofs import NoNominalRoof, nominal_roof, sustained_roof
from roofline_lib.measuring.verdicts import explain, launch_floor, verdict
from roofline_lib.model import bound
from roofline_lib.precisions import PRECISIONS
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, OVER, ROOM

_FAMILIES = {"gemm_m": "over m, one layer", "gemm_n": "over n = m = k"}
_NAMES = {
    "clock": "clock under load",
    "bandwidth": "bandwidth kept up",
    "waves": "SMs with a tile",
    "latency": "time not spent waiting",
    "rest": "all the rest",
}
# (left, top, width, height) of the two panels, in pixels
_LEFT, _RIGHT = (74, 14, 250, 318), (404, 14, 220, 318)
_NONE = "none"
_LADDER = [1, *(mantissa << shift for shift in range(13) for mantissa in (2, 3)), 16384]


class RecordChoice(NamedChoice):
    """A record that comes with the library, by its name, or one of the reader's own; with
    `or_none` none as well."""

    kind = Record

    def __init__(self, name: str, value: Record | str, or_none: bool = False):
        records = {name: found for name in recorded() if (found := load(name)).select(*_FAMILIES)}
        super().__init__(name, value, ({_NONE: None} if or_none else {}) | records)

    @staticmethod
    def name_of(made):
        return "this record"

    @staticmethod
    def look_up(name):
        return name


class MeasuredExplorer(Explorer):
    """The recorded products of one machine: the share of attainable that each reaches, over its
    size; what the model allows (hollow) and what was measured (filled) on the roofline; and the
    factors between the two.

    `record` is the name of a record, the path of one (.json), or a Record such as `measure()`
    gives; `precision` one that it has; `family` is "gemm_m" (over m, one layer) or "gemm_n" (over
    n = m = k); `m` is m or n, of which the nearest recorded size is shown. `beside` is a second
    record, drawn as squares under the roof that it kept up, or "none". Controls: the arguments'
    names.
    """

    def __init__(
        self,
        record: Record | str = "h200_a1",
        precision: str = "bf16",
        family: str = "gemm_m",
        m: int = 1,
        beside: Record | str = _NONE,
    ):
        records = RecordChoice("record", _read(record))
        super().__init__(
            records,
            RecordChoice("beside", _read(beside), or_none=True),
            Choice("precision", precision, _recorded_precisions(records.options.values())),
            Choice("family", family, tuple(_FAMILIES), shown=_FAMILIES),
            Number("m", m, 1, 16384, "rows", "m or n (rows)", ladder=_LADDER),
        )

    @staticmethod
    def scene(record, precision, family, m, beside):
        timed = record.select(family, precision=precision)
        if not timed:
            return _nothing(record, precision)
        if "DRAM" not in record.sustained.bandwidths:
            return _no_slope(record)
        found = figures(record, precision, timed, m)
        if beside is not None:
            found = replace(found, beside=_beside(beside, precision, family, m))
        axes = axes_for(found)
        return Scene(axes, marks(found, axes), sentences(found), alt(found), 520)


def _read(record: Record | str) -> Record | str:
    """A record of the reader's own read and checked, the name of another as it is."""
    if isinstance(record, Record):
        return validate(record)
    if isinstance(record, str) and record.endswith(".json"):
        return load(record)
    return record


def _recorded_precisions(records: Iterable[Record]) -> list[str]:
    """The precisions that any of these records has products in."""
    there = {point.precision for record in records for point in record.select(*_FAMILIES)}
    return [precision for precision in PRECISIONS if precision in there]


@dataclass(frozen=True)
class Product:
    """One timed product: where it lies (FLOP/byte), what the nominal and the sustained roof allow
    and what was measured, in FLOP/s."""

    timed: Timed
    intensity: float
    allowed: float
    kept_up: float
    measured: float

    @property
    def side(self) -> str:
        """The size that its family goes over, as the sentences name it."""
        return "m" if self.timed.family == "gemm_m" else "n"

    @property
    def size(self) -> int:
        return self.shape.m

    @property
    def shape(self) -> ProductShape:
        """Its sizes; the records of its families have no other kind of shape."""
        return cast(ProductShape, self.timed.shape)

    @property
    def of_allowed(self) -> float:
        return self.measured / self.allowed


@dataclass(frozen=True)
class Figures:
    """The products of one sweep under two roofs, the nominal and the sustained one.

    `shown` is the product nearest to the size `asked`, `factors` explain its gap. `why_not_nominal`
    is empty, or says why the sustained roof stands in for the nominal one. `beside` are the figures
    of a second record, and None where none is wanted.
    """

    record: Record
    precision: str
    asked: int
    nominal: Machine
    sustained: Machine
    why_not_nominal: str
    products: tuple[Product, ...]
    shown: Product
    factors: dict[str, float]
    beside: "Figures | Without | None" = None

    @property
    def second(self) -> "Figures | None":
        """The second record's figures, where it has some."""
        return self.beside if isinstance(self.beside, Figures) else None


@dataclass(frozen=True)
class Without:
    """A second record that has nothing to show here, and why."""

    why: str


def _beside(record: Record, precision: str, family: str, asked: int) -> Figures | Without:
    timed = record.select(family, precision=precision)
    if not timed:
        return Without(f"{record.chip.name} has no products in {precision}")
    if "DRAM" not in record.sustained.bandwidths:
        return Without(f"{record.chip.name} has no stream that surely came from DRAM")
    return figures(record, precision, timed, asked)


def figures(record: Record, precision: str, timed: list[Timed], asked: int) -> Figures:
    sustained = sustained_roof(record)
    nominal, why_not_nominal = _nominal_or_sustained(record, precision, sustained)
    products = tuple(
        Product(
            point,
            point.work.intensity,
            bound(point.work, nominal, precision).attainable_performance,
            bound(point.work, sustained, precision).attainable_performance,
            point.performance,
        )
        for point in timed
    )
    shown = min(products, key=lambda product: abs(np.log(product.size / asked)))
    floor = launch_floor(record, precision)
    factors = explain(shown.timed, nominal, sustained, floor)
    return Figures(
        record, precision, asked, nominal, sustained, why_not_nominal, products, shown, factors
    )


def _nominal_or_sustained(
    record: Record, precision: str, sustained: Machine
) -> tuple[Machine, str]:
    """The nominal roof and "", or the sustained one and why it stands in."""
    try:
        nominal = nominal_roof(record)
    except NoNominalRoof as error:
        return sustained, str(error)
    if precision not in nominal.precisions:
        return sustained, f"no {precision} peak of {nominal.name} is known"
    return nominal, ""


def axes_for(found: Figures) -> tuple[Axes, Axes]:
    """The share of attainable over size, and the roofline."""
    both = [found] if found.second is None else [found, found.second]
    products = [product for one in both for product in one.products]
    sizes = [product.size for product in products]
    most = max(product.of_allowed for product in products)
    shares = Axes(
        (min(sizes) / 1.5, max(sizes) * 1.5),
        (0.0, 1.1 * max(1.0, most)),
        found.shown.side,
        "share of attainable",
        _LEFT,
        ylog=False,
    )
    slowest = min(product.measured for product in products)
    roof = roofline_axes(
        [product.intensity for product in products],
        [*(2 * one.nominal.peak(found.precision) for one in both), slowest / 2],
    )
    return shares, replace(roof, rect=_RIGHT)


def marks(found: Figures, axes: tuple[Axes, Axes]) -> tuple[Mark, ...]:
    return (*_share_marks(found, axes[0]), *_roofline_marks(found, axes[1]), *_bars(found))


def _share_marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    """What the model allows is 1; the distance down to a point is the gap."""
    shown = found.shown
    sizes = tuple(product.size for product in found.products)
    kept_up = tuple(product.kept_up / product.allowed for product in found.products)
    return (
        Line(axes.xlim, (1.0, 1.0), COMPUTE, "what the model allows", 3),
        dashed(sizes, kept_up, FAINT, "roof kept up"),
        *_squares(found, lambda product: (product.size, product.of_allowed)),
        *(Point(p.size, p.of_allowed, "", FAINT, radius=4) for p in found.products),
        Gap(shown.size, min(shown.of_allowed, 1.0), max(shown.of_allowed, 1.0), ""),
        Point(shown.size, shown.of_allowed, percent(shown.of_allowed), INK, bold=True),
    )


def _roofline_marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    peak, bandwidth = found.nominal.peak(found.precision), found.nominal.bandwidth()
    shown = found.shown
    drawn = (
        *roofline(axes, peak, bandwidth, found.precision),
        *_sustained_marks(found, axes),
        *([] if found.second is None else _sustained_marks(found.second, axes)),
        *_squares(found, lambda product: (product.intensity, product.measured)),
        *(Point(p.intensity, p.allowed, "", FAINT, hollow=True, radius=4) for p in found.products),
        *(Point(p.intensity, p.measured, "", FAINT, radius=4) for p in found.products),
        Point(shown.intensity, shown.allowed, "", INK, hollow=True),
        Point(shown.intensity, shown.measured, f"{shown.side} = {shown.size}", INK, bold=True),
    )
    # a Mark has no fields of its own; each of these has a panel
    return tuple(replace(cast(Any, mark), panel=1) for mark in drawn)


def _squares(found: Figures, at: Callable[[Product], tuple[float, float]]) -> Iterator[Point]:
    """The products of the second record, at (x, y) of each."""
    if found.second is not None:
        for product in found.second.products:
            chosen = product is found.second.shown
            yield Point(*at(product), "", OVER, "s", hollow=not chosen, radius=4)


def _sustained_marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    """The sustained roof, dashed below the nominal one."""
    peak, bandwidth = found.sustained.peak(found.precision), found.sustained.bandwidth()
    (left, right), ridge = axes.xlim, found.sustained.ridge_point(found.precision)
    return (
        dashed((left, ridge), (bandwidth * left, bandwidth * ridge), MEMORY),
        dashed((ridge, right), (peak, peak), COMPUTE),
    )


def _bars(found: Figures) -> list[Bar]:
    """A bar for each factor of the gap and one for their product, in two columns."""
    shares = {_NAMES[factor]: share for factor, share in found.factors.items()}
    shares["all five multiplied"] = found.shown.of_allowed
    return [
        Bar(name, (share,), significant(share), (74 + 290 * column, 386 + 42 * row, 258), (ROOM,))
        for (row, column), (name, share) in zip(np.ndindex(3, 2), shares.items(), strict=True)
    ]


def sentences(found: Figures) -> tuple[str, ...]:
    said = [*_instead(found), *_measured(found)]
    if found.shown.measured < found.shown.allowed:
        most = min(found.factors, key=lambda name: found.factors[name])
        said.append(f"Most of the gap: {_NAMES[most]}, {significant(found.factors[most])}.")
    timed = found.shown.timed
    if timed.clock is not None:
        held = ", held down by the power limit" if (timed.power_capped or 0) > 0.5 else ""
        said.append(f"The clock stood at {quantity(timed.clock, 'Hz')}{held}.")
    if found.why_not_nominal:
        why = f"{found.why_not_nominal[0].upper()}{found.why_not_nominal[1:]}"
        said.append(f"{why}: this is the roof that it kept up.")
    said.extend(_compared(found))
    return tuple(said)


def _compared(found: Figures) -> list[str]:
    """What the second record shows at its nearest size."""
    if isinstance(found.beside, Without):
        return [f"Beside: {found.beside.why}."]
    if found.second is None:
        return []
    there = found.second.shown
    times = there.measured / found.shown.measured
    return [
        f"Squares: {found.second.record.chip.name}, {there.side} = {there.size}: "
        f"{quantity(there.measured, 'FLOP/s')}, {significant(times)} times as fast, "
        f"{percent(there.of_allowed)} of its own attainable."
    ]


def _instead(found: Figures) -> list[str]:
    """That another size is shown than the one asked for, where that is so."""
    side, size = found.shown.side, found.shown.size
    if size == found.asked:
        return []
    return [
        f"{side} = {found.asked} was not recorded: this is the nearest that was, {side} = {size}."
    ]


def _measured(found: Figures) -> list[str]:
    timed = found.shown.timed
    shape = found.shown.shape
    first, *rest = verdict(timed, found.nominal).sentences
    return [
        f"[{shape.m}, {shape.k}] @ [{shape.k}, {shape.n}] in {timed.precision} "
        f"on {found.record.chip.name}: measured {quantity(timed.performance, 'FLOP/s')} "
        f"in {quantity(timed.seconds, 's')}, {first}.",
        *(f"{sentence}." for sentence in rest),
    ]


def alt(found: Figures) -> str:
    return (
        f"On the left the share of attainable that {len(found.products)} products reach, over "
        f"{found.shown.side}; on the right the roofline of {found.nominal.name} in "
        f"{found.precision}, its sustained roof dashed below it, each product as the model allows "
        "it (hollow) and as measured (filled). Under them a bar for each factor of the gap."
        + (
            f" Squares are the products of {found.second.record.chip.name}, its sustained roof "
            "dashed."
            if found.second
            else ""
        )
    )


def _no_slope(record: Record) -> Scene:
    return Scene(
        (roofline_axes(),),
        (),
        (
            f"The record of {record.chip.name} has no stream that surely came from DRAM, so that "
            "no roof can be drawn.",
        ),
        "Axes of a roofline, empty.",
    )


def _nothing(record: Record, precision: str) -> Scene:
    there = dict.fromkeys(point.precision for point in record.select(*_FAMILIES))
    return Scene(
        (roofline_axes(),),
        (),
        (
            f"The record of {record.chip.name} has no products in {precision}.",
            f"It has {', '.join(there)}.",
        ),
        "Axes of a roofline, empty.",
    )
