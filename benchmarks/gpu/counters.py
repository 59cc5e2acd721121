"""Bytes that a matrix product moves between the memories of an NVIDIA GPU, by its hardware
counters. Writes a record with `traffic` rows.

    python benchmarks/gpu/counters.py record.json

Needs nvcc, ncu (Nsight Compute) with access to the counters, and torch for the library's own
kernels. The clocks are left alone (--clock-control none); ncu empties the caches before each pass,
so DRAM traffic starts cold.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from roofline_lib.measuring import gpu
from roofline_lib.measuring.jobs import new_record, now
from roofline_lib.measuring.record import Absent, Counts, Traffic, save

HERE = Path(__file__).resolve().parent
SECTOR = 32.0  # byte
# name in the record -> (counter, bytes or seconds per count)
COUNTERS = {
    "seconds": ("gpu__time_duration.sum", 1e-9),
    "l2_to_sm": ("lts__t_sectors_srcunit_tex_op_read.sum", SECTOR),
    "sm_to_l2": ("lts__t_sectors_srcunit_tex_op_write.sum", SECTOR),
    "l2_to_sm_crossbar": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1.0),
    "l1_loads": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", SECTOR),
    "dram_read": ("dram__bytes_read.sum", 1.0),
    "dram_write": ("dram__bytes_write.sum", 1.0),
}


def main():
    parser = argparse.ArgumentParser(
        description="Count the bytes of tiled, naive and library matrix products with ncu."
    )
    parser.add_argument("out", help="where the record goes")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[4096, 4000], help="n of the n x n x n products"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--arch", default="sm_90")
    options = parser.parse_args()
    setup = gpu.prepare(gpu.library(), quick=True, repeats=3)
    record = new_record(setup, " ".join(["python", *sys.argv]))
    settings = replace(record.settings, quick=False, repeats=options.repeats)
    traffic, absent = [], list(record.absent)
    with tempfile.TemporaryDirectory() as folder:
        program, manifest = f"{folder}/tiles", Path(folder, "manifest")
        subprocess.run(
            ["nvcc", "-O3", f"-arch={options.arch}", HERE / "tiles.cu", "-o", program], check=True
        )
        counters = available(program, manifest)
        for name in COUNTERS.keys() - counters:
            absent.append(Absent(f"counter {COUNTERS[name][0]}", "ncu does not offer it here"))
        for n in options.sizes:
            rows = profile([program, str(n), str(options.repeats), str(manifest)], counters)
            launches = manifest.read_text().splitlines()
            traffic += gather([json.loads(line) for line in launches], rows)
        products = [sys.executable, HERE / "library_products.py", str(options.repeats)]
        printed = subprocess.run(products, check=True, capture_output=True, text=True).stdout
        try:
            rows = profile(products, counters, "--kernel-name", "regex:gemm|nvjet|cutlass|xmma")
            traffic += gather([json.loads(line) for line in printed.splitlines()], rows)
        except RuntimeError as error:
            absent.append(Absent("traffic of the library's kernels", str(error)[:200]))
    setup.close()
    record = replace(
        record, finished=now(), settings=settings, absent=tuple(absent), traffic=tuple(traffic)
    )
    save(record, options.out)
    for row in record.traffic:
        print(row.kernel, row.precision, row.n, row.tile, row.loads, row.threads, row.repeats[0])


def available(program, manifest):
    """The names of COUNTERS that ncu can read here; RuntimeError where it reads none at all."""
    try:
        profile([program, "256", "1", str(manifest)], COUNTERS, "--launch-count", "1")
        return set(COUNTERS)
    except RuntimeError as all_at_once:
        found = set()
        for name in COUNTERS:
            try:
                profile([program, "256", "1", str(manifest)], {name}, "--launch-count", "1")
                found.add(name)
            except RuntimeError:
                continue
        if not found:
            raise all_at_once
        return found


def profile(command, names, *flags):
    """One dict per profiled launch, in order: {"function": ..., name: value}. RuntimeError with
    ncu's words where it fails."""
    wanted = [COUNTERS[name][0] for name in names]
    ncu = [
        "ncu",
        "--clock-control",
        "none",
        "--csv",
        "--page",
        "raw",
        "--print-units",
        "base",
        *flags,
        "--metrics",
        ",".join(wanted),
    ]
    run = subprocess.run([*ncu, *command], capture_output=True, text=True)
    table = run.stdout[run.stdout.find('"ID"') :]
    if run.returncode or not table.startswith('"ID"'):
        raise RuntimeError(f"ncu: {run.stdout[-1500:]}{run.stderr[-500:]}")
    # the first line under the names holds units
    lines = list(csv.DictReader(io.StringIO(table)))[1:]
    if missing := [counter for counter in wanted if not lines or not lines[0].get(counter)]:
        raise RuntimeError(f"ncu gave no {missing}")

    def values(line):
        return {
            name: float(line[COUNTERS[name][0]].replace(",", "")) * COUNTERS[name][1]
            for name in names
        }

    return [{"function": line["Kernel Name"], **values(line)} for line in lines]


def gather(launches, rows):
    """The Traffic of each kernel: what was launched joined with what was counted, repeats of one
    launch together."""
    if len(launches) != len(rows):
        raise RuntimeError(
            f"{len(launches)} launches, but ncu counted {len(rows)}: "
            f"{[row['function'][:60] for row in rows]}"
        )
    joined = {}
    for launch, row in zip(launches, rows, strict=True):
        function = row.pop("function")[:160]
        counts = Counts(**{name: float(f"{value:.7g}") for name, value in row.items()})
        _, _, repeats = joined.setdefault(json.dumps(launch), (launch, function, []))
        repeats.append(counts)
    return [
        Traffic(
            kernel=launch["kernel"],
            precision=launch["precision"],
            n=launch["n"],
            tile=tuple(launch["tile"]) if launch["tile"] else None,
            loads=launch["loads"],
            threads=launch["threads"],
            function=function,
            repeats=tuple(repeats),
        )
        for launch, function, repeats in joined.values()
    ]


if __name__ == "__main__":
    main()
