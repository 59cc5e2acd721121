"""The public face: every name can be found, completed and read about; what it promises in types
holds."""

import ast
import inspect
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from harness.repository import ROOT, run

import roofline_lib as rl
from roofline_lib.__main__ import main

TEXTS = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
# pictures are annotated where they are made, not here
CALLABLES = [
    name
    for name in rl.__all__
    if callable(getattr(rl, name)) and not name.endswith("Explorer") and name != "draw_roofline"
]


def test_dir_lists_what_all_lists_and_all_of_it_is_there():
    """Completion asks dir(), `import *` asks __all__."""
    assert [name for name in dir(rl) if not name.startswith("__")] == sorted(rl.__all__)
    assert all(hasattr(rl, name) for name in rl.__all__)
    with pytest.raises(AttributeError, match="module 'roofline_lib' has no attribute 'gem'"):
        rl.gem  # noqa: B018


def test_what_the_face_imports_from_the_library_it_lists():
    imported = {
        name
        for name, value in vars(rl).items()
        if getattr(value, "__module__", "").startswith("roofline_lib.")
    }
    assert imported <= set(rl.__all__)


def test_checkers_and_python_import_the_same_late_names():
    """The names that are imported late stand twice: for type checkers, and in a table."""
    (block,) = (
        node
        for node in ast.parse(Path(rl.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.If)
    )
    told = {
        node.module.removeprefix("roofline_lib."): tuple(alias.name for alias in node.names)
        for node in block.body
    }
    assert told == rl._LAZY


def test_no_late_name_is_a_module():
    """Python would put the module in its place as soon as anything imports it."""
    modules = {path.stem for path in Path(rl.__file__).parent.iterdir()}
    assert not modules & set(rl._HOME)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_texts_name_only_what_is_there(path):
    named = set(re.findall(r"\brl\.([A-Za-z_]\w*)", path.read_text(encoding="utf-8")))
    assert named <= set(dir(rl))


def test_an_import_brings_no_pictures():
    """Nor does dir(), which completion calls."""
    code = "import sys, roofline_lib; dir(roofline_lib); print('matplotlib' in sys.modules)"
    result = run(sys.executable, "-c", code, env={"PYTHONPATH": str(ROOT)})
    assert result.stdout.strip() == "False", result.stderr


def annotated(function):
    signature = inspect.signature(function)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    return all(p.annotation is not p.empty for p in parameters) and (
        signature.return_annotation is not signature.empty
    )


@pytest.mark.parametrize("name", CALLABLES)
def test_every_public_function_says_its_types(name):
    public = getattr(rl, name)
    if not inspect.isclass(public):
        assert annotated(public)
        return
    assert not is_dataclass(public) or all(field.type for field in fields(public))
    members = [
        member.fget if isinstance(member, property) else member
        for key, member in vars(public).items()
        if not key.startswith("_")
    ]
    untyped = [
        member.__name__ for member in filter(inspect.isfunction, members) if not annotated(member)
    ]
    assert untyped == []


def test_an_unknown_command_is_named(capsys):
    assert main(["nope"]) == 2
    assert capsys.readouterr().err.startswith("no command 'nope'\n\nusage: ")
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: ")
