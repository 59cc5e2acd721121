"""What may come out otherwise on a WebAssembly Python, each with its reason in differences.json: a
test by its file and name, a lesson's cell by the lesson and its id."""

import json
from collections.abc import Collection
from pathlib import Path

LISTED = json.loads(Path(__file__).with_name("differences.json").read_text(encoding="utf-8"))


def name_of(row: dict) -> str:
    """The name under which a difference that inside.py printed is listed: of a test with several
    arguments that of all."""
    return row["test"].partition("[")[0] if "test" in row else f"{row['lesson']} {row['cell']}"


def complaints(found: Collection[str], listed: Collection[str] = LISTED) -> list[str]:
    """A line for each difference that is found and not listed, and for each that is listed and no
    longer there."""
    new = [f"{name} differs, and is not listed" for name in sorted({*found} - {*listed})]
    gone = [f"{name} is listed, and differs no more" for name in sorted({*listed} - {*found})]
    return new + gone
