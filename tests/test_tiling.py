"""Tiles: their traffic against compulsory, lower bound, naive, and against products that were
really tiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

SIDES, TILES = st.integers(1, 5000), st.integers(1, 600)
PRECISION = st.sampled_from(rl.PRECISIONS)


@given(SIDES, SIDES, SIDES, st.integers(0, 9), PRECISION)
def test_a_tile_as_large_as_the_matrix_gives_exactly_the_compulsory_traffic(
    m, n, k, more, precision
):
    assert rl.tiled_gemm(m, n, k, (m, n), precision) == rl.gemm(m, n, k, precision)
    mixed = {"a": "fp8", "b": "int4", "c": "fp32"}
    whole = rl.gemm(m, n, k, precision, **mixed)
    assert rl.tiled_gemm(m, n, k, (m, n), precision, **mixed) == whole
    assert rl.tiled_gemm(m, n, k, (m + more, n + more), precision) == rl.gemm(m, n, k, precision)
    assert rl.tiled_gemm(m, n, k, max(m, n), precision) == rl.gemm(m, n, k, precision)


@given(SIDES, SIDES, SIDES, TILES, TILES, PRECISION)
def test_tiled_lies_between_its_bounds(m, n, k, tile_m, tile_n, precision):
    tile, s = (tile_m, tile_n), rl.bytes_per_element(precision)
    tiled, least = rl.tiled_gemm(m, n, k, tile, precision), rl.gemm(m, n, k, precision)
    assert (
        tiled.flops == least.flops
        and least.bytes_moved <= tiled.bytes_moved <= rl.naive_gemm(m, n, k, precision).bytes_moved
    )
    bound = rl.io_lower_bound(m, n, k, rl.tile_memory(tile, precision) / s)
    tightest = rl.io_lower_bound(m, n, k, rl.tile_memory(tile, precision) / s, tightest=True)
    assert least.bytes_moved / s <= bound * (1 + 1e-12) and bound <= tightest
    assert tightest <= tiled.bytes_moved / s * (1 + 1e-12)


@given(SIDES, SIDES, SIDES, PRECISION)
def test_one_element_tiles_are_the_naive_loops(m, n, k, precision):
    assert rl.tiled_gemm(m, n, k, 1, precision) == rl.naive_gemm(m, n, k, precision)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), TILES, TILES)
def test_where_tiles_fit_the_closed_form_holds(rows, cols, k, tile_m, tile_n):
    work = rl.tiled_gemm(rows * tile_m, cols * tile_n, k, (tile_m, tile_n))
    panels = work.bytes_moved - 4 * rows * tile_m * cols * tile_n
    assert work.flops / panels == pytest.approx(tile_m * tile_n / (tile_m + tile_n) * 2 / 4)


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(1, 50),
    st.sampled_from([("fp32", np.float32), ("fp64", np.float64), ("fp16", np.float16)]),
)
def test_formula_equals_what_a_tiled_product_really_copies(m, n, k, tile_m, tile_n, tile_k, types):
    precision, dtype = types
    rng = np.random.default_rng(m * n * k)
    # small whole numbers: sums are exact
    a, b = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    counted = rl.counted_tiled_product(a, b, (tile_m, tile_n), tile_k)
    assert np.array_equal(counted.product, a @ b) and counted.product.dtype == dtype
    assert counted.bytes_moved == rl.tiled_gemm(m, n, k, (tile_m, tile_n), precision).bytes_moved
    held_m, held_n, held_k = min(m, tile_m), min(n, tile_n), min(k, tile_k)
    assert counted.fast_bytes == rl.tile_memory(
        (held_m, held_n), precision, tile_k=held_k, sums=precision, buffers=1
    )
    if held_k == 1:
        assert counted.fast_bytes == rl.tile_memory((held_m, held_n), precision)
    held, moved = counted.fast_bytes / a.itemsize, counted.bytes_moved / a.itemsize
    assert rl.io_lower_bound(m, n, k, held, tightest=True) <= moved * (1 + 1e-12)


def test_a_tile_is_one_side_a_pair_or_an_array_of_sides():
    assert (
        rl.tiled_gemm(500, 300, 70, 64)
        == rl.tiled_gemm(500, 300, 70, (64, 64))
        == rl.tiled_gemm(500, 300, 70, [64, 64])
    )
    sides = np.array([32, 64, 128])
    many = rl.tiled_gemm(4096, 4096, 4096, sides)
    assert many.bytes_moved.tolist() == [
        rl.tiled_gemm(4096, 4096, 4096, int(side)).bytes_moved for side in sides
    ]
    grid = rl.tiled_gemm(4096, 4096, 4096, (sides, sides[:, None]))
    assert (
        grid.bytes_moved.shape == (3, 3)
        and grid.bytes_moved[2, 0] == rl.tiled_gemm(4096, 4096, 4096, (32, 128)).bytes_moved
    )


@given(st.integers(1, 3000), st.integers(1, 3000), TILES, TILES)
def test_tile_efficiency_by_counting_tiles(m, n, tile_m, tile_n):
    tiles = len(range(0, m, tile_m)) * len(range(0, n, tile_n))
    assert rl.tile_count(m, n, (tile_m, tile_n)) == tiles
    assert (
        1
        >= rl.tile_efficiency(m, n, (tile_m, tile_n))
        == pytest.approx(m * n / (tiles * tile_m * tile_n))
    )
    assert rl.tile_efficiency(m, n, (m, n)) == 1


@given(st.integers(1, 10_000), st.integers(1, 500))
def test_waves_by_dealing_out_the_tiles(tiles, units):
    waves, left = 0, tiles
    while left > 0:
        waves, left = waves + 1, left - units
    assert 1 >= rl.wave_efficiency(tiles, units) == pytest.approx(tiles / (waves * units))
    assert rl.wave_efficiency(tiles * units, units) == 1


def test_io_lower_bound_binds_where_it_should():
    """For 228 KiB of fp32 the compulsory traffic is the stronger bound up to about n = 430,
    sqrt(S)/s the best intensity beyond."""
    fast = 228 * 1024 / 4
    assert (
        rl.io_lower_bound(430, 430, 430, fast) == 3 * 430**2
        and rl.io_lower_bound(450, 450, 450, fast) > 3 * 450**2
    )
    n = 2.0**24
    assert 2 * n**3 / (4 * rl.io_lower_bound(n, n, n, fast)) == pytest.approx(
        fast**0.5 / 4, rel=1e-3
    )


def test_the_tightest_io_lower_bound():
    """Kwasniewski and others, 2019: 2mnk/sqrt(S) + mn. It leaves the 4096-cube on 228 KiB 58.7
    FLOP/byte where the older bound left 60.4, and rules as soon as C does not fit."""
    fast, n = 228 * 1024 / 4, 4096
    older, newer = (
        rl.io_lower_bound(n, n, n, fast, tightest=tightest) for tightest in (False, True)
    )
    assert 2 * n**3 / (4 * older) == pytest.approx(60.41, abs=0.01)
    assert 2 * n**3 / (4 * newer) == pytest.approx(58.67, abs=0.01)
    side = int(fast**0.5)
    assert rl.io_lower_bound(side, side, side, fast, tightest=True) == 3 * side**2
    assert (
        rl.io_lower_bound(side + 1, side + 1, side + 1, fast, tightest=True) > 3 * (side + 1) ** 2
    )


def test_fp64_sums_are_fp64():
    assert rl.tile_memory(64, "fp64", tile_k=8) == 64 * 64 * 8 + 2 * (64 + 64) * 8 * 8


def test_fast_memory_of_a_tile():
    """228 KiB of fp32 are full at b = 240, with one column of A and one row of B beside C's tile;
    panels and two buffers need more."""
    room = rl.machine("house chip").capacity("shared memory")
    assert room == 228 * 1024 and rl.tile_memory(240) <= room < rl.tile_memory(241)
    tile_m, tile_n, tile_k = 128, 64, 32
    panels = [np.zeros(shape, np.float16) for shape in 2 * [(tile_m, tile_k), (tile_k, tile_n)]]
    total = sum(panel.nbytes for panel in panels) + np.zeros((tile_m, tile_n), np.float32).nbytes
    assert rl.tile_memory((tile_m, tile_n), "fp16", tile_k=tile_k) == total
    assert (
        rl.tile_memory((tile_m, tile_n), "fp16", tile_k=tile_k, sums="fp16")
        == total - 2 * tile_m * tile_n
    )
    thin = sum(np.zeros(side, np.float16).nbytes for side in (tile_m, tile_n))
    for sums, dtype in ((None, np.float16), ("fp32", np.float32)):
        held = thin + np.zeros((tile_m, tile_n), dtype).nbytes
        assert rl.tile_memory((tile_m, tile_n), "fp16", sums=sums) == held


def test_shares_and_counts_are_plain_floats():
    values = (
        rl.tile_count(5, 5, 2),
        rl.tile_efficiency(5, 5, 2),
        rl.wave_efficiency(5, 2),
        rl.io_lower_bound(5, 5, 5, 9),
        rl.tile_memory(5),
    )
    assert {type(value) for value in values} == {float}
