"""Questions on what a cache keeps, on banks, and on the memory level that a figure belongs to."""

import math

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import HOUSE, PRECISION_OF_WIDTH

_TRANSPOSED = {
    "other lines and banks are touched": "",
    "the product takes more FLOP": "same-count",
    "the matrices take more bytes": "same-count",
}


def _bytes_a_number(stride, line=64):
    """Bytes that a long strided loop fetches for each number that it uses."""
    count = 64 * line
    found = rl.count_misses((stride * step for step in range(count)), 8 * line, line)
    return found.bytes_moved / count


def _turns(stride, threads, banks):
    return float(rl.bank_turns((4 * stride * thread for thread in range(threads)), banks))


def _two_roofs(levels=("L2", "DRAM"), at_dram="L2", b=32):
    """TFLOP/s of the bf16 4096-cube in b x b tiles under the roofs of these levels. `at_dram` says
    whether DRAM sees the tiles' bytes ("tiles") or the compulsory ones."""
    n = 4096
    works = {"L2": rl.tiled_gemm(n, n, n, b, "bf16"), "DRAM": rl.gemm(n, n, n, "bf16")}
    if at_dram == "tiles":
        works["DRAM"] = works["L2"]
    reached = (rl.bound(works[level], HOUSE, "bf16", level=level) for level in levels)
    return min(limit.attainable_performance for limit in reached)


def _sets_of_a_column(row, sets=64, line=64):
    """Sets that a column of an fp32 matrix with rows of `row` numbers visits."""
    return len({k * 4 * row // line % sets for k in range(4096)})


def _fit_in(room, width=2):
    return math.floor(math.sqrt(room / (3 * width)))


def _misses(count, stride, passes, line, sets, ways):
    addresses = (step * stride for _ in range(passes) for step in range(count))
    return rl.count_misses(addresses, sets * ways * line, line, ways).misses


def _seconds(m, n, k, b, s, peak, l2, dram, levels=("L2", "DRAM")):
    """The longest of three times; without a level its traffic costs nothing."""
    precision = PRECISION_OF_WIDTH[s]
    tiled, least = rl.tiled_gemm(m, n, k, b, precision), rl.gemm(m, n, k, precision)
    times = [tiled.flops / peak]
    if "L2" in levels:
        times.append(tiled.bytes_moved / l2)
    if "DRAM" in levels:
        times.append(least.bytes_moved / dram)
    return max(times)


def _parts(m, n, b, units, most, waves=True):
    """The fewest parts, up to `most`, that keep the SMs busiest; without `waves` the fewest that
    give each SM a piece."""
    tiles = int(rl.tile_count(m, n, b))
    if not waves:
        return float(min(most, math.ceil(units / tiles)))
    busy = [rl.wave_efficiency(tiles * parts, units) for parts in range(1, most + 1)]
    return float(1 + busy.index(max(busy)))


def _row_misses_asked(n=512):
    return NumberQuestion(
        "caches.x-row-misses",
        f"Order i, k, j with n = {n} in fp32, lines of 64 bytes, and a cache that holds some rows "
        "but not B. How many accesses to B miss, in millions?",
        reference=lambda: n**3 / 16 / 1e6,
        slips=[
            ("number-for-line", lambda: n**3 / 1e6),
            ("kept-too-long", lambda: n**2 / 16 / 1e6),
        ],
        hint="B is walked along its rows once for each i.",
        counts="million misses",
    )


def _fits_l2_asked(mebibytes=None):
    chip = "The house chip" if mebibytes is None else "A chip"
    mebibytes = mebibytes or round(HOUSE.capacity("L2") / 2**20)
    return NumberQuestion(
        "caches.x-fits-l2",
        f"{chip}'s L2 holds {mebibytes} MiB. What is the largest n for which A, B and C of an n x "
        "n x n product in bf16 fit into it together?",
        reference=lambda: _fit_in(mebibytes * 2**20),
        tolerance=1e-9,
        rounded="down",
        slips=[
            ("wrong-width", lambda: _fit_in(mebibytes * 2**20, 4)),
            ("gib-for-gb", lambda: _fit_in(mebibytes * 1e6)),
        ],
        hint="3n² numbers of 2 bytes; a MiB is 2^20 byte.",
    )


# with other numbers for each student
VARIED = (
    Varied(_row_misses_asked, lambda rng: {"n": 16 * rng.randint(20, 80)}),
    Varied(_fits_l2_asked, lambda rng: {"mebibytes": rng.randint(8, 130)}),
)

QUESTIONS = [
    NumberQuestion(
        "caches.lines",
        "A loop sums one fp32 number out of every 24 bytes of a very long array, in a cache with "
        "lines of 64 bytes. How many bytes does memory deliver for each number that is used?",
        unit="byte",
        reference=lambda: _bytes_a_number(24),
        slips=[
            ("number-for-line", lambda: 4),
            ("line-for-number", lambda: 64),
        ],
        hint="how many of the numbers lie in one line?",
    ),
    NumberQuestion(
        "caches.banks",
        "The 32 threads of a warp read a column of fp32 numbers in shared memory, whose rows are "
        "48 numbers long. How many turns do the 32 banks take?",
        reference=lambda: _turns(48, 32, 32),
        slips=[
            ("shared-factor", lambda: 32),
            ("shared-factor", lambda: 1),
        ],
        hint="which banks do rows 0, 1, 2 and 3 fall into?",
        counts="turns",
    ),
    NumberQuestion(
        "caches.two-roofs",
        "The 4096-cube in bf16 on the house chip, in tiles of 32 x 32. L2 catches so much that "
        "DRAM sees the compulsory traffic. What can it reach at best?",
        unit="TFLOP/s",
        reference=_two_roofs,
        slips=[
            ("forgot-level", lambda: _two_roofs(levels=("DRAM",))),
            ("which-memory", lambda: _two_roofs(levels=("DRAM",), at_dram="tiles")),
        ],
        hint="each level has its own bytes and its own bandwidth, and the lower roof decides.",
    ),
    NumberQuestion(
        "caches.x-sets",
        "An fp32 matrix has rows of 768 numbers. How many of the 64 sets of a cache with lines of "
        "64 bytes does a long column of it visit?",
        reference=lambda: _sets_of_a_column(768),
        slips=[
            ("shared-factor-of-sets", lambda: 64),
            ("shared-factor-of-sets", lambda: 1),
        ],
        hint="a row is 48 lines: which sets do rows 0 to 4 begin in?",
        counts="sets",
    ),
    _row_misses_asked(),
    _fits_l2_asked(),
    ChoiceQuestion(
        "caches.x-transposed",
        "A library is asked for the same product with A stored transposed, and takes another "
        "kernel. Why may the time differ?",
        choices=tuple(_TRANSPOSED),
        reference=lambda: "other lines and banks are touched",
        slips=[(slip, lambda text=text: text) for text, slip in _TRANSPOSED.items() if slip],
        hint="The same numbers are multiplied; they lie elsewhere.",
    ),
    FunctionQuestion(
        "caches.x-misses",
        "A function: misses of a loop over `count` numbers, `stride` bytes apart, `passes` times.",
        reference=_misses,
        tolerance=1e-9,
        inputs=lambda: [(64, 256, 2, 64, 16, 8), (64, 320, 2, 64, 16, 8), (100, 4, 3, 64, 1, 4)],
        slips=[
            ("number-for-line", lambda count, stride, passes, *cache: count * passes),
            ("kept-too-long", lambda c, stride, p, line, *cache: _misses(c, stride, 1, line, 1, c)),
        ],
        hint=(
            "count the lines in each set: as many as fit miss once, one more and every visit "
            "misses."
        ),
    ),
    FunctionQuestion(
        "caches.x-turns",
        "A function: turns that `banks` banks take to serve `threads` threads, of which thread t "
        "asks for word number t * stride.",
        reference=_turns,
        tolerance=1e-9,
        inputs=lambda: [(1, 32, 32), (48, 32, 32), (0, 32, 32), (6, 20, 16)],
        slips=[
            ("shared-factor", lambda stride, threads, banks: threads),
            ("uneven-banks", lambda stride, threads, banks: math.gcd(stride, banks)),
            ("shared-factor", lambda stride, threads, banks: 1),
        ],
        hint="count the different words in each bank.",
    ),
    FunctionQuestion(
        "caches.x-two-roofs",
        "A function: the least seconds of a product in b x b tiles whose bytes cross at L2, with "
        "the compulsory bytes at DRAM.",
        reference=_seconds,
        tolerance=1e-6,
        inputs=lambda: [
            (4096, 4096, 4096, 64, 2, 300e12, 6e12, 2e12),
            (4096, 4096, 64, 128, 2, 300e12, 6e12, 2e12),
            (1000, 3000, 2000, 256, 4, 20e12, 6e12, 2e12),
        ],
        slips=[
            ("forgot-level", lambda *given: _seconds(*given, levels=("DRAM",))),
            ("forgot-level", lambda *given: _seconds(*given, levels=("L2",))),
            ("which-memory", lambda *given: _seconds(*given[:6], given[7], given[7])),
        ],
        hint="three times; the longest is the least that the product takes.",
    ),
    FunctionQuestion(
        "caches.x-split-k",
        "A function: the fewest parts of K, up to `most`, that keep the SMs busiest.",
        reference=_parts,
        tolerance=1e-9,
        inputs=lambda: [(256, 256, 128, 132, 64), (384, 384, 128, 132, 20), (900, 100, 64, 108, 9)],
        slips=[
            ("forgot-waves", lambda *given: _parts(*given, waves=False)),
            ("most-parts", lambda m, n, b, units, most: most),
        ],
        hint="for each number of parts: the pieces, the waves, the share of places filled.",
    ),
]
