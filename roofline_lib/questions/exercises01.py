"""Exercises of lesson 01: practice values and choices, and what the marked functions are checked
with on the spot."""

import math

import roofline_lib as rl
from roofline_lib.checks import Question

_NAMES = {4: "fp32", 2: "bf16", 1: "int8", 0.5: "int4"}


def _product(m, n, k, element_bytes, adds_c=False):
    return rl.gemm(m, n, k, _NAMES[element_bytes], beta=int(adds_c))


def _layer(rows, inputs, outputs, weight_bytes, activation_bytes):
    activations = _NAMES[activation_bytes]
    return rl.gemm(
        rows, outputs, inputs, a=activations, b=_NAMES[weight_bytes], c=activations
    ).intensity


def _rows_for(target, n, k, element_bytes):
    """Through the library's critical batch, on a chip made to have that ridge point."""
    name = _NAMES[element_bytes]
    chip = rl.Machine(name="made up", peaks={name: float(target)}, bandwidths={"DRAM": 1.0})
    return rl.critical_batch(n, k, chip, name)


def _convolution(height, width, channels, filters, kernel):
    """[m, n, k] of the product whose 2mnk the convolution does, found from the library's FLOP and
    the weights' shape."""
    k, n = kernel**2 * channels, filters
    return [rl.conv2d(1, height, width, channels, filters, kernel).flops / (2 * n * k), n, k]


def _doubled():
    factor = round(rl.gemm(2048, 2048, 2048).intensity / rl.gemm(1024, 1024, 1024).intensity)
    return {1: "stay", 2: "double", 4: "four times", 8: "eight times"}[factor]


QUESTIONS = [
    Question(
        "01.x-gemv",
        "y = A x with A of 4096 x 4096, all in bf16, A, x and y counted. What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.gemv(4096, 4096, "bf16").intensity,
        tolerance=0.005,
        slips={
            "mac-is-flop": lambda: rl.gemv(4096, 4096, "bf16").intensity / 2,
            "wrong-width": lambda: rl.gemv(4096, 4096, "fp32").intensity,
        },
        hint="each element of A is fetched once, for one multiply-add.",
    ),
    Question(
        "01.x-levels",
        "n = 4096 in fp32: how many times the intensity of the matrix-vector product is that of the matrix product?",
        reference=lambda: rl.gemm(4096, 4096, 4096).intensity / rl.gemv(4096, 4096).intensity,
        slips={
            "read-c": lambda: (
                rl.gemm(4096, 4096, 4096, beta=1).intensity / rl.gemv(4096, 4096).intensity
            ),
            "forgot-c": lambda: 4096 / 4 / rl.gemv(4096, 4096).intensity,
        },
        hint="n/6 for the one; the other does not grow with n.",
    ),
    Question(
        "01.x-weights",
        "A layer has 4096 inputs and 16,384 outputs, weights in bf16. How large are the weights?",
        unit="MB",
        reference=lambda: rl.bytes_per_element("bf16") * 4096 * 16384,
        tolerance=0.005,
        slips={
            "elements-not-bytes": lambda: 4096.0 * 16384,
            "wrong-width": lambda: rl.bytes_per_element("fp32") * 4096 * 16384,
        },
        hint="one MB is 1e6 byte.",
    ),
    Question(
        "01.x-macs",
        "A program reports 68.7 GMAC for one product of 4096 x 4096 matrices. How many FLOP is that?",
        unit="GFLOP",
        reference=lambda: rl.gemm(4096, 4096, 4096).flops,
        tolerance=0.005,
        slips={"mac-is-flop": lambda: rl.gemm(4096, 4096, 4096).flops / 2},
        hint="MAC is a multiply and an add.",
    ),
    Question(
        "01.x-double",
        "Both sides of a square product are doubled, n = 1024 to 2048. What does its intensity do: stay, "
        "double, four times, or eight times?",
        reference=_doubled,
        choices=("stay", "double", "four times", "eight times"),
        hint="eight times the FLOP, four times the bytes.",
    ),
    Question(
        "01.x-product-flops",
        "A function: FLOP of C[m, n] = A[m, k] @ B[k, n].",
        reference=lambda m, n, k: rl.gemm(m, n, k).flops,
        inputs=lambda: [(1, 1, 1), (2, 3, 4), (1024, 1024, 1024)],
        tolerance=1e-6,
        slips={"mac-is-flop": lambda m, n, k: m * n * k},
        hint="m n results of k multiply-adds.",
    ),
    Question(
        "01.x-product-bytes",
        "A function: the bytes that the product moves at the least; `adds_c`: is the old C added in?",
        reference=lambda *args: _product(*args).bytes_moved,
        tolerance=1e-6,
        inputs=lambda: [(2, 3, 4, 4, False), (2, 3, 4, 2, True), (4096, 4096, 4096, 0.5, False)],
        slips={
            "forgot-c": lambda m, n, k, s, adds_c: s * (m * k + k * n + (m * n if adds_c else 0)),
            "read-c": lambda m, n, k, s, adds_c: s * (m * k + k * n + 2 * m * n),
            "elements-not-bytes": lambda m, n, k, s, adds_c: (
                _product(m, n, k, s, adds_c).bytes_moved / s
            ),
        },
        hint="A and B in, C out; C in as well where it is added.",
    ),
    Question(
        "01.x-layer-intensity",
        "A function: FLOP/byte of [rows, inputs] @ [inputs, outputs], weights narrower than activations.",
        reference=_layer,
        tolerance=1e-6,
        inputs=lambda: [
            (1, 4096, 4096, 2, 2),
            (64, 4096, 16384, 0.5, 2),
            (32768, 4096, 1024, 1, 2),
        ],
        slips={
            "rule-for-exact": lambda rows, inputs, outputs, w, a: 2 * rows / w,
            "forgot-c": lambda rows, inputs, outputs, w, a: (
                2 * rows * outputs / (a * rows + w * outputs)
            ),
        },
        hint="the weights are inputs x outputs; what goes in and what comes out are activations.",
    ),
    Question(
        "01.x-convolution",
        "A function: [m, n, k] of the product that a convolution becomes by im2col, stride 1, no padding.",
        reference=_convolution,
        tolerance=1e-9,
        inputs=lambda: [(8, 8, 1, 5, 3), (224, 200, 3, 64, 7)],
        hint="a row for each place where the window fits, a column for each filter.",
    ),
    Question(
        "01.x-rows-for",
        "A function: the fewest rows m with which [m, k] @ [k, n] reaches `target`; math.inf where none do.",
        reference=lambda *args: float(_rows_for(*args)),
        tolerance=1e-9,
        inputs=lambda: [(50, 4096, 4096, 2), (1, 4096, 4096, 2), (3000, 4096, 4096, 2)],
        slips={"rule-for-exact": lambda target, n, k, s: math.ceil(target * s / 2)},
        hint="solve 2mnk = target s (mk + kn + mn) for m, and mind the sign of what you divide by.",
    ),
]
