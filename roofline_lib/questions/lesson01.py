"""Lesson 01: arithmetic intensity."""

import roofline_lib as rl
from roofline_lib.checks import Question


def _higher_intensity():
    """What each change of the last question makes of a [1, 4096] @ [4096, 4096] product in bf16, in
    FLOP/byte."""
    return {
        "two rows": rl.gemm(2, 4096, 4096, "bf16").intensity,
        "8192 wide": rl.gemm(1, 8192, 8192, "bf16").intensity,
        "fp32": rl.gemm(1, 4096, 4096, "fp32").intensity,
        "faster memory": rl.gemm(1, 4096, 4096, "bf16").intensity,
    }


def _verdict_on(bytes_moved, work):
    """A product cannot move less than its compulsory traffic; a kernel that moves about as much is
    excellent."""
    if bytes_moved < work.bytes_moved:
        return "bytes are missing"
    return "excellent kernel" if bytes_moved < 2 * work.bytes_moved else "poor kernel"


QUESTIONS = [
    Question(
        "01.add-fp16",
        "C = A + B on vectors of 16 million fp16 numbers. What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.elementwise(16_000_000, "fp16").intensity,
        slips={
            "forgot-c": lambda: rl.elementwise(16_000_000, "fp16", writes=0).intensity,
            "wrong-width": lambda: rl.elementwise(16_000_000, "fp32").intensity,
            "elements-not-bytes": lambda: rl.elementwise(16_000_000, "int8").intensity,
        },
        hint="one addition for two numbers read and one written.",
    ),
    Question(
        "01.gemm-flops",
        "Two 1024 x 1024 fp32 matrices are multiplied. How many FLOP?",
        unit="GFLOP",
        reference=lambda: rl.gemm(1024, 1024, 1024).flops,
        slips={"mac-is-flop": lambda: 1024.0**3},
        tolerance=0.005,
        hint="each of the 1024^2 results takes 1024 multiply-adds.",
    ),
    Question(
        "01.gemm-bytes",
        "How many bytes must that product move to and from memory, at the very least?",
        unit="MB",
        reference=lambda: rl.gemm(1024, 1024, 1024).bytes_moved,
        slips={
            "forgot-c": lambda: 4.0 * 2 * 1024**2,
            "read-c": lambda: rl.gemm(1024, 1024, 1024, beta=1).bytes_moved,
            "elements-not-bytes": lambda: 3.0 * 1024**2,
            "wrong-width": lambda: rl.gemm(1024, 1024, 1024, "bf16").bytes_moved,
            "no-reuse-is-best": lambda: 4.0 * 2 * 1024**3,
        },
        tolerance=0.005,
        hint="three matrices, each of them once.",
    ),
    Question(
        "01.linear-layer",
        "A batch of 512 rows goes through a layer of 4096 inputs and 1024 outputs, all fp16, no bias. "
        "What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.gemm(512, 1024, 4096, "fp16").intensity,
        slips={
            "rule-for-exact": lambda: 512.0,
            "forgot-c": lambda: rl.gemm(512, 1024, 4096).flops / (2.0 * (512 * 4096 + 4096 * 1024)),
            "read-c": lambda: rl.gemm(512, 1024, 4096, "fp16", beta=1).intensity,
            "wrong-width": lambda: rl.gemm(512, 1024, 4096, "fp32").intensity,
            "mac-is-flop": lambda: rl.gemm(512, 1024, 4096, "fp16").intensity / 2,
            "elements-not-bytes": lambda: rl.gemm(512, 1024, 4096, "int8").intensity,
        },
        hint="2 / s over 1/M + 1/N + 1/K, with s = 2 byte.",
    ),
    Question(
        "01.which-change",
        "A product [1, 4096] @ [4096, 4096] in bf16. Which one change raises its intensity most: two rows "
        "instead of one, a layer of 8192 x 8192, fp32 numbers, or a memory twice as fast?",
        reference=lambda: max(_higher_intensity(), key=_higher_intensity().get),
        choices=tuple(_higher_intensity()),
        hint="The smallest side decides, and the machine does not come into it.",
    ),
    Question(
        "01.too-good",
        "A profiler reports that one 4096 x 4096 x 4096 product in fp32, started with nothing cached, moved 150 MB to "
        "and from memory. Was it an excellent kernel, a poor kernel, or are bytes missing from the report?",
        reference=lambda: _verdict_on(150e6, rl.gemm(4096, 4096, 4096)),
        choices=("excellent kernel", "poor kernel", "bytes are missing"),
        slips={"no-reuse-is-best": lambda: "excellent kernel"},
        hint="Compare with the compulsory traffic, 4 x 3 x 4096^2 byte.",
    ),
]
