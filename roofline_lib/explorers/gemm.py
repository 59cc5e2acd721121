"""Lesson 1 and 2: where one matrix product stands under the roof."""

from roofline_lib.explorers.base import Explorer, Scene, no_peak, roofline, roofline_axes
from roofline_lib.explorers.controls import Choice, MachineChoice, Number
from roofline_lib.explorers.marks import Gap, Line, Point
from roofline_lib.model import bound
from roofline_lib.operators import gemm
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, INK

_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")


class GemmExplorer(Explorer):
    """C[m, n] = A[m, k] @ B[k, n] with compulsory traffic, under the roof of a machine: where the
    point stands, and why.

    `machine` is a Machine or a name, `m`, `n`, `k` are in elements (1 to 65536). Controls: machine,
    m, n, k, precision.
    """

    def __init__(self, machine="A100 40GB SXM", m=1024, n=1024, k=1024, precision="fp32"):
        super().__init__(
            Choice("precision", precision, _PRECISIONS),
            MachineChoice(machine),
            Number("m", m, 1, 65536, "rows of A"),
            Number("n", n, 1, 65536, "columns of B"),
            Number("k", k, 1, 65536, "columns of A"),
        )

    @staticmethod
    def scene(machine, precision, m, n, k):
        name = f"[{m}, {k}] @ [{k}, {n}] in {precision}"
        if precision not in machine.precisions:
            return no_peak(machine, precision, _PRECISIONS)
        work = gemm(m, n, k, precision)
        limit = bound(work, machine, precision)
        reach = limit.attainable_performance
        axes = roofline_axes(
            [work.intensity, limit.peak_flops / limit.bandwidth], [reach / 2, 2 * limit.peak_flops]
        )
        marks = roofline(axes, limit.peak_flops, limit.bandwidth, precision)
        if limit.bound_by == "memory":
            marks += (
                Line(
                    (work.intensity, limit.peak_flops / limit.bandwidth),
                    (limit.peak_flops,) * 2,
                    COMPUTE,
                    "",
                    1.3,
                    (5, 4),
                ),
                Gap(
                    work.intensity,
                    reach,
                    limit.peak_flops,
                    f"{significant(limit.peak_flops / reach)}x below the peak",
                ),
            )
        marks += (
            Point(
                work.intensity, reach, f"{significant(work.intensity)} FLOP/byte", INK, bold=True
            ),
        )
        readout = (
            f"{name} on {machine.name}: {work}, {limit.bound_by}-bound. The arithmetic takes at least "
            f"{quantity(limit.compute_time, 's')}, the traffic {quantity(limit.memory_time, 's')}."
        )
        stands = "on the slope" if limit.bound_by == "memory" else "under the flat roof"
        alt = (
            f"Roofline of {machine.name} in {precision}: {quantity(limit.bandwidth, 'byte/s')} and "
            f"{quantity(limit.peak_flops, 'FLOP/s')} meet at {significant(limit.peak_flops / limit.bandwidth)} FLOP/byte. "
            f"The product stands {stands} at {quantity(reach, 'FLOP/s')}."
        )
        return Scene((axes,), marks, readout, alt)
