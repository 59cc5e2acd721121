"""One training step of a transformer: its FLOP and bytes, and what has to lie in memory meanwhile.

6 N D: Kaplan and others, 2020, arXiv:2001.08361. Activations: Korthikanti and others, 2022,
arXiv:2205.05198, whose 34 bytes hold two dropout masks that are not counted here, and whose logits
are fp32. 2 + 2 + 12 byte a parameter, bf16 with Adam: Rajbhandari and others, 2019,
arXiv:1910.02054. Backward attention in five products: Dao and others, 2022, arXiv:2205.14135.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import overload

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
from roofline_lib.precisions import bytes_of
from roofline_lib.transformer import Transformer, as_transformer

KEEP = ("everything", "no scores", "layer inputs")
_BF16 = 2  # bytes of an activation and a weight
_FP32 = 4  # bytes of a logit and of its gradient: the loss is computed in fp32
_ADAM = 12  # bytes a parameter: an fp32 copy of the weight and two fp32 moments


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
    """Bytes held during a step of bf16 training with Adam.

    `weights`, `gradients`, `optimizer` (an fp32 copy of the weights and two moments) stay all the
    time. `activations` is what the forward pass has left for the backward pass. Two more are needed
    for a while, one after the other: `logits`, the fp32 logits and their gradient, while the loss
    is computed, and `recomputed`, the one layer that is being computed a second time.
    """

    weights: Value
    gradients: Value
    optimizer: Value
    activations: Value
    logits: Value = 0.0
    recomputed: Value = 0.0

    @property
    def states(self) -> Value:
        """Bytes that lie there before the first token: weights, gradients and optimizer."""
        return self.weights + self.gradients + self.optimizer

    @property
    def passing(self) -> Value:
        """Bytes that come and go: the larger of logits and recomputed layer."""
        return plain(np.maximum(self.logits, self.recomputed))

    @property
    def total(self) -> Value:
        """Bytes at the worst moment of the step."""
        return plain(self.states + self.activations + self.passing)


def zero_memory(
    parameters: Number, ranks: Number, zero: int, *, gradients: str = "bf16"
) -> TrainingMemory:
    """The TrainingMemory of one of `ranks` data parallel ranks under ZeRO, without activations.

    Stage `zero` 0 shares nothing, 1 the optimizer's state, 2 also the gradients, 3 also the
    weights: 16 byte a parameter become 4 + 12/n, 2 + 14/n and 16/n. `gradients` is the precision
    that gradients are summed in.
    """
    parameters = number("parameters", parameters, "parameters", least=0)
    ranks, zero = size("ranks", ranks, "ranks"), zero_stage(zero)
    return _zero_memory(parameters, ranks, zero, bytes_of("gradients", gradients))


def _zero_memory(parameters, ranks, zero, gradient_bytes):
    return TrainingMemory(
        _BF16 * parameters / (ranks if zero >= 3 else 1),
        gradient_bytes * parameters / (ranks if zero >= 2 else 1),
        float(_ADAM) * parameters / (ranks if zero >= 1 else 1),
        0.0,
    )


def training_memory(
    model: Transformer | str,
    micro_batch: Number,
    tokens: Number,
    keep: str = "no scores",
    *,
    gradients: str = "bf16",
) -> TrainingMemory:
    """The TrainingMemory of a micro-batch of sequences, `tokens` tokens each.

    `model` is a Transformer or a preset's name. `keep` says what the forward pass leaves for the
    backward pass: "everything", "no scores" (attention's T x T matrix is recomputed, as
    FlashAttention does), "layer inputs" (all else is recomputed, one layer at a time). `gradients`
    is the precision that gradients are summed in; many trainers use fp32.

    Counted is what arithmetic needs: a framework's own copies, fragmentation and work space come
    on top, and a loss that is computed in pieces (arXiv:2411.09009) needs less for its logits.
    Left out: router probabilities, position tables, dropout masks. ValueError for bad sizes,
    UnknownName for an unknown `keep`, precision or model.
    """
    model, keep, tokens = as_transformer(model), _keep(keep), size("tokens", tokens, "tokens")
    rows = size("micro_batch", micro_batch, "sequences") * tokens
    dense, sparse = _layer_numbers(model)
    sparse_layers = model.layers - model.dense_layers if model.experts > 1 else 0
    recomputed: Value = 0.0
    if keep == "layer inputs":
        kept: Value = model.layers * model.d_model
        recomputed = _BF16 * rows * (max(dense, sparse) if sparse_layers else dense)
    else:
        # the softmax's output; the scores before it are not needed again
        scores = model.heads * tokens if keep == "everything" else 0
        kept = (
            sparse_layers * sparse + (model.layers - sparse_layers) * dense + model.layers * scores
        )
    parameters = model.parameters
    return TrainingMemory(
        weights=_BF16 * parameters,
        gradients=bytes_of("gradients", gradients) * parameters,
        optimizer=float(_ADAM * parameters),
        activations=_BF16 * rows * kept,
        logits=2 * _FP32 * rows * model.vocab,
        recomputed=recomputed,
    )


def _layer_numbers(model):
    """Numbers that one layer keeps for one token, scores apart: (with a plain FFN, with experts).

    The inputs of both norms and of both blocks, d_model each; queries, keys, values and attention's
    output; with MLA the latents that queries, keys and values are made from; and the inner arrays
    of each FFN that the token passes: two, or three where it is gated.
    """
    if model.kv_lora_rank:
        wide = model.head_dim + model.rope_head_dim
        values = model.v_head_dim or model.head_dim
        latents = model.q_lora_rank + model.kv_lora_rank + model.rope_head_dim
        attention = model.heads * (2 * wide + 2 * values) + latents
    else:
        attention = 2 * model.heads * model.head_dim + 2 * model.kv_heads * model.head_dim
    arrays = 3 if model.gated else 2
    dense = arrays * (model.dense_d_ff or model.d_ff)
    routed = model.experts_per_token * model.d_ff
    shared = model.shared_experts * (model.shared_d_ff or model.d_ff)
    block = 4 * model.d_model + attention
    return block + dense, block + arrays * (routed + shared)


@overload
def training_step(
    model: Transformer | str,
    micro_batch: Number,
    tokens: Number,
    accumulation: Number = 1,
    keep: str = "no scores",
    *,
    gradients: str = "bf16",
    parallel: None = None,
    link: Link | str | Mapping | None = None,
) -> dict[str, Work]: ...


@overload
def training_step(
    model: Transformer | str,
    micro_batch: Number,
    tokens: Number,
    accumulation: Number = 1,
    keep: str = "no scores",
    *,
    gradients: str = "bf16",
    parallel: Parallel,
    link: Link | str | Mapping | None = None,
) -> ParallelTraining: ...


def training_step(
    model: Transformer | str,
    micro_batch: Number,
    tokens: Number,
    accumulation: Number = 1,
    keep: str = "no scores",
    *,
    gradients: str = "bf16",
    parallel: Parallel | None = None,
    link: Link | str | Mapping | None = None,
) -> dict[str, Work] | ParallelTraining:
    """dict[str, Work] of one step: `accumulation` micro-batches forward and backward in bf16, then
    Adam over all parameters. `model` is a Transformer or the name of one.

    Each product with weights has two of the same size in the backward pass. Attention's two have
    four, and a fifth where the scores were not kept: Q K^T once more. With "layer inputs" the
    layers, but not the logits, are computed a second time. Every micro-batch after the first also
    reads the gradients that it adds to. Adam takes 14 FLOP a parameter and moves the
    gradient, the fp32 weight and the moments in, both weights and the moments out: 28 byte with
    bf16 `gradients`.

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
    width = bytes_of("gradients", gradients)
    if parallel is not None:
        shared = as_parallel(parallel)
        return _shared_step(model, micro_batch, tokens, times, keep, width, shared, link)
    products = forward_products(model, micro_batch, tokens)
    return _works(products, times, keep, width, model.parameters)


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
    def transfer_time(self) -> Value:
        """Seconds of all transfers of one chip, one after another. ValueError without a link."""
        return sum((transfer.time for transfer in self.transfers.values()), start=0.0)

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


def _works(products, times, keep, width, parameters, updated=None):
    """{name: Work} of a step whose forward pass has these products; gradients are `width` bytes
    wide. Of its `parameters` the chip brings `updated` up to date, by default all."""
    forward = sum(products.values())
    backward = 2 * forward
    if keep != "everything":
        backward = backward + Work(products["attention"].flops / 2, 0)
    step = {"forward": times * forward, "backward": times * backward}
    if keep == "layer inputs":
        layers = [work for name, work in products.items() if name != "logits"]
        step["recompute"] = times * sum(layers)
    updated = parameters if updated is None else updated
    return step | {
        "gradient sums": Work(0, (times - 1) * width * parameters),
        "optimizer": Work(14 * updated, (26 + width) * updated),
    }


def _shared_step(model, micro_batch, tokens, times, keep, width, parallel, link):
    """The ParallelTraining of one step; `micro_batch` sequences are those of all replicas."""
    links, chip = links_by_kind(link), chip_model(model, parallel)
    own = share_of("micro_batch", micro_batch, parallel)

    def products_of(narrow, sequences):
        return forward_products(narrow, sequences, tokens)

    groups = chip_parameters(model, parallel)
    experts = groups.pop("experts", 0)
    rest = sum(groups.values())
    shared, expert_part = (
        _zero_memory(rest, parallel.replicas, parallel.zero, width),
        _zero_memory(experts, parallel.data, parallel.zero, width),
    )
    held = training_memory(chip, own, tokens, keep)
    # a pipeline's first stage waits longest for its gradients: it keeps a micro-batch a stage
    waiting = np.minimum(parallel.pipeline, times)
    memory = TrainingMemory(
        shared.weights + expert_part.weights,
        shared.gradients + expert_part.gradients,
        shared.optimizer + expert_part.optimizer,
        plain(held.activations * waiting),
        held.logits,
        held.recomputed,
    )
    return ParallelTraining(
        _works(
            chip_works(model, own, parallel, products_of),
            times,
            keep,
            width,
            rest + experts,
            updated=memory.optimizer / _ADAM,
        ),
        _transfers(chip, own * tokens, (rest, experts), times, keep, width, parallel, links),
        memory,
        pipeline_bubble(parallel.pipeline, times),
    )


def _transfers(chip, rows, parameters, times, keep, width, parallel, links):
    """{name: Transfer} of a step: between layers forward, backward and where layers are computed
    again; to the next stage and back; of gradients and weights among the replicas."""
    row_bytes = _BF16 * rows * chip.d_model
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
            shared = gradient_transfers(width * count, ranks, parallel.zero, times, links["data"])
            transfers |= {name + kind: transfer for name, transfer in shared.items()}
    return transfers


def _keep(keep):
    if not isinstance(keep, str) or keep not in KEEP:
        raise unknown("keep", keep, KEEP)
    return keep
