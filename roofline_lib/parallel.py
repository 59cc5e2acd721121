"""One model on several chips: what each chip computes, holds and sends.

The ways to share: data (each has the whole model and its own sequences), tensor (columns, then
rows, of every matrix: Shoeybi and others 2019, arXiv:1909.08053), pipeline (some layers each:
Huang and others 2018, arXiv:1811.06965), expert (some experts each). ZeRO shares what data
parallelism keeps n times (Rajbhandari and others 2019, arXiv:1910.02054); stage 3 is FSDP.

The model of one chip is a narrower Transformer, so its Work is counted as for any other. Counted is
the busiest chip; the smallest messages (sampling, norms, the router) are left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from roofline_lib.arguments import Number, number, plain, size, unknown
from roofline_lib.collectives import (
    Transfer,
    all_gather,
    all_reduce,
    all_to_all,
    reduce_scatter,
    send,
)
from roofline_lib.links import Link, as_link
from roofline_lib.machines import Machine, as_machine
from roofline_lib.model import Work, time_in_sequence
from roofline_lib.precisions import bytes_of, bytes_per_element

KINDS = ("tensor", "data", "pipeline", "expert")


@dataclass(frozen=True)
class Parallel:
    """How many chips share a model, by kind; all together tensor x data x pipeline x expert.

    `tensor` chips have a slice of every matrix, `data` groups their own sequences, `pipeline`
    stages some layers, `expert` chips some of the experts (and, beside them, their own sequences).
    `zero` is the stage of ZeRO in training: 0 none, 1 shares the optimizer's state among the data
    groups, 2 also the gradients, 3 also the weights (FSDP). Errors: ValueError that names the
    argument.
    """

    tensor: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    zero: int = 0

    def __post_init__(self):
        for kind in KINDS:
            object.__setattr__(self, kind, int(size(kind, getattr(self, kind), "chips", True)))
        object.__setattr__(self, "zero", zero_stage(self.zero))

    @property
    def chips(self) -> int:
        """All chips together."""
        return self.tensor * self.data * self.pipeline * self.expert

    @property
    def replicas(self) -> int:
        """How many groups of sequences there are: each has the attention layers for itself."""
        return self.data * self.expert


@dataclass(frozen=True)
class ParallelStep:
    """One step on several chips: `works` of the busiest chip, the `transfers` beside it, and what
    it holds (byte).

    With a pipeline a chip works on its stage only, and a batch goes through `stages` of them one
    after another: see `time`.
    """

    works: dict[str, Work]
    transfers: dict[str, Transfer]
    weight_bytes: float
    kv_bytes: Number = 0.0
    stages: int = 1

    @property
    def memory(self) -> Number:
        """Bytes that the chip holds: weights and KV cache."""
        return self.weight_bytes + self.kv_bytes

    @property
    def transfer_time(self) -> Number:
        """Seconds of all transfers of one chip, one after another. ValueError without a link."""
        return sum(transfer.time for transfer in self.transfers.values())

    def work_time(self, machine: Machine | str, precision: str) -> Number:
        """Seconds at least for the chip's Works, one after another."""
        return time_in_sequence(self.works.values(), machine, precision)

    def time(self, machine: Machine | str, precision: str) -> Number:
        """Seconds until a batch is through: work and transfers of every stage, one after another.
        Tensor and expert parallel transfers stand between the works that need them, so nothing
        overlaps."""
        return self.stages * (self.work_time(machine, precision) + self.transfer_time)

    def overlapped_time(self, machine: Machine | str, precision: str) -> Number:
        """Seconds if every transfer went on beside other work: the larger of the two. A bound;
        splitting each step into two micro-batches comes near it."""
        together = np.maximum(self.work_time(machine, precision), self.transfer_time)
        return plain(self.stages * together)


def chip_model(model, parallel: Parallel):
    """The Transformer whose products one chip of a tensor and pipeline parallel model computes: a
    tensor-th of the heads, the FFN's width and the vocabulary, and the layers of one stage.

    More chips than key-value heads have copies of them. ValueError where something does not divide.
    """
    ways = parallel.tensor
    for name in ("heads", "d_ff", "shared_d_ff", "dense_d_ff"):
        value = getattr(model, name)
        if value is not None and value % ways:
            raise ValueError(f"tensor must divide {name} ({value}); got {ways} (chips)")
    if model.kv_heads % ways and ways % model.kv_heads:
        raise ValueError(
            f"tensor must divide kv_heads ({model.kv_heads}) or be a multiple; got {ways} (chips)"
        )
    if parallel.pipeline > model.layers:
        raise ValueError(
            f"pipeline must be at most layers ({model.layers}); got {parallel.pipeline} (stages)"
        )
    stage = -(-model.layers // parallel.pipeline)
    slices = {
        name: None if getattr(model, name) is None else getattr(model, name) // ways
        for name in ("heads", "d_ff", "shared_d_ff", "dense_d_ff")
    }
    return replace(
        model,
        **slices,
        kv_heads=max(1, model.kv_heads // ways),
        vocab=-(-model.vocab // ways),
        layers=stage,
        dense_layers=max(0, model.dense_layers - (model.layers - stage)),
        windowed_layers=_windowed(model, stage),
    )


def chip_parameters(model, parallel: Parallel) -> dict[str, int]:
    """{group: parameters} that one chip holds. With a pipeline the last stage is counted, which has
    the output head."""
    groups = dict(chip_model(model, parallel).parameters_by_group)
    if parallel.pipeline > 1:
        groups["embedding"] = 0
    if parallel.expert > 1:
        check_experts(model, parallel)
        groups["experts"] //= parallel.expert
    return groups


def spread(model, step, parallel: Parallel, link, works_of: Callable) -> ParallelStep:
    """The ParallelStep of one decode step or prefill, `step` (a Pass) of the whole batch:
    `works_of(model, step)` gives the Works of a narrower model and a smaller batch."""
    links = links_by_kind(link)
    own = replace(step, batch=share_of("batch", step.batch, as_parallel(parallel)))
    chip = chip_model(model, parallel)
    row_bytes = own.rows * model.d_model * bytes_per_element(step.activations)
    transfers = layer_transfers(chip, row_bytes, parallel, links)
    if parallel.pipeline > 1:
        transfers["sends to the next stage"] = send(row_bytes, links["pipeline"])
    weight_bytes = sum(
        count * bytes_per_element(step.weights[group])
        for group, count in chip_parameters(model, parallel).items()
    )
    return ParallelStep(
        chip_works(
            model,
            own.batch,
            parallel,
            lambda narrow, batch: works_of(narrow, replace(step, batch=batch)),
        ),
        transfers,
        weight_bytes,
        chip.kv_bytes(own.batch, step.context, step.kv),
        parallel.pipeline,
    )


def chip_works(model, own, parallel, works_of):
    """{name: Work} of one chip with `own` sequences: `works_of(model, sequences)` gives those of a
    narrower model. The chip's experts get the tokens of all chips that share them, and are a part
    of those that one chip would have."""
    chip = chip_model(model, parallel)
    works = works_of(chip, own)
    if parallel.expert > 1:
        check_experts(model, parallel)
        of_all = works_of(chip, own * parallel.expert)
        for name in ("experts up", "experts down"):
            works[name] = (1 / parallel.expert) * of_all[name]
    return works


def layer_transfers(chip, row_bytes, parallel, links):
    """{name: Transfer} of one pass over all layers of a chip: two all-reduces a layer under tensor
    parallelism, after attention and after the FFN; two all-to-alls a layer of experts, there and
    back. `row_bytes`: one activation of all of the chip's tokens (byte)."""
    transfers = {}
    if parallel.tensor > 1:
        once = all_reduce(
            row_bytes, parallel.tensor, links["tensor"], over=way_along(links["tensor"])
        )
        transfers["all-reduces of tensor slices"] = 2 * chip.layers * once
    if parallel.expert > 1:
        copies = row_bytes * parallel.expert * chip.experts_per_token
        link = links["expert"]
        once = all_to_all(copies, parallel.expert, link, over=way_along(link))
        layers = chip.layers - chip.dense_layers
        transfers["exchanges with experts"] = 2 * layers * once
    return transfers


def gradient_transfers(
    bytes: Number,
    ranks: int,
    zero: int = 0,
    accumulation: Number = 1,
    link: Link | str | None = None,
) -> dict[str, Transfer]:
    """{name: Transfer} of data parallelism in one training step over `ranks` ranks, for weights of
    `bytes` (byte; gradients are as wide).

    Stage 0: one all-reduce of the gradients a step, however many micro-batches were accumulated.
    Stage 1: a reduce-scatter and an all-gather of the new weights: the same bytes. Stage 2 scatters
    after each micro-batch, since nobody has room for all gradients; stage 3 also gathers the
    weights twice each micro-batch, forward and backward: 3 where stage 0 sends 2.
    """
    ranks, zero = size("ranks", ranks, "ranks", single=True), zero_stage(zero)
    accumulation = size("accumulation", accumulation, "micro-batches")
    link = None if link is None else as_link(link)
    if ranks == 1:
        return {}
    way = way_along(link)
    gather = all_gather(bytes, ranks, link, over=way)
    scatter = reduce_scatter(bytes, ranks, link, over=way)
    if zero == 0:
        return {"all-reduce of gradients": all_reduce(bytes, ranks, link, over=way)}
    return {
        "scatters of gradients": (accumulation if zero > 1 else 1) * scatter,
        "gathers of weights": (2 * accumulation if zero == 3 else 1) * gather,
    }


# Rules: where one more chip pays


def link_ridge(machine: Machine | str, precision: str, link: Link | str) -> float:
    """FLOP that a chip can do while its link carries one byte one way: peak / bandwidth. Below it
    the link is the lowest of three roofs."""
    return as_machine(machine).peak(precision) / as_link(link).bandwidth


def data_parallel_tokens(
    machine: Machine | str,
    precision: str,
    link: Link | str,
    ranks: int | None = None,
    *,
    sparsity: float = 1.0,
) -> float:
    """Tokens that each chip needs in a step so that the all-reduce of the gradients hides behind
    the backward pass: s/2 C/B (n-1)/n, with gradients as wide as `precision` (s byte).

    The backward pass takes 4 P T FLOP, the all-reduce 2 s P (n-1)/n bytes, so P cancels. `ranks`
    None stands for very many. `sparsity`: parameters over those that a token uses, in a mixture of
    experts. FSDP has the same rule: backward 4 P T beside a gather and a scatter.
    """
    s = bytes_of("precision", precision)
    share = _elsewhere(ranks)
    sparsity = number("sparsity", sparsity, "parameters a parameter used", least=1)
    return s / 2 * link_ridge(machine, precision, link) * share * sparsity


def tensor_parallel_limit(
    d_ff: Number, machine: Machine | str, precision: str, link: Link | str, *, matrices: Number = 2
) -> Number:
    """Chips up to which tensor parallelism of an FFN hides behind its arithmetic: F B/C for two
    matrices in 16 bit.

    T tokens take 2 matrices T D F/n FLOP on each of n chips, beside an all-gather and a
    reduce-scatter, 2 s T D bytes for many chips: T and D cancel. A gated FFN has three `matrices`.
    """
    d_ff, s = size("d_ff", d_ff), bytes_of("precision", precision)
    matrices = size("matrices", matrices, "matrices")
    return matrices * d_ff / (s * link_ridge(machine, precision, link))


def least_layer_bytes(latency: Number, bandwidth: Number, ranks: Number = 2) -> Number:
    """Bytes of weights a layer above which `ranks` chips decode sooner than one: 2 L BW n/(n-1), so
    4 L BW for a second chip.

    `latency` (s) is that of one all-reduce, of which a layer has two; `bandwidth` (byte/s) that of
    the memory. The few bytes of the messages are left out.
    """
    latency = number("latency", latency, "s", least=0)
    bandwidth = number("bandwidth", bandwidth, "byte/s", above=0)
    ranks = number("ranks", ranks, "chips", least=2, whole=True)
    return 2 * latency * bandwidth * ranks / (ranks - 1)


def pipeline_bubble(stages: Number, micro_batches: Number, interleaved: Number = 1) -> Number:
    """Time that a pipeline stands idle over the time it works: (p - 1)/(v m).

    `interleaved` (v): parts of the model a stage holds, in turn. Of the whole time it is b/(1 + b).
    """
    stages, micro_batches = (
        size("stages", stages, "stages"),
        size("micro_batches", micro_batches, "micro-batches"),
    )
    return (stages - 1) / (size("interleaved", interleaved, "parts") * micro_batches)


def expert_bytes(
    tokens: Number,
    copies: Number,
    d_model: Number,
    ranks: Number | None = None,
    *,
    dispatch: str = "bf16",
    combine: str = "bf16",
) -> Number:
    """Bytes that one chip sends in one layer of experts, dispatch and combine together:
    T k D (s1 + s2) (n-1)/n for `tokens` T of `d_model` D that go to `copies` k experts each.

    `ranks` None: no expert of a chip's own tokens is at home.
    """
    tokens, copies = (
        size("tokens", tokens, "tokens"),
        number("copies", copies, "experts a token", above=0),
    )
    width = bytes_of("dispatch", dispatch) + bytes_of("combine", combine)
    share = _elsewhere(ranks)
    return tokens * copies * size("d_model", d_model) * width * share


def share_of(argument, batch, parallel):
    """The sequences of one replica; ValueError where they do not divide."""
    batch = size(argument, batch, "sequences")
    if np.any(batch % parallel.replicas):
        raise ValueError(
            f"{argument} must be a multiple of the {parallel.replicas} replicas (sequences), "
            f"data x expert; got {batch}"
        )
    return batch / parallel.replicas


def zero_stage(zero):
    """A stage of ZeRO; ValueError for anything but 0, 1, 2, 3."""
    stage = number("zero", zero, "stage", least=0, whole=True, single=True)
    if stage > 3:
        raise ValueError(f"zero must be 0, 1, 2 or 3 (stage); got {zero}")
    return int(stage)


def as_parallel(given):
    """A Parallel as it is; ValueError for anything else."""
    if isinstance(given, Parallel):
        return given
    raise ValueError(f"parallel must be a Parallel(tensor=..., data=...); got {given!r}")


def links_by_kind(link):
    """{kind: Link or None}: one link for all, or a dict with one for each kind."""
    if isinstance(link, Mapping):
        for kind in link:
            if kind not in KINDS:
                raise unknown("kind of link", kind, KINDS)
        return {kind: as_link(link[kind]) if kind in link else None for kind in KINDS}
    return dict.fromkeys(KINDS, None if link is None else as_link(link))


def way_along(link):
    """Along one axis of a torus a collective goes round both ways; else as the link is wired."""
    return "two-way ring" if link is not None and link.topology == "torus" else None


def _elsewhere(ranks):
    """(n-1)/n, what of an array lies with others; 1 for very many ranks, told by None."""
    if ranks is None:
        return 1.0
    ranks = size("ranks", ranks, "ranks")
    return (ranks - 1) / ranks


def check_experts(model, parallel):
    if model.experts % parallel.expert or model.experts == 1:
        raise ValueError(
            f"expert must divide the model's experts ({model.experts}); got {parallel.expert}"
            " (chips)"
        )


def _windowed(model, stage):
    """Layers with a window in the stage that has the most layers without one."""
    if model.windowed_layers is None:
        return None
    full = model.layers - model.windowed_layers
    return stage - min(stage, -(-full * stage // model.layers))
