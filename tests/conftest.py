"""What holds for every test: how hypothesis draws, and which files come first.

hypothesis draws the same examples in each `make test`, so that a red run means a changed library;
`make test-all` draws new ones.
"""

import os

from hypothesis import settings

settings.register_profile("every-change", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("long", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "every-change"))


# Files whose tests are few and long. The workers take whole files in this order: begun last, one of
# these would keep a single worker busy while the others have nothing left to do.
LONG_FIRST = [
    "browser",
    "test_grading_corpus",
    "test_grading",
    "test_grading_exercises",
    "test_grading_sandbox",
    "test_measuring_run",
    "test_exercises",
]


def pytest_collection_modifyitems(items):
    def place(item):
        names = [item.path.parent.name, item.path.stem]
        return min(
            (LONG_FIRST.index(name) for name in names if name in LONG_FIRST),
            default=len(LONG_FIRST) + (item.path.suffix != ".ipynb"),
        )

    items.sort(key=place)
