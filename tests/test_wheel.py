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
import numpy
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
# what stands in a key: in solutions and their hidden tests, in a topic's questions (compiled ones
# too), and at the beginning of a packed copy
KEY = ("BEGIN SOLUTION", "BEGIN HIDDEN TESTS", "reference=lambda", "_higher_intensity", "PK\3\4")
LOOK = """
def found(top, words, beyond):
    import os
    hits, read = [], 0
    for folder, folders, files in os.walk(top):
        if folder == '/':
            folders[:] = set(folders) - {'proc', 'sys', 'dev'}
        folders[:] = [one for one in folders if one not in beyond]
        for file in (folder + '/' + name for name in files):
            try:
                with open(file, 'rb') as opened:
                    data = opened.read()
            except OSError:
                continue
            read += 1
            hits += [file] if any(word.encode() in data for word in words) else []
    return [hits, read]
"""
INSIDE = """
import json, sys
from roofline_lib.grading import sandbox
from roofline_lib.grading.inside.protocol import Task
import roofline_lib
look, mode, *inputs = json.loads(sys.stdin.read())
sandbox.working_mode = lambda: getattr(sandbox, mode)
book = {"cells": [{"cell_type": "code", "source": look}]}
with sandbox.StudentSandbox(json.dumps(book).encode()) as box:
    task = Task("found", [json.dumps(inputs)], whole=False, seconds=20, wall=60, prelude="")
    reply = box.answer(task)
print(json.dumps([roofline_lib.__file__, reply.lines[1:], reply.ended]))
"""
# folders that are others': numpy's, the system's and Python's own
BEYOND = ("numpy", "numpy.libs", "usr", "lib", "lib64", "python")
MODES = ("as_root", "as_user") if os.name == "posix" and os.geteuid() == 0 else ("as_user",)


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


@pytest.fixture(scope="module")
def site_packages(installed, wheel):
    """Packages as pip puts them: what the wheel holds, numpy beside it, and the wheel itself."""
    folder = wheel.parent / "site-packages"
    shutil.copytree(installed, folder)
    for found in Path(numpy.__file__).resolve().parents[1].glob("numpy*"):
        shutil.copytree(found, folder / found.name, copy_function=_link_or_copy)
    shutil.copy(wheel, folder)
    folder.chmod(0o755)  # to be read by the sandbox's own user
    return folder


def _link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs bubblewrap")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", ["a clone", "elsewhere"])
def test_an_installed_wheel_shows_no_key_inside(site_packages, tmp_path, place, mode):
    """Every file that a notebook can read is searched for the key, where the command runs inside a
    clone of the course, whose library is imported then, and where it runs elsewhere."""
    names = {}
    exec(LOOK, names)
    for word in KEY:
        assert names["found"](str(site_packages), [word], BEYOND)[0], f"{word} is nowhere"

    done = run(
        *(sys.executable, "-c", INSIDE),
        cwd=ROOT if place == "a clone" else tmp_path,
        env={"PYTHONPATH": str(site_packages), "PATH": os.environ["PATH"]},
        input=json.dumps([LOOK, mode, "/", KEY, BEYOND]),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    imported, (line,), ended = json.loads(done.stdout)
    assert Path(imported).is_relative_to(ROOT if place == "a clone" else site_packages)
    hits, read = json.loads(line)["value"]
    assert (hits, ended) == ([], "done") and read > 50


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
