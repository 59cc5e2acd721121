"""Number the lessons as roofline_lib/course/lessons.toml lists them.

    python tools/number_lessons.py                         (also: make lessons)
    python tools/number_lessons.py --rename tiling tiles   also give a lesson another name

Notebooks, exercises and solutions are renamed to `NN_name`. In every text, notebook and module the
links follow, and so do "lesson 3" and the glossary's numbers. Then what the list says is written
where readers look: README's table, lesson 0's map, and each lesson's number, minutes and links to
its neighbours. The boxes that close the lessons are collected in docs/sheet.md. Sentences that
follow a link are not touched: read what git shows afterwards.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from roofline_lib.course.lessons import Lesson, lessons

ROOT = Path(__file__).resolve().parents[1]
TABLE = "roofline_lib/course/lessons.toml"
NUMBERED = re.compile(r"(?P<number>\d\d)_(?P<name>[a-z_]+)")
# "lesson 3", "Lessons 1, 4 and 7", "lessons 1 to 10"
MENTION = re.compile(r"\b[Ll]esson \d+\b|\b[Ll]essons \d+(?:(?:, | and | to )\d+\b)*")
GLOSSARY_ROW = re.compile(r"^(\| .+ \| .+ \| )([\d, ]+)( \|)$", re.M)
MINUTES_LINE = re.compile(r"^\d+ minutes · .*$", re.M)
HEADING_NUMBER = re.compile(r"^# (?:\d+ · )?")
EXERCISE_HEADING = re.compile(r"^# Exercises \d+ · ")
# the box at a lesson's end, and what may stand before its line
BOX = re.compile(r"^> .+(?:\n>.*)*", re.M)
BOX_TITLE = "**One line to keep.** "
SHEET_HEAD = """# The lines to keep

One from each lesson, as its box has it. `make lessons` collects them.

"""
NEXT = re.compile(r"Next: \[[^\]]+\]\([^)]+\)")
ITS_EXERCISES = re.compile(r"\[its exercises\]\([^)]+\)")


def number_lessons(root: Path, renamed: dict[str, str] | None = None) -> list[str]:
    """Bring the tree under `root` in line with its list; gives what a person has to see to.

    `renamed` maps a lesson's old name to the new one, which the list must have.
    """
    renamed = renamed or {}
    listed = lessons(root / TABLE)
    stems = {lesson.name: lesson.stem for lesson in listed}
    found = {path.stem for path in (root / "notebooks").glob("*.ipynb")}
    moves = {}
    for stem in sorted(found):
        name = NUMBERED.fullmatch(stem)["name"]
        name = renamed.get(name, name)
        if name not in stems:
            raise ValueError(f"notebooks/{stem}.ipynb is no lesson of {TABLE}: add or remove it")
        moves[stem] = stems[name]
    missing = [stem for stem in stems.values() if stem not in moves.values()]
    if missing:
        raise ValueError(f"{TABLE} lists lessons that have no notebook: {', '.join(missing)}")
    if any(old != new for old, new in moves.items()):
        move_files(root, moves)
        follow_moves(root, moves)
    return write_places(root, listed)


def move_files(root: Path, moves: dict[str, str]) -> None:
    """Rename notebooks, exercises and solutions, over names of their own so that two may swap."""
    for suffix in ("{}.moving", "{}"):
        for old, new in moves.items():
            before = old if suffix == "{}.moving" else f"{new}.moving"
            after = suffix.format(new)
            (root / "notebooks" / f"{before}.ipynb").rename(root / "notebooks" / f"{after}.ipynb")
            for kind in ("exercises", "solutions"):
                folder = root / kind / before
                if folder.is_dir():
                    main = folder / f"{before}.ipynb"
                    if main.exists():
                        main.rename(folder / f"{after}.ipynb")
                    folder.rename(root / kind / after)


def follow_moves(root: Path, moves: dict[str, str]) -> None:
    """Rewrite every name and number of a lesson that moved, in all texts but the change log."""
    numbers = {int(old[:2]): int(new[:2]) for old, new in moves.items()}

    def renumbered(text):
        def anew(match):
            number = numbers.get(int(match[0]), int(match[0]))
            return f"{number:02}" if re.match(r"0\d", match[0]) else str(number)  # 01 becomes 02

        return re.sub(r"\d+", anew, text)

    def sorted_numbers(row):
        places = sorted(int(number) for number in renumbered(row[2]).split(","))
        return row[1] + ", ".join(map(str, places)) + row[3]

    for path in texts(root):
        before = path.read_text(encoding="utf-8")
        text = NUMBERED.sub(lambda match: moves.get(match[0], match[0]), before)
        text = MENTION.sub(lambda match: renumbered(match[0]), text)
        if path.name == "glossary.md":
            text = GLOSSARY_ROW.sub(sorted_numbers, text)
        if text != before:
            path.write_text(text, encoding="utf-8", newline="\n")


def texts(root: Path) -> list[Path]:
    """The texts, notebooks and modules in which lessons may be named."""
    kinds = ["*.md", "*.py", "*.ipynb", "*.toml"]
    folders = ["docs", "notebooks", "exercises", "solutions", "roofline_lib", "tests", "tools"]
    inside = [
        path for folder in folders for kind in kinds for path in root.glob(f"{folder}/**/{kind}")
    ]
    own = Path(__file__).name
    outside = [path for path in root.glob("*.md") if path.name != "CHANGELOG.md"]
    return [path for path in sorted(inside + outside) if path.name != own]


def write_places(root: Path, listed: list[Lesson]) -> list[str]:
    """Write what the list says where readers look; gives what a person has to see to."""
    faults = []
    readme = root / "README.md"
    rows = [
        f"| [{lesson.number} {lesson.title}](notebooks/{lesson.file}) "
        f"| {lesson.question} | {lesson.minutes} |"
        for lesson in listed
    ]
    rewrite(readme, with_table(readme.read_text(encoding="utf-8"), "| lesson |", rows))
    for lesson in listed:
        path = root / "notebooks" / lesson.file
        book = json.loads(path.read_text(encoding="utf-8"))
        cells = {cell["id"]: cell for cell in book["cells"]}
        change(cells["title"], lambda text, lesson=lesson: titled(text, lesson, listed))
        if lesson.number == 0:
            rows = [
                f"| {other.number} | [{other.title}]({other.file}) "
                f"| {other.question} | {other.minutes} |"
                for other in listed[1:]
            ]
            change(cells["map"], lambda text, rows=rows: with_table(text, "| | lesson |", rows))
        last = book["cells"][-1]
        faults += [f"{path.name}: {fault}" for fault in link_on(last, lesson, listed)]
        rewrite(path, dump(book))
        for kind in ("exercises", "solutions"):
            sheet = root / kind / lesson.stem / lesson.file
            if sheet.exists():
                number_exercises(sheet, lesson, listed)
    (root / "docs" / "sheet.md").write_text(sheet_of(root, listed), encoding="utf-8", newline="\n")
    return faults


def sheet_of(root: Path, listed: list[Lesson]) -> str:
    """The page with the line to keep of each lesson that has one."""
    rows = []
    for lesson in listed:
        book = json.loads((root / "notebooks" / lesson.file).read_text(encoding="utf-8"))
        boxes = BOX.findall("".join(book["cells"][-1]["source"]))
        if boxes:
            line = " ".join(part.removeprefix(">").strip() for part in boxes[0].split("\n"))
            line = line.removeprefix(BOX_TITLE).replace("**", "")
            rows.append(f"- [{lesson.title}](../notebooks/{lesson.file}). {line}\n")
    return SHEET_HEAD + "".join(rows)


def titled(text: str, lesson: Lesson, listed: list[Lesson]) -> str:
    """The first cell of a lesson with its number, its minutes and the links to its neighbours."""
    parts = [f"{lesson.minutes} minutes"]
    if lesson.number > 0:
        parts.append(f"before: {link(listed[lesson.number - 1])}")
    if lesson.number + 1 < len(listed):
        parts.append(f"next: {link(listed[lesson.number + 1])}")
    else:
        parts.append(f"all lessons: {link(listed[0])}")
    heading = f"# {lesson.number} · " if lesson.number else "# "
    text = HEADING_NUMBER.sub(lambda _: heading, text)
    return MINUTES_LINE.sub(lambda _: " · ".join(parts), text)


def link_on(cell: dict, lesson: Lesson, listed: list[Lesson]) -> list[str]:
    """Lead the last cell's "Next: [...](...)" to the next lesson; gives what is wrong with it."""
    count = len(NEXT.findall("".join(cell["source"])))
    if lesson.number + 1 == len(listed):
        return ["is the last lesson, and its last cell names a next one"] if count else []
    following = link(listed[lesson.number + 1])
    change(cell, lambda text: NEXT.sub(lambda _: f"Next: {following}", text))
    return [] if count == 1 else [f"its last cell has {count} times 'Next: [...](...)', not once"]


def number_exercises(path: Path, lesson: Lesson, listed: list[Lesson]) -> None:
    """Give the heading of a notebook of exercises the lesson's number, and lead its "Next:
    [...](...)" and "[its exercises](...)" to those of the next lesson."""
    book = json.loads(path.read_text(encoding="utf-8"))
    heading = f"# Exercises {lesson.number} · "
    change(book["cells"][0], lambda text: EXERCISE_HEADING.sub(heading, text))
    if lesson.number + 1 < len(listed):
        after = listed[lesson.number + 1]
        following = f"Next: {link(after, '../../notebooks/')}"
        exercises = f"[its exercises](../{after.stem}/{after.file})"
        for cell in book["cells"]:
            if cell["cell_type"] == "markdown":
                change(cell, lambda text: NEXT.sub(lambda _: following, text))
                change(cell, lambda text: ITS_EXERCISES.sub(lambda _: exercises, text))
    rewrite(path, dump(book))


def link(lesson: Lesson, folder: str = "") -> str:
    """The link from one lesson to another, its title as it stands inside a sentence."""
    return f"[{lesson.title[0].lower()}{lesson.title[1:]}]({folder}{lesson.file})"


def with_table(text: str, head: str, rows: list[str]) -> str:
    """The text with the rows of its one table whose first line begins with `head` replaced."""
    lines = text.split("\n")
    [start] = [place for place, line in enumerate(lines) if line.startswith(head)]
    end = start + 2  # the line of dashes stays too
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return "\n".join([*lines[: start + 2], *rows, *lines[end:]])


def change(cell: dict, edit) -> None:
    """Let `edit` make a cell's new text from its old one."""
    cell["source"] = edit("".join(cell["source"])).splitlines(keepends=True)


def dump(book: dict) -> str:
    """A notebook as text, in the form that make refresh and make exercises give it."""
    return json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def rewrite(path: Path, text: str) -> None:
    """Write the file where its text changed."""
    if path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8", newline="\n")


def rename_in_list(table: Path, old: str, new: str) -> None:
    """Give one lesson of the list another name."""
    text = table.read_text(encoding="utf-8")
    line = f'name = "{old}"\n'
    if line not in text:
        known = ", ".join(lesson.name for lesson in lessons(table))
        raise ValueError(f"no lesson is named {old!r}; choose one of {known}")
    table.write_text(text.replace(line, f'name = "{new}"\n'), encoding="utf-8", newline="\n")


def main(argv: list[str]) -> int:
    """Run the command with these arguments; gives its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rename", nargs=2, metavar=("OLD", "NEW"))
    args = parser.parse_args(argv)
    try:
        if args.rename:
            rename_in_list(ROOT / TABLE, *args.rename)
        faults = number_lessons(ROOT, dict([args.rename]) if args.rename else {})
    except ValueError as error:
        parser.error(str(error))
    print("\n".join(faults) or "the lessons stand as they are listed")
    subprocess.run(["git", "-C", str(ROOT), "status", "--short"], check=False)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
