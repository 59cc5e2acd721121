"""Questions on arithmetic intensity."""

import math

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.quantities import significant
from roofline_lib.questions.shared import PRECISION_OF_WIDTH, written


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


def _product(m, n, k, element_bytes, adds_c=False):
    return rl.gemm(m, n, k, PRECISION_OF_WIDTH[element_bytes], beta=int(adds_c))


def _layer(rows, inputs, outputs, weight_bytes, activation_bytes):
    activations = PRECISION_OF_WIDTH[activation_bytes]
    return rl.gemm(
        rows, outputs, inputs, a=activations, b=PRECISION_OF_WIDTH[weight_bytes], c=activations
    ).intensity


def _rows_for(target, n, k, element_bytes):
    """Through the library's critical batch, on a chip made to have that ridge point."""
    name = PRECISION_OF_WIDTH[element_bytes]
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


def _levels(n=4096):
    return NumberQuestion(
        "intensity.x-levels",
        f"n = {n} in fp32: by what factor is the intensity of the matrix product larger than that "
        "of the matrix-vector product?",
        reference=lambda: rl.gemm(n, n, n).intensity / rl.gemv(n, n).intensity,
        slips=[
            ("read-c", lambda: rl.gemm(n, n, n, beta=1).intensity / rl.gemv(n, n).intensity),
            ("forgot-c", lambda: n / 4 / rl.gemv(n, n).intensity),
        ],
        hint="n/6 for the one; the other does not grow with n.",
        counts="times",
    )


def _weights(inputs=4096, outputs=16384):
    return NumberQuestion(
        "intensity.x-weights",
        f"A layer has {written(inputs)} inputs and {written(outputs)} outputs, weights in bf16. "
        "How large are the weights?",
        unit="MB",
        reference=lambda: rl.bytes_per_element("bf16") * inputs * outputs,
        tolerance=0.005,
        slips=[
            ("elements-not-bytes", lambda: float(inputs) * outputs),
            ("wrong-width", lambda: rl.bytes_per_element("fp32") * inputs * outputs),
        ],
        hint="one MB is 1e6 byte.",
    )


def _macs(n=4096):
    flops = rl.gemm(n, n, n).flops
    return NumberQuestion(
        "intensity.x-macs",
        f"A program reports {significant(flops / 2e9)} GMAC for one product of {n} x {n} matrices. "
        "How many FLOP is that?",
        unit="GFLOP",
        reference=lambda: flops,
        tolerance=0.005,
        slips=[("mac-is-flop", lambda: flops / 2), ("mac-is-flop", lambda: 2 * flops)],
        hint="MAC is a multiply and an add.",
    )


# with other numbers for each student
VARIED = (
    Varied(_levels, lambda rng: {"n": 64 * rng.randint(16, 150)}),
    Varied(
        _weights,
        lambda rng: {"inputs": 128 * rng.randint(8, 64), "outputs": 128 * rng.randint(65, 250)},
    ),
    Varied(_macs, lambda rng: {"n": 64 * rng.randint(16, 150)}),
)

QUESTIONS = [
    NumberQuestion(
        "intensity.add-fp16",
        "C = A + B on vectors of 16 million fp16 numbers. What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.elementwise(16_000_000, "fp16").intensity,
        slips=[
            ("forgot-c", lambda: rl.elementwise(16_000_000, "fp16", writes=0).intensity),
            ("wrong-width", lambda: rl.elementwise(16_000_000, "fp32").intensity),
            ("elements-not-bytes", lambda: rl.elementwise(16_000_000, "int8").intensity),
        ],
        hint="one addition for two numbers read and one written.",
    ),
    NumberQuestion(
        "intensity.gemm-flops",
        "Two 1024 x 1024 fp32 matrices are multiplied. How many FLOP?",
        unit="GFLOP",
        reference=lambda: rl.gemm(1024, 1024, 1024).flops,
        slips=[
            ("mac-is-flop", lambda: 1024.0**3),
            ("results-not-work", lambda: 2 * 1024.0**2),
        ],
        tolerance=0.005,
        hint="each of the 1024^2 results takes 1024 multiply-adds.",
    ),
    NumberQuestion(
        "intensity.gemm-bytes",
        "How many bytes must that product move to and from memory, at the very least?",
        unit="MB",
        reference=lambda: rl.gemm(1024, 1024, 1024).bytes_moved,
        slips=[
            ("forgot-c", lambda: 4.0 * 2 * 1024**2),
            ("read-c", lambda: rl.gemm(1024, 1024, 1024, beta=1).bytes_moved),
            ("elements-not-bytes", lambda: 3.0 * 1024**2),
            ("wrong-width", lambda: rl.gemm(1024, 1024, 1024, "bf16").bytes_moved),
            ("no-reuse-is-best", lambda: 4.0 * 2 * 1024**3),
        ],
        tolerance=0.005,
        hint="three matrices, each of them once.",
    ),
    NumberQuestion(
        "intensity.linear-layer",
        "A batch of 512 rows goes through a layer of 4096 inputs and 1024 outputs, all fp16, no "
        "bias. What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.gemm(512, 1024, 4096, "fp16").intensity,
        slips=[
            ("rule-for-exact", lambda: 512.0),
            (
                "forgot-c",
                lambda: rl.gemm(512, 1024, 4096).flops / (2.0 * (512 * 4096 + 4096 * 1024)),
            ),
            ("read-c", lambda: rl.gemm(512, 1024, 4096, "fp16", beta=1).intensity),
            ("wrong-width", lambda: rl.gemm(512, 1024, 4096, "fp32").intensity),
            ("mac-is-flop", lambda: rl.gemm(512, 1024, 4096, "fp16").intensity / 2),
            ("elements-not-bytes", lambda: rl.gemm(512, 1024, 4096, "int8").intensity),
        ],
        hint="2 / s over 1/M + 1/N + 1/K, with s = 2 byte.",
    ),
    ChoiceQuestion(
        "intensity.which-change",
        "A product [1, 4096] @ [4096, 4096] in bf16. Which one change raises its intensity most: "
        "two rows instead of one, a layer of 8192 x 8192, fp32 numbers, or a memory twice as fast?",
        reference=lambda: max(_higher_intensity(), key=_higher_intensity().get),
        choices=tuple(_higher_intensity()),
        slips=[
            ("same-side", lambda: "8192 wide"),
            ("machine-in-intensity", lambda: "faster memory"),
        ],
        hint="The smallest side decides, and the machine does not come into it.",
    ),
    ChoiceQuestion(
        "intensity.too-good",
        "A profiler reports that one 4096 x 4096 x 4096 product in fp32, started with nothing "
        "cached, moved 150 MB to and from memory. Was it an excellent kernel, a poor kernel, or "
        "are bytes missing from the report?",
        reference=lambda: _verdict_on(150e6, rl.gemm(4096, 4096, 4096)),
        choices=("excellent kernel", "poor kernel", "bytes are missing"),
        slips=[
            ("no-reuse-is-best", lambda: "excellent kernel"),
            ("less-than-least", lambda: "poor kernel"),
        ],
        hint="Compare with the compulsory traffic, 4 x 3 x 4096^2 byte.",
    ),
    NumberQuestion(
        "intensity.x-gemv",
        "y = A x with A of 4096 x 4096, all in bf16, A, x and y counted. What is the intensity?",
        unit="FLOP/byte",
        reference=lambda: rl.gemv(4096, 4096, "bf16").intensity,
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: rl.gemv(4096, 4096, "bf16").intensity / 2),
            ("wrong-width", lambda: rl.gemv(4096, 4096, "fp32").intensity),
            ("elements-not-bytes", lambda: rl.gemv(4096, 4096, "int8").intensity),
        ],
        hint="each element of A is fetched once, for one multiply-add.",
    ),
    _levels(),
    _weights(),
    _macs(),
    ChoiceQuestion(
        "intensity.x-double",
        "Both sides of a square product are doubled, n = 1024 to 2048. What does its intensity "
        "do: stay, double, four times, or eight times?",
        reference=_doubled,
        choices=("stay", "double", "four times", "eight times"),
        slips=[
            ("work-not-ratio", lambda: "eight times"),
            ("bytes-not-ratio", lambda: "four times"),
        ],
        hint="Eight times the FLOP, four times the bytes.",
    ),
    FunctionQuestion(
        "intensity.x-product-flops",
        "A function: FLOP of C[m, n] = A[m, k] @ B[k, n].",
        reference=lambda m, n, k: rl.gemm(m, n, k).flops,
        inputs=lambda: [(1, 1, 1), (2, 3, 4), (1024, 1024, 1024)],
        tolerance=1e-6,
        slips=[
            ("mac-is-flop", lambda m, n, k: m * n * k),
            ("mac-is-flop", lambda m, n, k: 4 * m * n * k),
            ("results-not-work", lambda m, n, k: 2 * m * n),
        ],
        hint="m n results of k multiply-adds.",
    ),
    FunctionQuestion(
        "intensity.x-product-bytes",
        "A function: the bytes that the product moves at the least; `adds_c`: is the old C added "
        "in?",
        reference=lambda *args: _product(*args).bytes_moved,
        tolerance=1e-6,
        inputs=lambda: [(2, 3, 4, 4, False), (2, 3, 4, 2, True), (4096, 4096, 4096, 0.5, False)],
        slips=[
            ("forgot-c", lambda m, n, k, s, adds_c: s * (m * k + k * n + (m * n if adds_c else 0))),
            ("forgot-c", lambda m, n, k, s, adds_c: s * (m * k + k * n)),
            ("read-c", lambda m, n, k, s, adds_c: s * (m * k + k * n + 2 * m * n)),
            (
                "elements-not-bytes",
                lambda m, n, k, s, adds_c: _product(m, n, k, s, adds_c).bytes_moved / s,
            ),
        ],
        hint="A and B in, C out; C in as well where it is added.",
    ),
    FunctionQuestion(
        "intensity.x-layer-intensity",
        "A function: FLOP/byte of [rows, inputs] @ [inputs, outputs], weights narrower than "
        "activations.",
        reference=_layer,
        tolerance=1e-6,
        inputs=lambda: [
            (1, 4096, 4096, 2, 2),
            (64, 4096, 16384, 0.5, 2),
            (32768, 4096, 1024, 1, 2),
        ],
        slips=[
            ("mac-is-flop", lambda *args: _layer(*args) / 2),
            ("rule-for-exact", lambda rows, inputs, outputs, w, a: 2 * rows / w),
            (
                "forgot-c",
                lambda rows, inputs, outputs, w, a: 2 * rows * outputs / (a * rows + w * outputs),
            ),
        ],
        hint="the weights are inputs x outputs; what goes in and what comes out are activations.",
    ),
    FunctionQuestion(
        "intensity.x-convolution",
        "A function: [m, n, k] of the product that a convolution becomes by im2col, stride 1, no "
        "padding.",
        reference=_convolution,
        tolerance=1e-9,
        inputs=lambda: [(8, 8, 1, 5, 3), (224, 200, 3, 64, 7)],
        slips=[
            ("no-border", lambda h, w, c, f, k: [h * w, f, k * k * c]),
            ("one-channel", lambda h, w, c, f, k: [(h - k + 1) * (w - k + 1), f, k * k]),
        ],
        hint="a row for each place where the window fits, a column for each filter.",
    ),
    FunctionQuestion(
        "intensity.x-rows-for",
        "A function: the fewest rows m with which [m, k] @ [k, n] reaches `target`; math.inf "
        "where none do.",
        reference=lambda *args: float(_rows_for(*args)),
        tolerance=1e-9,
        inputs=lambda: [(50, 4096, 4096, 2), (1, 4096, 4096, 2), (3000, 4096, 4096, 2)],
        slips=[
            ("rule-for-exact", lambda target, n, k, s: math.ceil(target * s / 2)),
            ("round-up", lambda *args: float(_rows_for(*args)) - 1),
        ],
        hint="solve 2mnk = target s (mk + kn + mn) for m, and mind the sign of what you divide by.",
    ),
]
