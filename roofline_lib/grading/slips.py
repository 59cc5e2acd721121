"""Which slip a wrong function makes, told from its answers to the drawn inputs.

A slip is a function too: the formula as one gets it wrong. It is computed here, outside every
sandbox, on the inputs that the student's function was given, so no code of a student runs, and
what a page then says is the name of a slip and never the key.
"""

import json
from collections.abc import Sequence

from roofline_lib.checks import FunctionQuestion
from roofline_lib.questions import find_question


def slips_of(question: str, inputs: Sequence[str], values: Sequence[object]) -> tuple[str, ...]:
    """The names of the slips whose function gives these values.

    `question` is the id of a practice question of the course ("" where there is none), `inputs` are
    lists of arguments as JSON texts and `values` what the student's function returned for each, as
    plain JSON.
    """
    if not question:
        return ()
    asked = find_question(question)
    if not isinstance(asked, FunctionQuestion):
        return ()
    tried = [(json.loads(text), value) for text, value in zip(inputs, values, strict=True)]
    return tuple(dict.fromkeys(asked.slips_that_give(tried)))
