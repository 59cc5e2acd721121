"""Lesson 3: what a tile saves in traffic, and what it costs in fast memory, at the edges and in the
last wave."""

from roofline_lib.explorers.base import Explorer, Scene, no_peak, roofline, roofline_axes
from roofline_lib.explorers.controls import Choice, MachineChoice, Number
from roofline_lib.explorers.marks import Bar, Point
from roofline_lib.model import Work, bound
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

_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")


class TilingExplorer(Explorer):
    """C[m, n] = A[m, k] @ B[k, n] in tile_m x tile_n tiles on two memories, fast and DRAM: the
    traffic, and three limits on the tile.

    A tile needs (tile_m tile_n + tile_m + tile_n) s byte of fast memory. `fast_memory` (byte, of
    one unit) and `units` are the machine's own unless given; a machine chosen later brings its own.
    Controls: machine, precision, m, n, k, tile_m, tile_n, fast_memory, units.
    """

    def __init__(
        self,
        machine="house chip",
        m=4096,
        n=4096,
        k=4096,
        tile_m=128,
        tile_n=128,
        precision="fp32",
        *,
        fast_memory=None,
        units=None,
    ):
        chip = MachineChoice(machine)
        given = {"fast_memory": fast_memory, "units": units}
        sizes = {
            name: own if given[name] is None else given[name]
            for name, own in _own(chip.chosen).items()
        }
        for name, size in sizes.items():
            if size is None:
                raise ValueError(
                    f"{name} must be given for {chip.value}, of which the catalogue does not know it; got None"
                )
        super().__init__(
            chip,
            Choice("precision", precision, _PRECISIONS),
            Number("m", m, 1, 65536, "rows of C"),
            Number("n", n, 1, 65536, "columns of C"),
            Number("tile_m", tile_m, 1, 4096, "rows"),
            Number("tile_n", tile_n, 1, 4096, "columns"),
            Number("k", k, 1, 65536, "length"),
            Number("units", sizes["units"], 1, 1024, "SMs"),
            Number("fast_memory", sizes["fast_memory"], 4096, 2**30, "byte", "fast memory (B)"),
        )
        chip.observe(self._bring_own, "value")

    def _bring_own(self, change):
        for name, value in _own(self.controls["machine"].chosen).items():
            if value is not None:
                self.controls[name].value = value

    @staticmethod
    def scene(machine, precision, m, n, k, tile_m, tile_n, units, fast_memory):
        if precision not in machine.precisions:
            return no_peak(machine, precision, _PRECISIONS)
        tile, width = (tile_m, tile_n), bytes_per_element(precision)
        naive, tiled, most = (
            naive_gemm(m, n, k, precision),
            tiled_gemm(m, n, k, tile, precision),
            gemm(m, n, k, precision),
        )
        best = Work(tiled.flops, width * io_lower_bound(m, n, k, fast_memory / width))
        tiles, held, limit = (
            tile_count(m, n, tile),
            tile_memory(tile, precision),
            bound(tiled, machine, precision),
        )
        filled, edge, wave = (
            held / fast_memory,
            1 - tile_efficiency(m, n, tile),
            1 - wave_efficiency(tiles, units),
        )

        def point(name, work, *look):
            reach = bound(work, machine, precision).attainable_performance
            return Point(work.intensity, reach, name.format(significant(work.intensity)), *look)

        axes = roofline_axes(
            [naive.intensity, most.intensity], [limit.attainable_performance, 2 * limit.peak_flops]
        )
        points = [
            point("naive {}", naive, MEMORY, "^", True),
            point("compulsory {}", most, COMPUTE, "D", True),
        ]
        if best.bytes_moved > most.bytes_moved:
            points.append(point("best for this memory {}", best, ROOM, "s", True))
        points.append(
            point("tiles {}", tiled, INK, "o", False, 6.5, True)
            if filled <= 1
            else point("tiles {}: too big", tiled, OVER, "o", True, 6.5, True)
        )
        bars = [
            _bar(axes.frame, 0, "fast memory", filled, ROOM),
            _bar(axes.frame, 1, "edge waste", edge, FAINT),
            _bar(axes.frame, 2, "wave waste", wave, FAINT),
        ]
        excess = f", more than the {quantity(fast_memory, 'byte')} there are" if filled > 1 else ""
        readout = (
            f"{tile_m} x {tile_n} tiles: {quantity(tiled.bytes_moved, 'byte')} moved, {quantity(tiled.intensity, 'FLOP/byte')}, "
            f"{limit.bound_by}-bound, {quantity(held, 'byte')} of fast memory{excess}. "
            f"{tiles:,.0f} tiles on {units} {machine.unit_name}s: {_percent(edge)} of their area lies outside C, "
            f"{_percent(wave)} of the waves' places stay empty."
        )
        alt = (
            f"Roofline of {machine.name} in {precision} and three bars. The naive product stands at {significant(naive.intensity)} "
            f"FLOP/byte, the best that this fast memory allows at {significant(best.intensity)}, compulsory traffic at "
            f"{significant(most.intensity)}."
        )
        marks = (*roofline(axes, limit.peak_flops, limit.bandwidth, precision), *points, *bars)
        return Scene((axes,), marks, readout, alt, round(axes.frame[3]) + 92)


def _own(machine):
    """The machine's own fast memory, the smallest level that is not DRAM (byte), and its units;
    None where not known."""
    inside = [int(size) for level, size in machine.capacities.items() if level != "DRAM"]
    return {"fast_memory": min(inside, default=None), "units": machine.units}


def _bar(frame, place, name, share, color):
    """One of three bars under the axes; one that runs over says so in words too."""
    left, _, right, foot = frame
    width = (right - left - 40) / 3
    said = (
        _percent(share) if share <= 1 else f"over: {significant(share, 3 if share > 1.01 else 4)}x"
    )
    return Bar(name, (share,), said, (left + place * (width + 20), foot + 50, width), (color,))


def _percent(share):
    return f"{significant(round(100 * share, 1), 4)} %"
