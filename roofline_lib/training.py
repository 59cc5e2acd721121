"""One training step of a transformer: its FLOP and bytes, and what has to lie in memory meanwhile.

6 N D: Kaplan and others, 2020, arXiv:2001.08361. Activations: Korthikanti and others, 2022,
arXiv:2205.05198, whose 34 bytes hold two dropout masks that are not counted here. 2 + 2 + 12 byte a
parameter, bf16 with Adam: Rajbhandari and others, 2019, arXiv:1910.02054.
"""

from dataclasses import dataclass, fields

from roofline_lib.arguments import number, size, unknown
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.transformer import as_transformer

KEEP = ("everything", "no scores", "layer inputs")
_WIDTH = 2  # bytes of an activation, a weight and a gradient: bf16


def training_flops(parameters, tokens):
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
    activations: float

    @property
    def total(self):
        """All four together (byte)."""
        return sum(getattr(self, part.name) for part in fields(self))


def training_memory(model, micro_batch, tokens, keep="no scores"):
    """The TrainingMemory of a micro-batch of sequences, `tokens` tokens each. `model` is a
    Transformer or the name of one.

    `keep` says what the forward pass leaves for the backward pass: "everything", "no scores"
    (attention's T x T matrices are recomputed, as FlashAttention does), "layer inputs" (all else is
    recomputed, one more forward pass). UnknownName for any other.
    """
    model, keep, tokens = as_transformer(model), _keep(keep), size("tokens", tokens, "tokens")
    rows = size("micro_batch", micro_batch, "sequences") * tokens
    if keep == "layer inputs":
        layers = model.layers * model.d_model
    else:
        queries, values = model.heads * model.head_dim, model.kv_heads * model.head_dim
        ffn = model.experts_per_token * (3 if model.gated else 2) * model.d_ff
        # before and after the softmax
        scores = 2 * model.heads * tokens if keep == "everything" else 0
        layers = model.layers * (
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
        _WIDTH * rows * (layers + model.vocab),
    )


def training_step(model, micro_batch, tokens, accumulation=1, keep="no scores"):
    """dict[str, Work] of one step: `accumulation` micro-batches forward and backward in bf16, then
    Adam over all parameters. `model` is a Transformer or the name of one.

    Each product of the forward pass has two of the same size in the backward pass. Every
    micro-batch after the first also reads the gradients that it adds to. Adam takes 14 FLOP a
    parameter and moves 28 byte: gradient, fp32 weight and moments in, both weights and moments out.
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
    products = model.prefill(micro_batch, tokens) | {
        "logits": gemm(micro_batch * tokens, model.vocab, model.d_model, "bf16")
    }
    forward = sum(products.values())
    step = {"forward": times * forward, "backward": 2 * times * forward}
    if keep == "layer inputs":
        step["recompute"] = times * forward
    return step | {
        "gradient sums": Work(0, (times - 1) * _WIDTH * model.parameters),
        "optimizer": Work(14 * model.parameters, 28 * model.parameters),
    }


def _keep(keep):
    if not isinstance(keep, str) or keep not in KEEP:
        raise unknown("keep", keep, KEEP)
    return keep
