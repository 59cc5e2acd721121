"""Dependencies and versions agree wherever they are named, and the locks hold what they must."""

import re

import pytest
import yaml
from harness.repository import PYPROJECT, ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


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


LOCKS = [
    ("requirements.lock", ("course",)),
    ("requirements-test.lock", ("test", "peers", "nbgrader")),
    ("requirements-site.lock", ("site",)),
]


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
    lab, test, site = (pins(lock) for lock, _ in LOCKS)
    assert {
        name: (version, test.get(name))
        for name, version in lab.items()
        if test.get(name) != version
    } == {}
    assert {
        name: (version, site[name])
        for name, version in test.items()
        if site.get(name, version) != version
    } == {}


def test_environment_yml_equals_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    project = PYPROJECT["project"]
    of_notebooks = [
        wanted
        for wanted in project["optional-dependencies"]["test"]
        if re.match(r"(nbval|pytest)\b(?!-)", wanted)
    ]
    assert environment[1:] == [
        *project["dependencies"],
        *project["optional-dependencies"]["course"],
        *of_notebooks,
        "pip",
        {"pip": ["-e ."]},
    ]


def test_binder_finds_a_python_that_will_do():
    """As repo2docker 2026.4 looks for it (PYTHON_REGEX of its conda build pack); where it finds
    none it takes 3.10."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    version = re.match(r"python\s*=+\s*([\d\.]*)", environment[0])[1]
    assert Requirement(f"python{PYPROJECT['project']['requires-python']}").specifier.contains(
        version
    )
    assert version.count(".") == 1


def test_the_build_needs_what_the_lock_holds():
    assert PYPROJECT["build-system"]["requires"] == PYPROJECT["dependency-groups"]["build"]


def test_one_version_everywhere():
    version = PYPROJECT["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version
    released = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert released[0] == version
