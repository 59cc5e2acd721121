"""Questions on the order of a matrix chain."""

import math

import numpy as np

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.questions.shared import PRECISION_OF_WIDTH, smallest_whole, written

_DIMS = (2048, 32, 2048, 16)  # A[2048, 32] B[32, 2048] X[2048, 16]
_LEFT, _RIGHT = ((0, 1), 2), (0, (1, 2))
_FOUR = (32, 8, 1024, 16, 4096)


def _crossover(once):
    """The smallest even n at which one level of Strassen's scheme, `once(n)` FLOP, takes fewer than
    the plain product."""
    return next(n for n in range(2, 1000, 2) if once(n) < rl.gemm(n, n, n).flops)


def _same_across_mask():
    """Whether the mask may wait, tried on three tokens: mask(Q K^T) V against Q (K^T V)."""
    q, k, v = (np.random.default_rng(6).standard_normal((3, 2)) for _ in range(3))
    return np.allclose(np.tril(q @ k.T) @ v, q @ (k.T @ v))


def _moved(n, thin, precision="bf16"):
    return rl.chain_cost((n, thin, n, n), _RIGHT, precision).bytes_moved


def _merged():
    """Whether W2 (W1 x + b1) + b2 is (W2 W1) x + (W2 b1 + b2), tried out."""
    w1, w2, x, b1, b2 = (
        np.random.default_rng(5).standard_normal(shape)
        for shape in ((8, 4), (3, 8), (4, 1), (8, 1), (3, 1))
    )
    return "yes" if np.allclose(w2 @ (w1 @ x + b1) + b2, (w2 @ w1) @ x + (w2 @ b1 + b2)) else "no"


def _two_orders(p, q, r, t):
    return [rl.chain_cost((p, q, r, t), order).flops for order in (_LEFT, _RIGHT)]


def _merge_from(p, q, r, passes=2):
    """Through the library's chain cost, with all the x as columns of one matrix. `passes` is how
    many of A(Bx)'s two products are counted."""

    def pays(columns):
        left, right = _two_orders(p, q, r, columns)
        return left < passes / 2 * right

    return float(smallest_whole(pays)) if pays(2**40) else math.inf


def _break_even(p, q, r, whole):
    """The columns after which both ways cost the same, made a whole number by `whole`."""
    saved = q * (p + r) - p * r
    return whole(p * q * r / saved) if saved > 0 else math.inf


def _prices(dims, order, element_bytes):
    cost = rl.chain_cost(dims, order, PRECISION_OF_WIDTH[element_bytes])
    return [cost.flops, cost.bytes_moved, cost.largest_intermediate]


def _fewest_bytes(dims, element_bytes, minimise="bytes_moved"):
    return rl.best_chain_order(dims, minimise, PRECISION_OF_WIDTH[element_bytes]).bytes_moved


def _bytes_of_fewest_flops(dims, element_bytes):
    return _fewest_bytes(dims, element_bytes, "flops")


def _strassen_from(element_bytes, peak, bandwidth, price=lambda limit: limit.time):
    """Through the library's Strassen count, one level, at even n."""

    def wins(half):
        once, plain = (
            rl.strassen(2 * half, 1, PRECISION_OF_WIDTH[element_bytes]),
            rl.gemm(2 * half, 2 * half, 2 * half, PRECISION_OF_WIDTH[element_bytes]),
        )
        return price(rl.Bound(once, peak, bandwidth)) < price(rl.Bound(plain, peak, bandwidth))

    return 2 * smallest_whole(wins)


def _lora_asked(width=8192, rank=8, columns=32):
    dims = (width, rank, width, columns)
    return NumberQuestion(
        "chains.x-lora",
        f"B is [{width}, {rank}], A is [{rank}, {width}], X is [{width}, {columns}]. How many "
        "FLOP does the cheaper order of BAX take?",
        unit="MFLOP",
        reference=lambda: rl.best_chain_order(dims).flops,
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: rl.best_chain_order(dims).flops / 2),
            ("other-order", lambda: rl.chain_cost(dims, _LEFT).flops),
        ],
        hint=f"keep to the thin middle of {rank}: A X first.",
    )


def _moved_asked(n=1024, thin=16):
    return NumberQuestion(
        "chains.x-moved",
        f"A[{n}, {thin}] B[{thin}, {n}] C[{n}, {n}] in bf16, multiplied as A(BC). How many bytes "
        "do its two products move?",
        unit="MB",
        reference=lambda: _moved(n, thin),
        tolerance=0.005,
        slips=[
            ("wrong-width", lambda: _moved(n, thin, "fp32")),
            ("elements-not-bytes", lambda: _moved(n, thin, "int8")),
        ],
        hint=(
            "five matrices, one of them, BC, twice: written by the first product and read by the "
            "second."
        ),
    )


def _again_asked(rows=10000, columns=50):
    return NumberQuestion(
        "chains.x-again",
        f"A is [{rows}, {columns}]. You need Aᵀ(Ax) for many x, one after the other. From how "
        "many x on does it take fewer FLOP to compute AᵀA first, once, by a plain product?",
        reference=lambda: _merge_from(columns, rows, columns),
        tolerance=0,
        slips=[
            ("one-pass", lambda: float(_merge_from(columns, rows, columns, passes=1))),
        ],
        hint=(
            f"AᵀA costs 2 x {columns} x {written(rows)} x {columns} once and 2 x {columns} x "
            f"{columns} each time; without it, each x costs two passes over A."
        ),
        counts="x",
        rounded="up",
    )


def _strassen_asked(n=8192):
    return NumberQuestion(
        "chains.x-strassen",
        f"Two levels of Strassen's scheme on n = {n} in bf16, its additions counted as in the "
        "lesson. At what intensity does that stand?",
        unit="FLOP/byte",
        reference=lambda: rl.strassen(n, 2, "bf16").intensity,
        slips=[
            ("wrong-width", lambda: rl.strassen(n, 2, "fp32").intensity),
            ("one-level", lambda: rl.strassen(n, 1, "bf16").intensity),
        ],
        hint=(
            f"the 7 products of the first level are each one level on {n // 2}; rl.strassen "
            "counts, and so can you."
        ),
    )


# with other numbers for each student
VARIED = (
    Varied(
        _lora_asked,
        lambda rng: {
            "width": 1024 * rng.randint(2, 16),
            "rank": rng.choice([4, 8, 16, 32]),
            "columns": 8 * rng.randint(2, 16),
        },
    ),
    Varied(
        _moved_asked,
        lambda rng: {"n": 128 * rng.randint(5, 32), "thin": rng.choice([8, 16, 24, 32])},
    ),
    Varied(
        _again_asked,
        lambda rng: {"rows": 1000 * rng.randint(5, 40), "columns": 2 * rng.randint(15, 100)},
    ),
    Varied(_strassen_asked, lambda rng: {"n": 256 * rng.randint(8, 64)}),
)

QUESTIONS = [
    NumberQuestion(
        "chains.right-flops",
        "A is [2048, 32], B is [32, 2048], X is [2048, 16]. How many FLOP does A(BX) take?",
        unit="MFLOP",
        reference=lambda: rl.chain_cost(_DIMS, _RIGHT).flops,
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: rl.chain_cost(_DIMS, _RIGHT).flops / 2),
            ("other-order", lambda: rl.chain_cost(_DIMS, _LEFT).flops),
        ],
        hint="BX is a [32, 2048] by [2048, 16] product; A(BX) is [2048, 32] by [32, 16].",
    ),
    NumberQuestion(
        "chains.intermediate",
        "In bf16, how large is the intermediate of (AB)X for the same three matrices?",
        unit="MB",
        reference=lambda: rl.chain_cost(_DIMS, _LEFT, "bf16").largest_intermediate,
        tolerance=0.005,
        slips=[
            (
                "elements-not-bytes",
                lambda: (
                    rl.chain_cost(_DIMS, _LEFT, "bf16").largest_intermediate
                    / rl.bytes_per_element("bf16")
                ),
            ),
            ("wrong-width", lambda: rl.chain_cost(_DIMS, _LEFT, "fp32").largest_intermediate),
        ],
        hint="AB is [2048, 2048]; count its elements, then its bytes.",
    ),
    ChoiceQuestion(
        "chains.across",
        "Q, K and V are [4096, 128]. QKᵀ is made, every number above its diagonal is set to 0, "
        "and the rest is multiplied by V. May you make KᵀV first, a mere 128 x 128, and multiply Q "
        "by that?",
        choices=("yes", "no"),
        reference=lambda: "yes" if _same_across_mask() else "no",
        slips=[("not-a-product", lambda: "yes")],
        hint=(
            "Setting to 0 above the diagonal multiplies number by number. That is no product of "
            "matrices, and stands between two that are."
        ),
    ),
    ChoiceQuestion(
        "chains.best",
        "A[32, 8] B[8, 1024] C[1024, 16] D[16, 4096] in fp32: which order moves the fewest bytes?",
        choices=tuple(rl.chains.order_text(order) for order in rl.chain_orders(4)),
        reference=lambda: rl.best_chain_order(_FOUR, "bytes_moved").text,
        slips=[
            ("fewest-flops", lambda: rl.best_chain_order(_FOUR).text),
            ("left-to-right", lambda: rl.chains.order_text((((0, 1), 2), 3))),
        ],
        hint=(
            "D is wide and must be read, the result is wide and must be written; what else is "
            "wide on the way?"
        ),
    ),
    NumberQuestion(
        "chains.strassen",
        "At which even n does one level of Strassen's scheme first need fewer FLOP than 2 n^3? "
        "Count its 18 additions.",
        reference=lambda: _crossover(lambda n: rl.strassen(n).flops),
        tolerance=0,
        slips=[
            ("equal-not-fewer", lambda: _crossover(lambda n: rl.strassen(n).flops) - 2),
            ("forgot-additions", lambda: _crossover(lambda n: 7 * 2 * (n // 2) ** 3)),
        ],
        hint="2 n^3 against 7 x 2 (n/2)^3 + 18 (n/2)^2: divide by n^2 / 4.",
    ),
    _lora_asked(),
    _moved_asked(),
    _again_asked(),
    _strassen_asked(),
    ChoiceQuestion(
        "chains.x-affine",
        "y = W2 (W1 x + b1) + b2, with nothing between the layers but the bias. Can one layer do "
        "the same for every x?",
        reference=_merged,
        choices=("yes", "no"),
        slips=[
            ("not-a-nonlinearity", lambda: "no"),
        ],
        hint="(W2 W1) x + (W2 b1 + b2): a bias is no nonlinearity.",
    ),
    FunctionQuestion(
        "chains.x-two-orders",
        "A function: [FLOP of (AB)C, FLOP of A(BC)].",
        reference=_two_orders,
        tolerance=1e-6,
        inputs=lambda: [(2, 3, 4, 5), (4096, 64, 4096, 1)],
        slips=[
            ("mac-is-flop", lambda *dims: [flops / 2 for flops in _two_orders(*dims)]),
            ("other-order", lambda *dims: _two_orders(*dims)[::-1]),
        ],
        hint="AB is [p, r]; BC is [q, t].",
    ),
    FunctionQuestion(
        "chains.x-merge-from",
        "A function: the fewest columns from which (AB)x, with AB computed once, takes fewer FLOP; "
        "math.inf where none.",
        reference=_merge_from,
        tolerance=1e-9,
        inputs=lambda: [(50, 10000, 50), (4096, 16, 4096), (2, 2, 2)],
        slips=[
            ("equal-not-fewer", lambda p, q, r: _break_even(p, q, r, math.ceil)),
            ("forgot-each-time", lambda p, q, r: p * q * r // (q * (p + r)) + 1),
        ],
        hint="once 2pqr, then 2pr each, against 2q (p + r) each; what does each x save?",
    ),
    FunctionQuestion(
        "chains.x-prices",
        "A function: [FLOP, bytes moved, bytes of the largest intermediate] of an order.",
        reference=_prices,
        tolerance=1e-6,
        inputs=lambda: [
            ([8, 8, 16, 4096, 32], [[[0, 1], 2], 3], 4),
            ([8, 8, 16, 4096, 32], [[0, 1], [2, 3]], 2),
            ([3, 4, 5], [0, 1], 4),
        ],
        slips=[
            ("mac-is-flop", lambda *args: [_prices(*args)[0] / 2, *_prices(*args)[1:]]),
            (
                "elements-not-bytes",
                lambda *args: [
                    _prices(*args)[0],
                    *(price / args[2] for price in _prices(*args)[1:]),
                ],
            ),
        ],
        hint=(
            "a function that calls itself on both halves and gives back their shape; the result "
            "of the whole is no intermediate."
        ),
    ),
    FunctionQuestion(
        "chains.x-fewest-bytes",
        "A function: the fewest bytes that any order of the chain moves.",
        reference=_fewest_bytes,
        tolerance=1e-6,
        inputs=lambda: [
            ([8, 8, 16, 4096, 32], 4),
            ([30, 35, 15, 5, 10, 20, 25], 2),
            ([3, 4, 5], 4),
        ],
        slips=[
            ("elements-not-bytes", lambda dims, s: _fewest_bytes(dims, s) / s),
            ("fewest-flops", _bytes_of_fewest_flops),
        ],
        hint="the lesson's recipe with another price: three matrices for each product.",
    ),
    FunctionQuestion(
        "chains.x-strassen-from",
        "A function: the smallest even n at which one level of Strassen's scheme is faster under "
        "the roof.",
        reference=_strassen_from,
        tolerance=1e-9,
        inputs=lambda: [(2, 989.4e12, 3350e9), (4, 20e12, 1.99e12), (4, 1e12, 2e12)],
        slips=[
            ("flop-only", lambda s, peak, bandwidth: 20),
            (
                "additions-alone",
                lambda s, peak, bw: 2 * math.floor(max(18, 27 / 4 * s * peak / bw) / 2) + 2,
            ),
        ],
        hint=(
            "it moves 6.25 times the bytes: where is it compute-bound, and can it win where it is "
            "not?"
        ),
    ),
]
