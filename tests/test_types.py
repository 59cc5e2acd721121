"""The types of the library hold, and a caller's checker reads them."""

import os
import sys

from harness.repository import ROOT, run

CALLER = """
import roofline_lib as rl
work = rl.gemm("96", 96, 96)
seconds: float = rl.bound(rl.gemm(1, 2, 3), "H100 SXM", "bf16").time / 2
"""


def mypy(*arguments, **options):
    command = [sys.executable, "-m", "mypy", f"--config-file={ROOT / 'pyproject.toml'}"]
    return run(*command, "--cache-dir=/dev/null", *arguments, **options)


def test_types_hold():
    result = mypy()
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_wrong_type_is_seen_by_a_caller(tmp_path):
    """One error, that of the text in place of a number, and none at the right call."""
    caller = tmp_path / "caller.py"
    caller.write_text(CALLER)
    checked = mypy(caller, cwd=tmp_path, env=os.environ | {"MYPYPATH": str(ROOT)})
    assert checked.stdout.count("error:") == 1, checked.stdout + checked.stderr
    assert 'incompatible type "str"' in checked.stdout
