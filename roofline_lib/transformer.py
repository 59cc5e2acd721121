"""Decoder-only transformers: parameters, KV cache, and the Work of one prefill pass or one decode
step, operator by operator.

The presets are data/transformers.toml; configs.py reads a config.json. What attention and
feed-forward networks cost stands in layers.py.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, overload

import numpy as np

from roofline_lib.arguments import Number, Value, name_key, number, short, size, switch, unknown
from roofline_lib.layers import (
    FeedForward,
    GroupedAttention,
    LatentAttention,
    Matrix,
    Pass,
    norm_pass,
    weight_precisions,
)
from roofline_lib.model import Work
from roofline_lib.operators import elementwise, layer_norm, rms_norm
from roofline_lib.precisions import bytes_of, bytes_per_element
from roofline_lib.tables import read_table

if TYPE_CHECKING:  # several chips are asked for seldom, and cost time to import
    from roofline_lib.links import Link
    from roofline_lib.parallel import Parallel, ParallelStep


def _count(least, default=MISSING, compare=True):
    """A field that holds one whole number of at least `least`, or its default None."""
    return field(default=default, metadata={"least": least}, compare=compare)


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer by its sizes (elements). The first seven are needed; the rest
    default to a dense Llama-like model.

    Feed-forward: `gated` has gate, up and down, otherwise up and down only. With `experts` above 1
    each token uses `experts_per_token` of them, `d_ff` wide each, and all `shared_experts`,
    `shared_d_ff` wide each (default `d_ff`). The first `dense_layers` layers keep one plain network
    of `dense_d_ff`.

    Attention: `kv_heads` below `heads` share keys and values. The `windowed_layers` (default: all
    of them where a `window` is given) see only the last `window` tokens, their own among them; no
    more than that is cached or read there. `kv_lora_rank` above 0 means MLA: one latent of that
    rank, and `rope_head_dim` shared position numbers, are all that the cache holds; `head_dim` is
    then the part of a head without position. Keys and values are made from the latent, or that
    product is moved onto queries and outputs and attention works on the latent itself, whichever
    takes fewer FLOP: prefill the one, decode the other.

    `tied` shares the embedding with the output head; `extra_parameters` are those that no field
    covers. `positions` is the longest context that the model was made for: it changes no count, and
    two models that differ in it alone are equal. Errors: ValueError that names the field.
    """

    layers: int = _count(1)
    d_model: int = _count(1)
    heads: int = _count(1)
    kv_heads: int = _count(1)
    head_dim: int = _count(1)
    d_ff: int = _count(1)
    vocab: int = _count(1)
    gated: bool = True
    tied: bool = False
    experts: int = _count(1, 1)
    experts_per_token: int = _count(1, 1)
    shared_experts: int = _count(0, 0)
    shared_d_ff: int | None = _count(1, None)
    dense_layers: int = _count(0, 0)
    dense_d_ff: int | None = _count(1, None)
    q_lora_rank: int = _count(0, 0)
    kv_lora_rank: int = _count(0, 0)
    rope_head_dim: int = _count(0, 0)
    v_head_dim: int | None = _count(1, None)
    window: int | None = _count(1, None)
    windowed_layers: int | None = _count(0, None)
    norms_per_layer: int = _count(0, 2)
    norm_biases: bool = False
    qk_norm: bool = False
    attention_biases: bool = False
    qkv_biases: bool = False
    ffn_biases: bool = False
    learned_positions: int = _count(0, 0)
    extra_parameters: int = _count(0, 0)
    positions: int | None = _count(1, None, compare=False)
    name: str = ""

    def __post_init__(self):
        for one in fields(self):
            value = getattr(self, one.name)
            if one.type is bool:
                object.__setattr__(self, one.name, switch(one.name, value))
            elif "least" in one.metadata and not (value is None and one.default is None):
                whole = number(
                    one.name,
                    value,
                    "count",
                    least=one.metadata["least"],
                    whole=True,
                    single=True,
                )
                object.__setattr__(self, one.name, int(whole))
        self._refuse_fields_without_their_kind()
        self._refuse_counts_that_do_not_fit()

    def _refuse_fields_without_their_kind(self):
        without_latent = {"q_lora_rank": 0, "rope_head_dim": 0, "v_head_dim": self.head_dim}
        for name, harmless in without_latent.items():
            value = getattr(self, name)
            if not self.kv_lora_rank and value not in (harmless, None):
                raise ValueError(
                    f"{name} goes with a kv_lora_rank above 0 (count); got {value} without one"
                )
        if self.windowed_layers and self.window is None:
            raise ValueError(
                "windowed_layers goes with a window (tokens);"
                f" got {self.windowed_layers} without one"
            )
        if self.window is not None and self.kv_lora_rank:
            raise ValueError(f"window (tokens) must be None with MLA; got {self.window}")

    def _refuse_counts_that_do_not_fit(self):
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads must divide heads ({self.heads}); got {self.kv_heads}")
        for name, whole in (
            ("experts_per_token", "experts"),
            ("dense_layers", "layers"),
            ("windowed_layers", "layers"),
        ):
            value, most = getattr(self, name), getattr(self, whole)
            if value is not None and value > most:
                raise ValueError(f"{name} must be at most {whole} ({most}); got {value}")

    @classmethod
    def from_config(cls, source: str | PathLike | Mapping) -> "Transformer":
        """The Transformer that a Hugging Face `config.json` describes: a path to one, or the dict.

        Keys that are missing take the defaults of the model's own class. ValueError, which names
        the key, for what is not understood: a guess would be worse. Only the text model is counted,
        without modules for several-token prediction; a warning says what was left out. Precisions
        are not read: `quantization_config` says which matrices are stored how, `weights=` of
        `decode` and `weight_bytes` takes them by group.
        """
        from roofline_lib.configs import config_fields  # most models are presets

        return cls(**config_fields(source))

    # What a layer is made of

    @property
    def attention(self) -> GroupedAttention | LatentAttention:
        """The attention of a layer, by its kind."""
        if not self.kv_lora_rank:
            return GroupedAttention(self.d_model, self.heads, self.kv_heads, self.head_dim)
        return LatentAttention(
            d_model=self.d_model,
            heads=self.heads,
            head_dim=self.head_dim,
            rope_dim=self.rope_head_dim,
            v_dim=self.v_head_dim or self.head_dim,
            q_rank=self.q_lora_rank,
            kv_rank=self.kv_lora_rank,
        )

    @property
    def feed_forwards(self) -> tuple[FeedForward, ...]:
        """The kinds of feed-forward network that the model has, each with its number of layers."""
        d, gated, moe = self.d_model, self.gated, self._moe_layers
        plain = self.dense_d_ff or self.d_ff
        shared = self.shared_d_ff or self.d_ff
        kinds = (
            FeedForward("ffn", self.layers - moe, d, plain, gated),
            FeedForward("experts", moe, d, self.d_ff, gated, self.experts, self.experts_per_token),
            FeedForward(
                "shared experts",
                moe if self.shared_experts else 0,
                d,
                shared,
                gated,
                self.shared_experts,
                self.shared_experts,
            ),
        )
        return tuple(kind for kind in kinds if kind.layers)

    @property
    def _moe_layers(self):
        return self.layers - self.dense_layers if self.experts > 1 else 0

    @property
    def _window_counts(self):
        """((layers, window), ...): layers with a window, then those without."""
        if self.window is None:
            return ((self.layers, None),)
        windowed = self.layers if self.windowed_layers is None else self.windowed_layers
        counts = ((windowed, self.window), (self.layers - windowed, None))
        return tuple((layers, window) for layers, window in counts if layers)

    # Parameters and memory

    @property
    def parameters(self) -> int:
        """Every parameter: matrices, embeddings, norm gains, biases."""
        return sum(self.parameters_by_group.values())

    @property
    def active_parameters(self) -> int:
        """The parameters without the experts that a token does not use."""
        unused = (self.experts - self.experts_per_token) * self._moe_layers
        one = FeedForward("experts", self.layers, self.d_model, self.d_ff, self.gated)
        biases = one.bias_parameters if self.ffn_biases else 0
        return self.parameters - unused * (one.matrix_parameters + biases)

    @property
    def parameters_by_group(self) -> dict[str, int]:
        """Parameters of each group that may have a precision of its own: the matrices by purpose;
        norms, biases, positions and extras are "other". A tied embedding counts as "logits"."""
        table = self.vocab * self.d_model
        groups = {
            "attention": self.layers * sum(m.parameters for m in self.attention.matrices),
            "embedding": 0 if self.tied else table,
            "logits": table,
        }
        for kind in self.feed_forwards:
            groups[kind.name] = kind.layers * kind.copies * kind.matrix_parameters
        if self._moe_layers:
            groups["router"] = self._moe_layers * self._router.parameters
        groups["other"] = self._norms + self._biases + self.extra_parameters
        groups["other"] += self.learned_positions * self.d_model
        return groups

    @property
    def _norms(self):
        numbers_per_gain = 2 if self.norm_biases else 1
        layer = self.norms_per_layer * self.d_model * numbers_per_gain
        layer += self.attention.norm_gains + (2 * self.head_dim if self.qk_norm else 0)
        return self.layers * layer + self.d_model * numbers_per_gain

    @property
    def _biases(self):
        biases = 0
        if self.qkv_biases or self.attention_biases:
            biases += self.layers * (self.attention.query_width + self.attention.cached_numbers)
        if self.attention_biases:
            biases += self.layers * self.d_model
        if self.ffn_biases:
            for kind in self.feed_forwards:
                biases += kind.layers * kind.copies * kind.bias_parameters
        return biases

    @property
    def _router(self):
        return Matrix("router", self.d_model, self.experts)

    def weight_bytes(self, weights: str | Mapping[str, str] = "bf16") -> float:
        """Bytes of all parameters, in one precision or in one for each group:
        `{"experts": "mxfp4", "other": "bf16"}`."""
        precisions = weight_precisions(weights)
        return sum(
            count * bytes_per_element(precisions[group])
            for group, count in self.parameters_by_group.items()
        )

    def kv_bytes_per_token(self, precision: str = "bf16") -> float:
        """Bytes that one token adds to the KV cache over all layers: 2 layers kv_heads head_dim s;
        with MLA the latent instead. Layers with a window forget as much once it is full."""
        return self.layers * self.attention.cached_numbers * bytes_per_element(precision)

    def kv_bytes(self, batch: Number, context: Number, precision: str = "bf16") -> Value:
        """Bytes that the KV cache holds for `batch` sequences of `context` tokens each: layers with
        a window hold the last `window` tokens only."""
        batch, context = size("batch", batch, "sequences"), size("context", context, "tokens")
        tokens = sum(
            layers * (context if window is None else np.minimum(context, window))
            for layers, window in self._window_counts
        )
        token = self.attention.cached_numbers * bytes_per_element(precision)
        return batch * tokens * token

    # Work

    @overload
    def prefill(
        self,
        batch: Number,
        tokens: Number,
        *,
        cached: Number = 0,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: None = None,
        link: "Link | str | Mapping | None" = None,
    ) -> dict[str, Work]: ...

    @overload
    def prefill(
        self,
        batch: Number,
        tokens: Number,
        *,
        cached: Number = 0,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: "Parallel",
        link: "Link | str | Mapping | None" = None,
    ) -> "ParallelStep": ...

    def prefill(
        self,
        batch: Number,
        tokens: Number,
        *,
        cached: Number = 0,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: "Parallel | None" = None,
        link: "Link | str | Mapping | None" = None,
    ) -> "dict[str, Work] | ParallelStep":
        """dict[str, Work] of a pass over `tokens` new tokens of each of `batch` prompts, of which
        `cached` tokens each lie in the KV cache already: a shared prefix, or earlier chunks.

        Each new token sees the cached tokens and those before it; logits of the last token only.
        "attention" is softmax(Q K^T) V, which grows with the square of the prompt: 4 heads head_dim
        FLOP for each pair of a query and a key, scores kept on chip. MLA makes keys and values of
        the cached tokens once more ("kv up"), unless the chunk is so short that working on the
        latent takes fewer FLOP. Arguments and what is left out: see `decode`.
        """
        batch, tokens = size("batch", batch, "sequences"), size("tokens", tokens, "tokens")
        cached = number("cached", cached, "tokens", least=0, whole=True)
        step = _pass(batch, tokens, cached + tokens, weights, kv, activations)
        elementwise = switch("elementwise", elementwise)

        def works(model, step):
            return model._works(step, logits=step.batch, elementwise=elementwise)

        return self._shared(step, works, parallel, link)

    @overload
    def decode(
        self,
        batch: Number,
        context: Number,
        *,
        queries: Number = 1,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: None = None,
        link: "Link | str | Mapping | None" = None,
    ) -> dict[str, Work]: ...

    @overload
    def decode(
        self,
        batch: Number,
        context: Number,
        *,
        queries: Number = 1,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: "Parallel",
        link: "Link | str | Mapping | None" = None,
    ) -> "ParallelStep": ...

    def decode(
        self,
        batch: Number,
        context: Number,
        *,
        queries: Number = 1,
        weights: str | Mapping[str, str] = "bf16",
        kv: str = "bf16",
        activations: str = "bf16",
        elementwise: bool = False,
        parallel: "Parallel | None" = None,
        link: "Link | str | Mapping | None" = None,
    ) -> "dict[str, Work] | ParallelStep":
        """dict[str, Work] of one step that gives each of `batch` sequences `queries` new tokens;
        `context` counts all keys, the new tokens' own among them. Several queries are what
        speculative decoding verifies: logits of each.

        `weights` is a precision, or a dict with one for each group: "attention", "ffn", "experts",
        "shared experts", "router", "embedding", "logits", and "other" for all that the dict leaves
        out. `kv` is that of the cache, `activations` that of all between the products.

        Counted are the matrix products and attention over all layers, each operand moved once: a
        bound, which leaves out kernel launches, whatever a kernel reads twice, and softmax's own
        FLOP. Norms, residual sums, rotary turns, activation functions and the embedding's rows are
        left out too, because a fused kernel need not move them; `elementwise=True` adds each as a
        pass of its own over memory, which is the most that they cost. Of a mixture of experts, the
        experts' weights that are read are those a uniform router is expected to hit.

        With `parallel` (a Parallel) the whole batch is shared among several chips, and the answer
        is a ParallelStep: Works of one chip, Transfers beside them, bytes that it holds. `link` is
        the Link or its name, or one for each kind: `{"tensor": "NVLink 4", "data": ...}`.
        """
        batch, context = size("batch", batch, "sequences"), size("context", context, "tokens")
        queries = size("queries", queries, "tokens")
        if np.any(queries > context):
            raise ValueError(
                "context (tokens) must count the new tokens too, so be at least queries,"
                f" {queries}; got {context}"
            )
        step = _pass(batch, queries, context, weights, kv, activations)
        elementwise = switch("elementwise", elementwise)

        def works(model, step):
            return model._works(step, logits=step.rows, elementwise=elementwise)

        return self._shared(step, works, parallel, link)

    def _shared(self, step, works, parallel, link):
        """The works of a step on one chip, or what a Parallel makes of them."""
        if parallel is None:
            return works(self, step)
        from roofline_lib.parallel import spread

        return spread(self, step, parallel, link, works)

    def _works(self, step, logits, elementwise):
        """{name: Work} over all layers; `logits` is the number of rows that get any."""
        attention = self.attention
        works = {name: self.layers * work for name, work in attention.products(step).items()}
        works["attention"] = sum(
            layers * attention.mixing(step, window) for layers, window in self._window_counts
        )
        for kind in self.feed_forwards:
            works |= {name: kind.layers * work for name, work in kind.products(step).items()}
        if self._moe_layers:
            works["router"] = self._moe_layers * step.product("router", self._router)
        head = Matrix("logits", self.d_model, self.vocab)
        works["logits"] = step.product("logits", head, rows=logits)
        if elementwise:
            works |= self._passes_over_memory(step)
        return works

    def _passes_over_memory(self, step):
        """{name: Work} of what is no matrix product, each as a pass of its own over memory."""
        rows, wide, s = step.rows, step.rows * self.d_model, step.activations
        norm = (
            layer_norm(rows, self.d_model, s) if self.norm_biases else norm_pass(step, self.d_model)
        )
        norms = (self.layers * self.norms_per_layer + 1) * norm
        if self.qk_norm:
            heads_of_all_rows = rows * (self.heads + self.kv_heads)
            norms += self.layers * rms_norm(heads_of_all_rows, self.head_dim, s)
        for rank in (self.q_lora_rank, self.kv_lora_rank):
            if rank:
                norms += self.layers * norm_pass(step, rank)
        passes = {
            "norms": norms,
            "residual sums": 2 * self.layers * elementwise(wide, s),
            "activation functions": sum(
                kind.layers * kind.activation(step) for kind in self.feed_forwards
            ),
            "embedding rows": elementwise(wide, s, reads=1, flops_per_element=0),
        }
        turned = self.attention.turned_numbers
        if turned and not self.learned_positions:
            # a number in, one out, and of each pair two products and a sum for either half
            turn = elementwise(rows * turned, s, reads=1, flops_per_element=3)
            passes["rotary turns"] = self.layers * turn
        return passes


def _pass(batch, queries, context, weights, kv, activations):
    for argument, precision in (("kv", kv), ("activations", activations)):
        bytes_of(argument, precision)
    return Pass(batch, queries, context, weight_precisions(weights), kv, activations)


def transformer(name: str) -> Transformer:
    """The preset of that name; case, spaces and hyphens do not matter. UnknownName lists the
    nearest."""
    known = {name_key(preset): preset for preset in _presets()}
    if not isinstance(name, str) or name_key(name) not in known:
        raise unknown("transformer", name, _presets())
    return _presets()[known[name_key(name)]]


def as_transformer(given: object) -> Transformer:
    """A Transformer as it is, or the preset of that name."""
    if isinstance(given, Transformer):
        return given
    if isinstance(given, str):
        return transformer(given)
    raise ValueError(f"model must be a Transformer or the name of one; got {short(given)}")


def transformers() -> list[str]:
    """The names of the presets."""
    return list(_presets())


def decode_tokens_per_second(bytes_per_step: Number, bandwidth: Number, batch: Number = 1) -> Value:
    """Tokens/s at most when each step, one token for each of `batch` sequences, reads
    `bytes_per_step` (byte) at `bandwidth` (byte/s)."""
    step = number("bytes_per_step", bytes_per_step, "byte", above=0) / number(
        "bandwidth", bandwidth, "byte/s", above=0
    )
    return size("batch", batch, "sequences") / step


@cache
def _presets():
    known = {one.name for one in fields(Transformer)}
    return {
        name: Transformer(**{k: v for k, v in table.items() if k in known}, name=name)
        for name, table in read_table("data/transformers.toml").items()
    }
