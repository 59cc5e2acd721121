"""The class that every explorer is made from: controls, a pure function from their values to a
scene, and a stage to show it on."""

import base64
from threading import RLock
from typing import ClassVar

import ipywidgets as widgets
from traitlets.utils.bunch import Bunch

from roofline_lib.explorers.controls import Control
from roofline_lib.explorers.marks import lay_out
from roofline_lib.explorers.scenes import Scene
from roofline_lib.explorers.stage import Stage, png


class Explorer(widgets.VBox):
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

    def __init__(self, *controls: Control):
        self.controls = {control.name: control for control in controls}
        self.stage = Stage()
        self._values = self.now = None
        self._bringing = False
        # sliders and cells may come in from two threads of one kernel
        self._one_at_a_time = RLock()
        grid = widgets.GridBox(
            list(controls),
            layout=widgets.Layout(
                grid_template_columns="repeat(auto-fit, minmax(min(100%, 24em), 1fr))",
                grid_gap="2px 12px",
                max_width="700px",
                overflow="hidden",
            ),
        )
        super().__init__([grid, self.stage], layout=widgets.Layout(overflow="hidden"))
        # names for style sheets and tests
        self.add_class("roofline-explorer").add_class(type(self).__name__)
        self.stage.add_class("roofline-picture")
        for control in controls:
            control.add_class(f"control-{control.name}")
            control.observe(self._follow, "value")
        self._show()

    @staticmethod
    def scene(**values: object) -> Scene:
        """The Scene for these values of the controls."""
        raise NotImplementedError

    @staticmethod
    def brings(changed: str, **values: object) -> dict[str, object]:
        """What a change of the control `changed` brings with it: {name of another control: its new
        value}. A machine brings its own units, for example. One picture shows all of it."""
        return {}

    @property
    def readout(self) -> str:
        """The sentences under the picture as plain text, one a line: a printed line that the page
        has to break is hard to read."""
        return "\n".join(self.now.sentences)

    def _chosen(self) -> dict[str, object]:
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
            self._show()

    def _show(self) -> None:
        """Show what the controls say, if it is new."""
        values = self._chosen()
        if values == self._values:
            return
        now = self.scene(**values)
        self.shapes = lay_out(now.axes, now.height, now.marks)
        self.stage.show(now.axes, now.height, self.shapes, f"{now.alt} {now.readout}", now.readout)
        for name, control in self.controls.items():
            control.layout.display = "none" if name in now.hidden else None
        self._values, self.now = values, now

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.readout}"

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, object]:
        """The live view where there is a kernel, a still picture from the same geometry where there
        is none, and the sentences."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        picture = png(self.now.axes, self.now.height, self.shapes)
        return bundle | {
            "text/plain": repr(self),
            "image/png": base64.b64encode(picture).decode("ascii"),
        }
