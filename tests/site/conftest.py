"""The built pages, and a Chromium that reaches nothing else."""

import os
import sys

import browser as driver
import pytest
from harness.built_site import built
from harness.repository import ROOT

sys.path += [str(ROOT / "site"), str(ROOT / "site" / "lite")]  # what builds the site


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """The folder of the pages."""
    return built("pages", tmp_path_factory)


@pytest.fixture(scope="session")
def scenes(pages, tmp_path_factory):
    """The folder of the scenes, in that of the pages."""
    return built("scenes", tmp_path_factory) / "_static" / "scenes"


@pytest.fixture(scope="session")
def alone():
    """A Chromium that knows no other host."""
    if not driver.chromium() and not os.environ.get("CI"):
        pytest.skip(driver.HOW)
    with driver.browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as chrome:
        yield chrome


@pytest.fixture(scope="session")
def address(pages):
    with driver.served(pages) as address:
        yield address
