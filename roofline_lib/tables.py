"""The TOML tables that the library brings along."""

from __future__ import annotations

from typing import Any


def read_table(path: str) -> dict[str, Any]:
    """One table of the package, by its path inside it: "data/machines.toml"."""
    # imported late: together they take longer to import than the whole library
    import tomllib
    from importlib import resources

    text = resources.files("roofline_lib").joinpath(path).read_text(encoding="utf-8")
    return tomllib.loads(text)
