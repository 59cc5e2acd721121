"""The two roofs that the points of a record are held against: the nominal one, known before
anything was measured, and the sustained one, the best that the record shows."""

from collections.abc import Iterable, Mapping

from roofline_lib.machines import Machine, as_machine
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    PRODUCT_FAMILIES,
    Chip,
    Point,
    Record,
    Sustained,
    caches,
    six_digits,
)
from roofline_lib.peaks import peak_flops
from roofline_lib.precisions import bytes_per_element

COUNTED_PRECISIONS = ("fp64", "fp32")


def nominal_roof(record: Record) -> Machine:
    """The nominal roof: catalogue for a GPU, counted for a CPU.

    UnknownName where the catalogue has no GPU of that name. A CPU's peaks are counted
    (`counted_peaks`); its bandwidths are those that the record shows, since no sheet prints those
    of a few cores of a server.
    """
    chip = record.chip
    if chip.kind == "GPU":
        try:
            return as_machine(chip.name)
        except KeyError:
            return as_machine(chip.name.removeprefix("NVIDIA "))
    return Machine(
        f"{chip.name}, counted",
        counted_peaks(chip),
        record.sustained.bandwidths,
        chip.capacities,
        units=chip.units,
        kind="CPU",
        unit_name="core",
        details={"clock": chip.clock},
    )


def counted_peaks(chip: Chip, fma_units: int = 2) -> dict[str, float]:
    """{precision: FLOP/s} of a CPU: cores x FMA units x lanes x 2 x nominal clock. That a core has
    two FMA units is assumed."""
    bits = 512 if "avx512f" in (chip.vector_flags or ()) else 256
    return {
        precision: peak_flops(
            chip.units, fma_units * bits / (8 * bytes_per_element(precision)), chip.clock
        )
        for precision in COUNTED_PRECISIONS
    }


def sustained_roof(record: Record) -> Machine:
    """The sustained roof: the best rates and bandwidths that the record shows.

    ValueError where it has no matrix product or no stream at all.
    """
    chip = record.chip
    return Machine(
        f"{chip.name}, measured",
        record.sustained.peaks,
        record.sustained.bandwidths,
        chip.capacities,
        units=chip.units,
        kind=chip.kind,
        unit_name=chip.unit_name,
    )


def sustained_by(points: Iterable[Point], capacities: Mapping[str, float]) -> Sustained:
    """What these points kept up: the best product of each precision, and the best stream at each
    memory level, on a machine whose levels hold so many bytes (`capacities`).

    A cache that reads no faster than the level below it gets no figure: there it was the cost of a
    call that was timed.
    """
    peaks: dict[str, float] = {}
    best: dict[str, float] = {}
    for point in points:
        if point.family in PRODUCT_FAMILIES:
            peaks[point.precision] = max(peaks.get(point.precision, 0.0), point.performance)
        elif point.family in BANDWIDTH_FAMILIES:
            level = _level_of(point, capacities)
            if level is not None:
                best[level] = max(best.get(level, 0.0), point.bandwidth)
    bandwidths: dict[str, float] = {}
    for level in ("DRAM", *(level for _, level in reversed(caches(capacities)))):
        if best.get(level, 0.0) > max(bandwidths.values(), default=0.0):
            bandwidths[level] = best[level]
    return Sustained(_rounded(peaks), _rounded(bandwidths))


def _level_of(stream, capacities):
    """The memory level that a stream reads and writes: the smallest cache that holds its working
    set with room to spare (70 %), DRAM where four times the largest cache pass between two uses of
    a number, None between."""
    found = caches(capacities)
    for size, level in found:
        if stream.working_set <= 0.7 * size:
            return level
    # a triad in two passes comes back to its first array after two of three
    between_uses = stream.working_set * (2 / 3 if stream.family == "triad" else 1)
    # 3.99, not 4: sizes are rounded down to whole elements
    if not found or between_uses > 3.99 * found[-1][0]:
        return "DRAM"
    return None


def _rounded(figures):
    return {name: six_digits(value) for name, value in figures.items()}
