"""The files that profilers write, one function a format. Each gives rows of one kernel or operator,
or a ValueError that says what is missing and what would bring it."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod

from roofline_lib.arguments import short
from roofline_lib.precisions import bytes_per_element


@dataclass(frozen=True)
class Row:
    """One kernel as a file has it: FLOP by precision, byte at DRAM, seconds."""

    name: str
    flops: Mapping[str, float]
    bytes_moved: float
    seconds: float


# Nsight Compute

TIME = "gpu__time_duration.sum"
METRICS = (
    TIME,
    "dram__bytes.sum",
    *(
        f"sm__sass_thread_inst_executed_op_{kind}_pred_on.sum"
        for kind in ("ffma", "fadd", "fmul", "dfma", "dadd", "dmul")
    ),
    "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
    "sm__ops_path_tensor_src_tf32_dst_fp32.sum",
    "sm__ops_path_tensor_src_fp64.sum",
)
NSIGHT_COMMAND = f"ncu --metrics {','.join(METRICS)} -o report PROGRAM"
NSIGHT_EXPORT = "ncu --import report.ncu-rep --csv --page raw"
_TENSOR = re.compile(
    r"sm__ops_path_tensor_src_(?P<precision>[a-z]+\d+)(?:_dst_\w+?)?"
    r"(?:_sparsity_(?P<sparse>on|off))?\.sum"
)
# FLOP of one instruction of a thread, and the precision
_INSTRUCTIONS = {
    "ffma": (2, "fp32"),
    "fadd": (1, "fp32"),
    "fmul": (1, "fp32"),
    "dfma": (2, "fp64"),
    "dadd": (1, "fp64"),
    "dmul": (1, "fp64"),
}
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def nsight(text: str) -> list[Row]:
    """Kernels of a CSV of Nsight Compute: the raw page (a column a metric, units below the names)
    or the details page (a line a metric), with the metrics of `METRICS` or those of its roofline
    sections."""
    table = text[text.index('"ID"') :] if '"ID"' in text else text
    rows = [row for row in csv.reader(io.StringIO(table)) if row]
    heads = rows[0]
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(heads):
            raise ValueError(
                f"line {line} of the table has {len(row)} cells, and its head {len(heads)}: cut "
                "off?"
            )
    if "Metric Name" in heads:
        kernels = _long(heads, rows[1:])
    else:
        kernels = _wide(heads, rows[1:])
    return [_kernel(name, metrics) for name, metrics in kernels]


def _wide(heads: list[str], rows: list[list[str]]) -> list[tuple[str, dict[str, float]]]:
    if not rows or "Kernel Name" not in heads:
        raise ValueError("no kernel in it: needs the columns of `ncu --csv --page raw`")
    units, kernels = rows[0], []
    for row in rows[1:]:
        found = dict(zip(heads, zip(row, units, strict=True), strict=True))
        metrics = {name: _metric(*value) for name, value in found.items() if "__" in name}
        kernels.append((found["Kernel Name"][0], metrics))
    return kernels


def _long(heads: list[str], rows: list[list[str]]) -> list[tuple[str, dict[str, float]]]:
    names: dict[str, str] = {}
    metrics: dict[str, dict[str, float]] = defaultdict(dict)
    for cells in rows:
        row = dict(zip(heads, cells, strict=True))
        names[row["ID"]] = row["Kernel Name"]
        value = _metric(row["Metric Value"], row["Metric Unit"])
        metrics[row["ID"]][row["Metric Name"]] = value
    return [(name, metrics[number]) for number, name in names.items()]


def _metric(text: str, unit: str) -> float:
    """A value in base units: "176.48" and "Mbyte" are 176,480,000. NaN where it is no number."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return float("nan")
    prefix = re.match(r"([KMGTmun])(?=byte|s|inst)", unit.replace("second", "s"))
    return value * _PREFIXES[prefix[1]] if prefix else value


def _kernel(name: str, metrics: dict[str, float]) -> Row:
    where = f"kernel {name[:60]!r}"
    needs = partial(_needed, metrics, where)
    seconds = needs(TIME)
    if "dram__bytes.sum" in metrics:
        moved = metrics["dram__bytes.sum"]
    elif "dram__bytes_read.sum" in metrics:
        moved = metrics["dram__bytes_read.sum"] + needs("dram__bytes_write.sum")
    else:
        moved = needs("dram__bytes.sum.per_second") * seconds
    return Row(name, _flops(metrics, where), moved, seconds)


def _needed(metrics: dict[str, float], where: str, name: str) -> float:
    if name not in metrics:
        raise ValueError(f"{where} has no {name}; it comes with: {NSIGHT_COMMAND}")
    return metrics[name]


def _flops(metrics: dict[str, float], where: str) -> dict[str, float]:
    """FLOP by precision: of the tensor cores and of the plain lanes."""
    found: dict[str, float] = defaultdict(float)
    for name, value in metrics.items():
        tensor = _TENSOR.fullmatch(name)
        if tensor and value > 0:
            found[tensor["precision"]] += value / (2 if tensor["sparse"] == "on" else 1)
    counted = False
    for kind, (each, precision) in _INSTRUCTIONS.items():
        for count in _executed(metrics, kind):
            found[precision] += each * count
            counted = True
    if not counted:
        raise ValueError(
            f"{where} has no sm__sass_thread_inst_executed_op_ffma_pred_on.sum, so its FLOP are "
            f"not known; they come with: {NSIGHT_COMMAND}"
        )
    return dict(found)


def _executed(metrics: dict[str, float], kind: str) -> list[float]:
    """How many instructions of a kind ran: counted, or per cycle times the cycles."""
    whole = metrics.get(f"sm__sass_thread_inst_executed_op_{kind}_pred_on.sum")
    if whole is not None:
        return [whole]
    rate = metrics.get(f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum.per_cycle_elapsed")
    cycles = metrics.get("gpc__cycles_elapsed.avg", metrics.get("smsp__cycles_elapsed.avg"))
    return [] if rate is None or cycles is None else [rate * cycles]


# PyTorch

# what its types are called here
_TORCH = {
    "float": "fp32",
    "double": "fp64",
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "signed char": "int8",
}
TRACE_COMMAND = (
    "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
    "record_shapes=True, with_flops=True), then .export_chrome_trace(path)"
)


def torch_trace(data: dict) -> list[Row]:
    """Matrix products of a Chrome trace of PyTorch's profiler: FLOP and compulsory bytes from the
    shapes, seconds of the kernels that an operator started (of the operator itself on a CPU).
    Equal shapes are one row, with the median time."""
    events = [event for event in data["traceEvents"] if event.get("ph") == "X"]
    kernels: dict[object, float] = defaultdict(float)
    for event in events:
        if event.get("cat") == "kernel":
            kernels[event["args"].get("External id")] += event["dur"] * 1e-6
    times: dict[tuple, list[float]] = defaultdict(list)
    for event in events:
        product = _product(event) if event.get("cat") == "cpu_op" else None
        if product is None:
            continue
        on_device = kernels.get(event["args"].get("External id"))
        if on_device is None and kernels:
            continue  # started nothing itself: an operator around it, or inside
        times[product].append(on_device or event["dur"] * 1e-6)
    if not times:
        raise ValueError(
            f"no matrix product with its shapes in it; they come with: {TRACE_COMMAND}"
        )
    return [_of_product(product, sorted(many)) for product, many in times.items()]


def _product(event: dict) -> tuple | None:
    """(operator, batch, m, n, k, precision) of a matrix product; None of anything else."""
    skipped = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}
    told = event["args"]
    if event["name"] not in skipped or "Input Dims" not in told:
        return None
    first = skipped[event["name"]]
    a, b = told["Input Dims"][first : first + 2]
    kind = _TORCH.get(told["Input type"][first])
    if kind is None or len(a) < 2 or len(a) != len(b):
        return None
    return event["name"], prod(a[:-2]), a[-2], b[-1], a[-1], kind


def _of_product(product: tuple, times: list[float]) -> Row:
    name, batch, m, n, k, precision = product
    sizes = f"[{m}, {k}] @ [{k}, {n}]" + (f" x {batch}" if batch > 1 else "")
    moved = bytes_per_element(precision) * batch * (m * k + k * n + m * n)
    flops = {precision: 2.0 * batch * m * n * k}
    title = f"{name.removeprefix('aten::')} {sizes} {precision}"
    return Row(title, flops, moved, times[len(times) // 2])


# Counts with times


def counts(data: dict) -> list[Row]:
    """Points that `write_profile` wrote."""
    rows = []
    for place, one in enumerate(data["points"]):
        missing = {"name", "flops", "bytes", "seconds", "precision"} - set(one)
        if missing:
            raise ValueError(f"points[{place}] has no {', '.join(sorted(missing))}")
        flops, moved, seconds = (
            _figure(one[key], f"{key} of points[{place}]") for key in ("flops", "bytes", "seconds")
        )
        rows.append(Row(str(one["name"]), {str(one["precision"]): flops}, moved, seconds))
    return rows


def _figure(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} must be a number; got {short(value)}")
    return float(value)


def jax_cost(data: dict) -> list[Row]:
    """One function of JAX: `{"cost": compiled.cost_analysis(), "seconds": ..., "precision": ...}`,
    with a "name" if you like."""
    cost = data["cost"][0] if isinstance(data["cost"], list) else data["cost"]
    for name in ("flops", "bytes accessed"):
        if not cost.get(name, -1) > 0:
            raise ValueError(
                f"cost has no {name!r} (got {cost.get(name)}): this backend hands the work to a "
                "library and does not count it; take the counts from jax.jit(f, backend='cpu')"
            )
    for name in ("seconds", "precision"):
        if name not in data:
            raise ValueError(f"has no {name!r} beside 'cost': put the measured one in")
    flops = {str(data["precision"]): _figure(cost["flops"], "flops of cost")}
    name = str(data.get("name", "jax function"))
    moved = _figure(cost["bytes accessed"], "'bytes accessed' of cost")
    return [Row(name, flops, moved, _figure(data["seconds"], "seconds"))]


# perf, on Intel's processors

# FLOP of one count: a fused multiply-add counts twice by itself
_LANES = {
    "scalar_single": (1, "fp32"),
    "128b_packed_single": (4, "fp32"),
    "256b_packed_single": (8, "fp32"),
    "512b_packed_single": (16, "fp32"),
    "scalar_double": (1, "fp64"),
    "128b_packed_double": (2, "fp64"),
    "256b_packed_double": (4, "fp64"),
    "512b_packed_double": (8, "fp64"),
}
PERF_COMMAND = (
    "perf stat -x, -e duration_time,fp_arith_inst_retired.scalar_single,"
    "fp_arith_inst_retired.256b_packed_single,... -a -e uncore_imc/cas_count_read/,"
    "uncore_imc/cas_count_write/ PROGRAM"
)
_MEMORY = re.compile(r"(?:uncore_imc\w*/)?cas_count[_.](read|write)/?")


def perf_stat(text: str) -> list[Row]:
    """The one program of a `perf stat -x,`: value, unit, event, and more that is not read. Events
    of several memory controllers are added up."""
    flops: dict[str, float] = defaultdict(float)
    moved, seconds = 0.0, 0.0
    refused: list[str] = []
    for line in text.splitlines():
        cells = line.split(",")
        if len(cells) < 3 or line.startswith("#"):
            continue
        if cells[0] in ("<not supported>", "<not counted>"):
            refused.append(cells[2])
        if not re.fullmatch(r"[\d.]+", cells[0]):
            continue
        value, unit, event = float(cells[0]), cells[1], cells[2]
        kind = event.rpartition(".")[2].partition(":")[0]
        if event == "duration_time":
            seconds = value * 1e-9
        elif event.startswith("fp_arith_inst_retired") and kind in _LANES:
            each, precision = _LANES[kind]
            flops[precision] += each * value
        elif _MEMORY.fullmatch(event):
            moved += value * (2**20 if unit == "MiB" else 64)
    missing = [
        name
        for name, value in (
            ("duration_time", seconds),
            ("fp_arith_inst_retired.*", sum(flops.values())),
            ("uncore_imc/cas_count_read/ and _write/", moved),
        )
        if not value
    ]
    if missing:
        here = f" (perf could not count {', '.join(refused)} there)" if refused else ""
        raise ValueError(f"counts no {', '.join(missing)}{here}; they come with: {PERF_COMMAND}")
    return [Row("program", dict(flops), moved, seconds)]


# likwid

LIKWID_COMMAND = (
    "likwid-perfctr -O -C 0-3 -g MEM_DP PROGRAM (or -g FLOPS_DP -g MEM; -m for regions)"
)
# a table of a group's metrics, after likwid's own printOutput (src/applications/likwid.lua)
_LIKWID_TABLE = re.compile(r"TABLE,(?:Region (?P<region>.*),)?Group \d+ (?P<kind>[^,]+),")
_LIKWID_TIME = "Runtime (RDTSC) [s]"
# the whole of a precision; "AVX DP [MFLOP/s]" is a part of it
_LIKWID_RATE = re.compile(r"(?P<precision>DP|SP|HP) (?:\[MFLOP/s\]|MFLOP/s)")
_LIKWID_PRECISIONS = {"DP": "fp64", "SP": "fp32", "HP": "fp16"}
_LIKWID_VOLUME = re.compile(r"Memory data volume(?: \(.*\))? \[GBytes\]")


def likwid(text: str) -> list[Row]:
    """The regions of a `likwid-perfctr -O`, or the whole program where it has none.

    Each thread has a column, and of a socket's memory one thread has the bytes. Groups that took
    turns each saw a part of the run: their rates are taken for the whole of it.
    """
    regions: dict[str, list[dict[str, list[float]]]] = defaultdict(list)
    table: dict[str, list[float]] | None = None
    for line in text.splitlines():
        heading = _LIKWID_TABLE.match(line)
        if heading:
            table = {} if heading["kind"] == "Metric" else None
            if table is not None:
                regions[heading["region"] or "program"].append(table)
        elif line.startswith("STRUCT,"):
            table = None
        elif table is not None and "," in line:
            name, *cells = line.split(",")
            if (
                name == _LIKWID_TIME
                or _LIKWID_RATE.fullmatch(name)
                or _LIKWID_VOLUME.fullmatch(name)
            ):
                table[name] = [_likwid_number(cell, name) for cell in cells if cell.strip()]
    if not regions:
        raise ValueError(f"no table of a group's metrics in it; they come with: {LIKWID_COMMAND}")
    return [_likwid_row(region, tables) for region, tables in regions.items()]


def _likwid_number(cell: str, name: str) -> float:
    """A cell; "-" and nan are what a thread did not count."""
    if cell.strip() in ("-", "nan", "-nan"):
        return 0.0
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{name!r} of a thread is no number: {cell.strip()[:40]!r}") from None


def _likwid_row(region: str, tables: list[dict[str, list[float]]]) -> Row:
    longest = 0.0
    rates: dict[str, float] = {}
    bandwidth: dict[str, float] = {}
    for table in tables:
        times = table.get(_LIKWID_TIME, [])
        seconds = max(times, default=0.0)
        if not seconds > 0:
            raise ValueError(f"{region}: a group has no {_LIKWID_TIME!r} above 0")
        longest = max(longest, seconds)
        for name, cells in table.items():
            rate = _LIKWID_RATE.fullmatch(name)
            if rate and len(cells) != len(times):
                raise ValueError(
                    f"{region}: {name!r} has {len(cells)} threads and the runtime {len(times)}"
                )
            if rate:
                counted = sum(each * time for each, time in zip(cells, times, strict=True))
                rates[_LIKWID_PRECISIONS[rate["precision"]]] = 1e6 * counted / seconds
            elif name != _LIKWID_TIME:
                bandwidth[name] = 1e9 * sum(cells) / seconds
    flops = {precision: each * longest for precision, each in rates.items()}
    moved = sum(bandwidth.values()) * longest
    missing = [
        what
        for what, there in (
            ("FLOP (group FLOPS_DP, FLOPS_SP, MEM_DP or MEM_SP)", rates),
            ("'Memory data volume' (group MEM, MEM_DP or MEM_SP)", moved),
        )
        if not there
    ]
    if missing:
        raise ValueError(
            f"{region}: counts no {' and no '.join(missing)}; they come with: {LIKWID_COMMAND}"
        )
    return Row(region, flops, moved, longest)
