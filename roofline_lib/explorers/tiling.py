"""Lesson 3: what a tile saves in traffic, and what it costs in fast memory, at the edges and in the
last wave."""

from dataclasses import dataclass

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import MachineChoice, Number, PrecisionChoice, own_unless_given
from roofline_lib.explorers.marks import Mark, Point
from roofline_lib.explorers.scenes import (
    Scene,
    Share,
    bar_row,
    no_peak,
    plural,
    roofline,
    roofline_axes,
)
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.model import Bound, Work, attainable_performance, bound
from roofline_lib.operators import gemm
from roofline_lib.precisions import bytes_per_element
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, OVER, ROOM
from roofline_lib.tiling import (
    io_lower_bound,
    naive_gemm,
    tile_count,
    tile_efficiency,
    tile_memory,
    tiled_gemm,
    wave_efficiency,
)


class TilingExplorer(Explorer):
    """C[m, n] = A[m, k] @ B[k, n] in tile_m x tile_n tiles on two memories, fast and DRAM: the
    traffic, and three limits on the tile.

    A tile needs fast memory for its sums, in fp32 (fp64 for fp64), and for `buffers` panels of A
    and of B, `tile_k` deep: one column and one row unless given. A GPU holds the sums in the
    registers of an SM (256 KiB) and the panels in its shared memory; here both lie in one fast
    memory. `fast_memory` (byte, of one unit) and `units` are the machine's own unless given; a
    machine chosen later brings its own. Controls: machine, precision, m, n, k, tile_m, tile_n,
    tile_k, buffers, fast_memory, units.
    """

    sample = {"machine": "house chip", "m": 4096, "n": 4096, "k": 4096}

    def __init__(
        self,
        machine: Machine | str = "house chip",
        m: int = 4096,
        n: int = 4096,
        k: int = 4096,
        tile_m: int = 128,
        tile_n: int = 128,
        precision: str = "fp32",
        *,
        tile_k: int = 1,
        buffers: int = 1,
        fast_memory: int | None = None,
        units: int | None = None,
    ):
        chip = MachineChoice(machine)
        sizes = own_unless_given(
            {"fast_memory": fast_memory, "units": units}, _own(chip.chosen), chip.value
        )
        super().__init__(
            chip,
            PrecisionChoice("precision", precision, chip),
            Number("m", m, 1, 65536, "rows of C"),
            Number("n", n, 1, 65536, "columns of C"),
            Number("tile_m", tile_m, 1, 4096, "rows"),
            Number("tile_n", tile_n, 1, 4096, "columns"),
            Number("k", k, 1, 65536, "length"),
            Number("tile_k", tile_k, 1, 1024, "deep"),
            Number("buffers", buffers, 1, 8, "panels"),
            Number("units", sizes["units"], 1, 1024, "SMs"),
            Number("fast_memory", sizes["fast_memory"], 4096, 2**30, "byte", "fast memory (B)"),
        )

    @staticmethod
    def brings(changed, machine, **others):
        own = _own(machine) if changed == "machine" else {}
        return {name: value for name, value in own.items() if value is not None}

    @staticmethod
    def scene(machine, precision, m, n, k, tile_m, tile_n, tile_k, buffers, units, fast_memory):
        if precision not in machine.precisions:
            return no_peak(machine, precision)
        tile = Tile(tile_m, tile_n, tile_k, buffers)
        found = figures(machine, precision, (m, n, k), tile, units, fast_memory)
        axes = axes_for(found)
        height = round(axes.frame[3]) + 92
        return Scene((axes,), marks(found, axes), sentences(found), alt(found), height)


def _own(machine: Machine) -> dict[str, int | None]:
    """The machine's own fast memory, the smallest level that is not DRAM (byte), and its units;
    None where not known."""
    inside = [int(size) for level, size in machine.capacities.items() if level != "DRAM"]
    return {"fast_memory": min(inside, default=None), "units": machine.units}


@dataclass(frozen=True)
class Tile:
    """A tile of C of m x n elements, and the panels of A and of B beside it: how deep, how many."""

    m: int
    n: int
    panel_depth: int
    buffers: int

    @property
    def sides(self) -> tuple[int, int]:
        return self.m, self.n


@dataclass(frozen=True)
class Figures:
    """One product by tiles: its Works from the worst traffic to the best, and what the tile costs.

    `naive`, `best` (for this fast memory) and `compulsory` are Works without and with reuse,
    `limit` is the tiled product's Bound. `held` is the tile's fast memory in byte, of which `sums`
    are its sums; `edge` and `wave` are the shares wasted at the edges and in the last wave.
    """

    machine: Machine
    precision: str
    tile: Tile
    units: int
    fast_memory: int
    naive: Work
    best: Work
    compulsory: Work
    limit: Bound
    tiles: float
    held: float
    sums: float
    edge: float
    wave: float

    @property
    def filled(self) -> float:
        return self.held / self.fast_memory

    @property
    def too_big(self) -> bool:
        return self.filled > 1


def figures(
    machine: Machine,
    precision: str,
    sizes: tuple[int, int, int],
    tile: Tile,
    units: int,
    fast_memory: int,
) -> Figures:
    m, n, k = sizes
    width, tiles = bytes_per_element(precision), tile_count(m, n, tile.sides)
    tiled = tiled_gemm(m, n, k, tile.sides, precision)
    least = io_lower_bound(m, n, k, fast_memory / width, tightest=True)
    held = tile_memory(tile.sides, precision, tile_k=tile.panel_depth, buffers=tile.buffers)
    panels = tile.buffers * (tile.m + tile.n) * tile.panel_depth * width
    return Figures(
        machine,
        precision,
        tile,
        units,
        fast_memory,
        naive=naive_gemm(m, n, k, precision),
        best=Work(tiled.flops, width * least),
        compulsory=gemm(m, n, k, precision),
        limit=bound(tiled, machine, precision),
        tiles=tiles,
        held=held,
        sums=held - panels,
        edge=1 - tile_efficiency(m, n, tile.sides),
        wave=1 - wave_efficiency(tiles, units),
    )


def axes_for(found: Figures) -> Axes:
    limit = found.limit
    return roofline_axes(
        [found.naive.intensity, found.compulsory.intensity],
        [limit.attainable_performance, 2 * limit.peak_flops],
    )


def marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    peak, bandwidth = found.limit.peak_flops, found.limit.bandwidth
    left, _, right, foot = axes.frame
    shares = [
        Share("fast memory", found.filled, _filled_in_words(found.filled)),
        Share("edge waste", found.edge, tenths(found.edge), FAINT),
        Share("wave waste", found.wave, tenths(found.wave), FAINT),
    ]
    return (
        *roofline(axes, peak, bandwidth, found.precision),
        *_points(found),
        *bar_row(shares, left, right, foot + 50, places=3),
    )


def _points(found: Figures) -> list[Point]:
    def point(words, work, *look):
        reach = attainable_performance(
            work.intensity, found.limit.peak_flops, found.limit.bandwidth
        )
        return Point(work.intensity, reach, words.format(significant(work.intensity)), *look)

    points = [
        point("naive {}", found.naive, MEMORY, "^", True),
        point("compulsory {}", found.compulsory, COMPUTE, "D", True),
    ]
    if found.best.bytes_moved > found.compulsory.bytes_moved:
        points.append(point("best {}", found.best, ROOM, "s", True))
    words, color = ("tiles {}: too big", OVER) if found.too_big else ("tiles {}", INK)
    points.append(point(words, found.limit.work, color, "o", found.too_big, 6.5, True))
    return points


def sentences(found: Figures) -> tuple[str, ...]:
    tiled = found.limit.work
    there = quantity(found.fast_memory, "byte")
    excess = f", more than the {there} there are" if found.too_big else ""
    return (
        f"{found.tile.m} x {found.tile.n} tiles: {quantity(tiled.bytes_moved, 'byte')} moved, "
        f"{quantity(tiled.intensity, 'FLOP/byte')}, {found.limit.bound_by}-bound, "
        f"{quantity(found.held, 'byte')} of fast memory "
        f"({quantity(found.sums, 'byte')} sums){excess}.",
        f"{found.tiles:,.0f} {plural(found.tiles, 'tile')} on {found.units} "
        f"{found.machine.unit_name}s: "
        f"{tenths(found.edge)} of their area lies outside C, "
        f"{tenths(found.wave)} of the waves' places stay empty.",
    )


def alt(found: Figures) -> str:
    naive, best, compulsory = (
        significant(work.intensity) for work in (found.naive, found.best, found.compulsory)
    )
    return (
        f"Roofline of {found.machine.name} in {found.precision} and three bars. "
        f"The naive product stands at {naive} FLOP/byte, the best that this fast memory allows "
        f"at {best}, compulsory traffic at {compulsory}."
    )


def _filled_in_words(share: float) -> str:
    """A bar that runs over says so in words too, and how far, also where it is little."""
    if share <= 1:
        return tenths(share)
    return f"over: {significant(share, 3 if share > 1.01 else 4)}x"


def tenths(share: float) -> str:
    """A share of 1 in percent, to tenths of one: so small a waste is none."""
    return f"{significant(round(100 * share, 1), 4)} %"
