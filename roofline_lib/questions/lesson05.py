"""Lesson 05: the order of a matrix chain."""

import numpy as np

import roofline_lib as rl
from roofline_lib.checks import Question

_DIMS = (2048, 32, 2048, 16)  # A[2048, 32] B[32, 2048] X[2048, 16]
_LEFT, _RIGHT = ((0, 1), 2), (0, (1, 2))
_FOUR = (8, 8, 16, 4096, 32)


def _crossover(cheaper):
    """The smallest even n at which one level of Strassen's scheme is cheaper than the plain
    product."""
    return next(n for n in range(2, 1000, 2) if cheaper(rl.strassen(n)) < cheaper(rl.gemm(n, n, n)))


def _same_across_relu():
    """Whether relu may change places with a product, tried on one of each: W2 relu(W1 x) against
    relu(W2 W1 x)."""
    w1, w2, x = np.array([[1.0], [-1.0]]), np.array([[1.0, 1.0]]), np.array([[-1.0]])
    return np.allclose(w2 @ np.maximum(w1 @ x, 0), np.maximum(w2 @ w1 @ x, 0))


QUESTIONS = [
    Question(
        "05.right-flops",
        "A is [2048, 32], B is [32, 2048], X is [2048, 16]. How many FLOP does A(BX) take?",
        unit="MFLOP",
        reference=lambda: rl.chain_cost(_DIMS, _RIGHT).flops,
        tolerance=0.005,
        slips={"mac-is-flop": lambda: rl.chain_cost(_DIMS, _RIGHT).flops / 2},
        hint="BX is a [32, 2048] by [2048, 16] product; A(BX) is [2048, 32] by [32, 16].",
    ),
    Question(
        "05.intermediate",
        "In bf16, how large is the intermediate of (AB)X for the same three matrices?",
        unit="MB",
        reference=lambda: rl.chain_cost(_DIMS, _LEFT, "bf16").largest_intermediate,
        tolerance=0.005,
        slips={
            "elements-not-bytes": lambda: (
                rl.chain_cost(_DIMS, _LEFT, "bf16").largest_intermediate
                / rl.bytes_per_element("bf16")
            ),
            "wrong-width": lambda: rl.chain_cost(_DIMS, _LEFT, "fp32").largest_intermediate,
        },
        hint="AB is [2048, 2048]; count its elements, then its bytes.",
    ),
    Question(
        "05.across",
        "y = W2 relu(W1 x). May you compute W2 W1 once and save a product for every x?",
        choices=("yes", "no"),
        reference=lambda: "yes" if _same_across_relu() else "no",
        hint="relu(W1 x) is not linear in x: the brackets can move only between plain products.",
    ),
    Question(
        "05.best",
        "A[8, 8] B[8, 16] C[16, 4096] D[4096, 32] in fp32: which order moves the fewest bytes?",
        choices=tuple(rl.chains.order_text(order) for order in rl.chain_orders(4)),
        reference=lambda: rl.best_chain_order(_FOUR, "bytes_moved").text,
        hint="the order with the fewest FLOP builds an 8 x 4096 matrix first, and must write it and read it back.",
    ),
    Question(
        "05.strassen",
        "At which even n does one level of Strassen's scheme first need fewer FLOP than 2 n^3? Count its 18 additions.",
        reference=lambda: _crossover(lambda work: work.flops),
        tolerance=0,
        hint="2 n^3 against 7 x 2 (n/2)^3 + 18 (n/2)^2: divide by n^2 / 4.",
    ),
]
