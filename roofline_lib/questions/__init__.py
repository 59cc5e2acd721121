"""What is asked: one module a topic, with the questions of its lesson and of its exercises.

The part of an id before the dot is the module: "tiling.useful" stands in tiling.py, and to find it
only that module is imported. References and slips are computed by the library, never typed.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module

from roofline_lib.arguments import unknown
from roofline_lib.checks import Question, Tries, Varied, Verdict, never_raising, tell
from roofline_lib.checks.answers import safely

# in the course's order
TOPICS = (
    "start",
    "intensity",
    "roofline",
    "tiling",
    "caches",
    "decode",
    "chains",
    "peaks",
    "measured",
    "operators",
    "attention",
    "training",
    "models",
    "chips",
    "lies",
)


TRIES = Tries()


def check(
    question: str | Question,
    answer: object = ...,
    *more: object,
    show: bool = False,
    variant: str = "",
) -> Verdict:
    """Judge an answer to a question (its id, such as "intensity.gemm-flops", or a Question), print
    the verdict and return it. Never raises.

    `answer`: a number in the unit that the question asks for, a text with a unit ("2.147 GFLOP"), a
    choice, or a function. The right value is told with the second different wrong answer, or at
    once with `show=True`. `variant` names the numbers that this student's notebook asks with (see
    tools/make_exercises.py --variants). `more` is there for 12,5: Python hands over two numbers.
    """

    def judge():
        asked = question if isinstance(question, Question) else find_question(question, variant)
        return TRIES.judge(asked, (answer, *more) if more else answer, show)

    verdict = never_raising(judge, answer)
    tell(verdict)
    return verdict


def find_question(name: str, variant: str = "") -> Question:
    """The question of that id, with the numbers of a `variant` where it has some. UnknownName lists
    the nearest; inside the grading sandbox there are none."""
    topic = name.partition(".")[0] if isinstance(name, str) else None
    if topic in TOPICS:
        if variant and name in varied_on(topic):
            return varied_on(topic)[name].variant(variant)
        for question in questions_on(topic):
            if question.id == name:
                return question
    ids = [question.id for question in all_questions()]
    raise unknown("question", safely(str, name), ids or ["(no references here)"])


def all_questions() -> list[Question]:
    """Every question of the course, in its order."""
    return [question for topic in TOPICS for question in questions_on(topic)]


@cache
def varied_on(topic: str) -> dict[str, Varied]:
    """The questions on one topic that can be asked with other numbers, by id."""
    if not questions_on(topic):
        return {}
    varied = getattr(import_module(f"{__name__}.{topic}"), "VARIED", ())
    return {one.ask().id: one for one in varied}


@cache
def questions_on(topic: str) -> Sequence[Question]:
    """The questions on one topic, in the order in which they are met; none in the grading sandbox,
    whose copy of the library lacks the topics."""
    module = f"{__name__}.{topic}"
    try:
        return tuple(import_module(module).QUESTIONS)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        return ()
