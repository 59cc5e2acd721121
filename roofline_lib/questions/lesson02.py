"""Lesson 02: the roofline."""

from math import ceil

import roofline_lib as rl
from roofline_lib.checks import Question


def _ridge(name, precision):
    return rl.machine(name).ridge_point(precision)


def _sum_time(precision="bf16", writes=1):
    """Seconds that the vector sum of the second question takes at least."""
    return rl.bound(rl.elementwise(1e9, precision, writes=writes), "A100 80GB SXM", "bf16").time


def _side(elements_moved, factor=1, width=2):
    """Smallest n whose n x n x n product in `width`-byte numbers, with elements_moved n^2 of
    traffic, reaches `factor` ridge points."""
    return ceil(elements_moved * width * factor * _ridge("A100 80GB SXM", "bf16") / 2)


def _narrower():
    """How the best time of a vector sum on the house chip changes from fp32 to bf16."""
    ratio = (
        rl.bound(rl.elementwise(1e9), "house chip", "fp32").time
        / rl.bound(rl.elementwise(1e9, "bf16"), "house chip", "bf16").time
    )
    return {1: "the same", 2: "half", 15: "a fifteenth"}[round(ratio)]


QUESTIONS = [
    Question(
        "02.ridge",
        "A V100 SXM2 does 125 TFLOP/s in fp16 and moves 900 GB/s. Where is its ridge point?",
        unit="FLOP/byte",
        reference=lambda: _ridge("V100 SXM2", "fp16"),
        slips={
            "mac-is-flop": lambda: _ridge("V100 SXM2", "fp16") / 2,
            "mac-is-flop (twice too often)": lambda: 2 * _ridge("V100 SXM2", "fp16"),
        },
        hint="peak over bandwidth, both in the same prefix.",
    ),
    Question(
        "02.sum-time",
        "An A100 80GB SXM moves 2039 GB/s. How long does it take at least to add two vectors of 1e9 bf16 numbers?",
        unit="ms",
        reference=_sum_time,
        slips={
            "forgot-c": lambda: _sum_time(writes=0),
            "wrong-width": lambda: _sum_time("fp32"),
            "elements-not-bytes": lambda: _sum_time("int8"),
        },
        hint="it stands far left of the ridge, so only the bytes count: two vectors in, one out.",
    ),
    Question(
        "02.h100-ridge",
        "Where is the bf16 ridge point of an H100 SXM, dense, with the catalogue's figures?",
        unit="FLOP/byte",
        reference=lambda: _ridge("H100 SXM", "bf16"),
        slips={
            "sparse-peak": lambda: 2 * _ridge("H100 SXM", "bf16"),
            "wrong-chip": lambda: _ridge("H100 PCIe", "bf16"),
        },
        hint='rl.machine("H100 SXM") knows peak and bandwidth.',
    ),
    Question(
        "02.critical-size",
        "What is the smallest whole n whose n x n x n product in bf16 reaches the ridge point of an A100 80GB "
        "SXM?",
        reference=lambda: rl.critical_size("A100 80GB SXM", "bf16"),
        tolerance=0.0005,
        slips={
            "forgot-c": lambda: _side(2),
            "read-c": lambda: _side(4),
            "wrong-width": lambda: _side(3, width=4),
            "sparse-peak": lambda: _side(3, factor=2),
            "rule-for-exact": lambda: _side(1),
        },
        hint="n/3 must be at least the ridge point, so the root is rounded up, never down.",
    ),
    Question(
        "02.narrower",
        "A vector sum on the house chip goes from fp32 to bf16: half the bytes under a roof fifteen times as high. "
        "What is its best time now, of what it was?",
        reference=_narrower,
        choices=("a fifteenth", "half", "the same"),
        hint="Left of the ridge the height of the roof does not matter; the bytes do.",
    ),
    Question(
        "02.faster-memory",
        "A job of 8 FLOP/byte runs in fp32 at the roof of the house chip. The next chip has twice the bandwidth "
        "and the same peak. How many times as fast can the job get?",
        reference=lambda: (
            rl.attainable_performance(8, 20e12, 4e12) / rl.attainable_performance(8, 20e12, 2e12)
        ),
        hint="the slope moves up, but the point climbs only until it meets the flat roof.",
    ),
]
