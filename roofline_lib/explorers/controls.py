"""Controls that refuse instead of clamping: a number with a typed box and a log-scaled slider, a
choice among names, a switch.

Each has `.value`. Set from Python, what will not do raises a ValueError and the old value stays;
typed by hand, the same sentence appears under the control and the old value comes back.
"""

from bisect import bisect_left
from html import escape

import ipywidgets as widgets
import numpy as np
import traitlets

from roofline_lib.arguments import switch, unknown
from roofline_lib.machines import Machine, machine, machines

_LABEL = "10.5em"  # so that boxes, lists and buttons stand under one another
# a whole row of the grid; grid_column would do, if the empty grid_area did not undo it in the
# browser
_ROW = "auto / 1 / auto / -1"


class Control(widgets.VBox):
    """A named value with a view. Subclasses give `accept(came)`, the value to keep or a ValueError,
    and `show(value)`."""

    value = traitlets.TraitType()  # Any would let None past accept

    def __init__(self, name, value, children):
        self.name = name
        self.message = widgets.HTML(layout=widgets.Layout(display="none", margin="0"))
        super().__init__(
            [*children, self.message], layout=widgets.Layout(margin="0", overflow="hidden")
        )
        self.observe(self._follow, "value")
        self.value = value

    @property
    def chosen(self):
        """What the explorer's scene gets: the value itself, or the object that it names."""
        return self.value

    @traitlets.validate("value")
    def _accept(self, proposal):
        return self.accept(proposal.value)

    def take(self, came):
        """A value given by hand: keep it, or say why not and show the old one again."""
        try:
            self.value = came
        except ValueError as problem:
            self.say(f"Not used: {problem}")
            self.show(self.value)

    def say(self, sentence):
        """A message under the control; an empty one takes it away."""
        self.message.layout.display = "" if sentence else "none"
        self.message.value = (
            f'<span role="alert" style="white-space:normal">{escape(sentence)}</span>'
            if sentence
            else ""
        )

    def _follow(self, change):
        self.say("")
        self.show(self.value)


class Number(Control):
    """A number from `low` to `high` in `unit`: the typed box is the truth, the slider beside it
    walks a ladder of round values.

    The ladder is log-scaled (1 2 3 4 5 6 7 8 10 12 14 16 20 ..., each step at most a quarter more)
    unless `ladder` gives another.
    """

    def __init__(self, name, value, low, high, unit, label="", whole=True, ladder=None):
        self.low, self.high, self.unit, self.whole = low, high, unit, whole
        self.ladder = [
            self._plain(step) for step in (log_ladder(low, high) if ladder is None else ladder)
        ]
        # its label and the digits of its largest number, seven at least
        wide = f"{13.3 + 0.63 * max(7, len(str(high)))}em"
        self.box = widgets.FloatText(
            description=label or f"{name} ({unit})",
            continuous_update=False,
            step=1 if whole else None,
            style={"description_width": _LABEL},
            layout=widgets.Layout(width=wide, flex="0 0 auto"),
        )
        self.slider = widgets.IntSlider(
            min=0,
            max=len(self.ladder) - 1,
            readout=False,
            layout=widgets.Layout(flex="1 1 6em", width="auto", min_width="4em"),
        )
        super().__init__(
            name,
            value,
            [widgets.HBox([self.box, self.slider], layout=widgets.Layout(overflow="hidden"))],
        )
        if len(self.ladder) > 100:
            self.layout.grid_area = _ROW  # a long slider, so that a mouse finds each step
        self.slider.observe(self._slid, "value")
        self.box.observe(self._typed, "value")

    def accept(self, came):
        number = isinstance(came, int | float | np.integer | np.floating) and not isinstance(
            came, bool
        )
        if not number or not self.low <= came <= self.high or (self.whole and came != int(came)):
            kind = "a whole number" if self.whole else "a number"
            raise ValueError(
                f"{self.name} must be {kind} from {self.low} to {self.high} ({self.unit}); got {came!r}"
            )
        return self._plain(came)

    def show(self, value):
        self.slider.value = self._rung(value)
        self.box.value = value

    def _plain(self, number):
        return int(number) if self.whole else float(number)

    def _rung(self, value):
        """The ladder's step nearest to a value."""
        above = min(bisect_left(self.ladder, value), len(self.ladder) - 1)
        below = max(above - 1, 0)
        return above if self.ladder[above] - value <= value - self.ladder[below] else below

    def _slid(self, change):
        # else the slider only follows a typed value between two steps
        if self.slider.value != self._rung(self.value):
            self.take(self.ladder[self.slider.value])

    def _typed(self, change):
        if self.box.value != self.value:
            self.take(
                int(self.box.value)
                if self.whole and self.box.value == self.box.value // 1
                else self.box.value
            )


class Choice(Control):
    """One of a few short names (buttons) or of many (a list that drops down); `options` maps each
    name to what it stands for."""

    def __init__(self, name, value, options, label=""):
        self.options = (
            dict(options) if hasattr(options, "keys") else {option: option for option in options}
        )
        self.label = label = label or name
        names = list(self.options)
        width = sum(24 + 8 * len(one) for one in names)  # of buttons, in pixels
        if len(names) > 8 or width > 560:
            self.picker = view = widgets.Dropdown(
                options=names,
                value=None,
                description=label,
                style={"description_width": _LABEL},
                layout=widgets.Layout(width="auto", max_width="100%"),
            )
        else:
            self.picker = widgets.ToggleButtons(
                options=names,
                value=None,
                tooltips=[f"{label} {one}" for one in names],
                style={"button_width": "auto"},
                layout=widgets.Layout(width="auto", flex="1 1 0"),
            )
            said = widgets.HTML(
                f'<div style="text-align:right">{escape(label)}</div>',
                layout=widgets.Layout(width=_LABEL, flex="0 0 auto", margin="2px 8px 2px 0"),
            )
            view = widgets.HBox(
                [said, self.picker],
                layout=widgets.Layout(align_items="baseline", overflow="hidden"),
            )
        super().__init__(name, value, [view])
        if isinstance(self.picker, widgets.ToggleButtons) and width > 190:
            self.layout.grid_area = _ROW
        self.picker.observe(
            lambda change: self.picker.value is not None and self.take(self.picker.value), "value"
        )

    @property
    def chosen(self):
        return self.options[self.value]

    def accept(self, came):
        if not isinstance(came, str) or came not in self.options:
            raise unknown(self.name, came, self.options)
        return came

    def show(self, value):
        self.picker.value = value

    def mark(self, absent):
        """A sign and a word on the buttons that mean nothing now. They stay: a choice that one did
        not make must not change by itself."""
        icons = tuple("ban" if one in absent else "" for one in self.options)
        if isinstance(self.picker, widgets.ToggleButtons) and self.picker.icons != icons:
            # the browser makes new buttons when the icons change, with the tooltips of that moment
            with self.picker.hold_sync():
                self.picker.tooltips = [
                    f"{self.label} {one}{': not on this machine' * (one in absent)}"
                    for one in self.options
                ]
                self.picker.icons = icons


class MachineChoice(Choice):
    """A machine of the catalogue by any of its names, or one made by hand, which joins the list."""

    def __init__(self, value, name="machine", label="machine"):
        options = {one: machine(one) for one in machines()}
        if isinstance(value, Machine):
            options = {value.name: value} | options | {value.name: value}
        super().__init__(name, value, options, label)

    def accept(self, came):
        if isinstance(came, Machine):
            came = came.name if self.options.get(came.name) == came else came
        elif isinstance(came, str) and came not in self.options:
            came = machine(came).name
        return super().accept(came)


class Switch(Control):
    """On or off."""

    def __init__(self, name, value, label=""):
        self.tick = widgets.Checkbox(
            description=label or name,
            indent=False,
            layout=widgets.Layout(width="auto", max_width="100%"),
        )
        super().__init__(name, value, [self.tick])
        if len(label) > 36:
            self.layout.grid_area = _ROW
        self.tick.observe(lambda change: self.take(self.tick.value), "value")

    def accept(self, came):
        return switch(self.name, came)

    def show(self, value):
        self.tick.value = value


def log_ladder(low, high):
    """Whole numbers from low to high, four to each doubling: 4, 5, 6, 7 times every power of two,
    with 1, 2, 3 before them."""
    steps = {1, 2, 3} | {mantissa << shift for mantissa in (4, 5, 6, 7) for shift in range(64)}
    return sorted({low, high} | {step for step in steps if low <= step <= high})
