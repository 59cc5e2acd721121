"""Operators: laws, counts by really doing them, critical sizes, arrays."""

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from harness.borders import BATCH, ELEMENTS, HEADS, TOKENS
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

SIDES = st.integers(1, 10_000)
SMALL = st.integers(1, 9)
PRECISION = st.sampled_from(rl.PRECISIONS)


@given(st.integers(1, 10**6), PRECISION)
def test_a_square_product_has_2n_over_3s(n, precision):
    assert rl.gemm(n, n, n, precision).intensity == pytest.approx(
        2 * n / (3 * rl.bytes_per_element(precision))
    )


@given(SIDES, SIDES, SIDES, PRECISION, PRECISION, PRECISION)
def test_a_product_is_bounded_by_each_of_its_sides(m, n, k, a, b, c):
    work = rl.gemm(m, n, k, a=a, b=b, c=c)
    s_a, s_b, s_c = (rl.bytes_per_element(p) for p in (a, b, c))
    assert work.intensity < 2 * min(n / s_a, m / s_b, k / s_c)
    assert work.flops / work.intensity == pytest.approx(s_a * m * k + s_b * k * n + s_c * m * n)
    transposed = rl.gemm(n, m, k, a=b, b=a, c=c)
    assert transposed == work
    assert rl.gemm(
        m, n, k, a=a, b=b, c=c, beta=0.5
    ).bytes_moved - work.bytes_moved == pytest.approx(s_c * m * n)


@given(SIDES, SIDES)
def test_vectors_are_thin_matrices(m, n):
    assert rl.gemv(m, n) == rl.gemm(m, 1, n) and rl.dot(n) == rl.gemm(1, 1, n)
    assert rl.axpy(n) == rl.elementwise(n, reads=2, flops_per_element=2)
    # x . x reads x once
    assert (
        rl.nrm2(n).flops == rl.dot(n).flops
        and rl.dot(n).bytes_moved - rl.nrm2(n).bytes_moved == 4 * n
    )
    assert rl.trsm(m, 1) == rl.trsv(m)
    assert (
        rl.fused(rl.axpy(n), rl.dot(n), bytes_moved=rl.axpy(n).bytes_moved).intensity
        > rl.axpy(n).intensity
    )


def test_only_level_3_grows_its_reuse():
    n = np.array([1e3, 1e6])
    for work in (rl.dot(n), rl.axpy(n), rl.nrm2(n), rl.gemv(n, n), rl.trsv(n)):
        assert work.intensity[1] < 1.01 * work.intensity[0] < 0.7
    for work in (rl.gemm(n, n, n), rl.trsm(n, n), rl.syrk(n, n)):
        assert work.intensity[1] > 900 * work.intensity[0]


@given(SMALL, SMALL)
def test_triangular_solve_by_counting(n, columns):
    # a multiply-add for each number already known, then one division
    flops = sum(2 * row + 1 for row in range(n))
    assert rl.trsv(n).flops == flops and rl.trsm(n, columns).flops == columns * flops
    triangle = np.tril(np.ones((n, n), np.float32)).astype(bool).sum()
    assert rl.trsm(n, columns).bytes_moved == 4 * (triangle + 2 * n * columns)
    assert rl.syrk(n, columns).flops == 2 * columns * triangle and rl.syrk(
        n, columns
    ).bytes_moved == 4 * (n * columns + triangle)


@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.integers(1, 4), st.integers(1, 3), st.integers(0, 3))
def test_convolution_by_doing_it(batch, height, width, c_in, c_out, kernel, stride, padding):
    if min(height, width) + 2 * padding < kernel:
        return
    padded = np.pad(
        np.ones((batch, height, width, c_in), np.float16),
        ((0, 0), (padding, padding), (padding, padding), (0, 0)),
    )
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(1, 2))[
        :, ::stride, ::stride
    ]
    weights, image = (
        np.ones((c_out, c_in, kernel, kernel), np.float16),
        np.ones((batch, height, width, c_in), np.float16),
    )
    result = np.einsum("bhwcij,ocij->bhwo", windows, weights)
    work = rl.conv2d(
        batch, height, width, c_in, c_out, kernel, "fp16", stride=stride, padding=padding
    )
    assert work.flops == 2 * result.size * weights[0].size
    assert work.bytes_moved == image.nbytes + weights.nbytes + result.nbytes


@given(
    SMALL,
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 12),
    st.integers(0, 12),
    SMALL,
    st.booleans(),
    st.booleans(),
)
def test_attention_by_doing_it(batch, kv_heads, group, queries, past, head_dim, flash, causal):
    heads, context = kv_heads * group, past + queries
    work = rl.attention(
        batch, heads, kv_heads, queries, context, head_dim, "fp16", flash=flash, causal=causal
    )
    allowed = np.tri(queries, context, past) if causal else np.ones((queries, context))
    assert work.flops == pytest.approx(2 * 2 * batch * heads * head_dim * allowed.sum())
    q = np.ones((batch, heads, queries, head_dim), np.float16)
    k = v = np.ones((batch, kv_heads, context, head_dim), np.float16)
    scores = np.einsum("bhqd,bhkd->bhqk", q, np.repeat(k, group, 1))
    # scores written, read by softmax, probabilities written, read by the second product
    passes = 0 if flash else 4
    assert work.bytes_moved == 2 * q.nbytes + k.nbytes + v.nbytes + passes * scores.nbytes


def keys_seen(own, context, window, causal):
    """The numbers of the keys that the query at position `own` sees."""
    first = max(0, own - window + 1)
    return range(first, own + 1 if causal else min(context, first + window))


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 30), st.booleans(), st.booleans())
def test_a_window_by_counting_pairs(queries, past, window, causal, flash):
    context = past + queries
    work = rl.attention(
        2, 4, 2, queries, context, 8, "fp16", flash=flash, causal=causal, window=window
    )
    seen = [keys_seen(own, context, window, causal) for own in range(past, context)]
    read = len(set().union(*seen))
    assert work.flops == 2 * 4 * 4 * 8 * sum(map(len, seen))
    passes = 0 if flash else 4
    assert work.bytes_moved == 2 * 2 * (
        2 * 4 * queries * 8 + 2 * 2 * read * 8 + passes * 4 * queries * read
    )


@given(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50), st.booleans())
def test_a_window_as_wide_as_the_context_changes_nothing(queries, past, more, causal):
    shape = (1, 2, 2, queries, past + queries, 8)
    wide = rl.attention(*shape, causal=causal, window=past + queries + more)
    assert wide == rl.attention(*shape, causal=causal)


@given(SIDES, SIDES)
def test_norms_do_a_few_flop_an_element(rows, cols):
    for work, flops, vectors in (
        (rl.softmax(rows, cols, "fp16"), 5, 0),
        (rl.layer_norm(rows, cols, "fp16"), 7, 2),
        (rl.rms_norm(rows, cols, "fp16"), 4, 1),
    ):
        assert work.flops == flops * rows * cols and work.bytes_moved == 2 * (
            2 * rows * cols + vectors * cols
        )
        assert work.intensity < 2  # far left of every ridge point


def reaches(m, n, k, chip, precision, widths):
    """Whether intensity >= ridge, in exact rational numbers."""
    s_a, s_b, s_c = map(Fraction, widths)
    ridge = Fraction(chip.peak(precision)) / Fraction(chip.bandwidth())
    return 2 * m * n * k >= ridge * (s_a * m * k + s_b * k * n + s_c * m * n)


@given(PRECISION, st.floats(1e9, 1e16), st.floats(1e9, 1e14))
def test_critical_size_is_the_smallest(precision, peak, bandwidth):
    chip = rl.Machine("any", {precision: peak}, {"DRAM": bandwidth})
    n, root = rl.critical_size(chip, precision), rl.critical_size(chip, precision, exact=True)
    widths = 3 * [rl.bytes_per_element(precision)]
    assert type(n) is int and reaches(n, n, n, chip, precision, widths)
    assert n == 1 or not reaches(n - 1, n - 1, n - 1, chip, precision, widths)
    assert n == max(1, math.ceil(root)) or math.isclose(n, root, rel_tol=1e-12)
    assert rl.bound(rl.gemm(n, n, n, precision), chip, precision).bound_by == "compute"


@given(
    PRECISION,
    st.lists(st.sampled_from([None, *rl.PRECISIONS]), min_size=3, max_size=3),
    st.floats(1e12, 1e15),
    st.floats(1e11, 1e13),
    st.integers(1, 20_000),
    st.integers(1, 20_000),
)
def test_critical_batch_is_the_smallest(precision, others, peak, bandwidth, n, k):
    chip = rl.Machine("any", {precision: peak}, {"DRAM": bandwidth})
    widths = [rl.bytes_per_element(p or precision) for p in others]
    a, b, c = others
    batch = rl.critical_batch(n, k, chip, precision, a=a, b=b, c=c)
    if batch == math.inf:
        assert not reaches(10**15, n, k, chip, precision, widths)
    else:
        assert type(batch) is int
        assert reaches(batch, n, k, chip, precision, widths) and (
            batch == 1 or not reaches(batch - 1, n, k, chip, precision, widths)
        )
        root = rl.critical_batch(n, k, chip, precision, a=a, b=b, c=c, exact=True)
        assert batch == max(1, math.ceil(root)) or math.isclose(batch, root, rel_tol=1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_critical_sizes_of_the_peak_that_accumulate_picks(exact):
    peaks = {"fp32": 150e12, "fp16": 300e12}
    both = rl.Machine(
        "two widths of sums",
        {"fp16": [rl.Peak(peak, "fp16", sums) for sums, peak in peaks.items()]},
        {"DRAM": 1e12},
    )
    for sums, peak in peaks.items():
        one = rl.Machine("one of them", {"fp16": peak}, {"DRAM": 1e12})
        for find in (rl.critical_size, partial(rl.critical_batch, 4096, 4096)):
            picked = find(both, "fp16", accumulate=sums, exact=exact)
            assert picked == find(one, "fp16", exact=exact)


def test_critical_sizes_exactly_on_a_ridge():
    assert [rl.critical_size("house chip", p) for p in ("fp32", "bf16")] == [60, 450]
    assert [rl.critical_size("house chip", p, exact=True) for p in ("fp32", "bf16")] == [
        60.0,
        450.0,
    ]
    # [m, side] @ [side, side]: m = ridge side / (side - 2 ridge)
    for ridge, side in itertools.product((2.0**4, 2.0**7), (2**8, 2**10)):
        chip = rl.Machine("any", {"bf16": ridge * 1e12}, {"DRAM": 1e12})
        exact = Fraction(int(ridge) * side, side - 2 * int(ridge)) if side > 2 * ridge else math.inf
        assert rl.critical_batch(side, side, chip, "bf16") == (
            math.inf if exact == math.inf else math.ceil(exact)
        )


def test_no_batch_reaches_a_ridge_at_its_asymptote():
    """The intensity of a [m, 300] @ [300, 300] product in bf16 tends to 150, the ridge, and never
    gets there; just under it, it does."""
    assert rl.critical_batch(300, 300, "house chip", "bf16") == math.inf
    near = [
        rl.Machine("near", {"bf16": 300e12 * (1 - gap)}, {"DRAM": 2e12})
        for gap in (1e-3, 1e-6, 1e-9, 1e-11, 1e-13)
    ]
    batches = [rl.critical_batch(300, 300, chip, "bf16") for chip in near]
    assert (
        batches[:3] == pytest.approx([150 / gap for gap in (1e-3, 1e-6, 1e-9)], rel=2e-3)
        and batches[-1] == math.inf
    )


def test_critical_batch_of_many_layers_at_once():
    n, k = np.array([4096, 100, 16384]), np.array([[4096], [512]])
    found = rl.critical_batch(n, k, "house chip", "bf16", b="int8")
    one_by_one = [
        [rl.critical_batch(i, j, "house chip", "bf16", b="int8") for i in n] for j in k.ravel()
    ]
    assert found.tolist() == one_by_one and found[0, 1] == math.inf and found[0, 0] == 81.0
    assert rl.critical_batch(4096, 4096, "house chip", "bf16") == 162


def test_a_million_shapes_in_one_call():
    rng = np.random.default_rng(1)
    m, n, k = rng.integers(1, 20_000, (3, 1_000_000))
    calls = [
        lambda m, n, k: rl.gemm(m, n, k, "bf16", a="fp8", beta=1),
        lambda m, n, k: rl.tiled_gemm(m, n, k, (128, 64)),
        lambda m, n, k: rl.attention(m, n, 1, k, k + 5, 64, causal=True),
        lambda m, n, k: rl.conv2d(m, n, k, 3, 64, 3, padding=1),
        lambda m, n, k: rl.critical_batch(n, k, "T4", "fp16"),
        lambda m, n, k: rl.io_lower_bound(m, n, k, 5000),
        lambda m, n, k: rl.bound(rl.gemm(m, n, k, "bf16"), "house chip", "bf16").time,
    ]
    for call in calls:
        many = call(m, n, k)
        for i in rng.integers(0, m.size, 20):
            one = call(int(m[i]), int(n[i]), int(k[i]))
            if isinstance(one, rl.Work):
                assert (one.flops, one.bytes_moved) == (many.flops[i], many.bytes_moved[i])
            else:
                assert one == many[i]


# What test_border.py tries on each of them.
BORDER = [
    (rl.dot, dict(n=96, precision="bf16"), dict(n=ELEMENTS, precision="name")),
    (rl.nrm2, dict(n=96, precision="bf16"), dict(n=ELEMENTS, precision="name")),
    (rl.axpy, dict(n=96, precision="bf16"), dict(n=ELEMENTS, precision="name")),
    (rl.gemv, dict(m=96, n=80, precision="bf16"), dict(m=ELEMENTS, n=ELEMENTS, precision="name")),
    (rl.trsv, dict(n=96, precision="bf16"), dict(n=ELEMENTS, precision="name")),
    (rl.trsm, dict(m=96, n=80, precision="bf16"), dict(m=ELEMENTS, n=ELEMENTS, precision="name")),
    (rl.syrk, dict(n=96, k=80, precision="bf16"), dict(n=ELEMENTS, k=ELEMENTS, precision="name")),
    (
        rl.gemm,
        dict(m=96, n=80, k=120, precision="bf16", a="fp8", b="int4", c="fp32", beta=1),
        dict(
            m=ELEMENTS,
            n=ELEMENTS,
            k=ELEMENTS,
            precision="name",
            a="name",
            b="name",
            c="name",
            beta="no unit any",
        ),
    ),
    (
        rl.elementwise,
        dict(n=96, precision="bf16", reads=2, writes=1, flops_per_element=3),
        dict(
            n=ELEMENTS,
            precision="name",
            reads="arrays amount",
            writes="arrays amount",
            flops_per_element="FLOP amount",
        ),
    ),
    (
        rl.softmax,
        dict(rows=96, cols=80, precision="bf16"),
        dict(rows=ELEMENTS, cols=ELEMENTS, precision="name"),
    ),
    (
        rl.layer_norm,
        dict(rows=96, cols=80, precision="bf16"),
        dict(rows=ELEMENTS, cols=ELEMENTS, precision="name"),
    ),
    (
        rl.rms_norm,
        dict(rows=96, cols=80, precision="bf16"),
        dict(rows=ELEMENTS, cols=ELEMENTS, precision="name"),
    ),
    (
        rl.conv2d,
        dict(
            batch=100,
            height=96,
            width=80,
            in_channels=100,
            out_channels=120,
            kernel=9,
            precision="bf16",
            stride=3,
            padding=2,
        ),
        dict(
            batch=ELEMENTS,
            height=ELEMENTS,
            width=ELEMENTS,
            in_channels=ELEMENTS,
            out_channels=ELEMENTS,
            kernel=ELEMENTS,
            precision="name",
            stride=ELEMENTS,
            padding="elements count",
        ),
    ),
    (
        rl.attention,
        dict(
            batch=100,
            heads=96,
            kv_heads=24,
            query_tokens=80,
            context=100,
            head_dim=120,
            precision="bf16",
            flash=True,
            causal=True,
            window=90,
            kv="fp8",
        ),
        dict(
            batch=BATCH,
            heads=HEADS,
            kv_heads=HEADS,
            query_tokens=TOKENS,
            context=TOKENS,
            head_dim=ELEMENTS,
            precision="name",
            flash="switch",
            causal="switch",
            window=TOKENS,
            kv="name",
        ),
    ),
    (
        rl.critical_size,
        dict(machine="RTX 4090", precision="fp16", accumulate="fp16", exact=False),
        dict(machine="name", precision="name", accumulate="name", exact="switch"),
    ),
    (
        rl.critical_batch,
        dict(
            n=120,
            k=127,
            machine="RTX 4090",
            precision="fp16",
            a="fp8",
            b="int4",
            c="fp8",
            accumulate="fp32",
            exact=False,
        ),
        dict(
            n=ELEMENTS,
            k=ELEMENTS,
            machine="name",
            precision="name",
            a="name",
            b="name",
            c="name",
            accumulate="name",
            exact="switch",
        ),
    ),
]
