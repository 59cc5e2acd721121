"""Who may import whom, inside the library and between the rooms of the repository; lint; layout."""

import ast
import shutil
import sys

import pytest
from harness.repository import ROOT, run, tool

MODULES = sorted((ROOT / "roofline_lib").rglob("*.py"))


def contracts(folder):
    return run(
        tool("lint-imports"), "--no-cache", cwd=folder, env={"PYTHONPATH": str(folder), "PATH": ""}
    )


def test_import_contracts():
    result = contracts(ROOT)
    assert result.returncode == 0, result.stdout[-3000:]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model.py", "from roofline_lib import tiling"),
        ("precisions.py", "def late():\n    import matplotlib"),
        ("rooflines.py", "import ipywidgets"),
        ("diagrams.py", "import ipywidgets"),
        ("checks/judging.py", "from roofline_lib.rooflines import draw_roofline"),
        ("another.py", "x = 1"),
    ],
)
def test_import_contracts_bite(module, line, tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "roofline_lib", tmp_path / "roofline_lib")
    with open(tmp_path / "roofline_lib" / module, "a") as file:
        file.write("\n" + line + "\n")
    assert contracts(tmp_path).returncode == 1


# the packages from outside the standard library that each part may use; the rest of the library:
# numpy alone
OUTSIDE = {
    "course": {"jupyter_server"},
    "style": {"numpy", "matplotlib"},
    "labels": {"numpy", "matplotlib"},
    "rooflines": {"numpy", "matplotlib"},
    "own_curve": {"matplotlib"},
    "diagrams": {"matplotlib"},
    "explorers": {"numpy", "matplotlib", "PIL", "ipywidgets", "traitlets", "IPython"},
    "measuring": {"numpy", "threadpoolctl", "cupy", "torch"},
    "grading": {"numpy", "distributed"},
}


def imports(path, late=True, neighbours=True):
    """The top-level names that a module imports, the standard library's and our own left out; with
    late=False without those inside functions, with neighbours=True without files beside it."""

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                yield child.module.partition(".")[0]
            elif late or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child)

    # scripts of the sandbox import their neighbours
    beside = {other.stem for other in path.parent.glob("*.py")} if neighbours else set()
    return (
        set(visit(ast.parse(path.read_text())))
        - set(sys.stdlib_module_names)
        - {"roofline_lib"}
        - beside
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_from_outside(path):
    part = path.relative_to(ROOT / "roofline_lib").parts[0].removesuffix(".py")
    assert imports(path) <= OUTSIDE.get(part, {"numpy"})
    assert not imports(path, late=False) & {"torch", "cupy", "distributed"}, (
        "import these only inside the functions that use them"
    )


def test_importing_the_library_brings_no_pictures_and_no_widgets():
    late = ["matplotlib", "ipywidgets", "IPython", "tqdm"]
    code = f"import sys, roofline_lib; print([m for m in {late} if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout == "[]\n"


def test_tests_and_benchmarks_leave_each_other_alone():
    """What both need stands in tools/."""
    tests, benchmarks = (sorted((ROOT / room).rglob("*.py")) for room in ("tests", "benchmarks"))
    of_tests = {"harness", "data", *(path.stem for path in tests)}
    of_benchmarks = {path.stem for path in benchmarks}
    found = {path: imports(path, neighbours=False) & of_benchmarks for path in tests}
    found |= {path: imports(path, neighbours=False) & of_tests for path in benchmarks}
    assert {str(path): names for path, names in found.items() if names} == {}


def test_ruff():
    result = run(tool("ruff"), "check", "--no-cache", ".")
    assert result.returncode == 0, result.stdout[-3000:]


def test_the_formatter_has_nothing_to_do():
    result = run(tool("ruff"), "format", "--check", "--no-cache", ".")
    assert result.returncode == 0, result.stdout[-3000:]
