"""Chains: their costs against numpy's own, the best order against every order, Strassen against a
recursion that counts."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.chains import MINIMISE

DIMS = st.lists(st.integers(2, 60), min_size=3, max_size=8)


class Counted(np.ndarray):
    """An array that adds up the FLOP of every np.dot it takes part in."""

    flops = 0

    def __array_function__(self, function, types, args, kwargs):
        if function is np.dot:
            Counted.flops += 2 * args[0].shape[0] * args[0].shape[1] * args[1].shape[1]
        return super().__array_function__(function, types, args, kwargs)


@given(DIMS)
def test_fewest_flops_are_those_of_multi_dot(dims):
    """multi_dot finds its order by itself and multiplies: what it really did costs what we say the
    best order costs."""
    Counted.flops = 0
    np.linalg.multi_dot(
        [np.ones(shape).view(Counted) for shape in zip(dims, dims[1:], strict=False)]
    )
    assert rl.best_chain_order(dims).flops == Counted.flops > 0


@given(st.lists(st.integers(2, 60), min_size=3, max_size=6))
def test_fewest_flops_are_those_of_einsum_path(dims):
    letters = "abcdef"[: len(dims)]
    spec = (
        ",".join(map("".join, zip(letters, letters[1:], strict=False)))
        + f"->{letters[0]}{letters[-1]}"
    )
    arrays = [np.ones(shape) for shape in zip(dims, dims[1:], strict=False)]
    path, report = np.einsum_path(spec, *arrays, optimize=("optimal", 10**9))
    nodes = [(i, (i, i + 1)) for i in range(len(arrays))]  # (order so far, matrices it spans)
    for pair in path[1:]:
        first, second = sorted(
            (nodes.pop(i) for i in sorted(pair, reverse=True)), key=lambda node: node[1]
        )
        nodes.append(((first[0], second[0]), (first[1][0], second[1][1])))
    theirs = rl.chain_cost(dims, nodes[0][0])
    assert theirs.flops == rl.best_chain_order(dims).flops
    # numpy adds 1
    assert theirs.flops == pytest.approx(
        float(report.split("Optimized FLOP count:")[1].split()[0]) - 1, rel=1e-3
    )


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=7),
    st.sampled_from(MINIMISE),
    st.sampled_from(["fp32", "bf16", "int4"]),
)
def test_best_order_against_every_order(dims, minimise, precision):
    costs = [rl.chain_cost(dims, order, precision) for order in rl.chain_orders(len(dims) - 1)]
    best = rl.best_chain_order(dims, minimise, precision)
    assert (
        getattr(best, minimise) == min(getattr(cost, minimise) for cost in costs) and best in costs
    )


@given(st.lists(st.integers(1, 12), min_size=3, max_size=6), st.randoms(use_true_random=False))
def test_cost_against_really_multiplying(dims, random):
    order = random.choice(rl.chain_orders(len(dims) - 1))
    matrices = [np.ones(shape, np.float32) for shape in zip(dims, dims[1:], strict=False)]
    flops = moved = 0
    intermediates = []

    def multiply(node):
        nonlocal flops, moved
        if isinstance(node, int):
            return matrices[node]
        left, right = map(multiply, node)
        result = left @ right
        flops += 2 * result.size * left.shape[1]
        moved += left.nbytes + right.nbytes + result.nbytes
        intermediates.append(result.nbytes)
        return result

    multiply(order)
    cost = rl.chain_cost(dims, order)
    assert (cost.flops, cost.bytes_moved, cost.largest_intermediate) == (
        flops,
        moved,
        max(intermediates[:-1], default=0),
    )
    assert cost.work == rl.Work(flops, moved) and cost.order == order


def test_the_three_objectives_can_disagree():
    """Each best order is best at nothing else; the prices differ by more than rounding."""
    dims = (112, 88, 96, 200, 248)
    best = {minimise: rl.best_chain_order(dims, minimise) for minimise in MINIMISE}
    assert {minimise: cost.text for minimise, cost in best.items()} == {
        "flops": "(AB)(CD)",
        "bytes_moved": "((AB)C)D",
        "largest_intermediate": "A((BC)D)",
    }
    for minimise in MINIMISE:
        assert all(
            getattr(other, minimise) > 1.01 * getattr(best[minimise], minimise)
            for key, other in best.items()
            if key != minimise
        )


def test_orders_and_their_text():
    for count in range(1, 9):
        orders = rl.chain_orders(count)
        assert len(orders) == len(set(orders)) == comb(2 * count - 2, count - 1) // count  # Catalan
    assert [rl.chain_cost((1,) * 4, order).text for order in rl.chain_orders(3)] == [
        "A(BC)",
        "(AB)C",
    ]
    assert rl.chain_cost((2, 3, 4), [np.int64(0), np.int8(1)]).text == "AB"


def test_one_matrix_costs_nothing():
    cost = rl.best_chain_order((5, 6))
    assert (cost.flops, cost.bytes_moved, cost.largest_intermediate, cost.text) == (0, 0, 0, "A")


def test_a_long_chain_is_quick():
    cost = rl.best_chain_order([10 + 7 * i % 13 for i in range(30)])
    assert cost.text.count("(") == 29 - 2 and "M26" in cost.text


def test_sizes_may_be_arrays():
    n = np.array([16, 64, 4096])
    many = rl.chain_cost((n, 64, n, 1), ((0, 1), 2))
    one = [rl.chain_cost((int(i), 64, int(i), 1), ((0, 1), 2)) for i in n]
    for field in MINIMISE:
        assert getattr(many, field).tolist() == [getattr(cost, field) for cost in one]


def count_strassen(a, b, levels, total):
    """a @ b by Strassen's seven products; FLOP and bytes of each addition and of each product at
    the bottom are added to `total`."""
    n = len(a)
    if levels == 0:
        total += (2 * n**3, 3 * a.nbytes)
        return a @ b

    def add(x, y, sign=1):
        nonlocal total
        result = x + sign * y
        total += (result.size, x.nbytes + y.nbytes + result.nbytes)
        return result

    (a11, a12), (a21, a22) = (
        (x[:, : n // 2].copy(), x[:, n // 2 :].copy()) for x in (a[: n // 2], a[n // 2 :])
    )
    (b11, b12), (b21, b22) = (
        (x[:, : n // 2].copy(), x[:, n // 2 :].copy()) for x in (b[: n // 2], b[n // 2 :])
    )
    factors = [
        (add(a11, a22), add(b11, b22)),
        (add(a21, a22), b11),
        (a11, add(b12, b22, -1)),
        (a22, add(b21, b11, -1)),
        (add(a11, a12), b22),
        (add(a21, a11, -1), add(b11, b12)),
        (add(a12, a22, -1), add(b21, b22)),
    ]
    m1, m2, m3, m4, m5, m6, m7 = (count_strassen(x, y, levels - 1, total) for x, y in factors)
    return np.block(
        [
            [add(add(add(m1, m4), m5, -1), m7), add(m3, m5)],
            [add(m2, m4), add(add(add(m1, m2, -1), m3), m6)],
        ]
    )


@pytest.mark.parametrize(
    ("n", "levels"), [(2, 1), (6, 1), (8, 1), (8, 2), (8, 3), (24, 3), (48, 2)]
)
def test_strassen_against_doing_it(n, levels):
    rng, total = np.random.default_rng(n), np.zeros(2)
    a, b = rng.integers(-9, 10, (2, n, n)).astype(float)
    assert np.array_equal(count_strassen(a, b, levels, total), a @ b)
    work = rl.strassen(n, levels, "fp64")
    assert [work.flops, work.bytes_moved] == total.tolist()


def test_strassen_saves_flops_and_loses_intensity():
    # 7/8 of 2 n^3 and 4.5 n^2 meet at n = 18
    assert rl.strassen(18).flops == rl.gemm(18, 18, 18).flops
    assert (
        rl.strassen(20).flops < rl.gemm(20, 20, 20).flops
        and rl.strassen(16).flops > rl.gemm(16, 16, 16).flops
    )
    assert rl.strassen(4096).intensity < rl.gemm(4096, 4096, 4096).intensity / 2
    assert rl.strassen(np.array([4096, 8192]), 2).flops[1] == rl.strassen(8192, 2).flops
