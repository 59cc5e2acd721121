"""Lesson 13: one decode step of a model on several chips: work shrinks with the chips, messages do
not."""

from dataclasses import dataclass, replace

from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import Choice, MachineChoice, ModelChoice, Number
from roofline_lib.explorers.marks import Bar, Drop, Line, Mark, Point
from roofline_lib.explorers.scenes import Scene, no_peak, percent, plural, roofline_axes
from roofline_lib.explorers.stage import Axes
from roofline_lib.links import Link, links
from roofline_lib.machines import Machine
from roofline_lib.parallel import Parallel
from roofline_lib.precisions import SERVED
from roofline_lib.quantities import quantity, significant
from roofline_lib.style import COMPUTE, FAINT, INK, MEMORY, ROOM, decades
from roofline_lib.transformer import Transformer

_RANKS = (1, 2, 4, 8, 16, 32, 64)
_RECT = (74, 14, 550, 290)


class ParallelExplorer(Explorer):
    """A model whose layers are cut into slices, one for each of `tensor` chips: the time of a
    decode step by part over the number of chips, and the memory of one chip.

    `model` is a Transformer or a preset's name, `machine` a Machine or a name, of which the link to
    its neighbours is taken; `tensor` in chips (1 to 64, a power of two; no more than the link
    joins), `batch` in sequences (1 to 1024), `context` in tokens (1 to 1048576), `latency` in
    seconds for each of the two messages that an all-reduce takes (0 to 1e-4); `weights` is a
    precision, and the peak is that of bf16. Controls: the arguments' names.
    """

    sample = {"model": "llama-3-70b", "tensor": 8}

    def __init__(
        self,
        model: Transformer | str = "llama-3-70b",
        machine: Machine | str = "H200 SXM",
        tensor: int = 8,
        batch: int = 8,
        context: int = 4096,
        latency: float = 7e-6,
        weights: str = "bf16",
    ):
        super().__init__(
            ModelChoice(model),
            MachineChoice(machine),
            Choice("tensor", tensor, _RANKS, "chips"),
            Number("batch", batch, 1, 1024, "sequences", "batch (seqs)"),
            Number("context", context, 1, 2**20, "tokens"),
            Number(
                "latency",
                latency,
                0,
                1e-4,
                "s",
                "a message (µs)",
                whole=False,
                ladder=_LATENCIES,
                prefix="µ",
            ),
            Choice("weights", weights, SERVED["weights"]),
        )

    @staticmethod
    def scene(model, machine, tensor, batch, context, latency, weights):
        if "bf16" not in machine.precisions:
            return no_peak(machine, "bf16", "machine", ())
        try:
            link = replace(links(machine)[0], latency=latency)
        except ValueError as missing:
            return _nothing(str(missing))
        found = figures(model, machine, link, tensor, batch, context, weights)
        if not found.can_be_cut:
            return _nothing(_why_not(found))
        axes = axes_for(found)
        return Scene((axes,), marks(found, axes), sentences(found), alt(found), 400)


_MICROSECONDS = (*range(11), 12, 14, 16, 20, 25, 30, 35, 40, 50, 60, 70, 80, 100)
_LATENCIES = tuple(us / 1e6 for us in _MICROSECONDS)


@dataclass(frozen=True)
class Step:
    """A decode step on so many chips: seconds of work and of messages, bytes that a chip holds."""

    chips: int
    work: float
    messages: float
    memory: float

    @property
    def time(self) -> float:
        """Seconds of the step: messages stand between the works that need them."""
        return self.work + self.messages


@dataclass(frozen=True)
class Figures:
    """The same step on 1, 2, 4, ... chips, as many as the link joins and the model's sizes can be
    cut for."""

    model: Transformer
    machine: Machine
    link: Link
    tensor: int
    batch: int
    context: int
    steps: tuple[Step, ...]

    @property
    def can_be_cut(self) -> bool:
        """Whether there is a step on as many chips as are set."""
        return any(step.chips == self.tensor for step in self.steps)

    @property
    def shown(self) -> Step:
        """The step on as many chips as are set, where it can be cut so."""
        return next(step for step in self.steps if step.chips == self.tensor)

    @property
    def fastest(self) -> Step:
        """The step that is done first."""
        return min(self.steps, key=lambda step: step.time)


def figures(
    model: Transformer,
    machine: Machine,
    link: Link,
    tensor: int,
    batch: int,
    context: int,
    weights: str,
) -> Figures:
    steps = []
    for chips in _RANKS:
        if link.domain is None or chips <= link.domain:
            try:
                shared = model.decode(
                    batch, context, weights=weights, parallel=Parallel(tensor=chips), link=link
                )
            except ValueError:  # heads or widths that so many chips cannot share evenly
                continue
            steps.append(
                Step(
                    chips,
                    float(shared.work_time(machine, "bf16")),
                    float(shared.transfer_time),
                    float(shared.memory),
                )
            )
    return Figures(model, machine, link, tensor, batch, context, tuple(steps))


def axes_for(found: Figures) -> Axes:
    parts = [1e3 * part for step in found.steps for part in (step.work, step.time)]
    parts += [1e3 * step.messages for step in found.steps if step.messages]
    return Axes(
        (0.9, 1.15 * max(2, found.steps[-1].chips)),
        decades(parts, (1, 10)),
        "chips",
        "a step (ms)",
        _RECT,
    )


def marks(found: Figures, axes: Axes) -> tuple[Mark, ...]:
    chips = tuple(step.chips for step in found.steps)
    shown = found.shown
    several = [step for step in found.steps if step.messages]
    lines: list[Mark] = [
        Line(chips, tuple(1e3 * step.work for step in found.steps), MEMORY, "weights and cache"),
        Line(chips, tuple(1e3 * step.time for step in found.steps), INK, "the step", 3),
    ]
    if several:
        lines.insert(
            1,
            Line(
                tuple(step.chips for step in several),
                tuple(1e3 * step.messages for step in several),
                COMPUTE,
                "messages",
            ),
        )
    return (
        *lines,
        *(Point(step.chips, 1e3 * step.time, "", FAINT, radius=4) for step in found.steps),
        *(Drop(n, axes.ylim[0], f"{n}") for n in chips if n not in (1, 10)),
        Drop(shown.chips, 1e3 * shown.time, ""),
        Point(shown.chips, 1e3 * shown.time, quantity(shown.time, "s"), INK, bold=True),
        *_memory_bar(found),
    )


def _memory_bar(found: Figures) -> list[Bar]:
    if "DRAM" not in found.machine.capacities:
        return []
    room = found.machine.capacity()
    share = found.shown.memory / room
    return [
        Bar(
            "memory of one chip: its slice of the weights and of the KV cache",
            (share,),
            f"{percent(share)} of {quantity(room, 'byte')}",
            (74, 362, 550),
            (ROOM,),
        )
    ]


def sentences(found: Figures) -> tuple[str, ...]:
    shown, fastest = found.shown, found.fastest
    one = found.steps[0]
    share = shown.messages / shown.time
    said = [
        f"{found.model.name or 'Model'} on {shown.chips} x {found.machine.name}, batch "
        f"{found.batch}, context {found.context:,}: {quantity(shown.time, 's')} a step, "
        f"{significant(found.batch / shown.time)} token/s in all, {percent(share)} of it messages.",
    ]
    if shown.chips > 1:
        said.append(
            f"That is {significant(one.time / shown.time)} times as fast as one chip with room "
            f"enough, not {shown.chips}."
        )
    if fastest.chips < found.steps[-1].chips:
        said.append(
            f"Beyond {fastest.chips} {plural(fastest.chips, 'chip')} another one makes it slower."
        )
    if "DRAM" in found.machine.capacities:
        fits = shown.memory <= found.machine.capacity()
        said.append(
            f"A chip holds {quantity(shown.memory, 'byte')}, which "
            f"{'fits' if fits else 'more than fits'}."
        )
    return tuple(said)


def _why_not(found: Figures) -> str:
    can = ", ".join(str(step.chips) for step in found.steps)
    joins = "" if found.link.domain is None else f" {found.link.name} joins {found.link.domain}."
    name = found.model.name or "The model"
    return f"{name} cannot be cut for {found.tensor} chips here.{joins} Choose {can}."


def _nothing(said: str) -> Scene:
    axes = roofline_axes()
    return Scene((axes,), (), (said,), "Empty axes.")


def alt(found: Figures) -> str:
    return (
        f"The time of a decode step of {found.model.name} over 1 to {found.steps[-1].chips} chips, "
        "both logarithmic: the time for weights and cache falls in a straight line, that of the "
        "messages stays nearly level, and their sum flattens where the two meet."
    )
