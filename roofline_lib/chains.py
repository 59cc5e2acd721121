"""Products of several matrices: what each order costs, and the best one; Strassen's product counted
the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral
from typing import TypeAlias

import numpy as np

from roofline_lib.arguments import Number, Value, plain, size, unknown
from roofline_lib.model import Work
from roofline_lib.operators import gemm
from roofline_lib.precisions import bytes_per_element

# Nested pairs of matrix numbers, or one of them: ((0, 1), 2) is (AB)C.
Order: TypeAlias = "int | tuple[Order, Order]"

MINIMISE = ("flops", "bytes_moved", "largest_intermediate")


@dataclass(frozen=True)
class ChainCost:
    """One order of a chain: FLOP, compulsory byte of its products one after the other, byte of the
    largest intermediate result."""

    flops: Value
    bytes_moved: Value
    largest_intermediate: Value
    order: Order
    text: str

    @property
    def work(self) -> Work:
        """The same as a Work."""
        return Work(self.flops, self.bytes_moved)


def chain_cost(dims: Sequence[Number], order: Order, precision: str = "fp32") -> ChainCost:
    """Cost of multiplying matrices [dims[0], dims[1]], [dims[1], dims[2]], ... in `order`, nested
    pairs of their numbers: ((0, 1), 2).

    The final result is no intermediate; sizes may be arrays. ValueError where the order does not
    name each matrix once, from left to right.
    """
    dims, width = _dims(dims), bytes_per_element(precision)
    largest = 0.0
    total = Work(0, 0)

    def visit(node, top):
        nonlocal largest, total
        if isinstance(node, Integral) and not isinstance(node, bool):
            return int(node), int(node) + 1
        if not isinstance(node, tuple | list) or len(node) != 2:
            raise ValueError(
                "order must be nested pairs of matrix numbers such as ((0, 1), 2); "
                f"got {node!r} in {order!r}"
            )
        (left, middle), (begins, right) = visit(node[0], False), visit(node[1], False)
        if begins != middle or left < 0 or right >= len(dims):
            raise ValueError(
                f"order must name matrices 0 to {len(dims) - 2} once each, from left to right; "
                f"got {order!r}"
            )
        total += gemm(dims[left], dims[right], dims[middle], precision)
        if not top:
            largest = plain(np.maximum(largest, dims[left] * dims[right] * width))
        return left, right

    if visit(order, True) != (0, len(dims) - 1):
        raise ValueError(
            f"order must name matrices 0 to {len(dims) - 2} once each, from left to right; "
            f"got {order!r}"
        )
    return ChainCost(total.flops, total.bytes_moved, largest, order, order_text(order))


def best_chain_order(
    dims: Sequence[int], minimise: str = "flops", precision: str = "fp32"
) -> ChainCost:
    """The cheapest order's ChainCost by dynamic programming, O(n^3), over "flops", "bytes_moved" or
    "largest_intermediate"."""
    dims, width = _dims(dims, single=True), bytes_per_element(precision)
    if not isinstance(minimise, str) or minimise not in MINIMISE:
        raise unknown("minimise", minimise, MINIMISE)

    def joined(left, middle, right):
        """Cost of [left:right] split at middle: its parts', and its own product's."""
        (cost_l, order_l), (cost_r, order_r) = best(left, middle), best(middle, right)
        if minimise == "largest_intermediate":
            parts = [
                dims[i] * dims[j] * width for i, j in ((left, middle), (middle, right)) if j - i > 1
            ]
            cost = max(cost_l, cost_r, *parts, 0.0)
        else:
            cost = (
                cost_l
                + cost_r
                + getattr(gemm(dims[left], dims[right], dims[middle], precision), minimise)
            )
        return cost, (order_l, order_r)

    @cache
    def best(left, right):
        if right - left == 1:
            return 0.0, left
        return min(
            (joined(left, middle, right) for middle in range(left + 1, right)),
            key=lambda found: found[0],
        )

    return chain_cost(dims, best(0, len(dims) - 1)[1], precision)


def chain_orders(count: int) -> list[Order]:
    """Every order of `count` matrices as nested pairs: 1, 1, 2, 5, 14, 42, ... of them (the Catalan
    numbers)."""

    @cache
    def between(left, right):
        if right - left == 1:
            return (left,)
        return tuple(
            (a, b)
            for middle in range(left + 1, right)
            for a in between(left, middle)
            for b in between(middle, right)
        )

    return list(between(0, int(size("count", count, "matrices", single=True))))


def order_text(order: Order) -> str:
    """An order in letters: ((0, 1), 2) is "(AB)C"."""

    def letters(node, top):
        if isinstance(node, Integral):
            return chr(ord("A") + node) if node < 26 else f"M{node}"
        inner = letters(node[0], False) + letters(node[1], False)
        return inner if top else f"({inner})"

    return letters(order, True)


def strassen(n: Number, levels: int = 1, precision: str = "fp32") -> Work:
    """Work of an n x n x n product by Strassen's scheme: at each level 7 products and 18 additions
    of half-size matrices.

    Each addition reads two halves and writes one; the products of the last level are `gemm`.
    ValueError unless n divides by 2^levels. Strassen, 1969, doi:10.1007/BF02165411.
    """
    n, levels = size("n", n), int(size("levels", levels, "levels", single=True))
    if np.any(n % 2.0 ** min(levels, 1023)):
        raise ValueError(f"n must divide by 2^levels = 2^{levels} (elements); got {n}")
    half = n / 2
    additions = 18 * Work(half**2, 3 * half**2 * bytes_per_element(precision))
    products = (
        gemm(half, half, half, precision) if levels == 1 else strassen(half, levels - 1, precision)
    )
    return 7 * products + additions


def _dims(dims, single=False):
    try:
        dims = list(dims)
    except TypeError:
        raise ValueError(
            f"dims must list the sizes (elements), one more than there are matrices; got {dims!r}"
        ) from None
    if len(dims) < 2:
        raise ValueError(
            "dims must hold at least two sizes (elements), one more than there are matrices; "
            f"got {dims!r}"
        )
    return [size(f"dims[{i}]", d, single=single) for i, d in enumerate(dims)]
