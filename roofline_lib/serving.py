"""Serving a model to many users: what is waited for, what is paid for, and what each remedy brings.

Terms. **TTFT**, time to first token: from the request sent to its first token that is not empty
(queue, prefill, network). **TPOT**, time per output token, or ITL, inter-token latency: the mean
gap between the tokens after it. vLLM's `tpot` is (latency - TTFT)/(tokens - 1), its `itl` the list
of single gaps; AIPerf divides by the tokens after the first *chunk*, which may hold several where
tokens are guessed ahead. A request takes TTFT + (tokens - 1) TPOT; a guide that prints TPOT x
tokens counts one gap too many. **Goodput**: requests a second that meet every limit.

All functions are plain formulas of numbers or arrays that broadcast. What they leave out: the queue
(requests that come in bursts), and that prefill and decode share a chip unless they are split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roofline_lib.arguments import Number, Value, number, plain, short, size
from roofline_lib.machines import Machine, as_machine
from roofline_lib.precisions import bytes_of
from roofline_lib.steps import step_time
from roofline_lib.transformer import Transformer, as_transformer

HOUR = 3600.0


@dataclass(frozen=True)
class Limits:
    """What a user may wait: seconds to the first token and seconds per token after it."""

    ttft: float
    tpot: float

    def __post_init__(self) -> None:
        for name in ("ttft", "tpot"):
            value = number(name, getattr(self, name), "s", above=0, single=True)
            object.__setattr__(self, name, value)

    def met(self, ttft: Number, tpot: Number) -> Value:
        """Whether waits (s) keep both limits."""
        ttft = number("ttft", ttft, "s", least=0)
        tpot = number("tpot", tpot, "s", least=0)
        return np.logical_and(ttft <= self.ttft, tpot <= self.tpot)


# MLPerf Inference, server scenarios (mlcommons/inference_policies, inference_rules.adoc@ac93e89).
MLPERF_LIMITS = {
    "llama2-70b conversational": Limits(2.0, 0.200),
    "llama2-70b interactive": Limits(0.450, 0.040),
    "llama3.1-8b": Limits(2.0, 0.100),
    "llama3.1-8b interactive": Limits(0.500, 0.030),
    "llama3.1-405b": Limits(6.0, 0.175),
    "llama3.1-405b interactive": Limits(4.5, 0.080),
    "deepseek-r1": Limits(2.0, 0.080),
    "deepseek-r1 interactive": Limits(1.5, 0.015),
    "gpt-oss-120b": Limits(3.0, 0.080),
    "gpt-oss-120b interactive": Limits(2.0, 0.020),
}


# What is waited for


def request_latency(ttft: Number, tpot: Number, tokens: Number) -> Value:
    """Seconds of a whole request of `tokens` output tokens: TTFT + (tokens - 1) TPOT."""
    tokens = size("tokens", tokens, "tokens")
    ttft = number("ttft", ttft, "s", least=0)
    return ttft + (tokens - 1) * number("tpot", tpot, "s", least=0)


def time_per_output_token(
    latency: Number, ttft: Number, tokens: Number, *, first_chunk: Number = 1
) -> Value:
    """Seconds per token after the first chunk: (latency - ttft)/(tokens - first_chunk).

    `first_chunk` is 1 token as vLLM counts, or what the first answer really held, as AIPerf does.
    ValueError where no token comes after it, or where latency is less than ttft.
    """
    latency = number("latency", latency, "s", least=0)
    ttft = number("ttft", ttft, "s", least=0)
    tokens, first = size("tokens", tokens, "tokens"), size("first_chunk", first_chunk, "tokens")
    if np.any(tokens <= first):
        raise ValueError(
            f"tokens must be more than first_chunk, {short(first)} (tokens); got {short(tokens)}"
        )
    if np.any(latency < ttft):
        raise ValueError(f"latency must be at least ttft, {short(ttft)} (s); got {short(latency)}")
    return (latency - ttft) / (tokens - first)


def goodput(ttft: Number, tpot: Number, duration: Number, limits: Limits) -> Value:
    """Requests a second that keep both of the Limits: `ttft` and `tpot` (s) have an entry for each
    request that was answered within `duration` (s)."""
    if not isinstance(limits, Limits):
        raise ValueError(f"limits must be Limits(ttft, tpot) (s); got {short(limits)}")
    good = np.count_nonzero(limits.met(ttft, tpot))
    return good / number("duration", duration, "s", above=0)


def requests_in_flight(rate: Number, latency: Number) -> Value:
    """Little's law: requests a second x seconds that each stays (Little, 1961,
    doi:10.1287/opre.9.3.383)."""
    return number("rate", rate, "request/s", least=0) * number("latency", latency, "s", least=0)


# Throughput against wait


@dataclass(frozen=True)
class DecodeCurve:
    """Decode over the batch: `batch` (sequences), `wait` (s a token of one user), `throughput`
    (token/s of all together); arrays of one length."""

    batch: np.ndarray
    wait: np.ndarray
    throughput: np.ndarray


def decode_curve(
    model: Transformer | str,
    machine: Machine | str,
    context: Number,
    batches: Sequence[int] | np.ndarray,
    *,
    kernels: Number = 0,
    per_kernel: Number = 0.0,
    weights: str | Mapping[str, str] = "bf16",
    kv: str = "bf16",
    activations: str = "bf16",
) -> DecodeCurve:
    """The DecodeCurve of a model on a machine (or their names) over `batches` (sequences, an array)
    at one `context` (tokens): each wait is step_time's forecast, without `kernels` the bound."""
    batches = np.atleast_1d(size("batches", batches, "sequences"))
    works: Any = as_transformer(model).decode(  # a dict, since no chips share it
        batches, context, weights=weights, kv=kv, activations=activations
    )
    step = step_time(works, machine, activations, kernels, per_kernel)
    wait = np.broadcast_to(step.forecast, batches.shape)
    return DecodeCurve(batches, wait, batches / wait)


def pareto_points(wait: Number, throughput: Number) -> np.ndarray:
    """Which points no other beats: True where no point has at most this wait (s) and at least this
    throughput (token/s) and is better in one of them. Arrays of one length."""
    wait = np.atleast_1d(number("wait", wait, "s", above=0))
    throughput = np.atleast_1d(number("throughput", throughput, "token/s", above=0))
    if wait.ndim != 1 or wait.shape != throughput.shape:
        raise ValueError(
            f"throughput (token/s) must have an entry for each wait, {wait.shape}; got"
            f" {throughput.shape}"
        )
    sooner, more = wait[:, None] <= wait, throughput[:, None] >= throughput
    better = (wait[:, None] < wait) | (throughput[:, None] > throughput)
    return ~np.any(sooner & more & better, axis=0)


# Batching and the cache


def static_batch_use(tokens: Number) -> Value:
    """Share of a batch's row-steps that do work where all rows wait for the longest: mean / largest
    of `tokens`, the output of each request of the batch. Continuous batching, which lets a request
    join and leave at each step, brings it to 1 (Orca: Yu and others, OSDI 2022)."""
    tokens = size("tokens", tokens, "tokens")
    if np.ndim(tokens) == 0:
        raise ValueError(f"tokens must be one number for each request (tokens); got {tokens:g}")
    return plain(np.mean(tokens) / np.max(tokens))


def free_chunk(
    decode_rows: Number, machine: Machine | str, precision: str, *, weights: str | None = None
) -> Value:
    """Prompt tokens that ride on a decode step of `decode_rows` rows at no cost in its products: as
    many as are left until the rows reach the ridge point (Sarathi: Agrawal and others, 2023,
    arXiv:2308.16369).

    Exact for large weights, where activations do not count; `weights` is their precision where it
    is not `precision`. Attention of the chunk comes on top. 0 where the step is compute-bound.
    """
    rows = size("decode_rows", decode_rows, "rows")
    weight = bytes_of("weights", precision if weights is None else weights)
    # a row does 2 FLOP with each weight of so many bytes
    ridge_rows = as_machine(machine).ridge_point(precision) * weight / 2
    return plain(np.floor(np.maximum(ridge_rows - rows, 0)))


def prefix_hit_tokens(tokens: Number, hit_rate: Number) -> Value:
    """(tokens read from the cache, tokens computed) of `tokens` prompt tokens where a share
    `hit_rate` lies in a prefix cache: each hit saves 2 FLOP a parameter, and its room is taken."""
    tokens = number("tokens", tokens, "tokens", least=0)
    hits = tokens * _share("hit_rate", hit_rate)
    return hits, tokens - hits


def page_waste(block: Number) -> Value:
    """Tokens of room that a sequence leaves unused in its last page of `block` tokens, on average
    over all lengths: (block - 1)/2 (PagedAttention: Kwon and others, 2023, arXiv:2309.06180)."""
    return (size("block", block, "tokens") - 1) / 2


def page_use(tokens: Number, block: Number) -> Value:
    """Share of a sequence's pages that holds tokens: tokens / (whole pages of `block` tokens)."""
    tokens, block = size("tokens", tokens, "tokens"), size("block", block, "tokens")
    return tokens / (np.ceil(tokens / block) * block)


# Prefill and decode on chips of their own


def prefill_chips_per_decode_chip(
    prefill_time: Number, step: Number, batch: Number, tokens: Number
) -> Value:
    """Prefill chips that keep one decode chip busy: a decode chip finishes batch/(step x tokens)
    requests a second, a prefill chip 1/prefill_time.

    `prefill_time` (s a prompt), `step` (s), `batch` (sequences), `tokens` (output of a request).
    DistServe: Zhong and others, 2024, arXiv:2401.09670.
    """
    prefill = number("prefill_time", prefill_time, "s", above=0)
    rows = size("batch", batch, "sequences")
    tokens = size("tokens", tokens, "tokens")
    return rows * prefill / (number("step", step, "s", above=0) * tokens)


def disaggregated_rate(
    prefill_rate: Number, decode_rate: Number, prefill_chips: Number, decode_chips: Number
) -> Value:
    """Requests a second and chip where `prefill_chips` do `prefill_rate` each and `decode_chips`
    do `decode_rate` each (request/s): the slower side sets the pace of all."""
    prefill_chips = size("prefill_chips", prefill_chips, "chips")
    decode_chips = size("decode_chips", decode_chips, "chips")
    prefill = prefill_chips * number("prefill_rate", prefill_rate, "request/s", least=0)
    decode = decode_chips * number("decode_rate", decode_rate, "request/s", least=0)
    return plain(np.minimum(prefill, decode) / (prefill_chips + decode_chips))


# Speculation: a draft guesses, the model verifies all guesses in one pass


def expected_tokens(acceptance: Number, guesses: Number) -> Value:
    """Tokens that one pass of the model is expected to yield where each of `guesses` drafted tokens
    is accepted with probability `acceptance`: (1 - a^(g + 1))/(1 - a), from 1 to g + 1.

    Acceptances are taken as independent. Leviathan and others, 2022, arXiv:2211.17192, eq. 1.
    """
    a, g = _share("acceptance", acceptance), number("guesses", guesses, "tokens", least=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        series = np.divide(1 - np.power(a, g + 1), np.subtract(1, a))
    return plain(np.where(np.equal(a, 1), g + 1, series))


def speculation_speedup(acceptance: Number, guesses: Number, draft_time: Number = 0.0) -> Value:
    """How many times faster tokens come, `draft_time` being the time of one drafted token over that
    of a pass of the model: expected_tokens/(g c + 1) (theorem 3.8).

    It holds while a pass over g + 1 rows takes as long as one over a single row, which is as long
    as bytes set the time: price both with `decode(queries=)`.
    """
    draft = number("draft_time", draft_time, "of a pass", least=0)
    guesses = number("guesses", guesses, "tokens", least=0)
    return expected_tokens(acceptance, guesses) / (guesses * draft + 1)


def speculation_operations(
    acceptance: Number, guesses: Number, draft_operations: Number = 0.0
) -> Value:
    """How many times more FLOP a token costs, `draft_operations` being those of a drafted token
    over those of the model: (g c + g + 1)/expected_tokens (theorem 3.11)."""
    draft = number("draft_operations", draft_operations, "of a token", least=0)
    guesses = number("guesses", guesses, "tokens", least=0)
    return (guesses * draft + guesses + 1) / expected_tokens(acceptance, guesses)


# What it costs


def cost_per_million_tokens(price_per_hour: Number, tokens_per_second: Number) -> Value:
    """Price of a million tokens, in the currency of `price_per_hour`, where the chips that it rents
    yield `tokens_per_second` together."""
    price = number("price_per_hour", price_per_hour, "currency/h", least=0)
    rate = number("tokens_per_second", tokens_per_second, "token/s", above=0)
    return price / (HOUR * rate) * 1e6


def servers_needed(tokens: Number, seconds: Number, tokens_per_second: Number) -> Value:
    """Servers, as a real number, that turn over `tokens` in `seconds` at `tokens_per_second`
    each."""
    tokens = number("tokens", tokens, "tokens", least=0)
    each = number("tokens_per_second", tokens_per_second, "token/s", above=0)
    return tokens / number("seconds", seconds, "s", above=0) / each


def reading_rate(words_per_minute: Number, tokens_per_word: Number = 1.5) -> Value:
    """Tokens a second that a reader takes in: faster need no model be for one user."""
    words = number("words_per_minute", words_per_minute, "words/min", least=0)
    return words * number("tokens_per_word", tokens_per_word, "tokens", above=0) / 60


def _share(name, value):
    share = number(name, value, "share", least=0)
    if np.any(share > 1):
        raise ValueError(f"{name} must be from 0 to 1 (share); got {short(value)}")
    return share
