"""A whole model, timed: the numpy model is a transformer, what cannot be timed is refused, and a
record of one reads back."""

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.measuring import record, whole_models
from roofline_lib.measuring.whole_models import NumpyModel, model_to_time

SMALL = rl.Transformer(2, 32, 4, 2, 8, 48, 20, name="small")


def by_hand(model, inputs):
    """The logits of the last of `inputs` [tokens, d_model], token by token and head by head."""
    sizes = model.model
    group = sizes.heads // sizes.kv_heads
    x = inputs.astype(np.float64)
    for weights in model.layers:
        normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        mixed = np.zeros((len(x), sizes.heads * sizes.head_dim))
        for head in range(sizes.heads):
            own, shared = (slice(8 * place, 8 * place + 8) for place in (head, head // group))
            q, k, v = (
                normed @ weights[name][:, part]
                for name, part in (("q", own), ("k", shared), ("v", shared))
            )
            for token in range(len(x)):
                q[token], k[token] = (
                    model.rotated(row[None], token)[0] for row in (q[token], k[token])
                )
            for token in range(len(x)):
                scores = np.exp(k[: token + 1] @ q[token] / np.sqrt(8))
                mixed[token, own] = scores / scores.sum() @ v[: token + 1]
        x = x + mixed @ weights["o"]
        normed = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        gate = normed @ weights["gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ weights["up"])) @ weights["down"]
    last = x[-1]
    return last / np.sqrt((last * last).mean() + 1e-6) @ model.head


def test_decoding_token_by_token_is_the_whole_prompt_at_once():
    """What is timed is a transformer: one token after the other, through the cache, gives what
    attention over the whole prompt gives."""
    model = NumpyModel(SMALL)
    inputs = model.random((5, 32))
    cache = model.cache(1, 5)
    for place in range(5):
        logits = model.decode(inputs[place : place + 1], cache, place + 1)
    np.testing.assert_allclose(logits[0], by_hand(model, inputs), rtol=2e-4, atol=2e-4)


def test_the_weights_of_the_timed_model_are_those_that_are_counted():
    model = NumpyModel(SMALL)
    numbers = sum(array.size for layer in model.layers for array in layer.values())
    norms, embedding = (2 * 2 + 1) * 32, 20 * 32
    assert numbers + model.head.size == SMALL.parameters - norms - embedding


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mixtral-8x7b", "a mixture of experts"),
        ("deepseek-v2-lite", "got deepseek-v2-lite with"),
        (rl.Transformer(2, 32, 4, 2, 8, 48, 20, window=64), "windowed layers"),
        ("llama-9", "transformer 'llama-9' is not known"),
    ],
)
def test_what_cannot_be_timed_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        model_to_time(given)


def test_a_model_larger_than_memory_is_refused(monkeypatch):
    monkeypatch.setattr(whole_models, "_memory_to_spare", lambda: 1e6)
    with pytest.raises(ValueError, match="in fp32 to be timed in numpy.*--model laptop"):
        whole_models.NumpyJobs(whole_models.LAPTOP_MODEL, None, True, None)


@pytest.fixture(scope="module")
def timed():
    return measuring.measure("cpu", quick=True, threads=1, progress=False, model=SMALL)


def test_a_record_of_a_model_reads_back(timed, tmp_path):
    measuring.save(timed, tmp_path / "record.json")
    again = measuring.load(str(tmp_path / "record.json"))
    assert again.transformer == SMALL
    assert again.points == timed.points
    measuring.validate(again)


def test_each_step_is_counted_as_the_model_counts_it(timed):
    steps = timed.select("decode")
    assert {point.shape for point in steps} == {record.StepShape(b, 512) for b in (1, 8)}
    for point in steps:
        precisions = dict.fromkeys(("weights", "kv", "activations"), "fp32")
        counted = SMALL.decode(point.shape.batch, point.shape.context, **precisions)
        assert point.work == sum(counted.values())
    assert timed.sustained.bandwidths and timed.sustained.peaks


def test_a_record_without_a_model_says_so():
    with pytest.raises(ValueError, match="no model; measure one with --model"):
        assert measuring.load("h200_a1").transformer


def test_the_command_refuses_in_one_line(capsys):
    from roofline_lib.own_curve import main

    assert main(["--device", "cpu", "--model", "no/such/config.json"]) == 2
    assert "no/such/config.json" in capsys.readouterr().err


def test_torch_and_numpy_are_the_same_model():
    """Runs where torch is installed; the record of a GPU was made after it had passed there."""
    torch = pytest.importorskip("torch")
    ours = NumpyModel(SMALL)
    theirs = whole_models.TorchModel(SMALL, "cpu", torch.float32)
    for mine, layer in zip(ours.layers, theirs.layers, strict=True):
        mine.update({name: layer[name].numpy().T for name in mine})
    ours.head = theirs.head.numpy().T
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        cache = theirs.cache(2, 7)
        whole = theirs.step(x, cache, theirs.angles(torch.arange(7)), theirs.layer, decode=False)
    copied = [tuple(array.numpy().copy() for array in pair) for pair in cache]
    step = ours.decode(x[:, -1].numpy(), copied, 7)
    np.testing.assert_allclose(step, whole[:, 0].numpy(), rtol=1e-4, atol=1e-4)
