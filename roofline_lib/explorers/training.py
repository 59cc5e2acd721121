"""One training step under the roof, its memory, and what a larger micro-batch buys."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, MachineChoice, ModelChoice, Number
from roofline_lib.explorers.marks import Mark, Part, Point, Stack
from roofline_lib.explorers.scenes import (
    WIDE,
    Curve,
    Scene,
    dashed,
    no_peak,
    roofline,
    three_panels,
)
from roofline_lib.explorers.stage import Axes
from roofline_lib.machines import Machine
from roofline_lib.model import Bound, bound, time_in_sequence
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, OVER, ROOM
from roofline_lib.training import KEEP, TrainingMemory, training_memory, training_step
from roofline_lib.transformer import Transformer

_PRECISION = "bf16"  # that a training step is counted in
_SIZES = 2 ** np.arange(0, 8)
_HEIGHT = 468
_LASTING = {"weights": MEMORY, "gradients": FAINT, "optimizer": COMPUTE, "activations": ROOM}


class TrainingExplorer(Explorer):
    """One training step in bf16 with Adam: intensity, memory at the worst moment against capacity,
    tokens/s at most, all over the micro-batch.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name; `micro_batch` in
    sequences (1 to 128), `accumulation` in micro-batches a step (1 to 64), `tokens` in each
    sequence (32 to 131072); `keep` as in training_memory. Controls: the arguments' names.
    """

    def __init__(
        self,
        model: Transformer | str = "gemma-2b",
        machine: Machine | str = "A100 80GB SXM",
        micro_batch: int = 4,
        accumulation: int = 4,
        tokens: int = 2048,
        keep: str = "no scores",
    ):
        super().__init__(
            ModelChoice(model),
            MachineChoice(machine),
            Number("micro_batch", micro_batch, 1, 128, "sequences", "micro-batch"),
            Number("accumulation", accumulation, 1, 64, "micro-batches", "accumulated"),
            Number("tokens", tokens, 32, 2**17, "tokens a sequence", "tokens a seq."),
            Choice("keep", keep, KEEP, "kept"),
        )

    @staticmethod
    def scene(model, machine, micro_batch, accumulation, tokens, keep):
        if _PRECISION not in machine.precisions:
            return no_peak(machine, _PRECISION, among=())
        found = figures(model, machine, micro_batch, accumulation, tokens, keep)
        axes = axes_for(found)
        return Scene(axes, marks(found, axes), sentences(found), alt(found), _HEIGHT)


@dataclass(frozen=True)
class Figures:
    """One training step: its products' and its optimizer's Bound, what it holds, and how fast it
    is.

    `rate` is in tokens/s at most, `rates` and `needs` (byte) are over _SIZES; `room` (byte) is
    None where the machine's DRAM is not known.
    """

    model: Transformer
    machine: Machine
    micro_batch: int
    accumulation: int
    tokens: int
    products: Bound
    optimizer: Bound
    held: TrainingMemory
    room: float | None
    rate: float
    rates: tuple
    needs: tuple

    @property
    def parts(self) -> tuple[Part, ...]:
        """What lies in memory at the worst moment of the step; what comes and goes is the last."""
        passing = "logits" if self.held.logits >= self.held.recomputed else "live layer"
        sizes = {name: getattr(self.held, name) for name in _LASTING} | {passing: self.held.passing}
        colors = _LASTING | {passing: INK}
        return tuple(
            Part(name, size, quantity(size, "byte"), colors[name]) for name, size in sizes.items()
        )

    @property
    def fits(self) -> bool:
        return self.room is None or self.held.total <= self.room


def figures(
    model: Transformer,
    machine: Machine,
    micro_batch: int,
    accumulation: int,
    tokens: int,
    keep: str,
) -> Figures:
    step = training_step(model, micro_batch, tokens, accumulation, keep)
    seconds = time_in_sequence(step.values(), machine, _PRECISION)
    rates, needs = _over_sizes(model, machine, accumulation, tokens, keep)
    return Figures(
        model,
        machine,
        micro_batch,
        accumulation,
        tokens,
        products=bound(step["forward"], machine, _PRECISION),
        optimizer=bound(step["optimizer"], machine, _PRECISION),
        held=training_memory(model, micro_batch, tokens, keep),
        room=machine.capacities.get("DRAM"),
        rate=micro_batch * accumulation * tokens / seconds,
        rates=rates,
        needs=needs,
    )


@cache
def _over_sizes(
    model: Transformer, machine: Machine, accumulation: int, tokens: int, keep: str
) -> tuple[tuple, tuple]:
    """(tokens/s at most, bytes held) for each of _SIZES, which no change of the micro-batch alone
    moves."""
    step = training_step(model, _SIZES, tokens, accumulation, keep)
    rates = _SIZES * accumulation * tokens / time_in_sequence(step.values(), machine, _PRECISION)
    needs = training_memory(model, _SIZES, tokens, keep).total
    return tuple(np.asarray(rates).tolist()), tuple(np.asarray(needs).tolist())


def _curves(found: Figures) -> tuple[Curve, Curve]:
    """Tokens a second, and bytes held, over the micro-batch."""
    sizes, at, held = tuple(_SIZES), found.micro_batch, found.held.total
    rate = f"{significant(found.rate)} token/s"
    return (
        Curve(sizes, found.rates, COMPUTE, "token/s at most", (100, 1e5), at, found.rate, rate),
        Curve(
            sizes,
            found.needs,
            MEMORY,
            "memory (byte)",
            (1e10, 1e12),
            at,
            held,
            quantity(held, "byte"),
            INK if found.fits else OVER,
            hollow=not found.fits,
        ),
    )


def axes_for(found: Figures) -> tuple[Axes, ...]:
    reached = [limit.attainable_performance for limit in (found.products, found.optimizer)]
    return three_panels((0.1, 1e5), reached, *_curves(found), "micro-batch")


def marks(found: Figures, axes: tuple[Axes, ...]) -> tuple[Mark, ...]:
    peak, bandwidth = found.machine.peak(_PRECISION), found.machine.bandwidth()
    rate, need = _curves(found)
    return (
        *roofline(axes[0], peak, bandwidth, _PRECISION),
        _point(found.products, "products", "o"),
        _point(found.optimizer, "optimizer", "D"),
        *rate.marks(1),
        *need.marks(2),
        *(() if found.room is None else _against_the_room(found, found.room)),
    )


def _point(limit: Bound, name: str, kind: str) -> Point:
    return Point(limit.work.intensity, limit.attainable_performance, name, INK, kind, rank=-1)


def _against_the_room(found: Figures, room: float) -> tuple[Mark, ...]:
    """What the machine's memory holds, as a line over the curve and as a bar of parts."""
    left, width = WIDE
    room_for_names = 58
    said = quantity(room, "byte")
    return (
        dashed((1, 128), (room, room), FAINT, f"holds {said}", 1.5, panel=2),
        Stack(
            "memory at the worst moment",
            found.parts,
            room,
            f"{quantity(found.held.total, 'byte')} of {said}",
            (left - room_for_names, 396, width + room_for_names),
        ),
    )


def sentences(found: Figures) -> tuple[str, ...]:
    sizes = ", ".join(f"{part.name} {part.said}" for part in found.parts)
    fits = "which fits" if found.fits else "more than fits"
    return (
        f"{found.model.name or 'Model'} on {found.machine.name}, "
        f"micro-batch {found.micro_batch} x {found.tokens} tokens, "
        f"{found.accumulation} accumulated: "
        f"{quantity(found.held.total, 'byte')} at the worst moment, {fits}.",
        f"That is {sizes}.",
        f"Products at {significant(found.products.work.intensity)} FLOP/byte, "
        f"{found.products.bound_by}-bound; at most {significant(found.rate)} token/s.",
    )


def alt(found: Figures) -> str:
    return (
        f"Roofline of {found.machine.name}: the products of a training step are "
        f"{found.products.bound_by}-bound, the optimizer lies far down the slope. Beside it, over "
        "the micro-batch, tokens per second level off and memory grows in a straight line."
    )
