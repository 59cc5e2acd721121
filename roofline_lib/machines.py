"""Machines: peaks by precision, memory levels, and where each number comes from. The catalogue is
data/machines.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from roofline_lib.arguments import UnknownName, name_key, number, size, unknown
from roofline_lib.precisions import bytes_per_element
from roofline_lib.quantities import quantity
from roofline_lib.tables import read_table

_LISTED = "rl.machines() lists (python -m roofline_lib machines)"
_MAKERS = ("NVIDIA", "GeForce", "Tesla", "AMD", "Instinct")


@dataclass(frozen=True)
class Peak:
    """One peak rate (FLOP/s) with what belongs to its name: accumulate width, dense or sparse,
    unit, clock (Hz) and source."""

    flops: float
    precision: str = ""
    accumulate: str | None = None
    dense: bool = True
    unit_kind: str = ""
    clock: float | None = None
    flop_per_clock_per_unit: float | None = None
    source: str = "given by hand"
    status: str = ""  # V read at the vendor, T at a third party, R recalled and not verified


@dataclass(frozen=True, eq=False)
class Machine:
    """A chip. `peaks`: {precision: FLOP/s} or {precision: (Peak, ...)}; `bandwidths`: {level:
    byte/s}; `capacities`: {level: byte}.

    Peaks are dense. The first Peak of a precision is the one asked for by default. Errors:
    ValueError for a peak or bandwidth that is no positive number, UnknownName for a precision or
    level that this machine does not have: there is never a silent default.
    """

    name: str
    peaks: Mapping
    bandwidths: Mapping
    capacities: Mapping = field(default_factory=dict)
    units: int | None = None
    kind: str = ""
    unit_name: str = "unit"
    # the catalogue's own record: clocks, sources, conflicts
    details: Mapping = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a text; got {self.name!r}")
        for argument, unit, least in (
            ("peaks", "FLOP/s", 1),
            ("bandwidths", "byte/s", 1),
            ("capacities", "byte", 0),
        ):
            if (
                not isinstance(getattr(self, argument), Mapping)
                or len(getattr(self, argument)) < least
            ):
                names = "at least one name" if least else "names"
                raise ValueError(
                    f"{argument} must map {names} to a number ({unit}); "
                    f"got {getattr(self, argument)!r}"
                )
        peaks = {}
        for precision, given in self.peaks.items():
            bytes_per_element(precision)
            options = tuple(given) if isinstance(given, list | tuple) and given else (given,)
            peaks[precision] = tuple(
                p if isinstance(p, Peak) else Peak(p, precision) for p in options
            )
            for option in peaks[precision]:
                number(f"peaks[{precision!r}]", option.flops, "FLOP/s", above=0, single=True)
        bandwidths, capacities = (
            {
                level: number(f"{argument}[{level!r}]", value, unit, above=0, single=True)
                for level, value in getattr(self, argument).items()
            }
            for argument, unit in (("bandwidths", "byte/s"), ("capacities", "byte"))
        )
        if self.units is not None:
            size("units", self.units, "multiprocessors or cores", single=True)
        for name, value in {
            "peaks": peaks,
            "bandwidths": bandwidths,
            "capacities": capacities,
            "details": self.details,
        }.items():
            object.__setattr__(self, name, dict(value))

    @property
    def precisions(self) -> tuple[str, ...]:
        """The precisions that have a peak here."""
        return tuple(self.peaks)

    @property
    def levels(self) -> tuple[str, ...]:
        """The memory levels known here, those without a printed bandwidth included."""
        return tuple(dict.fromkeys((*self.bandwidths, *self.capacities)))

    def find_peak(self, precision: str, accumulate: str | None = None) -> Peak:
        """The Peak record: rate, accumulate width, clock and source."""
        bytes_per_element(precision)
        if precision not in self.peaks:
            raise UnknownName(
                f"{self.name} has no {precision} peak; choose one of {', '.join(self.peaks)}"
            )
        if accumulate is None:
            return self.peaks[precision][0]
        options = {peak.accumulate: peak for peak in reversed(self.peaks[precision])}
        if not isinstance(accumulate, str) or accumulate not in options:
            raise unknown(
                f"a {precision} peak of {self.name}: accumulate",
                accumulate,
                [a or "(not said)" for a in options],
            )
        return options[accumulate]

    def peak(self, precision: str, accumulate: str | None = None) -> float:
        """Dense peak in FLOP/s at a precision; `accumulate` ("fp16", "fp32") picks among
        several."""
        return float(self.find_peak(precision, accumulate).flops)

    def bandwidth(self, level: str = "DRAM") -> float:
        """Bandwidth of a memory level in byte/s. UnknownName where none is printed or measured."""
        if not isinstance(level, str) or level not in self.bandwidths:
            raise self._no_figure("bandwidth", level, self.bandwidths)
        return self.bandwidths[level]

    def capacity(self, level: str = "DRAM") -> float:
        """Bytes that a memory level holds (for one unit where each unit has its own)."""
        if not isinstance(level, str) or level not in self.capacities:
            raise self._no_figure("capacity", level, self.capacities)
        return self.capacities[level]

    def _no_figure(self, what: str, level: object, there: Mapping) -> UnknownName:
        """The error for a level without this figure; the level itself may be known."""
        if isinstance(level, str) and level in self.levels:
            known = f"; known are those of {', '.join(there)}" if there else ""
            return UnknownName(f"the {what} of {self.name}'s {level} is not known{known}")
        return unknown(f"a {what} of {self.name}: level", level, there)

    def ridge_point(
        self, precision: str, level: str = "DRAM", *, accumulate: str | None = None
    ) -> float:
        """FLOP/byte at which the two roofs meet: peak / bandwidth."""
        return self.peak(precision, accumulate) / self.bandwidth(level)

    def __repr__(self) -> str:
        peaks = ", ".join(f"{p} {quantity(self.peak(p), 'FLOP/s')}" for p in self.peaks)
        return f"{self.name}: {peaks}; " + ", ".join(
            f"{k} {quantity(v, 'byte/s')}" for k, v in self.bandwidths.items()
        )


def machine(name: str) -> Machine:
    """The machine of that name; case, spaces and hyphens do not matter, nor do the makers' words
    that drivers print before it ("NVIDIA GeForce RTX 3090"). UnknownName lists the nearest."""
    known = _by_key()
    words = name.split() if isinstance(name, str) else []
    while words:
        key = name_key(" ".join(words))
        if key in known:
            return known[key]
        if words[0] not in _MAKERS:
            break
        words = words[1:]
    raise unknown("machine", name, _catalogue(), where=_LISTED)


def machines() -> list[str]:
    """The names in the catalogue."""
    return list(_catalogue())


def as_machine(given: object) -> Machine:
    """A Machine as it is, or the one of that name."""
    if isinstance(given, Machine):
        return given
    if isinstance(given, str):
        return machine(given)
    raise ValueError(f"machine must be a Machine or the name of one; got {given!r}")


@cache
def _by_key() -> dict[str, Machine]:
    """{key: Machine} of every name and alias."""
    return {
        name_key(alias): found
        for name, found in _catalogue().items()
        for alias in (name, *found.details.get("aliases", ()))
    }


@cache
def _catalogue() -> dict[str, Machine]:
    tables = read_table("data/machines.toml")
    return {name: _from_table(name, table) for name, table in tables.items()}


def _from_table(name, table):
    fields = Peak.__dataclass_fields__
    peaks = {}
    for row in table["peaks"]:
        peaks.setdefault(row["precision"], []).append(
            Peak(**{k: v for k, v in row.items() if k in fields})
        )
    memory = table["memory"]
    return Machine(
        name,
        peaks,
        {row["level"]: row["bandwidth"] for row in memory if "bandwidth" in row},
        {row["level"]: row["capacity"] for row in memory if "capacity" in row},
        units=table.get("units"),
        kind=table.get("kind", ""),
        unit_name=table.get("unit_name", "unit"),
        details=table,
    )
