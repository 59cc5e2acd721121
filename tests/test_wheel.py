"""The wheel holds the data and the course, and works where the repository is not."""

import ast
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import browser as driver
import hosted_copies
import pytest
from harness.environments import lent_environment
from harness.repository import ROOT, run, tracked

from roofline_lib.course.lessons import lessons

FIGURES = """
import json, roofline_lib as rl
chips = [rl.machine(name) for name in rl.machines()]
peaks = [[p, [peak.flops for peak in rows]] for chip in chips for p, rows in chip.peaks.items()]
ridges = [[chip.name, p, chip.ridge_point(p)] for chip in chips for p in chip.peaks]
models = {name: rl.transformer(name).parameters for name in rl.transformers()}
intensity = rl.gemm(4096, 4096, 64, "bf16").intensity
print(json.dumps([rl.__file__, [peaks, ridges, models, intensity]]))
"""
# runs a notebook to its end, then says where its kernel has the library from
EXECUTE = """
import sys, nbformat, nbclient
book = nbformat.read(sys.argv[1], as_version=4)
book.cells.append(nbformat.v4.new_code_cell("print(rl.__file__)"))
nbclient.NotebookClient(book, kernel_name="python3", timeout=120).execute()
printed = ["".join(one.get("text", "") for one in cell.outputs) for cell in book.cells[1::]
           if cell.cell_type == "code"]
print(repr([printed[0], printed[-1]]))
"""
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "roofline_lib")
COURSE = ("notebooks", "exercises", "solutions", "docs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what git tracks."""
    folder = tmp_path_factory.mktemp("wheel")
    for path in tracked(*BUILT_FROM, *COURSE):
        copy = folder / "tree" / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder]
    built = run(sys.executable, "-m", "pip", "wheel", *options, folder / "tree")
    assert built.returncode == 0, built.stderr[-3000:]
    shutil.rmtree(folder / "tree")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel):
    """A folder with what the wheel holds, to be put on the path."""
    target = wheel.parent / "installed"
    zipfile.ZipFile(wheel).extractall(target)
    return target


def test_a_wheel_holds_all_of_the_library_and_of_the_course(installed):
    held = {path.relative_to(installed).as_posix() for path in installed.rglob("*")}
    assert {path.relative_to(ROOT).as_posix() for path in tracked("roofline_lib")} <= held
    course = [path for path in tracked(*COURSE) if path.suffix == ".ipynb"]
    files = {f"roofline_lib/course/files/{path.relative_to(ROOT).as_posix()}" for path in course}
    assert files <= held


def test_a_wheel_gives_the_same_figures_outside_the_tree(installed, tmp_path):
    def figures(place):
        result = run(sys.executable, "-c", FIGURES, cwd=tmp_path, env={"PYTHONPATH": str(place)})
        assert result.returncode == 0, result.stderr
        file, values = json.loads(result.stdout)
        assert Path(file).is_relative_to(place)
        return values

    assert figures(installed) == figures(ROOT)


def test_a_wheels_course_opens_the_first_lesson(installed, tmp_path):
    """With nothing on the PATH: no make, no shell, no git."""
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    stripped = {"PYTHONPATH": str(installed), "PATH": str(nothing)}
    start = [sys.executable, "-m", "roofline_lib", "course"]
    with driver.serving(start, tmp_path, environment=stripped) as (address, token):
        first = driver.asked(f"{address}api/contents/{lessons()[0].file}", token)
        assert first["type"] == "notebook"
        printed = (tmp_path / ".own" / "server.log").read_text()
    course = tmp_path / "roofline-course"
    assert f"/lab/tree/{lessons()[0].file}?token=" in printed
    assert len(list(course.glob("*.ipynb"))) == len(lessons())
    assert "Warning" not in printed, printed


def executed(python, wheel, folder, **variables):
    """What the first lesson's copy printed in its first cell, and where its library came from."""
    hosted_copies.write_copies(folder / "hosted", str(wheel), "https://pages.example")
    first = folder / "hosted" / "notebooks" / lessons()[0].file
    known = {"IPYTHONDIR": str(folder / "ipython"), **variables}
    known |= {name: os.environ[name] for name in ("PATH", "MPLCONFIGDIR") if name in os.environ}
    done = run(python, "-c", EXECUTE, first, cwd=folder, env=known)
    assert done.returncode == 0, done.stderr[-3000:]
    said, library = ast.literal_eval(done.stdout.splitlines()[-1])
    return said, library.strip()


def test_a_copy_brings_the_library_from_a_wheel(wheel, tmp_path):
    python = lent_environment(tmp_path / "bare")
    assert run(python, "-c", "import roofline_lib", cwd=tmp_path, env={}).returncode != 0
    said, library = executed(python, wheel, tmp_path)
    assert library.startswith(str(tmp_path / "bare")), (said, library)


def test_a_copy_leaves_a_library_that_is_there(tmp_path):
    said, library = executed(sys.executable, "no-such.whl", tmp_path, PYTHONPATH=str(ROOT))
    assert said == "" and library == str(ROOT / "roofline_lib" / "__init__.py")


@pytest.mark.slow
def test_a_wheel_in_an_environment_of_its_own(wheel, tmp_path):
    """Installed with pip, the packages of the lock beside it; its own script starts the course,
    and the first lesson runs."""
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    execute = ["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "run.ipynb"]
    for step in (
        [sys.executable, "-m", "venv", tmp_path / "venv"],
        [*pip, "--require-hashes", "-r", ROOT / "requirements.lock"],
        [*pip, f"{wheel}[course]"],
        [python.with_name("roofline"), "course", "--no-open"],
        [python, *execute, f"roofline-course/{lessons()[0].file}"],
    ):
        done = run(*step, cwd=tmp_path, env=bare)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
