"""Published figures about serving (S) and whole models (B), each computed by the library.

The rows are of the same kind as in published_numbers.py: `ours` where the published figure does not
follow from its own inputs, with the reason. BARE lists rows that are one given number over another,
so that no formula of the library is in them.
"""

from dataclasses import replace

from data.published_numbers import GIB, Row, chip, memory_seconds, seconds

import roofline_lib as rl

INSIGHTS = "Insights into DeepSeek-V3, ISCA 2025, arXiv:2505.09343, "
POPE = "Pope and others 2022, arXiv:2211.05102, "
DISTSERVE = "Zhong and others 2024 (DistServe), arXiv:2401.09670, "
DAY_6 = "deepseek-ai/open-infra-index@56d8685, day 6"
SGLANG = "SGLang blog 2025-05-05, large-scale expert parallelism"
BOOK = "JAX scaling book, "
KIPPLY = "kipply, transformer inference arithmetic (09819d4)"

V3, L13, L70 = (rl.transformer(name) for name in ("deepseek-v3", "llama-2-13b", "llama-2-70b"))
QWEN_72B = rl.Transformer(80, 8192, 64, 8, 128, 29568, 152064, qkv_biases=True)
OPT_66B = rl.Transformer(64, 9216, 72, 72, 128, 36864, 50272, gated=False, tied=True)
# the multi-head variant has heads of 128; with 256 the figure would be twice as large
PALM = rl.Transformer(118, 18432, 48, 48, 128, 73728, 256000)
PALM_64 = replace(PALM, heads=64, kv_heads=64)
PLAIN_13B = rl.Transformer(40, 5120, 40, 40, 128, 4 * 5120, 1, gated=False)


def kipply_step():
    """Seconds of a 13B step on one A100 of 1.5e12 byte/s: attention and network, no embedding."""
    groups = PLAIN_13B.parameters_by_group
    return memory_seconds(2 * (groups["attention"] + groups["ffn"]), 1.5e12)


def tensor_parallel_bytes():
    """GB that 62.50 token/s at 1135.29 GB/s a GPU stand for: a share of the matrices, and the whole
    table and head."""
    groups = L70.parameters_by_group
    tables = groups["embedding"] + groups["logits"]
    return 2 * ((L70.parameters - tables) / 8 + tables) / 1e9


def fifth_of_a_cache():
    """A 13B with 8 of 40 key heads, batch 240 at 8192 tokens, and 26 GB of weights on 4 v5e."""
    cache = replace(L13, kv_heads=8).kv_bytes(240, 8192)
    return 1e3 * memory_seconds(cache + 26e9, 8 * 8.2e11)


def llama_70b_int4():
    return rl.transformer("llama-3-70b").weight_bytes("int4") / 1e9


def day_of_tokens():
    """Nodes for the day's 608e9 input and 168e9 output tokens."""
    return rl.servers_needed(608e9, 86400, 73.7e3) + rl.servers_needed(168e9, 86400, 14.8e3)


ROWS = [
    Row("D68", INSIGHTS + "table 1", "61 layers, 512 + 64 numbers, bf16: kB", 70.272, 0.0005,
        lambda: V3.kv_bytes_per_token() / 1e3),
    Row("D69", INSIGHTS + "table 1", "Llama-3.1-405B, bf16: kB", 516.096, 0.0005,
        lambda: rl.transformer("llama-3.1-405b").kv_bytes_per_token() / 1e3),
    Row("D70", INSIGHTS + "table 1", "the ratio of those two", 7.28, 0.005,
        lambda: rl.transformer("llama-3.1-405b").kv_bytes_per_token() / V3.kv_bytes_per_token(),
        ours=7.344262, note="516.096/70.272 is 7.34"),
    Row("D71", INSIGHTS + "table 1", "Qwen2.5-72B, bf16: kB", 327.680, 0.0005,
        lambda: QWEN_72B.kv_bytes_per_token() / 1e3),
    Row("D72", "LMCache PR #694, first calculator", "DeepSeek-V3: byte a token", 124928, 0.5,
        lambda: V3.kv_bytes_per_token(), ours=70272,
        note="2 L d_c s doubles the latent, and the 64 position numbers are left out"),
    Row("D73", INSIGHTS + "sec. 2.3.2", "one guess, 80 % accepted, free draft", 1.8, 1e-9,
        lambda: rl.speculation_speedup(0.8, 1)),
    Row("D76", DISTSERVE + "sec. 3.3", "OPT-66B, 512 tokens: GB", 1.13, 0.005,
        lambda: OPT_66B.kv_bytes(1, 512) / 1e9, ours=1.2079596, note="1.125 GiB, called GB"),
    Row("D78", DISTSERVE + "sec. 1",
        "2 prefill chips of 5.6 request/s, 1 decode chip of 10; alone 1.6",
        2.1, 0.05, lambda: rl.disaggregated_rate(5.6, 10, 2, 1) / 1.6),
    Row("D79", POPE + "sec. 2", "PaLM 540B, multi-head, batch 512, 2048 tokens: TB", 3, 0.05,
        lambda: PALM.kv_bytes(512, 2048) / 1e12),
    Row("D80", POPE + "table 1", "64 heads, batch 128, 30 % of 64 x 32 GiB: tokens", 1320, "1 %",
        lambda: 0.3 * 64 * 32 * GIB / (128 * PALM_64.kv_bytes_per_token())),
    Row("D88", DAY_6, "608e9 and 168e9 tokens at 73.7e3 and 14.8e3 token/s: nodes", 226.75, "0.1 %",
        day_of_tokens),
    Row("D89", SGLANG, "16 $/h, 22,282 token/s: $ a million", 0.20, 0.005,
        lambda: rl.cost_per_million_tokens(16, 22282)),
    Row("D90", DAY_6 + ", as SGLang reads it", "73.7e3 token/s, 56.3 % hits: token/s computed",
        32206, 1, lambda: rl.prefix_hit_tokens(73.7e3, 0.563)[1]),
    Row("D94", BOOK + "inference", "8 v5e of 0.82e12 byte/s: TiB/s", 6.5, 0.05,
        lambda: 8 * chip(1.97e14, 0.82e12).bandwidth() / 2**40, ours=5.966285,
        note="6.56 TB/s are 5.97 TiB/s; the steps are computed with 6.56e12"),
    Row("D96", BOOK + "inference", "batch 240 at 8192 tokens, a fifth of the cache: ms", 52.99,
        "0.2 %", fifth_of_a_cache),
    Row("D97", BOOK + "applied inference (0819a7d)", "Llama-3-70B, int4: GB", 45, "10 %",
        llama_70b_int4, ours=35.27685, note="a byte a number would be 70, half a byte 35"),
    Row("D99", "stas00/ml-engineering@744d01e, inference",
        "700 words a minute, 1.5 tokens: token/s",
        18.75, 0.005, lambda: rl.reading_rate(700, 1.5), ours=17.5,
        note="its own TPOT of 0.057 s agrees with 17.5"),
    Row("D101", KIPPLY, "13B, one A100 of 1.5e12 byte/s: ms", 16.8, 0.05,
        lambda: 1e3 * kipply_step()),
    Row("D102", KIPPLY, "that bound over 22.0 ms measured: %", 76, 0.5,
        lambda: 100 * kipply_step() / 22.0e-3),
    Row("D103", KIPPLY, "half of it over 13.5 ms measured on two GPUs: %", 62, 0.5,
        lambda: 100 * kipply_step() / 2 / 13.5e-3),
    Row("D104", KIPPLY, "[512, 5120] @ [5120, 20480] at 312e12 FLOP/s: us", 344, 0.5,
        lambda: 1e6 * seconds(rl.gemm(512, 20480, 5120, "bf16"), peak=312e12)[0]),
    Row("D105", "Databricks, LLM inference performance engineering",
        "7e9 in 16 bit, 14 ms, 2 TB/s: %",
        50, 1e-9, lambda: 100 * memory_seconds(14e9, 2e12) / 14e-3),
    Row("D106", "pytorch-labs/gpt-fast README@0f925b5", "Llama-2-70B on 8 GPUs: GB a token and GPU",
        18.165, 0.005, tensor_parallel_bytes,
        note="counts the embedding table, of which a step reads a row"),
]  # fmt: skip
BARE = {
    "D86": "tokens times their list prices, no formula of ours",
    "D91": "two printed rates; 1 - 59337/62713 is 5.4 %, not the 5.6 % printed",
    "D92": "two printed rates",
    "D108": "two measured times",
}
