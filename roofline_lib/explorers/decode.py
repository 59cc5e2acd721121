"""Lesson 4: one decode step of a language model under the roof, where its bytes go, and throughput
against latency over the batch."""

import numpy as np

from roofline_lib.explorers.base import Explorer, Scene, no_peak, roofline
from roofline_lib.explorers.controls import Choice, MachineChoice, Number
from roofline_lib.explorers.marks import Bar, Drop, Line, Point
from roofline_lib.explorers.stage import Axes
from roofline_lib.model import bound, time_in_sequence
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, INTENSITY, MEMORY, PERFORMANCE, ROOM, decades
from roofline_lib.transformer import Transformer, transformer, transformers

_BATCHES = 2.0 ** np.arange(0, 11)
_SHAPES = {"attention": "D", "ffn": "o", "experts": "o", "projections": "s", "logits": "^"}
_ACTIVATIONS = ("bf16", "fp16", "fp8")
_HEIGHT = 486


class DecodeExplorer(Explorer):
    """One new token for each of `batch` sequences: a point for each group of operators, bytes by
    purpose, tokens/s and ms a token.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name; `batch` in sequences
    (1 to 1024), `context` in tokens (1 to 1048576); `weights`, `kv` and `activations` are
    precisions, and the peak is that of `activations`. Controls: the arguments' names.
    """

    def __init__(
        self,
        model="llama-2-7b",
        machine="A100 80GB SXM",
        batch=1,
        context=4096,
        weights="bf16",
        kv="bf16",
        activations="bf16",
    ):
        models = {name: transformer(name) for name in transformers()}
        if isinstance(model, Transformer):
            name = model.name or "this model"
            models = {name: model} | models
        else:
            name = transformer(model).name
        super().__init__(
            Choice("model", name, models),
            MachineChoice(machine),
            Number("batch", batch, 1, 1024, "sequences", "batch (seqs)"),
            Number("context", context, 1, 2**20, "tokens"),
            Choice("weights", weights, ("bf16", "fp8", "int4", "mxfp4")),
            Choice("kv", kv, ("bf16", "fp8", "int4"), "KV cache"),
            Choice("activations", activations, _ACTIVATIONS),
        )

    @staticmethod
    def scene(model, machine, batch, context, weights, kv, activations):
        if activations not in machine.precisions:
            return no_peak(machine, activations, _ACTIVATIONS, "activations")
        precisions = {"weights": weights, "kv": kv, "activations": activations}
        works = model.decode(batch, context, **precisions)
        step = time_in_sequence(works.values(), machine, activations)
        curve = time_in_sequence(
            model.decode(_BATCHES, context, **precisions).values(), machine, activations
        )
        total, attention = sum(works.values()), works["attention"]
        stored = model.weight_bytes(weights), model.kv_bytes(batch, context, kv)
        limits = {name: bound(work, machine, activations) for name, work in _groups(works).items()}
        roof = Axes(
            (0.1, 1e4),
            decades([limit.attainable_performance for limit in limits.values()], (1e10, 1e16)),
            INTENSITY,
            PERFORMANCE,
            (74, 14, 286, 318),
        )
        rate = Axes(
            (1, 1024),
            decades(_BATCHES / curve, (10, 1e5)),
            "",
            "token/s in all",
            (440, 14, 184, 132),
        )
        wait = Axes(
            (1, 1024), decades(1e3 * curve, (1, 100)), "batch", "ms a token", (440, 186, 184, 146)
        )
        marks = (
            *roofline(roof, machine.peak(activations), machine.bandwidth(), activations),
            *_points(limits),
            *_curve(
                1,
                _BATCHES / curve,
                batch,
                batch / step,
                f"{significant(batch / step)} token/s",
                COMPUTE,
            ),
            *_curve(2, 1e3 * curve, batch, 1e3 * step, quantity(step, "s"), MEMORY),
            *_bars(attention.bytes_moved / total.bytes_moved, stored, machine),
        )
        readout = (
            f"{model.name or 'Model'} on {machine.name}, batch {batch}, context {context}: "
            f"{quantity(total.bytes_moved, 'byte')} a step, "
            f"{_percent(attention.bytes_moved / total.bytes_moved)} of it for attention; at least {quantity(step, 's')} a token, "
            f"at most {significant(batch / step)} token/s. {_room(stored, machine)}"
        )
        alt = (
            f"Roofline of {machine.name} in {activations} with the operators of one decode step; "
            + "; ".join(
                f"{name} {significant(limit.work.intensity)} FLOP/byte, {limit.bound_by}-bound"
                for name, limit in limits.items()
            )
            + ". Beside it two curves over the batch: tokens per second rise and level off, milliseconds a token stay flat and then rise."
        )
        return Scene((roof, rate, wait), marks, readout, alt, _HEIGHT)


def _groups(works):
    """The step's Works by purpose: what shares a label shares a point."""
    groups = {}
    for name, work in works.items():
        group = {
            "attention": "attention",
            "logits": "logits",
            "ffn": "ffn",
            "experts": "experts",
            "shared": "experts",
            "router": "experts",
        }.get(name.split()[0], "projections")
        groups[group] = work + groups.get(group, 0)
    return groups


def _points(limits):
    """A point for each group; groups that lie on one another share it and its label. Attention has
    its own, on top of the others."""
    heaps = {}
    for name, limit in limits.items():
        close = (
            one
            for one in heaps
            if "attention" not in (one, name)
            and abs(np.log(limit.work.intensity / limits[one].work.intensity)) < 0.3
        )
        heaps.setdefault(next(close, name), []).append(name)
    return [
        Point(
            limits[name].work.intensity,
            limits[name].attainable_performance,
            "all others" if len(heap) == len(limits) - 1 else ", ".join(heap),
            INK,
            _SHAPES[name],
        )
        for name, heap in sorted(heaps.items(), key=lambda item: item[0] == "attention")
    ]


def _curve(panel, values, batch, value, label, color):
    return (
        Line(tuple(_BATCHES), tuple(values), color, "", 2.5, panel=panel),
        Drop(batch, value, "", FAINT, panel),
        Point(batch, value, label, INK, panel=panel, bold=True),
    )


def _bars(share, stored, machine):
    """Where the step's bytes go, and what of the machine's memory the model and its cache take."""
    bars = (
        Bar(
            "bytes of a step: products with weights, then attention",
            (1 - share, share),
            f"{_percent(share)} attention",
            (74, 396, 550),
            (MEMORY, ROOM),
        ),
    )
    if "DRAM" in machine.capacities:
        room = machine.capacity()
        bars += (
            Bar(
                "memory: weights, then KV cache",
                tuple(part / room for part in stored),
                f"{_percent(sum(stored) / room)} of {quantity(room, 'byte')}",
                (74, 440, 550),
                (MEMORY, ROOM),
            ),
        )
    return bars


def _room(stored, machine):
    weights, cache = (quantity(part, "byte") for part in stored)
    said = f"Weights {weights}, KV cache {cache}"
    if "DRAM" not in machine.capacities:
        return f"{said}."
    fits = sum(stored) <= machine.capacity()
    return f"{said}: {'they fit' if fits else 'more than fits'} into {quantity(machine.capacity(), 'byte')}."


def _percent(share):
    return f"{significant(100 * share)} %"
