"""Other people's calculators, held against ours: equal, or different by what the test names.

servcalc (with vramcalc) and ridgepoint count KV bytes and decode bounds; mlsysim and servcalc keep
chip tables. The extra `peers` brings them.
"""

import json
import random

import pytest

import roofline_lib as rl

CONFIGURATIONS = 60


def draw(number):
    """One random dense transformer with grouped queries, a batch and a context, from the
    configuration's number."""
    rng = random.Random(f"peers {number}")
    kv_heads = rng.choice([1, 2, 4, 8, 16])
    heads = kv_heads * rng.choice([1, 2, 4, 8])
    model = rl.Transformer(
        rng.randint(1, 96),
        64 * rng.randint(8, 160),
        heads,
        kv_heads,
        rng.choice([64, 80, 96, 128, 256]),
        128 * rng.randint(8, 240),
        rng.randint(1000, 260_000),
        tied=rng.random() < 0.5,
        qkv_biases=rng.random() < 0.3,
    )
    return model, rng.randint(1, 512), rng.randint(1, 131_072)


def architecture(model):
    """The same model for servcalc."""
    vramcalc = pytest.importorskip("vramcalc")
    return vramcalc.Arch(
        model.d_model,
        model.layers,
        model.heads,
        model.kv_heads,
        model.head_dim,
        model.d_ff,
        model.vocab,
        model.tied,
        model.qkv_biases,
        model.norms_per_layer,
    )


def vectors(model):
    """Norm gains and biases: servcalc counts 2 FLOP and a read for each, as if they were matrices;
    we leave them out of a step."""
    biases = (
        model.heads * model.head_dim + 2 * model.kv_heads * model.head_dim
        if model.qkv_biases
        else 0
    )
    return model.layers * (2 * model.d_model + biases) + model.d_model


def activations(model, rows):
    """bf16 bytes of a decode step's activations, matrix by matrix: we count them, servcalc does
    not."""
    width, d, f = model.heads * model.head_dim, model.d_model, model.d_ff
    # queries, kv in (its output is the cache's new entry, which both count), attention's Q and O,
    # output, FFN up and down
    per_layer = (d + width) + d + 2 * width + (width + d) + (d + 2 * f) + (f + d)
    return 2 * rows * (model.layers * per_layer + d + model.vocab)


@pytest.mark.parametrize("number", range(CONFIGURATIONS))
def test_servcalc_counts_the_same_parameters_and_cache(number):
    work = pytest.importorskip("servcalc.work")
    model, _, _ = draw(number)
    assert model.parameters == architecture(model).param_count()
    for precision, bits in (("bf16", 16), ("int8", 8)):
        assert model.kv_bytes_per_token(precision) == work.kv_bytes_per_token(
            architecture(model), bits
        )


@pytest.mark.parametrize("number", range(CONFIGURATIONS))
def test_servcalc_decode_step(number):
    work = pytest.importorskip("servcalc.work")
    model, batch, context = draw(number)
    arch = architecture(model)
    theirs = work.decode_step(
        arch,
        batch,
        batch * context,
        work.kv_bytes_per_token(arch, 16),
        work.weight_bytes(arch, 16).stream,
        False,
    )
    ours = sum(model.decode(batch, context).values())
    assert ours.flops == pytest.approx(theirs.flops - 2 * batch * vectors(model), rel=1e-12)
    assert ours.bytes_moved == pytest.approx(
        theirs.bytes - 2 * vectors(model) + activations(model, batch), rel=1e-12
    )


@pytest.mark.parametrize("number", range(CONFIGURATIONS))
def test_servcalc_prefill(number):
    work = pytest.importorskip("servcalc.work")
    model, _, tokens = draw(number)
    theirs = work.prefill_total_flops(architecture(model), tokens)
    ours = sum(work.flops for work in model.prefill(1, tokens).values())
    # causal count and last-token logits agree exactly
    assert ours == pytest.approx(theirs - 2 * tokens * vectors(model), rel=1e-12)


@pytest.mark.parametrize("number", range(CONFIGURATIONS))
def test_servcalc_decode_bound(number):
    """Their step time with perfect efficiencies and no overhead is our bound for the same bytes and
    FLOP."""
    timing, calibration, gpus = (
        pytest.importorskip(f"servcalc.{name}") for name in ("timing", "calibration", "gpus")
    )
    perfect = calibration.Calibration(
        *(calibration.Curve(((1, 1.0, 1.0, 1.0),)) for _ in range(2)), (0.0, 0.0, 0.0), "perfect"
    )
    model, batch, context = draw(number)
    step = sum(model.decode(batch, context).values())
    name = ("A100 80GB SXM", "H100 SXM", "L4", "RTX 4090")[number % 4]
    chip = rl.machine(name)
    spec = gpus.GpuSpec(name, 1, chip.bandwidth() / 1e9, chip.peak("bf16") / 1e12)
    theirs = timing.step_time(
        pytest.importorskip("servcalc.work").Work(step.bytes_moved, step.flops),
        spec,
        perfect,
        batch,
    )
    ours = rl.bound(step, chip, "bf16")
    assert (
        ours.time == pytest.approx(theirs.ms.mid / 1e3, rel=1e-12) and ours.bound_by == theirs.bound
    )
    if theirs.bound == "memory":
        tokens = rl.decode_tokens_per_second(step.bytes_moved, chip.bandwidth(), batch)
        assert tokens == pytest.approx(batch / theirs.ms.mid * 1e3, rel=1e-12)


def ridgepoint_fit(model, context, chip, weights="fp16", kv="fp16"):
    """ridgepoint's JSON answer for a model on one chip; it prints five significant digits."""
    core = pytest.importorskip("ridgepoint._core")
    kind = "mla" if model.kv_lora_rank else "mha" if model.kv_heads == model.heads else "gqa"
    return json.loads(
        core.fit_shape(
            "x",
            model.layers,
            model.layers,
            model.d_model,
            model.parameters,
            model.parameters,
            kind,
            model.head_dim,
            model.heads,
            model.kv_heads,
            model.kv_lora_rank,
            model.rope_head_dim,
            chip,
            1,
            "vllm",
            weights,
            kv,
            context,
            128,
            True,
        )
    )


RIDGEPOINT_CHIPS = {
    "a100-40gb": "A100 40GB SXM",
    "a100-80gb": "A100 80GB SXM",
    "h100-80gb": "H100 SXM",
}
# ridgepoint multiplies the bound by the share of the bandwidth that it measured on vLLM
MEASURED_SHARE = 0.61


@pytest.mark.parametrize("number", range(CONFIGURATIONS))
def test_ridgepoint_cache_and_decode_bound(number):
    model, _, context = draw(number)
    chip, ours = list(RIDGEPOINT_CHIPS.items())[number % 3]
    kv = ("fp16", "fp8")[number % 2]
    answer = ridgepoint_fit(model, context, chip, kv=kv)
    cache = model.kv_bytes_per_token(kv) * context
    assert answer["capacity"]["bytes_per_seq"] == cache
    bound = rl.decode_tokens_per_second(
        model.weight_bytes("fp16") + cache, rl.machine(ours).bandwidth()
    )
    assert answer["speed"]["decode_tok_s"]["best"] == pytest.approx(
        MEASURED_SHARE * bound, rel=1e-4
    )
    assert answer["speed"]["decode_tok_s"]["high"] <= bound


@pytest.mark.parametrize("name", ["deepseek-v2-lite", "deepseek-v3"])
@pytest.mark.parametrize("context", [1, 4096, 131_072])
def test_ridgepoint_latent_cache(name, context):
    model = rl.transformer(name)
    assert (
        ridgepoint_fit(model, context, "h100-80gb")["capacity"]["bytes_per_seq"]
        == model.kv_bytes_per_token("fp16") * context
    )


@pytest.mark.parametrize("chip, ours", RIDGEPOINT_CHIPS.items())
@pytest.mark.parametrize("weights", ["fp16", "fp8"])
def test_ridgepoint_critical_batch(chip, ours, weights):
    """Its ridge batch is the rule: weights only, rounded; ours is that rule in the limit of wide
    matrices."""
    answer = ridgepoint_fit(rl.transformer("llama-3-8b"), 1024, chip, weights)
    assert answer["speed"]["ridge_batch"] == round(
        rl.critical_batch(2**40, 2**40, ours, "fp16", b=weights, exact=True)
    )


# chip in the peer -> chip here. Peers' 16-bit peak, fp32 peak and bandwidth where they have them.
MLSYSIM = {
    "A100": "A100 80GB SXM",
    "A100_40GB": "A100 40GB SXM",
    "B200": "B200 SXM",
    "H100": "H100 SXM",
    "H100_PCIe": "H100 PCIe",
    "H200": "H200 SXM",
    "MI250X": "MI250X",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
    "T4": "T4",
    "TPUv4": "TPU v4",
    "TPUv5p": "TPU v5p",
    "TPUv6": "TPU v6e",
    "V100": "V100 SXM2",
}
MLSYSIM_DIFFERENCES = {
    ("MI250X", "fp32"): "47.9 is the vector units' rate, our 95.7 the matrix cores'",
    ("MI250X", "DRAM"): "3.2 TB/s is rounded; bus x rate gives 3.2768",
    ("B200", "DRAM"): "8 TB/s is the GB200's; the HGX B200 has 7.7",
}


@pytest.mark.parametrize("theirs, ours", MLSYSIM.items())
def test_mlsysim_chips(theirs, ours):
    registry = pytest.importorskip("mlsysim.hardware.registry")
    peer, chip = getattr(registry.Hardware.Cloud, theirs), rl.machine(ours)
    half = "bf16" if "bf16" in chip.peaks else "fp16"
    pairs = {
        half: (peer.compute.peak_flops.to("flop/s").magnitude, chip.peak(half)),
        "DRAM": (peer.memory.bandwidth.to("byte/s").magnitude, chip.bandwidth()),
    }
    for precision, value in peer.compute.precision_flops.items():
        if precision in chip.peaks:
            pairs[precision] = (value.to_base_units().magnitude, chip.peak(precision))
    for what, (other, own) in pairs.items():
        assert (abs(other / own - 1) > 5e-3) == ((theirs, what) in MLSYSIM_DIFFERENCES), (
            what,
            other,
            own,
        )


SERVCALC = {
    "T4": "T4",
    "V100 32GB": "V100 SXM2",
    "A10": "A10",
    "RTX 3090": "RTX 3090",
    "RTX 4090": "RTX 4090",
    "RTX 5090": "RTX 5090",
    "A100 40GB": "A100 40GB SXM",
    "A100 80GB": "A100 80GB SXM",
    "H100 80GB": "H100 SXM",
    "H200": "H200 SXM",
    "L4": "L4",
    "L40S": "L40S",
    "B200": "B200 SXM",
}


@pytest.mark.parametrize("theirs, ours", SERVCALC.items())
def test_servcalc_chips(theirs, ours):
    bandwidth, tflops = pytest.importorskip("servcalc.gpus").SPECS[theirs]
    chip = rl.machine(ours)
    half = "bf16" if "bf16" in chip.peaks else "fp16"
    # their B200 has the GB200's 8 TB/s
    assert (abs(chip.bandwidth() / (bandwidth * 1e9) - 1) > 1e-3) == (theirs == "B200")
    assert abs(chip.peak(half) / 1e12 - tflops) <= 0.5  # they print whole TFLOP/s
