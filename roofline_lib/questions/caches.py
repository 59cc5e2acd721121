"""Questions on what a cache keeps."""

import roofline_lib as rl
from roofline_lib.checks import FunctionQuestion


def _misses(count, stride, passes, line, sets, ways):
    addresses = (step * stride for _ in range(passes) for step in range(count))
    return rl.count_misses(addresses, sets * ways * line, line, ways).misses


QUESTIONS = [
    FunctionQuestion(
        "caches.x-misses",
        "A function: misses of a loop over `count` numbers, `stride` bytes apart, `passes` times.",
        reference=_misses,
        tolerance=1e-9,
        inputs=lambda: [(64, 256, 2, 64, 16, 8), (64, 320, 2, 64, 16, 8), (100, 4, 3, 64, 1, 4)],
        hint=(
            "count the lines in each set: as many as fit miss once, one more and every visit "
            "misses."
        ),
    ),
]
