"""The practice questions, one module a lesson. References and slips are computed by the library, never typed."""

from importlib import import_module
from pkgutil import iter_modules


def all_questions():
    """Every Question of every lesson, in order."""
    return [question for module in sorted(iter_modules(__path__), key=lambda m: m.name)
            for question in import_module(f"{__name__}.{module.name}").QUESTIONS]
