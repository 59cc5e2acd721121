"""A Hugging Face `config.json` as the fields of a Transformer.

Every model type has a rule of its own, since the same key means different things: `head_dim` that
is missing is hidden_size / heads for Llama, 128 for Qwen3 and 256 for Gemma. Where a key is
missing, the rule takes the default of the model's class (configuration classes of transformers
5.24.0; DeepSeek's first model, Phi's and Falcon's old names: the code beside their checkpoints).
The sizes that make a model what it is (width, layers, heads, feed-forward, vocabulary) have to be
there. A key that no rule reads and that is not known to leave sizes alone is refused: what it would
change is not known here.
"""

import json
import re
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from roofline_lib.arguments import parsed_json, short, unknown

# Keys that change no size: activation functions, scales, positions without parameters, token ids,
# training, files. What is 0, false, null or empty is harmless under any name.
_HARMLESS = frozenset(
    """
    architectures auto_map transformers_version name_or_path tokenizer_class model_type
    id2label label2id num_labels problem_type task_specific_params finetuning_task
    torch_dtype dtype quantization_config compression_config
    use_cache use_bfloat16 fp16 bf16 fp32 flash_attn use_flash_attn cache_implementation
    gradient_checkpointing tie_encoder_decoder chunk_size_feed_forward return_dict
    hidden_act activation activation_function hidden_activation act_fn projector_hidden_act
    layerdrop init_std initializer_range
    max_position_embeddings original_max_position_embeddings n_positions n_ctx seq_length seq_len
    max_sequence_length model_max_length initial_context_length context_window_size
    prefill_chunk_size max_batch_size position_embedding_base partial_rotary_factor
    query_pre_attn_scalar logit_scale scale_attn_weights scale_attn_by_inverse_layer_idx
    reorder_and_upcast_attn attention_softmax_in_fp32 masked_softmax_fusion bias_dropout_fusion
    slow_but_exact offset_alibi skip_bias_add prefix
    norm_topk_prob scoring_func topk_method topk_group n_group seq_aux aux_loss_alpha ep_size
    routed_scaling_factor experts_per_token pretraining_tp tensor_parallel_shards
    mm_tokens_per_image
    """.split()
)
_HARMLESS_STARTS: tuple[str, ...] = (
    "_",
    "rope",
    "rotary",
    "router_",
    "summary_",
    "swiglu_",
    "output_",
    "is_",
)
_HARMLESS_STARTS += ("initializer_", "attn_impl", "llama_4_scaling", "unsloth")
_HARMLESS_ENDS: tuple[str, ...] = (
    "_token_id",
    "_token_ids",
    "_token_index",
    "_dropout",
    "dropout",
    "_pdrop",
)
_HARMLESS_ENDS += ("_eps", "_epsilon", "softcapping", "_multiplier")
# Parts of a checkpoint beside the language model; a warning says that they are not counted.
_BESIDE = re.compile(r"vision_config|audio_config|num_nextn_predict_layers|num_mtp_layers|index_.*")
_MISSING = object()


class _Config:
    """The keys of one config.json; it remembers which were read, so that the rest can be judged."""

    def __init__(self, values):
        self.values = dict(values)
        self.read = set()
        self.kind = self.values.get("model_type")

    def get(self, key, default=None):
        """The value as it stands, or the default where the key is missing."""
        self.read.add(key)
        return self.values.get(key, default)

    def has(self, key):
        return self.values.get(key) is not None

    def count(self, *keys, missing=_MISSING, null=_MISSING):
        """A whole number under the first of `keys` that is there. `missing` is the class's default
        (without one the key is needed), `null` what an explicit null means, if not the same."""
        self.read.update(keys)
        key = next((key for key in keys if key in self.values), None)
        if key is None:
            if missing is _MISSING:
                raise ValueError(
                    f"config of model_type {self.kind!r} lacks {' or '.join(keys)} (a whole number)"
                )
            return missing
        value = self.values[key]
        if value is None and (null is not _MISSING or missing is not _MISSING):
            return missing if null is _MISSING else null
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(
                f"{key} must be a whole number of at least 0 in a config; got {short(value)}"
            )
        return value

    def flag(self, key, missing):
        value = self.get(key, missing)
        if value is None:
            return missing
        if not isinstance(value, bool):
            raise ValueError(f"{key} must be true or false in a config; got {short(value)}")
        return value

    def only(self, key, *known, because):
        """Refuses any value but the `known` ones; a missing key is fine."""
        value = self.get(key, known[0])
        if value not in known:
            raise ValueError(
                f"{key} {short(value)} of model_type {self.kind!r} is not understood: {because};"
                f" {' or '.join(json.dumps(one) for one in known)} would do"
            )

    def refuse_the_rest(self):
        """ValueError for the first key that no rule has read and that may change a size."""
        beside = []
        for key, value in self.values.items():
            if key in self.read or not value or _is_harmless(key):
                continue
            if _BESIDE.fullmatch(key):
                beside.append(key)
                continue
            raise ValueError(
                f"{key} {short(value)} is not understood for model_type {self.kind!r}: it may"
                " change sizes. If it changes none, take the key out; else give the sizes to"
                " Transformer(...) by hand"
            )
        if beside:
            warnings.warn(
                f"not counted: {', '.join(beside)}; only the language model itself is",
                stacklevel=4,
            )


def _is_harmless(key):
    return key in _HARMLESS or key.startswith(_HARMLESS_STARTS) or key.endswith(_HARMLESS_ENDS)


def config_fields(source: str | PathLike | Mapping) -> dict:
    """The keyword arguments of Transformer that describe the model of a config.json (a path to one,
    or its dict). ValueError names the key that is not understood."""
    values = _text_model(_load(source))
    kind = values.get("model_type")
    if kind is None:
        raise ValueError("config lacks model_type, which says what its keys mean")
    if not isinstance(kind, str) or kind not in _RULES:
        raise unknown("model_type", kind, _RULES)
    config = _Config(values)
    found = _RULES[kind](config)
    config.refuse_the_rest()
    return found | {"positions": _positions(values)}


def _positions(values):
    """The longest context that the config names, None where it names none that is a count."""
    for key in ("max_position_embeddings", "n_positions", "n_ctx", "seq_length"):
        told = values.get(key)
        if isinstance(told, int) and not isinstance(told, bool) and told > 0:
            return told
    return None


def _load(source):
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, str | PathLike):
        raise ValueError(f"config must be a dict or a path to a config.json; got {short(source)}")
    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ValueError(f"config {short(str(path))} cannot be read: {error.strerror}") from None
    values = parsed_json(f"config {short(str(path))}", text)
    if not isinstance(values, dict):
        raise ValueError(f"config {short(str(path))} must hold an object; got {short(values)}")
    return values


# The language model inside, where the outer file does not say
_INNER_TYPES = {"mistral3": "mistral", "llava": "llama", "gemma3": "gemma3_text"}


def _text_model(values):
    """The part that describes the language model; of a model that also sees, its text_config."""
    if "text_config" not in values:
        return values
    inner = values["text_config"]
    if not isinstance(inner, Mapping):
        raise ValueError(f"text_config must be an object in a config; got {short(inner)}")
    outer_type = values.get("model_type")
    inner = dict(inner)
    inner.setdefault("model_type", _INNER_TYPES.get(outer_type))
    if inner["model_type"] is None:
        raise ValueError(
            f"text_config of model_type {outer_type!r} lacks model_type, which says what its keys"
            " mean"
        )
    for key in ("tie_word_embeddings", "vision_config", "audio_config"):
        if key in values:
            inner.setdefault(key, values[key])
    return inner


# Pieces that several rules share


def _sizes(config, kv_missing=None, head_dim_missing=None, tied=False):
    """Width, layers, heads, vocabulary, tied head under the usual names. `kv_missing` and
    `head_dim_missing` are the class's defaults; None means heads, and hidden_size / heads."""
    d_model, heads = config.count("hidden_size"), config.count("num_attention_heads")
    return {
        "layers": config.count("num_hidden_layers"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": config.count("num_key_value_heads", missing=kv_missing or heads, null=heads),
        "head_dim": _head_dim(config, d_model, heads, head_dim_missing),
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", tied),
    }


def _head_dim(config, d_model, heads, missing=None):
    if config.has("head_dim") or missing and "head_dim" not in config.values:
        return config.count("head_dim", missing=missing)
    config.get("head_dim")
    return _share(d_model, heads)


def _share(d_model, heads):
    if d_model % heads:
        raise ValueError(
            f"head_dim is missing, and num_attention_heads {heads} does not divide hidden_size"
            f" {d_model}"
        )
    return d_model // heads


def _windows(config, layers, window, slides):
    """The window and its number of layers. `layer_types` says which layers slide; where it is
    missing, the class's rule `slides(layer)` does."""
    types = config.get("layer_types")
    if types is None:
        windowed = sum(bool(slides(layer)) for layer in range(layers)) if window else 0
    else:
        strange = set(types) - {"full_attention", "sliding_attention"}
        if strange or len(types) != layers:
            raise ValueError(
                f"layer_types of model_type {config.kind!r} is not understood: it has {len(types)}"
                f" entries for {layers} layers, {', '.join(sorted(map(str, set(types))))};"
                " full_attention and sliding_attention would do"
            )
        windowed = types.count("sliding_attention")
    if not windowed:
        return {}
    if not window:
        raise ValueError(
            f"layer_types has {windowed} sliding layers, but sliding_window is {short(window)};"
            " a number of tokens would do"
        )
    return {"window": window, "windowed_layers": windowed}


def _every_layer(layer):
    return True


def _even_layers(layer):
    return layer % 2 == 0


def _routed(experts, width, per_token):
    return {"experts": experts, "experts_per_token": per_token, "d_ff": width}


def _plain_ffn(config):
    return {"d_ff": config.count("intermediate_size")}


# Llama and its family


def _llama(config):
    biased = config.flag("mlp_bias", False)
    return (
        _sizes(config)
        | _plain_ffn(config)
        | {"attention_biases": config.flag("attention_bias", False), "ffn_biases": biased}
    )


def _mistral(config):
    sizes = _sizes(config, kv_missing=8)
    window = config.count("sliding_window", missing=4096, null=0)
    return sizes | _plain_ffn(config) | _windows(config, sizes["layers"], window, _every_layer)


def _ministral3(config):
    sizes = _sizes(config, kv_missing=8, head_dim_missing=128)
    window = config.count("sliding_window", missing=0)
    return sizes | _plain_ffn(config) | _windows(config, sizes["layers"], window, _every_layer)


def _mixtral(config):
    sizes = _sizes(config, kv_missing=8)
    window = config.count("sliding_window", missing=0)
    return (
        sizes
        | _routed(
            experts=config.count("num_local_experts", "num_experts", missing=8),
            width=config.count("intermediate_size"),
            per_token=config.count("num_experts_per_tok", missing=2),
        )
        | _windows(config, sizes["layers"], window, _every_layer)
    )


def _phi3(config):
    sizes = _sizes(config)
    config.only("attention_bias", False, None, because="Phi-3 has no biases")
    config.only("mlp_bias", False, None, because="Phi-3 has no biases")
    config.only("full_attn_mod", 1, None, because="every layer has the same window")
    config.only("interpolate_factor", 1, None, because="its effect on sizes is not known")
    window = config.count("sliding_window", missing=0)
    return sizes | _plain_ffn(config) | _windows(config, sizes["layers"], window, _every_layer)


# Qwen


def _qwen_windows(config, layers, slides=None):
    """Qwen prints a window that counts only if use_sliding_window is true; then the layers from
    max_window_layers on slide."""
    used = config.flag("use_sliding_window", False)
    window = config.count("sliding_window", missing=4096, null=0) if used else 0
    config.get("sliding_window")
    first = config.count("max_window_layers", missing=28)
    return _windows(config, layers, window, slides or (lambda layer: layer >= first))


def _qwen2(config):
    sizes = _sizes(config, kv_missing=32)
    return (
        sizes | _plain_ffn(config) | {"qkv_biases": True} | _qwen_windows(config, sizes["layers"])
    )


def _qwen3(config):
    sizes = _sizes(config, kv_missing=32, head_dim_missing=128)
    biased = config.flag("attention_bias", False)
    return (
        sizes
        | _plain_ffn(config)
        | {"qk_norm": True, "attention_biases": biased}
        | _qwen_windows(config, sizes["layers"])
    )


def _qwen_experts(config, layers, width, experts, per_token):
    """The mixture of Qwen: `intermediate_size` is the width of the layers that have none."""
    config.only("decoder_sparse_step", 1, because="only every layer with experts is")
    dense = config.get("mlp_only_layers") or []
    if sorted(dense) != list(range(len(dense))):
        raise ValueError(
            f"mlp_only_layers {short(dense)} of model_type {config.kind!r} is not understood:"
            " only leading layers without experts are; [] or [0, 1] would do"
        )
    fields = _routed(
        experts=config.count("num_experts", "num_local_experts", missing=experts),
        width=config.count("moe_intermediate_size", missing=width),
        per_token=config.count("num_experts_per_tok", missing=per_token),
    )
    plain = config.count("intermediate_size", missing=None)
    return fields | ({"dense_layers": len(dense), "dense_d_ff": plain} if dense else {})


def _qwen2_moe(config):
    sizes = _sizes(config, kv_missing=16)
    layers = sizes["layers"]
    last = config.count("max_window_layers", missing=28)
    experts = _qwen_experts(config, layers, width=1408, experts=60, per_token=4)
    return (
        sizes
        | experts
        | {
            "qkv_biases": config.flag("qkv_bias", True),
            "shared_experts": 1,
            "shared_d_ff": config.count("shared_expert_intermediate_size", missing=5632),
            # a gate of hidden_size numbers weighs the shared expert
            "extra_parameters": (layers - experts.get("dense_layers", 0)) * sizes["d_model"],
        }
        | _qwen_windows(config, layers, lambda layer: layer % 2 == 0 and layer < last)
    )


def _qwen3_moe(config):
    sizes = _sizes(config, kv_missing=4)
    return (
        sizes
        | _qwen_experts(config, sizes["layers"], width=768, experts=128, per_token=8)
        | {"qk_norm": True, "attention_biases": config.flag("attention_bias", False)}
        | _qwen_windows(config, sizes["layers"], _every_layer)
    )


# Gemma


def _gemma(config):
    return (
        _sizes(config, kv_missing=16, head_dim_missing=256, tied=True)
        | _plain_ffn(config)
        | {"attention_biases": config.flag("attention_bias", False)}
    )


def _gemma2(config):
    sizes = _sizes(config, kv_missing=4, head_dim_missing=256, tied=True)
    window = config.count("sliding_window", missing=4096, null=0)
    return (
        sizes
        | _plain_ffn(config)
        | {"norms_per_layer": 4, "attention_biases": config.flag("attention_bias", False)}
        | _windows(config, sizes["layers"], window, _even_layers)
    )


def _gemma3(config):
    """Gemma-3's files hold only what differs from the class's defaults, so sizes have some too."""
    config.only("use_bidirectional_attention", False, None, because="a decoder looks back only")
    layers = config.count("num_hidden_layers", missing=26)
    pattern = config.count("sliding_window_pattern", "_sliding_window_pattern", missing=6)
    window = config.count("sliding_window", missing=4096, null=0)
    return {
        "layers": layers,
        "d_model": config.count("hidden_size", missing=2304),
        "heads": config.count("num_attention_heads", missing=8),
        "kv_heads": config.count("num_key_value_heads", missing=4),
        "head_dim": config.count("head_dim", missing=256),
        "d_ff": config.count("intermediate_size", missing=9216),
        "vocab": config.count("vocab_size", missing=262208),
        "tied": config.flag("tie_word_embeddings", True),
        "norms_per_layer": 4,
        "qk_norm": True,
        "attention_biases": config.flag("attention_bias", False),
    } | _windows(config, layers, window, lambda layer: (layer + 1) % pattern)


# DeepSeek


def _deepseek_experts(config, layers, dense_missing, defaults):
    """Routed and shared experts of one width; the first layers have one plain network."""
    config.only("moe_layer_freq", 1, because="only experts in every layer are")
    experts, shared, width, per_token = defaults
    dense = config.count("first_k_dense_replace", missing=dense_missing)
    types = config.get("mlp_layer_types")
    if types is not None and list(types) != ["dense"] * dense + ["sparse"] * (layers - dense):
        raise ValueError(
            f"mlp_layer_types of model_type {config.kind!r} is not understood: only leading dense"
            f" layers, as many as first_k_dense_replace says ({dense}), are"
        )
    fields = _routed(
        experts=config.count("n_routed_experts", missing=experts),
        width=config.count("moe_intermediate_size", missing=width),
        per_token=config.count("num_experts_per_tok", missing=per_token),
    )
    fields["shared_experts"] = config.count("n_shared_experts", missing=shared, null=0)
    plain = config.count("intermediate_size")
    return fields | ({"dense_layers": dense, "dense_d_ff": plain} if dense else {})


def _deepseek(config):
    """The first DeepSeek-MoE: ordinary attention, and no defaults for its experts."""
    sizes = _sizes(config)
    needed = (_MISSING, 0, _MISSING, _MISSING)
    config.only("attention_bias", False, None, because="no model of this type has biases")
    return sizes | _deepseek_experts(config, sizes["layers"], 0, needed)


def _latent(config):
    """MLA: num_key_value_heads is printed, but the cache holds the latent."""
    config.only("attention_bias", False, None, because="biases of MLA's matrices are not counted")
    config.only("mlp_bias", False, None, because="no model of this type has biases")
    config.get("num_key_value_heads")
    config.get("head_dim")
    config.get("qk_head_dim")
    heads = config.count("num_attention_heads")
    return {
        "layers": config.count("num_hidden_layers"),
        "d_model": config.count("hidden_size"),
        "heads": heads,
        "kv_heads": heads,
        "head_dim": config.count("qk_nope_head_dim", missing=128),
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", False),
        "q_lora_rank": config.count("q_lora_rank", missing=1536, null=0),
        "kv_lora_rank": config.count("kv_lora_rank", missing=512),
        "rope_head_dim": config.count("qk_rope_head_dim", missing=64),
        "v_head_dim": config.count("v_head_dim", missing=128),
    }


def _deepseek_v2(config):
    if "q_lora_rank" not in config.values:
        warnings.warn(
            "q_lora_rank is missing; the class's default 1536 is taken. DeepSeek-V2-Lite has null"
            " there, which some copies of its config drop: put it back for that model",
            stacklevel=4,
        )
    fields = _latent(config)
    return fields | _deepseek_experts(config, fields["layers"], 0, (64, 2, 1407, _MISSING))


def _deepseek_v3(config):
    fields = _latent(config)
    fields |= _deepseek_experts(config, fields["layers"], 3, (256, 1, 2048, 8))
    moe_layers = fields["layers"] - fields.get("dense_layers", 0)
    # a correction for each expert balances the router's choice
    return fields | {"extra_parameters": moe_layers * fields["experts"]}


def _deepseek_v32(config):
    """V3.2 is V3 and an indexer that picks the keys; the indexer is not counted (a warning says
    so), and attention sees every key."""
    config.get("layer_types")
    return _deepseek_v3(config)


# gpt-oss


def _gpt_oss(config):
    sizes = _sizes(config, kv_missing=8, head_dim_missing=64)
    layers = sizes["layers"]
    experts = config.count("num_local_experts", "num_experts", missing=128)
    window = config.count("sliding_window", missing=128, null=0)
    return (
        sizes
        | _routed(
            experts=experts,
            width=config.count("intermediate_size"),
            per_token=config.count("num_experts_per_tok", missing=4),
        )
        | {
            "attention_biases": config.flag("attention_bias", True),
            "ffn_biases": True,
            # a bias for each expert of the router, and one attention sink a head
            "extra_parameters": layers * (experts + sizes["heads"]),
        }
        | _windows(config, layers, window, _even_layers)
    )


# Older models: two matrices in the feed-forward network, LayerNorm with biases


def _gpt_sizes(config, tied):
    """GPT-2's names for sizes; n_inner null is four times the width."""
    d_model, heads = config.count("n_embd"), config.count("n_head")
    return {
        "layers": config.count("n_layer"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": _share(d_model, heads),
        "d_ff": config.count("n_inner", missing=4 * d_model),
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", tied),
    }


_BIASES = {"attention_biases": True, "ffn_biases": True}
_TWO_MATRICES = {"gated": False, "norm_biases": True}


def _gpt2(config):
    config.only("add_cross_attention", False, None, because="a decoder attends to itself only")
    return (
        _gpt_sizes(config, tied=True)
        | _TWO_MATRICES
        | _BIASES
        | {"learned_positions": config.count("n_positions", missing=1024)}
    )


def _gptj(config):
    """One norm feeds attention and network side by side; the untied head has a bias."""
    sizes = _gpt_sizes(config, tied=False)
    head_bias = 0 if sizes["tied"] else sizes["vocab"]
    return (
        sizes
        | _TWO_MATRICES
        | {"ffn_biases": True, "norms_per_layer": 1, "extra_parameters": head_bias}
    )


def _phi(config):
    """Phi-1 and Phi-2: one norm a layer, biases everywhere, on the untied head too."""
    config.only("qk_layernorm", False, None, because="norms of queries and keys differ in size")
    sizes = _sizes(config) | _plain_ffn(config)
    return _phi_like(sizes)


def _phi_msft(config):
    """Phi-2 under its first names."""
    sizes = _gpt_sizes(config, tied=False)
    sizes["kv_heads"] = config.count("n_head_kv", missing=sizes["heads"])
    return _phi_like(sizes)


def _phi_like(sizes):
    head_bias = 0 if sizes["tied"] else sizes["vocab"]
    return sizes | _TWO_MATRICES | _BIASES | {"norms_per_layer": 1, "extra_parameters": head_bias}


def _gpt_neox(config):
    sizes = _sizes(config) | _plain_ffn(config)
    biases = {"attention_biases": config.flag("attention_bias", True), "ffn_biases": True}
    config.get("use_parallel_residual")
    return sizes | _TWO_MATRICES | biases


def _starcoder2(config):
    sizes = _sizes(config, kv_missing=2, tied=True)
    config.only("norm_type", "layer_norm", None, because="only layer norms are")
    config.only("mlp_type", "default", None, because="only the network of two matrices is")
    biased = config.flag("use_bias", True)
    window = config.count("sliding_window", missing=0)
    return (
        sizes
        | _plain_ffn(config)
        | _TWO_MATRICES
        | {"attention_biases": biased, "ffn_biases": biased}
        | _windows(config, sizes["layers"], window, _every_layer)
    )


def _opt(config):
    d_model = config.count("hidden_size")
    heads = config.count("num_attention_heads")
    config.only("do_layer_norm_before", True, because="norms after a block leave out the last one")
    config.only("word_embed_proj_dim", d_model, None, because="a narrower embedding is not counted")
    config.only("_remove_final_layer_norm", False, None, because="the last norm is counted")
    config.only("enable_bias", True, because="every OPT has biases")
    config.only("layer_norm_elementwise_affine", True, because="norms have gains and biases")
    return {
        "layers": config.count("num_hidden_layers"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": _share(d_model, heads),
        "d_ff": config.count("ffn_dim"),
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", True),
        # two rows more than positions: an offset of the first edition that stayed
        "learned_positions": config.count("max_position_embeddings", missing=2048) + 2,
        **_TWO_MATRICES,
        **_BIASES,
    }


def _bloom(config):
    """ALiBi has no position parameters; a norm of gains and biases follows the embedding."""
    d_model = config.count("n_embed", "hidden_size")
    config.read.update(("n_embed", "hidden_size"))
    heads = config.count("n_head", "num_attention_heads")
    config.get("apply_residual_connection_post_layernorm")
    return {
        "layers": config.count("n_layer", "num_hidden_layers"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": _share(d_model, heads),
        "d_ff": 4 * d_model,
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", True),
        "extra_parameters": 2 * d_model,
        **_TWO_MATRICES,
        **_BIASES,
    }


def _falcon(config):
    """Keys and values: one head where multi_query is true in the old architecture, whatever
    num_kv_heads says; else num_kv_heads. Norms: two where attention and network stand one after the
    other, or side by side in the new architecture; else one."""
    d_model = config.count("hidden_size", "n_embed")
    heads = config.count("num_attention_heads", "n_head")
    new = config.flag("new_decoder_architecture", False)
    multi_query = config.flag("multi_query", True)
    kv_heads = config.count("num_kv_heads", "n_head_kv", missing=heads)
    parallel = config.flag("parallel_attn", True)
    biased = config.flag("bias", False)
    norms = config.count("num_ln_in_parallel_attn", missing=2 if new else 1)
    config.get("alibi")
    return {
        "layers": config.count("num_hidden_layers", "n_layer"),
        "d_model": d_model,
        "heads": heads,
        "kv_heads": 1 if multi_query and not new else kv_heads,
        "head_dim": _share(d_model, heads),
        "d_ff": config.count("ffn_hidden_size", missing=4 * d_model),
        "vocab": config.count("vocab_size"),
        "tied": config.flag("tie_word_embeddings", True),
        "norms_per_layer": norms if parallel or new else 2,
        "attention_biases": biased,
        "ffn_biases": biased,
        **_TWO_MATRICES,
    }


_RULES = {
    "llama": _llama,
    "mistral": _mistral,
    "ministral3": _ministral3,
    "mixtral": _mixtral,
    "phi3": _phi3,
    "phi": _phi,
    "phi-msft": _phi_msft,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_vl_text": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "deepseek": _deepseek,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "deepseek_v32": _deepseek_v32,
    "kimi_k2": _deepseek_v3,
    "gpt_oss": _gpt_oss,
    "gpt2": _gpt2,
    "gptj": _gptj,
    "gpt_neox": _gpt_neox,
    "starcoder2": _starcoder2,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "RefinedWeb": _falcon,
    "RefinedWebModel": _falcon,
}
