"""The command line: `python -m roofline_lib measure`."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from roofline_lib.measuring.links import fits
from roofline_lib.measuring.record import Record, save
from roofline_lib.measuring.roofs import sustained_roof
from roofline_lib.measuring.run import measure
from roofline_lib.quantities import quantity

PROGRAM = "python -m roofline_lib measure"


def measured(options: argparse.Namespace, argv: Sequence[str]) -> tuple[int, Record | None]:
    """Measure as the options say and write a record: (0, the record), or (2, None) for arguments
    that do not fit. `argv` is what was typed."""
    if wrong := _do_not_go_together(options):
        print(wrong, file=sys.stderr)
        return 2, None
    options.out = options.out or _default_name(options)
    if not options.out.endswith(".json"):
        # whoever reads records knows a file by its ending
        print(f"--out must end in .json; got {options.out}", file=sys.stderr)
        return 2, None
    new = not os.path.exists(options.out)
    try:
        # a path that cannot be written is found out now, not after the run
        open(options.out, "ab").close()
    except OSError as error:
        print(f"--out must be a file that can be written: {error}", file=sys.stderr)
        return 2, None
    try:
        record = measure(
            "cpu" if options.lab else options.device,
            options.quick or options.lab,
            options.threads,
            options.repeats,
            command=" ".join([PROGRAM, *argv]),
            model=options.model,
            ranks=(options.ranks or 0) if options.links else None,
        )
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        if new:
            os.remove(options.out)
        return 2, None
    save(record, options.out)
    print(_summary(record, options.out))
    return 0, record


def _default_name(options):
    """A file for each kind of record, so that one does not replace another."""
    kinds = {"links": options.links, "model": options.model, "lab": options.lab}
    return f"roofline_{next((kind for kind, asked in kinds.items() if asked), 'record')}.json"


def _do_not_go_together(options):
    if options.model and options.links:
        return "--model and --links are timed one at a time: choose one"
    if options.ranks is not None and not options.links:
        return "--ranks goes with --links"
    if options.ranks is not None and options.ranks < 2:
        return f"--ranks must be at least 2 (GPUs or processes); got {options.ranks}"
    if options.threads is not None and (options.links or options.device == "gpu"):
        return "--threads are those of a CPU: it goes with neither --links nor --device gpu"
    if options.lab and (options.links or options.model or options.device == "gpu"):
        return (
            "--lab draws the products of a CPU: it goes with none of --links, --model, --device gpu"
        )
    return ""


def parser() -> argparse.ArgumentParser:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
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
        "--lab",
        action="store_true",
        help="your own curve: products over m = 1 to 1024, a minute at most, and a picture beside "
        "the record with the model, the counted peak and an H200's",
    )
    parser.add_argument(
        "--out",
        help="where the record goes (default: roofline_record.json, of links, models and labs "
        "roofline_links.json, roofline_model.json and roofline_lab.json)",
    )
    return parser


def _rates(peaks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {quantity(rate, 'FLOP/s')}" for name, rate in peaks.items())


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
    if record.cold_peaks:
        lines.append(f"cold, the first 25 ms: {_rates(record.cold_peaks)}")
    issued: dict[str, float] = {}
    for point in record.select("issue"):
        issued[point.precision] = max(issued.get(point.precision, 0.0), point.performance)
    if issued:
        lines.append(f"one instruction, issued: {_rates(issued)}")
    if "DRAM" not in record.sustained.bandwidths:
        lines.append("no stream surely came from DRAM: there is no roof to draw")
    lines.append(f"in a notebook: rl.MeasuredExplorer({path!r}, precision='fp32') draws it")
    return "\n".join(lines)
