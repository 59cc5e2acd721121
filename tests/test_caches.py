"""The cache simulation against stack distances, closed counts, and the power-of-two conflict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

# few different addresses, so that most come back, or many
ADDRESSES = st.lists(st.integers(0, 20), min_size=40, max_size=200) | st.lists(
    st.integers(0, 2000), max_size=200
)


def misses_by_stack_distance(addresses, line, lines):
    """Fully associative: an access misses if `lines` or more other lines were touched since the
    last touch of its own."""
    touched, misses = [address // line for address in addresses], 0
    for now, tag in enumerate(touched):
        before = [i for i in range(now) if touched[i] == tag]
        misses += not before or len(set(touched[before[-1] + 1 : now])) >= lines
    return misses


@given(ADDRESSES, st.sampled_from([1, 4, 64]), st.integers(1, 12))
def test_one_set_against_stack_distances(addresses, line, ways):
    counted = rl.count_misses(addresses, capacity=line * ways, line=line, ways=ways)
    expected = misses_by_stack_distance(addresses, line, ways)
    assert (counted.accesses, counted.misses, counted.bytes_moved) == (
        len(addresses),
        expected,
        expected * line,
    )


@given(ADDRESSES, st.sampled_from([1, 16]), st.integers(1, 4), st.integers(1, 8))
def test_each_set_is_a_small_cache_of_its_own(addresses, line, ways, sets):
    by_set = [[a for a in addresses if a // line % sets == s] for s in range(sets)]
    expected = sum(misses_by_stack_distance(part, line, ways) for part in by_set)
    assert (
        rl.count_misses(addresses, capacity=line * ways * sets, line=line, ways=ways).misses
        == expected
    )


@given(ADDRESSES, st.integers(1, 10))
def test_a_larger_cache_of_one_set_never_misses_more(addresses, ways):
    assert (
        rl.count_misses(addresses, 16 * ways + 16, 16, ways + 1).misses
        <= rl.count_misses(addresses, 16 * ways, 16, ways).misses
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
def test_addresses_of_any_width(dtype):
    addresses = np.array([0, 100, 127, 0, 64], dtype)
    assert rl.count_misses(addresses, 8 * 1024, line=1024) == rl.count_misses(
        addresses.tolist(), 8 * 1024, line=1024
    )


@pytest.mark.parametrize("order", ["ijk", "ikj"])
def test_loops_touch_what_a_real_product_touches(order):
    """The same nest over a recording array: reads of A and B and writes of C in order, but for the
    operand that a register keeps."""
    n, seen = 4, []
    for i in range(n):
        for outer in range(n):
            # (i, k, j) each time
            inner = [(i, k, outer) if order == "ijk" else (i, outer, k) for k in range(n)]
            if order == "ikj":
                seen.append(4 * (i * n + outer))
            for row, k, j in inner:
                a, b, c = 4 * (row * n + k), 4 * (n * n + k * n + j), 4 * (2 * n * n + row * n + j)
                seen += [a, b] if order == "ijk" else [b, c]
            if order == "ijk":
                seen.append(4 * (2 * n * n + i * n + outer))
    assert list(rl.loop_addresses(n, order)) == seen


@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 3))
def test_the_blocked_order_does_the_same_multiply_adds_square_by_square(n, block, more):
    """The same B and C for each A as in i, k, j; and B's squares are walked one after the other."""
    pitch, seen = n + more, []
    for left in range(0, n, block):
        for top in range(0, n, block):
            for i in range(n):
                for k in range(top, min(top + block, n)):
                    seen.append(4 * (i * pitch + k))
                    for j in range(left, min(left + block, n)):
                        seen += [4 * ((n + k) * pitch + j), 4 * ((2 * n + i) * pitch + j)]
    assert list(rl.loop_addresses(n, "blocked", pitch, block=block)) == seen
    assert list(rl.loop_addresses(n, "blocked", pitch, block=n)) == list(
        rl.loop_addresses(n, "ikj", pitch)
    )


def test_a_square_that_fits_is_fetched_once():
    """16 lines of B stay in a cache of 32 while all rows of A pass: B costs its own lines, A and C
    one line for each row and square."""
    n, line = 64, 16
    squares = (n // line) ** 2
    found = rl.loop_misses(n, "blocked", capacity=2048, ways=32)
    assert found.misses == pytest.approx(n * n // line + 2 * n * squares, rel=0.1)
    assert found.misses < rl.loop_misses(n, "ikj", capacity=2048, ways=32).misses / 6


@given(st.lists(st.integers(0, 600), max_size=40), st.integers(1, 33), st.sampled_from([1, 4, 8]))
def test_banks_by_serving_them_turn_by_turn(addresses, banks, word):
    """In each turn every bank hands out one word, to all who asked for it."""
    waiting, turns = {address // word for address in addresses}, 0
    while waiting:
        served = {each % banks: each for each in waiting}
        waiting -= set(served.values())
        turns += 1
    assert rl.bank_turns(addresses, banks, word) == turns


def test_strides_of_a_warp():
    """A warp that reads a column of a 32-wide array takes 32 turns, of a 33-wide one a single
    turn; a broadcast takes one."""
    turns = [
        rl.bank_turns(4 * stride * thread for thread in range(32)) for stride in (0, 1, 2, 32, 33)
    ]
    assert turns == [1, 1, 2, 32, 1]


@pytest.mark.parametrize("order", ["ijk", "ikj", "blocked"])
def test_a_cache_that_holds_everything_misses_each_line_once(order):
    n = 16
    assert rl.loop_misses(n, order, capacity=4 * 4096, ways=4).misses == 3 * n * n * 4 // 64


def test_ikj_reads_lines_and_ijk_wastes_them():
    """fp32, 64-byte lines, a cache too small for B: ikj misses one B element in 16, ijk each
    one."""
    n = 48
    ijk, ikj = (rl.loop_misses(n, order, capacity=2048, ways=8) for order in ("ijk", "ikj"))
    assert ijk.misses > n**3 and ikj.misses < 1.1 * n**3 / 16 + n * n
    assert ijk.misses > 14 * ikj.misses


def test_a_power_of_two_pitch_falls_into_few_sets():
    """A column of B at n = 64 touches 64 lines, 256 byte apart: in a cache of 16 sets all of them
    fall into 4. At n + 16 into all 16."""
    cache = dict(capacity=64 * 8 * 16, line=64, ways=8)
    power, padded = rl.loop_misses(64, "ijk", **cache), rl.loop_misses(64, "ijk", pitch=80, **cache)
    larger = rl.loop_misses(80, "ijk", **cache)
    assert power.accesses == padded.accesses < larger.accesses
    # the larger product misses less
    assert power.misses > 10 * padded.misses and power.misses > 3 * larger.misses
