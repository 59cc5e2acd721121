"""The chip catalogue in words: `python -m roofline_lib machines [NAME]`."""

import sys

from roofline_lib.arguments import UnknownName
from roofline_lib.links import links
from roofline_lib.machines import machine, machines
from roofline_lib.peaks import memory_bandwidth, peak_flops
from roofline_lib.quantities import plural, quantity

STATUS = {
    "V": "vendor's text",
    "T": "third party citing the vendor",
    "R": "recalled, verified by nobody here",
    "measured": "measured",
    "derived": "computed from units and clock",
    "defined": "defined for this course",
}


def main(argv: list[str]) -> int:
    """The command: all chips, or the one whose name follows. Gives the exit code, 2 for a name that
    is not known."""
    if argv[:1] in (["-h"], ["--help"]):
        print(
            "usage: python -m roofline_lib machines [NAME]\n\n"
            "All chips, or one; case, spaces and hyphens do not matter."
        )
        return 0
    try:
        print(description(" ".join(argv)) if argv else catalogue())
    except UnknownName as unknown:
        print(unknown, file=sys.stderr)
        return 2
    return 0


def catalogue() -> str:
    """One line a chip: 16-bit and fp32 peak, DRAM bandwidth, ridge point. A question mark stands at
    a figure that nobody verified."""
    rows = [("chip", "kind", "16-bit", "fp32", "DRAM", "ridge, 16-bit")]
    for chip in map(machine, machines()):
        half = next((p for p in ("bf16", "fp16") if p in chip.peaks), None)
        peaks = [
            _marked(_peak(chip, p), "FLOP/s", "flops") if p in chip.peaks else "-"
            for p in (half, "fp32")
        ]
        ridge = quantity(chip.ridge_point(half), "FLOP/byte") if half else "-"
        rows.append(
            (
                chip.name,
                chip.kind,
                *peaks,
                _marked(_memory(chip, "DRAM"), "byte/s", "bandwidth"),
                ridge,
            )
        )
    return "\n".join(
        [
            *_table(rows),
            "",
            "Peaks are dense, a multiply-add is 2 FLOP; ? marks a figure that nobody verified.",
            "python -m roofline_lib machines NAME prints one chip with its sources.",
        ]
    )


def description(name: str) -> str:
    """Everything that the catalogue knows of one chip, sources, conflicts and failed identities
    included. UnknownName lists the nearest."""
    chip = machine(name)
    record, sources = chip.details, []

    def cited(entry):
        text = f"{STATUS[entry['status']]}: {entry['source']}"
        if text not in sources:
            sources.append(text)
        return f"[{sources.index(text) + 1}]" + ("  NOT VERIFIED" if entry["status"] == "R" else "")

    units = f", {plural(record['units'], chip.unit_name)}"
    lines = [
        f"{chip.name}: {chip.kind}{units}"
        + (f", {quantity(record['clock'], 'Hz', 4)}" if "clock" in record else "")
    ]
    rows = [
        (
            "peak",
            "accumulate",
            "dense",
            f"FLOP/clock/{chip.unit_name}",
            "counted",
            "ridge point",
            "unit",
            "source",
        )
    ]
    for entry in record["peaks"]:
        counted = counted_peak(record, entry)
        rows.append(
            (
                entry["precision"],
                entry.get("accumulate", "not said"),
                quantity(entry["flops"], "FLOP/s", 4),
                str(entry.get("flop_per_clock_per_unit", "-")),
                quantity(counted, "FLOP/s", 4) if counted else "-",
                quantity(entry["flops"] / chip.bandwidth(), "FLOP/byte", 4),
                entry.get("unit_kind", "-"),
                cited(entry),
            )
        )
    lines += ["", *_table(rows)]
    levels = [("memory", "bandwidth", "counted", "capacity", "source")]
    for entry in record["memory"]:
        counted = counted_bandwidth(entry)
        levels.append(
            (
                entry["level"],
                quantity(entry["bandwidth"], "byte/s", 4)
                if "bandwidth" in entry
                else "not printed",
                quantity(counted, "byte/s", 4) if counted else "-",
                _capacity(entry) + (f" a {chip.unit_name}" if entry.get("per_unit") else ""),
                cited(entry),
            )
        )
    lines += ["", *_table(levels), *_joined_by(chip)]
    for title, notes in (
        ("Sources disagree, and what else to know:", record.get("conflicts", ())),
        (
            "Counting units and clocks misses the printed figure:",
            _grouped(record.get("identity_exceptions", {})),
        ),
        ("Cannot be counted:", _grouped(record.get("unchecked", {}))),
        ("Sources:", [f"[{i}] {text}" for i, text in enumerate(sources, 1)]),
    ):
        if notes:
            lines += ["", title, *("  " + note for note in notes)]
    return "\n".join(lines)


def _joined_by(chip):
    """The links of a chip, one a line under a title; nothing where the catalogue has none."""
    try:
        found = links(chip)
    except UnknownName:
        return []
    return ["", "Links:", *(f"  {link}" for link in found)]


def counted_peak(record, entry):
    """units x FLOP per clock x the chip's clock (FLOP/s) for one peak of a catalogue record, or
    None where it lacks one of them."""
    if "flop_per_clock_per_unit" not in entry or "clock" not in record:
        return None
    return peak_flops(record["units"], entry["flop_per_clock_per_unit"], record["clock"], 1)


def counted_bandwidth(level):
    """Bus width x transfer rate (byte/s) of one memory record, or None where the catalogue lacks
    them."""
    return (
        memory_bandwidth(level["clock"], level["bus_bits"], level["transfers_per_clock"])
        if "bus_bits" in level
        else None
    )


def _capacity(entry):
    if "capacity" not in entry:
        return "not printed"
    value = entry["capacity"]
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        # caches come in powers of two, DRAM in decimal
        if isinstance(value, int) and value >= size and value % size == 0:
            return f"{value // size} {unit}"
    return quantity(value, "byte")


def _grouped(reasons):
    """{name: reason} as lines, names with one reason together."""
    return [
        f"{', '.join(n for n in reasons if reasons[n] == reason)}: {reason}"
        for reason in dict.fromkeys(reasons.values())
    ]


def _memory(chip, level):
    return next(record for record in chip.details["memory"] if record["level"] == level)


def _peak(chip, precision):
    return next(record for record in chip.details["peaks"] if record["precision"] == precision)


def _marked(record, unit, field):
    return quantity(record[field], unit) + ("?" if record["status"] == "R" else "")


def _table(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
