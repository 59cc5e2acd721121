"""The sections of docs/roofline_vs_measured.md about whole models and about links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import roofline_lib as rl
from roofline_lib.measuring import load, sustained_roof
from roofline_lib.measuring.links import fits
from roofline_lib.measuring.record import Point, Record
from roofline_lib.measuring.verdicts import launch_floor

LAUNCH_RECORD = "h200_a1"  # whose shortest product is the constant that nothing was fitted to


@dataclass(frozen=True)
class Step:
    """One measured step of a model beside its bound and its forecasts, in seconds."""

    point: Point
    bound: float
    forecast: float
    fitted: float

    def error(self, seconds: float) -> float:
        """How far `seconds` are from what was measured, as a share of it."""
        return seconds / self.point.seconds - 1


def launch_constant() -> float:
    """Seconds of the shortest bf16 product of an older record: nothing here is fitted to it."""
    return launch_floor(load(LAUNCH_RECORD), "bf16")


def fitted_constant(record: Record, label: str = "graph") -> float:
    """Seconds a kernel that bring bound + kernels x constant onto the measured steps, their
    median."""
    roof = sustained_roof(record)
    left = []
    for point in record.select("decode"):
        if point.label == label:
            works = record.transformer.decode(point.shape.batch, point.shape.context)
            bound = rl.step_time(works.values(), roof, "bf16").bound
            left.append((point.seconds - bound) / point.kernels)
    return float(np.median(left))


def steps(record: Record, label: str = "graph") -> list[Step]:
    """The decode steps of a record that ran in one way: "graph", "eager" or "compiled"."""
    roof, constants = sustained_roof(record), (launch_constant(), fitted_constant(record))
    found = []
    for point in record.select("decode"):
        if point.label == label:
            works = record.transformer.decode(point.shape.batch, point.shape.context)
            times = [
                rl.step_time(works.values(), roof, "bf16", point.kernels, constant)
                for constant in constants
            ]
            found.append(Step(point, times[0].bound, *(time.forecast for time in times)))
    return found


def model_section(records: dict[str, Record], table, quantiles) -> str:
    """The section on whole models; `table` and `quantiles` are the page's own."""
    lines = []
    for name, record in records.items():
        graph = steps(record)
        for what in ("bound", "forecast", "fitted"):
            errors = [step.error(getattr(step, what)) for step in graph]
            middle = float(np.median(np.abs(errors)))
            lines.append([name, what, len(graph), *quantiles(errors), f"{middle:.3f}"])
    first, record = next(iter(records.items()))
    fused = {step.point.shape: step for step in steps(record, "compiled")}
    sweep = [
        [
            step.point.shape.batch,
            f"{step.point.shape.context:,}",
            step.point.kernels,
            *(f"{1e3 * t:.2f}" for t in (step.point.seconds, step.bound, step.forecast)),
            f"{1e3 * fused[step.point.shape].point.seconds:.2f}"
            if step.point.shape in fused
            else "",
        ]
        for step in steps(record)
    ]
    (remedy,) = (step for shape, step in fused.items() if (shape.batch, shape.context) == (1, 1024))
    (plain,) = (step for step in steps(record) if step.point.shape == remedy.point.shape)
    (eager,) = (step for step in steps(record, "eager") if step.point.shape == remedy.point.shape)
    constants = ", ".join(
        f"{rl.quantity(fitted_constant(each), 's')} ({name})" for name, each in records.items()
    )
    launches = {point.label: rl.quantity(point.seconds, "s") for point in record.select("launch")}
    worst = max(steps(record), key=lambda step: abs(step.error(step.forecast)))
    return f"""
## A whole model: Llama-3-8B, decode steps

`python -m roofline_lib measure --model llama-3-8b` builds the model in plain torch with random bf16
weights and times one decode step, one new token for each sequence, as a replayed CUDA graph. The
*bound* is the sum of every operator's bound on the record's own sustained roof. The *forecast* adds
the kernels that a profiler counted, each at {rl.quantity(launch_constant(), "s")}: the shortest
product of record {LAUNCH_RECORD}, another card on another day, so nothing is fitted. *Fitted* takes
one constant a record instead: {constants}. Errors are seconds said over seconds measured, less one.

{
        table(
            ["record", "what", "steps", "min", "25 %", "median", "75 %", "max", "median of sizes"],
            lines,
        )
    }

The bound is never above a measurement, and up to batch 16 it is little more than half of it. A
kernel that does next to nothing takes {launches["graph"]} in a graph and {
        launches["eager"]
    } started from Python, so
a step launched from Python takes {1e3 * eager.point.seconds:.1f} ms where the graph takes
{1e3 * plain.point.seconds:.2f} (batch 1, 1,024 keys). torch.compile fuses the small kernels:
{plain.point.kernels} become {remedy.point.kernels}, and the step takes
{1e3 * remedy.point.seconds:.2f} ms. The forecast says {1e3 * plain.forecast:.2f} and
{1e3 * remedy.forecast:.2f}. It is worst, {100 * worst.error(worst.forecast):.0f} %, at batch
{worst.point.shape.batch} and {worst.point.shape.context:,} keys: there the
products are no longer short, and what they lack to their own roof is, it seems, more than what
starting them costs. One constant a kernel knows nothing of that.

Record {first}, milliseconds; *fused* is torch.compile's.

{table(["batch", "context", "kernels", "measured", "bound", "forecast", "fused"], sweep)}"""


def prefill_section(records: dict[str, Record], table) -> str:
    """Prompts of one sequence, launched from Python."""
    lines = []
    for name, record in records.items():
        roof = sustained_roof(record)
        for point in record.select("prefill"):
            works = record.transformer.prefill(point.shape.batch, point.shape.tokens)
            bound = rl.time_in_sequence(works.values(), roof, "bf16")
            lines.append(
                [
                    name,
                    f"{point.shape.tokens:,}",
                    point.kernels,
                    f"{1e3 * point.seconds:.1f}",
                    f"{1e3 * bound:.1f}",
                    f"{bound / point.seconds:.3f}",
                ]
            )
    return f"""
### Prefill

One prompt, launched from Python, milliseconds. At 128 tokens Python sets the pace.

{table(["record", "tokens", "kernels", "measured", "bound", "bound over measured"], lines)}"""


def link_section(name: str, record: Record, table) -> str:
    """The link between two cards: latency and bandwidth, an FFN on both, and overlap."""
    link = rl.links("H200 SXM")[0]
    lines = [
        [
            what,
            rl.quantity(fit.latency, "s"),
            rl.quantity(fit.latency_error, "s"),
            rl.quantity(fit.bandwidth, "byte/s"),
            rl.quantity(fit.bandwidth_error, "byte/s"),
            f"{fit.bandwidth / link.total_bandwidth:.2f}",
        ]
        for what, fit in fits(record.points).items()
    ]
    reduce = fits(record.points)["all_reduce, graph"]
    sliced = speed_ups(record, reduce)
    overlap = {point.label: point.seconds for point in record.select("overlap")}
    hidden = {
        what: 1 - (overlap[f"products and {what}"] - overlap["products"]) / overlap[what]
        for what in ("all-reduce", "copy")
    }
    (latest,) = (p for p in sliced if p.m == 1024)
    return f"""
## Two cards and the link between them

`python -m roofline_lib measure --links` on two H200s ({name}). Times of collectives over size are a
straight line: latency + bytes that one rank sends / bandwidth, one way, with standard errors. The
last column is the bandwidth over the sheet's {rl.quantity(link.total_bandwidth, "byte/s")}.

{table(["what", "latency", "+-", "bandwidth", "+-", "of the sheet"], lines)}

An FFN of a 70B model, 8192 to 28,672 and back, on one card, in slices on two, and in slices with
the all-reduce that puts the halves together. *Predicted* takes the slices' measured time and the
line of the all-reduce above. At m = 1024 the second card makes it
{latest.measured:.2f} times as fast, not 2.

{
        table(
            ["m", "one card", "slice", "slice and all-reduce", "speed-up", "predicted"],
            [
                [
                    p.m,
                    *(rl.quantity(t, "s") for t in (p.whole, p.slice, p.both)),
                    f"{p.measured:.2f}",
                    f"{p.predicted:.2f}",
                ]
                for p in sliced
            ],
        )
    }

Gradients beside products: four products of 8192³ take {rl.quantity(overlap["products"], "s")}, an
all-reduce of 1 GiB {rl.quantity(overlap["all-reduce"], "s")}, a copy of 1 GiB to the other card
{rl.quantity(overlap["copy"], "s")}. Together with the products, {100 * hidden["all-reduce"]:.0f} %
of the all-reduce is hidden and {100 * hidden["copy"]:.0f} % of the copy. NCCL's kernels need
multiprocessors that the products want too; the copy engine needs none."""


@dataclass(frozen=True)
class SpeedUp:
    """An FFN on one card and on two, seconds, and how much faster two are."""

    m: int
    whole: float
    slice: float
    both: float
    predicted: float

    @property
    def measured(self) -> float:
        """Times as fast on two cards."""
        return self.whole / self.both


def speed_ups(record: Record, reduce) -> list[SpeedUp]:
    """For each m of the sliced FFN; `reduce` is the LinkFit of an all-reduce."""
    times = {}
    for point in record.select("sliced_ffn"):
        times.setdefault(point.shape.m, {})[point.label] = point
    found = []
    for m, ways in times.items():
        sent = rl.all_reduce(2.0 * m * ways["slice"].shape.d_model, 2).bytes_sent
        message = reduce.latency + sent / reduce.bandwidth
        whole, part = ways["whole"].seconds, ways["slice"].seconds
        found.append(
            SpeedUp(m, whole, part, ways["slice and all-reduce"].seconds, whole / (part + message))
        )
    return found
