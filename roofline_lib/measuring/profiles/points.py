"""A profile's kernels as points, and what a machine's roof says of each."""

import csv
import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roofline_lib.arguments import parsed_json
from roofline_lib.machines import Machine, as_machine
from roofline_lib.measuring.profiles import formats
from roofline_lib.measuring.record import FORMAT
from roofline_lib.model import Bound, Work, bound
from roofline_lib.quantities import quantity, significant

ABOVE = 1.005  # of what is attainable: so much may be rounding
BELOW = 0.5
SHORT = 20e-6  # seconds: of a kernel as short as this its start is a large part
_NAME_LENGTH, _LABEL = 44, 28  # letters, in the table and in a picture


@dataclass(frozen=True)
class Profiled:
    """A kernel as a profiler saw it: its Work (FLOP counted, bytes at DRAM or, where the profiler
    has only shapes, the compulsory ones), seconds, and the precision of most of its FLOP."""

    name: str
    work: Work
    seconds: float
    precision: str

    @property
    def performance(self) -> float:
        """FLOP/s."""
        return self.work.flops / self.seconds

    @property
    def bandwidth(self) -> float:
        """Byte/s."""
        return self.work.bytes_moved / self.seconds


@dataclass(frozen=True)
class Verdict:
    """A Profiled under a machine's roof: the least time by its Bound, the share of what is
    attainable that it reached, and what to suspect."""

    point: Profiled
    bound: Bound
    suspects: tuple[str, ...]

    @property
    def share(self) -> float:
        """The least time over the measured one: 1 on the roof."""
        return float(self.bound.time) / self.point.seconds


def read_profile(path: str | os.PathLike) -> list[Profiled]:
    """The kernels of a profiler's file, in its order.

    Read are Nsight Compute's CSV (`--page raw` or `details`), a Chrome trace of PyTorch's profiler
    (JSON, with shapes), JAX's cost analysis with a time, `perf stat -x,` with Intel's counters,
    `likwid-perfctr -O`, and what `write_profile` wrote. ValueError names the file and what is
    missing in it, with the command that brings it; OSError where it cannot be read.
    """
    text = Path(path).read_text(encoding="utf-8-sig", errors="replace")
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(text: str) -> list[Profiled]:
    """The same, of the text of a file."""
    try:
        rows = _rows(text)
        if not rows:
            raise ValueError("no kernel in it")
        return [_profiled(row) for row in rows]
    except KeyError as error:
        raise ValueError(f"not as its profiler writes it: a part has no {error}") from None
    except (TypeError, IndexError, AttributeError, csv.Error):
        raise ValueError("not as its profiler writes it: a part has another form") from None


def _rows(text: str) -> list[formats.Row]:
    if text.lstrip().startswith("{"):
        data = parsed_json("the text", text)
        if data.get("schema") == FORMAT:
            raise ValueError("a record that `measure` wrote: rl.MeasuredExplorer(path) draws it")
        for key, reader in (
            ("traceEvents", formats.torch_trace),
            ("points", formats.counts),
            ("cost", formats.jax_cost),
        ):
            if key in data:
                return reader(data)
    elif "Kernel Name" in text:
        return formats.nsight(text)
    elif "TABLE,Group" in text or "TABLE,Region" in text:
        return formats.likwid(text)
    elif "duration_time" in text or "fp_arith_inst_retired" in text:
        return formats.perf_stat(text)
    raise ValueError(
        "no profile that is known here; read are: Nsight Compute's CSV "
        f"({formats.NSIGHT_EXPORT}), PyTorch's trace ({formats.TRACE_COMMAND}), JAX's cost "
        "analysis with a time, perf stat -x, and likwid-perfctr -O, and what "
        "measuring.profiles.write_profile writes"
    )


def _profiled(row: formats.Row) -> Profiled:
    flops = sum(row.flops.values())
    for what, value in (("seconds", row.seconds), ("bytes", row.bytes_moved), ("FLOP", flops + 1)):
        if not 0 < value < math.inf:
            raise ValueError(
                f"kernel {row.name[:60]!r}: {what} must be a number above 0; got {value}"
            )
    precision = max(row.flops, key=lambda one: row.flops[one], default="fp32")
    return Profiled(row.name, Work(flops, row.bytes_moved), row.seconds, precision)


def write_profile(path: str | os.PathLike, points: Iterable[Profiled]) -> None:
    """Write points as JSON, for counts of your own: FLOP from torch.utils.flop_counter, say, with a
    time beside."""
    rows = [
        {
            "name": one.name,
            "flops": one.work.flops,
            "bytes": one.work.bytes_moved,
            "seconds": one.seconds,
            "precision": one.precision,
        }
        for one in points
    ]
    Path(path).write_text(json.dumps({"points": rows}, indent=1) + "\n", encoding="utf-8")


def held_against(points: Iterable[Profiled], machine: Machine | str) -> list[Verdict]:
    """Each point under the machine's roof, at its own precision. UnknownName where the machine has
    no peak at that."""
    chip = as_machine(machine)
    return [_verdict(point, bound(point.work, chip, point.precision), chip) for point in points]


def _verdict(point: Profiled, limit: Bound, chip: Machine) -> Verdict:
    share = float(limit.time) / point.seconds
    suspects: list[str] = []
    if share > ABOVE:
        if point.bandwidth > chip.bandwidth():
            suspects.append("more bytes a second than DRAM has: a cache held them (warm, or small)")
        if point.performance > chip.peak(point.precision):
            suspects.append(
                "more FLOP a second than the peak: another chip or clock, a sparse peak's work, "
                "FLOP counted twice, or another precision"
            )
    elif share < BELOW:
        if point.seconds < SHORT:
            suspects.append(f"only {quantity(point.seconds, 's')} long: its start is part of that")
        if not point.work.flops:
            suspects.append("it computes nothing: it only moves")
        suspects.append("few or half-empty waves, low occupancy, or uncoalesced loads")
    return Verdict(point, limit, tuple(suspects))


def table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as text, a line each, the suspects below theirs."""
    lines = [f"{'kernel':{_NAME_LENGTH}} {'prec.':5} {'FLOP/byte':>9} {'FLOP/s':>12}  share  bound"]
    for one in verdicts:
        point = one.point
        name = (
            point.name
            if len(point.name) <= _NAME_LENGTH
            else point.name[: _NAME_LENGTH - 3] + "..."
        )
        lines.append(
            f"{name:{_NAME_LENGTH}} {point.precision:5} {significant(point.work.intensity):>9} "
            f"{quantity(point.performance, 'FLOP/s'):>12} {one.share:6.0%}  {one.bound.bound_by}"
        )
        lines += [f"    suspect: {suspect}" for suspect in one.suspects]
    return "\n".join(lines)


def named(points: Iterable[Profiled]) -> dict[str, tuple[Work, float]]:
    """The points that compute something as `draw_roofline` takes them: name -> (Work, FLOP/s). A
    name that comes again gets a number."""
    found: dict[str, tuple[Work, float]] = {}
    for point in points:
        if point.work.flops:
            name, again = point.name[:_LABEL], 2
            while name in found:
                name, again = f"{point.name[:_LABEL]} ({again})", again + 1
            found[name] = point.work, point.performance
    return found
