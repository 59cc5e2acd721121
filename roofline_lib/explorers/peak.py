"""Lesson 6: a peak counted from units, lanes and clock, held against the printed figure and a
measured one."""

from dataclasses import dataclass

from roofline_lib.explorers.base import Explorer, Scene
from roofline_lib.explorers.controls import Choice, MachineChoice, Number, Switch
from roofline_lib.explorers.marks import Bar, Drop, Gap, Line, Mark, Point
from roofline_lib.explorers.shapes import Words
from roofline_lib.explorers.stage import Axes
from roofline_lib.peaks import clock_from, peak_flops
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, OVER, ROOM

_PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_RECT, _HEIGHT, _CLOCKS = (76, 14, 314, 300), 402, (0.0, 6.0)
_LIST = 408, 572, 632  # name, FLOP a clock and unit, TFLOP/s
_BLANK = "\u2002"  # as wide as the dot


class PeakExplorer(Explorer):
    """units x lanes x FLOP per lane x clock, as a line over the clock, against the nominal peak and
    a measured rate.

    A lane does one multiply-add a cycle, 2 FLOP. `machine` is a Machine or a name, `precision`
    picks one of its peaks, `fp16_sums` the one that accumulates in fp16 where there are two;
    `clock` is in GHz, `measured` in TFLOP/s, 0 for none. `units`, `lanes` (of a unit) and `clock`
    are the peak's own unless given; a peak chosen later brings its own, and no measurement.
    `sparsity` counts the zeros that 2:4 sparsity skips. Controls: the arguments' names.
    """

    _bringing = False

    def __init__(
        self,
        machine="RTX 5060 Ti",
        precision="fp32",
        fp16_sums=False,
        sparsity=False,
        *,
        units=None,
        lanes=None,
        flops_per_lane=2,
        clock=None,
        measured=0,
    ):
        chip, rate = MachineChoice(machine), Choice("precision", precision, _PRECISIONS)
        sums = Switch("fp16_sums", fp16_sums, "sums kept in fp16")
        self._sources = chip, rate, sums
        given = {"units": units, "lanes": lanes, "clock": clock}
        own = _own(chip.chosen, _peak(chip.chosen, precision, fp16_sums))
        values = {name: own[name] if value is None else value for name, value in given.items()}
        for name, value in values.items():
            if value is None:
                raise ValueError(
                    f"{name} must be given for {precision} on {chip.value}, where the catalogue does not know it; got None"
                )
        super().__init__(
            rate,
            chip,
            sums,
            Number("units", values["units"], 1, 1024, "SMs, cores"),
            Number("lanes", values["lanes"], 1, 2**18, "of a unit"),
            Number(
                "flops_per_lane",
                flops_per_lane,
                1,
                16,
                "FLOP a cycle",
                "FLOP per lane",
                ladder=(1, 2, 4, 8, 16),
            ),
            Number(
                "clock",
                values["clock"],
                0.1,
                6.0,
                "GHz",
                whole=False,
                ladder=[step / 100 for step in range(10, 601)],
            ),
            Number(
                "measured", measured, 0, 20000, "TFLOP/s", "measured (TFLOP/s)", False, _rates()
            ),
            Switch("sparsity", sparsity, "count the zeros of 2:4 sparsity"),
        )
        for box in (
            control.box for control in self.controls.values() if isinstance(control, Number)
        ):
            # the longest of their labels
            box.style.description_width, box.layout.width = "10.6em", "17.8em"
        self.controls["clock"].box.step = 0.01

    def _look(self, change=None):
        """A source brings its own figures with it; one picture is made for all of them together."""
        if self._bringing:
            return
        if change is not None and change["owner"] in self._sources:
            machine, precision, fp16_sums = (source.chosen for source in self._sources)
            own = _own(machine, _peak(machine, precision, fp16_sums)) | {
                "flops_per_lane": 2,
                "measured": 0,
            }
            self._bringing = True
            try:
                for name, value in own.items():
                    self.controls[name].value = (
                        self.controls[name].value if value is None else value
                    )
            finally:
                self._bringing = False
        super()._look(change)

    @staticmethod
    def scene(
        precision, machine, fp16_sums, units, lanes, flops_per_lane, clock, measured, sparsity
    ):
        peak = _peak(machine, precision, fp16_sums)
        sparse = bool(sparsity and _skips_zeros(peak))
        per_lane, measured, nominal = (
            flops_per_lane * (2 if sparse else 1),
            measured * 1e12,
            peak.flops if peak else 0,
        )

        def count(some_lanes, gigahertz=clock):
            return peak_flops(units, some_lanes, gigahertz * 1e9, per_lane)

        def ray(some_lanes, *look):
            return Line(
                _CLOCKS,
                (0, count(some_lanes, _CLOCKS[1])),
                look[0],
                f"{some_lanes:,} lane{'s' * (some_lanes > 1)}",
                *look[1:],
            )

        counted, rivals = (
            count(lanes),
            [other for other in (lanes // 2 * (lanes % 2 == 0), 2 * lanes) if other],
        )
        top = _nice(1.25 * max(counted, nominal, measured))
        axes = Axes(_CLOCKS, (0, top), "clock (GHz)", "performance (FLOP/s)", _RECT, False, False)

        def high_up(value, words):
            """Lines on the axis itself get no label there, where one would cover the other: the
            sentence has their numbers."""
            return words if value > top / 20 else ""

        marks = [*(ray(other, FAINT, 1.3, (5, 4)) for other in rivals), ray(lanes, COMPUTE, 3)]
        readout = (
            f"{units} {machine.unit_name}{'s' * (units > 1)} x {lanes:,} lane{'s' * (lanes > 1)} x {flops_per_lane} FLOP x "
            f"{significant(clock, 4)} GHz{' x 2 for skipped zeros' * sparse} = {quantity(counted, 'FLOP/s', 4)} counted. "
            + _nominal(machine, precision, peak, sparse)
        )
        if nominal:
            marks.append(
                Line(
                    _CLOCKS,
                    (nominal,) * 2,
                    COMPUTE,
                    high_up(nominal, f"nominal {quantity(nominal, 'FLOP/s', 4)}"),
                    1.3,
                    (5, 4),
                )
            )
        if measured:
            color, needed = (
                OVER if measured > counted else ROOM,
                clock_from(measured, units, lanes, per_lane) / 1e9,
            )
            marks += [
                Line(
                    _CLOCKS,
                    (measured,) * 2,
                    color,
                    high_up(measured, f"measured {quantity(measured, 'FLOP/s', 4)}"),
                    2,
                ),
                Gap(clock, *sorted((measured, counted)), _percent(measured / counted)),
            ]
            if needed <= _CLOCKS[1]:
                marks += [
                    Drop(needed, measured, high_up(measured, f"{significant(needed, 4)} GHz")),
                    Point(needed, measured, "", color, "D"),
                ]
            marks.append(_bar(0, "measured of counted", measured / counted))
            if nominal:
                marks.append(_bar(1, "measured of nominal", measured / nominal))
            others = " and ".join(
                f"{_percent(measured / count(other))} with {other:,} lane{'s' * (other > 1)}"
                for other in rivals
            )
            readout += (
                f" Measured {quantity(measured, 'FLOP/s', 4)} is {_percent(measured / counted)} of the counted peak; it takes a "
                f"clock of at least {significant(needed, 4)} GHz. It would be {others}."
                + " Nothing beats its own peak: one of the factors is wrong."
                * (measured > counted)
            )
        marks += [
            Drop(clock, counted, ""),
            Point(clock, counted, quantity(counted, "FLOP/s", 4), INK, bold=True),
            Listing(tuple(_listing(machine, peak))),
        ]
        alt = (
            f"Performance over clock: a straight line from zero for {lanes:,} lanes, fainter ones for half and twice as many, level "
            f"lines for the nominal and the measured rate. Beside it the peaks of {machine.name} by the unit that gives them."
        )
        alike = len({one.accumulate for one in machine.peaks.get(precision, ())}) < 2
        hidden = ("fp16_sums",) * alike + ("sparsity",) * (not _skips_zeros(peak))
        return Scene((axes,), tuple(marks), readout, alt, _HEIGHT, hidden)


@dataclass(frozen=True)
class Listing(Mark):
    """Lines of three columns beside the axes: (texts, bold, colour) from the top down."""

    lines: tuple
    rank = 0

    def captions(self, view, taken):
        return [
            Words(x, 26 + 18 * row, text, color, 12, anchor, bold=bold)
            for row, (texts, bold, color) in enumerate(self.lines)
            for x, text, anchor in zip(_LIST, texts, ("start", "end", "end"), strict=True)
            if text
        ]


def _listing(machine, chosen):
    """A heading for each kind of unit, below it the peaks that it gives; the chosen one is bold and
    has a dot."""
    yield ("", f"FLOP/clock/{machine.unit_name}", "TFLOP/s"), False, FAINT
    by_unit = {}
    for peak in (one for options in machine.peaks.values() for one in options):
        by_unit.setdefault(peak.unit_kind or "all units", []).append(peak)
    for kind, peaks in by_unit.items():
        yield (f"{kind}{'' if kind.endswith('s') else 's'}", "", ""), False, COMPUTE
        for peak in peaks:
            several = len({one.accumulate for one in machine.peaks[peak.precision]}) > 1
            name = f"{peak.precision}, {peak.accumulate} sums" if several else peak.precision
            each = (
                f"{peak.flop_per_clock_per_unit:,}" if peak.flop_per_clock_per_unit else "not known"
            )
            here = peak is chosen
            yield (
                (f"{'•' if here else _BLANK} {name}", each, significant(peak.flops / 1e12, 4)),
                here,
                INK,
            )


def _peak(machine, precision, fp16_sums):
    """The Peak meant, the first one where fp16 sums have none of their own; None where the machine
    has no such precision."""
    options = machine.peaks.get(precision, (None,))
    return next(
        (peak for peak in options if peak and peak.accumulate == "fp16" and fp16_sums), options[0]
    )


def _skips_zeros(peak):
    """Whether headlines of such a peak may count 2:4 sparsity."""
    return (
        peak is not None
        and peak.unit_kind in ("tensor core", "matrix core")
        and peak.precision != "fp64"
    )


def _own(machine, peak):
    """Units, lanes of one unit and clock (GHz) behind a peak; None where not known."""
    clock = peak and (peak.clock or machine.details.get("clock"))
    lanes = peak and peak.flop_per_clock_per_unit and int(peak.flop_per_clock_per_unit) // 2
    return {"units": machine.units, "lanes": lanes or None, "clock": clock / 1e9 if clock else None}


def _nominal(machine, precision, peak, sparse):
    """What the catalogue prints for this peak, and what it does not know of it."""
    if not peak:
        return f"{machine.name} has no {precision} peak in the catalogue; what it does not know stays as it was set."
    said = f"Nominal {precision} of {machine.name}: {quantity(peak.flops, 'FLOP/s', 4)}{' dense' * sparse}."
    unknown = " and ".join(name for name, value in _own(machine, peak).items() if value is None)
    return said + (
        f" Not in the catalogue: its {unknown}; the count takes what is set here."
        if unknown
        else ""
    )


def _bar(place, name, share):
    width = (632 - _RECT[0] - 20) / 2
    said = _percent(share) if share <= 1 else f"over: {_percent(share)}"
    return Bar(
        name,
        (share,),
        said,
        (_RECT[0] + place * (width + 20), _RECT[1] + _RECT[3] + 48, width),
        (ROOM,),
    )


def _percent(share):
    return f"{significant(100 * share)} %"


def _nice(value):
    """The next 1, 2, 3, 4, 6 or 8 times a power of ten, so that the axes stay while a slider moves
    a little."""
    power = 10.0 ** (len(f"{value:.0f}") - 1)
    return next(step * power for step in (1, 2, 3, 4, 6, 8, 10) if step * power >= value)


def _rates():
    """0, then two significant digits from 0.01 to 20000 TFLOP/s."""
    steps = [float(f"{mantissa}e{power}") for power in range(-3, 4) for mantissa in range(10, 100)]
    return [0.0, *(step for step in steps if step <= 20000), 20000.0]
