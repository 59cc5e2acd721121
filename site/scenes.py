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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Together:
    """Several controls that move as one on a page, where a lesson's text moves them together:
    `settings` holds what each step sets, and `words` what a page says of it."""

    label: str
    settings: tuple[dict, ...]
    words: tuple[str, ...]
    kind: str = "list"


def _equal(names: tuple[str, ...], values: tuple[int, ...]) -> Together:
    settings = tuple(dict.fromkeys(names, value) for value in values)
    return Together(" = ".join(names), settings, tuple(f"{v:,}" for v in values), "number")


def _listed(label: str, *settings: dict) -> Together:
    words = tuple(", ".join(f"{name} {value}" for name, value in one.items()) for one in settings)
    return Together(label, settings, words)


_SIDES = (16, 32, 48, 64, 72, 75, 76, 80, 96, 128, 192, 256, 512, 1024, 4096)
_TILES = (1, 2, 4, 8, 16, 24, 32, 40, 41, 48, 64, 96, 128, 192, 240, 241, 256)
_USERS = (1, 4, 16, 64, 256)
TOGETHER = {
    ("roofline", "explorer"): [_equal(("m", "n", "k"), _SIDES)],
    ("tiling", "explorer"): [_equal(("tile_m", "tile_n"), _TILES)],
    ("peaks", "explorer"): [
        _listed("at 2.79 GHz", *({"clock": 2.79e9, "lanes": lanes} for lanes in (64, 128, 256)))
    ],
    ("peaks", "explorer-switches"): [_listed("both", {"fp16_sums": True, "sparsity": True})],
    ("operators", "explorer"): [_listed("both", {"fused": True, "flash": True})],
    ("training_step", "explorer"): [
        _listed(
            "16 sequences",
            *({"micro_batch": b, "accumulation": 16 // b} for b in (1, 2, 4, 8, 16)),
        )
    ],
    ("whole_model", "explorer"): [
        _listed("longer texts", *({"context": 16384, "batch": batch} for batch in _USERS))
    ],
    ("many_chips", "explorer"): [
        _listed(
            "a small model",
            *({"model": "llama-3-8b", "latency": 20e-6, "tensor": chips} for chips in (1, 2, 4, 8)),
        )
    ],
}


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

    def scenes_together(self, together: Together) -> list[dict]:
        """One scene for each step of controls that move as one."""
        found = []
        for setting in together.settings:
            self.put_back()
            for name, value in setting.items():
                self.explorer.controls[name].value = value
            found.append(self.scene())
        self.put_back()
        return found

    def place_of(self, together: Together) -> int:
        """Where these controls stand at first: at the step that says so, else at the first."""
        for place, setting in enumerate(together.settings):
            if all(self.at_first[name] == value for name, value in setting.items()):
                return place + (together.kind == "list")
        return 0

    def controls(self) -> list[dict]:
        """What a page shows of each control."""
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


def export(explorer: Explorer, name: str, folder: Path, moved_as_one: list[Together]) -> None:
    """Write the files of one explorer; `moved_as_one` come below its own controls."""
    exported = Exported(explorer)
    first = exported.scene()
    for control in explorer.controls.values():
        write(folder / f"{name}.{control.name}.json", exported.scenes(control))
    controls = exported.controls()
    for number, together in enumerate(moved_as_one):
        own = f"together{number}"
        write(folder / f"{name}.{own}.json", exported.scenes_together(together))
        words = ["-", *together.words] if together.kind == "list" else list(together.words)
        controls.append(
            {
                "name": own,
                "label": together.label,
                "kind": together.kind,
                "steps": words,
                "at": exported.place_of(together),
                "skips": len(words) - len(together.words),
            }
        )
    told = {"controls": controls, "first": first, "backs": exported.backs}
    write(folder / f"{name}.json", told)


def write(path: Path, what: object) -> None:
    text = json.dumps(what, ensure_ascii=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")


def main(folder: Path, numbers: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if not numbers or source.name[:2] in numbers:
            for cell, explorer in explorers(source):
                moved_as_one = TOGETHER.get((source.stem[3:], cell), [])
                export(explorer, f"{source.name[:2]}-{cell}", folder, moved_as_one)


if __name__ == "__main__":
    assert Path(rl.__file__).is_relative_to(ROOT), "the library of this checkout is to be exported"
    main(Path(sys.argv[1]), sys.argv[2:])
