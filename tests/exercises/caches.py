"""Caches: wrong answers as students give them, by the function that they stand in for."""


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
}

# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = []
