"""Lesson 1 and 2: where one matrix product stands under the roof."""

from dataclasses import dataclass

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import MachineChoice, Number, PrecisionChoice
from roofline_lib.explorers.marks import Gap, Mark, Point
from roofline_lib.explorers.scenes import Scene, dashed, no_peak, roofline, roofline_axes
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.model import Bound, Work, bound
from roofline_lib.operators import gemm
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, INK


class GemmExplorer(Explorer):
    """C[m, n] = A[m, k] @ B[k, n] with compulsory traffic, under the roof of a machine: where the
    point stands, and why.

    `machine` is a Machine or a name, `m`, `n`, `k` are in elements (1 to 65536). Controls: machine,
    m, n, k, precision.
    """

    sample = {"machine": "A100 40GB SXM", "m": 64, "n": 4096, "k": 4096, "precision": "bf16"}

    def __init__(
        self,
        machine: Machine | str = "A100 40GB SXM",
        m: int = 1024,
        n: int = 1024,
        k: int = 1024,
        precision: str = "fp32",
    ):
        chip = MachineChoice(machine)
        super().__init__(
            PrecisionChoice("precision", precision, chip),
            chip,
            Number("m", m, 1, 65536, "rows of A"),
            Number("n", n, 1, 65536, "columns of B"),
            Number("k", k, 1, 65536, "columns of A"),
        )

    @staticmethod
    def scene(machine, precision, m, n, k):
        if precision not in machine.precisions:
            return no_peak(machine, precision)
        found = figures(machine, precision, m, n, k)
        axes = axes_for(found)
        return Scene((axes,), marks(found, axes), sentences(found), alt(found))


@dataclass(frozen=True)
class Figures:
    """One product on one machine: its shape, and its bound (which holds its work)."""

    machine: Machine
    precision: str
    m: int
    n: int
    k: int
    limit: Bound

    @property
    def work(self) -> Work:
        return self.limit.work

    @property
    def ridge(self) -> float:
        return self.limit.peak_flops / self.limit.bandwidth

    @property
    def reach(self) -> float:
        return self.limit.attainable_performance

    @property
    def below_the_slope(self) -> bool:
        return self.limit.bound_by == "memory"


def figures(machine: Machine, precision: str, m: int, n: int, k: int) -> Figures:
    limit = bound(gemm(m, n, k, precision), machine, precision)
    return Figures(machine, precision, m, n, k, limit)


def axes_for(found: Figures) -> Axes:
    peak = found.limit.peak_flops
    return roofline_axes([found.work.intensity, found.ridge], [found.reach / 2, 2 * peak])


def marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    peak, x = found.limit.peak_flops, found.work.intensity
    point = Point(x, found.reach, f"{significant(x)} FLOP/byte", INK, bold=True)
    roof = roofline(axes, peak, found.limit.bandwidth, found.precision)
    if not found.below_the_slope:
        return (*roof, point)
    times = significant(peak / found.reach)
    return (
        *roof,
        dashed((x, found.ridge), (peak, peak), COMPUTE),
        Gap(x, found.reach, peak, f"{times}x below the peak"),
        point,
    )


def sentences(found: Figures) -> tuple[str, ...]:
    limit, m, n, k = found.limit, found.m, found.n, found.k
    name = f"[{m}, {k}] @ [{k}, {n}] in {found.precision} on {found.machine.name}"
    arithmetic, traffic = (quantity(time, "s") for time in (limit.compute_time, limit.memory_time))
    return (
        f"{name}: {found.work}, {limit.bound_by}-bound.",
        f"The arithmetic takes at least {arithmetic}, the traffic {traffic}.",
    )


def alt(found: Figures) -> str:
    slope = quantity(found.limit.bandwidth, "byte/s")
    flat = quantity(found.limit.peak_flops, "FLOP/s")
    stands = "on the slope" if found.below_the_slope else "under the flat roof"
    return (
        f"Roofline of {found.machine.name} in {found.precision}: {slope} and {flat} meet at "
        f"{significant(found.ridge)} FLOP/byte. The product stands {stands} at "
        f"{quantity(found.reach, 'FLOP/s')}."
    )
