"""Questions on tiling."""

import math

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import HOUSE, PRECISION_OF_WIDTH, smallest_whole

_LEAST = {
    "yes, tiles add reuse": False,
    "no, 3n² is the most reuse there is": True,
    "only with a large cache": False,
}
_LEVELS = {
    "DRAM and L2": "which-memory",
    "L2 and shared memory": "",
    "shared memory and registers": "which-memory",
}


def _rectangle(precision, with_c):
    """2048 x 2048 x 256 in 64 x 64 tiles; C written `with_c` times."""
    width = rl.bytes_per_element(precision)
    return (
        rl.tiled_gemm(2048, 2048, 256, 64, precision).bytes_moved + (with_c - 1) * width * 2048**2
    )


def _useful(edges=True, waves=True):
    tile, units = 128, rl.machine("A100 40GB SXM").units
    shares = (
        rl.tile_efficiency(1100, 1100, tile),
        rl.wave_efficiency(rl.tile_count(1100, 1100, tile), units),
    )
    return 100 * (shares[0] if edges else 1) * (shares[1] if waves else 1)


def _best(fast_elements, width):
    """Intensity that no schedule of a very large product passes."""
    n = 2.0**20
    return 2 * n**3 / (width * rl.io_lower_bound(n, n, n, fast_elements))


def _computed(m, n, k, b):
    """FLOP of all tiles, padding included."""
    return 2 * k * b * b * rl.tile_count(m, n, b)


def _rectangles(tall, side, wide):
    """How many times the traffic of A and B of square tiles that of others is, where both divide
    an fp32 product without rest."""
    n = side**2
    moved, least = (
        rl.tiled_gemm(n, n, n, tile).bytes_moved - 4 * n**2 for tile in ((tall, wide), side)
    )
    return moved / least


def _least_memory(element_bytes, intensity):
    """Bytes of fast memory without which no schedule of a very large product reaches
    `intensity`."""
    n = 2.0**22
    return element_bytes * smallest_whole(
        lambda fast: 2 * n**3 >= intensity * element_bytes * rl.io_lower_bound(n, n, n, fast)
    )


def _filled(side, units, tiles=None):
    """Percent of the waves' places on so many SMs that 128 x 256 tiles of a square matrix fill."""
    whole = rl.tile_count(side, side, (128, 256))
    return 100 * rl.wave_efficiency(whole, units) * (tiles or whole) / whole


def _larger():
    """What tiles of 192 instead of 128 do to the roof's time of the lesson's product."""
    old, new = (
        rl.bound(rl.tiled_gemm(4096, 4096, 4096, b), HOUSE, "fp32").time for b in (128, 192)
    )
    return {1.0: "the same", 1.5: "a third less", 2.0: "half"}[old / new]


def _traffic(m, n, k, tile_m, tile_n, element_bytes):
    return rl.tiled_gemm(m, n, k, (tile_m, tile_n), PRECISION_OF_WIDTH[element_bytes]).bytes_moved


def _narrowest(tile_m, element_bytes, ridge_point):
    """Through the library's count for one tile and k = 1, less C's own bytes."""

    def reaches(tile_n):
        one = rl.tiled_gemm(tile_m, tile_n, 1, (tile_m, tile_n), PRECISION_OF_WIDTH[element_bytes])
        return one.flops >= ridge_point * (one.bytes_moved - element_bytes * tile_m * tile_n)

    return float(smallest_whole(reaches)) if reaches(2**30) else math.inf


def _largest(fast_bytes, depth, element_bytes, buffers=2):
    precision = PRECISION_OF_WIDTH[element_bytes]

    def is_over(b):
        return rl.tile_memory(b, precision, tile_k=depth, buffers=buffers) > fast_bytes

    return smallest_whole(is_over) - 1


def _at_once(tile_m, tile_n, depth, s, registers, fast, sums=True, panels=True, buffers=2):
    """Tiles in flight on one SM; without `sums` or `panels` these cost nothing."""
    precision, tile = PRECISION_OF_WIDTH[s], (tile_m, tile_n)
    sum_bytes = 4 * tile_m * tile_n
    whole = rl.tile_memory(tile, precision, tile_k=depth, buffers=buffers)
    room_for = []
    if sums:
        room_for.append(registers // sum_bytes)
    if panels:
        room_for.append(fast // (whole - sum_bytes))
    return int(min(room_for))


def _fastest(m, n, k, element_bytes, tiles, peak, bandwidth, units, edges=True, waves=True):
    def time(tile):
        limit = rl.Bound(
            rl.tiled_gemm(m, n, k, tile, PRECISION_OF_WIDTH[element_bytes]), peak, bandwidth
        )
        useful = rl.tile_efficiency(m, n, tile) if edges else 1
        useful *= rl.wave_efficiency(rl.tile_count(m, n, tile), units) if waves else 1
        return max(limit.memory_time, limit.compute_time / useful)

    return min(map(time, tiles))


def _panels_asked(tile=128, deep=32):
    return NumberQuestion(
        "tiling.x-panels",
        f"A {tile} x {tile} tile in bf16: sums in fp32, panels {deep} deep, two of A and two of B. "
        "How much fast memory does it take?",
        unit="KiB",
        reference=lambda: rl.tile_memory(tile, "bf16", tile_k=deep),
        tolerance=0.005,
        slips=[
            ("wrong-width", lambda: rl.tile_memory(tile, "fp32", tile_k=deep)),
            (
                "elements-not-bytes",
                lambda: rl.tile_memory(tile, "int8", tile_k=deep, sums="int8"),
            ),
        ],
        hint=(
            f"4 byte for each of {tile} x {tile} sums; a panel is {tile} x {deep} numbers of "
            "2 byte, and there are four."
        ),
    )


def _least_memory_asked(ridge=None):
    chip = "The house chip" if ridge is None else "A chip"
    ridge = ridge or 150
    return NumberQuestion(
        "tiling.x-least-memory",
        f"{chip}'s bf16 ridge point is {ridge}. How much fast memory must an SM have, so that "
        "any schedule of a very large product at all can reach it? Sums are kept in bf16 too, and "
        "nothing lies between that memory and DRAM.",
        unit="kB",
        reference=lambda: _least_memory(2, ridge),
        slips=[
            ("elements-not-bytes", lambda: _least_memory(2, ridge) / 2),
            ("wrong-width", lambda: _least_memory(4, ridge)),
        ],
        hint=(
            "with room for S numbers the intensity is at most √S/s; and then S numbers are how "
            "many bytes?"
        ),
    )


def _rectangle_asked(tall=64, side=128, wide=256):
    return NumberQuestion(
        "tiling.x-rectangle",
        f"Tiles of {tall} x {wide} keep as many sums as tiles of {side} x {side}. How many times "
        "the traffic of A and B do they cause?",
        reference=lambda: _rectangles(tall, side, wide),
        slips=[
            ("area-for-perimeter", lambda: tall * wide / side**2),
            ("upside-down", lambda: 1 / _rectangles(tall, side, wide)),
        ],
        hint="work goes with the area, traffic with the perimeter.",
        counts="times",
    )


def _waves_asked(side=3000, units=132):
    return NumberQuestion(
        "tiling.x-waves",
        f"A {side} x {side} result in 128 x 256 tiles, on {units} SMs. What share of the waves' "
        "places is filled?",
        unit="%",
        reference=lambda: _filled(side, units),
        slips=[
            ("ragged-edge", lambda: _filled(side, units, side / 128 * side / 256)),
            ("edges-for-waves", lambda: 100 * rl.tile_efficiency(side, side, (128, 256))),
        ],
        hint=(
            f"{math.ceil(side / 128)} rows of tiles, {math.ceil(side / 256)} in each; then count "
            "the waves."
        ),
    )


# a tall and a wide side, whose product is a square
_SIDES = (
    (1, 2),
    (1, 3),
    (1, 4),
    (1, 5),
    (1, 6),
    (2, 3),
    (2, 5),
    (2, 7),
    (3, 5),
    (3, 7),
    (3, 8),
    (4, 7),
    (5, 8),
)


def _rectangle_drawn(tall, wide):
    return {"tall": 8 * tall**2, "side": 8 * tall * wide, "wide": 8 * wide**2}


def _waves_drawn(rng):
    """Until the last tiles and the last wave both count."""
    while True:
        drawn = {"side": 8 * rng.randint(200, 700), "units": rng.choice([80, 108, 114, 132, 144])}
        edges = rl.tile_efficiency(drawn["side"], drawn["side"], (128, 256))
        if edges < 0.97 and abs(100 * edges - _filled(**drawn)) > 3:
            return drawn


# with other numbers for each student
VARIED = (
    Varied(
        _panels_asked, lambda rng: {"tile": 16 * rng.randint(4, 16), "deep": 8 * rng.randint(2, 8)}
    ),
    Varied(_least_memory_asked, lambda rng: {"ridge": rng.randint(80, 320)}),
    Varied(_rectangle_asked, lambda rng: _rectangle_drawn(*rng.choice(_SIDES))),
    Varied(_waves_asked, lambda rng: _waves_drawn(rng)),
)

QUESTIONS = [
    NumberQuestion(
        "tiling.traffic",
        "C[2048, 2048] = A[2048, 256] @ B[256, 2048] in bf16 with 64 x 64 tiles. How many bytes "
        "cross, C's own counted?",
        unit="MB",
        reference=lambda: _rectangle("bf16", 1),
        tolerance=0.005,
        slips=[
            ("forgot-c", lambda: _rectangle("bf16", 0)),
            ("read-c", lambda: _rectangle("bf16", 2)),
            ("wrong-width", lambda: _rectangle("fp32", 1)),
            ("elements-not-bytes", lambda: _rectangle("bf16", 1) / 2),
        ],
        hint=(
            "A is read once for each of the 32 columns of tiles, B once for each of the 32 rows "
            "of tiles, C is written once."
        ),
    ),
    NumberQuestion(
        "tiling.best",
        "An SM of a T4 has 64 KiB of fast memory. What fp32 intensity can no schedule of a large "
        "product pass?",
        unit="FLOP/byte",
        reference=lambda: _best(rl.machine("T4").capacity("shared memory") / 4, 4),
        slips=[
            ("elements-not-bytes", lambda: _best(rl.machine("T4").capacity("shared memory"), 4)),
            ("forgot-width", lambda: _best(rl.machine("T4").capacity("shared memory") / 4, 1)),
        ],
        hint="the square root of S over s, and S counts elements.",
    ),
    NumberQuestion(
        "tiling.useful",
        "A 1100 x 1100 product runs in 128 x 128 tiles on an A100 (108 SMs). What share of the "
        "peak can it reach at best, edges and waves counted?",
        unit="%",
        reference=_useful,
        slips=[
            ("forgot-waves", lambda: _useful(waves=False)),
            ("forgot-edges", lambda: _useful(edges=False)),
        ],
        hint="two shares multiply: the area inside C, and the busy SMs of the waves.",
    ),
    ChoiceQuestion(
        "tiling.smaller",
        "Can tiling make a matrix compute-bound that is too small for it by the 3n² count?",
        choices=tuple(_LEAST),
        reference=lambda: next(c for c, right in _LEAST.items() if right),
        slips=[
            ("no-reuse-is-best", lambda: "yes, tiles add reuse"),
            ("no-reuse-is-best", lambda: "only with a large cache"),
        ],
        hint="Read once, written once: no schedule moves less.",
    ),
    ChoiceQuestion(
        "tiling.level",
        "A profiler counts the bytes of a large fp32 product in b x b tiles on a GPU, and they are "
        "8MNK/b. Between which two memories did it count?",
        choices=tuple(_LEVELS),
        reference=lambda: "L2 and shared memory",
        slips=[(slip, lambda choice=choice: choice) for choice, slip in _LEVELS.items() if slip],
        hint="The tile's own memory and the level below it.",
    ),
    FunctionQuestion(
        "tiling.function",
        "Write a function of m, n, k, b: the FLOP that are computed when C[m, n] is covered by "
        "whole b x b tiles, what hangs over the edges included.",
        reference=_computed,
        tolerance=1e-6,
        inputs=lambda: [(100, 90, 70, 16), (257, 257, 64, 128), (4096, 4096, 4096, 240)],
        slips=[
            ("forgot-edges", lambda m, n, k, b: 2 * m * n * k),
            ("mac-is-flop", lambda m, n, k, b: _computed(m, n, k, b) / 2),
        ],
        hint="so many whole tiles, each of b x b sums that are k multiply-adds long.",
    ),
    _rectangle_asked(),
    _panels_asked(),
    _least_memory_asked(),
    _waves_asked(),
    ChoiceQuestion(
        "tiling.x-larger-tile",
        "With 128 x 128 tiles the 4096-cube is compute-bound in fp32 on the house chip. Tiles of "
        "192 x 192 move a third less. What does the roof say of the least time: a third less, "
        "half, or the same?",
        reference=_larger,
        choices=("a third less", "half", "the same"),
        slips=[
            ("not-the-limit", lambda: "a third less"),
            ("not-the-limit", lambda: "half"),
        ],
        hint="Nobody waits for traffic any more, so less of it buys nothing.",
    ),
    FunctionQuestion(
        "tiling.x-traffic",
        "A function: the bytes that tile_m x tile_n tiles move, C and ragged edges counted.",
        reference=_traffic,
        tolerance=1e-6,
        inputs=lambda: [
            (100, 90, 70, 32, 16, 4),
            (257, 300, 64, 128, 256, 2),
            (4096, 4096, 4096, 128, 64, 4),
        ],
        slips=[
            ("forgot-c", lambda m, n, k, *rest: _traffic(m, n, k, *rest) - rest[2] * m * n),
            ("read-c", lambda m, n, k, *rest: _traffic(m, n, k, *rest) + rest[2] * m * n),
            ("elements-not-bytes", lambda *args: _traffic(*args) / args[5]),
            (
                "ragged-edge",
                lambda m, n, k, tile_m, tile_n, s: s * m * n * (k / tile_m + k / tile_n + 1),
            ),
        ],
        hint="A is read once for each column of tiles, B once for each row of tiles.",
    ),
    FunctionQuestion(
        "tiling.x-narrowest",
        "A function: the narrowest tile_n that reaches the ridge point beside this tile_m; "
        "math.inf where none does.",
        reference=_narrowest,
        tolerance=1e-9,
        inputs=lambda: [(32, 4, 10), (200, 2, 150), (20, 4, 10)],
        slips=[
            ("round-up", lambda *given: max(1.0, _narrowest(*given) - 1)),
            ("square-for-rectangle", lambda tile_m, s, ridge: math.ceil(ridge * s)),
        ],
        hint=(
            "set 2 tile_m tile_n / (s (tile_m + tile_n)) equal to the ridge point and solve; mind "
            "the sign of what you divide by."
        ),
    ),
    FunctionQuestion(
        "tiling.x-largest",
        "A function: the side of the largest square tile that fits, with double buffering; 0 "
        "where none does.",
        reference=_largest,
        tolerance=1e-9,
        inputs=lambda: [(228 * 1024, 32, 2), (98304, 32, 2), (10, 1, 2)],
        slips=[
            ("forgot-panels", lambda fast, depth, s: math.floor(math.sqrt(fast / 4))),
            ("one-buffer", lambda fast, depth, s: _largest(fast, depth, s, buffers=1)),
        ],
        hint=(
            "4 b² byte of sums, and four panels of b x depth numbers; a tile that just fits, fits."
        ),
    ),
    FunctionQuestion(
        "tiling.x-at-once",
        "A function: how many tiles fit into one SM at one time, their sums in its registers and "
        "two panels each of A and of B in its fast memory.",
        reference=_at_once,
        tolerance=1e-9,
        inputs=lambda: [
            (128, 256, 64, 2, 262144, 233472),
            (128, 128, 32, 4, 262144, 233472),
            (256, 256, 64, 2, 131072, 233472),
        ],
        slips=[
            ("other-memory", lambda *given: _at_once(*given, panels=False)),
            ("other-memory", lambda *given: _at_once(*given, sums=False)),
            ("one-buffer", lambda *given: _at_once(*given, buffers=1)),
        ],
        hint="so many tiles as the scarcer of the two memories has room for.",
    ),
    FunctionQuestion(
        "tiling.x-fastest",
        "A function: the least seconds of the fastest of these tiles, edges and waves counted.",
        reference=_fastest,
        tolerance=1e-6,
        inputs=lambda: [
            (4096, 4096, 4096, 4, [[128, 128], [240, 240]], 20e12, 2e12, 132),
            (1000, 300, 5000, 2, [[64, 64], [128, 256], [256, 128]], 300e12, 2e12, 108),
            (1100, 1100, 4096, 4, [[128, 128], [256, 256]], 20e12, 2e12, 27),
        ],
        slips=[
            ("forgot-edges", lambda *given: _fastest(*given, edges=False)),
            ("forgot-waves", lambda *given: _fastest(*given, waves=False)),
        ],
        hint=(
            "for each tile the longer of two times; an SM without a tile and a tile's part "
            "outside C take as long as the rest."
        ),
    ),
]
