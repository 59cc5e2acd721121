"""config.json of real models: parameters to the last digit, KV bytes, and refusals that name the
key. Each file of data/configs says where it comes from and what has to come out."""

import json
import warnings
from dataclasses import fields
from pathlib import Path

import pytest

import roofline_lib as rl
from roofline_lib.arguments import UnknownName

FOLDER = Path(__file__).parent / "data" / "configs"
CONFIGS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
EXPECTED = {name: config["_expected"] for name, config in CONFIGS.items()}
REFUSED = ["google--gemma-4-26B-A4B", "meta-llama--Llama-4-Scout-17B-16E-Instruct"]
# Some copies lie, and some files hold parts that are not counted: each warns.
WARNED = {"mlc--deepseek_v2_lite": "q_lora_rank", "deepseek-ai--DeepSeek-V3.2": "index_head_dim"}
# Published totals of models that have a rule of their own here.
PUBLISHED = {
    "mlc--gpt_j": 6_050_882_784,
    "mlc--phi-2": 2_779_683_840,
    "mlc--starcoder2": 7_173_923_840,
}
LLAMA = CONFIGS["meta-llama--Meta-Llama-3.1-8B"]
BUILT = [name for name in CONFIGS if name not in REFUSED]


def build(name, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in WARNED else "error")
        return rl.Transformer.from_config(CONFIGS[name] | changes)


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


@pytest.mark.parametrize("name", [name for name in BUILT if "parameters" in EXPECTED[name]])
def test_parameters_and_cache(name):
    # the one copy that lost a null
    changes = {"q_lora_rank": None} if name == "mlc--deepseek_v2_lite" else {}
    model, expected = build(name, **changes), EXPECTED[name]
    assert model.parameters == expected["parameters"]
    assert model.active_parameters == expected.get("active_parameters", model.parameters)
    assert model.kv_bytes_per_token("bf16") == expected["kv_bytes_per_token_bf16"]
    for field, value in expected["transformer_fields"].items():
        assert getattr(model, field) == value, field


@pytest.mark.parametrize("name", BUILT)
def test_windows(name):
    model, expected = build(name), EXPECTED[name]
    assert model.windowed_layers in (expected.get("sliding_layers"), None, model.layers)
    for key, held in expected.items():
        if key.startswith("kv_bytes_at_"):
            assert model.window == expected["window"]
            assert model.kv_bytes(1, int(key.split("_")[3])) == held


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_totals(name):
    assert build(name).parameters == PUBLISHED[name]


def test_every_file_is_tried():
    assert set(BUILT) == {n for n in EXPECTED if "parameters" in EXPECTED[n]} | set(PUBLISHED)


@pytest.mark.parametrize("name", REFUSED)
def test_a_kind_without_a_rule_is_refused(name):
    inner = CONFIGS[name]["text_config"]["model_type"]
    with pytest.raises(UnknownName, match=inner):
        build(name)


@pytest.mark.parametrize("name", WARNED)
def test_what_is_left_out_is_said(name):
    with pytest.warns(UserWarning, match=WARNED[name]):
        rl.Transformer.from_config(FOLDER / f"{name}.json")


def test_a_missing_rank_is_the_class_default():
    """DeepSeek-V2-Lite prints null, for queries without a latent; the class's default is 1536."""
    assert build("mlc--deepseek_v2_lite").q_lora_rank == 1536
    assert build("mlc--deepseek_v2_lite", q_lora_rank=None).q_lora_rank == 0


PRESETS = {
    "llama-2-7b": "mlc--llama2_7b",
    "llama-2-13b": "mlc--llama2_13b",
    "llama-2-70b": "mlc--llama2_70b",
    "llama-3-8b": "meta-llama--Meta-Llama-3.1-8B",
    "llama-3-70b": "meta-llama--Meta-Llama-3.1-70B",
    "mistral-7b": "mlc--mistral_7b",
    "mixtral-8x7b": "mistralai--Mixtral-8x7B-v0.1",
    "mixtral-8x22b": "mistralai--Mixtral-8x22B-v0.1",
    "tinyllama-1.1b": "mlc--tinyllama_1b_chat_v1.0",
    "gemma-2b": "mlc--gemma_2b",
    "gemma-2-9b": "mlc--gemma2_9b",
    "qwen2.5-7b": "mlc--qwen2_7b",
    "gpt-oss-20b": "openai--gpt-oss-20b",
    "gpt-oss-120b": "openai--gpt-oss-120b",
    "deepseek-v3": "deepseek-ai--DeepSeek-V3.2",
    "deepseek-v2-lite": "mlc--deepseek_v2_lite",
}


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_and_configs_agree(preset):
    changes = {"q_lora_rank": None} if preset == "deepseek-v2-lite" else {}
    ours, theirs = rl.transformer(preset), build(PRESETS[preset], **changes)
    # all layers have a window where the number of them is not given
    defaults = {"windowed_layers": ours.layers if ours.window else None, "dense_d_ff": ours.d_ff}
    for field in fields(rl.Transformer):
        # a checkpoint's own file may name another context than the model's paper
        if field.name not in ("name", "positions"):
            mine, other = getattr(ours, field.name), getattr(theirs, field.name)
            default = defaults.get(field.name)
            assert mine == other or {mine, other} == {None, default}, field.name


# The class's own defaults, one by one

SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "intermediate_size": 96,
    "vocab_size": 100,
}


@pytest.mark.parametrize(
    "kind, field, value",
    [
        ("llama", "head_dim", 2),
        ("llama", "kv_heads", 32),
        ("llama", "tied", False),
        ("phi3", "kv_heads", 32),
        ("mistral", "kv_heads", 8),
        ("mistral", "window", 4096),
        ("mixtral", "kv_heads", 8),
        ("mixtral", "window", None),
        ("mixtral", "experts", 8),
        ("qwen2", "kv_heads", 32),
        ("qwen2", "qkv_biases", True),
        ("qwen2", "window", None),
        ("qwen3", "head_dim", 128),
        ("qwen3", "qkv_biases", False),
        ("qwen3_moe", "kv_heads", 4),
        ("gemma", "head_dim", 256),
        ("gemma", "tied", True),
        ("gemma2", "head_dim", 256),
        ("gemma2", "windowed_layers", 2),
        ("gemma3_text", "tied", True),
        ("gpt_oss", "head_dim", 64),
        ("gpt_oss", "window", 128),
        ("gpt_oss", "attention_biases", True),
        ("gpt_oss", "tied", False),
        ("starcoder2", "tied", True),
        ("gpt_neox", "tied", False),
    ],
)
def test_class_defaults(kind, field, value):
    model = rl.Transformer.from_config(SMALL | {"model_type": kind})
    assert getattr(model, field) == value


@pytest.mark.parametrize(
    "kind, changes, field, value",
    [
        ("mistral", {"sliding_window": None}, "window", None),
        ("mistral", {"num_key_value_heads": None}, "kv_heads", 32),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 3}, "windowed_layers", 1),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 9}, "window", None),
        ("qwen2_moe", {"use_sliding_window": True}, "windowed_layers", 2),
        ("qwen3", {"head_dim": None}, "head_dim", 2),
        ("qwen3", {"attention_bias": True}, "attention_biases", True),
        ("qwen3_moe", {"mlp_only_layers": [0, 1]}, "dense_layers", 2),
        ("gemma2", {"num_hidden_layers": 5}, "windowed_layers", 3),
        ("gpt_oss", {"num_hidden_layers": 5}, "windowed_layers", 3),
        ("gemma3_text", {"sliding_window_pattern": 2}, "windowed_layers", 2),
        ("gemma3_text", {"layer_types": ["sliding_attention"] * 4}, "windowed_layers", 4),
        ("gpt_oss", {"layer_types": ["full_attention"] * 4}, "window", None),
        ("llama", {"mlp_bias": True}, "ffn_biases", True),
        ("llama", {"tie_word_embeddings": True}, "tied", True),
    ],
)
def test_keys_that_are_given(kind, changes, field, value):
    model = rl.Transformer.from_config(SMALL | {"model_type": kind} | changes)
    assert getattr(model, field) == value


def test_gemma_3_holds_only_differences():
    """Gemma-3-1B: 22 of 26 layers slide; 999,885,952 parameters, as its repository counts."""
    small = {
        "model_type": "gemma3_text",
        "hidden_size": 1152,
        "intermediate_size": 6912,
        "num_hidden_layers": 26,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "sliding_window": 512,
        "vocab_size": 262144,
    }
    model = rl.Transformer.from_config(small)
    assert model.parameters == 999_885_952
    assert (model.window, model.windowed_layers) == (512, 22)


@pytest.mark.parametrize(
    "kind, sizes, total",
    [
        ("gemma", (3072, 28, 16, 24576, 256000), 8_537_680_896),
        ("phi", (2048, 24, 32, 8192, 51200), 1_418_270_720),
        ("starcoder2", (3072, 30, 24, 12288, 49152), 3_030_371_328),
        ("gpt_neox", (6144, 44, 64, 24576, 50432), 20_554_567_680),
        ("mistral", (4096, 32, 32, 14336, 32000), 7_241_732_096),
    ],
)
def test_published_totals_from_the_five_sizes_alone(kind, sizes, total):
    """Gemma-7B, Phi-1.5, StarCoder2-3B, GPT-NeoX-20B, Mistral-7B: everything else is the class's
    own."""
    names = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
    )
    config = dict(zip(names, sizes, strict=True)) | {"model_type": kind}
    assert rl.Transformer.from_config(config).parameters == total


def test_old_models_by_their_published_totals():
    gpt2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
    assert rl.Transformer.from_config(gpt2).parameters == 124_439_808
    pythia = SMALL | {
        "model_type": "gpt_neox",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "intermediate_size": 16384,
        "vocab_size": 50432,
    }
    assert rl.Transformer.from_config(pythia).parameters == 6_857_302_016


def test_text_inside_a_model_that_sees():
    inner = without(CONFIGS["Qwen--Qwen3-0.6B"], "tie_word_embeddings", "_expected", "_source")
    outer = {
        "model_type": "qwen3_vl",
        "text_config": inner | {"model_type": "qwen3_vl_text"},
        "vision_config": {"depth": 24},
        "tie_word_embeddings": True,
    }
    with pytest.warns(UserWarning, match="vision_config"):
        model = rl.Transformer.from_config(outer)
    assert model == build("Qwen--Qwen3-0.6B")


def test_falcon_reads_its_keys_as_the_class_does():
    """multi_query in the old architecture means one head, whatever num_kv_heads says."""
    assert build("tiiuae--falcon-7b", num_kv_heads=71).kv_heads == 1
    assert build("tiiuae--falcon-7b", multi_query=False).kv_heads == 71
    assert build("tiiuae--falcon-40b", multi_query=True).kv_heads == 8


# Refusals: the key is named, and what would do


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"num_kv_shared_layers": 2}, "num_kv_shared_layers 2 .* by hand"),
        ({"cross_attention_layers": [3]}, "cross_attention_layers"),
        ({"model_type": "lama"}, "'lama' .* nearest: llama"),
        ({"model_type": None}, "lacks model_type"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"hidden_size": "4096"}, "hidden_size must be a whole number .* '4096'"),
        ({"hidden_size": 4096.5}, "hidden_size must be a whole number"),
        ({"hidden_size": -4096}, "hidden_size must be a whole number of at least 0 .* -4096"),
        ({"vocab_size": True}, "vocab_size must be a whole number"),
        ({"num_attention_heads": 30}, "num_attention_heads 30 does not divide hidden_size"),
        ({"num_key_value_heads": 5}, "kv_heads must divide heads"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings must be true or false"),
        ({"text_config": 3}, "text_config must be an object"),
        ({"text_config": {}}, "text_config of model_type 'llama' lacks model_type"),
        ({"vision_feature_layer": -2}, "vision_feature_layer -2"),
    ],
)
def test_what_is_not_understood_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        rl.Transformer.from_config(LLAMA | changes)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size", "model_type"])
def test_a_size_that_is_missing_is_refused(key):
    with pytest.raises(ValueError, match=f"lacks {key}"):
        rl.Transformer.from_config(without(LLAMA, key))


@pytest.mark.parametrize(
    "kind, changes, words",
    [
        ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step 2 .* 1 would do"),
        ("qwen3_moe", {"mlp_only_layers": [3]}, r"mlp_only_layers \[3\]"),
        ("gemma3_text", {"layer_types": ["linear_attention"] * 4}, "layer_types"),
        ("gemma3_text", {"layer_types": ["full_attention"] * 3}, "3 entries for 4 layers"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ("gpt_oss", {"sliding_window": None, "layer_types": ["sliding_attention"] * 4}, "sliding"),
        ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq 2"),
        ("deepseek_v3", {"attention_bias": True}, "attention_bias true|attention_bias True"),
        ("phi", {"qk_layernorm": True}, "qk_layernorm"),
        ("starcoder2", {"mlp_type": "gated"}, "mlp_type"),
        ("deepseek_v2", {"q_lora_rank": None}, "num_experts_per_tok"),
    ],
)
def test_what_a_kind_does_not_cover_is_refused(kind, changes, words):
    with pytest.raises(ValueError, match=words):
        rl.Transformer.from_config(SMALL | {"model_type": kind} | changes)


def test_files_that_cannot_be_read(tmp_path):
    for content, words in (
        ("{", "is no JSON: it breaks at line 1"),
        ("", "is no JSON: it is empty"),
        ("[1]", "must hold an object"),
    ):
        path = tmp_path / "config.json"
        path.write_text(content)
        with pytest.raises(ValueError, match=words):
            rl.Transformer.from_config(path)
    with pytest.raises(ValueError, match="cannot be read"):
        rl.Transformer.from_config(tmp_path / "none.json")
    with pytest.raises(ValueError, match="a dict or a path"):
        rl.Transformer.from_config(7)


def test_a_folder_will_do(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert rl.Transformer.from_config(str(tmp_path)) == build("meta-llama--Meta-Llama-3.1-8B")


def test_keys_that_change_no_size_are_passed_over():
    harmless = {
        "rope_scaling": {"factor": 8.0},
        "rms_norm_eps": 1e-5,
        "eos_token_id": [1, 2],
        "transformers_version": "4.40",
        "quantization_config": {"bits": 4},
        "use_cache": True,
        "some_new_switch": False,
    }
    assert rl.Transformer.from_config(LLAMA | harmless) == rl.Transformer.from_config(LLAMA)


def test_ministral_3_has_no_window_of_its_own():
    model = rl.Transformer.from_config(SMALL | {"model_type": "ministral3"})
    assert (model.head_dim, model.kv_heads, model.window) == (128, 8, None)


@pytest.mark.parametrize(
    "other, kind",
    [("kimi_k2", "deepseek_v3"), ("RefinedWebModel", "falcon"), ("gemma3", "gemma3_text")],
)
def test_two_names_of_one_kind(other, kind):
    sizes = SMALL | {"num_attention_heads": 16, "q_lora_rank": 24}
    if kind != "deepseek_v3":
        del sizes["q_lora_rank"]
    if kind == "falcon":
        del sizes["intermediate_size"]
    named, same = (
        rl.Transformer.from_config(sizes | {"model_type": name}) for name in (other, kind)
    )
    assert named == same
