"""Questions on the roofline."""

from math import ceil

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import HOUSE, PRECISION_OF_WIDTH, smallest_whole


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


def _busy_memory(n, precision="fp32", passes_over_c=1, flop_share=1):
    """Percent of the time of an n x n x n product for which the house chip's memory is busy."""
    work = rl.gemm(n, n, n, precision)
    moved = work.bytes_moved + (passes_over_c - 1) * rl.bytes_per_element(precision) * n**2
    limit = rl.bound(rl.Work(flop_share * work.flops, moved), HOUSE, "fp32")
    return 100 * limit.memory_time / limit.time


def _reached(n, seconds, name="H100 SXM", factor=1):
    """Percent of a chip's bf16 peak that an n-cube in so many seconds is."""
    peak = factor * rl.machine(name).peak("bf16")
    return 100 * rl.gemm(n, n, n, "bf16").flops / seconds / peak


def _one_after_the_other(n, numbers, flop_share=1):
    product, total = rl.gemm(n, n, n), rl.elementwise(numbers)
    return rl.time_in_sequence(
        [rl.Work(flop_share * product.flops, product.bytes_moved), total], HOUSE, "fp32"
    )


def _both_at_once(n, numbers):
    """Seconds if the sum hid behind the product."""
    product, total = rl.gemm(n, n, n), rl.elementwise(numbers)
    return max(rl.bound(work, HOUSE, "fp32").time for work in (product, total))


def _fewer_flop():
    """What half the FLOP do to the best time of a job of 3 FLOP/byte."""
    ratio = (
        rl.bound(rl.Work(1.5e9, 1e9), HOUSE, "fp32").time
        / rl.bound(rl.Work(3e9, 1e9), HOUSE, "fp32").time
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


def _slowest_memory_first(flops, peak, levels):
    """The same where a level wins a tie with the arithmetic."""
    seconds, name = max([[moved / bandwidth, level] for level, moved, bandwidth in levels])
    return [flops / peak, "arithmetic"] if flops / peak > seconds else [seconds, name]


def _smallest(p, q, r, element_bytes, ridge_point, passes_over_c=1):
    def reaches(n):
        work = rl.gemm(p * n, q * n, r * n, PRECISION_OF_WIDTH[element_bytes])
        return work.flops >= ridge_point * (
            work.bytes_moved + (passes_over_c - 1) * element_bytes * p * q * n * n
        )

    return smallest_whole(reaches)


def _unnoticed(share, element_bytes, peak, bandwidth):
    name = PRECISION_OF_WIDTH[element_bytes]

    def small(n):
        one_pass = rl.Bound(
            rl.elementwise(n * n, name, reads=1, flops_per_element=0), peak, bandwidth
        ).time
        return one_pass <= share * (
            rl.Bound(rl.gemm(n, n, n, name), peak, bandwidth).time + one_pass
        )

    return smallest_whole(small)


def _n1024(n=1024):
    return NumberQuestion(
        "roofline.x-n1024",
        f"C = AB with n = {n} in fp32 runs at the roof of the house chip, 20 TFLOP/s and 2 TB/s. "
        "For what share of its time is the memory busy?",
        unit="%",
        reference=lambda: _busy_memory(n),
        slips=[
            ("mac-is-flop", lambda: _busy_memory(n, flop_share=0.5)),
            ("wrong-width", lambda: _busy_memory(n, "bf16")),
            ("forgot-c", lambda: _busy_memory(n, passes_over_c=0)),
            ("read-c", lambda: _busy_memory(n, passes_over_c=2)),
        ],
        hint="2n³ FLOP and three matrices of 4 n² byte: two times, and their ratio.",
    )


def _bandwidth(intensity=40, teraflops=60):
    def needed(peak):
        return peak / rl.attainable_performance(intensity, peak, 1.0)

    peak = 1e12 * teraflops
    return NumberQuestion(
        "roofline.x-bandwidth",
        f"A job of {intensity} FLOP/byte shall be able to use all the {teraflops} TFLOP/s of a "
        "chip. How fast must the memory be?",
        unit="TB/s",
        reference=lambda: needed(peak),
        slips=[
            ("mac-is-flop", lambda: needed(peak / 2)),
            ("product-for-ratio", lambda: intensity * peak),
        ],
        hint="the ridge point must not lie right of the job.",
    )


def _efficiency(n=8192, milliseconds=1.6):
    seconds = milliseconds / 1000
    return NumberQuestion(
        "roofline.x-efficiency",
        f"On an H100 SXM a product of {n} x {n} matrices in bf16 takes {milliseconds} ms. What "
        "share is that of what the roof allows?",
        unit="%",
        reference=lambda: _reached(n, seconds),
        slips=[
            ("mac-is-flop", lambda: _reached(n, seconds) / 2),
            ("sparse-peak", lambda: _reached(n, seconds, factor=2)),
            ("wrong-chip", lambda: _reached(n, seconds, "H100 PCIe")),
        ],
        hint="far right of the ridge the roof is the dense bf16 peak.",
    )


def _draw_efficiency(rng):
    """A time in which the chip reaches 40 to 95 % of its roof."""
    n = 512 * rng.randint(8, 19)
    least = 1000 * rl.bound(rl.gemm(n, n, n, "bf16"), "H100 SXM", "bf16").time
    return {"n": n, "milliseconds": float(f"{least / rng.uniform(0.4, 0.95):.2g}")}


def _two_kernels(n=2048, numbers="1e8"):
    count = float(numbers)
    return NumberQuestion(
        "roofline.x-two-kernels",
        f"The house chip multiplies two {n} x {n} matrices in fp32 and, when that is done, adds "
        f"two vectors of {numbers} numbers. How long do the two take at least?",
        unit="ms",
        reference=lambda: _one_after_the_other(n, count),
        slips=[
            ("mac-is-flop", lambda: _one_after_the_other(n, count, flop_share=0.5)),
            ("one-hides-the-other", lambda: _both_at_once(n, count)),
        ],
        hint=(
            "the sum begins when the product has ended, so neither hides behind the other: one "
            "limit for each."
        ),
    )


# with other numbers for each student
VARIED = (
    Varied(_n1024, lambda rng: {"n": 16 * rng.randint(16, 120)}),
    Varied(
        _bandwidth,
        lambda rng: {"intensity": rng.randint(15, 90), "teraflops": rng.randint(20, 300)},
    ),
    Varied(_efficiency, _draw_efficiency),
    Varied(
        _two_kernels,
        lambda rng: {"n": 128 * rng.randint(12, 31), "numbers": f"{rng.randint(4, 60)}e7"},
    ),
)

QUESTIONS = [
    NumberQuestion(
        "roofline.ridge",
        "A V100 SXM2 does 125 TFLOP/s in fp16 and moves 900 GB/s. Where is its ridge point?",
        unit="FLOP/byte",
        reference=lambda: _ridge("V100 SXM2", "fp16"),
        slips=[
            ("mac-is-flop", lambda: _ridge("V100 SXM2", "fp16") / 2),
            ("mac-is-flop", lambda: 2 * _ridge("V100 SXM2", "fp16")),
        ],
        hint="peak over bandwidth, both in the same prefix.",
    ),
    NumberQuestion(
        "roofline.sum-time",
        "An A100 80GB SXM moves 2039 GB/s. How long does it take at least to add two vectors of "
        "1e9 bf16 numbers?",
        unit="ms",
        reference=_sum_time,
        slips=[
            ("forgot-c", lambda: _sum_time(writes=0)),
            ("wrong-width", lambda: _sum_time("fp32")),
            ("elements-not-bytes", lambda: _sum_time("int8")),
        ],
        hint="it stands far left of the ridge, so only the bytes count: two vectors in, one out.",
    ),
    NumberQuestion(
        "roofline.h100-ridge",
        "Where is the bf16 ridge point of an H100 SXM, dense, with the catalogue's figures?",
        unit="FLOP/byte",
        reference=lambda: _ridge("H100 SXM", "bf16"),
        slips=[
            ("sparse-peak", lambda: 2 * _ridge("H100 SXM", "bf16")),
            ("wrong-chip", lambda: _ridge("H100 PCIe", "bf16")),
        ],
        hint='rl.machine("H100 SXM") knows peak and bandwidth.',
    ),
    NumberQuestion(
        "roofline.critical-size",
        "What is the smallest whole n whose n x n x n product in bf16 reaches the ridge point of "
        "an A100 80GB SXM?",
        reference=lambda: rl.critical_size("A100 80GB SXM", "bf16"),
        tolerance=0.0005,
        slips=[
            ("forgot-c", lambda: _side(2)),
            ("read-c", lambda: _side(4)),
            ("wrong-width", lambda: _side(3, width=4)),
            ("sparse-peak", lambda: _side(3, factor=2)),
            ("rule-for-exact", lambda: _side(1)),
        ],
        hint="n/3 must be at least the ridge point, so the root is rounded up, never down.",
        rounded="up",
    ),
    ChoiceQuestion(
        "roofline.narrower",
        "A vector sum on the house chip goes from fp32 to bf16: half the bytes. Grant it even the "
        "matrix units' roof, fifteen times as high. What is its best time now, of what it was?",
        reference=_narrower,
        choices=("a fifteenth", "half", "the same"),
        slips=[
            ("roof-not-slope", lambda: "a fifteenth"),
            ("bytes-stay", lambda: "the same"),
        ],
        hint="Left of the ridge the height of the roof does not matter; the bytes do.",
    ),
    NumberQuestion(
        "roofline.faster-memory",
        "A job of 8 FLOP/byte runs in fp32 at the roof of the house chip. The next chip has twice "
        "the bandwidth and the same peak. How many times as fast can the job get?",
        reference=lambda: (
            rl.attainable_performance(8, 20e12, 4e12) / rl.attainable_performance(8, 20e12, 2e12)
        ),
        slips=[
            ("past-the-ridge", lambda: 2.0),
            ("roof-not-slope", lambda: 1.0),
        ],
        hint="the slope moves up, but the point climbs only until it meets the flat roof.",
        counts="times",
    ),
    _n1024(),
    _bandwidth(),
    _efficiency(),
    _two_kernels(),
    ChoiceQuestion(
        "roofline.x-fewer-flop",
        "A job of 3 FLOP/byte runs in fp32 at the roof of the house chip. A cleverer method needs "
        "half the FLOP and the same bytes. Its best time is half, the same, or twice?",
        reference=_fewer_flop,
        choices=("half", "the same", "twice"),
        slips=[
            ("work-is-time", lambda: "half"),
            ("slope-not-time", lambda: "twice"),
        ],
        hint=(
            "Left of the ridge only the bytes count; the point moves left and down along the slope."
        ),
    ),
    FunctionQuestion(
        "roofline.x-share",
        "A function: the share of the peak, 0 to 1, that a job can reach at most.",
        reference=_share,
        tolerance=1e-6,
        inputs=lambda: [(1e9, 12e9, 20e12, 2e12), (2e12, 1e9, 20e12, 2e12), (1e9, 0, 20e12, 2e12)],
        slips=[
            ("past-the-ridge", lambda f, b, p, w: f / b * w / p if b else 1.0),
            ("sum-of-times", lambda f, b, p, w: f / p / (f / p + b / w)),
        ],
        hint=(
            "the roof over the peak; it is never above 1, and a job without traffic stands under "
            "the flat part."
        ),
    ),
    FunctionQuestion(
        "roofline.x-overlap",
        "A function: how many times as long a job takes when fetching and computing take turns.",
        reference=_overlap,
        tolerance=1e-6,
        inputs=lambda: [(10, 10), (0.25, 10), (170, 12.5)],
        slips=[
            ("always-twice", lambda i, r: 2.0),
            ("upside-down-gain", lambda i, r: 1 / (1 + min(i / r, r / i))),
        ],
        hint=(
            "the sum of the two times over the longer of them; their ratio is intensity over "
            "ridge point."
        ),
    ),
    FunctionQuestion(
        "roofline.x-slowest",
        "A function: [seconds, name] of what takes longest, a memory level or the arithmetic.",
        reference=_slowest,
        tolerance=1e-6,
        inputs=lambda: [
            (4e12, 20e12, [["DRAM", 2e11, 2e12], ["L2", 3e12, 8e12]]),
            (6, 3, [["DRAM", 8, 4]]),
        ],
        slips=[
            ("forgot-level", lambda f, p, levels: _slowest(f, p, levels[:1])),
            ("ridge-is-memory", _slowest_memory_first),
        ],
        hint=(
            "the bytes of each level over that level's own bandwidth; on a ridge the arithmetic "
            "wins."
        ),
    ),
    FunctionQuestion(
        "roofline.x-smallest",
        "A function: the smallest whole n at which [pn, rn] @ [rn, qn] reaches the ridge point.",
        reference=_smallest,
        tolerance=1e-9,
        inputs=lambda: [(1, 1, 1, 4, 10), (4, 1, 1, 2, 150), (3, 5, 1, 2, 295.3)],
        slips=[
            ("forgot-c", lambda *args: _smallest(*args, passes_over_c=0)),
            ("read-c", lambda *args: _smallest(*args, passes_over_c=2)),
        ],
        hint="write FLOP and bytes with n³ and n², divide, set equal to the ridge point, round up.",
    ),
    FunctionQuestion(
        "roofline.x-unnoticed",
        "A function: the smallest n from which the pass over C costs at most `share` of the time.",
        reference=_unnoticed,
        tolerance=1e-9,
        inputs=lambda: [(0.05, 2, 312e12, 2039e9), (0.3, 4, 19.5e12, 1555e9), (0.6, 2, 3e14, 2e12)],
        slips=[
            ("share-of-product", lambda f, s, p, w: ceil(s * p / w / f)),
            ("flat-roof-only", lambda f, s, p, w: ceil(s * p / w * (1 - f) / f)),
        ],
        hint="left of the ridge the share does not depend on n at all; what is it there?",
    ),
]
