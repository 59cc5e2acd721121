"""Marks that cannot be forged: answers come out of the sandbox, the key never goes in.
docs/teaching.md tells how to use it.

`marked` is what a solution notebook says of each marked question.
"""

import json
import random

from roofline_lib.grading.inside.serve import DRAWS, plain
from roofline_lib.grading.marks import same


def marked(function, library, *, edges=(), draw, without=(), tolerance=1e-6):
    """Hold `function` against `library` on its edge cases and on drawn inputs; AssertionError at
    the first difference.

    `edges` are lists of arguments, `draw(rng)` gives one more from a random.Random; numbers, texts
    and lists of them only. `library` is a second way to the right answer: a function, or the id of
    the practice question that has it. `python -m roofline_lib grade` reads the same line otherwise:
    it draws inputs for each student and holds the student's function against the solution's own,
    with `without` (names from roofline_lib, or whole modules of it) out of reach.
    """
    if isinstance(library, str):
        from roofline_lib.questions import find_question

        library = find_question(library).reference
    rng = random.Random(function.__name__)
    for inputs in (*edges, *(draw(rng) for _ in range(DRAWS))):
        text = json.dumps(inputs)
        assert same(
            plain(function(*json.loads(text))), plain(library(*json.loads(text))), tolerance
        ), f"{function.__name__}{inputs}"
