"""Lesson 9: one training step under the roof, its memory, and what a larger micro-batch buys."""

from functools import cache

import numpy as np

from roofline_lib.explorers.base import Explorer, Scene, no_peak, roofline
from roofline_lib.explorers.controls import Choice, MachineChoice, Number
from roofline_lib.explorers.marks import Bar, Drop, Line, Point
from roofline_lib.explorers.stage import Axes
from roofline_lib.model import bound, time_in_sequence
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import (
    COMPUTE,
    FAINT,
    INK,
    INTENSITY,
    MEMORY,
    OVER,
    PERFORMANCE,
    ROOM,
    decades,
)
from roofline_lib.training import KEEP, training_memory, training_step
from roofline_lib.transformer import Transformer, transformer, transformers

_SIZES = 2 ** np.arange(0, 8)
_HEIGHT = 450
_PARTS = {"weights": MEMORY, "gradients": FAINT, "optimizer": COMPUTE, "activations": ROOM}


class TrainingExplorer(Explorer):
    """One training step in bf16 with Adam: intensity, memory against capacity, tokens/s at most,
    all over the micro-batch.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name; `micro_batch` in
    sequences (1 to 128), `accumulation` in micro-batches a step (1 to 64), `tokens` in each
    sequence (32 to 131072); `keep` as in training_memory. Controls: the arguments' names.
    """

    def __init__(
        self,
        model="gemma-2b",
        machine="A100 80GB SXM",
        micro_batch=4,
        accumulation=4,
        tokens=2048,
        keep="no scores",
    ):
        models = {name: transformer(name) for name in transformers()}
        name = (
            (model.name or "this model")
            if isinstance(model, Transformer)
            else transformer(model).name
        )
        super().__init__(
            Choice(
                "model", name, models | ({name: model} if isinstance(model, Transformer) else {})
            ),
            MachineChoice(machine),
            Number("micro_batch", micro_batch, 1, 128, "sequences", "micro-batch"),
            Number("accumulation", accumulation, 1, 64, "micro-batches", "accumulated"),
            Number("tokens", tokens, 32, 2**17, "tokens a sequence", "tokens a seq."),
            Choice("keep", keep, KEEP, "kept"),
        )

    @staticmethod
    def scene(model, machine, micro_batch, accumulation, tokens, keep):
        if "bf16" not in machine.precisions:
            return no_peak(machine, "bf16")
        step = training_step(model, micro_batch, tokens, accumulation, keep)
        held, room = (
            training_memory(model, micro_batch, tokens, keep),
            machine.capacities.get("DRAM", np.inf),
        )
        rate = (
            micro_batch * accumulation * tokens / time_in_sequence(step.values(), machine, "bf16")
        )
        rates, needs = _curves(model, machine, accumulation, tokens, keep)
        limits = {name: bound(step[name], machine, "bf16") for name in ("forward", "optimizer")}
        roof = Axes(
            (0.1, 1e5),
            decades([limit.attainable_performance for limit in limits.values()], (1e10, 1e16)),
            INTENSITY,
            PERFORMANCE,
            (74, 14, 286, 318),
        )
        upper = Axes(
            (1, 128), decades(rates, (100, 1e5)), "", "token/s at most", (440, 14, 184, 132)
        )
        lower = Axes(
            (1, 128),
            decades(needs, (1e10, 1e12)),
            "micro-batch",
            "memory (byte)",
            (440, 186, 184, 146),
        )
        fits = held.total <= room
        marks = (
            *roofline(roof, machine.peak("bf16"), machine.bandwidth(), "bf16"),
            Point(
                limits["forward"].work.intensity,
                limits["forward"].attainable_performance,
                "forward, backward",
                INK,
            ),
            Point(
                limits["optimizer"].work.intensity,
                limits["optimizer"].attainable_performance,
                "optimizer",
                INK,
                "D",
            ),
            Line(tuple(_SIZES), tuple(rates), COMPUTE, panel=1),
            Drop(micro_batch, rate, "", FAINT, 1),
            Point(micro_batch, rate, f"{significant(rate)} token/s", INK, panel=1, bold=True),
            Line(tuple(_SIZES), tuple(needs), MEMORY, panel=2),
            Drop(micro_batch, held.total, "", FAINT, 2),
            Point(
                micro_batch,
                held.total,
                quantity(held.total, "byte"),
                INK if fits else OVER,
                hollow=not fits,
                panel=2,
                bold=True,
            ),
        )
        if np.isfinite(room):
            parts = tuple(getattr(held, part) / room for part in _PARTS)
            marks += (
                Line(
                    (1, 128), (room, room), FAINT, f"holds {quantity(room, 'byte')}", 1.5, (5, 4), 2
                ),
                Bar(
                    "memory: " + ", ".join(_PARTS),
                    parts,
                    f"{significant(100 * sum(parts))} % of {quantity(room, 'byte')}",
                    (74, 400, 550),
                    tuple(_PARTS.values()),
                ),
            )
        sizes = ", ".join(f"{part} {quantity(getattr(held, part), 'byte')}" for part in _PARTS)
        readout = (
            f"{model.name or 'Model'} on {machine.name}, micro-batch {micro_batch} x {tokens} tokens, {accumulation} accumulated: "
            f"{quantity(held.total, 'byte')} held ({sizes}), {'which fits' if fits else 'more than fits'}. Products at "
            f"{significant(limits['forward'].work.intensity)} FLOP/byte, {limits['forward'].bound_by}-bound; at most "
            f"{significant(rate)} token/s."
        )
        alt = (
            f"Roofline of {machine.name}: the products of a training step are {limits['forward'].bound_by}-bound, the optimizer lies "
            "far down the slope. Beside it, over the micro-batch, tokens per second level off and memory grows in a straight line."
        )
        return Scene((roof, upper, lower), marks, readout, alt, _HEIGHT)


@cache
def _curves(model, machine, accumulation, tokens, keep):
    """(tokens/s at most, bytes held) for each of _SIZES, which no change of the micro-batch alone
    moves."""
    step = training_step(model, _SIZES, tokens, accumulation, keep)
    rates = _SIZES * accumulation * tokens / time_in_sequence(step.values(), machine, "bf16")
    return rates, training_memory(model, _SIZES, tokens, keep).total
