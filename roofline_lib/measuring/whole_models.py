"""A whole language model, timed: decode steps and prefill passes with random weights.

The model is written as most people write one: a norm, a product, an elementwise pass after the
other. On a GPU it is plain torch, timed three ways. "eager" launches each kernel from Python,
"graph" replays one captured CUDA graph, "compiled" is what torch.compile makes of a layer, captured
as well: it fuses small kernels. On a CPU it is numpy in fp32. Weights are random, so nothing is
downloaded; speed does not depend on their values, apart from the power that they draw.

Only dense models with grouped-query attention and full context are timed. Each timed step is one
new token for each of `batch` sequences, of which `context` keys are in the cache, the new one
among them.
"""

import os
import time
from functools import partial

import numpy as np

from roofline_lib.measuring.jobs import Job
from roofline_lib.measuring.record import Point, PrefillShape, StepShape, StreamShape
from roofline_lib.model import Work
from roofline_lib.quantities import quantity
from roofline_lib.transformer import Transformer, as_transformer

# small enough for a laptop: 120 million parameters, 0.5 GB in fp32
LAPTOP_MODEL = Transformer(12, 768, 12, 4, 64, 2048, 32000, name="laptop-120m")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (128, 1024, 4096, 16384)
PROMPTS = (128, 512, 2048, 8192)
COMPILED = ((1, 1024), (8, 1024), (64, 1024), (1, 4096))
ROOM = 0.85  # of the memory: what weights and cache may take


def model_to_time(given) -> Transformer:
    """The Transformer that `--model` names: a preset, a config.json, a Transformer, or "laptop"."""
    if given == "laptop":
        return LAPTOP_MODEL
    if str(given).endswith(".json"):
        return refuse_what_is_not_timed(Transformer.from_config(given))
    return refuse_what_is_not_timed(as_transformer(given))


def refuse_what_is_not_timed(model: Transformer) -> Transformer:
    """The model, if it is of the kind that is timed here; ValueError that says why not."""
    for why, true in (
        ("a mixture of experts", model.experts > 1),
        ("multi-head latent attention", model.kv_lora_rank > 0),
        ("windowed layers", bool(model.window)),
    ):
        if true:
            raise ValueError(
                f"model must be dense, with grouped-query attention and no window, to be timed; "
                f"got {model.name or 'one'} with {why}. Try llama-3-8b or llama-2-7b"
            )
    return model


class TorchModel:
    """A transformer with random bf16 weights on `device`, written in plain torch."""

    def __init__(self, model, device="cuda", dtype=None):
        import torch

        self.torch, self.model, self.device = torch, refuse_what_is_not_timed(model), device
        self.dtype = dtype or torch.bfloat16
        widths = {
            "q": (model.heads * model.head_dim, model.d_model),
            "k": (model.kv_heads * model.head_dim, model.d_model),
            "v": (model.kv_heads * model.head_dim, model.d_model),
            "o": (model.d_model, model.heads * model.head_dim),
            "up": (model.d_ff, model.d_model),
            "down": (model.d_model, model.d_ff),
        }
        if model.gated:
            widths["gate"] = (model.d_ff, model.d_model)
        self.layers = [
            {name: self.random(shape) for name, shape in widths.items()}
            | {name: self.ones(model.d_model) for name in ("first norm", "second norm")}
            for _ in range(model.layers)
        ]
        self.head = self.random((model.vocab, model.d_model))
        self.last_norm = self.ones(model.d_model)

    def random(self, shape):
        """Numbers of a size that keeps activations near 1."""
        scale = shape[-1] ** -0.5
        drawn = self.torch.randn(shape, device=self.device, dtype=self.dtype)
        return drawn.mul_(scale)

    def ones(self, width):
        return self.torch.ones(width, device=self.device, dtype=self.dtype)

    def cache(self, batch, context):
        """Keys and values of each layer: [batch, kv_heads, context, head_dim]."""
        shape = (batch, self.model.kv_heads, context, self.model.head_dim)
        return [
            tuple(self.torch.randn(shape, device=self.device, dtype=self.dtype) for _ in range(2))
            for _ in range(self.model.layers)
        ]

    def angles(self, positions):
        """cos and sin of the rotary position embedding, [positions, head_dim]."""
        torch, half = self.torch, self.model.head_dim // 2
        frequencies = 10000.0 ** (-torch.arange(half, device=self.device) / half)
        turns = positions.to(self.device)[:, None] * frequencies[None, :]
        turns = torch.cat((turns, turns), -1)
        return turns.cos().to(self.dtype), turns.sin().to(self.dtype)

    def rotated(self, x, angles):
        cos, sin = angles
        half = self.model.head_dim // 2
        turned = self.torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos + turned * sin

    def heads_of(self, x, heads):
        """[batch, tokens, heads * head_dim] as [batch, heads, tokens, head_dim]."""
        return x.unflatten(-1, (heads, self.model.head_dim)).transpose(1, 2)

    def layer(self, x, weights, keys, values, angles, decode):
        """One layer on x [batch, tokens, d_model]. In decode the new key and value take the last
        place of the cache; in prefill the whole prompt's keys and values are the cache."""
        functional, model = self.torch.nn.functional, self.model
        normed = functional.rms_norm(x, (model.d_model,), weights["first norm"])
        q = self.heads_of(functional.linear(normed, weights["q"]), model.heads)
        k = self.heads_of(functional.linear(normed, weights["k"]), model.kv_heads)
        v = self.heads_of(functional.linear(normed, weights["v"]), model.kv_heads)
        q, k = self.rotated(q, angles), self.rotated(k, angles)
        if decode:
            keys[:, :, -1:], values[:, :, -1:] = k, v
        else:
            keys.copy_(k)
            values.copy_(v)
        mixed = functional.scaled_dot_product_attention(
            q, keys, values, is_causal=not decode, enable_gqa=model.heads != model.kv_heads
        )
        x = x + functional.linear(mixed.transpose(1, 2).flatten(-2), weights["o"])
        normed = functional.rms_norm(x, (model.d_model,), weights["second norm"])
        inner = functional.linear(normed, weights["up"])
        if model.gated:
            inner = functional.silu(functional.linear(normed, weights["gate"])) * inner
        else:
            inner = functional.gelu(inner)
        return x + functional.linear(inner, weights["down"])

    def logits(self, x):
        """Of the last token of each sequence."""
        normed = self.torch.nn.functional.rms_norm(x[:, -1:], (self.model.d_model,), self.last_norm)
        return self.torch.nn.functional.linear(normed, self.head)

    def step(self, x, cache, angles, layer, decode=True):
        """All layers and the logits; `layer` is self.layer or what a compiler made of it."""
        for weights, (keys, values) in zip(self.layers, cache, strict=True):
            x = layer(x, weights, keys, values, angles, decode)
        return self.logits(x)

    def decode_call(self, batch, context, compiled=False):
        """A call that does one decode step, its arrays made beforehand."""
        torch = self.torch
        x = torch.randn((batch, 1, self.model.d_model), device=self.device, dtype=self.dtype)
        cache = self.cache(batch, context)
        angles = self.angles(torch.tensor([context - 1]))
        layer = torch.compile(self.layer, dynamic=False) if compiled else self.layer
        return lambda: self.step(x, cache, angles, layer)

    def prefill_call(self, batch, tokens):
        """A call that reads prompts of `tokens` tokens."""
        torch = self.torch
        x = torch.randn((batch, tokens, self.model.d_model), device=self.device, dtype=self.dtype)
        cache = self.cache(batch, tokens)
        angles = self.angles(torch.arange(tokens))
        return lambda: self.step(x, cache, angles, self.layer, decode=False)

    def kernels(self, call) -> int:
        """How many kernels and copies a call starts on the device, counted by torch's profiler."""
        torch = self.torch
        call()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            call()
            torch.cuda.synchronize()
        on_device = torch.autograd.DeviceType.CUDA
        return sum(event.device_type == on_device for event in profile.events())


class TorchJobs:
    """The jobs that time a model on a CUDA device. `bench` is gpu.Bench, which times calls and
    knows the chip."""

    def __init__(self, bench, model, quick):
        self.bench, self.model, self.quick = bench, model, quick
        self.made = None

    def torch_model(self):
        """The model with its weights on the device, made when the first job wants it."""
        if self.made is None:
            self.made = TorchModel(self.model)
        return self.made

    def jobs(self) -> list[Job]:
        batches = BATCHES[::4] if self.quick else BATCHES
        contexts = CONTEXTS[1:2] if self.quick else CONTEXTS
        prompts = PROMPTS[1:2] if self.quick else PROMPTS
        found = [Job("launch graph", partial(self.launch, "graph"))]
        found.append(Job("launch eager", partial(self.launch, "eager")))
        for context in contexts:
            for batch in batches:
                if self.fits(batch, context):
                    for mode in ("graph", "eager"):
                        if mode == "graph" or (batch in (1, 16, 256) and context == 1024):
                            name = f"decode {mode} batch {batch} context {context}"
                            found.append(Job(name, partial(self.decode, mode, batch, context)))
        found += [
            Job(f"prefill {tokens}", partial(self.prefill, 1, tokens))
            for tokens in prompts
            if self.fits(1, tokens)
        ]
        compiled = COMPILED[:1] if self.quick else COMPILED
        found += [
            Job(
                f"decode compiled batch {batch} context {context}",
                partial(self.decode, "compiled", batch, context),
            )
            for batch, context in compiled
            if self.fits(batch, context)
        ]
        return found

    def fits(self, batch, context):
        held = self.model.weight_bytes("bf16") + batch * context * self.model.kv_bytes_per_token(
            "bf16"
        )
        return held < ROOM * self.bench.chip.capacities["DRAM"]

    def launch(self, mode):
        """A kernel that does next to nothing: what starting one costs, from a graph or Python."""
        lib = self.bench.lib
        one = lib.empty((1,), "fp32")
        call = partial(one.add_, 1.0)
        run = lib.runner([call] * 1000) if mode == "graph" else lib.eager_runner([call] * 100)
        work = Work(1, 8)
        return self.bench.point(
            "launch", "fp32", StreamShape(1), work, 8, run, self.bench.pace, mode, kernels=1
        )

    def decode(self, mode, batch, context):
        """One step for each of `batch` sequences."""
        lib, model = self.bench.lib, self.torch_model()
        with lib.torch.no_grad():
            call = model.decode_call(batch, context, compiled=mode == "compiled")
            kernels = model.kernels(call)
            run = lib.eager_runner([call]) if mode == "eager" else lib.runner([call])
            work = sum(self.model.decode(batch, context).values())
            shape = StepShape(batch, context)
            point = self.bench.point(
                "decode", "bf16", shape, work, work.bytes_moved, run, self.bench.pace, mode, kernels
            )
        del run, call
        lib.torch.cuda.empty_cache()
        return point

    def prefill(self, batch, tokens):
        """Prompts read in one pass, launched from Python: the device is busy for long enough."""
        lib, model = self.bench.lib, self.torch_model()
        with lib.torch.no_grad():
            call = model.prefill_call(batch, tokens)
            kernels = model.kernels(call)
            work = sum(self.model.prefill(batch, tokens).values())
            shape = PrefillShape(batch, tokens)
            run = lib.eager_runner([call])
            point = self.bench.point(
                "prefill",
                "bf16",
                shape,
                work,
                work.bytes_moved,
                run,
                self.bench.pace,
                "eager",
                kernels,
            )
        del run, call
        lib.torch.cuda.empty_cache()
        return point


class NumpyModel:
    """The same transformer in numpy and fp32, for a machine without a GPU."""

    def __init__(self, model, seed=0):
        self.model = refuse_what_is_not_timed(model)
        self.draw = np.random.default_rng(seed)
        queries, keys = model.heads * model.head_dim, model.kv_heads * model.head_dim
        widths = {
            "q": (model.d_model, queries),
            "k": (model.d_model, keys),
            "v": (model.d_model, keys),
            "o": (queries, model.d_model),
            "up": (model.d_model, model.d_ff),
            "down": (model.d_ff, model.d_model),
        }
        if model.gated:
            widths["gate"] = (model.d_model, model.d_ff)
        self.layers = [
            {name: self.random(shape) for name, shape in widths.items()}
            for _ in range(model.layers)
        ]
        self.head = self.random((model.d_model, model.vocab))

    def random(self, shape):
        """Numbers of a size that keeps activations near 1."""
        return self.draw.standard_normal(shape, dtype=np.float32) * np.float32(shape[0] ** -0.5)

    def cache(self, batch, context):
        """Keys and values of each layer: [batch, kv_heads, context, head_dim]."""
        shape = (batch, self.model.kv_heads, context, self.model.head_dim)
        return [
            tuple(self.draw.standard_normal(shape, dtype=np.float32) for _ in range(2))
            for _ in range(self.model.layers)
        ]

    def rotated(self, x, position):
        """x [..., head_dim] turned as the rotary embedding turns `position`."""
        half = self.model.head_dim // 2
        turns = position * 10000.0 ** (-np.arange(half) / half)
        cos, sin = (
            np.concatenate((f(turns), f(turns))).astype(np.float32) for f in (np.cos, np.sin)
        )
        turned = np.concatenate((-x[..., half:], x[..., :half]), axis=-1)
        return x * cos + turned * sin

    def decode(self, x, cache, context):
        """The logits [batch, vocab] of one new token x [batch, d_model], whose key and value take
        the last of the `context` places."""
        model = self.model
        group = model.heads // model.kv_heads
        for weights, (keys, values) in zip(self.layers, cache, strict=True):
            normed = _rms_norm(x)
            q = (normed @ weights["q"]).reshape(-1, model.kv_heads, group, model.head_dim)
            k = (normed @ weights["k"]).reshape(-1, model.kv_heads, model.head_dim)
            v = (normed @ weights["v"]).reshape(-1, model.kv_heads, model.head_dim)
            keys[:, :, context - 1] = self.rotated(k, context - 1)
            values[:, :, context - 1] = v
            scores = self.rotated(q, context - 1) @ keys[:, :, :context].swapaxes(-1, -2)
            scores *= np.float32(model.head_dim**-0.5)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            mixed = (scores @ values[:, :, :context]) / scores.sum(axis=-1, keepdims=True)
            x = x + mixed.reshape(len(x), -1) @ weights["o"]
            normed = _rms_norm(x)
            inner = normed @ weights["up"]
            if model.gated:
                gate = normed @ weights["gate"]
                inner = gate / (1 + np.exp(-gate)) * inner
            else:
                inner = np.maximum(inner, 0)
            x = x + inner @ weights["down"]
        return _rms_norm(x) @ self.head


def _rms_norm(x):
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-6))


class NumpyJobs:
    """The jobs that time a model on the CPU. `timed(run, pace)` is the CPU module's way to time
    what `run(count)` does `count` times."""

    def __init__(self, model, pace, quick, timed):
        self.model, self.pace, self.quick, self.timed = (
            refuse_what_is_not_timed(model),
            pace,
            quick,
            timed,
        )
        self.made = None
        self.room = ROOM * _memory_to_spare()
        if self.held(1, 512) > self.room:
            raise ValueError(
                f"model must fit into memory in fp32 to be timed in numpy: {model.name or 'it'} "
                f"needs {quantity(self.held(1, 512), 'byte')}, there are "
                f"{quantity(self.room, 'byte')} to spare. Try --model laptop"
            )

    def jobs(self) -> list[Job]:
        shapes = [(batch, 512) for batch in ((1, 8) if self.quick else (1, 2, 4, 8, 16, 32))]
        if not self.quick:
            shapes += [(1, 128), (1, 2048), (8, 2048)]
        return [
            Job(f"decode batch {batch} context {context}", partial(self.decode, batch, context))
            for batch, context in shapes
            if self.held(batch, context) < self.room
        ]

    def held(self, batch, context):
        return self.model.weight_bytes("fp32") + batch * context * self.model.kv_bytes_per_token(
            "fp32"
        )

    def decode(self, batch, context):
        """One step for each of `batch` sequences."""
        if self.made is None:
            self.made = NumpyModel(self.model)
        x = self.made.draw.standard_normal((batch, self.model.d_model), dtype=np.float32)
        cache = self.made.cache(batch, context)
        precisions = {"weights": "fp32", "kv": "fp32", "activations": "fp32"}
        work = sum(self.model.decode(batch, context, **precisions).values())

        def run(count):
            start = time.perf_counter()
            for _ in range(count):
                self.made.decode(x, cache, context)
            return time.perf_counter() - start

        return Point(
            family="decode",
            precision="fp32",
            shape=StepShape(batch, context),
            work=work,
            working_set=float(work.bytes_moved),
            timing=self.timed(run, self.pace),
            label="numpy",
        )


def _memory_to_spare():
    """Bytes that the system has free, or 4 GiB where it does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30
