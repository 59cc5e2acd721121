"""Measurement records: one JSON file for each machine and run, read into classes.

data/measured/schema.json describes the format and its version. Everything is in SI units: FLOP,
byte, second, Hz, watt; temperatures are in degrees Celsius. A field that is None was not recorded.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from roofline_lib.arguments import parsed_json, short, unknown
from roofline_lib.extras import extra
from roofline_lib.model import Work
from roofline_lib.transformer import Transformer

FORMAT = "roofline_lib/measured"
VERSION = 1
BANDWIDTH_FAMILIES = ("read", "copy", "scale", "triad")
PRODUCT_FAMILIES = ("gemm_m", "gemm_n")
LEAST_REPEATS = 3


@dataclass(frozen=True)
class Chip:
    """What was measured, as the system or the driver describes it.

    `kind` is "CPU" or "GPU". `units` are multiprocessors, or the cores in use. `clock` (Hz) is the
    largest one of a GPU, the nominal one of a CPU. `capacities` is {memory level: byte}: a CPU's
    caches are summed over the cores in use, shared memory is that of one multiprocessor. `card` is
    a hash that tells two cards apart. Of a CPU there may be `clock_under_load` (Hz), measured right
    after products on all cores in use. `sources` say of a CPU where each factor of its counted peak
    comes from ("read: avx2", "assumed: ...", "convention: ..."), of a GPU which call each kind of
    point is made of.
    """

    kind: str
    name: str
    units: int
    unit_name: str
    clock: float | None
    capacities: Mapping[str, float]
    card: str | None = None
    memory_clock: float | None = None
    memory_bus_bits: float | None = None
    power_limit: float | None = None
    driver: str | None = None
    vector_flags: tuple[str, ...] | None = None
    clock_under_load: float | None = None
    sources: Mapping[str, str] | None = None

    @property
    def caches(self) -> list[tuple[float, str]]:
        """The caches as (byte, level), the smallest first."""
        return caches(self.capacities)


@dataclass(frozen=True)
class Settings:
    """How it was measured. `load_average` is the system's load before and after."""

    quick: bool
    repeats: int
    load_average: tuple[float, ...]
    threads: int | None = None
    pinned_by: str | None = None
    library: str | None = None
    graph: bool | None = None
    fp8: str | None = None
    ranks: int | None = None


@dataclass(frozen=True)
class Sustained:
    """The best that the points of a record show: `peaks` is {precision: FLOP/s} of matrix products,
    `bandwidths` {memory level: byte/s} of streams. Both are empty where nothing was timed."""

    peaks: Mapping[str, float] = field(default_factory=dict)
    bandwidths: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Absent:
    """What could not be measured, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Shape:
    """The sizes of what was timed. Each kind of point has a shape of its own."""

    @property
    def sizes(self) -> dict[str, Any]:
        """{name: size}, in the order of the class."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __str__(self) -> str:
        return " x ".join(f"{size:,.0f}" for size in self.sizes.values())


@dataclass(frozen=True)
class StreamShape(Shape):
    """A pass over arrays of so many `elements` each."""

    elements: float


@dataclass(frozen=True)
class ProductShape(Shape):
    """C[m, n] = A[m, k] @ B[k, n]."""

    m: int
    n: int
    k: int


@dataclass(frozen=True)
class ChainsShape(Shape):
    """`blocks` of `threads` each, and in every thread `width` independent chains of `steps`
    multiply-adds."""

    blocks: int
    threads: int
    width: int
    steps: int


@dataclass(frozen=True)
class OrderShape(Shape):
    """A product of several matrices: `dims` has one more entry than there are matrices."""

    dims: tuple[int, ...]

    def __str__(self) -> str:
        return " x ".join(f"{size:,}" for size in self.dims)


@dataclass(frozen=True)
class StepShape(Shape):
    """One decode step: a new token for each of `batch` sequences, which have `context` keys."""

    batch: int
    context: int


@dataclass(frozen=True)
class PrefillShape(Shape):
    """One pass of a model over `batch` prompts of `tokens` tokens."""

    batch: int
    tokens: int


@dataclass(frozen=True)
class MessageShape(Shape):
    """A collective among `ranks` ranks on an array of so many `bytes`: the whole array, all ranks'
    together for an all-to-all."""

    bytes: float
    ranks: int


@dataclass(frozen=True)
class SlicedShape(Shape):
    """An FFN, [m, d_model] by d_ff and back, whose width d_ff is shared by `ranks` chips."""

    m: int
    d_model: int
    d_ff: int
    ranks: int


_SHAPES = {
    frozenset(each.name for each in fields(kind)): kind
    for kind in (
        StreamShape,
        ProductShape,
        ChainsShape,
        OrderShape,
        StepShape,
        PrefillShape,
        MessageShape,
        SlicedShape,
    )
}


@dataclass(frozen=True)
class Timing:
    """The seconds of one execution: median, quartiles, and each repeat in the order of timing."""

    median: float
    q1: float
    q3: float
    repeats: tuple[float, ...]

    @classmethod
    def of(cls, seconds) -> "Timing":
        """The Timing of these repeats (s), kept to six digits."""
        q1, median, q3 = (six_digits(q) for q in np.quantile(seconds, [0.25, 0.5, 0.75]))
        return cls(median, q1, q3, tuple(six_digits(repeat) for repeat in seconds))

    @property
    def spread(self) -> float:
        """How far the quartiles are apart, as a share of the median."""
        return (self.q3 - self.q1) / self.median


@dataclass(frozen=True)
class Point:
    """One computation that was timed.

    `family` says which sweep it belongs to, `work` is what the model counts for it, and
    `working_set` (byte) is what is touched before anything is touched again: a point whose working
    set fits a cache can run above the DRAM roof. `clock` (Hz), `power` (W), `temperature` (degrees
    Celsius) and `power_capped` (share of the samples in which the power limit held the clock down)
    are averages over the timing. `kernels` is how many the device started for one execution, where
    a profiler counted them. `at` is when the timing began, in seconds since the start of the run as
    the samples count them.
    """

    family: str
    precision: str
    shape: Shape
    work: Work
    working_set: float
    timing: Timing
    label: str | None = None
    clock: float | None = None
    power: float | None = None
    temperature: float | None = None
    power_capped: float | None = None
    kernels: int | None = None
    at: float | None = None

    @property
    def seconds(self) -> float:
        """The median time of one execution (s)."""
        return self.timing.median

    @property
    def performance(self) -> float:
        """FLOP/s at the median time."""
        return self.work.flops / self.seconds

    @property
    def bandwidth(self) -> float:
        """byte/s at the median time."""
        return self.work.bytes_moved / self.seconds


@dataclass(frozen=True)
class Counts:
    """What hardware counters saw of one launch: its seconds, and the bytes that passed between two
    memories. `l2_to_sm` is read at the L2 slices, `l2_to_sm_crossbar` what arrives at the SMs."""

    seconds: float
    l2_to_sm: float | None = None
    sm_to_l2: float | None = None
    l2_to_sm_crossbar: float | None = None
    l1_loads: float | None = None
    dram_read: float | None = None
    dram_write: float | None = None


@dataclass(frozen=True)
class Traffic:
    """The bytes of one kernel for C[n, n] = A[n, n] @ B[n, n], counted at every launch.

    `kernel` is "tiled", "naive" or "library", and `tile` is (rows, columns) of C where the kernel
    is a tiled one of ours. `loads` are "through L1", "past L1" or the "library"'s own, `threads` of
    a naive kernel are "coalesced" (a warp takes neighbouring columns) or "strided" (rows).
    """

    kernel: str
    precision: str
    n: int
    tile: tuple[int, int] | None
    loads: str
    threads: str
    function: str
    repeats: tuple[Counts, ...]

    @property
    def median(self) -> Counts:
        """The median of each count over the repeats; None where a repeat lacks it."""
        medians: dict[str, Any] = {}
        for each in fields(Counts):
            values = [getattr(repeat, each.name) for repeat in self.repeats]
            medians[each.name] = None if None in values else float(np.median(values))
        return Counts(**medians)


@dataclass(frozen=True)
class Sample:
    """A look at the GPU, `at` seconds after the start. `power_capped` is 1 where the power limit
    held the clock down, else 0; None is what the driver did not give."""

    at: float
    clock: float | None
    power: float | None
    temperature: float | None
    power_capped: float


@dataclass(frozen=True)
class Record:
    """One run on one machine. `started` and `finished` are moments in UTC as text; `finished` is
    None where the run was interrupted, and then the points up to there are kept. `model` holds the
    fields of the Transformer whose steps were timed, None where none was. `cold_peaks` are
    {precision: FLOP/s} of a GPU's first 25 ms of work after a rest, before its power limit holds
    the clock down: what it does not sustain."""

    command: str
    started: str
    finished: str | None
    chip: Chip
    software: Mapping[str, str]
    settings: Settings
    sustained: Sustained = Sustained()
    absent: tuple[Absent, ...] = ()
    points: tuple[Point, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    samples: tuple[Sample, ...] = field(default=(), repr=False)
    model: Mapping[str, Any] | None = None
    cold_peaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def transformer(self) -> Transformer:
        """The model whose steps were timed. ValueError where the record has none."""
        if self.model is None:
            raise ValueError(f"record of {self.chip.name} has no model; measure one with --model")
        return Transformer(**self.model)

    @classmethod
    def from_json(cls, data: Mapping) -> "Record":
        """The Record of parsed JSON. ValueError says which place does not follow the schema."""
        return _read(_follows_schema(data))

    def to_json(self) -> dict:
        """The record as the format has it: nested dicts and lists, ready for the json module."""
        cold = {"cold_peaks": dict(self.cold_peaks)} if self.cold_peaks else {}
        model = {} if self.model is None else {"model": dict(self.model)}
        return {
            "schema": FORMAT,
            "version": VERSION,
            "command": self.command,
            "started": self.started,
            "finished": self.finished,
            "machine": _plain(self.chip),
            "software": dict(self.software),
            "settings": _plain(self.settings),
            "sustained": {} if self.sustained == Sustained() else _plain(self.sustained),
            **cold,
            "absent": _plain(self.absent),
            "points": [_written(point) for point in self.points],
            "traffic": _plain(self.traffic),
            "samples": _plain(self.samples),
            **model,
        }

    def select(self, *families: str, precision: str | None = None) -> list[Point]:
        """The points of these families, and only those in `precision` where one is named."""
        return [
            point
            for point in self.points
            if point.family in families and precision in (None, point.precision)
        ]

    def find(
        self, family: str, precision: str | None = None, label: str | None = None, **sizes: int
    ) -> Point:
        """The one point of this family, in this precision, with this label and these sizes of its
        shape (n=4096): what is not named may be anything. ValueError where there is none, and where
        there are several."""
        found = [
            point
            for point in self.select(family, precision=precision)
            if label in (None, point.label) and sizes.items() <= point.shape.sizes.items()
        ]
        if len(found) != 1:
            wanted = ", ".join(
                [str(word) for word in (family, precision, label) if word]
                + [f"{name}={size}" for name, size in sizes.items()]
            )
            raise ValueError(
                f"family, precision, label and sizes must fit one point; {wanted} fit {len(found)} "
                f"of the {len(self.points)} of {self.chip.name}"
            )
        return found[0]


def recorded() -> list[str]:
    """The names of the records that ship with the course."""
    return sorted(
        path.name.removesuffix(".json")
        for path in _folder().iterdir()
        if path.name.endswith(".json") and path.name != "schema.json"
    )


def load(name) -> Record:
    """The Record of that name (see `recorded`), or of a file whose path ends in .json.

    UnknownName for another name; ValueError where a file of one's own does not follow the schema.
    """
    if str(name).endswith(".json"):
        with open(name, "rb") as file:
            return Record.from_json(parsed_json(f"record {short(str(name))}", file.read()))
    if name not in recorded():
        raise unknown("record", name, recorded())
    return _shipped(name)


def save(record: Record, path) -> None:
    """Write a record as JSON, one point a line, so that a person can read it and git can compare
    it."""
    lines = []
    for key, value in record.to_json().items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in value)
            lines.append(f'"{key}": [\n  {rows}]')
        else:
            lines.append(f'"{key}": {json.dumps(value, allow_nan=False)}')
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",\n".join(lines) + "}\n")


def schema() -> dict:
    """The JSON schema of a record."""
    return json.loads(_folder().joinpath("schema.json").read_text(encoding="utf-8"))


def validate(record: Record) -> Record:
    """Return the record if its JSON follows the schema and every number in it is finite; ValueError
    says which place does not."""
    _follows_schema(record.to_json())
    return record


def caches(capacities: Mapping[str, float]) -> list[tuple[float, str]]:
    """The caches among these memory levels (L1, L2, ...) as (byte, level), the smallest first."""
    return sorted((size, level) for level, size in capacities.items() if level.startswith("L"))


def six_digits(value: float) -> float:
    """A figure as records keep it: rounded to six significant digits."""
    return float(f"{value:.6g}")


def _follows_schema(data):
    """The data as they are; ValueError with the place and the reason where they break the
    format."""
    jsonschema = extra("jsonschema")
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema()).iter_errors(data)
    )
    if error:
        raise ValueError(f"record, {error.json_path}: {error.message}")
    for place, value in _numbers(data, "$"):
        if not math.isfinite(value):
            raise ValueError(f"record, {place}: must be a finite number; got {value}")
    for i, point in enumerate(data["points"]):
        if frozenset(point["shape"]) not in _SHAPES:
            known = "; ".join(", ".join(each.name for each in fields(s)) for s in _SHAPES.values())
            raise ValueError(
                f"record, $.points[{i}].shape: must have the sizes of one kind of shape ({known}); "
                f"got {', '.join(point['shape'])}"
            )
    return data


def _numbers(value, place) -> Iterator[tuple[str, float]]:
    """Every float in nested JSON, with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{place}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _numbers(item, f"{place}[{i}]")
    elif isinstance(value, float):
        yield place, value


@cache
def _shipped(name):
    """A record of the course. Not validated: a test has done that, and it takes a while."""
    return _read(json.loads(_folder().joinpath(f"{name}.json").read_text(encoding="utf-8")))


def _read(data):
    """The Record of JSON that follows the schema."""
    return Record(
        command=data["command"],
        started=data["started"],
        finished=data["finished"],
        chip=Chip(**_with_tuples(data["machine"])),
        software=data["software"],
        settings=Settings(**_with_tuples(data["settings"])),
        sustained=Sustained(**data["sustained"]),
        absent=tuple(Absent(**row) for row in data["absent"]),
        points=tuple(_read_point(row) for row in data["points"]),
        traffic=tuple(_read_traffic(row) for row in data["traffic"]),
        samples=tuple(Sample(**row) for row in data["samples"]),
        model=data.get("model"),
        cold_peaks=data.get("cold_peaks", {}),
    )


def _read_point(row):
    rest = dict(row)
    shape = rest.pop("shape")
    return Point(
        shape=_SHAPES[frozenset(shape)](**_with_tuples(shape)),
        work=Work(rest.pop("flops"), rest.pop("bytes_moved")),
        timing=Timing(**rest.pop("seconds"), repeats=tuple(rest.pop("repeats"))),
        **rest,
    )


def _read_traffic(row):
    rest = dict(row)
    repeats = tuple(Counts(**repeat) for repeat in rest.pop("repeats"))
    return Traffic(**_with_tuples(rest), repeats=repeats)


def _with_tuples(row):
    """A dict whose lists are tuples, so that what is made of it cannot be changed."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _written(point):
    """A Point as the format has it, where its work and its timing stand flat."""
    row = _plain(point)
    work, timing = row.pop("work"), row.pop("timing")
    kept = {key: row.pop(key) for key in ("family", "precision", "shape")}
    working_set, repeats = row.pop("working_set"), timing.pop("repeats")
    return {**kept, **work, "working_set": working_set, "seconds": timing, "repeats": repeats} | row


def _plain(value):
    """Nested dataclasses as dicts and lists. What a class lists without a default is always there;
    of what has one, None is left out."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    if not hasattr(value, "__dataclass_fields__"):
        return value
    return {
        each.name: _plain(getattr(value, each.name))
        for each in fields(value)
        if getattr(value, each.name) is not None or each.default is not None
    }


def _folder():
    return resources.files("roofline_lib").joinpath("data/measured")
