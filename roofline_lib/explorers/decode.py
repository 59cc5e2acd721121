"""Lesson 5: one decode step of a language model under the roof, where its bytes go, and throughput
against latency over the batch."""

from dataclasses import dataclass

import numpy as np

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import (
    Choice,
    MachineChoice,
    ModelChoice,
    Number,
    PrecisionChoice,
)
from roofline_lib.explorers.marks import Bar, Mark, Point
from roofline_lib.explorers.scenes import (
    WIDE,
    Curve,
    Scene,
    no_peak,
    percent,
    roofline,
    three_panels,
)
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.model import Bound, Work, bound, time_in_sequence
from roofline_lib.precisions import SERVED
from roofline_lib.quantities import plural, quantity, significant
from roofline_lib.style import COMPUTE, INK, MEMORY, ROOM
from roofline_lib.transformer import Transformer

_BATCHES = 2.0 ** np.arange(0, 11)
_SHAPES = {"attention": "D", "ffn": "o", "experts": "o", "projections": "s", "logits": "^"}
_HEIGHT = 486


class DecodeExplorer(Explorer):
    """One new token for each of `batch` sequences: a point for each group of operators, bytes by
    purpose, tokens/s and ms a token.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name; `batch` in sequences
    (1 to 1024), `context` in tokens (1 to 1048576); `weights`, `kv` and `activations` are
    precisions, and the peak is that of `activations`. Controls: the arguments' names.

    "At least" and "at most" are bounds at the data sheet's bandwidth. They leave out the time to
    start kernels, norms and other elementwise passes, sampling, and any network; a layer with a
    window reads its window, and of a mixture of experts those experts that the batch is expected
    to choose. A real step takes up to some times as long (lesson 5 measures one).
    """

    sample = {"model": "llama-2-7b", "batch": 16}

    def __init__(
        self,
        model: Transformer | str = "llama-2-7b",
        machine: Machine | str = "A100 80GB SXM",
        batch: int = 1,
        context: int = 4096,
        weights: str = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
    ):
        chip = MachineChoice(machine)
        super().__init__(
            ModelChoice(model),
            chip,
            Number("batch", batch, 1, 1024, "sequences", "batch (seqs)"),
            Number("context", context, 1, 2**20, "tokens"),
            Choice("weights", weights, SERVED["weights"]),
            Choice("kv", kv, SERVED["kv"], "KV cache"),
            PrecisionChoice("activations", activations, chip, SERVED["activations"]),
        )

    @staticmethod
    def scene(model, machine, batch, context, weights, kv, activations):
        if activations not in machine.precisions:
            return no_peak(machine, activations, "activations", SERVED["activations"])
        found = figures(model, machine, batch, context, weights, kv, activations)
        axes = axes_for(found)
        return Scene(axes, marks(found, axes), sentences(found), alt(found), _HEIGHT)


@dataclass(frozen=True)
class Figures:
    """One decode step: the bound of each group of operators, and times over the batch.

    `total` and `attention` are Works of the step, `time` is in seconds, `times` in seconds for each
    of _BATCHES, `stored` the bytes of weights and of the KV cache.
    """

    model: Transformer
    machine: Machine
    batch: int
    context: int
    activations: str
    limits: dict[str, Bound]
    total: Work
    attention: Work
    time: float
    times: np.ndarray
    stored: tuple[float, float]

    @property
    def rate(self) -> float:
        """Tokens a second, of all sequences together."""
        return self.batch / self.time

    @property
    def attention_share(self) -> float:
        return self.attention.bytes_moved / self.total.bytes_moved


def figures(
    model: Transformer,
    machine: Machine,
    batch: int,
    context: int,
    weights: str,
    kv: str,
    activations: str,
) -> Figures:
    works, over_batches = (
        model.decode(size, context, weights=weights, kv=kv, activations=activations)
        for size in (batch, _BATCHES)
    )
    groups = _groups(works)
    first, *rest = works.values()
    return Figures(
        model,
        machine,
        batch,
        context,
        activations,
        limits={name: bound(work, machine, activations) for name, work in groups.items()},
        total=sum(rest, first),
        attention=works["attention"],
        time=time_in_sequence(works.values(), machine, activations),
        times=np.asarray(time_in_sequence(over_batches.values(), machine, activations)),
        stored=(model.weight_bytes(weights), model.kv_bytes(batch, context, kv)),
    )


_PURPOSES = {
    "attention": "attention",
    "logits": "logits",
    "ffn": "ffn",
    "experts": "experts",
    "shared": "experts",
    "router": "experts",
}


def _groups(works: dict[str, Work]) -> dict[str, Work]:
    """The step's Works by purpose: what shares a label shares a point."""
    groups: dict[str, Work] = {}
    for name, work in works.items():
        purpose = _PURPOSES.get(name.split()[0], "projections")
        groups[purpose] = work + groups.get(purpose, 0)
    return groups


def _curves(found: Figures) -> tuple[Curve, Curve]:
    """Tokens a second, and milliseconds a token, over the batch."""
    batches, rates, waits = tuple(_BATCHES), _BATCHES / found.times, 1e3 * found.times
    at, said = found.batch, f"{significant(found.rate)} token/s"
    return (
        Curve(batches, tuple(rates), COMPUTE, "token/s in all", (10, 1e5), at, found.rate, said),
        Curve(
            batches,
            tuple(waits),
            MEMORY,
            "ms a token",
            (1, 100),
            at,
            1e3 * found.time,
            quantity(found.time, "s"),
        ),
    )


def axes_for(found: Figures) -> tuple[Axes, ...]:
    reached = [limit.attainable_performance for limit in found.limits.values()]
    return three_panels((0.1, 1e4), reached, *_curves(found), "batch")


def marks(found: Figures, axes: tuple[Axes, ...]) -> tuple[Mark, ...]:
    peak, bandwidth = found.machine.peak(found.activations), found.machine.bandwidth()
    rate, wait = _curves(found)
    return (
        *roofline(axes[0], peak, bandwidth, found.activations),
        *_points(found.limits),
        *rate.marks(1),
        *wait.marks(2),
        *_bars(found),
    )


def _points(limits: dict[str, Bound]) -> list[Point]:
    """A point for each group; groups that lie on one another share it and its label. Attention's is
    a diamond, on top of the others."""
    heaps: dict[str, list[str]] = {}
    for name in sorted(limits, key=lambda name: name != "attention"):
        close = (
            one
            for one in heaps
            if abs(np.log(limits[name].work.intensity / limits[one].work.intensity)) < 0.3
        )
        heaps.setdefault(next(close, name), []).append(name)
    return [
        Point(
            limits[name].work.intensity,
            limits[name].attainable_performance,
            _name_of(heap, limits),
            INK,
            _SHAPES[name],
            rank=-1,
        )
        for name, heap in reversed(heaps.items())
    ]


def _name_of(heap: list[str], limits: dict[str, Bound]) -> str:
    """All products with weights together are called as in the bar below."""
    if len(heap) == len(limits):
        return "all operators"
    if len(heap) == len(limits) - 1 and "attention" not in heap:
        return "products with weights"
    return ", ".join(heap)


def _bars(found: Figures) -> list[Bar]:
    """Where the step's bytes go, and what of the machine's memory the model and its cache take."""
    (left, width), share = WIDE, found.attention_share
    colors = MEMORY, ROOM
    bars = [
        Bar(
            "bytes of a step: products with weights, then attention",
            (1 - share, share),
            f"{percent(share)} attention",
            (left, 396, width),
            colors,
        )
    ]
    if "DRAM" in found.machine.capacities:
        room = found.machine.capacity()
        bars.append(
            Bar(
                "memory: weights, then KV cache",
                tuple(part / room for part in found.stored),
                f"{percent(sum(found.stored) / room)} of {quantity(room, 'byte')}",
                (left, 440, width),
                colors,
            )
        )
    return bars


def sentences(found: Figures) -> tuple[str, ...]:
    return (
        f"{found.model.name or 'Model'} on {found.machine.name}, batch {found.batch}, "
        f"context {found.context}: {quantity(found.total.bytes_moved, 'byte')} a step, "
        f"{percent(found.attention_share)} of it for attention; "
        f"at least {quantity(found.time, 's')} a token, "
        f"at most {significant(found.rate)} token/s.",
        _room(found.stored, found.machine),
    )


def _room(stored: tuple[float, float], machine: Machine) -> str:
    weights, cache = (quantity(part, "byte") for part in stored)
    said = f"Weights {weights}, KV cache {cache}"
    if "DRAM" not in machine.capacities:
        return f"{said}."
    room = machine.capacity()
    if sum(stored) <= room:
        return f"{said}: they fit into {quantity(room, 'byte')}."
    chips = int(-(-sum(stored) // room))
    return (
        f"{said}: more than fits into {quantity(room, 'byte')}; "
        f"{plural(chips, 'chip')} for the memory alone."
    )


def alt(found: Figures) -> str:
    operators = "; ".join(
        f"{name} {significant(limit.work.intensity)} FLOP/byte, {limit.bound_by}-bound"
        for name, limit in found.limits.items()
    )
    return (
        f"Roofline of {found.machine.name} in {found.activations} with the operators of one decode "
        f"step; {operators}. Beside it two curves over the batch: tokens per second rise and level "
        "off, milliseconds a token stay flat and then rise."
    )
