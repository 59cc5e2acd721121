"""A server and a Chromium for each worker. In CI they must be there; elsewhere the tests are
skipped with a line on how to get them."""

import os
import shutil

import browser as driver
import pytest

ROOT = driver.ROOT


@pytest.fixture(scope="session")
def chrome():
    missing = None if driver.chromium() else driver.HOW
    try:
        import playwright  # noqa: F401
    except ImportError:
        missing = (
            "no playwright found: `pip install playwright` brings it "
            "(the browser is Chromium of the system)"
        )
    if missing and not os.environ.get("CI"):
        pytest.skip(missing)
    assert not missing, missing
    with driver.browser() as chrome:
        yield chrome


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Copies of the lessons, and room for notebooks that tests write."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(
        ROOT / "notebooks",
        folder / "notebooks",
        ignore=shutil.ignore_patterns(".ipynb_checkpoints"),
    )
    return folder


@pytest.fixture(scope="session")
def server(chrome, folder):
    with driver.jupyter(folder) as server:
        yield server
