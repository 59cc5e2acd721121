"""A model's page: it agrees with the calls that it gathers from, and what it says fits does fit."""

import json
import os
from dataclasses import asdict

import pytest
from harness.repository import ROOT

import roofline_lib as rl
from roofline_lib import pricing
from roofline_lib.quantities import significant

CONFIGS = ROOT / "tests" / "data" / "configs"


def test_the_page_is_what_the_library_says():
    page = rl.price("llama-3-8b", "H200 SXM")
    model, chip = rl.transformer("llama-3-8b"), rl.machine("H200 SXM")
    step = rl.time_in_sequence(model.decode(1, 4096).values(), chip, "bf16")
    assert (page.parameters, page.weight_bytes) == (8_030_261_248, 2 * 8_030_261_248)
    assert page.kv_bytes == 4096 * 131_072
    assert page.step_bound == step
    assert page.step_forecast == pytest.approx(step + page.kernels * 2.6e-6)
    assert page.prefill_bound == rl.time_in_sequence(model.prefill(1, 4096).values(), chip, "bf16")


def test_precisions_and_launches_reach_every_figure():
    formats = {"weights": "int4", "kv": "fp8", "activations": "fp16"}
    page = rl.price(
        "llama-3-8b", "H200 SXM", context=32_768, kernels=100, per_kernel=1e-5, **formats
    )
    model, chip = rl.transformer("llama-3-8b"), rl.machine("H200 SXM")
    step = rl.time_in_sequence(model.decode(1, 32_768, **formats).values(), chip, "fp16")
    prompt = rl.time_in_sequence(model.prefill(1, 32_768, **formats).values(), chip, "fp16")
    assert page.step_bound == step and page.prefill_bound == prompt
    assert page.step_forecast == pytest.approx(step + 100 * 1e-5)
    assert page.kv_bytes == 32_768 * page.kv_bytes_per_token == 32_768 * 65_536
    assert f"at most {significant(1 / step)} token/s for one sequence" in str(page)


def test_one_sequence_needs_room_beside_the_weights():
    """A chip that holds the weights to the byte, and no sequence: it takes two."""
    held = rl.transformer("gpt-2-xl").weight_bytes("bf16")
    tight = rl.Machine(
        name="tight", peaks={"bf16": 1e15}, bandwidths={"DRAM": 1e12}, capacities={"DRAM": held}
    )
    page = rl.price("gpt-2-xl", tight)
    assert (page.fits, page.chips) == (0, 2)


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v2-lite"])
def test_as_many_sequences_fit_as_it_says_and_no_more(name):
    page, model = rl.price(name, "H200 SXM", context=8192), rl.transformer(name)
    held = [
        model.weight_bytes("bf16") + model.kv_bytes(batch, 8192, "bf16")
        for batch in (page.fits, page.fits + 1)
    ]
    assert held[0] <= rl.machine("H200 SXM").capacity() < held[1]
    assert page.chips == 1


def test_a_model_too_large_says_how_many_chips_hold_it():
    page = rl.price("llama-3.1-405b", "H200 SXM")
    assert (page.fits, page.chips) == (0, 6)  # 812 GB over 150.1
    assert "too little; for its memory alone this takes 6 chips" in str(page)


@pytest.mark.parametrize("name", ["llama-3-8b", "mixtral-8x7b"])
def test_the_turning_batch_is_the_first_that_turns(name):
    page, model = rl.price(name, "H100 SXM", context=512), rl.transformer(name)
    verdicts = []
    for batch in (page.turning_batch - 1, page.turning_batch):
        works = model.decode(batch, 512)
        del works["attention"]
        verdicts.append(rl.bound(sum(works.values()), "H100 SXM", "bf16").bound_by)
    assert verdicts == ["memory", "compute"]


def test_it_may_never_turn():
    slow = rl.Machine(
        name="slow memory",
        peaks={"bf16": 1e15},
        bandwidths={"DRAM": 1e9},
        capacities={"DRAM": 1e11},
    )
    page = rl.price("gpt-2-xl", slow)
    assert page.turning_batch is None
    assert "no batch up to 1,048,576" in str(page)


def test_where_no_capacity_is_known_the_rest_is_priced():
    page = rl.price("llama-3-8b", "Xeon Gold 6248", activations="fp32")
    assert (page.capacity, page.fits, page.chips) == (None, None, None)
    assert "its size is not known here" in str(page) and page.step_bound > 0


def test_a_context_that_the_model_was_not_made_for_is_priced_and_said():
    inside, beyond = (rl.price("llama-3-8b", "L4", context=n) for n in (8192, 8193))
    assert "longer than the 8,192 tokens" in str(beyond) and "longer" not in str(inside)
    config = {**json.loads((CONFIGS / "Qwen--Qwen3-0.6B.json").read_text()), "n_ctx": 5}
    model = rl.Transformer.from_config(config)
    assert model.positions == 40960
    assert "40,960" in str(rl.price(model, "L4", context=100_000_000))
    long = rl.price("llama-3-8b", "H200 SXM", context=100_000_000)
    assert 30 < long.prefill_bound / 86_400 < 31
    assert "at least 30.7 days for 100,000,000 tokens" in str(long)
    plain = rl.Transformer(**{**asdict(model), "positions": None})
    assert plain == model and "longer" not in str(rl.price(plain, "L4", context=100_000_000))


def test_whose_time_to_start_a_kernel_it_is_stands_on_the_page():
    said = "is an H200's, from a CUDA graph"
    assert said in str(rl.price("llama-3-8b", "L4"))
    assert said not in str(rl.price("llama-3-8b", "H200 SXM"))
    assert said not in str(rl.price("llama-3-8b", "L4", per_kernel=1e-6))


def test_groups_of_weights():
    page = rl.price("gpt-oss-120b", "H100 SXM", weights={"experts": "mxfp4", "other": "bf16"})
    assert page.weight_bytes < 70e9 and page.fits > 0
    assert rl.price("gpt-oss-120b", "H100 SXM").fits == 0


def test_a_config_is_priced_and_named_after_its_file(capsys):
    path = CONFIGS / "Qwen--Qwen3-0.6B.json"
    assert pricing.main([str(path), "--machine", "L4", "--context", "1000"]) == 0
    said = capsys.readouterr().out
    assert "Qwen--Qwen3-0.6B on L4" in said and "parameters     596," in said


def test_the_command_in_json_is_the_function(capsys):
    arguments = ["gpt-oss-20b", "--machine", "H100 SXM", "--weights", "experts=mxfp4,other=bf16"]
    assert pricing.main([*arguments, "--json"]) == 0
    weights = {"experts": "mxfp4", "other": "bf16"}
    expected = asdict(rl.price("gpt-oss-20b", "H100 SXM", weights=weights))
    assert json.loads(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["llama-9"], "transformer 'llama-9' is not known"),
        (["no/config.json"], "no/config.json"),
        (["llama-3-8b", "--machine", "H100"], "H100 PCIe"),
        (["llama-3-8b", "--weights", "fp12"], "fp12"),
        (["llama-3-8b", "--weights", "expert=fp8"], "expert"),
        (["llama-3-8b", "--context", "0"], "context must be"),
        (["llama-3-8b", "--machine", "V100 SXM2"], "no bf16 peak; activations (--activations) may"),
        (["llama-3-8b", "--machine", "M1 Max"], "may be fp32"),
        (["llama-3-8b", "--machine", "Xeon Gold 6248"], "may be fp64 or fp32"),
        (["llama-3-8b", "--machine", "Ryzen"], "python -m roofline_lib machines"),
    ],
)
def test_what_cannot_be_priced_gets_one_line(arguments, said, capsys):
    assert pricing.main(arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count(os.linesep) == 1 and not captured.out
