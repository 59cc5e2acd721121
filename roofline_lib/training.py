"""One training step of a transformer: its FLOP and bytes, and what has to lie in memory meanwhile.

6 N D: Kaplan and others, 2020, arXiv:2001.08361. Activations: Korthikanti and others, 2022,
arXiv:2205.05198, whose 34 bytes hold two dropout masks that are not counted here. 2 + 2 + 12 byte a
parameter, bf16 with Adam: Rajbhandari and others, 2019, arXiv:1910.02054.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from roofline_lib.arguments import Number, Value, number, plain, size, unknown
from roofline_lib.collectives import Transfer, send
from roofline_lib.links import Link
from roofline_lib.machines import Machine
from roofline_lib.model import Work, time_in_sequence
from roofline_lib.operators import gemm
from roofline_lib.parallel import (
    Parallel,
    as_parallel,
    chip_model,
    chip_parameters,
    chip_works,
    gradient_transfers,
    layer_transfers,
    links_by_kind,
    pipeline_bubble,
    share_of,
    zero_stage,
)
from roofline_lib.transformer import Transformer, as_transformer

KEEP = ("everything", "no scores", "layer inputs")
_WIDTH = 2  # bytes of an activation, a weight and a gradient: bf16


def training_flops(parameters: Number, tokens: Number) -> Value:
    """FLOP of training on `tokens` tokens: 6 a parameter and token, 2 forward and 4 backward;
    attention's own products left out."""
    return (
        6
        * number("parameters", parameters, "parameters", above=0)
        * size("tokens", tokens, "tokens")
    )


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes held during a step: weights and gradients in bf16, the optimizer's fp32 weights and two
    moments, and activations."""

    weights: float
    gradients: float
    optimizer: float
    activations: Value

    @property
    def total(self) -> Value:
        """All four together (byte)."""
        return sum(getattr(self, part.name) for part in fields(self))


def zero_memory(parameters: Number, ranks: Number, zero: int) -> TrainingMemory:
    """The TrainingMemory of one of `ranks` data parallel ranks under ZeRO, without activations.

    Stage `zero` 0 shares nothing, 1 the optimizer's state, 2 also the gradients, 3 also the
    weights: 16 byte a parameter become 4 + 12/n, 2 + 14/n and 16/n.
    """
    parameters = number("parameters", parameters, "parameters", least=0)
    ranks, zero = size("ranks", ranks, "ranks"), zero_stage(zero)
    return TrainingMemory(
        _WIDTH * parameters / (ranks if zero >= 3 else 1),
        _WIDTH * parameters / (ranks if zero >= 2 else 1),
        12.0 * parameters / (ranks if zero >= 1 else 1),
        0.0,
    )


def training_memory(
    model: Transformer | str, micro_batch: Number, tokens: Number, keep: str = "no scores"
) -> TrainingMemory:
    """The TrainingMemory of a micro-batch of sequences, `tokens` tokens each. `model` is a
    Transformer or the name of one.

    `keep` says what the forward pass leaves for the backward pass: "everything", "no scores"
    (attention's T x T matrices are recomputed, as FlashAttention does), "layer inputs" (all else is
    recomputed, one more forward pass). UnknownName for any other.
    """
    model, keep = as_transformer(model), _keep(keep)
    tokens = size("tokens", tokens, "tokens")
    rows = size("micro_batch", micro_batch, "sequences") * tokens
    if keep == "layer inputs":
        numbers_a_row: Value = model.layers * model.d_model
    else:
        queries, values = model.heads * model.head_dim, model.kv_heads * model.head_dim
        ffn = model.experts_per_token * (3 if model.gated else 2) * model.d_ff
        # before and after the softmax
        scores = 2 * model.heads * tokens if keep == "everything" else 0
        numbers_a_row = model.layers * (
            2 * model.d_model
            + model.d_model
            + queries
            + 2 * values
            + queries
            + model.d_model
            + ffn
            + scores
        )
    parameters = model.parameters
    return TrainingMemory(
        _WIDTH * parameters,
        _WIDTH * parameters,
        12.0 * parameters,
        _WIDTH * rows * (numbers_a_row + model.vocab),
    )


def training_step(
    model: Transformer | str,
    micro_batch: Number,
    tokens: Number,
    accumulation: Number = 1,
    keep: str = "no scores",
    *,
    parallel: Parallel | None = None,
    link: Link | str | Mapping | None = None,
) -> dict[str, Work] | ParallelTraining:
    """dict[str, Work] of one step: `accumulation` micro-batches forward and backward in bf16, then
    Adam over all parameters. `model` is a Transformer or the name of one.

    Each product of the forward pass has two of the same size in the backward pass. Every
    micro-batch after the first also reads the gradients that it adds to. Adam takes 14 FLOP a
    parameter and moves 28 byte: gradient, fp32 weight and moments in, both weights and moments out.

    With `parallel` (a Parallel) each micro-batch is shared among several chips, and the answer is a
    ParallelTraining. `link` is the Link or its name, or one for each kind of sharing.
    """
    model, keep, times = (
        as_transformer(model),
        _keep(keep),
        size("accumulation", accumulation, "micro-batches"),
    )
    micro_batch, tokens = (
        size("micro_batch", micro_batch, "sequences"),
        size("tokens", tokens, "tokens"),
    )
    if parallel is not None:
        return _shared_step(model, micro_batch, tokens, times, keep, as_parallel(parallel), link)
    return _works(forward_products(model, micro_batch, tokens), times, keep, model.parameters)


@dataclass(frozen=True)
class ParallelTraining:
    """One training step on several chips: `works` of the busiest chip, the `transfers` beside it,
    the `memory` it needs.

    `bubble` is the time that a pipeline stands idle over the time it works. Transfers between the
    layers ("tensor", "expert") cannot hide behind other work; those of gradients and weights can.
    """

    works: dict[str, Work]
    transfers: dict[str, Transfer]
    memory: TrainingMemory
    bubble: float = 0.0

    @property
    def transfer_time(self) -> float:
        """Seconds of all transfers of one chip, one after another. ValueError without a link."""
        return sum(transfer.time for transfer in self.transfers.values())

    def work_time(self, machine: Machine | str, precision: str) -> float:
        """Seconds at least for the chip's Works, the pipeline's idle time included."""
        return (1 + self.bubble) * time_in_sequence(self.works.values(), machine, precision)

    def time(self, machine: Machine | str, precision: str) -> float:
        """Seconds of the step with nothing overlapped: work and transfers one after another."""
        return self.work_time(machine, precision) + self.transfer_time


def forward_products(model, micro_batch, tokens):
    """{name: Work} of the products of a forward pass, with logits of every token."""
    return model.prefill(micro_batch, tokens) | {
        "logits": gemm(micro_batch * tokens, model.vocab, model.d_model, "bf16")
    }


def _works(products, times, keep, parameters, updated=None):
    """{name: Work} of a step whose forward pass has these products; of its `parameters` the chip
    brings `updated` up to date, by default all."""
    forward = sum(products.values())
    step = {"forward": times * forward, "backward": 2 * times * forward}
    if keep == "layer inputs":
        step["recompute"] = times * forward
    updated = parameters if updated is None else updated
    return step | {
        "gradient sums": Work(0, (times - 1) * _WIDTH * parameters),
        "optimizer": Work(14 * updated, 28 * updated),
    }


def _shared_step(model, micro_batch, tokens, times, keep, parallel, link):
    """The ParallelTraining of one step; `micro_batch` sequences are those of all replicas."""
    links, chip = links_by_kind(link), chip_model(model, parallel)
    own = share_of("micro_batch", micro_batch, parallel)

    def products_of(narrow, sequences):
        return forward_products(narrow, sequences, tokens)

    groups = chip_parameters(model, parallel)
    experts = groups.pop("experts", 0)
    rest = sum(groups.values())
    shared, expert_part = (
        zero_memory(rest, parallel.replicas, parallel.zero),
        zero_memory(experts, parallel.data, parallel.zero),
    )
    activations = training_memory(chip, own, tokens, keep).activations
    # a pipeline's first stage waits longest for its gradients: it keeps a micro-batch a stage
    waiting = np.minimum(parallel.pipeline, times)
    memory = TrainingMemory(
        shared.weights + expert_part.weights,
        shared.gradients + expert_part.gradients,
        shared.optimizer + expert_part.optimizer,
        plain(activations * waiting),
    )
    return ParallelTraining(
        _works(
            chip_works(model, own, parallel, products_of),
            times,
            keep,
            rest + experts,
            updated=memory.optimizer / 12,
        ),
        _transfers(chip, own * tokens, (rest, experts), times, keep, parallel, links),
        memory,
        pipeline_bubble(parallel.pipeline, times),
    )


def _transfers(chip, rows, parameters, times, keep, parallel, links):
    """{name: Transfer} of a step: between layers forward, backward and where layers are computed
    again; to the next stage and back; of gradients and weights among the replicas."""
    row_bytes = _WIDTH * rows * chip.d_model
    passes = 3 if keep == "layer inputs" else 2
    transfers = {
        name: passes * times * transfer
        for name, transfer in layer_transfers(chip, row_bytes, parallel, links).items()
    }
    if parallel.pipeline > 1:
        both = send(row_bytes, links["pipeline"]) + send(row_bytes, links["pipeline"])
        transfers["sends to the next stage and back"] = times * both
    rest, experts = parameters
    for kind, count, ranks in (
        ("", rest, parallel.replicas),
        (" of experts", experts, parallel.data),
    ):
        if count:
            shared = gradient_transfers(_WIDTH * count, ranks, parallel.zero, times, links["data"])
            transfers |= {name + kind: transfer for name, transfer in shared.items()}
    return transfers


def _keep(keep):
    if not isinstance(keep, str) or keep not in KEEP:
        raise unknown("keep", keep, KEEP)
    return keep
