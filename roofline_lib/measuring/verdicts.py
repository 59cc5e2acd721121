"""What a measured point says: where it stands under the roof, what explains the gap, and what to
suspect where it stands above."""

from dataclasses import dataclass

from roofline_lib.machines import Machine, as_machine
from roofline_lib.measuring.cpu import counted_peaks
from roofline_lib.measuring.record import BANDWIDTH_FAMILIES, work_of
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
class Verdict:
    """`ratio`: measured over attainable. `suspects`, above 1: {"units", "sparsity", "clock", "cache
    level", "precision": why}."""

    ratio: float
    regime: str
    suspects: dict
    text: str

    def __str__(self):
        return self.text


def sheet(record):
    """The roof from before anything was measured. GPU: the catalogue's, UnknownName where it has
    none of that name. CPU: counted peaks (`cpu.counted_peaks`) over the bandwidths that the record
    itself shows, since no sheet prints those of a few cores of a server."""
    found = record["machine"]
    if found["kind"] == "GPU":
        try:
            return as_machine(found["name"])
        except KeyError:
            return as_machine(found["name"].removeprefix("NVIDIA "))
    kept_up = Machine.from_record(record)
    return Machine(
        f"{found['name']}, counted",
        counted_peaks(found),
        kept_up.bandwidths,
        kept_up.capacities,
        kept_up.units,
        "CPU",
        "core",
        {"clock": found["clock"]},
    )


def verdict(measured, machine):
    """The Verdict on a record's point under the roof of `machine` (a Machine or its name), with
    DRAM's bandwidth."""
    machine = as_machine(machine)
    roof, seconds = (
        bound(work_of(measured), machine, measured["precision"]),
        measured["seconds"]["median"],
    )
    ratio, where = roof.time / seconds, regime(measured, machine)
    if ratio <= 1 + 1e-5:  # the stream that set a roof stands on it, and a record keeps six digits
        return Verdict(ratio, where, {}, f"{significant(100 * ratio)} % of attainable ({where})")
    suspects = _above_peak(measured, machine, roof.compute_time / seconds)
    suspects |= _above_slope(measured, machine, roof.memory_time / seconds)
    slip = next(
        (why for factor, why in UNIT_SLIPS.items() if abs(ratio / factor - 1) < 0.005), None
    )
    if slip or not suspects:
        suspects["units"] = (
            slip or "nothing else explains it: check FLOP, bytes and seconds one by one"
        )
    why = "; ".join(f"{name}: {reason}" for name, reason in suspects.items())
    return Verdict(
        ratio,
        where,
        suspects,
        f"{significant(ratio, 4)} times attainable ({where}), which cannot be. Suspect {why}",
    )


def regime(measured, machine):
    """Where a point is: "cache" (a stream no larger than twice the last cache), "memory", "ridge"
    (a factor 2 around it) or "compute"."""
    machine, work = as_machine(machine), work_of(measured)
    caches = [size for level, size in machine.capacities.items() if level.startswith("L")]
    if measured["family"] in BANDWIDTH_FAMILIES and measured["working_set"] < 2 * max(
        caches, default=0
    ):
        return "cache"
    place = work.intensity / machine.ridge_point(measured["precision"])
    return "memory" if place < 0.5 else "compute" if place > 2 else "ridge"


def explain(measured, machine, sustained, floor=0.0, tile=(128, 128)):
    """Factors whose product is measured over attainable: {"clock", "bandwidth", "waves", "latency",
    "rest"}, each 1 where it takes nothing.

    clock: the clock under load over the one that the machine's peak assumes. bandwidth: what
    streams kept up on the same machine (`sustained`, a Machine). waves: multiprocessors that
    `tile`s of C leave idle. latency: `floor` seconds besides the work itself (see `launch_floor`).
    rest: what none of these explains; above 1 where they explain too much, as when the library's
    tiles were smaller.
    """
    machine, precision = as_machine(machine), measured["precision"]
    roof = bound(work_of(measured), machine, precision)
    clock = _clock_share(measured, machine.find_peak(precision), machine) or 1.0
    compute, memory = roof.compute_time / clock, roof.work.bytes_moved / sustained.bandwidth()
    waves = 1.0
    if machine.units and {"m", "n"} <= measured["shape"].keys() and machine.kind == "GPU":
        waves = wave_efficiency(
            tile_count(measured["shape"]["m"], measured["shape"]["n"], tile), machine.units
        )
    times = {
        "clock": max(compute, roof.memory_time),
        "bandwidth": max(compute, memory),
        "waves": max(compute / waves, memory),
    }
    times["latency"], times["rest"] = times["waves"] + floor, measured["seconds"]["median"]
    factors, before = {}, roof.time
    for name, after in times.items():
        factors[name], before = before / after, after
    return factors


def launch_floor(record, precision):
    """The shortest product of a record in that precision (s): what a kernel costs that has next to
    nothing to do."""
    return min(
        p["seconds"]["median"]
        for p in record["points"]
        if p["family"] == "gemm_n" and p["precision"] == precision
    )


def _above_peak(measured, machine, over):
    """Suspects where the arithmetic ran faster than the peak, by the factor `over`."""
    if over <= 1:
        return {}
    peak, suspects = machine.find_peak(measured["precision"]), {}
    share = _clock_share(measured, peak, machine)
    if share is None and over < 1.6:
        suspects["clock"] = (
            "none was recorded, or the peak does not say which it assumes; a boost clock can be half above a nominal one"
        )
    elif share is not None and 1 < share and over <= 1.02 * share:
        suspects["clock"] = f"it ran at {significant(share)} times the clock that the peak assumes"
    faster = [
        p
        for p in machine.precisions
        if p != measured["precision"] and machine.peak(p) >= over * peak.flops
    ]
    if faster:
        suspects["precision"] = (
            f"possible in {', '.join(faster)}: did the library use another type?"
        )
    if over <= 2 and machine.kind != "CPU":
        suspects["sparsity"] = (
            "2:4 sparsity doubles a tensor core's peak: is the roof the dense one, is the data sparse?"
        )
    return suspects


def _above_slope(measured, machine, over):
    """Suspects where the bytes came faster than DRAM delivers, by the factor `over`."""
    if over <= 1:
        return {}
    caches = [(size, level) for level, size in machine.capacities.items() if level.startswith("L")]
    if fits := [cache for cache in caches if measured["working_set"] < 4 * cache[0]]:
        used = quantity(measured["working_set"], "byte")
        return {
            "cache level": f"its {used} were used again and again, and {min(fits)[1]} keeps them or a part of them"
        }
    width = bytes_per_element(measured["precision"])
    busy = " Or was the roof itself measured on a busy machine?" if machine.kind == "CPU" else ""
    narrower = (
        f"were the elements narrower than the {significant(width)} byte that were counted?{busy}"
    )
    return {"precision": narrower} if over <= 2 * width else {}


def _clock_share(measured, peak, machine):
    """Recorded clock over the one that the peak assumes; None where either is not known."""
    assumed = peak.clock or machine.details.get("clock")
    return measured["clock"] / assumed if assumed and measured.get("clock") else None
