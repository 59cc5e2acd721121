"""How long a step takes: at least, and as forecast with what it costs to start kernels.

A roofline bound knows no kernels. A decode step of a small batch consists of hundreds that run for
a few microseconds each, and every one of them pays for its launch: in a sweep on an H200 the bound
alone was 42 % under the measured step, the forecast with one launch constant within 6 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from roofline_lib.arguments import Number, Value, number, plain, short, switch
from roofline_lib.layers import LatentAttention
from roofline_lib.machines import Machine
from roofline_lib.model import Work, time_in_sequence
from roofline_lib.transformer import Transformer, as_transformer


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step by where they go: `work_time` under the roof, `transfer_time` between
    chips, `launch_time` to start kernels. Arrays where the works have arrays."""

    work_time: Value
    transfer_time: Value
    launch_time: Value

    @property
    def bound(self) -> Value:
        """Seconds at least: kernels follow one another, and transfers hide behind them entirely, or
        they behind the transfers. No launches."""
        return plain(np.maximum(self.work_time, self.transfer_time))

    @property
    def forecast(self) -> Value:
        """Seconds as forecast: nothing hides, every kernel pays for its launch. No bound: a step
        may be faster where work overlaps, and slower where kernels miss their roof."""
        return plain(self.work_time + self.transfer_time + self.launch_time)


def step_time(
    works: Iterable[Work] | Mapping[str, Work],
    machine: Machine | str,
    precision: str,
    kernels: Number = 0,
    per_kernel: Number = 0.0,
    transfers: Iterable[Any] = (),
) -> StepTime:
    """The StepTime of works that follow one another on a machine (or its name), at the peak of
    `precision`.

    `works` is what `decode` or `prefill` returns, or an iterable of Work. `kernels` is how many are
    launched (see `kernels_per_step`), `per_kernel` what each costs (s) beside its own work: about
    2.6e-6 where a CUDA graph launches them, 1e-5 where the host does one by one. `transfers` have
    a `.time` (s) each, as collectives have, and follow one another.
    """
    parts = list(_parts(works))
    if not parts or not all(isinstance(work, Work) for work in parts):
        raise ValueError(f"works must be one Work or more, as decode returns; got {short(works)}")
    return StepTime(
        work_time=time_in_sequence(parts, machine, precision),
        transfer_time=sum((transfer.time for transfer in _parts(transfers)), start=0.0),
        launch_time=number("kernels", kernels, "kernels", least=0)
        * number("per_kernel", per_kernel, "s", least=0),
    )


def _parts(given):
    """The values of a dict, the entries of anything else that has some."""
    return given.values() if isinstance(given, Mapping) else given if np.iterable(given) else ()


# Kernels of one layer that are no product with a weight, in plain PyTorch without a compiler.
_ROTARY = 2 * 5  # queries and keys: negate, join, two products, one sum
_CACHE = 2  # keys and values into the cache
_EXPAND = 2  # keys and values repeated for the heads that share them
_ATTENTION = 2  # one kernel, and its mask or the join of what was split along the keys
_RESIDUALS = 2
_ROUTING = 6  # softmax, top-k, sort, gather, weigh, scatter
_OUTSIDE = 4  # embedding, last norm, logits, the next token


def kernels_per_step(model: Transformer | str, *, fused: bool = False) -> int:
    """How many kernels a decode step of a model (or its name) launches: **an estimate** from the
    architecture, not a count.

    Each weight matrix is a product (queries, keys and values are three, gate and up two; experts
    run as one grouped product each), and norms, rotary turns, cache writes, residual sums and
    activation functions are kernels of their own, as plain PyTorch runs them. Llama-3-8B comes to
    932, 29 a layer; a profiler counted 931 and 964 in two programs of that kind. `fused` says that
    neighbours are joined, as serving programs do: one product for queries, keys and values and one
    for gate and up, norms with the residual sum before, turns with the cache write.
    """
    model, fused = as_transformer(model), switch("fused", fused)
    per_layer = _attention_kernels(model, fused)
    per_layer += model.norms_per_layer + (0 if fused else _RESIDUALS)
    total = model.layers * per_layer + _OUTSIDE
    for kind in model.feed_forwards:
        total += kind.layers * _feed_forward_kernels(kind, fused)
    return total


def _attention_kernels(model, fused):
    attention = model.attention
    products = len(attention.matrices)
    if isinstance(attention, LatentAttention):
        products += 1  # "kv up" on queries and on outputs
    elif not fused:
        products += 1  # keys and values apart
    else:
        products -= 1  # queries, keys and values together
    if fused:
        return products + 1 + _ATTENTION
    turned = 0 if model.learned_positions else _ROTARY
    shared = _EXPAND if model.kv_heads < model.heads else 0
    norms = 2 if model.qk_norm or model.kv_lora_rank else 0
    return products + turned + _CACHE + shared + _ATTENTION + norms


def _feed_forward_kernels(kind, fused):
    products = 3 if kind.gated and not fused else 2
    activation = 2 if kind.gated and not fused else 1
    routing = 1 + _ROUTING if kind.name == "experts" else 0
    return products + activation + routing
