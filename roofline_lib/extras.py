"""Packages that only a part of the work needs, and the extra of pyproject.toml that brings each."""

from importlib import import_module
from types import ModuleType

_BROUGHT_BY = {
    "jsonschema": "course",
    "jupyterlab": "course",
    "mistune": "course",
    "threadpoolctl": "course",
    "tqdm": "course",
    "distributed": "grading",
}


class MissingExtra(ModuleNotFoundError):
    """A package that only a part of the work needs is not installed; the message says what brings
    it."""


def extra(name: str) -> ModuleType:
    """The module `name`. MissingExtra where it is not installed."""
    package = name.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        brought_by = f"pip install 'roofline_lib[{_BROUGHT_BY[package]}]'"
        message = f"{package} is not installed: {brought_by} brings it"
        raise MissingExtra(message, name=package) from None
    return import_module(name)
