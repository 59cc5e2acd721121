"""Lesson 6: every order of a matrix chain, and what each costs in FLOP, in bytes moved and in its
largest intermediate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from roofline_lib.chains import MINIMISE, ChainCost, chain_cost, chain_orders
from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, Number
from roofline_lib.explorers.marks import Line, Mark, Point, Taken, Text
from roofline_lib.explorers.scenes import Scene
from roofline_lib.explorers.shapes import Path, Shape, Words
from roofline_lib.explorers.stage import WIDTH, Axes, View
from roofline_lib.labels import text_size
from roofline_lib.precisions import PRECISIONS, bytes_per_element
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, GRID, INK, MEMORY, ROOM, decades


class Column(NamedTuple):
    """How one measure of an order is shown."""

    title: str
    unit: str
    color: str
    kind: str
    least: str


_COLUMNS = {
    "flops": Column("FLOP", "FLOP", COMPUTE, "o", "Fewest FLOP"),
    "bytes_moved": Column("bytes moved", "byte", MEMORY, "s", "Fewest bytes moved"),
    "largest_intermediate": Column(
        "largest intermediate", "byte", ROOM, "D", "Smallest largest intermediate"
    ),
}
_TOP, _HEIGHT = 12, 420
_GAP = 11  # pixels from the middle of a point to its number
_LETTERS = 14  # pixels from one row's name to the next at least
_NAMED, _NUMBERED = 14, 5  # so many rows have room for all names, for all numbers


def _one_of_each_width() -> list[str]:
    """Of a chain only the bytes of an element matter: the first precision of each whole number."""
    widths: dict[float, str] = {}
    for precision in PRECISIONS:
        widths.setdefault(bytes_per_element(precision), precision)
    return [precision for width, precision in widths.items() if width == int(width)]


class ChainExplorer(Explorer):
    """All orders of a chain of 3 to 6 matrices, matrix i being [d_i, d_i+1]; the best by each
    measure, all that tie, are filled.

    `dims` lists d0, d1, ... (4 to 7 sizes, each 1 to 16384 elements). Controls: matrices, d0 to d6,
    precision, minimise (the sorting).
    """

    sample = {"dims": (4096, 64, 4096, 64, 1)}

    def __init__(
        self,
        dims: Sequence[int] = (4096, 64, 4096, 1),
        precision: str = "fp32",
        minimise: str = "flops",
    ):
        dims = list(dims)
        if not 4 <= len(dims) <= 7:
            raise ValueError(
                "dims must list 4 to 7 sizes (elements), one more than there are matrices; "
                f"got {dims!r}"
            )
        unused = [64] * (7 - len(dims))
        super().__init__(
            Choice("matrices", len(dims) - 1, (3, 4, 5, 6)),
            Choice("minimise", minimise, MINIMISE, "sort by"),
            Choice("precision", precision, _one_of_each_width()),
            *(Number(f"d{i}", d, 1, 16384, "elements") for i, d in enumerate(dims + unused)),
        )

    @staticmethod
    def scene(matrices, minimise, precision, **sizes):
        dims = tuple(sizes[f"d{i}"] for i in range(matrices + 1))
        found = figures(dims, minimise, precision)
        axes = axes_for(found)
        unused = tuple(f"d{i}" for i in range(matrices + 1, 7))
        return Scene(axes, marks(found, axes), sentences(found), alt(found), _HEIGHT, unused)


@dataclass(frozen=True)
class Figures:
    """The costs of all orders, sorted by `minimise`; `best` has those that tie for the least of
    each measure."""

    dims: tuple[int, ...]
    minimise: str
    precision: str
    costs: list[ChainCost]
    best: dict[str, list[ChainCost]]


def figures(dims: tuple[int, ...], minimise: str, precision: str) -> Figures:
    costs = [chain_cost(dims, order, precision) for order in chain_orders(len(dims) - 1)]
    costs.sort(key=lambda cost: getattr(cost, minimise))
    best = {measure: _least(costs, measure) for measure in MINIMISE}
    return Figures(dims, minimise, precision, costs, best)


def _least(costs: list[ChainCost], measure: str) -> list[ChainCost]:
    least = min(getattr(cost, measure) for cost in costs)
    return [cost for cost in costs if getattr(cost, measure) == least]


def axes_for(found: Figures) -> tuple[Axes, ...]:
    return tuple(
        Axes(
            decades([getattr(cost, measure) for cost in found.costs]),
            (len(found.costs), 0),
            _COLUMNS[measure].title,
            "",
            (112 + 184 * place, _TOP, 134, _HEIGHT - _TOP - 46),
            ylog=False,
        )
        for place, measure in enumerate(MINIMISE)
    )


def marks(found: Figures, axes: tuple[Axes, ...]) -> tuple[Mark, ...]:
    rows = len(found.costs)
    named = [row for row in range(rows) if rows <= _NAMED or _leads(found.costs[row], found.best)]
    names = tuple((row + 0.5, found.costs[row].text, _ink(found, row)) for row in named)
    points = (
        mark for row, cost in enumerate(found.costs) for mark in _row(row, cost, found.best, axes)
    )
    return (RowNames(names), *points)


def _wins(cost: ChainCost, best: dict[str, list[ChainCost]]) -> list[str]:
    return [measure for measure in MINIMISE if cost in best[measure]]


def _leads(cost: ChainCost, best: dict[str, list[ChainCost]]) -> bool:
    """Whether an order is the least by some measure, and the first of those that tie."""
    return any(best[measure][0] is cost for measure in MINIMISE)


def _ink(found: Figures, row: int) -> str:
    return INK if _wins(found.costs[row], found.best) else FAINT


@dataclass(frozen=True)
class RowNames(Mark):
    """Names of rows, left of the axes: (height, name, colour) from the top down. Where rows lie
    closer than letters are high, names move apart, each on a thin leader to its row."""

    rows: tuple[tuple[float, str, str], ...]
    rank = -1

    def _middles(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Heights in pixels of the rows, and of their names."""
        rows = view.pixels([1.0] * len(self.rows), [row for row, *_ in self.rows])[:, 1]
        steps = _LETTERS * np.arange(len(rows))
        names = np.maximum.accumulate(rows - steps) + steps
        low = view.frame[3] - _LETTERS * np.arange(len(rows))[::-1]
        return rows, np.minimum(names, low)

    def shapes(self, view: View) -> list[Shape]:
        left = view.frame[0]
        return [
            Path(np.array([(left - 1, row), (left - _GAP + 2, name)]), FAINT, 1)
            for row, name in zip(*self._middles(view), strict=True)
            if abs(row - name) > 1
        ]

    def captions(self, view: View, taken: Taken) -> list[Words]:
        left, (_, middles) = view.frame[0] - _GAP, self._middles(view)
        return [
            Words(left, middle + 4, name, color, 12, "end")
            for middle, (_, name, color) in zip(middles, self.rows, strict=True)
        ]


def _row(
    row: int, cost: ChainCost, best: dict[str, list[ChainCost]], axes: tuple[Axes, ...]
) -> Iterator[Mark]:
    """The marks of one order: a point in each column, filled where it is the least; the first of a
    tie says the number."""
    rows = axes[0].ylim[0]
    middle, baseline = row + 0.5, row + 0.5 + 4 * rows / axes[0].rect[3]
    wins = _wins(cost, best)
    for panel, measure in enumerate(MINIMISE):
        column, value = _COLUMNS[measure], getattr(cost, measure)
        least, low = measure in wins, axes[panel].xlim[0]
        yield Line((low, value), (middle, middle), GRID, "", 1, panel=panel)
        radius = 6 if least else 4
        said = quantity(value, column.unit)
        # among many rows the number looks for a place where no point of another row is
        searches = said if rows > _NUMBERED and best[measure][0] is cost else ""
        yield Point(
            value, middle, searches, column.color, column.kind, not least, radius, panel=panel
        )
        if rows <= _NUMBERED:
            right = _fits_right(said, value, panel, axes)
            beside = value * _ratio(_GAP if right else -_GAP, axes[panel])
            anchor = "start" if right else "end"
            yield Text(beside, baseline, said, column.color, anchor, 12.5, panel)


def _fits_right(said: str, value: float, panel: int, axes: tuple[Axes, ...]) -> bool:
    """Whether a number has room between its point and the next panel."""
    low, high = axes[panel].xlim
    start, _, width, _ = axes[panel].rect
    edge = axes[panel + 1].rect[0] - 4 if panel + 1 < len(axes) else WIDTH
    at = start + width * log(value / low) / log(high / low) + _GAP
    return at + text_size(said, 12.5)[0] < edge


def _ratio(pixels: float, axes: Axes) -> float:
    """What so many pixels to the right multiply a value by."""
    low, high = axes.xlim
    return (high / low) ** (pixels / axes.rect[2])


def sentences(found: Figures) -> tuple[str, ...]:
    shapes = " ".join(
        f"{chr(ord('A') + i)}[{rows}, {columns}]"
        for i, (rows, columns) in enumerate(zip(found.dims[:-1], found.dims[1:], strict=True))
    )
    worst = max(cost.flops for cost in found.costs) / found.best["flops"][0].flops
    more = {"flops": f"; the worst order needs {significant(worst)} times that"}
    return (
        f"{shapes} in {found.precision}, {len(found.costs)} orders.",
        *(_best_in_words(found, measure, more.get(measure, "")) for measure in MINIMISE),
    )


def _best_in_words(found: Figures, measure: str, more: str) -> str:
    """Which order is best by a measure, and how many tie with it."""
    column, best = _COLUMNS[measure], found.best[measure]
    value = quantity(getattr(best[0], measure), column.unit)
    if len(best) == len(found.costs):
        return f"All orders cost the same in {column.title}: {value}."
    others = len(best) - 1
    ties = ""
    if others:
        ties = f" and {others} other" if others == 1 else f" and {others} others"
    return f"{column.least}: {best[0].text}{ties}, {value}{more}."


def alt(found: Figures) -> str:
    return (
        f"A row for each of {len(found.costs)} orders, sorted by {_COLUMNS[found.minimise].title}, "
        "with a point for each of three costs; the least are filled."
    )
