"""Models on several chips: nothing is lost among the chips, bytes equal those of arrays that really
move, and each rule is where two times meet."""

from dataclasses import replace

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.parallel import chip_parameters

DENSE = rl.Transformer(4, 64, 8, 4, 16, 128, 96)
MIXTURE = rl.Transformer(4, 64, 8, 4, 16, 32, 96, experts=16, experts_per_token=2)
LINK = rl.Link(bandwidth=450e9, latency=5e-6, name="test link")
CHIP = rl.Machine("test chip", {"bf16": 990e12}, {"DRAM": 3.35e12})


def flops(works):
    return sum(work.flops for work in works.values())


@pytest.mark.parametrize("ways", [dict(), dict(tensor=4), dict(data=2), dict(tensor=2, data=4)])
def test_no_operation_is_lost_among_the_chips(ways):
    parallel = rl.Parallel(**ways)
    for name, arguments in (("decode", (8, 300)), ("prefill", (8, 300))):
        whole = flops(getattr(DENSE, name)(*arguments))
        step = getattr(DENSE, name)(*arguments, parallel=parallel)
        assert parallel.chips * flops(step.works) == pytest.approx(whole)
    whole = rl.training_step(DENSE, 8, 300, 3)
    step = rl.training_step(DENSE, 8, 300, 3, parallel=parallel)
    # without ZeRO each replica brings all weights up to date
    updates = parallel.chips * step.works.pop("optimizer").flops
    assert parallel.chips * flops(step.works) == pytest.approx(
        flops(whole) - whole["optimizer"].flops
    )
    norms = (2 * DENSE.layers + 1) * DENSE.d_model
    assert updates / parallel.data == pytest.approx(
        14 * (DENSE.parameters + (parallel.tensor - 1) * norms)
    )


def test_stages_of_a_pipeline_share_the_layers():
    whole, step = DENSE.decode(8, 300), DENSE.decode(8, 300, parallel=rl.Parallel(pipeline=2))
    logits = whole.pop("logits").flops
    assert step.works.pop("logits").flops == logits  # of the last stage
    assert step.stages * flops(step.works) == pytest.approx(flops(whole))
    assert step.kv_bytes == DENSE.kv_bytes(8, 300) / 2
    # the last stage has the head and the last norm, and no embedding
    groups = DENSE.parameters_by_group
    layers = groups["attention"] + groups["ffn"] + groups["other"] - DENSE.d_model
    assert step.weight_bytes == 2 * (layers / 2 + DENSE.d_model + groups["logits"])
    assert step.transfers["sends to the next stage"].bytes_sent == 8 * 64 * 2


def test_a_stage_has_its_share_of_the_layers_without_a_window():
    model = replace(DENSE, layers=8, window=100, windowed_layers=6)
    step = model.decode(8, 1000, parallel=rl.Parallel(pipeline=2))
    assert step.kv_bytes == model.kv_bytes(8, 1000) / 2
    # three layers, of which the busiest stage has one that sees everything
    odd = model.decode(8, 1000, parallel=rl.Parallel(pipeline=3))
    assert odd.kv_bytes == replace(model, layers=3, windowed_layers=2).kv_bytes(8, 1000)


def test_experts_are_shared_and_the_rest_works_on_its_own_sequences():
    whole = MIXTURE.decode(32, 300)
    step = MIXTURE.decode(32, 300, parallel=rl.Parallel(expert=4))
    for name, work in whole.items():
        assert 4 * step.works[name].flops == pytest.approx(work.flops)
    # together they read each expert's weights once, but every chip reads the attention's
    assert 4 * step.works["experts up"].bytes_moved == pytest.approx(
        whole["experts up"].bytes_moved
    )
    assert 4 * step.works["queries"].bytes_moved > 2 * whole["queries"].bytes_moved


def test_weights_and_cache_of_all_chips_are_those_of_the_model():
    norms = (2 * DENSE.layers + 1) * DENSE.d_model
    step = DENSE.decode(8, 300, parallel=rl.Parallel(tensor=4))
    assert 4 * step.weight_bytes == DENSE.weight_bytes() + 3 * 2 * norms
    assert 4 * step.kv_bytes == DENSE.kv_bytes(8, 300)
    assert step.memory == step.weight_bytes + step.kv_bytes
    apart = chip_parameters(MIXTURE, rl.Parallel(expert=4))
    assert {**apart, "experts": 4 * apart["experts"]} == MIXTURE.parameters_by_group
    by_group = {"experts": "mxfp4", "other": "bf16"}
    step = MIXTURE.decode(8, 300, weights=by_group, parallel=rl.Parallel(expert=4))
    rest = MIXTURE.weight_bytes({"experts": "fp4", "other": "bf16"}) - (
        MIXTURE.parameters_by_group["experts"] * 0.5
    )
    assert step.weight_bytes == rest + MIXTURE.parameters_by_group["experts"] / 4 * 4.25 / 8


def test_more_chips_than_kv_heads_hold_copies_of_the_cache():
    few = [DENSE.decode(8, 300, parallel=rl.Parallel(tensor=n)).kv_bytes for n in (1, 2, 4, 8)]
    assert [few[0] / bytes_ for bytes_ in few] == [1, 2, 4, 4]


@pytest.mark.parametrize("ways", [2, 4, 8])
def test_a_layer_that_is_really_cut_into_slices_sends_these_bytes(ways):
    """An FFN by columns, then rows: the chips' results are parts of a sum, and an all-reduce makes
    them the whole. Attention by heads ends with the same all-reduce."""
    rng = np.random.default_rng(ways)
    tokens, d, width = 8, DENSE.d_model, DENSE.d_ff
    x = rng.integers(-3, 4, (tokens, d)).astype(np.float32)
    up, down = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((d, width), (width, d)))
    slices = zip(np.split(up, ways, axis=1), np.split(down, ways, axis=0), strict=True)
    parts = [np.maximum(x @ columns, 0) @ rows for columns, rows in slices]
    counted = rl.counted_all_reduce(parts, "ring")
    assert all(np.array_equal(part, np.maximum(x @ up, 0) @ down) for part in counted.results)
    step = DENSE.decode(tokens, 300, activations="fp32", parallel=rl.Parallel(tensor=ways))
    transfer = step.transfers["all-reduces of tensor slices"]
    assert transfer.bytes_sent == 2 * DENSE.layers * counted.bytes_sent


def test_tokens_that_really_go_to_their_experts_send_these_bytes():
    """Each token goes to its experts' chips and comes back; here the experts are hit evenly."""
    chips, own = 4, 16
    row = np.zeros((MIXTURE.d_model,), np.float16)
    for_each_chip = own * MIXTURE.experts_per_token // chips
    buffers = [np.stack([row] * for_each_chip * chips) for _ in range(chips)]
    there = rl.counted_all_to_all(buffers, "switch")
    back = rl.counted_all_to_all(there.results, "switch")
    step = MIXTURE.decode(own * chips, 300, parallel=rl.Parallel(expert=chips))
    transfer = step.transfers["exchanges with experts"]
    assert transfer.bytes_sent == MIXTURE.layers * (there.bytes_sent + back.bytes_sent)
    sent = rl.expert_bytes(own, MIXTURE.experts_per_token, MIXTURE.d_model, chips)
    assert transfer.bytes_sent == MIXTURE.layers * sent


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_weights_that_are_really_shared_learn_the_same_and_send_these_bytes(zero):
    """Stochastic gradient descent on arrays: whatever is shared, the new weights are the same."""
    ranks, micro_batches = 4, 3
    rng = np.random.default_rng(zero)
    weights = rng.integers(-50, 50, 32).astype(np.float64)
    gradients = rng.integers(-5, 5, (micro_batches, ranks, 32)).astype(np.float64)
    expected = weights - gradients.sum(axis=(0, 1))
    shards, sent = np.split(weights, ranks), 0
    if zero == 0:
        reduced = rl.counted_all_reduce(list(gradients.sum(axis=0)), "ring")
        learned, sent = weights - reduced.results[0], reduced.bytes_sent
    else:
        rounds = gradients if zero > 1 else gradients.sum(axis=0, keepdims=True)
        for of_ranks in rounds:
            if zero == 3:  # forward, and once more backward
                for _ in range(2):
                    sent += rl.counted_all_gather(np.split(weights, ranks), "ring").bytes_sent
            scattered = rl.counted_reduce_scatter(list(of_ranks), "ring")
            sent += scattered.bytes_sent
            shards = [a - b for a, b in zip(shards, scattered.results, strict=True)]
        gathered = rl.counted_all_gather(shards, "ring")
        learned = gathered.results[0]
        if zero < 3:
            sent += gathered.bytes_sent
    assert np.array_equal(learned, expected)
    transfers = rl.gradient_transfers(weights.nbytes, ranks, zero, micro_batches)
    assert sum(transfer.bytes_sent for transfer in transfers.values()) == sent


def test_zero_shares_what_each_stage_names():
    for stage, parts in ((0, (2, 2, 12)), (1, (2, 2, 3)), (2, (2, 0.5, 3)), (3, (0.5, 0.5, 3))):
        memory = rl.zero_memory(1000, 4, stage)
        found = (memory.weights, memory.gradients, memory.optimizer)
        assert found == tuple(1000 * part for part in parts)
    step = rl.training_step(DENSE, 8, 300, parallel=rl.Parallel(data=4, zero=1))
    assert step.works["optimizer"].flops == pytest.approx(14 * DENSE.parameters / 4)
    assert step.memory.activations == rl.training_memory(DENSE, 2, 300).activations


def test_experts_gradients_are_added_up_where_there_are_copies_only():
    """Experts that are shared by 4 chips exist once in each data group."""
    step = rl.training_step(MIXTURE, 8, 300, parallel=rl.Parallel(expert=4, data=2))
    experts = MIXTURE.parameters_by_group["experts"]
    rest = MIXTURE.parameters - experts
    assert step.transfers["all-reduce of gradients of experts"] == rl.all_reduce(experts / 4 * 2, 2)
    assert step.transfers["all-reduce of gradients"] == rl.all_reduce(rest * 2, 8)
    assert step.memory.weights == 2 * (rest + experts / 4)
    shared = rl.training_step(MIXTURE, 8, 300, parallel=rl.Parallel(expert=4, data=2, zero=3))
    assert shared.memory.weights == 2 * (rest / 8 + experts / 4 / 2)
    only = rl.training_step(MIXTURE, 8, 300, parallel=rl.Parallel(expert=4))
    assert "all-reduce of gradients of experts" not in only.transfers


def test_training_sends_forward_backward_and_where_it_computes_again():
    forward = DENSE.prefill(8, 300, parallel=rl.Parallel(tensor=2), link=LINK)
    (once,) = forward.transfers.values()
    for keep, passes in (("no scores", 2), ("layer inputs", 3)):
        step = rl.training_step(DENSE, 8, 300, 5, keep, parallel=rl.Parallel(tensor=2), link=LINK)
        assert step.transfers["all-reduces of tensor slices"] == 5 * passes * once


# Rules


def test_data_parallelism_hides_where_backward_and_all_reduce_take_the_same():
    parameters, ranks = 7e9, 16
    tokens = rl.data_parallel_tokens(CHIP, "bf16", LINK, ranks)
    backward = 4 * parameters * tokens / CHIP.peak("bf16")
    link = replace(LINK, latency=0.0)
    assert rl.all_reduce(2 * parameters, ranks, link).time == pytest.approx(backward)
    many = rl.data_parallel_tokens(CHIP, "bf16", LINK)
    assert many == pytest.approx(2200) and tokens == pytest.approx(many * 15 / 16)
    assert rl.data_parallel_tokens(CHIP, "bf16", LINK, sparsity=32) == 32 * many


@pytest.mark.parametrize("matrices", [2, 3])
@pytest.mark.parametrize("tokens", [10, 1000])
def test_tensor_parallelism_hides_up_to_the_limit(matrices, tokens):
    d, width = 8192, 28672
    ranks = rl.tensor_parallel_limit(width, CHIP, "bf16", LINK, matrices=matrices)
    compute = matrices * 2 * tokens * d * width / ranks / CHIP.peak("bf16")
    one_way = rl.all_reduce(2.0 * tokens * d, 10**9, replace(LINK, latency=0.0)).time
    assert one_way == pytest.approx(compute)


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_layer_just_large_enough_takes_as_long_on_several_chips_as_on_one(ranks):
    latency, bandwidth = 9e-6, 4.4e12
    layer = rl.least_layer_bytes(latency, bandwidth, ranks)
    on_one = layer / bandwidth
    on_all = layer / (ranks * bandwidth) + 2 * latency
    assert on_all == pytest.approx(on_one)
    if ranks == 2:
        assert layer == pytest.approx(4 * latency * bandwidth)


def test_a_pipeline_whose_stages_really_wait_for_each_other_stands_idle_so_long():
    for stages, micro_batches in ((1, 4), (4, 1), (4, 8), (8, 32)):
        done = np.zeros((stages, micro_batches))
        for stage in range(stages):
            for batch in range(micro_batches):
                before = done[stage - 1, batch] if stage else 0
                free = done[stage, batch - 1] if batch else 0
                done[stage, batch] = max(before, free) + 1
        idle = done[-1, -1] - micro_batches
        assert rl.pipeline_bubble(stages, micro_batches) == idle / micro_batches
    assert rl.pipeline_bubble(8, 32) == pytest.approx(0.219, abs=5e-4)
    assert rl.pipeline_bubble(8, 32, interleaved=2) == rl.pipeline_bubble(8, 32) / 2


def test_times_of_a_step():
    step = DENSE.decode(8, 300, parallel=rl.Parallel(tensor=2, pipeline=2), link=LINK)
    work = rl.time_in_sequence(step.works.values(), CHIP, "bf16")
    sent = sum(transfer.time for transfer in step.transfers.values())
    assert step.time(CHIP, "bf16") == pytest.approx(2 * (work + sent))
    assert step.overlapped_time(CHIP, "bf16") == pytest.approx(2 * max(work, sent))
    apart = {"tensor": LINK, "pipeline": "InfiniBand NDR"}
    step = DENSE.decode(8, 300, parallel=rl.Parallel(tensor=2, pipeline=2), link=apart)
    assert step.transfers["sends to the next stage"].link.name == "InfiniBand NDR"
    training = rl.training_step(DENSE, 8, 300, 4, parallel=rl.Parallel(pipeline=2), link=LINK)
    works = rl.time_in_sequence(training.works.values(), CHIP, "bf16")
    assert training.work_time(CHIP, "bf16") == pytest.approx(works * 1.25)
    assert training.time(CHIP, "bf16") == training.work_time(CHIP, "bf16") + training.transfer_time


def test_a_step_and_its_transfers_go_into_a_forecast():
    step = DENSE.decode(8, 300, parallel=rl.Parallel(tensor=2), link=LINK)
    forecast = rl.step_time(step.works, CHIP, "bf16", transfers=step.transfers)
    assert forecast.work_time + forecast.transfer_time == step.time(CHIP, "bf16")


def test_batches_may_be_arrays():
    batch = np.array([8, 16, 64])
    many = DENSE.decode(batch, 300, parallel=rl.Parallel(tensor=2, data=4), link=LINK)
    assert many.time(CHIP, "bf16").tolist() == pytest.approx(
        [
            DENSE.decode(b, 300, parallel=rl.Parallel(tensor=2, data=4), link=LINK).time(
                CHIP, "bf16"
            )
            for b in batch
        ]
    )


@pytest.mark.parametrize(
    ("model", "ways", "match"),
    [
        (DENSE, dict(tensor=3), r"tensor must divide heads \(8\); got 3"),
        (DENSE, dict(tensor=16), r"tensor must divide heads"),
        (DENSE, dict(pipeline=5), r"pipeline must be at most layers \(4\); got 5"),
        (DENSE, dict(expert=2), r"expert must divide the model's experts \(1\); got 2"),
        (MIXTURE, dict(expert=3), r"expert must divide|batch must be a multiple"),
        (DENSE, dict(data=3), r"batch must be a multiple of the 3 replicas .*; got 8"),
    ],
)
def test_what_does_not_divide_is_an_error(model, ways, match):
    with pytest.raises(ValueError, match=match):
        model.decode(8, 300, parallel=rl.Parallel(**ways))


def test_chips_are_counted_over_all_kinds():
    assert rl.Parallel(tensor=2, data=3, pipeline=5, expert=7).chips == 2 * 3 * 5 * 7


def test_other_bad_arguments():
    for bad in (dict(tensor=0), dict(data=1.5), dict(zero=4), dict(zero=-1)):
        with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be"):
            rl.Parallel(**bad)
    with pytest.raises(ValueError, match="parallel must be a Parallel"):
        DENSE.decode(8, 300, parallel=8)
    with pytest.raises(KeyError, match="kind of link 'tensors' is not known"):
        DENSE.decode(8, 300, parallel=rl.Parallel(tensor=2), link={"tensors": LINK})
    with pytest.raises(ValueError, match="link must be given for a time"):
        DENSE.decode(8, 300, parallel=rl.Parallel(tensor=2)).time(CHIP, "bf16")
