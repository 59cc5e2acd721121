"""What the WebAssembly run compares: a list of differences that is neither too short nor too
long. The run itself is `make wasm`."""

import json
import re
import sys

from harness.repository import ROOT

sys.path.append(str(ROOT / "tests" / "wasm"))

from differences import LISTED, complaints, name_of  # noqa: E402


def test_a_difference_that_is_new_or_gone_is_a_complaint():
    listed = {"02_roofline picture": "why", "tests/test_a.py::test_b": "why"}
    rows = [
        {"lesson": "02_roofline", "cell": "picture", "error": "..."},
        {"test": "tests/test_a.py::test_b[1-2]", "error": "..."},
        {"test": "tests/test_a.py::test_b[3-4]", "error": "..."},
    ]
    found = [name_of(row) for row in rows]
    assert complaints(found, listed) == []
    assert len(complaints(found[:1], listed)) == 1 == len(complaints([*found, "new"], listed))
    assert "no more" in complaints(found[:1], listed)[0]


def test_what_is_listed_exists():
    for name in LISTED:
        if "::" in name:
            file, _, function = name.partition("::")
            assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.M), name
        else:
            lesson, cell = name.split()
            book = json.loads((ROOT / "notebooks" / f"{lesson}.ipynb").read_text())
            assert cell in {one["id"] for one in book["cells"]}, name
