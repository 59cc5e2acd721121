"""The class that every explorer is made from: controls, a pure function from their values to a
scene, and a stage to show it on."""

import base64
from dataclasses import dataclass
from threading import RLock

import ipywidgets as widgets

from roofline_lib.explorers.marks import Drop, Line, Side, lay_out
from roofline_lib.explorers.stage import Axes, Stage, png
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INTENSITY, MEMORY, PERFORMANCE, decades


@dataclass(frozen=True)
class Scene:
    """A picture in words and marks: `axes` (a tuple of Axes: what the background depends on),
    `marks` (all that moves), the `readout` (one sentence with the numbers, which stands under the
    picture) and `alt` (what the picture shows, for those who do not see it). `height` is in pixels,
    the width is 640. `hidden` names controls that mean nothing now."""

    axes: tuple
    marks: tuple
    readout: str
    alt: str
    height: int = 386
    hidden: tuple = ()


class Explorer(widgets.VBox):
    """Base class. A subclass passes its controls to `__init__`, named as its arguments are, and
    gives

        scene(**values) -> Scene

    a pure function (a staticmethod) of the controls' values (machines come as Machine). It holds no
    physics: numbers come from roofline_lib, so that whatever an explorer shows can be had in one
    plain line without it.

    `.controls[name].value` reads and sets a control, `.readout` is what stands under the picture.
    """

    def __init__(self, *controls):
        self.controls = {control.name: control for control in controls}
        self.stage = Stage()
        self._values = self.now = None
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
            control.observe(self._look, "value")
        self._look()

    @staticmethod
    def scene(**values):
        """The Scene for these values of the controls."""
        raise NotImplementedError

    @property
    def readout(self):
        """The sentences under the picture as plain text, one a line: a printed line that the page
        has to break is hard to read."""
        return self.now.readout.replace(". ", ".\n")

    def _look(self, change=None):
        """Read all controls, and show what they say if it is new."""
        with self._one_at_a_time:
            for control in self.controls.values() if change else ():
                control.say("")  # why something was not used is old news once anything else is
            values = {name: control.chosen for name, control in self.controls.items()}
            if values == self._values:
                return
            now = self.scene(**values)
            self.shapes = lay_out(now.axes, now.height, now.marks)
            self.stage.show(
                now.axes, now.height, self.shapes, f"{now.alt} {now.readout}", now.readout
            )
            for name, control in self.controls.items():
                control.layout.display = "none" if name in now.hidden else None
                if name in ("precision", "activations") and "machine" in values:
                    control.mark(
                        [one for one in control.options if one not in values["machine"].precisions]
                    )
            self._values, self.now = values, now

    def __repr__(self):
        return f"{type(self).__name__}: {self.readout}"

    def _repr_mimebundle_(self, **kwargs):
        """The live view where there is a kernel, a still picture from the same geometry where there
        is none, and the sentence."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        picture = png(self.now.axes, self.now.height, self.shapes)
        return bundle | {
            "text/plain": repr(self),
            "image/png": base64.b64encode(picture).decode("ascii"),
        }


def roofline_axes(values_x=(), values_y=(), rect=Axes.rect):
    """Axes for a roofline: the same for every chip of the catalogue, so that a change of machine
    moves the roof and not the scale; further decades where `values_x` (FLOP/byte) or `values_y`
    (FLOP/s) need them."""
    return Axes(
        decades(values_x, (0.1, 1e5)), decades(values_y, (1e10, 1e16)), INTENSITY, PERFORMANCE, rect
    )


def roofline(axes, peak, bandwidth, precision, level="DRAM", panel=0, sides=True):
    """The marks of one roof: both sides tinted and named, the ridge with a drop line to its number,
    the two roofs labelled."""
    ridge, (x0, x1) = peak / bandwidth, axes.xlim
    tints = (
        (
            Side(x0, ridge, "memory-bound", MEMORY, panel),
            Side(ridge, x1, "compute-bound", COMPUTE, panel),
        )
        if sides
        else ()
    )
    return (
        *tints,
        Drop(ridge, peak, f"ridge {significant(ridge)}", FAINT, panel),
        Line(
            (x0, ridge),
            (x0 * bandwidth, peak),
            MEMORY,
            f"{level} {quantity(bandwidth, 'byte/s', 4)}",
            3,
            panel=panel,
        ),
        Line(
            (ridge, x1),
            (peak, peak),
            COMPUTE,
            f"{precision} {quantity(peak, 'FLOP/s', 4)}",
            3,
            panel=panel,
        ),
    )


def no_peak(machine, precision, options=(), control="precision", level="DRAM"):
    """The Scene where a machine has no peak at the precision asked for: its memory roof alone, what
    it does have, and what would do: those of the `options` of the `control` that it has, where the
    explorer has such a control, or another machine."""
    axes, bandwidth = roofline_axes(), machine.bandwidth(level)
    slope = Line(
        axes.xlim,
        tuple(bandwidth * x for x in axes.xlim),
        MEMORY,
        f"{level} {quantity(bandwidth, 'byte/s', 4)}",
        3,
    )
    do = " or ".join(one for one in options if one in machine.precisions)
    said = (
        f"{machine.name} has no {precision} peak in the catalogue, only {', '.join(machine.precisions)}. "
        + (
            f"Set {control} to {do}, or choose another machine."
            if do
            else "Choose another machine."
        )
    )
    return Scene((axes,), (slope,), said, f"The memory roof of {machine.name}, without a peak.")
