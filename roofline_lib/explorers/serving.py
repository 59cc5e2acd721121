"""Lesson 12: throughput against wait over the batch, with the limits of memory and patience, and
what a real card did."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, MachineChoice, ModelChoice, Number
from roofline_lib.explorers.marks import Drop, Line, Mark, Point
from roofline_lib.explorers.scenes import Scene, dashed, no_peak, percent, plural
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.measuring.record import Record, load, recorded
from roofline_lib.precisions import SERVED
from roofline_lib.pricing import PER_KERNEL
from roofline_lib.quantities import quantity, significant
from roofline_lib.serving import DecodeCurve
from roofline_lib.steps import kernels_per_step, step_time
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, decades
from roofline_lib.transformer import Transformer

_BATCHES = np.unique(np.geomspace(1, 1024, 41).round())
_RECT = (74, 14, 550, 318)


class ServingExplorer(Explorer):
    """A model that serves `batch` sequences at a time: tokens a second in all against the wait for
    each token, as the bound has it and as the forecast with kernel launches has it.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name; `batch` in sequences
    (1 to 1024), `context` in tokens (1 to 1048576); `weights`, `experts` (the precision of a
    mixture's experts) and `kv` are precisions, and the peak is that of bf16. `kernels` a step (0 to
    4096, by default estimated) cost 2.6 us each; `wait` is the longest that a reader shall wait for
    a token (s). Where a record has the model's steps on that chip, measured points stand beside the
    curves. Controls: the arguments' names.
    """

    sample = {"model": "llama-3-8b", "machine": "H200 SXM"}

    def __init__(
        self,
        model: Transformer | str = "llama-3-8b",
        machine: Machine | str = "H200 SXM",
        batch: int = 16,
        context: int = 1024,
        weights: str = "bf16",
        experts: str = "bf16",
        kv: str = "bf16",
        kernels: int | None = None,
        wait: float = 0.05,
    ):
        models = ModelChoice(model)
        if kernels is None:
            kernels = kernels_per_step(models.chosen)
        super().__init__(
            models,
            MachineChoice(machine),
            Number("batch", batch, 1, 1024, "sequences", "batch (seqs)"),
            Number("context", context, 1, 2**20, "tokens"),
            Choice("weights", weights, SERVED["weights"]),
            Choice("experts", experts, SERVED["weights"]),
            Choice("kv", kv, SERVED["kv"], "KV cache"),
            Number("kernels", kernels, 0, 4096, "a step", "kernels a step", ladder=_KERNELS),
            Number("wait", wait, 0.001, 1, "s", "wait (ms)", whole=False, prefix="m"),
        )

    @staticmethod
    def brings(changed, model, **others):
        """Each model has kernels of its own."""
        return {"kernels": kernels_per_step(model)} if changed == "model" else {}

    @staticmethod
    def scene(model, machine, batch, context, weights, experts, kv, kernels, wait):
        hidden = () if model.experts > 1 else ("experts",)
        if "bf16" not in machine.precisions:
            return no_peak(machine, "bf16", "machine", ())
        groups = {"experts": experts, "other": weights} if model.experts > 1 else weights
        found = figures(model, machine, batch, context, groups, kv, kernels, wait)
        axes = axes_for(found)
        return Scene((axes,), marks(found, axes), sentences(found), alt(found), 386, hidden)


_KERNELS = (0, 50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600,
            1800, 2000, 2500, 3000, 3500, 4096)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A measured step: sequences, seconds."""

    batch: int
    seconds: float


@dataclass(frozen=True)
class Figures:
    """Two curves over the batch and the point that is set, seconds and token/s.

    `fits` is how many sequences fit beside the weights, `chips` how many chips the weights and one
    sequence need; `within_wait` is the largest batch, of those drawn at most, whose token comes in
    time. `measured` are a real card's steps at `measured_context` tokens, the recorded
    context that is nearest.
    """

    model: Transformer
    machine: Machine
    batch: int
    context: int
    bound: DecodeCurve
    forecast: DecodeCurve
    at_bound: float
    at_forecast: float
    kernels: int
    wait: float
    fits: int
    chips: int
    within_wait: int
    measured: tuple[Measured, ...]
    measured_context: int

    @property
    def rate(self) -> float:
        """Tokens a second in all, as forecast."""
        return self.batch / self.at_forecast


def figures(
    model: Transformer,
    machine: Machine,
    batch: int,
    context: int,
    weights: str | dict[str, str],
    kv: str,
    kernels: int,
    wait: float,
) -> Figures:
    def times(batches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        works = model.decode(batches, context, weights=weights, kv=kv)
        step = step_time(works, machine, "bf16", kernels, PER_KERNEL)
        return np.asarray(step.bound), np.asarray(step.forecast)

    least, expected = times(np.append(_BATCHES, batch))
    bound, forecast = (
        DecodeCurve(_BATCHES, waits[:-1], _BATCHES / waits[:-1]) for waits in (least, expected)
    )
    room = machine.capacities.get("DRAM", np.inf)
    held, sequence = model.weight_bytes(weights), model.kv_bytes(1, context, kv)
    first_late = int(np.searchsorted(forecast.wait, wait, side="right"))
    within_wait = int(_BATCHES[first_late - 1]) if first_late else 0
    if 0 < first_late < len(_BATCHES):  # between two batches that are drawn
        between = np.arange(within_wait, _BATCHES[first_late])
        within_wait = int(between[times(between)[1] <= wait].max())
    recorded_in = weights == kv == "bf16"
    measured_context, measured = (
        _measured(model.name, machine.name, context) if recorded_in else (0, ())
    )
    return Figures(
        model,
        machine,
        batch,
        context,
        bound,
        forecast,
        float(least[-1]),
        float(expected[-1]),
        kernels,
        wait,
        fits=int(max(0, min((room - held) // sequence, 2**30))),
        chips=int(-(-(held + sequence) // room)) if np.isfinite(room) else 1,
        within_wait=within_wait,
        measured=measured,
        measured_context=measured_context,
    )


@cache
def _records() -> tuple[tuple[str, Record], ...]:
    """(model's name, record) of all records of whole models."""
    found = [load(name) for name in recorded()]
    return tuple((record.model["name"], record) for record in found if record.model)


@cache
def _measured(model, machine, context):
    """(nearest recorded context, the steps measured there) of this model in bf16 on this chip."""
    steps = [
        point
        for name, record in _records()
        for point in record.select("decode")
        if name == model
        and record.chip.name.removeprefix("NVIDIA ") == machine.removesuffix(" SXM")
        and point.label == "graph"
    ]
    if not steps:
        return 0, ()
    nearest = min({p.shape.context for p in steps}, key=lambda c: abs(np.log(c / context)))
    there = [p for p in steps if p.shape.context == nearest]
    return nearest, tuple(Measured(p.shape.batch, p.seconds) for p in there)


def axes_for(found: Figures) -> Axes:
    waits = [*(1e3 * found.bound.wait), *(1e3 * found.forecast.wait), 1e3 * found.wait]
    rates = [*found.bound.throughput, *found.forecast.throughput]
    return Axes(
        decades(waits, (1, 100)),
        decades(rates, (100, 1e4)),
        "wait for each token (ms)",
        "throughput (token/s in all)",
        _RECT,
    )


def marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    at, bound_at = 1e3 * found.at_forecast, 1e3 * found.at_bound
    rate, most = found.rate, found.batch / found.at_bound
    fits = found.batch <= found.fits
    limit = 1e3 * found.wait
    return (
        dashed((limit, limit), axes.ylim, FAINT, f"{significant(limit)} ms", 1.5),
        Line(tuple(1e3 * found.bound.wait), tuple(found.bound.throughput), MEMORY, "bound", 2.5),
        Line(
            tuple(1e3 * found.forecast.wait),
            tuple(found.forecast.throughput),
            COMPUTE,
            f"with {found.kernels:,} launches" if found.kernels else "",
            2.5,
        ),
        *(
            Point(1e3 * step.seconds, step.batch / step.seconds, "", FAINT, radius=4)
            for step in found.measured
        ),
        *_memory_limit(found),
        Drop(at, rate, ""),
        Point(bound_at, most, "", INK, hollow=True),
        Point(at, rate, f"batch {found.batch}", INK, hollow=not fits, bold=True),
    )


def _memory_limit(found: Figures) -> list[Mark]:
    """A square on the forecast where the memory is full."""
    if not 1 <= found.fits <= found.forecast.batch[-1]:
        return []
    wait = float(np.interp(found.fits, found.forecast.batch, found.forecast.wait))
    label = f"memory full at {found.fits}"
    return [Point(1e3 * wait, found.fits / wait, label, FAINT, "s", radius=5)]


def sentences(found: Figures) -> tuple[str, ...]:
    lost = 1 - found.at_bound / found.at_forecast
    launched = (
        f"forecast {quantity(found.at_forecast, 's')} with {found.kernels:,} kernels: "
        f"{significant(found.rate)} token/s in all, {percent(lost)} of the time launches"
        if found.kernels
        else f"{significant(found.rate)} token/s in all"
    )
    said = [
        f"{found.model.name or 'Model'} on {found.machine.name}, batch {found.batch}, context "
        f"{found.context:,}: at least {quantity(found.at_bound, 's')} a token, {launched}.",
        *_limits(found),
    ]
    if found.measured:
        said.append(
            f"Grey: measured on H200s at {found.measured_context:,} keys, one CUDA graph a step."
        )
    return tuple(said)


def _limits(found: Figures) -> Iterator[str]:
    """What ends the batch: the memory, or a reader's patience, whichever comes first."""
    soon = f"within {quantity(found.wait, 's')}"
    if "DRAM" not in found.machine.capacities:
        yield f"{_patience(found, soon)} How much memory this machine has is not known."
    elif not found.fits:
        yield (
            f"The weights and one sequence need {found.chips} {plural(found.chips, 'chip')} for "
            "their memory alone."
        )
    else:
        fit = (
            f"{found.fits:,} {plural(found.fits, 'sequence')} "
            f"{'fits' if found.fits == 1 else 'fit'} beside the weights into "
            f"{quantity(found.machine.capacity(), 'byte')}"
        )
        if found.fits <= found.within_wait:
            yield f"{fit}, and each still gets its token {soon}: the memory ends the batch."
        else:
            yield f"{_patience(found, soon)} {fit}."
        if found.batch > found.fits:
            yield f"Batch {found.batch:,} does not fit."


def _patience(found: Figures, soon: str) -> str:
    if not found.within_wait:
        return f"No batch brings a token {soon}."
    if found.within_wait == _BATCHES[-1]:
        return f"Even at batch {found.within_wait:,} a token comes {soon}."
    return f"Up to batch {found.within_wait:,} a token comes {soon}."


def alt(found: Figures) -> str:
    return (
        f"Throughput against the wait for a token, both logarithmic, for {found.model.name} on "
        f"{found.machine.name}: two curves over the batch climb steeply and then bend to the "
        "right. The forecast lies to the right of the bound, and a point on it marks the batch."
    )
