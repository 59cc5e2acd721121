"""Decoder-only transformers: parameters, KV cache, and the Work of one prefill pass or one decode
step, operator by operator.

The presets are data/transformers.toml. Multi-query and grouped-query attention: arXiv:1911.02150,
arXiv:2305.13245; multi-head latent attention (MLA): arXiv:2405.04434.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from roofline_lib.arguments import name_key, number, short, size, switch, unknown
from roofline_lib.model import Work
from roofline_lib.operators import attention, gemm
from roofline_lib.precisions import bytes_of, bytes_per_element


@dataclass(frozen=True)
class Transformer:
    """A decoder-only transformer by its sizes (elements). The first seven are needed; the rest
    default to a dense Llama-like model.

    `experts`, `experts_per_token`, `shared_experts`: mixture of experts, `d_ff` wide each; the
    first `dense_layers` layers keep one plain FFN, `dense_d_ff` wide. `kv_lora_rank` above 0 means
    MLA: one latent of that rank, and `rope_head_dim` shared position numbers, are all that the
    cache holds; `head_dim` is then the part of a head without position. Prefill makes keys and
    values from the latent; decode moves that product onto queries and outputs and works on the
    latent itself. Errors: ValueError that names the field.
    """

    layers: int
    d_model: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int
    vocab: int
    gated: bool = True
    tied: bool = False
    experts: int = 1
    experts_per_token: int = 1
    shared_experts: int = 0
    shared_d_ff: int | None = None
    dense_layers: int = 0
    dense_d_ff: int | None = None
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    v_head_dim: int | None = None
    norms_per_layer: int = 2
    norm_biases: bool = False
    qk_norm: bool = False
    attention_biases: bool = False
    qkv_biases: bool = False
    ffn_biases: bool = False
    learned_positions: int = 0
    extra_parameters: int = 0
    name: str = ""

    def __post_init__(self):
        for field in (
            "layers",
            "d_model",
            "heads",
            "kv_heads",
            "head_dim",
            "d_ff",
            "vocab",
            "experts",
            "experts_per_token",
        ):
            object.__setattr__(self, field, _one(field, getattr(self, field), 1))
        for field in (
            "shared_experts",
            "dense_layers",
            "q_lora_rank",
            "kv_lora_rank",
            "rope_head_dim",
            "norms_per_layer",
            "learned_positions",
            "extra_parameters",
        ):
            object.__setattr__(self, field, _one(field, getattr(self, field), 0))
        for field in (
            "gated",
            "tied",
            "norm_biases",
            "qk_norm",
            "attention_biases",
            "qkv_biases",
            "ffn_biases",
        ):
            switch(field, getattr(self, field))
        for field in ("shared_d_ff", "dense_d_ff", "v_head_dim"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, _one(field, getattr(self, field), 1))
        for field, without in (
            ("q_lora_rank", 0),
            ("rope_head_dim", 0),
            ("v_head_dim", self.head_dim),
        ):
            if not self.kv_lora_rank and getattr(self, field) not in (without, None):
                raise ValueError(
                    f"{field} goes with a kv_lora_rank above 0 (count); got {getattr(self, field)} without one"
                )
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads must divide heads ({self.heads}); got {self.kv_heads}")
        if self.experts_per_token > self.experts:
            raise ValueError(
                f"experts_per_token must be at most experts ({self.experts}); got {self.experts_per_token}"
            )
        if self.dense_layers > self.layers:
            raise ValueError(
                f"dense_layers must be at most layers ({self.layers}); got {self.dense_layers}"
            )

    @property
    def parameters(self):
        """Every parameter: matrices, embeddings, norm gains, biases."""
        width = self._attention_width
        attention_biases = width + self._kv_width if self.qkv_biases or self.attention_biases else 0
        attention_biases += self.d_model if self.attention_biases else 0
        norms = self.norms_per_layer * self.d_model * (2 if self.norm_biases else 1) + (
            2 * self.head_dim if self.qk_norm else 0
        )
        norms += self.q_lora_rank + self.kv_lora_rank
        layer = (
            sum(rows * cols for rows, cols in self._attention_matrices.values())
            + attention_biases
            + norms
        )
        moe_layers = self.layers - self.dense_layers if self.experts > 1 else 0
        experts = self.experts * self._ffn(self.d_ff) + self.shared_experts * self._ffn(
            self.shared_d_ff or self.d_ff
        )
        experts += self.d_model * self.experts  # the router
        plain = self._ffn(self.dense_d_ff or self.d_ff)
        embeddings = (
            self.vocab * self.d_model * (1 if self.tied else 2)
            + self.learned_positions * self.d_model
        )
        last_norm = self.d_model * (2 if self.norm_biases else 1)
        return (
            self.layers * layer
            + moe_layers * experts
            + (self.layers - moe_layers) * plain
            + embeddings
            + last_norm
            + self.extra_parameters
        )

    def weight_bytes(self, precision="bf16"):
        """Bytes of all parameters in one precision."""
        return self.parameters * bytes_per_element(precision)

    def kv_bytes_per_token(self, precision="bf16"):
        """Bytes that one token adds to the KV cache over all layers: 2 layers kv_heads head_dim s;
        with MLA the latent instead."""
        return self.layers * self._cached_numbers * bytes_per_element(precision)

    def prefill(self, batch, tokens, weights="bf16", kv="bf16", activations="bf16"):
        """dict[str, Work] of a pass over `batch` prompts of `tokens` tokens: causal, scores kept on
        chip, logits of the last only."""
        batch, tokens = size("batch", batch, "sequences"), size("tokens", tokens, "tokens")
        return self._step(batch, tokens, tokens, weights, kv, activations, decode=False)

    def decode(self, batch, context, weights="bf16", kv="bf16", activations="bf16"):
        """dict[str, Work] of one new token for each of `batch` sequences; `context` counts all
        keys, the new token's own among them.

        Both dicts hold the matrix products and attention over all layers; norms, softmax, position
        turns and embedding look-ups are left out. Of a mixture of experts, the experts' weights
        that are read are those a uniform router is expected to touch.
        """
        batch, context = size("batch", batch, "sequences"), size("context", context, "tokens")
        return self._step(batch, 1.0, context, weights, kv, activations, decode=True)

    def _step(self, batch, queries, context, weights, kv, activations, decode):
        for argument, precision in (("weights", weights), ("kv", kv), ("activations", activations)):
            bytes_of(argument, precision)
        rows = batch * queries
        s = {"a": activations, "b": weights, "c": activations}
        works = {
            name: self.layers
            * gemm(rows, cols, inner, activations, **s | ({"c": kv} if name == "kv" else {}))
            for name, (inner, cols) in self._attention_matrices.items()
        }
        if self.kv_lora_rank:
            works["attention"] = self.layers * self._latent_attention(
                batch, queries, context, kv, activations, decode
            )
            # the same weights, on each head's query and output instead of on the keys and values
            if decode:
                works["kv up"] = (
                    self.layers
                    * self.heads
                    * (
                        gemm(rows, self.kv_lora_rank, self.head_dim, activations, **s)
                        + gemm(rows, self._v_width, self.kv_lora_rank, activations, **s)
                    )
                )
        else:
            works["attention"] = self.layers * attention(
                batch,
                self.heads,
                self.kv_heads,
                queries,
                context,
                self.head_dim,
                activations,
                flash=True,
                causal=True,
                kv=kv,
            )
        for name, layers, width, copies, active in self._ffns:
            if layers:
                up = self._experts_gemm(
                    rows, width * (2 if self.gated else 1), self.d_model, copies, active, s
                )
                works[f"{name} up"] = layers * up
                works[f"{name} down"] = layers * self._experts_gemm(
                    rows, self.d_model, width, copies, active, s
                )
        if self.experts > 1:
            works["router"] = (self.layers - self.dense_layers) * gemm(
                rows, self.experts, self.d_model, activations, **s
            )
        works["logits"] = gemm(batch, self.vocab, self.d_model, activations, **s)
        return works

    def _experts_gemm(self, rows, cols, inner, copies, active, s):
        """[rows, inner] @ [inner, cols] by `active` of `copies` experts a row: read are the weights
        of the experts expected to be hit."""
        hit = copies * (1 - (1 - active / copies) ** rows) if copies > active else copies
        once = gemm(rows, cols, inner, s["a"], **s)
        weights = inner * cols * bytes_per_element(s["b"])
        return Work(active * once.flops, active * (once.bytes_moved - weights) + hit * weights)

    def _latent_attention(self, batch, queries, context, kv, activations, decode):
        """MLA's two products. In decode each head works on the cached latent, which is read once
        for keys and values together."""
        s = bytes_per_element(activations)
        if decode:
            keys, values = self.kv_lora_rank + self.rope_head_dim, self.kv_lora_rank
            cache = context * keys * bytes_per_element(kv)
        else:
            keys, values = self.head_dim + self.rope_head_dim, self._v_width
            cache = (
                context * (self.heads * (self.head_dim + self._v_width) + self.rope_head_dim) * s
            )
        scores = batch * self.heads * queries * context * (1 - (queries - 1) / (2 * context))
        return Work(
            2 * scores * (keys + values),
            batch * (cache + queries * self.heads * (keys + values) * s),
        )

    @property
    def _ffns(self):
        """(name, layers, width, copies, active) of each kind of FFN."""
        plain = self.dense_d_ff or self.d_ff
        if self.experts == 1:
            return (("ffn", self.layers, plain, 1, 1),)
        moe = self.layers - self.dense_layers
        shared = self.shared_experts
        return (
            ("ffn", self.dense_layers, plain, 1, 1),
            ("experts", moe, self.d_ff, self.experts, self.experts_per_token),
            ("shared experts", moe if shared else 0, self.shared_d_ff or self.d_ff, shared, shared),
        )

    @property
    def _attention_matrices(self):
        """name: (inputs, outputs) of a layer's attention matrices; keys and values together."""
        d = self.d_model
        if not self.kv_lora_rank:
            return {
                "queries": (d, self._attention_width),
                "kv": (d, self._kv_width),
                "output": (self._attention_width, d),
            }
        query = {
            "query down": (d, self.q_lora_rank),
            "queries": (self.q_lora_rank, self._attention_width),
        }
        return (query if self.q_lora_rank else {"queries": (d, self._attention_width)}) | {
            "kv": (d, self.kv_lora_rank + self.rope_head_dim),
            "kv up": (self.kv_lora_rank, self.heads * (self.head_dim + self._v_width)),
            "output": (self.heads * self._v_width, d),
        }

    @property
    def _attention_width(self):
        return self.heads * (self.head_dim + (self.rope_head_dim if self.kv_lora_rank else 0))

    @property
    def _v_width(self):
        return self.v_head_dim or self.head_dim

    @property
    def _kv_width(self):
        return self.kv_heads * (self.head_dim + self._v_width)

    @property
    def _cached_numbers(self):
        return self.kv_lora_rank + self.rope_head_dim if self.kv_lora_rank else self._kv_width

    def _ffn(self, width):
        matrices = 3 if self.gated else 2
        biases = (matrices - 1) * width + self.d_model if self.ffn_biases else 0
        return matrices * self.d_model * width + biases


def transformer(name):
    """The preset of that name; case, spaces and hyphens do not matter. UnknownName lists the
    nearest."""
    known = {name_key(preset): preset for preset in _presets()}
    if not isinstance(name, str) or name_key(name) not in known:
        raise unknown("transformer", name, _presets())
    return _presets()[known[name_key(name)]]


def as_transformer(given):
    """A Transformer as it is, or the preset of that name."""
    if isinstance(given, Transformer):
        return given
    if isinstance(given, str):
        return transformer(given)
    raise ValueError(f"model must be a Transformer or the name of one; got {short(given)}")


def transformers():
    """The names of the presets."""
    return list(_presets())


def decode_tokens_per_second(bytes_per_step, bandwidth, batch=1):
    """Tokens/s at most when each step, one token for each of `batch` sequences, reads
    `bytes_per_step` (byte) at `bandwidth` (byte/s)."""
    step = number("bytes_per_step", bytes_per_step, "byte", above=0) / number(
        "bandwidth", bandwidth, "byte/s", above=0
    )
    return size("batch", batch, "sequences") / step


@cache
def _presets():
    text = (
        resources.files("roofline_lib")
        .joinpath("data/transformers.toml")
        .read_text(encoding="utf-8")
    )
    fields = Transformer.__dataclass_fields__
    return {
        name: Transformer(**{k: v for k, v in table.items() if k in fields}, name=name)
        for name, table in tomllib.loads(text).items()
    }


def _one(field, value, least):
    return int(number(field, value, "count", least=least, whole=True, single=True))
