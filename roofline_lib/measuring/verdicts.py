"""What a measured point says: where it stands under the roof, what explains the gap, and what to
suspect where it stands above."""

from collections.abc import Mapping
from dataclasses import dataclass

from roofline_lib.machines import Machine, Peak, as_machine
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    Point,
    ProductShape,
    Record,
    caches,
)
from roofline_lib.model import bound
from roofline_lib.precisions import bytes_per_element
from roofline_lib.quantities import quantity, significant
from roofline_lib.tiling import tile_count, wave_efficiency

# factors that slips of units leave behind
UNIT_SLIPS = {
    2.0: "a multiply-add counted twice over",
    8.0: "bits taken for bytes",
    1000.0: "a prefix of 1000",
    1024.0: "a prefix of 1024",
    1e6: "a prefix of a million",
    1e9: "nanoseconds taken for seconds",
    2**30 / 1e9: "GiB taken for GB",
    2**40 / 1e12: "TiB taken for TB",
}


@dataclass(frozen=True)
class Finding:
    """What is found of a point under a roof: `ratio` is measured over attainable, `regime` the part
    of the roof it stands under. `suspects` is empty up to a ratio of 1, and above it {name: why},
    with names from "units", "sparsity", "clock", "cache level" and "precision"."""

    ratio: float
    regime: str
    suspects: Mapping[str, str]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is found, in words, and what is suspected; without full stops."""
        if not self.suspects:
            return (f"{significant(100 * self.ratio)} % of attainable ({self.regime})",)
        why = "; ".join(f"{name}: {reason}" for name, reason in self.suspects.items())
        return (
            f"{significant(self.ratio, 4)} times attainable ({self.regime}), which cannot be",
            f"Suspect {why}",
        )

    def __str__(self) -> str:
        return ". ".join(self.sentences)


def efficiency(point: Point, machine: Machine | str) -> float:
    """Measured over attainable: the least time that the roof allows over the median time. Above 1
    where the point stands above the machine's roof."""
    return bound(point.work, machine, point.precision).time / point.seconds


def verdict(point: Point, machine: Machine | str) -> Finding:
    """What is found of a point under the roof of `machine` (a Machine or its name), with DRAM's
    bandwidth."""
    machine = as_machine(machine)
    roof = bound(point.work, machine, point.precision)
    ratio, where = roof.time / point.seconds, regime(point, machine)
    if ratio <= 1 + 1e-5:  # the stream that set a roof stands on it, and a record keeps six digits
        return Finding(ratio, where, {})
    suspects = _above_peak(point, machine, roof.compute_time / point.seconds)
    suspects |= _above_slope(point, machine, roof.memory_time / point.seconds)
    slip = next(
        (why for factor, why in UNIT_SLIPS.items() if abs(ratio / factor - 1) < 0.005), None
    )
    if slip:
        suspects["units"] = slip
    elif not suspects:
        suspects["units"] = "nothing else explains it: check FLOP, bytes and seconds one by one"
    return Finding(ratio, where, suspects)


def regime(point: Point, machine: Machine | str) -> str:
    """Where a point is: "cache" (a stream no larger than twice the last cache), "memory", "ridge"
    (a factor 2 around it) or "compute"."""
    machine = as_machine(machine)
    found = caches(machine.capacities)
    if found and point.family in BANDWIDTH_FAMILIES and point.working_set < 2 * found[-1][0]:
        return "cache"
    from_ridge = point.work.intensity / machine.ridge_point(point.precision)
    if from_ridge < 0.5:
        return "memory"
    return "compute" if from_ridge > 2 else "ridge"


def explain(
    point: Point,
    machine: Machine | str,
    sustained: Machine,
    floor: float = 0.0,
    tile: tuple[int, int] = (128, 128),
) -> dict[str, float]:
    """Factors whose product is measured over attainable: {"clock", "bandwidth", "waves", "latency",
    "rest"}, each 1 where it takes nothing.

    clock: the clock under load over the one that the machine's peak assumes. bandwidth: what
    streams kept up on the same machine (`sustained`, see `sustained_roof`). waves: multiprocessors
    that `tile`s of C leave idle. latency: `floor` seconds besides the work itself (see
    `launch_floor`). rest: what none of these explains; above 1 where they explain too much, as when
    the library's tiles were smaller.
    """
    machine = as_machine(machine)
    roof = bound(point.work, machine, point.precision)
    clock = _clock_share(point, machine.find_peak(point.precision), machine) or 1.0
    compute, memory = roof.compute_time / clock, roof.work.bytes_moved / sustained.bandwidth()
    waves = 1.0
    if machine.units and machine.kind == "GPU" and isinstance(point.shape, ProductShape):
        waves = wave_efficiency(tile_count(point.shape.m, point.shape.n, tile), machine.units)
    with_waves = max(compute / waves, memory)
    times = {
        "clock": max(compute, roof.memory_time),
        "bandwidth": max(compute, memory),
        "waves": with_waves,
        "latency": with_waves + floor,
        "rest": point.seconds,
    }
    factors, before = {}, roof.time
    for name, after in times.items():
        factors[name], before = before / after, after
    return factors


def launch_floor(record: Record, precision: str) -> float:
    """The shortest product of a record in that precision (s): what a kernel costs that has next to
    nothing to do."""
    return min(point.seconds for point in record.select("gemm_n", precision=precision))


def _above_peak(point, machine, over):
    """Suspects where the arithmetic ran faster than the peak, by the factor `over`."""
    if over <= 1:
        return {}
    peak, suspects = machine.find_peak(point.precision), {}
    share = _clock_share(point, peak, machine)
    assumed = machine.details.get("clock")
    if share is None and machine.kind == "CPU" and assumed and 1.6 <= over < 8:
        suspects["clock"] = (
            f"the peak is counted at {quantity(assumed, 'Hz')}: is that the clock of an idle core?"
        )
    elif share is None and over < 1.6:
        suspects["clock"] = (
            "none was recorded, or the peak does not say which it assumes; "
            "a boost clock can be half above a nominal one"
        )
    elif share is not None and 1 < share and over <= 1.02 * share:
        suspects["clock"] = f"it ran at {significant(share)} times the clock that the peak assumes"
    faster = [
        precision
        for precision in machine.precisions
        if precision != point.precision and machine.peak(precision) >= over * peak.flops
    ]
    if faster:
        suspects["precision"] = (
            f"possible in {', '.join(faster)}: did the library use another type?"
        )
    if over <= 2 and machine.kind != "CPU":
        suspects["sparsity"] = (
            "2:4 sparsity doubles a tensor core's peak: "
            "is the roof the dense one, is the data sparse?"
        )
    return suspects


def _above_slope(point, machine, over):
    """Suspects where the bytes came faster than DRAM delivers, by the factor `over`."""
    if over <= 1:
        return {}
    for size, level in caches(machine.capacities):
        if point.working_set < 4 * size:
            used = quantity(point.working_set, "byte")
            why = f"its {used} were used again and again, and {level} keeps them or a part of them"
            return {"cache level": why}
    if not caches(machine.capacities):
        used = quantity(point.working_set, "byte")
        return {"cache level": f"no cache is known here, and one may have kept its {used}"}
    width = bytes_per_element(point.precision)
    if over > 2 * width:
        return {}
    why = f"were the elements narrower than the {significant(width)} byte that were counted?"
    if machine.kind == "CPU":
        why += " Or was the roof itself measured on a busy machine?"
    return {"precision": why}


def _clock_share(point: Point, peak: Peak, machine: Machine) -> float | None:
    """Recorded clock over the one that the peak assumes; None where either is not known."""
    assumed = peak.clock or machine.details.get("clock")
    return point.clock / assumed if assumed and point.clock else None
