"""Write what the explorers of the lessons show, for pages that have no Python: each control over
its steps, the others standing where the lesson sets them.

    python site/scenes.py FOLDER [LESSON ...]     all lessons, or those whose numbers are given

Of each explorer `NN-cell` there are `NN-cell.json` (its controls, and what it shows at first) and
`NN-cell.CONTROL.json` (a list with what it shows at each step), which a page fetches when somebody
reaches for that control. static/explorer.js shows them. Nothing here computes: the explorers do.
"""

import ast
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

import ipywidgets as widgets

import roofline_lib as rl
from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, Control, Number
from roofline_lib.explorers.stage import background, svg
from roofline_lib.grading.inside.serve import namespace
from roofline_lib.grading.inside.slicing import read_statements, slice_for

ROOT = Path(__file__).resolve().parents[1]
MOST_STEPS = 48  # of one control; of a longer ladder every second or third rung


def explorers(source: Path) -> Iterator[tuple[str, Explorer]]:
    """(cell id, explorer) of each cell of a lesson that shows one, in its state there. Of the
    lesson only the statements are run that the explorer leans on."""
    cells = [
        cell
        for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    texts = ["".join(cell["source"]) for cell in cells]
    for place, cell in enumerate(cells):
        shown = [output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
        if not any("Explorer: " in "".join(text)[:30] for text in shown):
            continue
        name = shown_name(texts[place])
        names = namespace()
        with redirect_stdout(io.StringIO()):
            for code in slice_for(name, read_statements(texts[: place + 1], name).statements):
                exec(code, names)
        yield cell["id"], names[name]


def shown_name(text: str) -> str:
    """The name that stands on the last line of a cell."""
    last = ast.parse(text).body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Name):
        return last.value.id
    raise ValueError(f"an explorer is shown by its name on a line of its own; got {text!r}")


def words_of(control: Control) -> Callable[[object], str]:
    """What a page says of a value of this control."""
    if isinstance(control, Number):
        return lambda value: f"{value / control.scale:,.6g}"
    if isinstance(control, Choice):
        return lambda value: control.shown[value]
    return lambda value: "on" if value else "off"


def steps_of(control: Control) -> list:
    """The values that a page offers; the one that the lesson sets is among them."""
    if isinstance(control, Number):
        every = -(-len(control.ladder) // MOST_STEPS)
        ends = {control.ladder[-1], control.value}
        return sorted({*control.ladder[::every], *ends})
    return list(control.options) if isinstance(control, Choice) else [False, True]


def kind_of(control: Control) -> str:
    """How a page shows this control: as "number", "list", "buttons" or "switch"."""
    if isinstance(control, Number):
        return "number"
    if isinstance(control, Choice):
        return "list" if isinstance(control.picker, widgets.Dropdown) else "buttons"
    return "switch"


class Exported:
    """The scenes of one explorer, as they are written. What several of them share, the axes, stands
    once in `backs`."""

    def __init__(self, explorer: Explorer):
        self.explorer, self.backs = explorer, []
        self.at_first = {name: one.value for name, one in explorer.controls.items()}
        explorer.stage.show = lambda *_: None  # nobody looks at this one

    def scene(self) -> dict:
        """What the explorer shows now."""
        now = self.explorer.now
        back = background(now.axes, now.height)
        if back not in self.backs:
            self.backs.append(back)
        alt = f"{now.alt} {now.readout}"
        controls = self.explorer.controls
        scene = {
            "picture": svg(self.explorer.shapes, now.height, alt),
            "said": now.readout,
            "back": self.backs.index(back),
            "hidden": list(now.hidden),
            "brought": {
                name: words_of(controls[name])(controls[name].value)
                for name, value in self.at_first.items()
                if controls[name].value != value
            },
        }
        return {key: value for key, value in scene.items() if value or key == "back"}

    def put_back(self) -> None:
        for name, value in self.at_first.items():
            self.explorer.controls[name].value = value

    def scenes(self, control: Control) -> list[dict]:
        """One scene for each step of a control."""
        found = []
        for step in steps_of(control):
            self.put_back()
            control.value = step
            found.append(self.scene())
        self.put_back()
        return found

    def controls(self) -> list[dict]:
        return [
            {
                "name": name,
                "label": one.label,
                "kind": kind_of(one),
                "steps": [words_of(one)(step) for step in steps_of(one)],
                "at": steps_of(one).index(one.value),
            }
            for name, one in self.explorer.controls.items()
        ]


def export(explorer: Explorer, name: str, folder: Path) -> None:
    """Write the files of one explorer."""
    exported = Exported(explorer)
    first = exported.scene()
    for control in explorer.controls.values():
        write(folder / f"{name}.{control.name}.json", exported.scenes(control))
    told = {"controls": exported.controls(), "first": first, "backs": exported.backs}
    write(folder / f"{name}.json", told)


def write(path: Path, what: object) -> None:
    text = json.dumps(what, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")


def main(folder: Path, numbers: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if not numbers or source.name[:2] in numbers:
            for cell, explorer in explorers(source):
                export(explorer, f"{source.name[:2]}-{cell}", folder)


if __name__ == "__main__":
    assert Path(rl.__file__).is_relative_to(ROOT), "the library of this checkout is to be exported"
    main(Path(sys.argv[1]), sys.argv[2:])
