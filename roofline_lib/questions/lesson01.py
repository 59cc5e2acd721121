"""Lesson 01: arithmetic intensity."""

import roofline_lib as rl
from roofline_lib.checks import Question

QUESTIONS = [
    Question("01.gemm-flops", "Two 1024 x 1024 fp32 matrices are multiplied. How many FLOP?", unit="GFLOP",
             reference=lambda: rl.gemm(1024, 1024, 1024).flops,
             slips={"mac-is-flop": lambda: 1024.0**3}, tolerance=0.005,
             hint="each of the 1024^2 results takes 1024 multiply-adds."),
]
