"""Questions on operators: norms, activations, fused steps and narrow weights."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion
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


def _gelu(precision="bf16"):
    """Bytes that one kernel saves over eight."""
    step = rl.elementwise(8192 * 16384, precision, reads=1)
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


def _fastest_plan(first_bytes, steps, room, launch, peak, bandwidth):
    """From the end: the best that can follow each cut."""
    works = [
        rl.Work(flops, side + result + (steps[i - 1][2] if i else first_bytes))
        for i, (flops, side, result, _) in enumerate(steps)
    ]
    after = {len(steps): 0.0}
    for i in reversed(range(len(steps))):
        found = []
        for j in range(i + 1, len(steps) + 1):
            if sum(step[3] for step in steps[i:j]) > room:
                break
            # written and read again, were they apart
            kept = sum(2 * step[2] for step in steps[i : j - 1])
            kernel = fused(
                *works[i:j], bytes_moved=sum(work.bytes_moved for work in works[i:j]) - kept
            )
            found.append(launch + rl.Bound(kernel, peak, bandwidth).time + after[j])
        after[i] = min(found)
    return after[0]


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
        ],
        hint="five crossings apart; fused, two arrays come in and two go out.",
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
        hint=(
            "Memory-bound is not enough: with one row the bytes are weights, and the ReLU has "
            "only 4096 numbers to move."
        ),
    ),
    NumberQuestion(
        "operators.x-gelu",
        "An activation function is spelled out in eight kernels; each reads and writes all [8192, "
        "16384] numbers, in bf16. How many GB of traffic does one kernel save?",
        unit="GB",
        reference=_gelu,
        tolerance=0.005,
        slips=[
            ("wrong-width", lambda: _gelu("fp32")),
            ("elements-not-bytes", lambda: _gelu("int8")),
        ],
        hint="sixteen crossings become two.",
    ),
    NumberQuestion(
        "operators.x-narrow",
        "One row goes through a layer [8192] -> [28672] of the house chip, in bf16. How many "
        "times as fast is it at the roof with its weights in MXFP4?",
        reference=lambda: _narrow("mxfp4"),
        tolerance=0.005,
        slips=[
            ("forgot-scale", lambda: _narrow("fp4")),
        ],
        hint="16 bits a weight against 4.25.",
        counts="times",
    ),
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
        ],
        hint=(
            "bytes of the weights: bits, and a scale for each block or part of one; then two "
            "times for each format."
        ),
    ),
    FunctionQuestion(
        "operators.x-fastest-plan",
        "A function: the least seconds of a chain of steps cut into kernels.",
        reference=_fastest_plan,
        tolerance=1e-6,
        inputs=lambda: [
            (4, [[0, 0, 4, 1], [2, 0, 4, 1]], 1, 0, 1, 1),
            (10, [[0, 0, 1, 1], [0, 0, 9, 1], [0, 0, 9, 1]], 2, 0, 1, 1),
            (10, [[20, 0, 9, 1], [0, 0, 9, 1], [0, 0, 9, 1]], 3, 2, 1, 1),
        ],
        hint=(
            "as with brackets: the best plan of the first j steps ends in some kernel i to j; "
            "before it stands a best plan too."
        ),
    ),
]
