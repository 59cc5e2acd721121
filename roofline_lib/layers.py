"""The parts of a transformer layer as small records: which matrices a kind of attention or of
feed-forward network has, and the Work of one pass through it.

A `Pass` says what is computed: how many sequences, how many new tokens of each, how many keys they
may see, and in which precisions. Each kind turns that into Work for one layer; the Transformer
multiplies by its layers. Multi-query and grouped-query attention: arXiv:1911.02150,
arXiv:2305.13245; multi-head latent attention (MLA): arXiv:2405.04434.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roofline_lib.arguments import plain, short, unknown
from roofline_lib.model import Work
from roofline_lib.operators import attention, elementwise, gemm, rms_norm
from roofline_lib.precisions import bytes_of, bytes_per_element

# Groups of parameters that may have a precision each. Norms, biases, positions and whatever a
# caller does not name are "other".
GROUPS = (
    "attention",
    "ffn",
    "experts",
    "shared experts",
    "router",
    "embedding",
    "logits",
    "other",
)


def weight_precisions(weights):
    """{group: precision} for every one of GROUPS, from one precision for all or a dict with one for
    each group.

    A group that the dict leaves out takes the precision of "other". UnknownName for a group or a
    precision that is not known, ValueError where a group is left without one.
    """
    if not isinstance(weights, Mapping):
        bytes_of("weights", weights)
        return dict.fromkeys(GROUPS, weights)
    for group, precision in weights.items():
        if group not in GROUPS:
            raise unknown("group of weights", group, GROUPS)
        bytes_of(f"weights[{group!r}]", precision)
    missing = [group for group in GROUPS if group not in weights]
    if missing and "other" in missing:
        raise ValueError(
            f"weights must have a precision for every group; got {short(weights)}, which has none"
            f" for {', '.join(missing)}: name one for 'other', which stands for all left out"
        )
    return {group: weights.get(group, weights.get("other")) for group in GROUPS}


@dataclass(frozen=True)
class Matrix:
    """A weight matrix of a layer, [inputs, outputs], by the name of its product."""

    name: str
    inputs: int
    outputs: int

    @property
    def parameters(self) -> int:
        return self.inputs * self.outputs


@dataclass(frozen=True)
class Pass:
    """What one pass computes: `queries` new tokens of each of `batch` sequences; the last of them
    sees `context` keys (its own among them), each token before it one key less.
    """

    batch: float
    queries: float
    context: float
    weights: dict[str, str]
    kv: str
    activations: str

    @property
    def rows(self):
        """Rows of the activations: all new tokens of all sequences."""
        return self.batch * self.queries

    def product(self, group, matrix, out=None, rows=None):
        """Work of [rows, inputs] @ [inputs, outputs]; `out` is the precision of the result where it
        is not that of the activations."""
        return gemm(
            self.rows if rows is None else rows,
            matrix.outputs,
            matrix.inputs,
            self.activations,
            b=self.weights[group],
            c=out,
        )


@dataclass(frozen=True)
class GroupedAttention:
    """Attention whose heads share keys and values in groups: kv_heads = heads is multi-head, 1 is
    multi-query."""

    d_model: int
    heads: int
    kv_heads: int
    head_dim: int

    @property
    def matrices(self):
        """Keys and values are one matrix: they are made together."""
        return (
            Matrix("queries", self.d_model, self.query_width),
            Matrix("kv", self.d_model, self.cached_numbers),
            Matrix("output", self.query_width, self.d_model),
        )

    @property
    def query_width(self):
        return self.heads * self.head_dim

    @property
    def cached_numbers(self):
        """Numbers that one token leaves in the cache of one layer: a key and a value a kv head."""
        return 2 * self.kv_heads * self.head_dim

    @property
    def norm_gains(self):
        """Gains of norms inside the attention block."""
        return 0

    @property
    def turned_numbers(self):
        """Numbers of one token that rotary position embeddings turn: queries and keys."""
        return (self.heads + self.kv_heads) * self.head_dim

    def products(self, step):
        """{name: Work} of one layer's products with weights; new keys and values are written in the
        cache's precision."""
        return {
            matrix.name: step.product(
                "attention", matrix, out=step.kv if matrix.name == "kv" else None
            )
            for matrix in self.matrices
        }

    def mixing(self, step, window=None):
        """Work of the two products of queries with keys and probabilities with values, in one layer
        that looks back `window` tokens (None: all)."""
        return attention(
            step.batch,
            self.heads,
            self.kv_heads,
            step.queries,
            step.context,
            self.head_dim,
            step.activations,
            flash=True,
            causal=True,
            window=window,
            kv=step.kv,
        )


@dataclass(frozen=True)
class LatentAttention:
    """MLA: keys and values are made from one latent of `kv_rank` numbers, beside `rope_dim` numbers
    of position that all heads share; the cache holds only these.

    `head_dim` is the part of a head without position, `v_dim` a head's value. With `q_rank` above 0
    queries pass through a latent of their own. There are two ways to attend, and the one with fewer
    FLOP is counted: to make keys and values of every token, or to work on the latent itself.
    """

    d_model: int
    heads: int
    head_dim: int
    rope_dim: int
    v_dim: int
    q_rank: int
    kv_rank: int

    @property
    def matrices(self):
        if self.q_rank:
            queries = (
                Matrix("query down", self.d_model, self.q_rank),
                Matrix("queries", self.q_rank, self.query_width),
            )
        else:
            queries = (Matrix("queries", self.d_model, self.query_width),)
        return (
            *queries,
            Matrix("kv", self.d_model, self.cached_numbers),
            Matrix("kv up", self.kv_rank, self.heads * (self.head_dim + self.v_dim)),
            Matrix("output", self.heads * self.v_dim, self.d_model),
        )

    @property
    def query_width(self):
        return self.heads * (self.head_dim + self.rope_dim)

    @property
    def cached_numbers(self):
        return self.kv_rank + self.rope_dim

    @property
    def norm_gains(self):
        """Each latent has a norm."""
        return self.q_rank + self.kv_rank

    @property
    def turned_numbers(self):
        return (self.heads + 1) * self.rope_dim

    def products(self, step):
        """{name: Work} of one layer's products with weights; "kv up" as the cheaper way has it."""
        works = {}
        for matrix in self.matrices:
            if matrix.name == "kv up":
                works["kv up"], _ = self._cheaper_way(step)
            else:
                out = step.kv if matrix.name == "kv" else None
                works[matrix.name] = step.product("attention", matrix, out=out)
        return works

    def mixing(self, step, window=None):
        """Work of the products of queries with keys and probabilities with values, in the cheaper
        way."""
        if window is not None:
            raise ValueError(f"window is for grouped attention; MLA has none here; got {window}")
        return self._cheaper_way(step)[1]

    def _cheaper_way(self, step):
        """("kv up", mixing) of the way with fewer FLOP."""
        made, absorbed = self._keys_made(step), self._on_the_latent(step)
        fewer = np.less_equal(sum(absorbed).flops, sum(made).flops)
        return tuple(
            Work(
                plain(np.where(fewer, one.flops, other.flops)),
                plain(np.where(fewer, one.bytes_moved, other.bytes_moved)),
            )
            for one, other in zip(absorbed, made, strict=True)
        )

    def _keys_made(self, step):
        """Keys and values of all tokens are made from the cached latents: long prompts."""
        width = self.heads * (self.head_dim + self.v_dim)
        up = gemm(
            step.batch * step.context,
            width,
            self.kv_rank,
            step.activations,
            a=step.kv,
            b=step.weights["attention"],
        )
        made, cached = bytes_per_element(step.activations), bytes_per_element(step.kv)
        read = step.context * (width * made + self.rope_dim * cached)
        return up, self._mixed(step, self.head_dim + self.rope_dim, self.v_dim, read)

    def _on_the_latent(self, step):
        """The same matrix is moved onto each head's query and output; heads work on the latent,
        which is read once for keys and values together: decode."""
        onto_query = Matrix("kv up", self.head_dim, self.kv_rank)
        onto_output = Matrix("kv up", self.kv_rank, self.v_dim)
        both = step.product("attention", onto_query) + step.product("attention", onto_output)
        read = step.context * self.cached_numbers * bytes_per_element(step.kv)
        return self.heads * both, self._mixed(step, self.cached_numbers, self.kv_rank, read)

    def _mixed(self, step, keys, values, read):
        """Work of the two products: `keys` and `values` numbers a head, `read` bytes of them."""
        # each token sees one key less than the token after it
        pairs = step.queries * (step.context - (step.queries - 1) / 2)
        own = step.queries * self.heads * (keys + values) * bytes_per_element(step.activations)
        return Work(
            2 * step.batch * self.heads * pairs * (keys + values), step.batch * (read + own)
        )


@dataclass(frozen=True)
class FeedForward:
    """One kind of feed-forward network, found in `layers` layers: `copies` of `width`, of which
    each token uses `active`. A plain one has one copy; a mixture of experts many."""

    name: str
    layers: int
    d_model: int
    width: int
    gated: bool
    copies: int = 1
    active: int = 1

    @property
    def up(self):
        """Up and gate are one product."""
        return Matrix(f"{self.name} up", self.d_model, self.width * (2 if self.gated else 1))

    @property
    def down(self):
        return Matrix(f"{self.name} down", self.width, self.d_model)

    @property
    def matrix_parameters(self):
        """Parameters of one copy's matrices."""
        return self.up.parameters + self.down.parameters

    @property
    def bias_parameters(self):
        """Parameters of one copy's biases, where it has any."""
        return self.up.outputs + self.down.outputs

    def products(self, step):
        """{name: Work} of one layer: read are the weights of the copies that a uniform router is
        expected to hit."""
        return {matrix.name: self._product(step, matrix) for matrix in (self.up, self.down)}

    def _product(self, step, matrix):
        if self.copies > self.active:
            hit = self.copies * (1 - (1 - self.active / self.copies) ** step.rows)
        else:
            hit = self.copies
        once = step.product(self.name, matrix)
        weights = matrix.parameters * bytes_per_element(step.weights[self.name])
        moved = self.active * (once.bytes_moved - weights) + hit * weights
        return Work(self.active * once.flops, moved)

    def activation(self, step):
        """Work of the function between up and down, over one layer's rows of every active copy."""
        numbers = step.rows * self.active * self.width
        return elementwise(
            numbers, step.activations, reads=2 if self.gated else 1, flops_per_element=5
        )


def norm_pass(step, numbers):
    """Work of one norm over `numbers` (elements) of each row."""
    return rms_norm(step.rows, numbers, step.activations)
