"""Measure a machine against its roofline: `python -m roofline_lib measure`, or `measure()`.
Records: roofline_lib/data/measured/."""

import argparse
import os
import sys
from collections import Counter

from tqdm.auto import tqdm

from roofline_lib.machines import Machine
from roofline_lib.measuring import cpu, gpu
from roofline_lib.measuring.record import (
    efficiency,
    load,
    new_record,
    now,
    recorded,
    save,
    sustained,
    validate,
    work_of,
)
from roofline_lib.measuring.verdicts import explain, launch_floor, regime, sheet, verdict

__all__ = [
    "efficiency",
    "explain",
    "launch_floor",
    "load",
    "main",
    "measure",
    "recorded",
    "regime",
    "save",
    "sheet",
    "sustained",
    "validate",
    "verdict",
    "work_of",
]


def measure(
    device="auto", quick=False, threads=None, repeats=None, progress=True, command="measure()"
):
    """Measure and return a record: a dict that `validate` checks, `save` writes and
    `rl.Machine.from_record` makes roofs of.

    device: "cpu", "gpu" (CUDA through torch or cupy), or "auto": the GPU where there is one. Ctrl-C
    ends early and returns what is there, with `finished` left empty. ValueError for another device,
    fewer than 1 thread or 3 repeats, or "gpu" where there is none.
    """
    if device not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device must be auto, cpu or gpu; got {device!r}")
    threads, repeats = (
        len(cpu.cpus()) if threads is None else threads,
        (3 if quick else 7) if repeats is None else repeats,
    )
    if threads < 1 or repeats < 3:
        raise ValueError(
            f"threads must be at least 1 and repeats at least 3; got {threads} and {repeats}"
        )
    library = None if device == "cpu" else gpu.library()
    if device == "gpu" and library is None:
        raise ValueError(
            "device 'gpu' needs torch or cupy and a CUDA device that it sees; choose cpu"
        )
    setup = (
        gpu.prepare(library, quick, repeats) if library else cpu.prepare(threads, quick, repeats)
    )
    record = new_record(
        setup, {"quick": quick, "repeats": repeats, "load_average": _load()}, command
    )
    try:
        for name, job in tqdm(setup.jobs, disable=not progress, unit="point"):
            try:
                record["points"].append(job())
            except (MemoryError, RuntimeError) as error:
                record["absent"].append(
                    {"what": name, "why": str(error).strip().splitlines()[0][:200]}
                )
        record["finished"] = now()
    except KeyboardInterrupt:
        print(
            f"interrupted: the record holds {len(record['points'])} of {len(setup.jobs)} points",
            file=sys.stderr,
        )
    finally:
        setup.close()
    record["settings"]["load_average"] += _load()
    record["sustained"] = sustained(record["points"], record["machine"]["capacities"])
    return record


def main(argv=None):
    """The `measure` sub-command. Returns the exit status: 0, or 2 for arguments that do not fit."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib measure",
        description="Time this machine and write one JSON record.",
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="default: the GPU where there is one",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer sizes and shorter blocks: under 30 s on two cores",
    )
    parser.add_argument(
        "--threads", type=int, help="CPU threads; default: every processor this process may use"
    )
    parser.add_argument("--repeats", type=int, help="timed blocks a point; default 7, quick 3")
    parser.add_argument(
        "--out", default="roofline_record.json", help="where the record goes (default: %(default)s)"
    )
    argv = sys.argv[2:] if argv is None else argv
    options = parser.parse_args(argv)
    try:
        # a path that cannot be written is found out now, not after the run
        open(options.out, "a").close()
    except OSError as error:
        print(f"--out must be a file that can be written: {error}", file=sys.stderr)
        return 2
    try:
        record = measure(
            options.device,
            options.quick,
            options.threads,
            options.repeats,
            command=" ".join([parser.prog, *argv]),
        )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    save(record, options.out)
    for absent in record["absent"]:
        print(f"not measured: {absent['what']}: {absent['why']}")
    counts = ", ".join(
        f"{count} {family}"
        for family, count in Counter(p["family"] for p in record["points"]).items()
    )
    print(f"{options.out}: {record['machine']['name']}, {counts or 'nothing'}")
    if record["sustained"]["peaks"] and record["sustained"]["bandwidths"]:
        print(f"sustained: {Machine.from_record(record)}")
    print(f"in a notebook: rl.MeasuredExplorer({options.out!r}, precision='fp32') draws it")
    return 0


def _load():
    return [round(os.getloadavg()[0], 2)] if hasattr(os, "getloadavg") else []
