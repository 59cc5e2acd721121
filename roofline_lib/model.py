"""The roofline model: work, and the least time a machine can take for it.

Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, doi:10.1145/1498765.1498785.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from roofline_lib.arguments import Number, Value, number, plain
from roofline_lib.machines import Machine, as_machine
from roofline_lib.quantities import quantity


@dataclass(frozen=True)
class Work:
    """What a computation does: `flops` (FLOP; a multiply-add is 2) and `bytes_moved` (byte), floats
    or arrays that broadcast.

    `work + work` is one after the other, `n * work` the same n times over, and `sum` works.
    """

    flops: Value
    bytes_moved: Value

    __array_ufunc__ = None  # so that numpy numbers leave n * work to us

    def __post_init__(self) -> None:
        flops = number("flops", self.flops, "FLOP", least=0)
        bytes_moved = number("bytes_moved", self.bytes_moved, "byte", least=0)
        object.__setattr__(self, "flops", flops)
        object.__setattr__(self, "bytes_moved", bytes_moved)
        if isinstance(flops, np.ndarray) and isinstance(bytes_moved, np.ndarray):
            try:
                np.broadcast_shapes(flops.shape, bytes_moved.shape)
            except ValueError as error:
                raise ValueError(
                    "flops (FLOP) and bytes_moved (byte) must have shapes that fit together: "
                    f"{error}"
                ) from None

    @property
    def intensity(self) -> Value:
        """Arithmetic intensity in FLOP/byte: infinite where nothing is moved, NaN where nothing
        happens at all."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return plain(np.divide(self.flops, self.bytes_moved))

    def __add__(self, other: Work | int) -> Work:
        if isinstance(other, Work):
            return Work(self.flops + other.flops, self.bytes_moved + other.bytes_moved)
        # sum() starts from 0
        return self if isinstance(other, int) and other == 0 else NotImplemented

    __radd__ = __add__

    def __mul__(self, times: Number) -> Work:
        times = number("times", times, "repetitions", least=0)
        return Work(times * self.flops, times * self.bytes_moved)

    __rmul__ = __mul__

    def __str__(self) -> str:
        if np.ndim(self.flops) or np.ndim(self.bytes_moved):
            shape = np.broadcast_shapes(np.shape(self.flops), np.shape(self.bytes_moved))
            return f"Work of shape {shape}"
        parts = (
            quantity(self.flops, "FLOP"),
            quantity(self.bytes_moved, "byte"),
            quantity(self.intensity, "FLOP/byte"),
        )
        return ", ".join(parts)


def fused(*works: Work, bytes_moved: Number) -> Work:
    """The works as one kernel: the same FLOP, but only `bytes_moved` (byte) cross memory.
    ValueError where that is more than apart."""
    if not works or not all(isinstance(work, Work) for work in works):
        raise ValueError(f"fused takes one Work or more; got {works!r}")
    apart = reduce(add, works)
    if np.any(number("bytes_moved", bytes_moved, "byte", least=0) > np.asarray(apart.bytes_moved)):
        raise ValueError(
            f"bytes_moved must be at most what the works move apart, {apart.bytes_moved} byte; "
            f"got {bytes_moved}"
        )
    return Work(apart.flops, bytes_moved)


def attainable_performance(intensity: Number, peak_flops: Number, bandwidth: Number) -> Value:
    """FLOP/s under the roof: min(peak_flops, bandwidth * intensity). Takes FLOP/byte, FLOP/s and
    byte/s; all broadcast."""
    intensity = number("intensity", intensity, "FLOP/byte", least=0, finite=False)
    peak = number("peak_flops", peak_flops, "FLOP/s", above=0)
    return plain(np.minimum(peak, number("bandwidth", bandwidth, "byte/s", above=0) * intensity))


@dataclass(frozen=True)
class Bound:
    """The least times (s) in which a machine can do a Work, and which of the two limits it. Arrays
    where the Work has arrays."""

    work: Work
    peak_flops: float
    bandwidth: float

    @property
    def compute_time(self) -> Value:
        """Seconds for the arithmetic alone: FLOP / peak."""
        return self.work.flops / self.peak_flops

    @property
    def memory_time(self) -> Value:
        """Seconds for the traffic alone: byte / bandwidth."""
        return self.work.bytes_moved / self.bandwidth

    @property
    def time(self) -> Value:
        """Seconds at least: the larger of the two, as if they overlapped perfectly."""
        return plain(np.maximum(self.compute_time, self.memory_time))

    @property
    def bound_by(self) -> str | np.ndarray:
        """ "compute" where intensity >= ridge point, else "memory"; cross-multiplied, so that a
        point on the ridge counts as compute."""
        verdict = np.where(
            at_least_ridge(self.work, self.peak_flops, self.bandwidth), "compute", "memory"
        )
        return str(verdict) if verdict.ndim == 0 else verdict

    @property
    def attainable_performance(self) -> Value:
        """FLOP/s at most; NaN, as the intensity, where nothing happens at all."""
        return plain(np.minimum(self.peak_flops, self.bandwidth * self.work.intensity))

    def __repr__(self) -> str:
        if np.ndim(self.time):
            verdicts = np.asarray(self.bound_by)
            share = f"{np.count_nonzero(verdicts == 'compute')} of {verdicts.size}"
            return f"Bound of shape {verdicts.shape}, {share} compute-bound"
        compute, memory = quantity(self.compute_time, "s"), quantity(self.memory_time, "s")
        return f"{self.bound_by}-bound: {compute} compute, {memory} memory"


def bound(
    work: Work,
    machine: Machine | str,
    precision: str,
    level: str = "DRAM",
    *,
    accumulate: str | None = None,
) -> Bound:
    """The Bound of a Work on a machine (or its name) at one precision.

    The bytes of the Work are taken as moved at one memory `level`. `accumulate` picks among several
    peaks of one precision by the precision of their sums, as in `Machine.peak`. UnknownName for a
    machine, precision, level or accumulate precision that is not known.
    """
    if not isinstance(work, Work):
        raise ValueError(f"work must be a Work(flops, bytes_moved); got {work!r}")
    machine = as_machine(machine)
    return Bound(work, machine.peak(precision, accumulate), machine.bandwidth(level))


def time_in_sequence(
    works: Iterable[Work],
    machine: Machine | str,
    precision: str,
    level: str = "DRAM",
    *,
    accumulate: str | None = None,
) -> Value:
    """Seconds at least for several Works one after the other.

    It is the sum of their bounds' times: nothing of one Work overlaps with the next. The other
    arguments are those of `bound`.
    """
    return sum(bound(work, machine, precision, level, accumulate=accumulate).time for work in works)


def at_least_ridge(work: Work, peak_flops: Number, bandwidth: Number) -> np.ndarray:
    """Whether intensity >= ridge point, without a division."""
    return np.asarray(work.flops) * bandwidth >= np.asarray(work.bytes_moved) * peak_flops
