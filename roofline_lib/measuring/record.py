"""Measurement records: one JSON file per machine and run. data/measured/schema.json describes and
versions the format."""

import json
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources

import numpy as np

from roofline_lib.arguments import unknown
from roofline_lib.model import Work, bound

VERSION = 1


def recorded():
    """The names of the records that ship with the course."""
    return sorted(
        p.name.removesuffix(".json")
        for p in _folder().iterdir()
        if p.name.endswith(".json") and p.name != "schema.json"
    )


def load(name):
    """The record of that name (see `recorded`), or of a path that ends in .json, as a dict."""
    if str(name).endswith(".json"):
        with open(name, encoding="utf-8") as file:
            return json.load(file)
    if name not in recorded():
        raise unknown("record", name, recorded())
    return json.loads(_folder().joinpath(f"{name}.json").read_text(encoding="utf-8"))


def save(record, path):
    """Write a record as JSON, one point a line, so that a person can read it and git can compare
    it."""
    lines = []
    for key, value in record.items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, allow_nan=False) for row in value)
            lines.append(f'"{key}": [\n  {rows}]')
        else:
            lines.append(f'"{key}": {json.dumps(value, allow_nan=False)}')
    with open(path, "w", encoding="utf-8") as file:
        file.write("{" + ",\n".join(lines) + "}\n")


def schema():
    """The JSON schema of a record."""
    return json.loads(_folder().joinpath("schema.json").read_text(encoding="utf-8"))


def validate(record):
    """Return the record if it follows the schema and every number in it is finite; ValueError says
    which place does not."""
    import jsonschema

    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema()).iter_errors(record)
    )
    if error:
        raise ValueError(f"record, {error.json_path}: {error.message}")
    for place, value in _numbers(record, "$"):
        if not math.isfinite(value):
            raise ValueError(f"record, {place}: must be a finite number; got {value}")
    return record


@dataclass
class Setup:
    """What a device module prepares: the schema's `machine`, versions, settings, [(name, function
    that gives a point)], what is absent."""

    machine: dict
    software: dict
    settings: dict
    jobs: list
    absent: list
    samples: list = field(default_factory=list)
    close: Callable = lambda: None


def new_record(setup, settings, command):
    """A record without points. `samples` goes on filling while the device module's own thread adds
    to it."""
    software = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "numpy": np.__version__,
        **setup.software,
    }
    return {
        "schema": "roofline_lib/measured",
        "version": VERSION,
        "command": command,
        "started": now(),
        "finished": None,
        "machine": setup.machine,
        "software": software,
        "settings": settings | setup.settings,
        "sustained": {},
        "absent": setup.absent,
        "points": [],
        "traffic": [],
        "samples": setup.samples,
    }


def now():
    """This moment in UTC, to the second, as text."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def point(family, precision, shape, work, seconds, working_set, **more):
    """One measured point. `seconds` holds one time per repeat, of one execution; `working_set`
    (byte) is what is touched before anything is touched again: a point whose working set fits a
    cache can run above the DRAM roof."""
    q1, median, q3 = np.quantile(seconds, [0.25, 0.5, 0.75])
    return {
        "family": family,
        "precision": precision,
        "shape": shape,
        "flops": work.flops,
        "bytes_moved": work.bytes_moved,
        "working_set": float(working_set),
        "seconds": _digits({"median": median, "q1": q1, "q3": q3}),
        "repeats": [_digits(s) for s in seconds],
        **_digits(more),
    }


def work_of(measured):
    """The Work that the model counts for a point."""
    return Work(measured["flops"], measured["bytes_moved"])


def efficiency(measured, machine):
    """Measured over attainable: the bound's time / the median time. Above 1 where the point stands
    above the machine's roof."""
    return (
        bound(work_of(measured), machine, measured["precision"]).time
        / measured["seconds"]["median"]
    )


def sustained(points, capacities):
    """What a record's own points kept up: the best GEMM rate of each precision, and the best
    bandwidth of each memory level.

    A bandwidth point belongs to the smallest cache that holds its working set with room to spare
    (70 %), to DRAM when four times the largest cache pass between two uses of a number, and to none
    between. A cache that reads no faster than the level below it gets no figure: there it was the
    cost of a call that was timed. Returns {"peaks": {precision: FLOP/s}, "bandwidths": {level:
    byte/s}}.
    """
    peaks, found = {}, {}
    caches = sorted((size, level) for level, size in capacities.items() if level.startswith("L"))
    for p in points:
        seconds = p["seconds"]["median"]
        if p["family"] in ("gemm_m", "gemm_n"):
            peaks[p["precision"]] = max(peaks.get(p["precision"], 0.0), p["flops"] / seconds)
        elif p["family"] in BANDWIDTH_FAMILIES:
            fits = [level for size, level in caches if p["working_set"] <= 0.7 * size]
            # a triad comes back to `a` after two of three arrays
            between = p["working_set"] * (2 / 3 if p["family"] == "triad" else 1)
            # in whole elements, four caches are a few bytes less
            far = not caches or between > 3.99 * caches[-1][0]
            for level in fits[:1] or ["DRAM"] * far:
                found[level] = max(found.get(level, 0.0), p["bytes_moved"] / seconds)
    bandwidths = {}
    for level in ("DRAM", *(level for _, level in reversed(caches))):
        if found.get(level, 0.0) > max(bandwidths.values(), default=0.0):
            bandwidths[level] = found[level]
    return {"peaks": _digits(peaks), "bandwidths": _digits(bandwidths)}


BANDWIDTH_FAMILIES = ("read", "copy", "scale", "triad")


def settle(run, seconds, warm_up):
    """Warm up, and find the count for one timed block. `run(count)` executes `count` times and
    returns the seconds that took.

    Executions are doubled until a block lasts half of `seconds` and `warm_up` seconds have gone by:
    start-up and timer noise do not count.
    """
    count, spent = 1, run(1)
    while True:
        elapsed = run(count)
        spent += elapsed
        if elapsed < seconds / 2:
            count *= 2
        elif spent >= warm_up:
            return count


def _digits(value):
    if isinstance(value, dict):
        return {key: _digits(item) for key, item in value.items()}
    return value if isinstance(value, str) or value is None else float(f"{value:.6g}")


def _numbers(value, place):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{place}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _numbers(item, f"{place}[{number}]")
    elif isinstance(value, float):
        yield place, value


def _folder():
    return resources.files("roofline_lib").joinpath("data/measured")
