"""The command line: `python -m roofline_lib measure`."""

import argparse
import os
import sys
from collections import Counter

from roofline_lib.measuring.links import fits
from roofline_lib.measuring.record import Record, save
from roofline_lib.measuring.roofs import sustained_roof
from roofline_lib.measuring.run import measure
from roofline_lib.quantities import quantity


def main(argv: list[str]) -> int:
    """Measure and write a record. Returns the exit status: 0, or 2 for arguments that do not
    fit."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.ranks is not None and not options.links:
        parser.error("--ranks goes with --links")
    new = not os.path.exists(options.out)
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
            model=options.model,
            ranks=(options.ranks or 0) if options.links else None,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        if new:
            os.remove(options.out)
        return 2
    save(record, options.out)
    print(_summary(record, options.out))
    return 0


def _parser():
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
        "--model",
        help="time a whole model with random weights instead: a preset's name such as llama-3-8b, "
        "a config.json, or laptop for a small one",
    )
    parser.add_argument(
        "--links",
        action="store_true",
        help="time collectives between the GPUs instead, or between processes on a CPU",
    )
    parser.add_argument(
        "--ranks", type=int, help="with --links: how many GPUs or processes (default: all GPUs)"
    )
    parser.add_argument(
        "--out", default="roofline_record.json", help="where the record goes (default: %(default)s)"
    )
    return parser


def _summary(record: Record, path: str) -> str:
    """What was measured, what was not, and how to see it, a line each."""
    lines = [f"not measured: {absent.what}: {absent.why}" for absent in record.absent]
    families = Counter(point.family for point in record.points)
    counts = ", ".join(f"{count} {family}" for family, count in families.items())
    lines.append(f"{path}: {record.chip.name}, {counts or 'nothing'}")
    for name, fit in fits(record.points).items():
        lines.append(
            f"{name}: {quantity(fit.latency, 's')} +- {quantity(fit.latency_error, 's')}, "
            f"{quantity(fit.bandwidth, 'byte/s')} +- {quantity(fit.bandwidth_error, 'byte/s')}"
        )
    if record.settings.ranks:
        return "\n".join(lines)
    if record.sustained.peaks and record.sustained.bandwidths:
        lines.append(f"sustained: {sustained_roof(record)}")
    if "DRAM" not in record.sustained.bandwidths:
        lines.append("no stream surely came from DRAM: there is no roof to draw")
    lines.append(f"in a notebook: rl.MeasuredExplorer({path!r}, precision='fp32') draws it")
    return "\n".join(lines)
