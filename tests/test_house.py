"""The house itself: dependencies that agree, locks, who imports whom, lint, the wheel."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import mutants
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = sorted((ROOT / "roofline_lib").rglob("*.py"))


def run(*command, cwd=ROOT, **options):
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, **options
    )


def tool(name):
    return Path(sys.executable).with_name(name)


def tracked(*patterns):
    """The files of the repository; those in a source archive without git."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns)
    return [path for path in (ROOT / name for name in listed.stdout.splitlines()) if path.is_file()]


# Dependencies


def requirements(*extras):
    """All requirements of pyproject.toml with these extras, those of its own extras followed."""
    found = list(map(Requirement, PYPROJECT["project"]["dependencies"]))
    for extra in extras:
        for text in PYPROJECT["project"]["optional-dependencies"][extra]:
            own = Requirement(text)
            found += (
                requirements(*own.extras)
                if canonicalize_name(own.name) == "roofline-lib"
                else [own]
            )
    return found


def pins(name):
    """{package: version} of a lock file; each pin must carry a hash."""
    text = (ROOT / name).read_text()
    entries = re.findall(
        r"^([a-z0-9-]+(?:\[[a-z,]+\])?)==(\S+)(?: ;.*)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$",
        text,
        re.M,
    )
    unread = [line for line in text.splitlines() if line and not line.startswith(("#", " "))]
    assert len(entries) == len(unread) > 50, "a line of the lock is no pin with a hash"
    return {name.partition("[")[0]: version for name, version, _ in entries}


LOCKS = [("requirements.lock", ()), ("requirements-test.lock", ("test", "peers", "nbgrader"))]


@pytest.mark.parametrize(("lock", "extras"), LOCKS)
def test_lock_satisfies_pyproject(lock, extras):
    locked = pins(lock)
    wanted = requirements(*extras) + list(map(Requirement, PYPROJECT["dependency-groups"]["build"]))
    versions = {str(r): (r.specifier, locked.get(canonicalize_name(r.name), "0")) for r in wanted}
    assert {
        text: version
        for text, (allowed, version) in versions.items()
        if not allowed.contains(version)
    } == {}


@pytest.mark.parametrize("lock", [lock for lock, _ in LOCKS])
def test_lock_has_no_address_and_no_torch(lock):
    assert "://" not in (ROOT / lock).read_text()
    assert not {"torch", "torchvision"} & set(pins(lock))


def test_the_locks_agree():
    lab, test = (pins(lock) for lock, _ in LOCKS)
    assert {
        name: (version, test.get(name))
        for name, version in lab.items()
        if test.get(name) != version
    } == {}


def test_environment_yml_equals_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    python = f"python{PYPROJECT['project']['requires-python']}"
    assert environment == [python, *PYPROJECT["project"]["dependencies"], "pip", {"pip": ["-e ."]}]


def test_the_build_needs_what_the_lock_holds():
    assert PYPROJECT["build-system"]["requires"] == PYPROJECT["dependency-groups"]["build"]


def test_one_version_everywhere():
    version = PYPROJECT["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    released = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert released[0] == version


# Imports, lint, size


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
        ("drawing.py", "import ipywidgets"),
        ("checks.py", "from roofline_lib.drawing import draw_roofline"),
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
    "course": {"jupyterlab", "jupyter_server"},
    "drawing": {"numpy", "matplotlib"},
    "explorers": {"numpy", "matplotlib", "PIL", "ipywidgets", "traitlets"},
    "measuring": {"numpy", "tqdm", "jsonschema", "threadpoolctl", "cupy", "torch"},
    "grading": {"numpy", "tqdm", "distributed"},
}


def imports(path, late=True):
    """The top-level names that a module imports; with late=False without those inside functions."""

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                yield child.module.partition(".")[0]
            elif late or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child)

    # scripts of the sandbox import their neighbours
    beside = {other.stem for other in path.parent.glob("*.py")}
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
    code = "import sys, roofline_lib; print([m for m in ('matplotlib', 'ipywidgets', 'IPython', 'tqdm') if m in sys.modules])"
    assert run(sys.executable, "-c", code).stdout == "[]\n"


def test_ruff():
    result = run(tool("ruff"), "check", "--no-cache", ".")
    assert result.returncode == 0, result.stdout[-3000:]


def test_the_formatter_has_nothing_to_do():
    result = run(tool("ruff"), "format", "--check", "--no-cache", ".")
    assert result.returncode == 0, result.stdout[-3000:]


def test_each_break_of_the_mutants_still_finds_its_formula():
    """tests/mutants.py itself takes minutes and runs weekly; that its list has kept up with the
    library is seen here."""
    assert mutants.stale() == []


# Files


def test_no_file_names_a_machine_or_a_registry():
    registry = re.compile(
        r"https?://\S*/simple\b|\b(?:pypi|pythonhosted|npmjs|anaconda|debian)\.(?:org|com)\b/?\S*"
    )
    place = re.compile(r"(?<![\w.>}])/(?:home|Users|root|work)/\w[\w.-]*")
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        name = str(path.relative_to(ROOT))
        if name.startswith("tests/"):  # they name such places on purpose
            found += [f"{name}: {ROOT}"] * (f"{ROOT}/" in text)
            continue
        found += [
            f"{name}: {match[0]}"
            for pattern in (registry, place)
            for match in pattern.finditer(text)
        ]
    assert found == []


def test_make_help_names_every_target():
    targets = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.M)[1].split()
    assert [line.split()[0] for line in run("make", "help").stdout.splitlines()] == targets


def test_ci_runs_the_test_command_of_the_readme():
    assert re.findall(r"make.*", (ROOT / ".ci" / "run").read_text())[-1].split()[-1] == "test"
    assert "make test" in (ROOT / "README.md").read_text()


# The wheel

FIGURES = """
import json, sys, roofline_lib as rl
chips = {name: {p: [q.flops for q in rows] for p, rows in rl.machine(name).peaks.items()} for name in rl.machines()}
ridges = {name: {p: rl.machine(name).ridge_point(p) for p in rl.machine(name).peaks} for name in rl.machines()}
models = {name: rl.transformer(name).parameters for name in rl.transformers()}
print(json.dumps([rl.__file__, [chips, ridges, models, rl.gemm(4096, 4096, 64, "bf16").intensity]]))
"""


def test_a_wheel_gives_the_same_figures_outside_the_tree(tmp_path):
    tree, target = tmp_path / "tree", tmp_path / "installed"
    for path in tracked("pyproject.toml", "README.md", "LICENSE", "roofline_lib"):
        copy = tree / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    built = run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        tmp_path,
        tree,
    )
    assert built.returncode == 0, built.stderr[-3000:]
    zipfile.ZipFile(next(tmp_path.glob("*.whl"))).extractall(target)
    data = {str(path.relative_to(ROOT)) for path in tracked("roofline_lib")}
    assert data <= {str(path.relative_to(target)) for path in target.rglob("*")}

    def figures(place):
        result = run(sys.executable, "-c", FIGURES, cwd=tmp_path, env={"PYTHONPATH": str(place)})
        assert result.returncode == 0, result.stderr
        file, values = json.loads(result.stdout)
        assert Path(file).is_relative_to(place)
        return values

    assert figures(target) == figures(ROOT)
