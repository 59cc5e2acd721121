"""Questions on operators: norms, activations, fused steps and narrow weights."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.model import fused
from roofline_lib.questions.shared import HOUSE, PRECISION_OF_WIDTH


def _add_norm(kept):
    """Percent of the bytes that one kernel saves over a residual add and an RMSNorm, [8192, 4096]
    in bf16; the sum itself is `kept`."""
    add, norm = rl.elementwise(8192 * 4096, "bf16"), rl.rms_norm(8192, 4096, "bf16")
    one_pass = 2.0 * 8192 * 4096
    return 100 * (1 if kept else 2) * one_pass / (add + norm).bytes_moved


def _epilogues():
    """{operator: the share of its time that merging the ReLU after it saves}, in bf16 on the house
    chip."""
    pairs = {
        "a product with n = 4096": (rl.gemm(4096, 4096, 4096, "bf16"), 4096 * 4096),
        "the same with one row": (rl.gemm(1, 4096, 4096, "bf16"), 4096),
        "an RMSNorm of 4096 rows": (rl.rms_norm(4096, 4096, "bf16"), 4096 * 4096),
    }
    return {
        name: 1
        - rl.bound(work, HOUSE, "bf16").time
        / rl.time_in_sequence([work, rl.elementwise(n, "bf16", 1, 1)], HOUSE, "bf16")
        for name, (work, n) in pairs.items()
    }


def _gelu(numbers, precision="bf16"):
    """Bytes that one kernel saves over eight."""
    step = rl.elementwise(numbers, precision, reads=1)
    return (8 * step).bytes_moved - fused(*8 * [step], bytes_moved=step.bytes_moved).bytes_moved


def _narrow(weights):
    return (
        rl.bound(rl.gemm(1, 28672, 8192, "bf16"), HOUSE, "bf16").time
        / rl.bound(rl.gemm(1, 28672, 8192, "bf16", b=weights), HOUSE, "bf16").time
    )


def _crossings(steps, needed, elements, element_bytes):
    """Each array's way followed through the steps."""
    name, on_chip, crossed = PRECISION_OF_WIDTH[element_bytes], set(), 0
    apart = sum(
        rl.elementwise(elements, name, reads=len(set(inputs)), writes=1).bytes_moved
        for inputs, _ in steps
    )
    for inputs, output in steps:
        crossed += len(set(inputs) - on_chip) + (output in needed)
        on_chip |= {*inputs, output}
    return [apart, rl.elementwise(elements, name, reads=crossed, writes=0).bytes_moved]


def _narrow_gain(rows, inputs, outputs, bits, block, scale_bits, peak, bandwidth):
    wide, eight, four = (
        rl.gemm(rows, outputs, inputs, "bf16", b=name) for name in ("bf16", "int8", "int4")
    )
    bit = (eight.bytes_moved - four.bytes_moved) / 4  # of every weight, in bytes
    scales = -(-inputs // block) * outputs * scale_bits / 8
    narrow = rl.Work(wide.flops, eight.bytes_moved + (bits - 8) * bit + scales)
    return rl.Bound(wide, peak, bandwidth).time / rl.Bound(narrow, peak, bandwidth).time


def _carried(before, after):
    """Time over time on the house chip in bf16 when fusing takes a job from one intensity to
    another (FLOP/byte)."""
    slow, fast = (rl.bound(rl.Work(intensity, 1), HOUSE, "bf16") for intensity in (before, after))
    return fast.attainable_performance / slow.attainable_performance


def _without_overlap(size):
    """Percent of the roof that a square product in bf16 on the house chip reaches when it loads and
    multiplies by turns, and the share that is lost."""
    limit = rl.bound(rl.gemm(size, size, size, "bf16"), HOUSE, "bf16")
    reached = limit.time / (limit.compute_time + limit.memory_time)
    return 100 * reached, 100 * (1 - reached), 100 * limit.memory_time / limit.compute_time


def _epilogue_gain(m, n, k, steps, element_bytes, peak, bandwidth, lengths=max):
    """Time of a product and `steps` passes over C, over that of one kernel."""
    name = PRECISION_OF_WIDTH[element_bytes]
    product = rl.gemm(m, n, k, name)
    one_pass = rl.elementwise(m * n, name, reads=1, writes=1, flops_per_element=0)
    passes = steps * one_pass.bytes_moved / bandwidth
    limit = rl.Bound(product, peak, bandwidth)
    together = lengths((limit.compute_time, limit.memory_time))
    return (together + passes) / together


def _windows(
    images, side, channels_in, channels_out, kernel, element_bytes, trips=2, with_image=True
):
    """[bytes with the windows cut on chip, bytes with the windows in memory]."""
    name, image = PRECISION_OF_WIDTH[element_bytes], images * side**2 * channels_in
    on_chip = rl.conv2d(
        images, side, side, channels_in, channels_out, kernel, name, padding=kernel // 2
    ).bytes_moved
    windows = rl.elementwise(kernel**2 * image, name, reads=trips, writes=0).bytes_moved
    alone = rl.elementwise(image, name, reads=1, writes=0).bytes_moved
    return [on_chip, on_chip + windows - (0 if with_image else alone)]


def _plan_seconds(
    first_bytes, steps, kernels, launch, peak, bandwidth, kept_inside=True, longer=max
):
    """Seconds of the steps cut into kernels of so many steps each."""
    seconds, first, comes_in = 0.0, 0, first_bytes
    for size in kernels:
        group = steps[first : first + size]
        crossing = comes_in + sum(step[1] for step in group) + group[-1][2]
        if not kept_inside:
            crossing += 2 * sum(step[2] for step in group[:-1])
        limit = rl.Bound(rl.Work(sum(step[0] for step in group), crossing), peak, bandwidth)
        seconds += launch + longer((limit.compute_time, limit.memory_time))
        first, comes_in = first + size, group[-1][2]
    return seconds


def _gelu_asked(rows=8192, columns=16384):
    numbers = rows * columns
    return NumberQuestion(
        "operators.x-gelu",
        "An activation function is spelled out in eight kernels; each reads and writes all "
        f"[{rows}, {columns}] numbers, in bf16. How many GB of traffic does one kernel save?",
        unit="GB",
        reference=lambda: _gelu(numbers),
        tolerance=0.005,
        slips=[
            ("wrong-width", lambda: _gelu(numbers, "fp32")),
            ("elements-not-bytes", lambda: _gelu(numbers, "int8")),
        ],
        hint="sixteen crossings become two.",
    )


def _overlap_asked(n=1024):
    return NumberQuestion(
        "operators.x-overlap",
        f"A product with n = {n}, bf16, on the house chip. Its kernel loads, then multiplies, then "
        "loads, and never does both at one time. What share of its roof does it reach at best?",
        unit="%",
        reference=lambda: _without_overlap(n)[0],
        slips=[
            ("left-for-saved", lambda: _without_overlap(n)[1]),
            ("other-whole", lambda: _without_overlap(n)[2]),
        ],
        hint="two times, one for the FLOP and one for the bytes: the longer over their sum.",
    )


# with other numbers for each student
VARIED = (
    Varied(
        _gelu_asked,
        lambda rng: {"rows": 512 * rng.randint(6, 24), "columns": 1024 * rng.randint(8, 28)},
    ),
    Varied(_overlap_asked, lambda rng: {"n": 32 * rng.randint(19, 70)}),
)

QUESTIONS = [
    NumberQuestion(
        "operators.add-norm",
        "A block adds its result to the residual stream (two arrays in, one out), then RMSNorm "
        "reads the sum (one in, one out). All are [8192, 4096] in bf16, and the sum itself is "
        "needed later. What share of the time does one kernel save?",
        unit="%",
        reference=lambda: _add_norm(kept=True),
        slips=[
            ("kept-result", lambda: _add_norm(kept=False)),
            ("left-for-saved", lambda: 100 - _add_norm(kept=True)),
            ("other-whole", lambda: 100 * _add_norm(kept=True) / (100 - _add_norm(kept=True))),
        ],
        hint="five crossings apart; fused, two arrays come in and two go out.",
    ),
    NumberQuestion(
        "operators.gain",
        "In bf16 on the house chip, fusing takes an operator from 40 to 400 FLOP/byte. How many "
        "times as fast is it at its roof?",
        reference=lambda: _carried(40, 400),
        slips=[
            ("past-the-ridge", lambda: 400 / 40),
            ("right-of-the-ridge", lambda: 400 / _carried(1, 400)),
        ],
        hint="the ridge point is 150: the way from 40 to there counts.",
        counts="times",
    ),
    NumberQuestion(
        "operators.mxfp4",
        "How large are 70 billion weights in MXFP4, 32 numbers of 4 bits to a scale of 8?",
        unit="GB",
        reference=lambda: 70e9 * rl.bytes_per_element("mxfp4"),
        slips=[
            ("forgot-scale", lambda: 70e9 * rl.bytes_per_element("fp4")),
            ("elements-not-bytes", lambda: 70e9),
        ],
        hint="4.25 bits a number.",
    ),
    ChoiceQuestion(
        "operators.which-gains",
        "In bf16 on the house chip a ReLU follows each of these, and is merged into its kernel. "
        "Which one saves the largest share of its time?",
        reference=lambda: max(_epilogues(), key=_epilogues().get),
        choices=tuple(_epilogues()),
        slips=[
            ("hidden-bytes", lambda: "a product with n = 4096"),
            ("bytes-of-others", lambda: "the same with one row"),
        ],
        hint=(
            "Memory-bound is not enough: with one row the bytes are weights, and the ReLU has "
            "only 4096 numbers to move."
        ),
    ),
    _gelu_asked(),
    NumberQuestion(
        "operators.x-narrow",
        "One row goes through a layer [8192] -> [28672] of the house chip, in bf16. How many "
        "times as fast is it at the roof with its weights in MXFP4?",
        reference=lambda: _narrow("mxfp4"),
        tolerance=0.005,
        slips=[
            ("forgot-scale", lambda: _narrow("fp4")),
            ("hidden-bytes", lambda: 1.0),
        ],
        hint="16 bits a weight against 4.25.",
        counts="times",
    ),
    _overlap_asked(),
    FunctionQuestion(
        "operators.x-crossings",
        "A function: [bytes of steps in kernels of their own, bytes in one kernel].",
        reference=_crossings,
        tolerance=1e-6,
        inputs=lambda: [
            ([[["x", "y"], "sum"], [["sum", "g"], "out"]], ["sum", "out"], 10**6, 2),
            ([[["x"], "a"], [["a", "a"], "b"], [["b", "x"], "c"]], ["c"], 1000, 4),
        ],
        slips=[
            ("kept-result", lambda steps, needed, *rest: _crossings(steps, [steps[-1][1]], *rest)),
            ("elements-not-bytes", lambda *args: [moved / args[3] for moved in _crossings(*args)]),
        ],
        hint=(
            "apart: distinct inputs and one output a step. Fused: what comes from outside, once, "
            "and what is needed."
        ),
    ),
    FunctionQuestion(
        "operators.x-narrow-gain",
        "A function: how many times as fast a layer gets with weights in a block format.",
        reference=_narrow_gain,
        tolerance=1e-6,
        inputs=lambda: [
            (1, 4096, 4096, 4, 32, 8, 3e14, 2e12),
            (100, 4096, 4096, 4, 32, 8, 3e14, 2e12),
            (1, 1000, 4096, 4, 128, 16, 3e14, 2e12),
        ],
        slips=[
            (
                "forgot-scale",
                lambda rows, inputs, outputs, bits, block, scale, *rest: _narrow_gain(
                    rows, inputs, outputs, bits, block, 0, *rest
                ),
            ),
            (
                "hidden-bytes",
                lambda rows, inputs, outputs, bits, block, scale, *rest: (
                    16 / (bits + scale / block)
                ),
            ),
        ],
        hint=(
            "bytes of the weights: bits, and a scale for each block or part of one; then two "
            "times for each format."
        ),
    ),
    FunctionQuestion(
        "operators.x-epilogue-gain",
        "A function: how many times as fast a product and the steps after it are in one kernel.",
        reference=_epilogue_gain,
        tolerance=1e-6,
        inputs=lambda: [
            (4096, 4096, 4096, 1, 2, 3e14, 2e12),
            (1, 4096, 4096, 3, 2, 3e14, 2e12),
            (4096, 4096, 64, 2, 2, 3e14, 2e12),
        ],
        slips=[
            ("sum-of-times", lambda *args: _epilogue_gain(*args, lengths=sum)),
            ("elements-not-bytes", lambda *args: _epilogue_gain(*args[:4], 1, *args[5:])),
        ],
        hint="product: the longer of two times; each step: C in and C out. Merged, the steps go.",
    ),
    FunctionQuestion(
        "operators.x-windows",
        "A function: [bytes with the windows cut on chip, bytes with the windows in memory].",
        reference=_windows,
        tolerance=1e-6,
        inputs=lambda: [(32, 56, 64, 64, 3, 2), (1, 224, 3, 64, 7, 4), (8, 14, 256, 512, 1, 2)],
        slips=[
            ("there-and-back", lambda *args: _windows(*args, trips=1)),
            ("elements-not-bytes", lambda *args: [moved / args[5] for moved in _windows(*args)]),
            ("forgot-source", lambda *args: _windows(*args, with_image=False)),
        ],
        hint="image, weights and result cross either way; windows cross twice, out and in.",
    ),
    FunctionQuestion(
        "operators.x-plan-seconds",
        "A function: seconds of a chain of steps that is cut into kernels.",
        reference=_plan_seconds,
        tolerance=1e-6,
        inputs=lambda: [
            (4, [[0, 0, 4], [2, 0, 4]], [1, 1], 0, 1, 1),
            (4, [[0, 0, 4], [2, 0, 4]], [2], 1, 1, 1),
            (10, [[20, 1, 9], [0, 0, 9], [30, 5, 9]], [2, 1], 2, 1, 1),
        ],
        slips=[
            ("kept-inside", lambda *args: _plan_seconds(*args, kept_inside=False)),
            ("sum-of-times", lambda *args: _plan_seconds(*args, longer=sum)),
        ],
        hint=(
            "each kernel: what comes in, all side bytes, the last result; the longer of two times, "
            "and one launch."
        ),
    ),
]
