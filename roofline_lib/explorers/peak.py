"""Lesson 7: a peak counted from units, lanes and clock, held against the printed figure and a
measured one."""

from collections.abc import Iterator
from dataclasses import dataclass

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import (
    MachineChoice,
    Number,
    PrecisionChoice,
    Switch,
    own_unless_given,
)
from roofline_lib.explorers.marks import Drop, Gap, Line, Mark, Point
from roofline_lib.explorers.scenes import Scene, Share, bar_row, dashed, percent, plural
from roofline_lib.explorers.shapes import Words
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine, Peak
from roofline_lib.peaks import clock_from, peak_flops
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, OVER, ROOM

_RECT, _HEIGHT = (76, 14, 314, 300), 402
_LOWEST, _HIGHEST = 0.1e9, 6e9  # of the clocks that can be set (Hz)
_GIGA = 1e9  # the axis counts in GHz
_LIST = 408, 572, 632  # name, FLOP a clock and unit, TFLOP/s
_BLANK = "\u2002"  # as wide as the dot


class PeakExplorer(Explorer):
    """units x lanes x FLOP per lane x clock, as a line over the clock, against the nominal peak and
    a measured rate.

    A lane does one multiply-add a cycle, 2 FLOP. `machine` is a Machine or a name, `precision`
    picks one of its peaks, `fp16_sums` the one that accumulates in fp16 where there are two;
    `clock` is in Hz, `measured` in FLOP/s, 0 for none. `units`, `lanes` (of a unit) and `clock`
    are the peak's own unless given; a peak chosen later brings its own, and no measurement.
    `sparsity` counts the zeros that 2:4 sparsity skips. Controls: the arguments' names.
    """

    def __init__(
        self,
        machine: Machine | str = "RTX 5060 Ti",
        precision: str = "fp32",
        fp16_sums: bool = False,
        sparsity: bool = False,
        *,
        units: int | None = None,
        lanes: int | None = None,
        flops_per_lane: int = 2,
        clock: float | None = None,
        measured: float = 0,
    ):
        chip = MachineChoice(machine)
        rate = PrecisionChoice("precision", precision, chip)
        sums = Switch("fp16_sums", fp16_sums, "sums kept in fp16")
        values = own_unless_given(
            {"units": units, "lanes": lanes, "clock": clock},
            _own(chip.chosen, _peak(chip.chosen, precision, fp16_sums)),
            f"{precision} on {chip.value}",
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
                _LOWEST,
                _HIGHEST,
                "Hz",
                whole=False,
                ladder=[step * 1e8 for step in range(1, 61)],
                prefix="G",
            ),
            Number(
                "measured",
                measured,
                0,
                20e15,
                "FLOP/s",
                "measured (TFLOP/s)",
                whole=False,
                ladder=_rates(),
                prefix="T",
            ),
            Switch("sparsity", sparsity, "count the zeros of 2:4 sparsity"),
        )
        self.controls["clock"].box.step = 0.01

    @staticmethod
    def brings(changed, machine, precision, fp16_sums, **others):
        """A peak has factors of its own, and another one's measurement says nothing of it."""
        if changed not in ("machine", "precision", "fp16_sums"):
            return {}
        own = _own(machine, _peak(machine, precision, fp16_sums))
        known = {name: value for name, value in own.items() if value is not None}
        return known | {"flops_per_lane": 2, "measured": 0}

    @staticmethod
    def scene(
        precision, machine, fp16_sums, units, lanes, flops_per_lane, clock, measured, sparsity
    ):
        peak = _peak(machine, precision, fp16_sums)
        found = Figures(
            machine,
            precision,
            peak,
            units,
            lanes,
            flops_per_lane,
            clock,
            measured,
            sparse=sparsity and _skips_zeros(peak),
        )
        return Scene(
            (axes_for(found),),
            marks(found),
            sentences(found),
            alt(found),
            _HEIGHT,
            _meaningless(machine, precision, peak),
        )


@dataclass(frozen=True)
class Figures:
    """One count: its factors, the catalogue's Peak (None where there is none) and a measured rate
    (FLOP/s, 0 for none). `clock` is in Hz."""

    machine: Machine
    precision: str
    peak: Peak | None
    units: int
    lanes: int
    flops_per_lane: int
    clock: float
    measured: float
    sparse: bool

    @property
    def per_lane(self) -> int:
        """FLOP that a lane is counted with in a cycle."""
        return self.flops_per_lane * (2 if self.sparse else 1)

    @property
    def nominal(self) -> float:
        return self.peak.flops if self.peak else 0

    @property
    def counted(self) -> float:
        return self.count(self.lanes, self.clock)

    @property
    def of_counted(self) -> float:
        return self.measured / self.counted

    @property
    def needed(self) -> float:
        """The clock (Hz) that the measured rate takes at least."""
        return clock_from(self.measured, self.units, self.lanes, self.per_lane)

    @property
    def beats_its_peak(self) -> bool:
        return self.measured > self.counted

    @property
    def rivals(self) -> list[int]:
        """Half as many lanes, where that is a whole number, and twice as many."""
        half = [self.lanes // 2] if self.lanes % 2 == 0 else []
        return [*half, 2 * self.lanes]

    @property
    def top(self) -> float:
        """The upper end of the axis (FLOP/s)."""
        return _round_up(1.25 * max(self.counted, self.nominal, self.measured))

    def count(self, lanes: int, clock: float) -> float:
        """FLOP/s with so many lanes at this clock (Hz)."""
        return peak_flops(self.units, lanes, clock, self.per_lane)


_CLOCKS = 0.0, _HIGHEST / _GIGA


def axes_for(found: Figures) -> Axes:
    return Axes(_CLOCKS, (0, found.top), "clock (GHz)", "performance (FLOP/s)", _RECT, False, False)


def marks(found: Figures) -> tuple[Mark, ...]:
    clock, counted = found.clock / _GIGA, found.counted
    return (
        *(
            dashed(_CLOCKS, _heights(found, lanes), FAINT, _lanes_in_words(lanes))
            for lanes in found.rivals
        ),
        Line(_CLOCKS, _heights(found, found.lanes), COMPUTE, _lanes_in_words(found.lanes), 3),
        *(_nominal_marks(found) if found.nominal else ()),
        *(_measured_marks(found) if found.measured else ()),
        Drop(clock, counted, ""),
        Point(clock, counted, f"counted {_level(counted)}", INK, bold=True),
        Listing(tuple(_listing(found.machine, found.peak))),
    )


def _heights(found: Figures, lanes: int) -> tuple[float, float]:
    """FLOP/s at both ends of the clock's axis."""
    return 0, found.count(lanes, _HIGHEST)


def _lanes_in_words(lanes: int) -> str:
    return f"{lanes:,} {plural(lanes, 'lane')}"


def _high_up(found: Figures, value: float, words: str) -> str:
    """Lines on the axis itself get no label there, where one would cover the other: the sentences
    have their numbers."""
    return words if value > found.top / 20 else ""


def _level(value: float) -> str:
    """A height of the axis (FLOP/s) as the axis writes it: short enough to stand between lines."""
    return quantity(value, "FLOP/s", 4).removesuffix("FLOP/s")


def _nominal_marks(found: Figures) -> tuple[Mark, ...]:
    nominal = found.nominal
    label = _high_up(found, nominal, f"nominal {_level(nominal)}")
    return (dashed(_CLOCKS, (nominal, nominal), COMPUTE, label),)


def _measured_marks(found: Figures) -> tuple[Mark, ...]:
    measured, needed = found.measured, found.needed / _GIGA
    color = OVER if found.beats_its_peak else ROOM
    label = _high_up(found, measured, f"measured {_level(measured)}")
    low, high = min(measured, found.counted), max(measured, found.counted)
    found_marks: list[Mark] = [
        Line(_CLOCKS, (measured, measured), color, label, 2),
        Gap(found.clock / _GIGA, low, high, percent(found.of_counted)),
    ]
    if needed <= _CLOCKS[1]:
        clock = _high_up(found, measured, f"{significant(needed, 4)} GHz")
        found_marks += [Drop(needed, measured, clock), Point(needed, measured, "", color, "D")]
    shares = [Share("measured of counted", found.of_counted, _share_in_words(found.of_counted))]
    if found.nominal:
        of_nominal = measured / found.nominal
        shares.append(Share("measured of nominal", of_nominal, _share_in_words(of_nominal)))
    left, top, _, height = _RECT
    return (*found_marks, *bar_row(shares, left, 632, top + height + 48, places=2))


def _share_in_words(share: float) -> str:
    return percent(share) if share <= 1 else f"over: {percent(share)}"


def sentences(found: Figures) -> tuple[str, ...]:
    unit_name, lane = plural(found.units, found.machine.unit_name), plural(found.lanes, "lane")
    zeros = " x 2 for skipped zeros" if found.sparse else ""
    return (
        f"{found.units} {unit_name} x {found.lanes:,} {lane} x {found.flops_per_lane} FLOP x "
        f"{_gigahertz(found.clock)}{zeros} = {quantity(found.counted, 'FLOP/s', 4)} counted.",
        *_nominal_in_words(found),
        *(_measured_in_words(found) if found.measured else ()),
    )


def _gigahertz(clock: float) -> str:
    return f"{significant(clock / _GIGA, 4)} GHz"


def _nominal_in_words(found: Figures) -> list[str]:
    """What the catalogue prints for this peak, and what it does not know of it."""
    name, precision, peak = found.machine.name, found.precision, found.peak
    if not peak:
        return [
            f"{name} has no {precision} peak in the catalogue; what it does not know stays as it "
            "was set."
        ]
    dense = " dense" if found.sparse else ""
    said = [f"Nominal {precision} of {name}: {quantity(peak.flops, 'FLOP/s', 4)}{dense}."]
    unknown = [factor for factor, own in _own(found.machine, peak).items() if own is None]
    if unknown:
        said.append(
            f"Not in the catalogue: its {' and '.join(unknown)}; the count takes what is set here."
        )
    return said


def _measured_in_words(found: Figures) -> list[str]:
    others = " and ".join(
        f"{percent(found.measured / found.count(lanes, found.clock))} with {_lanes_in_words(lanes)}"
        for lanes in found.rivals
    )
    said = [
        f"Measured {quantity(found.measured, 'FLOP/s', 4)} is {percent(found.of_counted)} of the "
        f"counted peak; it takes a clock of at least {_gigahertz(found.needed)}.",
        f"It would be {others}.",
    ]
    if found.beats_its_peak:
        said.append("Nothing beats its own peak: one of the factors is wrong.")
    return said


def alt(found: Figures) -> str:
    return (
        f"Performance over clock: a straight line from zero for {found.lanes:,} lanes, "
        "fainter ones for half and twice as many, level lines for the nominal and the measured "
        f"rate. Beside it the peaks of {found.machine.name} by the unit that gives them."
    )


def _meaningless(machine: Machine, precision: str, peak: Peak | None) -> tuple[str, ...]:
    """The switches that change nothing for this peak."""
    hidden = []
    if len({one.accumulate for one in machine.peaks.get(precision, ())}) < 2:
        hidden.append("fp16_sums")
    if not _skips_zeros(peak):
        hidden.append("sparsity")
    return tuple(hidden)


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


def _listing(machine: Machine, chosen: Peak | None) -> Iterator[tuple]:
    """A heading for each kind of unit, below it the peaks that it gives; the chosen one is bold and
    has a dot."""
    yield ("", f"FLOP/clock/{machine.unit_name}", "TFLOP/s"), False, FAINT
    by_unit: dict[str, list[Peak]] = {}
    for peak in (one for options in machine.peaks.values() for one in options):
        by_unit.setdefault(peak.unit_kind or "all units", []).append(peak)
    for kind, peaks in by_unit.items():
        yield (kind if kind.endswith("s") else f"{kind}s", "", ""), False, COMPUTE
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


def _peak(machine: Machine, precision: str, fp16_sums: bool) -> Peak | None:
    """The Peak meant, the first one where fp16 sums have none of their own; None where the machine
    has no such precision."""
    options = machine.peaks.get(precision, (None,))
    if fp16_sums:
        for peak in options:
            if peak and peak.accumulate == "fp16":
                return peak
    return options[0]


def _skips_zeros(peak: Peak | None) -> bool:
    """Whether headlines of such a peak may count 2:4 sparsity."""
    return (
        peak is not None
        and peak.unit_kind in ("tensor core", "matrix core")
        and peak.precision != "fp64"
    )


def _own(machine: Machine, peak: Peak | None) -> dict[str, float | None]:
    """Units, lanes of one unit and clock (Hz) behind a peak; None where not known."""
    clock = peak and (peak.clock or machine.details.get("clock"))
    lanes = peak and peak.flop_per_clock_per_unit and int(peak.flop_per_clock_per_unit) // 2
    return {"units": machine.units, "lanes": lanes or None, "clock": clock or None}


def _round_up(value: float) -> float:
    """The next 1, 2, 3, 4, 6 or 8 times a power of ten, so that the axes stay while a slider moves
    a little."""
    power = 10.0 ** (len(f"{value:.0f}") - 1)
    return next(step * power for step in (1, 2, 3, 4, 6, 8, 10) if step * power >= value)


def _rates() -> list[float]:
    """0, then ten steps to each power of ten from 0.01 to 20000 TFLOP/s."""
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    rates = [float(f"{step}e{power}") for power in range(10, 17) for step in steps]
    return [0.0, *(rate for rate in rates if rate <= 20e15)]
