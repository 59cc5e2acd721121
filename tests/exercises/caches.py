"""Caches: wrong answers as students give them, by the function that they stand in for."""

from math import ceil, gcd


def lines_in_sets(count, stride, line, sets, every=False):
    """How many lines, or reads, fall into each set."""
    found = [step * stride // line for step in range(count)]
    tally = {}
    for number in found if every else dict.fromkeys(found):
        tally[number % sets] = tally.get(number % sets, 0) + 1
    return tally.values()


WRONG_ANSWERS = {
    "strided_misses": [
        lambda c, stride, p, line, sets, ways: c * p,
        lambda c, stride, p, line, sets, ways: p * len({i * stride // line for i in range(c)}),
        lambda c, stride, p, line, sets, ways: (
            (held := sum(lines_in_sets(c, stride, line, sets))) * (p if held > sets * ways else 1)
        ),
        lambda c, stride, p, line, sets, ways: sum(
            n + (p - 1) * max(0, n - ways) for n in lines_in_sets(c, stride, line, sets)
        ),
        lambda c, stride, p, line, sets, ways: sum(
            n if n <= ways else n * p for n in lines_in_sets(c, stride, line, sets, every=True)
        ),
    ],
    "bank_turns": [
        lambda stride, threads, banks: threads,
        lambda stride, threads, banks: 1,
        lambda stride, threads, banks: -(-threads * gcd(stride, banks) // banks) + 1,
        lambda stride, threads, banks: max(
            [t * stride % banks for t in range(threads)].count(b) for b in range(banks)
        ),
    ],
    "seconds_on_two_roofs": [
        lambda m, n, k, b, s, p, l2, dram: max(2 * m * n * k / p, s * (m * k + k * n + m * n) / l2),
        lambda m, n, k, b, s, p, l2, dram: max(
            2 * m * n * k / p,
            s * (ceil(n / b) * m * k + ceil(m / b) * k * n + m * n) / dram,
        ),
        lambda m, n, k, b, s, p, l2, dram: (
            2 * m * n * k / p
            + s * (ceil(n / b) * m * k + ceil(m / b) * k * n + m * n) / l2
            + s * (m * k + k * n + m * n) / dram
        ),
    ],
    "best_split": [
        lambda m, n, b, units, most: most,
        lambda m, n, b, units, most: min(most, ceil(units / (ceil(m / b) * ceil(n / b)))),
        lambda m, n, b, units, most: 1,
    ],
}

LESSON = "caches"
CUBE = (4096, 4096, 4096, 64, 2, 300e12, 6e12, 2e12)


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    return [
        f"all {f['strided_misses'](64, 256, 2, 64, 16, 8)} miss",
        f"At 320 bytes apart it is {f['strided_misses'](64, 320, 2, 64, 16, 8)}",
        f"and {f['bank_turns'](12, 32, 32)} at 12",
        f"takes {1e6 * f['seconds_on_two_roofs'](*CUBE):.0f} µs",
        f"best cut into {f['best_split'](256, 256, 128, 132, 64)} parts",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("caches.lines", "4 byte", "number-for-line"),
    ("caches.lines", "64 byte", "line-for-number"),
    ("caches.banks", 32, "shared-factor"),
    ("caches.banks", 1, "shared-factor"),
    ("caches.two-roofs", "300 TFLOP/s", "forgot-level"),
    ("caches.two-roofs", "31.88 TFLOP/s", "which-memory"),
    ("caches.x-sets", 64, "shared-factor-of-sets"),
    ("caches.x-sets", 1, "shared-factor-of-sets"),
    ("caches.x-row-misses", 134.2, "number-for-line"),
    ("caches.x-row-misses", 0.01638, "kept-too-long"),
    ("caches.x-fits-l2", 2090, "wrong-width"),
    ("caches.x-fits-l2", 2886, "gib-for-gb"),
    ("caches.x-transposed", "the product takes more FLOP", "same-count"),
    ("caches.x-transposed", "the matrices take more bytes", "same-count"),
]
