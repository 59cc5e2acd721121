"""Serving: each formula against a count, a simulation or a published figure."""

import numpy as np
import pytest
from data.published_serving import BARE, ROWS

import roofline_lib as rl

LLAMA = rl.transformer("llama-3-8b")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_published(row):
    value, limit = row.compute(), row.tolerance
    if isinstance(limit, str):
        limit = float(limit.removesuffix("%")) / 100 * row.published
    if row.ours is None:
        assert value == pytest.approx(row.published, abs=limit)
    else:
        assert value == pytest.approx(row.ours, rel=1e-5)
        assert abs(value - row.published) > limit and row.note


def test_rows_stand_once():
    ids = [row.id for row in ROWS]
    assert len(set(ids)) == len(ids) and not set(ids) & set(BARE)


# What is waited for


def test_a_request_is_the_sum_of_its_gaps():
    arrivals = np.array([0.9, 1.0, 1.3, 1.35, 1.5])  # of each token, the request sent at 0
    ttft, latency = arrivals[0], arrivals[-1]
    tpot = rl.time_per_output_token(latency, ttft, len(arrivals))
    assert tpot == pytest.approx(np.diff(arrivals).mean())
    assert rl.request_latency(ttft, tpot, len(arrivals)) == pytest.approx(latency)
    # with three tokens in the first answer two gaps are left
    assert rl.time_per_output_token(latency, ttft, 5, first_chunk=3) == pytest.approx(0.3)


def test_goodput_counts_requests_that_keep_both_limits():
    limits = rl.Limits(ttft=2.0, tpot=0.2)
    ttft, tpot = [1.0, 2.0, 2.1, 0.5], [0.1, 0.2, 0.1, 0.3]
    assert rl.goodput(ttft, tpot, 10.0, limits) == 0.2
    assert rl.MLPERF_LIMITS["llama2-70b conversational"] == limits


def test_littles_law_against_a_day_of_requests():
    """Requests that come at random: the mean number in flight, minute by minute."""
    rng = np.random.default_rng(3)
    begin = np.sort(rng.uniform(0, 10_000, 20_000))
    end = begin + rng.exponential(7.0, 20_000)
    moments = np.linspace(100, 9_900, 500)
    in_flight = [((begin <= t) & (t < end)).sum() for t in moments]
    assert rl.requests_in_flight(2.0, 7.0) == 14
    assert np.mean(in_flight) == pytest.approx(14, rel=0.05)


# Throughput against wait


def test_a_decode_curve_is_its_steps():
    curve = rl.decode_curve(LLAMA, "H200 SXM", 128, [1, 16, 256], kernels=900, per_kernel=2e-6)
    for batch, wait, throughput in zip(curve.batch, curve.wait, curve.throughput, strict=True):
        step = rl.step_time(LLAMA.decode(batch, 128), "H200 SXM", "bf16", 900, 2e-6)
        assert wait == pytest.approx(step.forecast) and throughput == pytest.approx(batch / wait)
    # more users for hardly more wait, until attention and arithmetic count
    assert curve.throughput[2] > 100 * curve.throughput[0]
    assert curve.wait[2] < 2.5 * curve.wait[0]
    bound = rl.decode_curve("llama-3-8b", "H200 SXM", 128, [1, 16, 256])
    assert (bound.wait < curve.wait).all()


def test_pareto_points_against_every_pair():
    rng = np.random.default_rng(0)
    wait, throughput = rng.integers(1, 8, (2, 40))
    kept = rl.pareto_points(wait, throughput)
    for i in range(40):
        beaten = any(
            wait[j] <= wait[i]
            and throughput[j] >= throughput[i]
            and (wait[j], throughput[j]) != (wait[i], throughput[i])
            for j in range(40)
        )
        assert kept[i] == (not beaten)


# Batching and the cache


def test_static_batches_against_a_table_of_steps():
    lengths = np.array([3, 10, 5, 6])
    table = np.arange(lengths.max()) < lengths[:, None]
    assert rl.static_batch_use(lengths) == table.mean()
    assert rl.static_batch_use([7, 7]) == 1
    with pytest.raises(ValueError, match="one number for each request"):
        rl.static_batch_use(7)


def test_a_free_chunk_ends_where_the_step_starts_to_take_longer():
    """The H200's sheet: 206 rows. One token more makes a product of large weights take longer."""
    h200 = rl.machine("H200 SXM")
    free = rl.free_chunk(1, h200, "bf16")
    assert free == 205
    for more, longer in ((0, False), (1, True)):
        flops = 2 * (1 + free + more) * 1e9
        weights = rl.Work(flops, 2e9)
        assert (rl.bound(weights, h200, "bf16").bound_by == "compute") == longer
    assert rl.free_chunk([206, 207, 5000], h200, "bf16").tolist() == [0, 0, 0]
    # weights of half the bytes reach the ridge with half the rows
    assert rl.free_chunk(1, h200, "bf16", weights="fp8") == 102


def test_prefix_hits_save_their_prefill():
    """What the hits save is the prefill of those tokens but for attention to them."""
    hits, computed = rl.prefix_hit_tokens(1000, 0.6)
    assert (hits, computed) == (600, 400)
    whole = sum(LLAMA.prefill(1, 1000).values()).flops
    rest = sum(LLAMA.prefill(1, computed, cached=hits).values()).flops
    assert rest == pytest.approx(0.4 * whole, rel=0.02)


def test_pages_against_every_length():
    block = 16
    lengths = np.arange(1, 1 + 50 * block)
    waste = -lengths % block
    assert rl.page_waste(block) == waste.mean() == 7.5
    np.testing.assert_allclose(rl.page_use(lengths, block), lengths / (lengths + waste))


# Prefill and decode apart


def test_balanced_sides_pass_the_same_requests():
    ratio = rl.prefill_chips_per_decode_chip(prefill_time=0.2, step=0.02, batch=64, tokens=128)
    prefill_rate, decode_rate = ratio / 0.2, 64 / (0.02 * 128)
    assert prefill_rate == pytest.approx(decode_rate)
    assert ratio == pytest.approx(5)
    assert rl.disaggregated_rate(1 / 0.2, decode_rate, 5, 1) == pytest.approx(decode_rate / 6)
    # a chip more on either side helps nobody
    assert rl.disaggregated_rate(1 / 0.2, decode_rate, 6, 1) < decode_rate / 6
    assert rl.disaggregated_rate(1 / 0.2, decode_rate, 5, 2) < decode_rate / 6


def test_the_cache_that_moves_between_them():
    """OPT-66B, 512 tokens, 10 requests a second: 96.6 Gbit/s (the paper prints 90)."""
    model = rl.Transformer(64, 9216, 72, 72, 128, 36864, 50272, gated=False, tied=True)
    assert 8 * 10 * model.kv_bytes(1, 512) == pytest.approx(96.6e9, rel=1e-3)


# Speculation


@pytest.mark.parametrize("acceptance, guesses", [(0.0, 3), (0.5, 1), (0.8, 5), (0.9, 2), (1.0, 4)])
def test_speculation_against_a_game(acceptance, guesses):
    """Tokens up to the first refusal, and the one that the model adds itself."""
    rng = np.random.default_rng(1)
    accepted = rng.random((200_000, guesses)) < acceptance
    tokens = np.cumprod(accepted, axis=1).sum(axis=1) + 1
    assert rl.expected_tokens(acceptance, guesses) == pytest.approx(tokens.mean(), rel=0.01)


def test_speculation_at_the_paper_s_figures():
    """Acceptance 0.8, five guesses, a free draft: 3.69 times sooner for 1.63 times the FLOP."""
    assert rl.speculation_speedup(0.8, 5) == pytest.approx(3.69, abs=0.005)
    assert rl.speculation_operations(0.8, 5) == pytest.approx(1.63, abs=0.005)
    # a draft as dear as the model can only lose
    assert rl.speculation_speedup(0.8, 5, draft_time=1.0) < 1
    assert rl.speculation_operations(1.0, 5, 1.0) == pytest.approx(11 / 6)
    assert rl.expected_tokens([0.0, 1.0], 2).tolist() == [1.0, 3.0]


def test_verifying_is_nearly_free_until_the_batch_reaches_the_ridge():
    def stretch(batch):
        one, six = (
            rl.time_in_sequence(
                LLAMA.decode(batch, 1000, queries=queries).values(), "H200 SXM", "bf16"
            )
            for queries in (1, 6)
        )
        return six / one

    assert stretch(1) < 1.02 < 2 < stretch(256)


# What it costs


def test_a_day_is_paid_by_the_hour_and_sold_by_the_token():
    """DeepSeek's day: 16 $ a node and hour, 14.8e3 token/s: 0.30 $ a million."""
    assert rl.cost_per_million_tokens(16, 14.8e3) == pytest.approx(0.300, abs=5e-4)
    day = 14.8e3 * 86400
    assert rl.cost_per_million_tokens(16, 14.8e3) * day / 1e6 == pytest.approx(16 * 24)
    assert rl.servers_needed(day, 86400, 14.8e3) == pytest.approx(1)
