"""Lesson 8: eight operators under one roof, each step by step or in one kernel."""

from dataclasses import dataclass

import numpy as np

from roofline_lib.explorers.base import Explorer, Scene, no_peak, roofline, roofline_axes
from roofline_lib.explorers.controls import Choice, MachineChoice, Number, Switch
from roofline_lib.explorers.marks import Mark, Point
from roofline_lib.explorers.shapes import Path, Words
from roofline_lib.labels import text_size
from roofline_lib.model import bound, time_in_sequence
from roofline_lib.model import fused as merge
from roofline_lib.operators import (
    attention,
    conv2d,
    elementwise,
    gemm,
    layer_norm,
    rms_norm,
    softmax,
)
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY

_PRECISIONS, _ALL = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"), "all of them"
_STEPS = {
    "elementwise": "rw rw rw",
    "softmax": "r rw rw r rw",
    "LayerNorm": "r rw rw r rw rw rw",
    "RMSNorm": "rw r rw rw",
}
_KINDS = dict.fromkeys(_STEPS, "o") | {
    "convolution": "s",
    "GEMM": "s",
    "prefill attention": "D",
    "decode attention": "D",
}


class OperatorExplorer(Explorer):
    """Eight operators under the roof of a machine, step by step or each in one kernel: who moves,
    and who rises.

    Model width 4096, 32 heads of 128; `tokens` are rows, keys and, in prefill, queries; `kv_heads`
    of the heads have their own keys and values. `fused` merges the steps of the pointwise operators
    (each reads all numbers, most also write them, 1 FLOP a number) and the ReLU after GEMM and
    convolution; `flash` those of attention, whose FLOP are its two products'. The sentence is about
    `operator`. Controls: the arguments' names.
    """

    def __init__(
        self,
        machine="house chip",
        precision="bf16",
        tokens=4096,
        kv_heads=32,
        fused=False,
        flash=False,
        causal=False,
        operator=_ALL,
    ):
        super().__init__(
            Choice("precision", precision, _PRECISIONS),
            Choice(
                "kv_heads",
                str(kv_heads),
                {str(heads): heads for heads in (32, 16, 8, 4, 2, 1)},
                "KV heads (of 32)",
            ),
            MachineChoice(machine),
            Choice("operator", operator, (_ALL, *_KINDS)),
            Number("tokens", tokens, 1, 65536, "rows, keys"),
            Switch("fused", fused, "fused: one kernel for all steps"),
            Switch("flash", flash, "flash: no scores in memory"),
            Switch("causal", causal, "causal mask in prefill"),
        )

    @staticmethod
    def scene(machine, precision, tokens, kv_heads, fused, flash, causal, operator):
        if precision not in machine.precisions:
            return no_peak(machine, precision, _PRECISIONS)
        peak, bandwidth = machine.peak(precision), machine.bandwidth()
        points, reach, gains, said = [], [], [], ""
        for name, (what, steps, least) in _operators(precision, tokens, kv_heads, causal).items():
            apart, one = sum(steps), merge(*steps, bytes_moved=least)
            times = time_in_sequence(steps, machine, precision), bound(one, machine, precision).time
            sides = [bound(work, machine, precision).bound_by for work in (apart, one)]
            state = int(flash if _KINDS[name] == "D" else fused)
            work, color = (
                (apart, one)[state],
                INK if name == operator else {"memory": MEMORY, "compute": COMPUTE}[sides[state]],
            )
            points.append(
                Point(
                    work.intensity,
                    work.flops / times[state],
                    f"{name} {significant(work.intensity)}",
                    color,
                    _KINDS[name],
                    not state,
                    5.5,
                    name == operator,
                )
            )
            reach += [
                (apart.intensity, apart.flops / times[0]),
                (one.intensity, one.flops / times[1]),
            ]
            gains.append(f"{name} {significant(times[0] / times[1])}")
            if name == operator:
                ways = [
                    f"{quantity(way.bytes_moved, 'byte')}, {quantity(way.intensity, 'FLOP/byte')}, {side}-bound, at least "
                    f"{quantity(time, 's')}"
                    for way, side, time in zip((apart, one), sides, times, strict=True)
                ]
                said = (
                    f"{name}, {what}, in {precision} on {machine.name}: {quantity(one.flops, 'FLOP')} either way. "
                    f"Step by step {ways[0]}; in one kernel {ways[1]}, {significant(times[0] / times[1])} times as fast."
                )
        # both states: a switch moves no axis
        axes = roofline_axes(
            [3 * x for x, _ in reach], [1e9, 6 * peak, *(y / 60 for _, y in reach)]
        )
        readout = said or (
            f"{tokens:,} token{'s' * (tokens > 1)} in {precision} on {machine.name}, ridge point "
            f"{significant(peak / bandwidth)} FLOP/byte. One kernel for all steps makes {', '.join(gains)} times as fast."
        )
        alt = (
            f"Roofline of {machine.name} in {precision} with eight operators, by FLOP/byte: "
            + ", ".join(point.label for point in points)
            + "."
        )
        return Scene(
            (axes,),
            (*roofline(axes, peak, bandwidth, precision), Staircase(tuple(points))),
            readout,
            alt,
        )


def _operators(precision, tokens, kv_heads, causal):
    """{operator: (its shape in words, the Works of its steps as kernels of their own, the bytes
    that one kernel moves for all of them)}."""
    wide, scores, results = tokens * 4096, 32 * tokens * tokens, 32 * 56 * 56 * 64
    rows = f"{tokens:,} rows of 4096"
    wholes = {
        "elementwise": (f"3 steps on {rows}", wide, elementwise(wide, precision, 1, 1)),
        "softmax": (
            f"{32 * tokens:,} rows of {tokens:,} scores",
            scores,
            softmax(32 * tokens, tokens, precision),
        ),
        "LayerNorm": (rows, wide, layer_norm(tokens, 4096, precision)),
        "RMSNorm": (rows, wide, rms_norm(tokens, 4096, precision)),
    }
    works = {
        name: (
            what,
            [
                elementwise(n, precision, step.count("r"), step.count("w"))
                for step in _STEPS[name].split()
            ],
            one.bytes_moved,
        )
        for name, (what, n, one) in wholes.items()
    }
    for name, what, product, n in (
        (
            "convolution",
            "32 images of 56 x 56 x 64, 3 x 3, ReLU",
            conv2d(32, 56, 56, 64, 64, 3, precision, padding=1),
            results,
        ),
        (
            "GEMM",
            f"[{tokens}, 4096] @ [4096, 4096], ReLU",
            gemm(tokens, 4096, 4096, precision),
            wide,
        ),
    ):
        works[name] = what, [product, elementwise(n, precision, 1, 1)], product.bytes_moved
    for name, queries in (("prefill attention", tokens), ("decode attention", 1)):
        what = f"32 heads on {kv_heads} KV heads, {queries:,} x {tokens:,} scores"
        shape = (1, 32, kv_heads, queries, tokens, 128, precision)
        works[name] = (
            what,
            [attention(*shape, causal=causal)],
            attention(*shape, flash=True).bytes_moved,
        )
    return works


@dataclass(frozen=True)
class Staircase(Mark):
    """Points that may crowd: their labels go down to the right one below the other, each on a thin
    leader."""

    points: tuple

    def _places(self, view):
        """(point, its label, where the leader starts and ends), the rightmost point first."""
        spots = view.pixels([point.x for point in self.points], [point.y for point in self.points])
        foot = 0
        for i in np.lexsort((spots[:, 1], -spots[:, 0])):
            (x, y), point = spots[i], self.points[i]
            foot, width = (
                max(foot + 14, y + 15),
                text_size(point.label, 12)[0] * (1.1 if point.bold else 1),
            )
            left = min(x + 18, view.frame[2] - width)
            foot = max(
                foot,
                *(
                    v + 15
                    for u, v in spots
                    if left - 8 < u < left + width + 8 and foot - 18 < v < foot + 8
                ),
                0,
            )
            yield (
                point,
                Words(left, foot, point.label, point.color, 12, bold=point.bold),
                np.array(
                    [
                        (x, y),
                        (np.clip(x, left - 2, left + width), foot - 4 if x < left else foot - 11),
                    ]
                ),
            )

    def shapes(self, view):
        places = list(self._places(view))
        return [Path(leader, FAINT, 1) for *_, leader in places] + [
            shape for point, *_ in places for shape in point.shapes(view)
        ]

    def captions(self, view, taken):
        return [words for _, words, _ in self._places(view)]
