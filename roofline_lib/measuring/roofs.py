"""The two roofs that the points of a record are held against: the nominal one, known before
anything was measured, and the sustained one, the best that the record shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from roofline_lib.arguments import UnknownName
from roofline_lib.machines import Machine, as_machine
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    LEAST_REPEATS,
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
# byte: where the caches are not known, arrays no larger than this may lie in one of them
LEAST_IN_DRAM = 128e6
BURST = 0.025  # s: of a cold run, before a power limit holds the clock down
_SAID = ("avx512f", "avx2", "avx", "fma", "sse2")  # what tells the width and the multiply-add


class NoNominalRoof(UnknownName):
    """Why there is no nominal roof of a chip, in a few words."""


@dataclass(frozen=True)
class VectorUnits:
    """What a core is taken to have: so many vector units of so many bits, each of which does
    `flops_per_lane` in a cycle (2 where it multiplies and adds)."""

    units: int
    bits: int
    flops_per_lane: int


def nominal_roof(record: Record) -> Machine:
    """The nominal roof: catalogue for a GPU, counted for a CPU.

    NoNominalRoof, an UnknownName, where the catalogue has no GPU of that name, or one with another
    number of units (that of a slice of a GPU, say), and where a CPU's peak cannot be counted. A
    CPU's peaks are counted (`counted_peaks`); its bandwidths are those that the record shows, since
    no sheet prints those of a few cores of a server.
    """
    chip = record.chip
    if chip.kind == "GPU":
        return _in_catalogue(chip)
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


def _in_catalogue(chip):
    try:
        found = as_machine(chip.name)
    except UnknownName as error:
        raise NoNominalRoof(f"the catalogue has no {chip.name}") from error
    if found.units != chip.units:
        raise NoNominalRoof(
            f"the catalogue's {found.name} has {found.units} units, and this {chip.name} "
            f"{chip.units}, a part of it or another chip"
        )
    return found


def counted_peaks(chip: Chip, vector_units: int | None = None) -> dict[str, float]:
    """{precision: FLOP/s} of a CPU: cores x vector units x lanes x FLOP a lane x clock, which is
    the one under load where that was measured, else the nominal one.

    FLOP a lane are 2 where a unit multiplies and adds in one instruction (FMA), 1 where it does
    not. An x86 core is taken to have two such units; it says nowhere how many. ARM cores have one
    to four, of which none is usual: `vector_units` must say. NoNominalRoof where the chip does not
    tell its clock or its vector units.
    """
    clock = chip.clock_under_load or chip.clock
    if clock is None:
        raise NoNominalRoof(f"no clock of {chip.name} is known to count its peak with")
    each = _vector_units(chip, vector_units)
    return {
        precision: peak_flops(
            chip.units,
            each.units * each.bits / (8 * bytes_per_element(precision)),
            clock,
            each.flops_per_lane,
        )
        for precision in COUNTED_PRECISIONS
    }


def peak_can_be_counted(chip: Chip) -> bool:
    """Whether `counted_peaks` has all that it needs of a CPU."""
    try:
        counted_peaks(chip)
    except NoNominalRoof:
        return False
    return True


def counted_from(chip: Chip) -> dict[str, str]:
    """Where each factor of a CPU's counted peak comes from: read off the system, measured, assumed,
    or a convention. NoNominalRoof where the peak cannot be counted."""
    each = _vector_units(chip, None)
    read = f"read: {', '.join(flag for flag in chip.vector_flags or () if flag in _SAID)}"
    if chip.clock_under_load:
        clock = "measured: subtractions that wait for each other, one a cycle (assumed), under load"
    else:
        clock = "read: the nominal one, which is not the one under load"
    return {
        "cores": "read: those in use",
        "vector units": "assumed: two a core",
        "lanes": f"{read}: {each.bits} bits",
        "FLOP a lane": "convention: a multiply-add is 2"
        if each.flops_per_lane == 2
        else "read: no multiply-add",
        "clock": clock,
    }


def _vector_units(chip: Chip, units: int | None) -> VectorUnits:
    flags = chip.vector_flags or ()
    on_x86 = units or 2
    if "avx512f" in flags:
        return VectorUnits(on_x86, 512, 2)
    if "avx" in flags or "avx2" in flags:
        return VectorUnits(on_x86, 256, 2 if "fma" in flags else 1)
    if "sse2" in flags:
        return VectorUnits(on_x86, 128, 1)
    if "asimd" in flags and "sve" not in flags and units:
        return VectorUnits(units, 128, 2)
    named = f"it names {', '.join(flags)}" if flags else "it names none"
    raise NoNominalRoof(f"the vector units of {chip.name} are not known ({named})")


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
    call that was timed. Where no cache is known, only the largest arrays are taken to lie in DRAM,
    and none below 128 MB.
    """
    points = list(points)
    in_dram = _least_in_dram(points, capacities)
    peaks: dict[str, float] = {}
    best: dict[str, float] = {}
    for point in points:
        if point.family in PRODUCT_FAMILIES:
            peaks[point.precision] = max(peaks.get(point.precision, 0.0), point.performance)
        elif point.family in BANDWIDTH_FAMILIES:
            level = _level_of(point, capacities, in_dram)
            if level is not None:
                best[level] = max(best.get(level, 0.0), point.bandwidth)
    bandwidths: dict[str, float] = {}
    for level in ("DRAM", *(level for _, level in reversed(caches(capacities)))):
        if best.get(level, 0.0) > max(bandwidths.values(), default=0.0):
            bandwidths[level] = best[level]
    return Sustained(_rounded(peaks), _rounded(bandwidths))


def cold_peaks(points: Iterable[Point]) -> dict[str, float]:
    """{precision: FLOP/s} of the cold runs on random numbers among these points: the median rate of
    the products that ended in their first 25 ms, of the first three where fewer did."""
    return _rounded(
        {
            point.precision: point.work.flops / float(np.median(_first(point.timing.repeats)))
            for point in points
            if point.family == "cold" and point.label == "random"
        }
    )


def _first(seconds):
    """The executions that ended within BURST, or the first few."""
    ended = int(np.searchsorted(np.cumsum(seconds), BURST))
    return seconds[: max(ended, LEAST_REPEATS)]


def _least_in_dram(points, capacities):
    """How many bytes pass between two uses of a number in a stream that surely comes from DRAM:
    four times the largest cache, or, where no cache is known, as many as in the largest stream."""
    found = caches(capacities)
    # 3.99 and 0.99: sizes are rounded down to whole elements
    if found:
        return 3.99 * found[-1][0]
    streams = [point for point in points if point.family in BANDWIDTH_FAMILIES]
    return max(LEAST_IN_DRAM, 0.99 * max(map(_between_uses, streams), default=0.0))


def _between_uses(stream):
    """Bytes between two uses of a number: a triad in two passes comes back to its first array after
    two of three."""
    return stream.working_set * (2 / 3 if stream.family == "triad" else 1)


def _level_of(stream, capacities, in_dram):
    """The memory level that a stream reads and writes: the smallest cache that holds its working
    set with room to spare (70 %), DRAM where `in_dram` bytes pass between two uses of a number,
    None between."""
    for size, level in caches(capacities):
        if stream.working_set <= 0.7 * size:
            return level
    return "DRAM" if _between_uses(stream) > in_dram else None


def _rounded(figures):
    return {name: six_digits(value) for name, value in figures.items()}
