"""Lesson 5: every order of a matrix chain, and what each costs in FLOP, in bytes moved and in its
largest intermediate."""

from math import log

from roofline_lib.chains import MINIMISE, chain_cost, chain_orders
from roofline_lib.explorers.base import Explorer, Scene
from roofline_lib.explorers.controls import Choice, Number
from roofline_lib.explorers.marks import Line, Point, Text
from roofline_lib.explorers.stage import WIDTH, Axes
from roofline_lib.labels import text_size
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, GRID, INK, MEMORY, ROOM, decades

_COLUMNS = {
    "flops": ("FLOP", "FLOP", COMPUTE, "o"),
    "bytes_moved": ("bytes moved", "byte", MEMORY, "s"),
    "largest_intermediate": ("largest intermediate", "byte", ROOM, "D"),
}
_TOP, _HEIGHT = 12, 420
_NAMED, _NUMBERED = 14, 5  # so many rows have room for all names, for all numbers


class ChainExplorer(Explorer):
    """All orders of a chain of 3 to 6 matrices, matrix i being [d_i, d_i+1]; the best by each
    measure, all that tie, are filled.

    `dims` lists d0, d1, ... (4 to 7 sizes, each 1 to 16384 elements). Controls: matrices, d0 to d6,
    precision, minimise (the sorting).
    """

    def __init__(self, dims=(4096, 64, 4096, 1), precision="fp32", minimise="flops"):
        dims = list(dims)
        if not 4 <= len(dims) <= 7:
            raise ValueError(
                f"dims must list 4 to 7 sizes (elements), one more than there are matrices; got {dims!r}"
            )
        unused = [64] * (7 - len(dims))
        super().__init__(
            Choice("matrices", str(len(dims) - 1), ("3", "4", "5", "6")),
            Choice("minimise", minimise, MINIMISE, "sort by"),
            Choice("precision", precision, ("fp64", "fp32", "bf16", "fp8")),
            *(Number(f"d{i}", d, 1, 16384, "elements") for i, d in enumerate(dims + unused)),
        )

    @staticmethod
    def scene(matrices, minimise, precision, **sizes):
        count, (title, *_) = int(matrices), _COLUMNS[minimise]
        dims = [sizes[f"d{i}"] for i in range(count + 1)]
        costs = sorted(
            (chain_cost(dims, order, precision) for order in chain_orders(count)),
            key=lambda cost: getattr(cost, minimise),
        )
        least = {measure: min(getattr(cost, measure) for cost in costs) for measure in MINIMISE}
        # all that tie
        best = {
            measure: [cost for cost in costs if getattr(cost, measure) == least[measure]]
            for measure in MINIMISE
        }
        axes = tuple(
            Axes(
                decades([getattr(cost, measure) for cost in costs]),
                (len(costs), 0),
                _COLUMNS[measure][0],
                "",
                (112 + 184 * column, _TOP, 134, _HEIGHT - _TOP - 46),
                ylog=False,
            )
            for column, measure in enumerate(MINIMISE)
        )
        marks = [mark for row, cost in enumerate(costs) for mark in _row(row, cost, best, axes)]
        shapes = " ".join(
            f"{chr(ord('A') + i)}[{a}, {b}]"
            for i, (a, b) in enumerate(zip(dims[:-1], dims[1:], strict=True))
        )
        worst = f"; the worst order needs {significant(max(cost.flops for cost in costs) / least['flops'])} times that"
        readout = (
            f"{shapes} in {precision}, {len(costs)} orders. {_said('Fewest FLOP', 'flops', best, costs, worst)} "
            f"{_said('Fewest bytes moved', 'bytes_moved', best, costs)} "
            f"{_said('Smallest largest intermediate', 'largest_intermediate', best, costs)}"
        )
        alt = f"A row for each of {len(costs)} orders, sorted by {title}, with a point for each of three costs; the least are filled."
        return Scene(
            axes, tuple(marks), readout, alt, _HEIGHT, tuple(f"d{i}" for i in range(count + 1, 7))
        )


def _said(words, measure, best, costs, more=""):
    """Which order is best by a measure, and how many tie with it."""
    title, unit, *_ = _COLUMNS[measure]
    first, others = best[measure][0], len(best[measure]) - 1
    value = quantity(getattr(first, measure), unit)
    if others + 1 == len(costs):
        return f"All orders cost the same in {title}: {value}."
    ties = f" and {others} other{'s' * (others > 1)}" if others else ""
    return f"{words}: {first.text}{ties}, {value}{more}."


def _row(row, cost, best, axes):
    """The marks of one order: its name, and a point in each column, filled where it is the least;
    the first of a tie says the number."""
    rows = axes[0].ylim[0]
    middle, baseline = row + 0.5, row + 0.5 + 4 * rows / axes[0].rect[3]
    wins = [measure for measure in MINIMISE if cost in best[measure]]
    if rows <= _NAMED or any(best[measure][0] is cost for measure in wins):
        yield Text(
            axes[0].xlim[0], baseline, f"{cost.text}\u2002", INK if wins else FAINT, "end", 12
        )
    for panel, measure in enumerate(MINIMISE):
        _, unit, color, kind = _COLUMNS[measure]
        value, least, (low, high) = getattr(cost, measure), measure in wins, axes[panel].xlim
        yield Line((low, value), (middle, middle), GRID, "", 1, panel=panel)
        yield Point(value, middle, "", color, kind, not least, 6 if least else 4, panel=panel)
        if rows <= _NUMBERED or best[measure][0] is cost:
            said = f"\u2002{quantity(value, unit)}\u2002"
            start, _, width, _ = axes[panel].rect
            edge = axes[panel + 1].rect[0] - 4 if panel + 1 < len(axes) else WIDTH
            fits = (
                start + width * log(value / low) / log(high / low) + text_size(said, 12.5)[0] < edge
            )
            yield Text(value, baseline, said, color, "start" if fits else "end", 12.5, panel)
