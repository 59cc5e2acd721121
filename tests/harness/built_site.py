"""The site as it is built, once in a run of the tests for all workers."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest
from harness.repository import ROOT

PYTHON = ROOT / ".venv-site" / "bin" / "python"


def built(part: str, tmp_path_factory) -> Path:
    """The folder of the site with this part of it (see site/build.py), built by whichever worker
    comes first."""
    if not PYTHON.exists() and not os.environ.get("CI"):
        pytest.skip("no .venv-site: `make site` makes it")
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, done = shared / "site" / "html", shared / "site" / f"{part}.done"
    folder.mkdir(parents=True, exist_ok=True)
    with open(done.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            command = [PYTHON, ROOT / "site" / "build.py", part, "--out", folder]
            built = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert built.returncode == 0, built.stderr[-3000:]
            done.touch()
    return folder
