"""What a learner's start brings: copies of the lessons, the list that numbers and links them, and
the server that `make lab` starts."""

import errno
import shutil
import sys
from pathlib import Path

import nbformat
import notebook_rules as rules
import pytest
from browser import CONFIG, asked, jupyter, serving
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from number_lessons import TABLE, number_lessons, rename_in_list

import roofline_lib.__main__
from roofline_lib.course import command
from roofline_lib.course.copies import bring_copies
from roofline_lib.course.lessons import lessons

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def tree(tmp_path):
    """A copy of all that names a lesson."""
    root = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for folder in ("docs", "notebooks", "exercises", "solutions", "roofline_lib/course"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for path in ROOT.glob("*.md"):
        shutil.copy(path, root)
    return root


def contents(root):
    return {
        path.relative_to(root): path.read_bytes() for path in root.rglob("*.*") if path.is_file()
    }


# Copies


def write_small_course(root):
    """One lesson and its exercise, of two cells each."""
    cells = [new_markdown_cell("Guess.", id="guess"), new_code_cell("print(1)", id="one")]
    for path in (root / "notebooks" / "01.ipynb", root / "exercises" / "01" / "01.ipynb"):
        path.parent.mkdir(parents=True)
        nbformat.write(new_notebook(cells=cells), path)


def test_copies_keep_what_the_learner_wrote(tmp_path):
    write_small_course(tmp_path)
    original = (tmp_path / "notebooks" / "01.ipynb").read_bytes()
    work = tmp_path / "work"
    exercise = work / "exercises" / "01" / "exercises_01.ipynb"
    assert bring_copies(tmp_path, work) == [work / "01.ipynb", exercise]
    clean = (work / "01.ipynb").read_text()
    for mine in ("mine", "mine too"):
        (work / "01.ipynb").write_text(mine)
        assert bring_copies(tmp_path, work) == []
        assert (work / "01.ipynb").read_text() == mine
        assert bring_copies(tmp_path, work, {"01"}) == [work / "01.ipynb"]
    assert {path.name: path.read_text() for path in work.glob("*.ipynb")} == {
        "01.ipynb": clean,
        "old-1_01.ipynb": "mine",
        "old-2_01.ipynb": "mine too",
    }
    assert bring_copies(tmp_path, work, {"01"}) == []
    assert (tmp_path / "notebooks" / "01.ipynb").read_bytes() == original


def test_copies_show_no_answer_and_link_to_what_is_there(tree):
    for copy in bring_copies(tree, tree / "work"):
        book = rules.read(copy)
        shown = [c.id for c in book.cells if c.get("outputs") or c.get("execution_count")]
        assert shown == []
        assert rules.faults(book, copy, [rules.linked]) == []
    lesson = tree / "work" / "02_roofline.ipynb"
    exercise = tree / "work" / "exercises" / "02_roofline" / "exercises_02_roofline.ipynb"
    assert "](exercises/02_roofline/exercises_02_roofline.ipynb)" in lesson.read_text()
    assert "](../../02_roofline.ipynb)" in exercise.read_text()
    assert "](../../notebooks/" not in exercise.read_text()


def test_copies_outside_the_originals_bring_the_pages_along(tree, tmp_path):
    target = tmp_path / "elsewhere"
    copies = bring_copies(tree, target)
    pages = [path for path in copies if path.suffix != ".ipynb"]
    assert target / "docs" / "glossary.md" in pages
    assert all(path.read_bytes() == (tree / "docs" / path.name).read_bytes() for path in pages)
    shutil.rmtree(tree)
    for copy in set(copies) - set(pages):
        assert rules.faults(rules.read(copy), copy, [rules.linked]) == []


def test_a_lesson_is_told_from_its_exercise_by_its_name(tree):
    copies = bring_copies(tree, tree / "work")
    assert len({copy.name for copy in copies}) == len(copies)


# The command


@pytest.fixture
def small_course(tmp_path, monkeypatch):
    """The command finds this course instead of the repository's, and no JupyterLab starts."""
    write_small_course(tmp_path)
    monkeypatch.setattr(command, "CHECKOUT", tmp_path)
    monkeypatch.setattr(command, "open_lab", lambda places, options: print("opened", *options))
    return tmp_path


@pytest.fixture
def installed_course(tmp_path, monkeypatch):
    """The same, as a wheel carries it; gives the folder that one stands in."""
    write_small_course(tmp_path / "installed")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(command, "CHECKOUT", tmp_path / "no clone")
    monkeypatch.setattr(command, "INSTALLED", tmp_path / "installed")
    return here


def test_the_command_copies_and_opens(small_course, capsys):
    assert command.main(["--no-browser"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"new: {Path('work/exercises/01/exercises_01.ipynb')}",
        "opened --no-browser",
    ]


def test_fresh_opens_nothing(small_course, capsys):
    assert command.main(["--fresh"]) == 0
    assert "opened" not in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--fresh", "--no-browser"])
    assert "no use for --no-browser" in capsys.readouterr().err


def test_every_option_of_jupyters_goes_through(small_course, capsys):
    options = ["--port", "8899", "--ip=0.0.0.0", "--no-browser", "--ServerApp.token=x"]
    assert command.main(options) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "opened " + " ".join(options)


def test_one_lesson_is_renewed_alone(tree, monkeypatch, capsys):
    monkeypatch.setattr(command, "CHECKOUT", tree)
    assert command.main(["--no-open"]) == 0
    copies = [path for path in (tree / "work").rglob("*.ipynb")]
    for copy in copies:
        copy.write_text("mine")
    capsys.readouterr()
    stem = lessons()[3].stem
    for name in ("3", "03", lessons()[3].name, stem):
        assert command.main(["--fresh", name]) == 0
        told = capsys.readouterr().out.splitlines()
        folder = Path("work/exercises") / stem
        assert told == [
            f"new: {Path('work') / stem}.ipynb",
            f"new: {folder}/exercises_{stem}.ipynb",
        ]
        for copy in copies:
            assert (copy.read_text() == "mine") == (stem not in copy.name)
            copy.write_text("mine")
    for wrong in ("99", "roof", ""):
        with pytest.raises(SystemExit):
            command.main(["--fresh", wrong])
        assert f"no lesson {wrong!r}" in capsys.readouterr().err


def test_a_wheels_course_goes_into_a_folder_of_ones_own(installed_course, capsys):
    assert command.main(["--no-open"]) == 0
    course = installed_course / "roofline-course"
    assert (course / "exercises" / "01" / "exercises_01.ipynb").is_file()
    (course / "01.ipynb").write_text("mine")
    assert command.main(["--no-open"]) == 0
    assert (course / "01.ipynb").read_text() == "mine"
    assert command.main(["--no-open", "--folder", "other"]) == 0
    assert (installed_course / "other" / "01.ipynb").is_file()
    assert f"the course is in {course}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["--no-open", "--port=8899"])


def test_without_jupyterlab_the_command_says_what_brings_it(installed_course, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jupyterlab", None)
    assert roofline_lib.__main__.main(["course"]) == 1
    assert capsys.readouterr().err == (
        "course: jupyterlab is not installed: pip install 'roofline_lib[course]' brings it\n"
    )


def refuse_to_write(monkeypatch):
    def refuse(path, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)


def test_a_folder_that_cannot_be_written_is_one_clear_line(small_course, monkeypatch, capsys):
    refuse_to_write(monkeypatch)
    assert command.main([]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"{small_course / 'work'} cannot be written (Read-only file system)" in told


def test_a_library_without_lessons_is_one_clear_line(small_course, capsys):
    shutil.rmtree(small_course / "notebooks")
    assert command.main([]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "no lessons" in told


# The list of lessons


def test_the_tree_stands_as_it_is_listed(tree):
    before = contents(tree)
    assert number_lessons(tree) == []
    changed = [str(path) for path, text in contents(tree).items() if before[path] != text]
    assert changed == [], "run make lessons"


def test_exercises_lead_to_those_of_the_next_lesson(tree):
    first, second = lessons()[1:3]
    sheet = tree / "exercises" / first.stem / first.file
    right = f"[its exercises](../{second.stem}/{second.file})"
    text = sheet.read_text(encoding="utf-8")
    assert right in text
    sheet.write_text(
        text.replace(right, "[its exercises](../14_far/14_far.ipynb)"), encoding="utf-8"
    )
    assert number_lessons(tree) == []
    assert right in sheet.read_text(encoding="utf-8")


def test_exercises_belong_to_lessons_of_the_list():
    listed = {lesson.stem for lesson in lessons()}
    sheets, keys = (
        {path.name for path in (ROOT / kind).iterdir() if path.is_dir()}
        for kind in ("exercises", "solutions")
    )
    assert sheets == keys and len(sheets) > 1 and sheets <= listed


def swap(table, place):
    """Let the lesson at this place and the one after it change places in the list."""
    head, *rows = table.read_text().split("[[lesson]]")
    rows = [row.rstrip("\n") for row in rows]
    rows[place], rows[place + 1] = rows[place + 1], rows[place]
    table.write_text(
        head + "[[lesson]]".join(["", *(row + "\n\n" for row in rows)]).rstrip() + "\n"
    )


def test_lessons_change_places_and_back(tree):
    before = contents(tree)
    swap(tree / TABLE, 3)
    assert number_lessons(tree) == []
    fourth, third = lessons(ROOT / TABLE)[3:5]
    swapped = lessons(tree / TABLE)
    assert [swapped[3].name, swapped[4].name] == [third.name, fourth.name]
    for path in [*tree.glob("notebooks/*.ipynb"), *tree.glob("exercises/*/*.ipynb")]:
        assert rules.faults(rules.read(path), path, [rules.linked]) == []
    assert rules.read(tree / "notebooks" / swapped[3].file).cells[0].source.startswith("# 3 · ")
    old = {fourth.stem, third.stem}
    named = {stem for stem in old for text in contents(tree).values() if stem.encode() in text}
    assert named == set()
    swap(tree / TABLE, 3)
    assert number_lessons(tree) == []
    assert contents(tree) == before


def test_a_lesson_gets_another_name(tree):
    rename_in_list(tree / TABLE, "tiling", "blocks")
    assert number_lessons(tree, {"tiling": "blocks"}) == []
    for path in [*tree.glob("notebooks/*.ipynb"), *tree.glob("exercises/*/*.ipynb")]:
        assert rules.faults(rules.read(path), path, [rules.linked]) == []
    assert not any(b"03_tiling" in text for text in contents(tree).values())


def test_a_list_and_notebooks_that_differ_are_told(tree):
    with pytest.raises(ValueError, match="'tailing'; choose one of start_here"):
        rename_in_list(tree / TABLE, "tailing", "tiling")
    (tree / "notebooks" / "11_extra.ipynb").write_text("{}")
    with pytest.raises(ValueError, match="11_extra.ipynb is no lesson"):
        number_lessons(tree)
    (tree / "notebooks" / "11_extra.ipynb").unlink()
    (tree / "notebooks" / "03_tiling.ipynb").unlink()
    with pytest.raises(ValueError, match="no notebook: 03_tiling"):
        number_lessons(tree)


# The server


WATCHED = r"""
import os, pathlib, socket
load_subconfig({config!r})
if {ours}:
    base = c.ServerApp.kernel_websocket_connection_class
else:
    from jupyter_server.services.kernels.connection.channels import \
        ZMQChannelsWebsocketConnection as base

class Watched(base):
    def connect(self):
        result = super().connect()
        connected = self.websocket_handler.ws_connection.stream.socket
        no_delay = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        pathlib.Path({out!r}).write_text(str(no_delay))
        return result

c.ServerApp.kernel_websocket_connection_class = Watched
"""


@pytest.mark.parametrize("ours", [True, False], ids=["make lab", "default"])
def test_kernel_messages_are_sent_without_delay(ours, tmp_path):
    """The option is read from the server's own end of a connected websocket; a default server shows
    that the reading can differ."""
    from websocket import create_connection

    seen, config = tmp_path / "seen", tmp_path / "watched.py"
    config.write_text(WATCHED.format(config=str(CONFIG), out=str(seen), ours=ours))
    with jupyter(tmp_path, config) as (address, token):
        kernel = asked(f"{address}api/kernels", token, data=b"{}")["id"]
        channels = f"{address.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
        create_connection(f"{channels}?token={token}").close()
    assert bool(int(seen.read_text())) is ours


def test_make_lab_opens_the_first_lesson_and_asks_nothing(tree):
    shutil.copytree(ROOT / "roofline_lib", tree / "roofline_lib", dirs_exist_ok=True)
    start = [sys.executable, "-m", "roofline_lib", "course"]
    with serving(start, tree) as (address, token):
        place = f"{address}lab/api/settings/@jupyterlab/apputils-extension:notification"
        news = asked(place, token)["schema"]["properties"]["fetchNews"]["default"]
        assert news == "false", "JupyterLab asks whether to fetch news"
        served = {entry["name"] for entry in asked(f"{address}api/contents", token)["content"]}
        assert {"work", "docs"} <= served
    first, told = f"/lab/tree/work/{lessons()[0].file}", (tree / ".own" / "server.log").read_text()
    assert f"{first}?token=" in told
    assert "Warning" not in told, told
    assert (tree / "work" / lessons()[0].file).is_file()
