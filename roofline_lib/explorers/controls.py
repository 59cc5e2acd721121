"""Controls that refuse instead of clamping: a number with a typed box and a log-scaled slider, a
choice among names, a switch.

Each has `.value`. Set from Python, what will not do raises a ValueError and the old value stays;
typed by hand, the same sentence appears under the control and the old value comes back.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, ClassVar

import ipywidgets as widgets
import numpy as np
import traitlets
from traitlets.utils.bunch import Bunch

from roofline_lib.arguments import short, switch, unknown
from roofline_lib.labels import text_size
from roofline_lib.machines import Machine, machine, machines
from roofline_lib.precisions import PRECISIONS
from roofline_lib.quantities import parse_quantity, quantity
from roofline_lib.transformer import Transformer, transformer, transformers

_LETTERS = 13  # pixels; what notebooks write labels in
# a whole row of the grid; grid_column would do, if the empty grid_area did not undo it in the
# browser
_ROW = "auto / 1 / auto / -1"
ABSENT = "×"  # on a button for what the machine does not have; in every font of letters
TRACK = 80  # pixels of a slider's track at least: a mouse finds each step of so long a ladder


class Control(widgets.VBox):
    """A named value with a view. Subclasses give `accept(came)`, the value to keep or a ValueError,
    and `show(value)`. `label` is what the page calls it."""

    value: Any = traitlets.TraitType()  # traitlets.Any would let None past accept

    def __init__(self, name: str, label: str, value: object, children: Sequence[widgets.Widget]):
        self.name, self.label = name, label
        self.message = widgets.HTML(layout=widgets.Layout(display="none", margin="0"))
        super().__init__(
            [*children, self.message], layout=widgets.Layout(margin="0", overflow="hidden")
        )
        self.observe(self._follow, "value")
        self.value = value

    @property
    def chosen(self) -> Any:
        """What the explorer's scene gets: the value itself, or the object that it names."""
        return self.value

    @property
    def spoken(self) -> str:
        """What a screen reader says of a new value, where the view does not make it say so."""
        return ""

    @property
    def label_width(self) -> float:
        """Pixels that the label takes; 0 where it does not stand in the column of labels."""
        return text_size(self.label, _LETTERS)[0]

    def widen_label(self, width: str) -> None:
        """Give the label a width, so that boxes, lists and buttons stand under one another."""

    def accept(self, came: object) -> object:
        """The value to keep for what came; a ValueError where it will not do."""
        raise NotImplementedError

    def show(self, value: Any) -> None:
        """Make the view show this value."""
        raise NotImplementedError

    @traitlets.validate("value")
    def _accept(self, proposal: Bunch) -> object:
        return self.accept(proposal.value)

    def take(self, came: object) -> None:
        """A value given by hand: keep it, or say why not and show the old one again."""
        try:
            self.value = came
        except ValueError as problem:
            self.say(f"Not used: {problem}")
            self.show(self.value)

    def say(self, sentence: str) -> None:
        """A message under the control; an empty one takes it away."""
        self.message.layout.display = "" if sentence else "none"
        self.message.value = (
            f'<span role="alert" style="white-space:normal">{escape(sentence)}</span>'
            if sentence
            else ""
        )

    def _follow(self, change: Bunch) -> None:
        self.say("")
        self.show(self.value)


class Number(Control):
    """A number from `low` to `high` in `unit`: the typed box is the truth, the slider beside it
    walks a ladder of round values.

    The ladder is log-scaled (1 2 3 4 5 6 7 8 10 12 14 16 20 ..., each step at most a quarter more)
    unless `ladder` gives another. With a `prefix` such as "G" the box shows the number in units of
    that size; the value itself stays in `unit`.
    """

    def __init__(
        self,
        name: str,
        value: float,
        low: float,
        high: float,
        unit: str,
        label: str = "",
        whole: bool = True,
        ladder: Iterable[float] | None = None,
        prefix: str = "",
    ):
        self.low, self.high, self.unit, self.whole = low, high, unit, whole
        self.prefix = prefix
        self.scale = parse_quantity(f"1 {prefix}{unit}")[0] if prefix else 1
        if ladder is None:  # round in the box
            steps = log_ladder(self._in_box(low), self._in_box(high))
            ladder = [step * self.scale for step in steps]
        self.ladder = [self._plain(step) for step in ladder]
        label = label or f"{name} ({prefix}{unit})"
        # room for the digits of its largest number, seven at least
        self._box_width = f"{2 + 0.63 * max(7, len(str(self._in_box(high)))):.2f}em"
        self.box = widgets.FloatText(
            description=label,
            continuous_update=False,
            step=1 if whole else None,
            layout=widgets.Layout(flex="0 0 auto"),
        )
        self.slider = widgets.IntSlider(
            min=0,
            max=len(self.ladder) - 1,
            readout=False,
            layout=widgets.Layout(flex=f"1 1 {TRACK + 20}px", width="auto"),
        )
        # where there is no room beside the box, the slider stands under it
        row = widgets.Layout(overflow="hidden", flex_flow="row wrap")
        super().__init__(name, label, value, [widgets.HBox([self.box, self.slider], layout=row)])
        self.slider.observe(self._slid, "value")
        self.box.observe(self._typed, "value")

    @property
    def spoken(self) -> str:
        # the slider itself says the number of its step only
        return f"{self.label}: {self._said(self.value)}"

    def widen_label(self, width: str) -> None:
        self.box.style.description_width = width
        self.box.layout.width = f"calc({width} + 8px + {self._box_width})"

    def accept(self, came: object) -> float:
        if isinstance(came, bool) or not isinstance(came, int | float | np.integer | np.floating):
            raise self._refusal(short(came))
        if not self.low <= came <= self.high or (self.whole and came != int(came)):
            raise self._refusal(self._said(came))
        return self._plain(came)

    def _refusal(self, came: str) -> ValueError:
        kind = "a whole number" if self.whole else "a number"
        low, high = self._said(self.low), self._said(self.high)
        return ValueError(
            f"{self.name} must be {kind} from {low} to {high} ({self.unit}); got {came}"
        )

    def show(self, value: float) -> None:
        self.slider.value = self._rung(value)
        self.box.value = self._in_box(value)

    def _in_box(self, value: float) -> float:
        # 12 digits: 1e-4 s are 100 µs, not 100.00000000000001
        return float(f"{value / self.scale:.12g}") if self.prefix else value

    def _said(self, number: Any) -> str:
        """A number in an error; where the box has a prefix, with its unit, so that a value in GHz
        given for one in Hz is seen."""
        return quantity(float(number), self.unit, 4) if self.prefix else repr(number)

    def _plain(self, number: Any) -> float:
        return int(number) if self.whole else float(number)

    def _rung(self, value: float) -> int:
        """The ladder's step nearest to a value."""
        above = min(bisect_left(self.ladder, value), len(self.ladder) - 1)
        below = max(above - 1, 0)
        return above if self.ladder[above] - value <= value - self.ladder[below] else below

    def _slid(self, change: Bunch) -> None:
        # else the slider only follows a typed value between two steps
        if self.slider.value != self._rung(self.value):
            self.take(self.ladder[self.slider.value])

    def _typed(self, change: Bunch) -> None:
        typed = self.box.value
        if typed == self._in_box(self.value):
            return
        if self.prefix:
            typed = typed * self.scale
        self.take(int(typed) if self.whole and typed == typed // 1 else typed)


class Choice(Control):
    """One of a few values (buttons) or of many (a list that drops down).

    `options` lists the values that the control takes, or maps each to what it stands for; `shown`
    has the words on the screen for those that do not read well there.
    """

    def __init__(
        self,
        name: str,
        value: object,
        options: Mapping | Sequence,
        label: str = "",
        shown: Mapping | None = None,
    ):
        self.options = dict(options) if isinstance(options, Mapping) else {x: x for x in options}
        self.shown = {option: str(option) for option in self.options} | dict(shown or {})
        label = label or name
        words = list(self.shown.values())
        width = sum(24 + 8 * len(one) for one in words)  # of buttons, in pixels
        if len(words) > 8 or width > 560:
            self.picker = view = widgets.Dropdown(
                options=self._pairs(),
                value=None,
                description=label,
                layout=widgets.Layout(width="auto", max_width="100%"),
            )
        else:
            self.picker = widgets.ToggleButtons(
                options=self._pairs(),
                value=None,
                tooltips=[f"{label} {one}" for one in words],
                style={"button_width": "auto"},
                layout=widgets.Layout(width="auto", flex="1 1 0"),
            )
            self.said = widgets.HTML(
                f'<div style="text-align:right">{escape(label)}</div>',
                layout=widgets.Layout(flex="0 0 auto", margin="2px 8px 2px 0"),
            )
            view = widgets.HBox(
                [self.said, self.picker],
                layout=widgets.Layout(align_items="baseline", overflow="hidden"),
            )
        super().__init__(name, label, value, [view])
        if isinstance(self.picker, widgets.ToggleButtons) and width > 190:
            self.layout.grid_area = _ROW
        self.picker.observe(self._picked, "value")

    def _picked(self, change: Bunch) -> None:
        if self.picker.value is not None:
            self.take(self.picker.value)

    def widen_label(self, width: str) -> None:
        if isinstance(self.picker, widgets.ToggleButtons):
            self.said.layout.width = width
        else:
            self.picker.style.description_width = width

    def _pairs(self) -> list[tuple[str, object]]:
        return [(words, option) for option, words in self.shown.items()]

    @property
    def chosen(self) -> Any:
        return self.options[self.value]

    def accept(self, came: Any) -> object:
        came = came.item() if isinstance(came, np.generic) else came
        for option in self.options:
            # True is no 1
            if type(came) is type(option) and came == option:
                return option
        raise unknown(self.name, came, [str(option) for option in self.options])

    def show(self, value: object) -> None:
        self.picker.value = value

    def mark_absent(self, absent: Sequence) -> None:
        """A sign on the buttons that mean nothing now, and the reason where the mouse rests on
        them. They stay: a choice that one did not make must not change by itself. The sign is part
        of the button's text: not every page that shows widgets has a font of icons."""
        if not isinstance(self.picker, widgets.ToggleButtons):
            return
        pairs = [
            (f"{words} {ABSENT}" if option in absent else words, option)
            for words, option in self._pairs()
        ]
        if tuple(pairs) == tuple(self.picker.options):
            return
        chosen = self.picker.value
        # new options choose the first of them, which nobody picked
        self.picker.unobserve(self._picked, "value")
        # the browser makes new buttons when their texts change, with the tooltips of that moment
        with self.picker.hold_sync():
            self.picker.tooltips = [
                f"{self.label} {words}{': not on this machine' if option in absent else ''}"
                for words, option in self._pairs()
            ]
            self.picker.options = pairs
            self.picker.value = chosen
        self.picker.observe(self._picked, "value")


class NamedChoice(Choice):
    """One of many by name; an object made by hand stands for itself, and joins the list."""

    kind: ClassVar[type]  # of what the names stand for

    def __init__(self, name: str, value: object, options: Mapping, label: str = ""):
        if isinstance(value, self.kind):
            own = {self.name_of(value): value}
            options = own | dict(options) | own  # first in the list, and not another of that name
        super().__init__(name, value, options, label)

    @staticmethod
    def name_of(made: Any) -> str:
        """The name of an object made by hand."""
        return made.name

    @staticmethod
    def look_up(name: str) -> str:
        """The list's own spelling of a name, or an UnknownName."""
        raise NotImplementedError

    def accept(self, came: Any) -> object:
        if isinstance(came, self.kind):
            name = self.name_of(came)
            came = name if self.options.get(name) == came else came
        elif isinstance(came, str) and came not in self.options:
            came = self.look_up(came)
        return super().accept(came)


class MachineChoice(NamedChoice):
    """A machine of the catalogue by any of its names, or one made by hand, which joins the list."""

    kind = Machine

    def __init__(self, value: Machine | str, name: str = "machine", label: str = "machine"):
        super().__init__(name, value, {one: machine(one) for one in machines()}, label)

    @staticmethod
    def look_up(name: str) -> str:
        return machine(name).name


class ModelChoice(NamedChoice):
    """A language model by its preset's name, or one made by hand, which joins the list."""

    kind = Transformer

    def __init__(self, value: Transformer | str, name: str = "model"):
        super().__init__(name, value, {one: transformer(one) for one in transformers()})

    @staticmethod
    def name_of(made: Transformer) -> str:
        return made.name or "this model"

    @staticmethod
    def look_up(name: str) -> str:
        return transformer(name).name


class PrecisionChoice(Choice):
    """A precision in which a chip multiplies: those `among` the given that some machine in the list
    of `chip` has a peak at, with a mark on those that the chosen one lacks."""

    def __init__(
        self, name: str, value: str, chip: MachineChoice, among: Sequence[str] = PRECISIONS
    ):
        had = {precision for one in chip.options.values() for precision in one.precisions}
        self.chip = chip
        super().__init__(name, value, [one for one in among if one in had])
        chip.observe(self._mark, "value")
        self._mark()

    def _mark(self, change: Bunch | None = None) -> None:
        self.mark_absent([one for one in self.options if one not in self.chip.chosen.precisions])


def own_unless_given(given: dict, own: dict, where: str) -> dict:
    """The values given by hand, and where these are None the machine's `own`. ValueError where the
    catalogue does not know those either; `where` says of what."""
    values = {name: own[name] if value is None else value for name, value in given.items()}
    for name, value in values.items():
        if value is None:
            raise ValueError(
                f"{name} must be given for {where}, where the catalogue does not know it; got None"
            )
    return values


class Switch(Control):
    """On or off."""

    def __init__(self, name: str, value: bool, label: str = ""):
        self.tick = widgets.Checkbox(
            description=label or name,
            indent=False,
            layout=widgets.Layout(width="auto", max_width="100%"),
        )
        super().__init__(name, label or name, value, [self.tick])
        if len(label) > 36:
            self.layout.grid_area = _ROW
        self.tick.observe(lambda change: self.take(self.tick.value), "value")

    @property
    def label_width(self) -> float:
        return 0  # its words stand behind it

    def accept(self, came: object) -> bool:
        return switch(self.name, came)

    def show(self, value: bool) -> None:
        self.tick.value = value


def log_ladder(low: float, high: float) -> list[float]:
    """Whole numbers from low to high, four to each doubling: 4, 5, 6, 7 times every power of two,
    with 1, 2, 3 before them."""
    steps = {1, 2, 3} | {mantissa << shift for mantissa in (4, 5, 6, 7) for shift in range(64)}
    return sorted({low, high} | {step for step in steps if low <= step <= high})
