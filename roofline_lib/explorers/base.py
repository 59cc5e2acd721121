"""The class that every explorer is made from: controls, a pure function from their values to a
scene, and a stage to show it on."""

import base64
from html import escape
from threading import RLock
from typing import Any, ClassVar

import ipywidgets as widgets
from IPython import get_ipython
from IPython.display import HTML, display
from traitlets.utils.bunch import Bunch

from roofline_lib.explorers.controls import Control
from roofline_lib.explorers.look import STYLE, note_for_later
from roofline_lib.explorers.marks import lay_out
from roofline_lib.explorers.scenes import Scene
from roofline_lib.explorers.stage import Stage, png

# Pixels: with a picture beside them the controls go into the 934 that JupyterLab leaves
# on a screen of 1366 with its file browser open.
_CONTROLS, _GAP = 332, 12
_VIEW = "application/vnd.jupyter.widget-view+json"
_VERSION = {"version_major": 2, "version_minor": 0}  # of the protocol between widget and page


class Explorer(widgets.Box):
    """Base class. A subclass passes its controls to `__init__`, named as its arguments are, and
    gives

        scene(**values) -> Scene

    a pure function (a staticmethod) of the controls' values (machines come as Machine). It works in
    three steps: figures, a frozen dataclass of numbers; marks, which show them; sentences, which
    say them. It holds no physics: numbers come from roofline_lib, so that whatever an explorer
    shows can be had in one plain line without it.

    `sample` holds arguments that show what it is for, where its defaults do not.
    `.controls[name].value` reads and sets a control, `.readout` is what stands under the picture.
    """

    sample: ClassVar[dict[str, object]] = {}

    now: Scene

    def __init__(self, *controls: Control):
        self.controls = {control.name: control for control in controls}
        self.stage = Stage()
        self._values: dict[str, object] | None = None
        self._bringing = False
        # sliders and cells may come in from two threads of one kernel
        self._one_at_a_time = RLock()
        label = f"{max(control.label_width for control in controls) + 4:.0f}px"
        for control in controls:
            control.widen_label(label)
        # one column beside the picture; above it one or two, as there is room
        grid = widgets.GridBox(
            list(controls),
            layout=widgets.Layout(
                grid_template_columns=f"repeat(auto-fit, minmax(min(100%, {_CONTROLS}px), 1fr))",
                grid_gap="2px 12px",
                flex=f"1 1 {_CONTROLS}px",
                max_width="700px",
                overflow="hidden",
            ),
        )
        style = widgets.HTML(STYLE, layout=widgets.Layout(display="none"))
        super().__init__(
            [grid, self.stage, style],
            layout=widgets.Layout(
                flex_flow="row wrap",
                grid_gap=f"0 {_GAP}px",
                align_items="flex-start",
                overflow="hidden",
            ),
        )
        # names for style sheets and tests
        self.add_class("roofline-explorer").add_class(type(self).__name__)
        grid.add_class("roofline-controls")
        self.stage.add_class("roofline-picture")
        for control in controls:
            control.add_class(f"control-{control.name}")
            control.observe(self._follow, "value")
        self._show()

    @staticmethod
    def scene(**values: Any) -> Scene:
        """The Scene for these values of the controls."""
        raise NotImplementedError

    @staticmethod
    def brings(changed: str, **values: Any) -> dict[str, object]:
        """What a change of the control `changed` brings with it: {name of another control: its new
        value}. A machine brings its own units, for example. One picture shows all of it."""
        return {}

    @property
    def readout(self) -> str:
        """The sentences under the picture as plain text, one a line: a printed line that the page
        has to break is hard to read."""
        return "\n".join(self.now.sentences)

    def _chosen(self) -> dict[str, Any]:
        return {name: control.chosen for name, control in self.controls.items()}

    def _follow(self, change: Bunch) -> None:
        """A control has a new value: take what it brings, and show the picture of all of them."""
        with self._one_at_a_time:
            if self._bringing:
                return
            for control in self.controls.values():
                control.say("")  # why something was not used is old news once anything else is
            self._bringing = True
            try:
                for name, value in self.brings(change.owner.name, **self._chosen()).items():
                    self.controls[name].value = value
            finally:
                self._bringing = False
            self._show(change.owner.spoken)

    def _show(self, spoken: str = "") -> None:
        """Show what the controls say, if it is new. A screen reader hears what is `spoken`."""
        values = self._chosen()
        if values == self._values:
            return
        now = self.scene(**values)
        self.shapes = lay_out(now.axes, now.height, now.marks)
        alt = f"{now.alt} {now.readout}"
        self.stage.show(now.axes, now.height, self.shapes, alt, now.readout, spoken)
        for name, control in self.controls.items():
            control.layout.display = "none" if name in now.hidden else None
        self._values, self.now = values, now

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.readout}"

    def _ipython_display_(self) -> None:
        """Leave a note for whoever opens the notebook again without its Python, ahead of the
        explorer itself. Where nobody can be asked to run a cell there is none."""
        if _somebody_watches():
            display(HTML(note_for_later(self._still(), escape(self.readout))))
        raise NotImplementedError  # the explorer itself is shown as any widget

    def _still(self) -> bytes:
        """What is shown now, as PNG bytes."""
        return png(self.now.axes, self.now.height, self.shapes)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        """The live view where there is a kernel, a still picture from the same geometry where there
        is none, and the sentences."""
        # ipywidgets 7, which Colab's page belongs to, says it in another way
        give = getattr(super(), "_repr_mimebundle_", None)
        bundle = (give(**kwargs) or {}) if give else {_VIEW: _VERSION | {"model_id": self.model_id}}
        return bundle | {
            "text/plain": repr(self),
            "image/png": base64.b64encode(self._still()).decode("ascii"),
        }


def _somebody_watches() -> bool:
    """Whether this Python answers a page: there alone can a cell ask for input."""
    shell = get_ipython()
    return bool(getattr(getattr(shell, "kernel", None), "_allow_stdin", False))
