"""Lesson 06: peaks, counted, nominal and measured."""

import roofline_lib as rl
from roofline_lib.checks import Question

_H100, _4090 = rl.machine("H100 SXM"), rl.machine("RTX 4090")


def _ruled_out():
    """What a rate of 21 TFLOP/s on 40 units at 2.4 GHz says about their lanes: counts whose peak is
    below it cannot be."""
    possible = [lanes for lanes in (64, 128, 256) if rl.peak_flops(40, lanes, 2.4e9) >= 21e12]
    return {(64, 128, 256): "nothing", (128, 256): "not 64", (256,): "256"}[tuple(possible)]


QUESTIONS = [
    Question(
        "06.count",
        "An RTX 4090 has 128 SMs of 128 fp32 lanes and a clock of 2.52 GHz. What is its fp32 peak?",
        unit="TFLOP/s",
        reference=lambda: rl.peak_flops(128, 128, 2.52e9),
        slips={"mac-is-flop": lambda: rl.peak_flops(128, 128, 2.52e9, 1)},
        hint="units x lanes x FLOP per lane x clock.",
    ),
    Question(
        "06.clock",
        "An RTX 3090 (82 SMs, 128 fp32 lanes each, nominal clock 1.695 GHz) is measured at 37.0 TFLOP/s in fp32, more "
        "than its nominal 35.6. At which clock, at least, did it run?",
        unit="GHz",
        reference=lambda: rl.clock_from(37.0e12, 82, 128),
        slips={
            "mac-is-flop": lambda: rl.clock_from(37.0e12, 82, 128, 1),
            "clock-nominal": lambda: rl.machine("RTX 3090").details["clock"],
        },
        hint="divide the rate by units x lanes x 2.",
    ),
    Question(
        "06.cpu",
        "A CPU has 8 cores; each has two FMA units on 256-bit vectors, at 3.0 GHz. What is its fp32 peak?",
        unit="GFLOP/s",
        reference=lambda: rl.peak_flops(8, 2 * 256 // 32, 3.0e9),
        slips={
            "mac-is-flop": lambda: rl.peak_flops(8, 2 * 256 // 32, 3.0e9, 1),
            "wrong-width": lambda: rl.peak_flops(8, 2 * 256 // 64, 3.0e9),
        },
        hint="an fp32 number takes 32 of the 256 bits.",
    ),
    Question(
        "06.headline",
        "A dense bf16 product runs at 620 TFLOP/s on an H100 SXM, whose sheet prints 1979 TFLOP/s with 2:4 sparsity. "
        "What share of the peak is that?",
        unit="%",
        reference=lambda: 100 * 620e12 / _H100.peak("bf16"),
        slips={
            "sparse-peak": lambda: 100 * 620e12 / (2 * _H100.peak("bf16")),
            "wrong-chip": lambda: 100 * 620e12 / rl.machine("H100 PCIe").peak("bf16"),
        },
        hint="dense work is held against the dense peak.",
    ),
    Question(
        "06.sums",
        "An fp16 product that keeps its sums in fp32 runs at 160 TFLOP/s on an RTX 4090. What share of the peak for such "
        "products is that? The catalogue has both fp16 peaks.",
        unit="%",
        reference=lambda: 100 * 160e12 / _4090.peak("fp16", accumulate="fp32"),
        slips={"accumulate-width": lambda: 100 * 160e12 / _4090.peak("fp16", accumulate="fp16")},
        hint='rl.machine("RTX 4090").peak("fp16", accumulate="fp32")',
    ),
    Question(
        "06.lanes",
        "A chip of 40 units reaches 21 TFLOP/s in fp32 while its clock reads 2.4 GHz. You hesitate between 64, 128 and "
        "256 lanes a unit. What does the measurement settle?",
        choices=("nothing", "not 64", "256"),
        reference=_ruled_out,
        hint="A count whose peak lies below the measurement cannot be right. A count whose peak lies above it can.",
    ),
]
