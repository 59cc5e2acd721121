"""No file names the machine that it was written on; the commands are those that the pages name."""

import ast
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


def opens_text(call: ast.Call) -> bool:
    """Whether this call opens a file as text; `os.open`, which knows no text, does not."""
    called = call.func
    method = isinstance(called, ast.Attribute)
    name = called.attr if method else getattr(called, "id", "")
    if method and name in ("read_text", "write_text"):
        return True
    of = getattr(called.value, "id", "") if method else ""
    if name not in ("open", "fdopen") or (of, name) == ("os", "open"):
        return False
    place = 0 if method and of not in ("io", "os") else 1
    given = {one.arg: one.value for one in call.keywords}
    mode = given.get("mode", call.args[place] if len(call.args) > place else None)
    return mode is None or "b" not in getattr(mode, "value", "")


def texts_without_encoding(source: str) -> list[int]:
    """The lines at which a file is opened as text in whatever encoding the system likes best."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if opens_text(call) and "encoding" not in {one.arg for one in call.keywords}
    ]


def test_the_library_says_how_its_texts_are_encoded():
    """Windows' own encoding is not UTF-8, in which every file of the course is written."""
    found = {
        path.relative_to(ROOT).as_posix(): texts_without_encoding(path.read_text(encoding="utf-8"))
        for path in tracked("roofline_lib/*.py")
    }
    assert len(found) > 100
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_text_without_its_encoding_is_found():
    without = """
open(name)
open(name, "w")
open(name, mode="a")
path.open()
path.open("r")
os.fdopen(number, "w")
path.read_text()
path.write_text(text)
"""
    assert texts_without_encoding(without) == list(range(2, 10))
    fine = """
open(name, encoding="utf-8")
open(name, "rb")
path.open("wb")
os.open(name, flags)
os.fdopen(number, "rb")
path.read_text(encoding="utf-8")
read_text(path)
"""
    assert texts_without_encoding(fine) == []
