"""No file names the machine that it was written on; the commands are those that the pages name."""

import re

from harness.repository import ROOT, run, tracked

from roofline_lib import style


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
    """Inside `make test` too, where make would announce the folders that it enters and leaves."""
    targets = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.M)[1].split()
    told = run("make", "--no-print-directory", "help").stdout
    assert [line.split()[0] for line in told.splitlines()] == targets


def test_each_make_command_of_the_pages_is_a_target():
    targets = re.search(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.M)[1].split()
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]
    named = {
        target
        for page in pages
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.M)
    }
    assert "lab" in named and named - set(targets) == set()


def test_ci_runs_the_test_command_of_the_readme():
    last = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert last.endswith("exec make test")
    assert re.search(r"^make test\b", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)


def test_the_icon_of_the_pages_has_the_colours_of_the_pictures():
    icon = (ROOT / "site" / "static" / "icon.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"#[0-9a-f]{6}", icon)) == {style.CARD, style.MEMORY, style.COMPUTE}
