"""Lesson 9: eight operators under one roof, each step by step or in one kernel."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, MachineChoice, Number, PrecisionChoice, Switch
from roofline_lib.explorers.marks import Mark, Point
from roofline_lib.explorers.scenes import Scene, no_peak, plural, roofline, roofline_axes
from roofline_lib.explorers.shapes import Path, Words
from roofline_lib.explorers.stage import Axes, View
from roofline_lib.labels import text_size
from roofline_lib.machines import Machine
from roofline_lib.model import Bound, Work, bound
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

_ALL = "all of them"
# what each kernel of an operator does with all the numbers, read (r) or write (w), kernel by kernel
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
_SIDES = {"memory": MEMORY, "compute": COMPUTE, "both": INK}


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
        machine: Machine | str = "house chip",
        precision: str = "bf16",
        tokens: int = 4096,
        kv_heads: int = 32,
        fused: bool = False,
        flash: bool = False,
        causal: bool = False,
        operator: str = _ALL,
    ):
        chip = MachineChoice(machine)
        super().__init__(
            PrecisionChoice("precision", precision, chip),
            Choice("kv_heads", kv_heads, (32, 16, 8, 4, 2, 1), "KV heads (of 32)"),
            chip,
            Choice("operator", operator, (_ALL, *_KINDS)),
            Number("tokens", tokens, 1, 65536, "rows, keys"),
            Switch("fused", fused, "fused: one kernel for all steps"),
            Switch("flash", flash, "flash: no scores in memory"),
            Switch("causal", causal, "causal mask in prefill"),
        )

    @staticmethod
    def scene(machine, precision, tokens, kv_heads, fused, flash, causal, operator):
        if precision not in machine.precisions:
            return no_peak(machine, precision)
        found = figures(machine, precision, tokens, kv_heads, fused, flash, causal, operator)
        axes = axes_for(found)
        return Scene((axes,), marks(found, axes), sentences(found), alt(found))


@dataclass(frozen=True)
class Way:
    """One way to run an operator: its kernels' Works and their Bounds, kernel by kernel."""

    works: tuple[Work, ...]
    bounds: tuple[Bound, ...]

    @property
    def work(self) -> Work:
        first, *others = self.works
        return sum(others, first)

    @property
    def time(self) -> float:
        """In seconds, one kernel after the other, each at its roof."""
        return float(sum(limit.time for limit in self.bounds))

    @property
    def side(self) -> str:
        """ "memory" or "compute", or "both" where the kernels differ."""
        sides = {str(limit.bound_by) for limit in self.bounds}
        return sides.pop() if len(sides) == 1 else "both"

    @property
    def performance(self) -> float:
        return self.work.flops / self.time


@dataclass(frozen=True)
class Comparison:
    """An operator step by step and in one kernel; `shape` is in words, `one_kernel` says which of
    the two ways is shown."""

    name: str
    shape: str
    apart: Way
    one: Way
    one_kernel: bool

    @property
    def shown(self) -> Way:
        return self.one if self.one_kernel else self.apart

    @property
    def gain(self) -> float:
        return self.apart.time / self.one.time


@dataclass(frozen=True)
class Figures:
    machine: Machine
    precision: str
    tokens: int
    operator: str
    compared: tuple[Comparison, ...]

    @property
    def peak(self) -> float:
        return self.machine.peak(self.precision)


def _way(works: Iterable[Work], machine: Machine, precision: str) -> Way:
    works = tuple(works)
    return Way(works, tuple(bound(work, machine, precision) for work in works))


def figures(
    machine: Machine,
    precision: str,
    tokens: int,
    kv_heads: int,
    fused: bool,
    flash: bool,
    causal: bool,
    operator: str,
) -> Figures:
    compared = []
    for kernels in _operators(precision, tokens, kv_heads, causal):
        one = merge(*kernels.steps, bytes_moved=kernels.least_bytes)
        compared.append(
            Comparison(
                kernels.name,
                kernels.shape,
                _way(kernels.steps, machine, precision),
                _way([one], machine, precision),
                flash if _KINDS[kernels.name] == "D" else fused,
            )
        )
    return Figures(machine, precision, tokens, operator, tuple(compared))


@dataclass(frozen=True)
class Kernels:
    """An operator: its shape in words, the Works of its steps as kernels of their own, and the
    bytes that one kernel moves for all of them."""

    name: str
    shape: str
    steps: list[Work]
    least_bytes: float


def _operators(precision: str, tokens: int, kv_heads: int, causal: bool) -> list[Kernels]:
    return [
        *_pointwise(precision, tokens),
        *_products(precision, tokens),
        *_attentions(precision, tokens, kv_heads, causal),
    ]


def _pointwise(precision: str, tokens: int) -> Iterator[Kernels]:
    wide, scores = tokens * 4096, 32 * tokens * tokens
    rows = f"{tokens:,} rows of 4096"
    for name, shape, numbers, whole in (
        ("elementwise", f"3 steps on {rows}", wide, elementwise(wide, precision, 1, 1)),
        (
            "softmax",
            f"{32 * tokens:,} rows of {tokens:,} scores",
            scores,
            softmax(32 * tokens, tokens, precision),
        ),
        ("LayerNorm", rows, wide, layer_norm(tokens, 4096, precision)),
        ("RMSNorm", rows, wide, rms_norm(tokens, 4096, precision)),
    ):
        steps = [
            elementwise(numbers, precision, step.count("r"), step.count("w"))
            for step in _STEPS[name].split()
        ]
        yield Kernels(name, shape, steps, whole.bytes_moved)


def _products(precision: str, tokens: int) -> Iterator[Kernels]:
    """A convolution and a GEMM, each followed by a ReLU on its results."""
    for name, shape, product, results in (
        (
            "convolution",
            "32 images of 56 x 56 x 64, 3 x 3, ReLU",
            conv2d(32, 56, 56, 64, 64, 3, precision, padding=1),
            32 * 56 * 56 * 64,
        ),
        (
            "GEMM",
            f"[{tokens}, 4096] @ [4096, 4096], ReLU",
            gemm(tokens, 4096, 4096, precision),
            tokens * 4096,
        ),
    ):
        relu = elementwise(results, precision, 1, 1)
        yield Kernels(name, shape, [product, relu], product.bytes_moved)


def _attentions(precision: str, tokens: int, kv_heads: int, causal: bool) -> Iterator[Kernels]:
    for name, queries in (("prefill attention", tokens), ("decode attention", 1)):
        words = f"32 heads on {kv_heads} KV heads, {queries:,} x {tokens:,} scores"
        shape = (1, 32, kv_heads, queries, tokens, 128, precision)
        step = attention(*shape, causal=causal)
        yield Kernels(name, words, [step], attention(*shape, flash=True).bytes_moved)


def axes_for(found: Figures) -> Axes:
    """Room for both ways: a switch moves no axis."""
    ways = [way for one in found.compared for way in (one.apart, one.one)]
    return roofline_axes(
        [3 * way.work.intensity for way in ways],
        [1e9, 6 * found.peak, *(way.performance / 60 for way in ways)],
    )


def marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    bandwidth = found.machine.bandwidth()
    return (
        *roofline(axes, found.peak, bandwidth, found.precision),
        Staircase(tuple(_point(one, found.operator) for one in found.compared)),
    )


def _label(one: Comparison) -> str:
    return f"{one.name} {significant(one.shown.work.intensity)}"


def _point(one: Comparison, operator: str) -> Point:
    chosen = one.name == operator
    return Point(
        one.shown.work.intensity,
        one.shown.performance,
        _label(one),
        INK if chosen else _SIDES[one.shown.side],
        _KINDS[one.name],
        not one.one_kernel,
        5.5,
        chosen,
    )


def sentences(found: Figures) -> tuple[str, ...]:
    for one in found.compared:
        if one.name == found.operator:
            return _about(one, found)
    bandwidth = found.machine.bandwidth()
    gains = [f"{one.name} {significant(one.gain)}" for one in found.compared if one.one_kernel]
    return (
        f"{found.tokens:,} {plural(found.tokens, 'token')} in {found.precision} "
        f"on {found.machine.name}, ridge point {significant(found.peak / bandwidth)} FLOP/byte.",
        f"Times as fast in one kernel: {', '.join(gains)}."
        if gains
        else "All of them step by step.",
    )


def _about(one: Comparison, found: Figures) -> tuple[str, ...]:
    return (
        f"{one.name}, {one.shape}, in {found.precision} on {found.machine.name}: "
        f"{quantity(one.one.work.flops, 'FLOP')} either way.",
        f"Step by step {_told(one.apart)}; in one kernel {_told(one.one)}, "
        f"{significant(one.gain)} times as fast.",
    )


def _told(way: Way) -> str:
    work = way.work
    said = f"{quantity(work.bytes_moved, 'byte')}, {quantity(work.intensity, 'FLOP/byte')}"
    if way.side != "both":
        return f"{said}, {way.side}-bound, at least {quantity(way.time, 's')}"
    parts = " + ".join(f"{quantity(b.time, 's')} {b.bound_by}-bound" for b in way.bounds)
    return f"{said} on average, at least {parts} = {quantity(way.time, 's')}"


def alt(found: Figures) -> str:
    operators = ", ".join(_label(one) for one in found.compared)
    return (
        f"Roofline of {found.machine.name} in {found.precision} with eight operators, "
        f"by FLOP/byte: {operators}."
    )


@dataclass(frozen=True)
class Staircase(Mark):
    """Points that may crowd: their labels go down to the right one below the other, each on a thin
    leader."""

    points: tuple[Point, ...]
    rank = -1  # these have no other place: the labels of roofs keep off them

    def _places(self, view: View) -> Iterator[tuple[Point, Words, np.ndarray]]:
        """(point, its label, where the leader starts and ends), the rightmost point first."""
        spots = view.pixels([point.x for point in self.points], [point.y for point in self.points])
        foot = 0
        for i in np.lexsort((spots[:, 1], -spots[:, 0])):
            (x, y), point = spots[i], self.points[i]
            width = text_size(point.label, 12)[0] * (1.1 if point.bold else 1)
            left = min(x + 18, view.frame[2] - width)
            foot = max(foot + 14, y + 15)
            # below the points that the label would cover
            foot = max(
                foot,
                *(
                    v + 15
                    for u, v in spots
                    if left - 8 < u < left + width + 8 and foot - 18 < v < foot + 8
                ),
                0,
            )
            words = Words(left, foot, point.label, point.color, 12, bold=point.bold)
            end = np.clip(x, left - 2, left + width), foot - 4 if x < left else foot - 11
            yield point, words, np.array([(x, y), end])

    def shapes(self, view):
        places = list(self._places(view))
        leaders = [Path(leader, FAINT, 1) for *_, leader in places]
        return leaders + [shape for point, *_ in places for shape in point.shapes(view)]

    def captions(self, view, taken):
        return [words for _, words, _ in self._places(view)]
