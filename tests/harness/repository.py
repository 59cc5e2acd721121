"""What tests of the repository itself share: where it stands, its files, its commands."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command, cwd=ROOT, **options):
    """Run a command to its end; what it wrote is kept as text."""
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options
    )


def tool(name):
    """The path of a command that the tests' environment brings."""
    return Path(sys.executable).with_name(name)


def tracked(*patterns):
    """The files of the repository that git tracks or would track."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [path for path in (ROOT / name for name in listed.stdout.splitlines()) if path.is_file()]
