"""Exercises of lesson 02: practice values and choices, and what the marked functions are checked
with on the spot."""

import roofline_lib as rl
from roofline_lib.checks import Question
from roofline_lib.questions import first

_NAMES = {4: "fp32", 2: "bf16", 1: "int8"}
_HOUSE = rl.machine("house chip")


def _busy_memory(precision="fp32", passes_over_c=1, flop_share=1):
    """Percent of the time of the n = 1024 product for which the house chip's memory is busy."""
    work = rl.gemm(1024, 1024, 1024, precision)
    moved = work.bytes_moved + (passes_over_c - 1) * rl.bytes_per_element(precision) * 1024**2
    limit = rl.bound(rl.Work(flop_share * work.flops, moved), _HOUSE, "fp32")
    return 100 * limit.memory_time / limit.time


def _reached(name="H100 SXM", factor=1):
    """Percent of a chip's bf16 peak that an 8192-cube in 1.6 ms is."""
    return (
        100
        * rl.gemm(8192, 8192, 8192, "bf16").flops
        / 1.6e-3
        / (factor * rl.machine(name).peak("bf16"))
    )


def _one_after_the_other(flop_share=1):
    product, total = rl.gemm(2048, 2048, 2048), rl.elementwise(1e8)
    return rl.time_in_sequence(
        [rl.Work(flop_share * product.flops, product.bytes_moved), total], _HOUSE, "fp32"
    )


def _fewer_flop():
    """What half the FLOP do to the best time of a job of 3 FLOP/byte."""
    ratio = (
        rl.bound(rl.Work(1.5e9, 1e9), _HOUSE, "fp32").time
        / rl.bound(rl.Work(3e9, 1e9), _HOUSE, "fp32").time
    )
    return {0.5: "half", 1.0: "the same"}[ratio]


def _share(flops, bytes_moved, peak, bandwidth):
    return rl.attainable_performance(rl.Work(flops, bytes_moved).intensity, peak, bandwidth) / peak


def _overlap(intensity, ridge_point):
    limit = rl.Bound(rl.Work(intensity, 1.0), ridge_point, 1.0)
    return (limit.compute_time + limit.memory_time) / limit.time


def _slowest(flops, peak, levels):
    """Through a Bound for each level."""
    limits = {
        name: rl.Bound(rl.Work(flops, moved), peak, bandwidth) for name, moved, bandwidth in levels
    }
    name = max(limits, key=lambda level: limits[level].memory_time)
    return [limits[name].time, "arithmetic" if limits[name].bound_by == "compute" else name]


def _smallest(p, q, r, element_bytes, ridge_point, passes_over_c=1):
    def reaches(n):
        work = rl.gemm(p * n, q * n, r * n, _NAMES[element_bytes])
        return work.flops >= ridge_point * (
            work.bytes_moved + (passes_over_c - 1) * element_bytes * p * q * n * n
        )

    return first(reaches)


def _unnoticed(share, element_bytes, peak, bandwidth):
    name = _NAMES[element_bytes]

    def small(n):
        one_pass = rl.Bound(
            rl.elementwise(n * n, name, reads=1, flops_per_element=0), peak, bandwidth
        ).time
        return one_pass <= share * (
            rl.Bound(rl.gemm(n, n, n, name), peak, bandwidth).time + one_pass
        )

    return first(small)


QUESTIONS = [
    Question(
        "02.x-n1024",
        "C = AB with n = 1024 in fp32 runs at the roof of the house chip, 20 TFLOP/s and 2 TB/s. For what share of its "
        "time is the memory busy?",
        unit="%",
        reference=_busy_memory,
        slips={
            "mac-is-flop": lambda: _busy_memory(flop_share=0.5),
            "wrong-width": lambda: _busy_memory("bf16"),
            "forgot-c": lambda: _busy_memory(passes_over_c=0),
            "read-c": lambda: _busy_memory(passes_over_c=2),
        },
        hint="2n³ FLOP and three matrices of 4 n² byte: two times, and their ratio.",
    ),
    Question(
        "02.x-bandwidth",
        "A job of 40 FLOP/byte shall be able to use all the 60 TFLOP/s of a chip. How fast must the memory be?",
        unit="TB/s",
        reference=lambda: 60e12 / rl.attainable_performance(40, 60e12, 1.0),
        slips={"mac-is-flop": lambda: 30e12 / rl.attainable_performance(40, 60e12, 1.0)},
        hint="the ridge point must not lie right of the job.",
    ),
    Question(
        "02.x-efficiency",
        "On an H100 SXM a product of 8192 x 8192 matrices in bf16 takes 1.6 ms. What share is that of what the "
        "roof allows?",
        unit="%",
        reference=_reached,
        slips={
            "mac-is-flop": lambda: _reached() / 2,
            "sparse-peak": lambda: _reached(factor=2),
            "wrong-chip": lambda: _reached("H100 PCIe"),
        },
        hint="far right of the ridge the roof is the dense bf16 peak.",
    ),
    Question(
        "02.x-two-kernels",
        "The house chip multiplies two 2048 x 2048 matrices in fp32 and, when that is done, adds two vectors of "
        "1e8 numbers. How long do the two take at least?",
        unit="ms",
        reference=_one_after_the_other,
        slips={"mac-is-flop": lambda: _one_after_the_other(flop_share=0.5)},
        hint="the sum begins when the product has ended, so neither hides behind the other: one limit for each.",
    ),
    Question(
        "02.x-fewer-flop",
        "A job of 3 FLOP/byte runs in fp32 at the roof of the house chip. A cleverer method needs half the FLOP "
        "and the same bytes. Its best time is half, the same, or twice?",
        reference=_fewer_flop,
        choices=("half", "the same", "twice"),
        hint="left of the ridge only the bytes count; the point moves left and down along the slope.",
    ),
    Question(
        "02.x-share",
        "A function: the share of the peak, 0 to 1, that a job can reach at most.",
        reference=_share,
        tolerance=1e-6,
        inputs=lambda: [(1e9, 12e9, 20e12, 2e12), (2e12, 1e9, 20e12, 2e12), (1e9, 0, 20e12, 2e12)],
        hint="the roof over the peak; it is never above 1, and a job without traffic stands under the flat part.",
    ),
    Question(
        "02.x-overlap",
        "A function: how many times as long a job takes when fetching and computing take turns.",
        reference=_overlap,
        tolerance=1e-6,
        inputs=lambda: [(10, 10), (0.25, 10), (170, 12.5)],
        hint="the sum of the two times over the longer of them; their ratio is intensity over ridge point.",
    ),
    Question(
        "02.x-slowest",
        "A function: [seconds, name] of what takes longest, a memory level or the arithmetic.",
        reference=_slowest,
        tolerance=1e-6,
        inputs=lambda: [
            (4e12, 20e12, [["DRAM", 2e11, 2e12], ["L2", 3e12, 8e12]]),
            (6, 3, [["DRAM", 8, 4]]),
        ],
        hint="the bytes of each level over that level's own bandwidth; on a ridge the arithmetic wins.",
    ),
    Question(
        "02.x-smallest",
        "A function: the smallest whole n at which [pn, rn] @ [rn, qn] reaches the ridge point.",
        reference=_smallest,
        tolerance=1e-9,
        inputs=lambda: [(1, 1, 1, 4, 10), (4, 1, 1, 2, 150), (3, 5, 1, 2, 295.3)],
        slips={
            "forgot-c": lambda *args: _smallest(*args, passes_over_c=0),
            "read-c": lambda *args: _smallest(*args, passes_over_c=2),
        },
        hint="write FLOP and bytes with n³ and n², divide, set equal to the ridge point, round up.",
    ),
    Question(
        "02.x-unnoticed",
        "A function: the smallest n from which the pass over C costs at most `share` of the time.",
        reference=_unnoticed,
        tolerance=1e-9,
        inputs=lambda: [(0.05, 2, 312e12, 2039e9), (0.3, 4, 19.5e12, 1555e9), (0.6, 2, 3e14, 2e12)],
        hint="left of the ridge the share does not depend on n at all; what is it there?",
    ),
]
