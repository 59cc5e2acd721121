"""Two drawings that no roofline replaces: one multiprocessor with its ladder of memories, and one
layer of a transformer with shapes on its arrows.

Each is laid out first, as records in units of one pixel at a width of 640 (x to the right, y down),
and then painted. Texts grow and shrink with the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Polygon, Rectangle
from matplotlib.text import Text

from roofline_lib.arguments import short
from roofline_lib.machines import Machine, as_machine, machine, machines
from roofline_lib.quantities import plural, quantity, significant
from roofline_lib.style import CARD, COMPUTE, FAINT, INK, MEMORY, settings
from roofline_lib.transformer import Transformer, as_transformer

WIDTH = 640.0
_SMALL, _PLAIN, _LARGE = 12.0, 13.0, 15.0
_TINT = 0.07  # as the two sides of a ridge point are tinted


@dataclass(frozen=True)
class Diagram:
    """What was drawn, as matplotlib artists: `texts`, the `boxes` by name, the `lines` (arrows and
    pipes); and `alt`, the same picture in words, for a reader who does not see it."""

    texts: tuple[Text, ...]
    boxes: dict[str, Patch]
    lines: tuple[Line2D | Patch, ...]
    alt: str


@dataclass(frozen=True)
class _Label:
    """A text at `x`, which is its left or right end or its center as `align` says, with its middle
    at `y`."""

    x: float
    y: float
    text: str
    align: str = "left"
    color: str = INK
    size: float = _PLAIN
    bold: bool = False


@dataclass(frozen=True)
class _Box:
    """A box and what is written in its middle; `fill` is a colour of which it takes a faint
    tint."""

    name: str
    x: float
    y: float
    width: float
    height: float
    text: str = ""
    color: str = FAINT
    fill: str | None = None
    size: float = _PLAIN
    round: float = 0.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True)
class _Arrow:
    """A line through `points`, with a head at its end unless `head` is False."""

    points: tuple[tuple[float, float], ...]
    color: str = INK
    head: bool = True


@dataclass(frozen=True)
class _Pipe:
    """An upright bar between two boxes; its width is a bandwidth. `known` is False where no
    bandwidth is printed: it is dashed then."""

    x: float
    top: float
    bottom: float
    width: float
    known: bool = True


@dataclass
class _Sheet:
    """A drawing before it is painted."""

    height: float = 0.0
    boxes: list[_Box] = field(default_factory=list)
    labels: list[_Label] = field(default_factory=list)
    arrows: list[_Arrow] = field(default_factory=list)
    pipes: list[_Pipe] = field(default_factory=list)
    cells: list[_Box] = field(default_factory=list)

    def box(self, *values, **options) -> _Box:
        box = _Box(*values, **options)
        self.boxes.append(box)
        return box

    def label(self, *values, **options) -> None:
        self.labels.append(_Label(*values, **options))

    def arrow(self, *points: tuple[float, float], **options) -> None:
        self.arrows.append(_Arrow(points, **options))


# ---------------------------------------------------------------------------- one multiprocessor

# What NVIDIA's multiprocessors have had in common since Volta (compute capability 7.0): CUDA C++
# Programming Guide, technical specifications, and the architecture whitepapers.
_SCHEDULERS = 4
_WARP = 32  # threads
_REGISTER_BYTES = 65_536 * 4  # 64 Ki registers of 32 bit
_OPERANDS = 3 * 4  # bytes that a lane reads for one fp32 multiply-add

_BYTES_ACROSS = 8.0  # bytes a clock that make a pipe one unit wide
_HAIR = 0.75  # units: the thinnest pipe


@dataclass(frozen=True)
class _Multiprocessor:
    """What the drawing says of one SM; bandwidths in bytes a clock for one SM, None where no one
    printed them."""

    machine: str
    units: int
    clock: float
    lanes: int
    tensor_precision: str
    tensor_flops: int
    shared_bytes: float
    shared_rate: float
    l2_bytes: float
    l2_rate: float | None
    dram_bytes: float
    dram_rate: float
    dram_bandwidth: float

    @property
    def register_rate(self) -> float:
        return self.lanes * _OPERANDS


def draw_sm(ax: Axes, machine: Machine | str = "H100 SXM") -> Diagram:
    """Draw one multiprocessor (SM) of a GPU with its ladder of memories. Gives a Diagram.

    From top to bottom: four schedulers, the lanes and tensor cores that each of them feeds, their
    registers, shared memory; then L2 and DRAM, which all SMs share. Each level says how much it
    holds, and each pipe is as wide as the bytes that it carries in one clock for one SM,
    a hair at least. Beside them stands where threads, warps and blocks live.

    `machine` is a Machine of the catalogue or its name: an NVIDIA GPU with a printed clock. L2 has
    a number only where the machine has a bandwidth for it. The drawing suits a figure of 6.4 by
    4.6 inches; it keeps its shape at any other size, and spreads over the whole figure where `ax`
    is the only one. ValueError names what a machine lacks that cannot be drawn.

    Capacities and bandwidths are the catalogue's. Four schedulers, warps of 32 threads and 64 Ki
    registers of 4 byte are those of every NVIDIA GPU since Volta (CUDA C++ Programming Guide,
    technical specifications). Registers are counted by what an fp32 multiply-add reads, three
    numbers of 4 byte on each lane.
    """
    _check_axes(ax)
    facts = _multiprocessor(as_machine(machine))
    return _paint(ax, _sm_sheet(facts), _sm_alt(facts))


def _multiprocessor(given: Machine) -> _Multiprocessor:
    missing = _missing(given)
    if missing:
        drawn = [name for name in machines() if not _missing(machine(name))]
        raise ValueError(
            f"machine must be a GPU made of SMs, with clock, fp32 lanes and tensor cores known; "
            f"{given.name} has {missing}; choose one of {', '.join(drawn)}"
        )
    clock = given.details["clock"]
    units = given.units or 0  # never 0: what is missing was refused
    per_clock_and_unit = clock * units
    tensor_precision, tensor_flops = _tensor_rate(given)
    l2_rate = given.bandwidths["L2"] / per_clock_and_unit if "L2" in given.bandwidths else None
    return _Multiprocessor(
        machine=given.name,
        units=units,
        clock=clock,
        lanes=_flops_per_clock(given, "fp32", "CUDA core") // 2,
        tensor_precision=tensor_precision,
        tensor_flops=tensor_flops,
        shared_bytes=given.capacity("shared memory"),
        shared_rate=_shared_rate(given),
        l2_bytes=given.capacity("L2"),
        l2_rate=l2_rate,
        dram_bytes=given.capacity("DRAM"),
        dram_rate=given.bandwidth("DRAM") / per_clock_and_unit,
        dram_bandwidth=given.bandwidth("DRAM"),
    )


def _missing(given: Machine) -> str:
    """What keeps a machine from being drawn, in words; empty where nothing does."""
    if given.unit_name != "SM" or not given.units:
        return f"units of another kind ({given.unit_name})"
    if not given.details.get("clock"):
        return "no clock (Hz)"
    levels = {"DRAM", "L2", "shared memory"} - set(given.capacities)
    if levels or not _shared_rate(given):
        return f"no size or rate of {', '.join(sorted(levels)) or 'shared memory'} (byte)"
    if not _flops_per_clock(given, "fp32", "CUDA core") or not _tensor_rate(given)[1]:
        return "no count of FLOP a clock for its lanes or tensor cores"
    return ""


def _shared_rate(given: Machine) -> float:
    rows = given.details.get("memory", ())
    rates = [row.get("bytes_per_clock", 0) for row in rows if row["level"] == "shared memory"]
    return rates[0] if rates else 0


def _flops_per_clock(given: Machine, precision: str, kind: str) -> int:
    """FLOP of one unit in a clock at a precision, 0 where they are not known."""
    for peak in given.peaks.get(precision, ()):
        if peak.unit_kind == kind and peak.flop_per_clock_per_unit:
            return int(peak.flop_per_clock_per_unit)
    return 0


def _tensor_rate(given: Machine) -> tuple[str, int]:
    """(precision, FLOP of one SM in a clock) of the tensor cores: bf16, or fp16 before there was
    any."""
    precision = "bf16" if "bf16" in given.peaks else "fp16"
    return precision, _flops_per_clock(given, precision, "tensor core")


def _binary(size: float) -> str:
    """Bytes in powers of two, as memories are built: 228 KiB, 50 MiB, 79.6 GiB."""
    scale, prefix = next(
        (2.0**p, name)
        for p, name in ((30, "Gi"), (20, "Mi"), (10, "Ki"), (0, ""))
        if size >= 2.0**p
    )
    return f"{significant(size / scale)} {prefix}B"


# columns: names, the SM itself, what lives there
_NAMES, _LEFT, _QUARTER, _GAP, _BESIDE = 14.0, 152.0, 58.0, 6.0, 420.0
_RUNG = 34.0  # height of a row
_ACROSS = _SCHEDULERS * _QUARTER + (_SCHEDULERS - 1) * _GAP


@dataclass(frozen=True)
class _Rung:
    """One row of the ladder: its name and amount on the left, two lines of text on the right."""

    top: float
    name: str
    amount: str
    beside: tuple[str, str]
    color: str = MEMORY


def _sm_rungs(sm: _Multiprocessor) -> tuple[_Rung, ...]:
    lane_flops = f"All: {2 * sm.lanes} FLOP a clock"
    tensor_flops = f"All: {sm.tensor_flops:,} FLOP a clock"
    bandwidth = f"{quantity(sm.dram_bandwidth, 'byte/s')} for all SMs"
    warp = (f"warp: {_WARP} threads in step.", "Each starts one a clock.")
    thread = ("thread: runs on one lane.", lane_flops)
    block = ("block: stays on one SM;", "its threads share this.")
    return (
        _Rung(46, "schedulers", f"{_SCHEDULERS}", warp, INK),
        _Rung(86, "lanes", f"{sm.lanes} for fp32", thread, COMPUTE),
        _Rung(
            126,
            "tensor cores",
            f"{sm.tensor_precision} FLOP a clock",
            ("a warp's small products.", tensor_flops),
            COMPUTE,
        ),
        _Rung(
            188,
            "registers",
            _binary(_REGISTER_BYTES),
            ("A thread has its own,", "255 of 4 bytes at most."),
        ),
        _Rung(250, "shared memory", _binary(sm.shared_bytes), block),
        _Rung(
            326,
            "L2 cache",
            _binary(sm.l2_bytes),
            (f"one for all {sm.units} SMs:", "their blocks meet here."),
        ),
        _Rung(390, "DRAM", _binary(sm.dram_bytes), ("matrices begin and end here;", bandwidth)),
    )


def _sm_sheet(sm: _Multiprocessor) -> _Sheet:
    sheet = _Sheet(height=460)
    title = f"One of the {sm.units} SMs of the {sm.machine}"
    sheet.label(_NAMES, 18, title, size=_LARGE, bold=True)
    sheet.label(WIDTH - _NAMES, 18, f"clock {quantity(sm.clock, 'Hz')}", "right", FAINT)
    sheet.box("SM", 6, 36, WIDTH - 12, 258, round=8)
    for rung in _sm_rungs(sm):
        sheet.label(_NAMES, rung.top + 9, rung.name, bold=True)
        sheet.label(_NAMES, rung.top + 25, rung.amount, color=rung.color)
        for line, text in enumerate(rung.beside):
            sheet.label(_BESIDE, rung.top + 9 + 16 * line, text)
    middle = _LEFT + _ACROSS / 2
    for place in range(_SCHEDULERS):
        left = _LEFT + place * (_QUARTER + _GAP)
        _draw_quarter(sheet, sm, place, left)
        sheet.pipes.append(
            _Pipe(left + _QUARTER / 2, 162, 186, _pipe_width(sm.register_rate / _SCHEDULERS))
        )
    sheet.box("shared memory", _LEFT, 250, _ACROSS, _RUNG, "also the L1 cache", MEMORY, MEMORY)
    sheet.box("L2", _LEFT - 8, 326, _ACROSS + 16, _RUNG, "L2", MEMORY, MEMORY)
    sheet.box("DRAM", _LEFT - 8, 390, _ACROSS + 16, _RUNG, "DRAM", MEMORY, MEMORY)
    sheet.pipes.append(_Pipe(middle, 224, 248, _pipe_width(sm.shared_rate)))
    sheet.pipes.append(_Pipe(middle, 296, 324, _pipe_width(sm.l2_rate), sm.l2_rate is not None))
    sheet.pipes.append(_Pipe(middle, 362, 388, _pipe_width(sm.dram_rate)))
    rates = ((174, sm.register_rate), (236, sm.shared_rate), (311, sm.l2_rate), (375, sm.dram_rate))
    for y, rate in rates:
        sheet.label(_BESIDE, y, _rate(rate), color=MEMORY, bold=True)
    caption = "Blue bars are as wide as the bytes that one SM gets through them in a clock."
    sheet.label(_NAMES, 444, caption, color=FAINT, size=_SMALL)
    return sheet


def _draw_quarter(sheet: _Sheet, sm: _Multiprocessor, place: int, left: float) -> None:
    """What one scheduler feeds: a quarter of the SM."""
    across = (_QUARTER, _RUNG)
    tensor_flops = f"{sm.tensor_flops // _SCHEDULERS:,}"
    register_bytes = _binary(_REGISTER_BYTES / _SCHEDULERS)
    sheet.box(f"scheduler {place}", left, 46, *across, "1 warp", INK, size=_SMALL)
    lanes = sheet.box(f"lanes {place}", left, 86, *across, color=COMPUTE)
    sheet.cells += _grid(lanes, sm.lanes // _SCHEDULERS)
    sheet.box(f"tensor cores {place}", left, 126, *across, tensor_flops, COMPUTE, COMPUTE, _SMALL)
    sheet.box(f"registers {place}", left, 188, *across, register_bytes, MEMORY, MEMORY, _SMALL)


def _pipe_width(rate: float | None) -> float:
    """A hair at least, so that the thinnest is seen; a hair too where no rate is known."""
    return _HAIR if rate is None else max(rate / _BYTES_ACROSS, _HAIR)


def _rate(rate: float | None) -> str:
    if rate is None:
        return "bandwidth not printed"
    return f"{significant(rate, 4) if rate >= 1000 else significant(rate)} B a clock"


def _grid(box: _Box, count: int) -> list[_Box]:
    """`count` small squares inside a box, eight in a row."""
    step, side, columns = 6.5, 5.0, 8
    rows = -(-count // columns)
    left = box.x + (box.width - columns * step + step - side) / 2
    top = box.middle - (rows * step - step + side) / 2
    return [
        _Box("", left + step * (i % columns), top + step * (i // columns), side, side)
        for i in range(count)
    ]


def _sm_alt(sm: _Multiprocessor) -> str:
    l2 = "" if sm.l2_rate is None else f", {_rate(sm.l2_rate)}"
    return (
        f"One of the {sm.units} SMs of the {sm.machine}, from top to bottom. "
        f"{_SCHEDULERS} schedulers: each starts one warp of {_WARP} threads in a clock. "
        f"Under each, {sm.lanes // _SCHEDULERS} fp32 lanes, "
        f"tensor cores of {sm.tensor_flops // _SCHEDULERS:,} FLOP a clock "
        f"in {sm.tensor_precision}, "
        f"and {_binary(_REGISTER_BYTES / _SCHEDULERS)} of registers. "
        f"Registers give the lanes {_rate(sm.register_rate)}. "
        f"Shared memory, {_binary(sm.shared_bytes)}, which the threads of a block share: "
        f"{_rate(sm.shared_rate)}. "
        f"Outside the SM, for all {sm.units}: L2, {_binary(sm.l2_bytes)}{l2}; "
        f"DRAM, {_binary(sm.dram_bytes)}, {_rate(sm.dram_rate)} for one SM."
    )


# ---------------------------------------------------------------------------- a transformer layer

# where things stand from left to right: the residual stream, norms, matrices, what works on heads
_STREAM, _FRAME, _NORM, _WEIGHTS, _CACHE, _MIXING = 28.0, 54.0, 76.0, 214.0, 376.0, 544.0
_RIGHT = 632.0
_ROW = 30.0  # height of a box


def draw_transformer_layer(ax: Axes, model: Transformer | str = "llama-2-7b") -> Diagram:
    """Draw one layer of a decoder-only transformer with shapes on its arrows. Gives a Diagram.

    The residual stream x runs down the left side. Attention reads it (norm; queries, keys and
    values; the KV cache; scores and softmax; the mix of values; the output product) and adds its
    result; the feed-forward network does the same. Then come the other layers and the logits. Blue
    boxes are what lies in memory: weights, inputs × outputs, and the KV cache. `tokens` are the
    rows of the pass: batch × prompt in prefill, the batch in decode; `context` are the keys of one
    sequence.

    `model` is a Transformer or a preset's name: grouped heads, windows, mixtures of experts and
    networks without a gate are drawn as they are. Biases, rotary turns and norms of queries and
    keys are left out. The drawing suits a figure of 6.4 by 6 inches; at any other size it is as
    `draw_sm` says. ValueError for a model with MLA (`kv_lora_rank`), and for one with other than
    2 or 4 norms a layer: their arrows run otherwise.
    """
    _check_axes(ax)
    model = as_transformer(model)
    if model.kv_lora_rank:
        raise ValueError(
            "model must keep keys and values in its cache; "
            f"{_name(model)} keeps a latent of kv_lora_rank {model.kv_lora_rank}, "
            "which has no drawing; llama-3-8b or mixtral-8x7b would do"
        )
    if model.norms_per_layer not in (2, 4):
        raise ValueError(
            "model must have 2 or 4 norms a layer (norms_per_layer); "
            f"{_name(model)} has {model.norms_per_layer}; llama-2-7b or gemma-2-9b would do"
        )
    return _paint(ax, _layer_sheet(model), _layer_alt(model))


def _name(model: Transformer) -> str:
    return model.name or "a transformer"


def _tokens(width: object) -> str:
    """The shape of an activation: one row for each token of the pass."""
    return f"[tokens, {width}]"


def _layer_sheet(model: Transformer) -> _Sheet:
    sheet = _Sheet()
    sheet.label(14, 18, _name(model), size=_LARGE, bold=True)
    sheet.label(_RIGHT, 18, f"one of its {model.layers} layers", "right", FAINT)
    sheet.label(_STREAM + 12, 44, f"x {_tokens(model.d_model)}")
    first_sum, attention_end = _draw_attention(sheet, model, 58)
    second_sum, end = _draw_feed_forward(sheet, model, attention_end + 10)
    # the residual stream, from above through both sums
    sheet.arrow((_STREAM, 34), (_STREAM, first_sum.y))
    sheet.arrow((_STREAM, first_sum.bottom), (_STREAM, second_sum.y))
    end = _draw_head(sheet, model, second_sum, end)
    notes = (*_exceptions(model), *_KEY)
    for place, note in enumerate(notes):
        sheet.label(14, end + 12 + 17 * place, note, color=FAINT, size=_SMALL)
    sheet.height = end + 8 + 17 * len(notes)
    return sheet


def _draw_attention(sheet: _Sheet, model: Transformer, top: float) -> tuple[_Box, float]:
    """The attention half from `top` down: its sum, and where it ends."""
    sheet.box("attention", _FRAME, top, _RIGHT - _FRAME, 236, round=8)
    sheet.label(_FRAME + 12, top + 16, "attention", bold=True)
    heads = f"{model.heads} × {model.head_dim}"
    kept = f"{model.kv_heads} × {model.head_dim}"
    sheet.label(_FRAME + 96, top + 16, _heads_in_words(model))
    d, q_wide, kv_wide = (
        model.d_model,
        model.heads * model.head_dim,
        model.kv_heads * model.head_dim,
    )
    q = _draw_weights(sheet, "Q", top + 36, d, q_wide)
    k = _draw_weights(sheet, "K", top + 100, d, kv_wide)
    v = _draw_weights(sheet, "V", top + 142, d, kv_wide)
    _draw_norm(sheet, "attention norm", (q, k, v))
    sheet.label(_CACHE, k.y - 12, "KV cache: keys, values", color=MEMORY, size=_SMALL)
    keys, values = (
        sheet.box(
            f"cached {name}", _CACHE, box.y, 142, _ROW, f"[context, {kept}]", MEMORY, MEMORY, _SMALL
        )
        for name, box in (("keys", k), ("values", v))
    )
    scores = sheet.box("scores", _MIXING, q.y - 5, 80, 40, "scores,\nsoftmax", INK, size=_SMALL)
    mix = sheet.box("mix", _MIXING, v.y - 5, 80, 40, "mix of\nvalues", INK, size=_SMALL)
    o = _draw_weights(sheet, "O", top + 196, q_wide, d)
    sheet.arrow((q.right, q.middle), (scores.x, q.middle))
    sheet.label((q.right + scores.x) / 2, q.middle - 10, _tokens(heads), "center", size=_SMALL)
    sheet.arrow((k.right, k.middle), (keys.x, k.middle))
    sheet.arrow((v.right, v.middle), (values.x, v.middle))
    up, down = scores.x + 16, scores.right - 16
    sheet.arrow((keys.right, keys.middle), (up, keys.middle), (up, scores.bottom))
    sheet.arrow((values.right, values.middle), (mix.x, values.middle))
    sheet.arrow((down, scores.bottom), (down, mix.y))
    _draw_return(sheet, mix, o, _tokens(heads))
    return _draw_sum(sheet, "attention", model, o), top + 236


def _heads_in_words(model: Transformer) -> str:
    text = f"in {model.heads} heads of {model.head_dim}"
    if model.kv_heads == model.heads:
        return text
    sharing = model.heads // model.kv_heads
    return f"{text}; each {sharing} share one K and V"


def _draw_feed_forward(sheet: _Sheet, model: Transformer, top: float) -> tuple[_Box, float]:
    """The feed-forward half from `top` down: its sum, and where it ends."""
    height = 170.0 if model.gated else 130.0
    sheet.box("feed-forward", _FRAME, top, _RIGHT - _FRAME, height, round=8)
    sheet.label(_FRAME + 12, top + 16, "feed-forward", bold=True)
    if model.experts > 1:
        sheet.label(
            _FRAME + 122,
            top + 16,
            f"a router, {model.d_model} × {model.experts}, picks "
            f"{model.experts_per_token} of {model.experts} experts a token",
        )
    d, wide, copies = model.d_model, model.d_ff, 3 if model.experts > 1 else 1
    names = ("gate", "up") if model.gated else ("up",)
    inner = [
        _draw_weights(sheet, name, top + 36 + 40 * place, d, wide, copies)
        for place, name in enumerate(names)
    ]
    _draw_norm(sheet, "feed-forward norm", inner)
    text = "activation,\nproduct" if model.gated else "activation"
    act = sheet.box(
        "activation", _MIXING, inner[0].y, 80, inner[-1].bottom - inner[0].y, text, INK, size=_SMALL
    )
    for box in inner:
        sheet.arrow((box.right, box.middle), (act.x, box.middle))
        middle = (box.right + act.x) / 2
        sheet.label(middle, box.middle - 10, _tokens(wide), "center", size=_SMALL)
    down = _draw_weights(sheet, "down", top + height - 40, wide, d, copies)
    _draw_return(sheet, act, down, _tokens(wide))
    return _draw_sum(sheet, "feed-forward", model, down), top + height


def _draw_weights(
    sheet: _Sheet, name: str, top: float, inputs: int, outputs: int, copies: int = 1
) -> _Box:
    """A matrix of weights; of the copies behind it only what sticks out is drawn."""
    text = f"{name}  {inputs} × {outputs}"
    box = sheet.box(name, _WEIGHTS, top, 146, _ROW, text, MEMORY, MEMORY, _SMALL)
    for copy in range(1, copies):
        out, before = 4.0 * copy, 4.0 * (copy - 1)
        sheet.arrow(
            (box.x + out, box.y - before),
            (box.x + out, box.y - out),
            (box.right + out, box.y - out),
            (box.right + out, box.bottom - out),
            (box.right + before, box.bottom - out),
            color=MEMORY,
            head=False,
        )
    return box


def _draw_norm(sheet: _Sheet, name: str, readers: Sequence[_Box]) -> None:
    """A norm beside the first of the boxes that read it, with arrows from the stream and to them
    all."""
    first = readers[0]
    norm = sheet.box(name, _NORM, first.y, 52, _ROW, "norm", FAINT, round=6)
    sheet.arrow((_STREAM, norm.middle), (norm.x, norm.middle))
    sheet.arrow((norm.right, norm.middle), (first.x, norm.middle))
    trunk = _WEIGHTS - 28
    for reader in readers[1:]:
        sheet.arrow((trunk, norm.middle), (trunk, reader.middle), (reader.x, reader.middle))


def _draw_return(sheet: _Sheet, source: _Box, matrix: _Box, shape: str) -> None:
    """The arrow from a box on the right down and back to the matrix that reads it."""
    x = source.x + source.width / 2
    sheet.arrow((x, source.bottom), (x, matrix.middle), (matrix.right, matrix.middle))
    sheet.label((matrix.right + x) / 2, matrix.middle - 10, shape, "center", size=_SMALL)


def _draw_sum(sheet: _Sheet, name: str, model: Transformer, last: _Box) -> _Box:
    """The sum of a half's result and the stream, with a norm before it where the model has
    four."""
    y = last.middle
    total = sheet.box(f"{name} sum", _STREAM - 9, y - 9, 18, 18, color=INK, round=9)
    sheet.arrow((_STREAM - 5, y), (_STREAM + 5, y), head=False)
    sheet.arrow((_STREAM, y - 5), (_STREAM, y + 5), head=False)
    shape = _tokens(model.d_model)
    if model.norms_per_layer == 2:
        sheet.arrow((last.x, last.middle), (total.right, last.middle))
        sheet.label(_NORM + 60, last.middle - 10, shape, "center", size=_SMALL)
        return total
    norm = sheet.box(f"{name} last norm", _NORM, last.y, 52, _ROW, "norm", FAINT, round=6)
    sheet.arrow((last.x, last.middle), (norm.right, last.middle))
    sheet.arrow((norm.x, last.middle), (total.right, last.middle))
    sheet.label(_NORM - 8, last.y - 11, shape, size=_SMALL)
    return total


def _draw_head(sheet: _Sheet, model: Transformer, last_sum: _Box, end: float) -> float:
    """What comes after the last layer; gives where it ends."""
    if model.layers > 1:
        more = f"{model.layers - 1} more layers like this one; then"
        sheet.label(_STREAM + 18, end + 16, more)
    logits = sheet.box(
        "logits",
        _WEIGHTS,
        end + 32,
        146,
        _ROW,
        f"{model.d_model} × {model.vocab}",
        MEMORY,
        MEMORY,
        _SMALL,
    )
    norm = sheet.box("last norm", _NORM, logits.y, 52, _ROW, "norm", FAINT, round=6)
    sheet.arrow((_STREAM, last_sum.bottom), (_STREAM, norm.middle), (norm.x, norm.middle))
    sheet.arrow((norm.right, norm.middle), (logits.x, norm.middle))
    sheet.arrow((logits.right, logits.middle), (_CACHE + 40, logits.middle))
    sheet.label(_CACHE + 48, logits.middle, f"logits {_tokens(model.vocab)}")
    return logits.bottom + 8


def _exceptions(model: Transformer) -> list[str]:
    """What holds for some layers, or beside what is drawn: a sentence each."""
    found = []
    if model.window is not None:
        windowed = model.layers if model.windowed_layers is None else model.windowed_layers
        which = "All" if windowed == model.layers else f"{windowed} of the {model.layers}"
        found.append(f"{which} layers keep and read the last {model.window} keys and values only.")
    if model.dense_layers and model.experts > 1:
        wide = model.dense_d_ff or model.d_ff
        first = plural(model.dense_layers, "layer")
        found.append(f"{first} at the start: one network, {wide} wide.")
    if model.shared_experts and model.experts > 1:
        wide = model.shared_d_ff or model.d_ff
        found.append(f"Experts that serve every token: {model.shared_experts}, each {wide} wide.")
    if model.tied:
        found.append("The logits' matrix is the embedding once more.")
    return found


_KEY = (
    "Blue: lies in memory and is read from there. tokens: the rows of a step;",
    "context: the keys of one sequence, of which every sequence has its own.",
)


def _layer_alt(model: Transformer) -> str:
    d, wide = model.d_model, model.d_ff
    network = "gate and up" if model.gated else "up"
    if model.experts > 1:
        network = f"{model.experts_per_token} of {model.experts} experts, each {network}"
    then = "a product of the two" if model.gated else "an activation"
    sentences = [
        f"One of the {model.layers} layers of {_name(model)}, as a flow of arrays.",
        f"x, {_tokens(d)}, goes through a norm to Q, K and V.",
        f"Queries: {model.heads} heads of {model.head_dim}.",
        f"Keys and values: {model.kv_heads} heads of {model.head_dim}, kept in the KV cache.",
        "Scores of queries and keys go through softmax and mix the values;",
        f"O brings them back to {d} numbers, which are added to x.",
        f"Then a norm, {network} from {d} to {wide} numbers, {then},",
        f"down to {d}, which are added to x again.",
        f"After the last layer a norm and the logits, {_tokens(model.vocab)}.",
        *_exceptions(model),
    ]
    return " ".join(sentences)


# ---------------------------------------------------------------------------- painting


def _check_axes(ax: object) -> None:
    if not isinstance(ax, Axes):
        raise ValueError(
            "ax must be the Axes of a figure, such as `figure, ax = plt.subplots()` gives; "
            f"got {short(ax)}"
        )


def _paint(ax: Axes, sheet: _Sheet, alt: str) -> Diagram:
    with settings({}):
        scale = _spread(ax, sheet.height)
        ax.add_patch(Rectangle((0, 0), WIDTH, sheet.height, fc=CARD, ec="none", zorder=0))
        boxes = {box.name: ax.add_patch(_patch(box, scale)) for box in sheet.boxes}
        for cell in sheet.cells:
            ax.add_patch(
                Rectangle(
                    (cell.x, cell.y), cell.width, cell.height, fc=COMPUTE, ec="none", zorder=3
                )
            )
        lines: list[Line2D | Patch] = [ax.add_patch(_bar(pipe, scale)) for pipe in sheet.pipes]
        for arrow in sheet.arrows:
            lines += _arrow_artists(ax, arrow, scale)
        written = [
            _Label(box.x + box.width / 2, box.middle, box.text, "center", INK, box.size)
            for box in sheet.boxes
            if box.text
        ]
        texts = tuple(_write(ax, label, scale) for label in (*written, *sheet.labels))
    return Diagram(texts, boxes, tuple(lines), alt)


def _spread(ax: Axes, height: float) -> float:
    """Give `ax` the drawing's units, without a frame; points of a unit's size on paper.

    Where `ax` is all that the figure has, it takes the whole of it: a drawing needs no margin.
    """
    if ax.figure.axes == [ax]:
        ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, WIDTH), ylim=(height, 0), aspect="equal")
    ax.set_axis_off()
    ax.apply_aspect()
    return ax.bbox.width / WIDTH * 72 / ax.figure.dpi


def _patch(box: _Box, scale: float) -> Patch:
    look: dict[str, Any] = {
        "fc": "none" if box.fill is None else _tinted(box.fill),
        "ec": box.color,
        "lw": 1.2 * scale,
        "zorder": 2,
    }
    if box.round:
        return FancyBboxPatch(
            (box.x, box.y),
            box.width,
            box.height,
            boxstyle=f"round,pad=0,rounding_size={box.round}",
            **look,
        )
    return Rectangle((box.x, box.y), box.width, box.height, **look)


def _tinted(color: str) -> tuple[float, float, float]:
    """A colour as a faint tint of the card."""
    red, green, blue = (
        _TINT * own + (1 - _TINT) * card
        for own, card in zip(to_rgb(color), to_rgb(CARD), strict=True)
    )
    return red, green, blue


def _bar(pipe: _Pipe, scale: float) -> Patch:
    left, height = pipe.x - pipe.width / 2, pipe.bottom - pipe.top
    look: dict[str, Any] = {"fc": MEMORY, "ec": "none"}
    if not pipe.known:
        look = {"fc": "none", "ec": MEMORY, "ls": ":", "lw": scale}
    # rounded to whole pixels, a hair would be none
    return Rectangle((left, pipe.top), pipe.width, height, snap=False, zorder=3, **look)


def _arrow_artists(ax: Axes, arrow: _Arrow, scale: float) -> list[Line2D | Patch]:
    x, y = zip(*arrow.points, strict=True)
    artists: list = list(
        ax.plot(x, y, color=arrow.color, lw=1.3 * scale, zorder=3, solid_capstyle="butt")
    )
    if arrow.head:
        (x0, y0), (x1, y1) = arrow.points[-2:]
        length = max(abs(x1 - x0), abs(y1 - y0))
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        tip = [(x1, y1), (x1 - 8 * dx + 4 * dy, y1 - 8 * dy + 4 * dx)]
        tip.append((x1 - 8 * dx - 4 * dy, y1 - 8 * dy - 4 * dx))
        artists.append(ax.add_patch(Polygon(tip, fc=arrow.color, ec="none", zorder=4)))
    return artists


def _write(ax: Axes, label: _Label, scale: float) -> Text:
    return ax.text(
        label.x,
        label.y,
        label.text,
        ha=label.align,
        va="center_baseline",
        color=label.color,
        fontsize=label.size * scale,
        fontweight="bold" if label.bold else "normal",
        family="DejaVu Sans",
        parse_math=False,
        zorder=5,
    )
