"""Environments of Python that tests make for themselves."""

import sys
import sysconfig
from pathlib import Path

from harness.repository import run


def lent_environment(folder: Path) -> Path:
    """Make an environment in `folder` that has everything that is installed here but the library;
    gives its Python. What is installed into it comes first. (Packages are lent by a path; the
    `.pth` files among them, the library's too, are not read there.)"""
    made = run(sys.executable, "-m", "venv", "--without-pip", folder)
    assert made.returncode == 0, made.stderr
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"
