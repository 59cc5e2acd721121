"""Write docs/roofline_vs_measured.md and .csv from the recorded measurements: the bound that the
model predicts against what was measured.

    python tools/roofline_vs_measured.py

Nothing is left out and nothing is clamped: every point of every record in
roofline_lib/data/measured counts.
"""

import csv
import io
import re
import textwrap
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from measured_steps import link_section, model_section, prefill_section

import roofline_lib as rl
from roofline_lib.measuring import load, recorded
from roofline_lib.measuring.record import BANDWIDTH_FAMILIES, PRODUCT_FAMILIES, Point
from roofline_lib.measuring.roofs import nominal_roof, sustained_roof
from roofline_lib.measuring.verdicts import efficiency, explain, launch_floor, regime, verdict
from roofline_lib.quantities import significant

DOCS = Path(__file__).resolve().parents[1] / "docs"
SHEET = rl.machine("H200 SXM")
KINDS = {
    "gemm_n": "product, n = m = k",
    "gemm_m": "product over m",
    "steady": "one product, 8 s",
    "cold": "one product after a rest",
    "issue": "one instruction, issued",
    "chain_width": "multiply-add chains",
    "chain_order": "product of three",
} | dict.fromkeys(BANDWIDTH_FAMILIES, "stream")
REGIMES = ("cache", "memory", "ridge", "compute")


def main():
    for name, text in files().items():
        (DOCS / name).write_text(text, encoding="utf-8")


def files():
    """{name: text} of the page and of the table of all points."""
    records = {name: load(name) for name in recorded()}
    single = {name: record for name, record in records.items() if is_of_single_operators(record)}
    rows = [row for name, record in single.items() for row in pairs(name, record)]
    page = (
        "\n\n".join(
            folded(block)
            for part in (*sections(single, rows), *measured_steps(records))
            for block in part.strip().split("\n\n")
        )
        + "\n"
    )
    return {"roofline_vs_measured.md": page, "roofline_vs_measured.csv": table_of_all(rows)}


def is_of_single_operators(record):
    """Whether a record holds streams and products, or bytes counted; not a model's steps, not what
    a link carries."""
    return record.model is None and not record.select("all_reduce")


def measured_steps(records):
    """The sections on whole models and on links, after those on single operators."""
    models = {
        name: record
        for name, record in records.items()
        if record.model and record.chip.kind == "GPU" and not record.settings.quick
    }
    links = {name: record for name, record in records.items() if record.select("all_reduce")}
    yield model_section(models, table, quantiles)
    yield prefill_section(models, table)
    for name, record in links.items():
        yield link_section(name, record, table)


def folded(block):
    """A paragraph or a numbered list in lines of 120; tables and headings as they are."""
    if block.startswith(("|", "#")):
        return block
    items = re.split(r"\n(?=\d\. )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(item.split()),
            120,
            subsequent_indent="   " * (len(items) > 1),
            break_on_hyphens=False,
        )
        for item in items
    )


@dataclass(frozen=True)
class Row:
    """One point of a record, what the model says of it on both roofs, and what was measured. The
    fields up to the last one are the columns of the CSV."""

    record: str
    machine: str
    family: str
    precision: str
    shape: str
    label: str
    regime: str
    flops: float
    bytes_moved: float
    bound_on_sheet_s: float
    measured_s: float
    measured_over_attainable_sheet: float
    measured_over_attainable_sustained: float
    point: Point


def pairs(name, record):
    """A Row for each point of a record."""
    if not record.points:
        return
    nominal, sustained = nominal_roof(record), sustained_roof(record)
    for point in record.points:
        yield Row(
            record=name,
            machine=record.chip.kind,
            family=point.family,
            precision=point.precision,
            shape=" ".join(f"{key}={said(size)}" for key, size in point.shape.sizes.items()),
            label=point.label or "",
            regime=regime(point, nominal),
            flops=point.work.flops,
            bytes_moved=point.work.bytes_moved,
            bound_on_sheet_s=rl.bound(point.work, nominal, point.precision).time,
            measured_s=point.seconds,
            measured_over_attainable_sheet=efficiency(point, nominal),
            measured_over_attainable_sustained=efficiency(point, sustained),
            point=point,
        )


def said(size):
    """A size of a shape as the table has it."""
    if isinstance(size, tuple):
        return str(list(size))
    return f"{size:g}" if isinstance(size, float) else str(size)


def table_of_all(rows):
    file = io.StringIO()
    columns = [each.name for each in fields(Row) if each.name != "point"]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [getattr(row, column) for column in columns]
        writer.writerow([f"{value:.5g}" if isinstance(value, float) else value for value in values])
    return file.getvalue()


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def quantiles(values):
    return [f"{value:.3f}" for value in np.quantile(values, [0, 0.25, 0.5, 0.75, 1])]


def by_regime(rows):
    """The table of quantiles: one line for each kind of point, precision and regime, with its
    count."""
    found = {}
    for row in rows:
        key = (KINDS[row.family], row.precision, row.regime)
        found.setdefault(key, []).append(row)
    order = sorted(
        found, key=lambda key: (list(KINDS.values()).index(key[0]), key[1], REGIMES.index(key[2]))
    )
    lines = []
    for key in order:
        on_sheet = [row.measured_over_attainable_sheet for row in found[key]]
        on_sustained = [row.measured_over_attainable_sustained for row in found[key]]
        lines.append([*key, len(found[key]), *quantiles(on_sheet), *quantiles(on_sustained)])
    head = ["what", "precision", "regime", "points"]
    for roof in ("sheet", "sustained"):
        head += [f"{roof} {q}" for q in ("min", "25 %", "median", "75 %", "max")]
    return table(head, lines)


def sections(records, rows):
    gpus = {
        name: record
        for name, record in records.items()
        if record.chip.kind == "GPU" and record.points
    }
    counters = {name: record for name, record in records.items() if record.traffic}
    on_gpu, on_cpu = ([row for row in rows if row.machine == kind] for kind in ("GPU", "CPU"))
    counts = sum(len(record.traffic) for record in counters.values())
    yield f"""
# The roofline against measurement

This page is written by `python tools/roofline_vs_measured.py` from the records in
`roofline_lib/data/measured/`. It holds {len(rows) + counts:,} pairs of a figure that the model
gives and a figure that was measured: {len(on_gpu)} timed points of H200 cards, {len(on_cpu)} of a
CPU, and {counts} counts of bytes. None was dropped and none was clamped. All timed points stand,
one a line, in [roofline_vs_measured.csv](roofline_vs_measured.csv).

The ratio below is measured over attainable: the least time that the model allows, divided by the
median time. 1 is the roof. The *sheet's* roof is what the vendor prints; the *sustained* roof is
the best that the same record shows, the fastest product of each precision and the fastest stream
from DRAM. Bytes are compulsory traffic, counted at DRAM. Regimes: *memory* is left of half the
ridge point, *compute* right of twice the ridge point, *ridge* between them; *cache* holds the
streams whose arrays are no larger than twice the last cache."""
    yield f"""
## Records

{table_of_records(records)}

The same card hash is the same card. A load near the number of cores means that the processor was
not ours alone."""
    yield "## H200: measured over attainable\n\n" + by_regime(on_gpu)
    yield optimistic(gpus, on_gpu)
    yield above_the_sheet(on_gpu)
    yield cold_and_issued(gpus)
    yield spread(gpus)
    yield traffic(counters)
    for name in dict.fromkeys(row.record for row in on_cpu):
        yield cpu_section(name, records[name], [row for row in on_cpu if row.record == name])


def table_of_records(records):
    lines = []
    for name, record in records.items():
        libraries = [lib for lib in ("torch", "openblas", "numpy") if lib in record.software]
        lines.append(
            [
                name,
                record.chip.name,
                record.chip.card or "",
                record.started[:10],
                ", ".join(f"{lib} {record.software[lib]}" for lib in libraries),
                ", ".join(f"{load:.2f}" for load in record.settings.load_average),
                len(record.points),
                len(record.traffic),
            ]
        )
    head = ["record", "machine", "card", "date", "library", "load before, after"]
    return table([*head, "points", "byte counts"], lines)


def above_the_sheet(rows):
    above = [row for row in rows if row.measured_over_attainable_sheet > 1]
    lines = [
        [
            row.record,
            row.family,
            rl.quantity(row.point.working_set, "byte"),
            f"{row.measured_over_attainable_sheet:.3f}",
            ", ".join(verdict(row.point, SHEET).suspects),
        ]
        for row in above
    ]
    return f"""
### Points above the sheet's roof

{len(above)} of {len(rows)}. Each gets the library's verdict, and each verdict is the same: *cache
level*. They are streams whose arrays stay in the 60 MiB of L2.

{table(["record", "family", "working set", "ratio", "suspects"], lines)}"""


def optimistic(gpus, rows):
    first, record = next(iter(gpus.items()))
    kept_up = sustained_roof(record)
    (steady,) = record.select("steady")
    peak = SHEET.find_peak("bf16")
    allowed = rl.peak_flops(SHEET.units, peak.flop_per_clock_per_unit / 2, steady.clock)
    floors = {p: rl.quantity(launch_floor(record, p), "s") for p in ("bf16", "fp32")}
    under = np.mean([row.measured_over_attainable_sheet < 0.5 for row in rows])
    chains = max(row.measured_over_attainable_sheet for row in rows if row.family == "chain_width")
    copies = record.select("copy")
    half, large = (rl.quantity(copies[i].bandwidth, "byte/s") for i in (-4, -1))
    kept, printed = kept_up.bandwidth(), SHEET.bandwidth()
    head, lines = factors(record, kept_up)
    return f"""
### Where the model is optimistic, and why

{100 * under:.0f} % of the H200's points reach less than half of what the sheet's roof allows. The
roof leaves out six things:

1. **Latency.** The shortest product takes {floors["bf16"]} in bf16 and {floors["fp32"]} in fp32,
   however small it is. The model gives a 64 × 64 × 64 product a few nanoseconds. Most of the gap up
   to n = 512 is this.
2. **Waves.** At n = 1024, tiles of 128 × 128 make 64 pieces for 132 multiprocessors. At n = 1536
   they make 144: two waves, the second nearly empty.
3. **Power.** A large bf16 product draws {steady.power:.0f} W of {record.chip.power_limit:.0f} W,
   and the driver takes the clock down to {rl.quantity(steady.clock, "Hz")}. The sheet's peak
   assumes {rl.quantity(peak.clock, "Hz")}. Eight seconds of n = 8192 ran at
   {rl.quantity(steady.performance, "FLOP/s")}: {100 * steady.performance / peak.flops:.1f} % of the
   sheet's peak, and {100 * steady.performance / allowed:.1f} % of what that clock allows.
4. **Bandwidth kept up.** The best stream reads {rl.quantity(kept, "byte/s")},
   {100 * kept / printed:.1f} % of the sheet's {rl.quantity(printed, "byte/s")}.
5. **The corner.** The roof lets arithmetic and traffic overlap perfectly, and its corner is sharp.
   In the sweep over m the *ridge* lies under both of its neighbours in each precision.
6. **The kernel.** Plain fp32 mostly keeps its clock, yet the library's product stays near three
   quarters of the peak, and at m = 8 to 32 far lower, while chains of multiply-adds, which need no
   memory, reach {chains:.3f}. (On the sustained roof they stand above 1: that roof is made of
   products.) And a copy of 1 GiB and more inside a CUDA graph becomes the driver's own: {large},
   where half that size runs at {half}. Outside a graph it ran at 4.21 TB/s, by hand, in no record.

Factors that multiply to measured over attainable (record {first}, medians). *rest* is what is left.
Where it is above 1, the library used smaller tiles than the 128 × 128 that *waves* assumes, and
that factor explains too much.

{table(head, lines)}"""


def cold_and_issued(gpus):
    """What each precision shows at first, keeps up, and could do without memory, of the records
    that have all three."""
    lines = []
    for name, record in gpus.items():
        fastest = {}
        for point in record.select("issue"):
            known = fastest.get(point.precision)
            if known is None or point.performance > known.performance:
                fastest[point.precision] = point
        for precision in record.cold_peaks if fastest else ():
            issued, sheet = fastest.get(precision), SHEET.find_peak(precision)
            if issued is None:
                continue
            rates = (
                sheet.flops,
                record.cold_peaks[precision],
                record.sustained.peaks[precision],
                issued.performance,
            )
            a_cycle = issued.performance / issued.clock / record.chip.units
            lines.append(
                [
                    name,
                    precision,
                    *(rl.quantity(rate, "FLOP/s") for rate in rates),
                    rl.quantity(issued.clock, "Hz"),
                    f"{a_cycle:,.0f} of {sheet.flop_per_clock_per_unit:,.0f}",
                    issued.label.rpartition(" ")[2].split(".")[0],
                ]
            )
    head = ["record", "precision", "sheet", "cold", "sustained", "issued"]
    head += ["clock then", "FLOP a clock and SM", "instruction"]
    return f"""
### Cold, sustained, issued

*Cold* is the library's product in its first 25 ms after a rest, *sustained* its best in the sweeps,
*issued* a loop of one instruction without memory traffic, on data that do not change. What the
sheet promises a clock and SM, the units do in that loop to within a tenth or so; what is lost after
the first 25 ms is lost to the power limit: only plain fp32, which never meets it, loses nothing.
int8 through `torch._int_mm` stays below half of what its units do: that is the library's kernel.

{table(head, lines)}"""


def factors(record, kept_up):
    """Head and lines of the table of factors, by precision and size."""
    found = [
        (point, explain(point, SHEET, kept_up, launch_floor(record, point.precision)))
        for point in record.select(*PRODUCT_FAMILIES)
    ]
    groups = {
        "n up to 256": lambda p: p.family == "gemm_n" and p.shape.n < 300,
        "n = 384 to 1024": lambda p: p.family == "gemm_n" and 300 < p.shape.n < 1100,
        "n from 1536": lambda p: p.family == "gemm_n" and p.shape.n > 1100,
        "m = 1 to 64": lambda p: p.family == "gemm_m" and p.shape.m <= 64,
        "m from 96": lambda p: p.family == "gemm_m" and p.shape.m > 64,
    }
    names = list(found[0][1])
    lines = []
    for precision in dict.fromkeys(point.precision for point, _ in found):
        for group, belongs in groups.items():
            some = [
                shares for point, shares in found if point.precision == precision and belongs(point)
            ]
            medians = [np.median([shares[name] for shares in some]) for name in names]
            lines.append([precision, group, len(some), *(f"{median:.3f}" for median in medians)])
    return ["precision", "products", "points", *names], lines


def spread(gpus):
    """How far apart two runs are: of one card, and of two."""
    first, *others = gpus.items()
    times = {
        name: {
            (point.family, point.precision, point.shape, point.label): point.seconds
            for point in record.points
        }
        for name, record in gpus.items()
    }
    lines = []
    for name, record in others:
        same = record.chip.card == first[1].chip.card
        which = "same card" if same else "other card"
        for family in KINDS:
            keys = [key for key in times[name] if key[0] == family and key in times[first[0]]]
            if keys:
                apart = np.abs([times[name][key] / times[first[0]][key] - 1 for key in keys])
                shares = [f"{100 * q:.2f} %" for q in np.quantile(apart, [0.5, 0.9, 1])]
                lines.append([f"{name}, {which}", family, len(keys), *shares])
    within = [point.timing.spread for record in gpus.values() for point in record.points]
    return f"""
## From run to run

Difference of the median times against record {first[0]}, point by point. Within one run the
quartiles of a point's repeats lie {100 * np.median(within):.2f} % apart (median over all points),
at most {100 * np.quantile(within, 0.9):.2f} % for nine points in ten. The {len(gpus)} runs were
made on one day, on {len({record.chip.card for record in gpus.values()})} cards.

{table(["against it", "family", "points", "median", "9 in 10 within", "largest"], lines)}"""


@dataclass(frozen=True)
class Share:
    """Counted bytes as shares of what the model says that the tile fetches."""

    l1_loads: float
    crossbar: float
    slices: float
    dram: float


def model_and_share(row):
    """The tile of a counted kernel (None where it has none), the bytes of A and B that the model
    counts for it, and the Share of them that each counter saw."""
    n, width = row.n, rl.bytes_per_element(row.precision)
    tile = row.tile if row.kernel == "tiled" else _tile_in_name(row.function)
    if tile:
        model = rl.tiled_gemm(n, n, n, tile, row.precision).bytes_moved - width * n * n
    else:
        model = 2.0 * width * n**3
    got = row.median
    share = Share(
        l1_loads=got.l1_loads / model,
        crossbar=got.l2_to_sm_crossbar / model,
        slices=got.l2_to_sm / model,
        dram=got.dram_read / model,
    )
    return tile, model, share


def traffic(counters):
    lines, shares_of_tiled = [], []
    for name, record in counters.items():
        for row in record.traffic:
            tile, model, share = model_and_share(row)
            if row.kernel == "tiled":
                shares_of_tiled.append((row.loads, share))
            lines.append(
                [
                    name,
                    f"naive, {row.threads}" if row.kernel == "naive" else row.kernel,
                    row.precision,
                    row.n,
                    "×".join(map(str, tile)) if tile else "1×1",
                    row.loads,
                    rl.quantity(model, "byte"),
                    f"{share.l1_loads:.4f}",
                    f"{share.crossbar:.4f}",
                    f"{share.slices:.4f}",
                    f"{share.dram:.4f}",
                    significant(1 / share.dram),
                ]
            )
    exact = [share.crossbar for loads, share in shares_of_tiled if loads == "past L1"]
    near = [share.crossbar for loads, share in shares_of_tiled if loads == "through L1"]
    slices = [share.slices for _, share in shares_of_tiled]
    largest_error = max(abs(share - 1) for share in exact)
    head = ["record", "kernel", "precision", "n", "tile", "loads go", "model", "loads"]
    return f"""
## Whose bytes: traffic by hardware counters

Shares of the model's count for the tile, s (⌈n/tile_n⌉ + ⌈n/tile_m⌉) n² bytes for A and B. *Loads*
are the sectors that load instructions ask L1 for; *crossbar* is what L2 delivers to the
multiprocessors; *slices* is what is read at the L2 slices; *DRAM* is read from memory. Each is the
median of three.

With loads that pass by L1 the crossbar delivers the model's count to within
{100 * largest_error:.2f} %, in {len(exact)} cases. **The rule b/s is exact, and its bytes are those
between L2 and the multiprocessors.** Through L1 it is {min(near):.3f} to {max(near):.3f}: tiles
that share a multiprocessor find each other's rows. The slices read {min(slices):.3f} to
{max(slices):.3f} of it: fewer bytes leave the slices than arrive. Our reading is that one read
answers several multiprocessors that ask for the same sector at about the same time; the counters
show the difference, not its cause. Nsight Compute's guide names a unit that would do it, the L2
request coalescer (lrc); its counters, which were not read here, would test it. For library kernels
the tile is the one in the kernel's name.
For naive kernels the model is 2s bytes for each multiply-add, nothing kept.

{table([*head, "crossbar", "slices", "DRAM", "model / DRAM"], lines)}"""


def _tile_in_name(function):
    """The tile that a vendor's library writes into its kernel's name: the only place that says."""
    found = re.search(r"(?:tilesize|tst_)(\d+)x(\d+)", function)
    return (int(found[1]), int(found[2])) if found else None


def cpu_section(name, record, rows):
    chip, settings = record.chip, record.settings
    above = [row for row in rows if row.measured_over_attainable_sheet > 1]
    products = sum(row.family in PRODUCT_FAMILIES for row in above)
    noisy = sum(point.timing.spread > 0.15 for point in record.points)
    load = " and ".join(f"{load:.2f}" for load in settings.load_average)
    return f"""
## CPU, record {name}: measured over attainable

{chip.units} cores of a virtual machine that names its processor "{chip.name}" and no more. No sheet
can be looked up for that, so the first roof is counted: cores × 2 multiply-add units × lanes × 2 ×
the nominal {rl.quantity(chip.clock, "Hz", 4)}, over the DRAM bandwidth that the record itself
shows. {len(above)} of {len(rows)} points stand above it: {products} products (a clock above the
nominal one, or matrices that stayed in the last cache), and {len(above) - products} others that a
cache served. BLAS threads set by: {settings.pinned_by}. The system's one-minute load was {load}
before and after. {noisy} points have quartiles more than 15 % apart: others had a share of the
machine. Small streams show the cost of a call from Python, and with several threads its lock.

{by_regime(rows)}"""


if __name__ == "__main__":
    main()
