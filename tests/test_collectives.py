"""Collectives: formulas against collectives that really move arrays, and the laws between them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl

WAYS = ["switch", "mesh", "ring", "two-way ring", "line"]
GRIDS = [(1,), (4,), (2, 2), (3, 3), (4, 4), (2, 3), (5, 3), (1, 4), (2, 2, 2), (3, 2, 4)]
BYTES, RANKS = st.floats(0, 1e15), st.integers(1, 5000)
COLLECTIVE = {
    "all_gather": rl.all_gather,
    "reduce_scatter": rl.reduce_scatter,
    "all_reduce": rl.all_reduce,
    "all_to_all": rl.all_to_all,
}
NVLINK = replace(rl.link("NVLink 4"), latency=10e-6, domain=None)


def wholes(ranks, seed=0):
    """One whole array a rank, of small whole numbers, so that sums are exact; it can be cut among
    the ranks, on three axes, and in halves."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 10, (12 * ranks, 2)) for _ in range(ranks)]


def agrees(transfer, counted):
    assert transfer.bytes_sent == pytest.approx(counted.bytes_sent)
    assert transfer.bytes_on_link == pytest.approx(counted.bytes_on_link)
    assert transfer.steps == counted.steps


CASES = [(ranks, way) for ranks in (1, 2, 3, 4, 5, 8, 9) for way in WAYS] + [
    (int(np.prod(sides)), rl.Torus(sides)) for sides in GRIDS
]


@pytest.mark.parametrize(("ranks", "way"), CASES, ids=str)
def test_formulas_equal_what_arrays_that_really_move_send(ranks, way):
    arrays = wholes(ranks)
    total, each = sum(arrays), 12
    nbytes = total.nbytes

    scattered = rl.counted_reduce_scatter(arrays, way)
    assert np.array_equal(np.concatenate(scattered.results), total)
    agrees(rl.reduce_scatter(nbytes, ranks, over=way), scattered)

    gathered = rl.counted_all_gather(scattered.results, way)
    assert all(np.array_equal(result, total) for result in gathered.results)
    agrees(rl.all_gather(nbytes, ranks, over=way), gathered)

    reduced = rl.counted_all_reduce(arrays, way)
    assert all(np.array_equal(result, total) for result in reduced.results)
    agrees(rl.all_reduce(nbytes, ranks, over=way), reduced)

    exchanged = rl.counted_all_to_all(arrays, way)
    for rank, result in enumerate(exchanged.results):
        blocks = [array[rank * each : (rank + 1) * each] for array in arrays]
        assert np.array_equal(result, np.concatenate(blocks))
    agrees(rl.all_to_all(ranks * nbytes, ranks, over=way), exchanged)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("way", ["one shot", "adding switch"])
def test_the_two_ways_of_an_all_reduce_alone(way, ranks):
    arrays = wholes(ranks)
    counted = rl.counted_all_reduce(arrays, way)
    assert all(np.array_equal(result, sum(arrays)) for result in counted.results)
    agrees(rl.all_reduce(arrays[0].nbytes, ranks, over=way), counted)
    with pytest.raises(KeyError, match="choose one of switch, mesh, ring, two-way ring, line$"):
        rl.all_gather(8, ranks, over=way)


def test_counted_collectives_leave_what_they_are_given_alone():
    arrays = wholes(4)
    before = [array.copy() for array in arrays]
    for way in (*WAYS, rl.Torus((2, 2)), "one shot", "adding switch"):
        rl.counted_all_reduce(arrays, way)
    for way in (*WAYS, rl.Torus((2, 2))):
        rl.counted_all_to_all(arrays, way)
        rl.counted_all_gather(arrays, way)
    assert all(map(np.array_equal, arrays, before))


@given(BYTES, RANKS, st.sampled_from(WAYS))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(nbytes, ranks, way):
    apart = rl.reduce_scatter(nbytes, ranks, over=way) + rl.all_gather(nbytes, ranks, over=way)
    assert rl.all_reduce(nbytes, ranks, over=way) == apart


@given(BYTES, RANKS)
def test_no_way_sends_less_than_must_be_sent(nbytes, ranks):
    """What a rank ends with and did not have must have come from others."""
    least = nbytes * (ranks - 1) / ranks
    for way in WAYS:
        assert rl.all_gather(nbytes, ranks, over=way).bytes_sent >= least * (1 - 1e-12)
        exchanged = rl.all_to_all(nbytes, ranks, over=way)
        assert exchanged.bytes_sent >= least / ranks * (1 - 1e-12)
        assert exchanged.bytes_on_link <= exchanged.bytes_sent


@given(RANKS)
def test_nccl_tests_factors_are_the_bytes_on_a_ring(ranks):
    for name in ("all_gather", "reduce_scatter", "all_reduce"):
        sent = COLLECTIVE[name](1.0, ranks, over="ring").bytes_sent
        assert rl.bus_factor(name, ranks) == pytest.approx(sent)
    # of an all-to-all they take S to be what one rank holds
    assert rl.bus_factor("all_to_all", ranks) == pytest.approx(
        rl.all_to_all(float(ranks), ranks, over="switch").bytes_sent
    )


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "all_reduce"])
def test_without_latency_bus_bandwidth_is_the_link_one_way(name):
    link = replace(NVLINK, latency=0.0)
    time = COLLECTIVE[name](1e9, 8, link).time
    assert rl.bus_bandwidth(name, 1e9, 8, time) == pytest.approx(link.bandwidth)
    assert rl.algorithm_bandwidth(1e9, time) * rl.bus_factor(name, 8) == pytest.approx(450e9)


def test_a_switch_that_adds_makes_bus_bandwidth_exceed_the_wire():
    link = replace(NVLINK, latency=0.0)
    time = rl.all_reduce(1e9, 8, link, over="adding switch").time
    assert rl.bus_bandwidth("all_reduce", 1e9, 8, time) == pytest.approx(1.75 * 450e9)


def test_time_is_latency_plus_bytes_over_bandwidth():
    assert rl.all_reduce(45e6, 8, NVLINK, over="ring").time == pytest.approx(
        14 * 10e-6 + 1.75 * 45e6 / 450e9
    )
    assert rl.all_reduce(45e6, 8, NVLINK).time == pytest.approx(2 * 10e-6 + 1.75 * 45e6 / 450e9)
    assert rl.send(45e6, NVLINK, hops=3).time == pytest.approx(3 * 10e-6 + 1e-4)


def test_one_shot_pays_for_small_arrays_only():
    sizes = np.array([1e3, 1e9])
    shot = rl.all_reduce(sizes, 8, NVLINK, over="one shot").time
    usual = rl.all_reduce(sizes, 8, NVLINK).time
    assert (shot < usual).tolist() == [True, False]


def test_both_ways_round_a_ring_take_half_and_an_exchange_a_quarter_of_a_gather():
    """JAX scaling book: an all-to-all on a ring costs a quarter of an all-gather of the array."""
    one, two = (rl.all_gather(1.0, 4096, over=way) for way in ("ring", "two-way ring"))
    assert two.bytes_on_link == one.bytes_on_link / 2 and two.steps == 2048
    exchanged = rl.all_to_all(1.0, 4096, over="two-way ring")
    assert exchanged.bytes_on_link / two.bytes_on_link == pytest.approx(1 / 4, rel=1e-3)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_torus_of_k_axes_has_k_times_the_cables_of_a_ring(axes):
    torus, ranks = rl.Torus((4,) * axes), 4**axes
    gathered = rl.all_gather(1.0, ranks, over=torus)
    assert gathered.bytes_on_link == pytest.approx((ranks - 1) / ranks / (2 * axes))
    # an all-to-all keeps the cut through the middle busy all the time
    cut = rl.bisection_bandwidth(rl.Link(1.0), ranks, over=torus)
    assert rl.all_to_all(1.0, ranks, over=torus).bytes_on_link == pytest.approx(1 / 4 / cut)


def test_the_link_says_how_it_is_wired_and_how_many_it_joins():
    mesh = rl.all_reduce(1e9, 8, "Infinity Fabric MI300X")
    assert mesh == rl.all_reduce(1e9, 8, rl.link("Infinity Fabric MI300X"), over="mesh")
    assert mesh.bytes_on_link == 2e9 / 8 and mesh.time == pytest.approx(2e9 / 8 / 64e9)
    with pytest.raises(ValueError, match=r"ranks must be at most 8 .*NVLink 4 joins; got 32"):
        rl.all_reduce(1e9, 32, "NVLink 4")
    with pytest.raises(ValueError, match="over must be said on ICI v5e"):
        rl.all_reduce(1e9, 16, "ICI v5e")
    with pytest.raises(ValueError, match=r"ranks must be 16 \(ranks\) on Torus"):
        rl.all_reduce(1e9, 8, over=rl.Torus((4, 4)))


def test_between_groups_goes_one_shard_only():
    inside, between = replace(NVLINK, domain=8), rl.link("InfiniBand NDR")
    parts = rl.hierarchical_all_reduce(4e9, 4, 8, inside, between)
    assert [part.link for part in parts] == [inside, between, inside]
    assert parts[1] == rl.all_reduce(0.5e9, 4, between)
    assert parts[0].bytes_sent == parts[2].bytes_sent == 4e9 * 7 / 8
    flat = rl.all_reduce(4e9, 32, between).time
    assert sum(part.time for part in parts) < flat


def test_transfers_add_up_like_works():
    once = rl.all_reduce(1e6, 4, NVLINK)
    assert sum([once, once, once]) == 3 * once == np.float64(3) * once
    assert (3 * once).time == pytest.approx(3 * once.time)
    with pytest.raises(ValueError, match="link must be the same"):
        once + rl.send(1e6, "PCIe 5 x16")
    with pytest.raises(ValueError, match="link must be given for a time"):
        _ = rl.all_reduce(1e6, 4).time
    with pytest.raises(TypeError):
        once + 1


def test_arguments_broadcast():
    sizes, ranks = np.array([[1e3], [1e6]]), np.array([1, 2, 8])
    many = rl.all_reduce(sizes, ranks, NVLINK, over="two-way ring")
    assert many.bytes_sent.shape == many.steps.shape == many.time.shape == (2, 3)
    assert many.bytes_sent[1, 2] == rl.all_reduce(1e6, 8, over="two-way ring").bytes_sent
    assert (many.bytes_sent[:, 0] == 0).all() and (many.steps[:, 0] == 0).all()
    shares = [rl.all_to_all(1e6, n, over="line").bytes_sent for n in (1, 2, 8)]
    assert rl.all_to_all(1e6, ranks, over="line").bytes_sent.tolist() == shares


@pytest.mark.parametrize(
    ("way", "cables"),
    [("switch", 4), ("mesh", 16), ("ring", 1), ("two-way ring", 2), ("line", 1)],
)
def test_bisection_of_eight(way, cables):
    assert rl.bisection_bandwidth(rl.Link(10.0), 8, over=way) == cables * 10
