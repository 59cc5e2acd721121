"""The practice questions, one module a lesson. References and slips are computed by the library,
never typed."""

from importlib import import_module
from pkgutil import iter_modules


def all_questions():
    """Every Question of every lesson, in order."""
    return [
        question
        for module in sorted(iter_modules(__path__), key=lambda m: m.name)
        for question in import_module(f"{__name__}.{module.name}").QUESTIONS
    ]


def first(holds):
    """The smallest whole number from 1 on that `holds`, of a property that stays once it is
    there."""
    above = 1
    while not holds(above):
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
