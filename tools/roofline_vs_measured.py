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
from pathlib import Path

import numpy as np

import roofline_lib as rl
from roofline_lib.measuring import load, recorded
from roofline_lib.measuring.record import BANDWIDTH_FAMILIES, efficiency, work_of
from roofline_lib.measuring.verdicts import explain, launch_floor, regime, sheet, verdict
from roofline_lib.quantities import significant

DOCS = Path(__file__).resolve().parents[1] / "docs"
SHEET = rl.machine("H200 SXM")
KINDS = {
    "gemm_n": "product, n = m = k",
    "gemm_m": "product over m",
    "steady": "one product, 8 s",
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
    rows = [row for name, record in records.items() for row in pairs(name, record)]
    page = (
        "\n\n".join(
            folded(block)
            for part in sections(records, rows)
            for block in part.strip().split("\n\n")
        )
        + "\n"
    )
    return {"roofline_vs_measured.md": page, "roofline_vs_measured.csv": table_of_all(rows)}


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


def pairs(name, record):
    """One dict for each point of a record: what the model says on both roofs, and what was
    measured."""
    if not record["points"]:
        return
    roof, kept_up = sheet(record), rl.Machine.from_record(record)
    for p in record["points"]:
        yield {
            "record": name,
            "machine": record["machine"]["kind"],
            "family": p["family"],
            "precision": p["precision"],
            "shape": " ".join(
                f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in p["shape"].items()
            ),
            "label": p.get("label", ""),
            "regime": regime(p, roof),
            "flops": p["flops"],
            "bytes_moved": p["bytes_moved"],
            "bound_on_sheet_s": rl.bound(work_of(p), roof, p["precision"]).time,
            "measured_s": p["seconds"]["median"],
            "measured_over_attainable_sheet": efficiency(p, roof),
            "measured_over_attainable_sustained": efficiency(p, kept_up),
            "point": p,
        }


def table_of_all(rows):
    file = io.StringIO()
    names = [name for name in rows[0] if name != "point"]
    writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
    )
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
        found.setdefault((KINDS[row["family"]], row["precision"], row["regime"]), []).append(row)
    order = sorted(
        found, key=lambda key: (list(KINDS.values()).index(key[0]), key[1], REGIMES.index(key[2]))
    )
    lines = [
        [
            *key,
            len(found[key]),
            *(
                cell
                for roof in ("sheet", "sustained")
                for cell in quantiles(
                    [row[f"measured_over_attainable_{roof}"] for row in found[key]]
                )
            ),
        ]
        for key in order
    ]
    return table(
        [
            "what",
            "precision",
            "regime",
            "points",
            *(
                f"{roof} {q}"
                for roof in ("sheet", "sustained")
                for q in ("min", "25 %", "median", "75 %", "max")
            ),
        ],
        lines,
    )


def sections(records, rows):
    gpus = {n: r for n, r in records.items() if r["machine"]["kind"] == "GPU" and r["points"]}
    counters = {n: r for n, r in records.items() if r["traffic"]}
    on_gpu, on_cpu = ([row for row in rows if row["machine"] == kind] for kind in ("GPU", "CPU"))
    pairs_in_all = len(rows) + sum(len(r["traffic"]) for r in counters.values())
    yield f"""
# The roofline against measurement

This page is written by `python tools/roofline_vs_measured.py` from the records in `roofline_lib/data/measured/`. It holds
{pairs_in_all:,}
pairs of a figure that the model gives and a figure that was measured: {len(on_gpu)} timed points of H200 cards, {len(on_cpu)} of a
CPU, and
{pairs_in_all - len(rows)} counts of bytes. None was dropped and none was clamped. All timed points stand, one a line, in
[roofline_vs_measured.csv](roofline_vs_measured.csv).

The ratio below is measured over attainable: the least time that the model allows, divided by the median time. 1 is the roof. The
*sheet's*
roof is what the vendor prints; the *sustained* roof is the best that the same record shows, the fastest product of each precision and
the
fastest stream from DRAM. Bytes are compulsory traffic, counted at DRAM. Regimes: *memory* is left of half the ridge point, *compute*
right of twice
the ridge point, *ridge* between them; *cache* holds the streams whose arrays are no larger than twice the last cache."""
    yield (
        "## Records\n\n"
        + table(
            [
                "record",
                "machine",
                "card",
                "date",
                "library",
                "load before, after",
                "points",
                "byte counts",
            ],
            [
                [
                    name,
                    r["machine"]["name"],
                    r["machine"].get("card", ""),
                    r["started"][:10],
                    ", ".join(
                        f"{k} {r['software'][k]}"
                        for k in ("torch", "openblas", "numpy")
                        if k in r["software"]
                    ),
                    ", ".join(f"{load:.2f}" for load in r["settings"]["load_average"]),
                    len(r["points"]),
                    len(r["traffic"]),
                ]
                for name, r in records.items()
            ],
        )
        + """

The same card hash is the same card. A load near the number of cores means that the processor was not ours alone."""
    )
    yield "## H200: measured over attainable\n\n" + by_regime(on_gpu)
    yield optimistic(gpus, on_gpu)
    above = [row for row in on_gpu if row["measured_over_attainable_sheet"] > 1]
    yield f"""
### Points above the sheet's roof

{len(above)} of {len(on_gpu)}. Each gets the library's verdict, and each verdict is the same: *cache level*. They are streams whose
arrays stay
in the 60 MiB of L2.

""" + table(
        ["record", "family", "working set", "ratio", "suspects"],
        [
            [
                row["record"],
                row["family"],
                rl.quantity(row["point"]["working_set"], "byte"),
                f"{row['measured_over_attainable_sheet']:.3f}",
                ", ".join(verdict(row["point"], SHEET).suspects),
            ]
            for row in above
        ],
    )
    yield spread(gpus)
    yield traffic(counters)
    for name in dict.fromkeys(row["record"] for row in on_cpu):
        yield cpu_section(name, records[name], [row for row in on_cpu if row["record"] == name])


def optimistic(gpus, rows):
    first, record = next(iter(gpus.items()))
    kept_up = rl.Machine.from_record(record)
    steady = next(p for p in record["points"] if p["family"] == "steady")
    reached = (
        rl.Work(*(steady[k] for k in ("flops", "bytes_moved"))).flops / steady["seconds"]["median"]
    )
    allowed = rl.peak_flops(
        SHEET.units, SHEET.find_peak("bf16").flop_per_clock_per_unit / 2, steady["clock"]
    )
    floors = {p: rl.quantity(launch_floor(record, p), "s") for p in ("bf16", "fp32")}
    under = np.mean([row["measured_over_attainable_sheet"] < 0.5 for row in rows])
    chains = max(
        row["measured_over_attainable_sheet"] for row in rows if row["family"] == "chain_width"
    )
    copies = [
        p["bytes_moved"] / p["seconds"]["median"] for p in record["points"] if p["family"] == "copy"
    ]
    half, large = (rl.quantity(copies[i], "byte/s") for i in (-4, -1))
    head, lines = factors(record, kept_up)
    return f"""
### Where the model is optimistic, and why

{100 * under:.0f} % of the H200's points reach less than half of what the sheet's roof allows. The roof leaves out six things:

1. **Latency.** The shortest product takes {floors["bf16"]} in bf16 and {floors["fp32"]} in fp32, however small it is. The model gives a
   64 × 64 × 64 product a few nanoseconds. Most of the gap up to n = 512 is this.
2. **Waves.** At n = 1024, tiles of 128 × 128 make 64 pieces for 132 multiprocessors. At n = 1536 they make 144: two waves, the second
nearly empty.
3. **Power.** A large bf16 product draws {steady["power"]:.0f} W of {record["machine"]["power_limit"]:.0f} W, and the driver takes the
clock
   down to {rl.quantity(steady["clock"], "Hz")}. The sheet's peak assumes {rl.quantity(SHEET.find_peak("bf16").clock, "Hz")}. Eight
   seconds of
   n = 8192 ran at {rl.quantity(reached, "FLOP/s")}: {100 * reached / SHEET.peak("bf16"):.1f} % of the sheet's peak, and
   {100 * reached / allowed:.1f} % of what that clock allows.
4. **Bandwidth kept up.** The best stream reads {rl.quantity(kept_up.bandwidth(), "byte/s")},
   {100 * kept_up.bandwidth() / SHEET.bandwidth():.1f} % of the sheet's {rl.quantity(SHEET.bandwidth(), "byte/s")}.
5. **The corner.** The roof lets arithmetic and traffic overlap perfectly, and its corner is sharp. In the sweep over m the *ridge*
lies under both of
   its neighbours in each precision.
6. **The kernel.** Plain fp32 mostly keeps its clock, yet the library's product stays near three quarters of the peak, and at m = 8 to
32 far lower,
   while chains of multiply-adds, which need no memory, reach {chains:.3f}. (On the sustained roof they stand above 1: that roof is
   made of products.)
   And a copy of 1 GiB and more inside a CUDA graph becomes the driver's own: {large}, where half that size runs at {half}. Outside a
   graph it ran at
   4.21 TB/s, by hand, in no record.

Factors that multiply to measured over attainable (record {first}, medians). *rest* is what is left. Where it is above 1, the library
used
smaller tiles than the 128 × 128 that *waves* assumes, and that factor explains too much.

""" + table(head, lines)


def factors(record, kept_up):
    """Head and lines of the table of factors, by precision and size."""
    found = [
        (p, explain(p, SHEET, kept_up, launch_floor(record, p["precision"])))
        for p in record["points"]
        if p["family"].startswith("gemm")
    ]
    groups = {
        "n up to 256": lambda p: p["family"] == "gemm_n" and p["shape"]["n"] < 300,
        "n = 384 to 1024": lambda p: p["family"] == "gemm_n" and 300 < p["shape"]["n"] < 1100,
        "n from 1536": lambda p: p["family"] == "gemm_n" and p["shape"]["n"] > 1100,
        "m = 1 to 64": lambda p: p["family"] == "gemm_m" and p["shape"]["m"] <= 64,
        "m from 96": lambda p: p["family"] == "gemm_m" and p["shape"]["m"] > 64,
    }
    lines = []
    for precision in dict.fromkeys(p["precision"] for p, _ in found):
        for name, belongs in groups.items():
            some = [f for p, f in found if p["precision"] == precision and belongs(p)]
            lines.append(
                [
                    precision,
                    name,
                    len(some),
                    *(f"{np.median([f[factor] for f in some]):.3f}" for factor in some[0]),
                ]
            )
    return ["precision", "products", "points", *found[0][1]], lines


def spread(gpus):
    """How far apart two runs are: of one card, and of two."""
    first, *others = gpus.items()
    times = {
        name: {
            (p["family"], p["precision"], str(p["shape"]), p.get("label")): p["seconds"]["median"]
            for p in r["points"]
        }
        for name, r in gpus.items()
    }
    lines = []
    for name, record in others:
        which = (
            "same card"
            if record["machine"]["card"] == first[1]["machine"]["card"]
            else "other card"
        )
        for family in KINDS:
            keys = [key for key in times[name] if key[0] == family]
            if keys:
                apart = np.abs([times[name][key] / times[first[0]][key] - 1 for key in keys])
                lines.append(
                    [
                        f"{name}, {which}",
                        family,
                        len(keys),
                        *(f"{100 * q:.2f} %" for q in np.quantile(apart, [0.5, 0.9, 1])),
                    ]
                )
    within = [
        (p["seconds"]["q3"] - p["seconds"]["q1"]) / p["seconds"]["median"]
        for r in gpus.values()
        for p in r["points"]
    ]
    return f"""
## From run to run

Difference of the median times against record {first[0]}, point by point. Within one run the quartiles of a point's repeats lie
{100 * np.median(within):.2f} % apart (median over all points), at most {100 * np.quantile(within, 0.9):.2f} % for nine points in ten.
The
three runs were made on one day, on two cards of two machines.

""" + table(["against it", "family", "points", "median", "9 in 10 within", "largest"], lines)


def traffic(counters):
    lines = []
    for name, record in counters.items():
        for t in record["traffic"]:
            n, s = t["n"], rl.bytes_per_element(t["precision"])
            tile = t["tile"] if t["kernel"] == "tiled" else _tile_in_name(t["function"])
            model = (
                rl.tiled_gemm(n, n, n, tuple(tile), t["precision"]).bytes_moved - s * n * n
                if tile
                else 2.0 * s * n**3
            )
            got = {
                key: np.median([repeat[key] for repeat in t["repeats"]]) for key in t["repeats"][0]
            }
            what = {"tiled": "tiled", "naive": f"naive, {t['threads']}", "library": "library"}[
                t["kernel"]
            ]
            sides = "×".join(map(str, tile)) if tile else "1×1"
            lines.append(
                [
                    name,
                    what,
                    t["precision"],
                    n,
                    sides,
                    t["loads"],
                    rl.quantity(model, "byte"),
                    *(
                        f"{got[key] / model:.4f}"
                        for key in ("l1_loads", "l2_to_sm_crossbar", "l2_to_sm", "dram_read")
                    ),
                    significant(model / got["dram_read"]),
                ]
            )
    exact = [float(line[8]) for line in lines if line[1] == "tiled" and line[5] == "past L1"]
    near = [float(line[8]) for line in lines if line[1] == "tiled" and line[5] == "through L1"]
    slices = [float(line[9]) for line in lines if line[1] == "tiled"]
    return f"""
## Whose bytes: traffic by hardware counters

Shares of the model's count for the tile, s (⌈n/tile_n⌉ + ⌈n/tile_m⌉) n² bytes for A and B. *Loads* are the sectors that load
instructions ask
L1 for; *crossbar* is what L2 delivers to the multiprocessors; *slices* is what is read at the L2 slices; *DRAM* is read from memory.
Each is
the median of three.

With loads that pass by L1 the crossbar delivers the model's count to within {100 * max(abs(x - 1) for x in exact):.2f} %, in {len(exact)}
cases. **The rule
b/s is exact,
and its bytes are those between L2 and the multiprocessors.** Through L1 it is {min(near):.3f} to {max(near):.3f}: tiles that share a
multiprocessor find each other's rows. The slices read {min(slices):.3f} to {max(slices):.3f} of it: fewer bytes leave the slices than
arrive. Our
reading is that one read answers several multiprocessors that ask for the same sector at about the same time; the counters show the
difference, not its cause. For library kernels the tile is the one in the kernel's name. For naive kernels the model is 2s bytes for
each
multiply-add, nothing kept.

""" + table(
        [
            "record",
            "kernel",
            "precision",
            "n",
            "tile",
            "loads go",
            "model",
            "loads",
            "crossbar",
            "slices",
            "DRAM",
            "model / DRAM",
        ],
        lines,
    )


def _tile_in_name(function):
    found = re.search(r"(?:tilesize|tst_)(\d+)x(\d+)", function)
    return (int(found[1]), int(found[2])) if found else None


def cpu_section(name, record, rows):
    chip = record["machine"]
    above = [row for row in rows if row["measured_over_attainable_sheet"] > 1]
    products = sum(row["family"] in ("gemm_m", "gemm_n") for row in above)
    noisy = sum(
        (p["seconds"]["q3"] - p["seconds"]["q1"]) > 0.15 * p["seconds"]["median"]
        for p in record["points"]
    )
    return f"""
## CPU, record {name}: measured over attainable

{chip["units"]} cores of a virtual machine that names its processor "{chip["name"]}" and no more. No sheet can be looked up for that, so the
first roof is counted: cores × 2 multiply-add units × lanes × 2 × the nominal {rl.quantity(chip["clock"], "Hz", 4)}, over the DRAM bandwidth
that the record itself shows. {len(above)} of {len(rows)} points stand above it: {products} products (a clock above the nominal one, or
matrices that stayed in the last cache), and {len(above) - products} others that a cache served. BLAS threads set by:
{record["settings"]["pinned_by"]}. The system's one-minute load was
{" and ".join(f"{load:.2f}" for load in record["settings"]["load_average"])} before and after. {noisy} points have quartiles more than
15 % apart: others had a share of the machine. Small streams show the cost of a call from Python, and with several threads its lock.

""" + by_regime(rows)


if __name__ == "__main__":
    main()
