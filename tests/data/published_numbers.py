"""Published numbers, each with its source and exact inputs, and how the library computes it.
tests/test_published.py asserts them.

`tolerance` is the row's own: "0.5 %" of the published figure, or a number in the published unit. A
row with `ours` is one whose published figure does not follow from its own inputs: the test asserts
our figure and that the published one misses it. `ratio` marks rows that are no more than one given
number over another (or a product). OUT_OF_SCOPE lists what the library does not model, with the
reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import roofline_lib as rl

MIB, GIB, DAY = 2**20, 2**30, 86400
MANY = 2**40  # "B << D, F": weights large enough that activations and outputs do not count


@dataclass(frozen=True)
class Row:
    id: str
    source: str
    inputs: str
    published: float
    tolerance: str | float
    compute: Callable[[], float]
    ours: float | None = None
    ratio: bool = False
    note: str = ""


def chip(peak, bandwidth, precision="bf16"):
    return rl.Machine(name="as given", peaks={precision: peak}, bandwidths={"DRAM": bandwidth})


def seconds(work, peak=1e30, bandwidth=1e30):
    """(compute time, memory time) of a Work under a peak and a bandwidth given in the row."""
    found = rl.bound(work, chip(peak, bandwidth), "bf16")
    return found.compute_time, found.memory_time


def compute_seconds(flops, peak):
    return seconds(rl.Work(flops, 0), peak=peak)[0]


def memory_seconds(nbytes, bandwidth):
    return seconds(rl.Work(0, nbytes), bandwidth=bandwidth)[1]


V5E = chip(1.97e14, 8.2e11)
# the JAX scaling book's inference exercises
BOOK_MODEL = rl.Transformer(64, 4096, 32, 8, 256, 16384, 32128, tied=True)
GUIDE = "NVIDIA Deep Learning Performance documentation"
BOOK = "JAX scaling book, "
L13 = rl.transformer("llama-2-13b")
L13_MATRICES = rl.Transformer(40, 5120, 40, 40, 128, 13824, 32000, norms_per_layer=0)


def matrices(model):
    """Parameters without the last norm gain, for texts that count matrices only (the model has
    norms_per_layer=0)."""
    return model.parameters - model.d_model


def cs336_step(kv_heads):
    """Bytes of one decode step of the Llama-2-13B shape, batch 64, 1024 tokens each."""
    model = replace(L13_MATRICES, kv_heads=kv_heads)
    return matrices(model) * 2 + 64 * 1024 * model.kv_bytes_per_token("bf16")


def moe_active(model):
    """Parameters that one token uses: routed experts cut to those it is sent to."""
    return replace(model, experts=model.experts_per_token).parameters


OUR_LIST = [
    Row(
        "C1",
        BOOK + "roofline.md",
        "1.97e14 FLOP/s, 8.2e11 B/s: ridge point",
        240,
        "0.5 %",
        lambda: V5E.ridge_point("bf16"),
        ratio=True,
    ),
    Row(
        "C2",
        BOOK + "roofline.md",
        "1e12 FLOP at 9.89e14 FLOP/s: ms",
        1.01,
        "0.5 %",
        lambda: compute_seconds(1e12, 9.89e14) * 1e3,
        ratio=True,
    ),
    Row(
        "C4",
        BOOK + "roofline.md",
        "bf16 dot product, N = 1024",
        0.499512,
        1e-3,
        lambda: rl.dot(1024, "bf16").intensity,
        note="the book counts 2N - 1 FLOP, we count 2N",
    ),
    Row(
        "C7",
        BOOK + "roofline.md, question 2",
        "int8 weights, bf16 activations and arithmetic, B << D, F: critical batch",
        120,
        "0.5 %",
        lambda: rl.critical_batch(MANY, MANY, V5E, "bf16", b="int8", exact=True),
    ),
    Row(
        "C8",
        BOOK + "roofline.md, question 3",
        "the same with D = F = 4096 and all bytes",
        136.1,
        0.1,
        lambda: rl.critical_batch(4096, 4096, V5E, "bf16", b="int8", exact=True),
        note="the book only plots it",
    ),
    Row(
        "C10",
        BOOK + "roofline.md, question 4",
        "int8 [B, D] by its own [D, F] for each row, D = F = 4096: intensity (printed: about 2)",
        2 / (1 + 2 / 4096),
        1e-6,
        lambda: rl.gemm(1, 4096, 4096, "int8").intensity,
    ),
    Row(
        "C11",
        BOOK + "roofline.md, question 5",
        "H100 SXM bf16, 9.89e14 over 3.35e12",
        295,
        "0.5 %",
        lambda: chip(9.89e14, 3.35e12).ridge_point("bf16"),
        ratio=True,
        note="inference.md of the same book says about 280",
    ),
    Row(
        "C13",
        BOOK + "roofline.md, footnote",
        "bf16 output tiles of 256 x 128, panels only: intensity",
        256 / 3,
        1e-9,
        lambda: rl.tiled_gemm(256, 128, 2**60, (256, 128), "bf16").intensity,
    ),
    Row(
        "C14",
        BOOK + "tpus.md, question 1",
        "200e9 bf16 parameters on 32 chips of 1.23e12 B/s: ms a step",
        10,
        "2 %",
        lambda: (
            1e3 / rl.decode_tokens_per_second(200e9 * rl.bytes_per_element("bf16"), 32 * 1.23e12)
        ),
        note="the table above it prints 1.2e12, which gives 10.4",
    ),
    Row(
        "C17",
        BOOK + "tpus.md, question 3",
        "9.2e14 FLOP/s, weights over PCIe at 1.6e10 B/s: critical batch",
        57500,
        1e-6,
        lambda: chip(9.2e14, 1.6e10).ridge_point("bf16"),
        ratio=True,
        note="61,000 with 1.5e10 until 2025-02",
    ),
    Row(
        "C19",
        BOOK + "tpus.md, question 4",
        "int8 [B, 4096] @ [4096, 16384], 3.94e14 FLOP/s, 22 x 8.2e11 B/s: critical batch",
        11,
        0.5,
        lambda: rl.critical_batch(
            16384, 4096, chip(3.94e14, 22 * 8.2e11, "int8"), "int8", exact=True
        ),
    ),
    Row(
        "C22",
        BOOK + "tpus.md, question 6",
        "16 GiB at 8.2e11 B/s: ms",
        20,
        "5 %",
        lambda: memory_seconds(16 * GIB, 8.2e11) * 1e3,
        ratio=True,
        note="the book divides 16e9; the array is 17.18e9",
    ),
    Row(
        "C23",
        BOOK + "transformers.md, question 1",
        "D = 4096, F = 4D, V = 32,000, L = 64, one norm a layer: parameters",
        16e9,
        "0.1 %",
        lambda: matrices(rl.Transformer(64, 4096, 32, 32, 128, 16384, 32000, norms_per_layer=1)),
        ours=17_442_275_328,
        note="the text multiplies 4e3 and 16e3 where the sizes are 4096 and 16,384",
    ),
    Row(
        "C25",
        BOOK + "transformers.md",
        "int8 KV cache, 8192 tokens, L = 64, K H = 8192: GiB",
        8,
        1e-9,
        lambda: (
            rl.Transformer(64, 8192, 64, 64, 128, 32768, 32000).kv_bytes_per_token("int8")
            * 8192
            / GIB
        ),
    ),
    Row(
        "C26",
        BOOK + "transformers.md",
        "20 bf16 arrays [4e6, 8192] kept in each of 64 layers: TB",
        84,
        "0.5 %",
        lambda: rl.elementwise(4e6 * 8192 * 64, "bf16", reads=0, writes=20).bytes_moved / 1e12,
    ),
    Row(
        "C28",
        BOOK + "transformers.md, question 4",
        "prefill attention, T = S = 4096, one query head a KV head: intensity T / 2",
        2048,
        1e-9,
        lambda: rl.attention(1, 1, 1, 4096, 4096, 128, "bf16", flash=True).intensity,
    ),
    Row(
        "C29",
        BOOK + "transformers.md, question 5",
        "tokens at which attention costs as much as its four projections, D = 4096",
        8192,
        1e-9,
        lambda: (
            8192
            * 4
            * rl.gemm(8192, 4096, 4096).flops
            / rl.attention(1, 32, 32, 8192, 8192, 128).flops
        ),
        note="without the causal half",
    ),
    Row(
        "C31",
        BOOK + "transformers.md, question 7",
        "6 x 37e9 x 14.8e12 FLOP in 2.79e6 h at 1.513e15: %",
        21.7,
        0.2,
        lambda: compute_seconds(6 * 37e9 * 14.8e12, 1.513e15) / (2.79e6 * 3600) * 100,
        note="1.513e15 is the PCIe card's fp8 peak; the SXM module's 1.979e15 gives 16.5 %",
    ),
    Row(
        "C32",
        BOOK + "transformers.md, question 8",
        "256 int8 experts, 8 a token, ridge point 240, B << D, F: critical batch",
        3840,
        1e-5,
        lambda: (
            rl.critical_batch(MANY, MANY, chip(240e12, 1e12), "bf16", b="int8", exact=True)
            * 256
            / 8
        ),
    ),
    Row(
        "C34",
        BOOK + "inference.md, pop quiz",
        "30e9 int8 parameters, 16 x (1.97e14, 8.2e11), B = 256, KV 819e6 B each: ms",
        21,
        "2 %",
        lambda: (
            (
                memory_seconds(256 * 819e6, 16 * 8.2e11)
                + compute_seconds(2 * 30e9 * 256, 16 * 1.97e14)
            )
            * 1e3
        ),
    ),
    Row(
        "C35",
        BOOK + "inference.md, question 1",
        "L = 64, D = 4096, F = 16384, 32 heads of 256, 8 KV heads, V = 32128, tied: parameters",
        18.4e9,
        "0.1 %",
        lambda: BOOK_MODEL.parameters,
    ),
    Row(
        "C37",
        BOOK + "inference.md, question 2",
        "that model and its KV in int8, 128e3 tokens, 16 x 16e9 B: largest batch",
        7,
        0.0,
        lambda: (
            (16 * 16e9 - BOOK_MODEL.weight_bytes("int8"))
            // (128e3 * BOOK_MODEL.kv_bytes_per_token("int8"))
        ),
        note="6 with 128 Ki = 131,072 tokens",
    ),
    Row(
        "C38",
        BOOK + "inference.md, question 3",
        "its int8 weights over 16 x 8.2e11 B/s: ms",
        1.4,
        "1 %",
        lambda: 1e3 / rl.decode_tokens_per_second(BOOK_MODEL.weight_bytes("int8"), 16 * 8.2e11),
    ),
    Row(
        "C40",
        BOOK + "inference.md, question 5",
        "the model with 16 experts, 2 a token: parameters a token uses",
        31.2e9,
        "0.3 %",
        lambda: moe_active(replace(BOOK_MODEL, experts=16, experts_per_token=2)),
    ),
    Row(
        "C43",
        BOOK + "applied-inference.md",
        "Llama-3-70B, int8 KV of 32,768 tokens: GB",
        5.3,
        "3 %",
        lambda: rl.transformer("llama-3-70b").kv_bytes_per_token("int8") * 32768 / 1e9,
        note="5.37 exact; the book rounds a token to 160e3 B",
    ),
    Row(
        "C44",
        BOOK + "applied-inference.md",
        "the same model, 32 x 8192 tokens of int8 KV and 70e9 B of weights: GB",
        112,
        "1 %",
        lambda: (32 * 8192 * rl.transformer("llama-3-70b").kv_bytes_per_token("int8") + 70e9) / 1e9,
    ),
    Row(
        "C46",
        BOOK + "applied-inference.md",
        "70e9 parameters, 8192 tokens, 2 FLOP each, 16 x 1.97e14 at 40 %: s",
        0.91,
        "0.5 %",
        lambda: compute_seconds(2 * 70e9 * 8192, 16 * 1.97e14 * 0.4),
    ),
    Row(
        "C52",
        BOOK + "gpus.md, quiz 1 question 2",
        "132 SMs, 128 lanes, 1.98 GHz, no multiply-add: TFLOP/s",
        33.5,
        "0.5 %",
        lambda: rl.peak_flops(132, 128, 1.98e9, 1) / 1e12,
    ),
    Row(
        "C53",
        BOOK + "gpus.md, quiz 1 question 3",
        "B200 bf16, 2250e12 over 8e12",
        281,
        "0.5 %",
        lambda: chip(rl.machine("B200 SXM").peak("bf16"), 8e12).ridge_point("bf16"),
        ratio=True,
    ),
    Row(
        "C55",
        BOOK + "gpus.md, quiz 1 question 4",
        "bf16 [512, 4096] @ [4096, 8192] at 2.25e15: us",
        15,
        "3 %",
        lambda: seconds(rl.gemm(512, 8192, 4096, "bf16"), peak=2.25e15)[0] * 1e6,
        note="the book types 2.3e15 there and 2.25e15 before",
    ),
    Row(
        "C56",
        BOOK + "gpus.md, quiz 1 question 6",
        "80e12 FLOP/s on 148 SMs of 128 lanes: GHz",
        2.1,
        "1 %",
        lambda: rl.clock_from(80e12, 148, 128) / 1e9,
    ),
    Row(
        "C59",
        BOOK + "gpus.md",
        "990e12 FLOP/s, 132 SMs, 4 tensor cores, 1.76 GHz: FLOP a cycle and core",
        1024,
        "2 %",
        lambda: 990e12 / rl.peak_flops(132, 4, 1.76e9, 1),
        ours=1065.34,
        note="the tensor peak assumes 1.83 GHz, which gives 1024.6",
    ),
    Row(
        "C61",
        GUIDE + ", matrix multiplication background",
        "M, N, K = 8192, 128, 8192, fp16",
        124.1,
        0.05,
        lambda: rl.gemm(8192, 128, 8192, "fp16").intensity,
    ),
    Row(
        "C62",
        GUIDE + ", matrix multiplication background",
        "8192 x 8192 x 8192, fp16",
        2730,
        1,
        lambda: rl.gemm(8192, 8192, 8192, "fp16").intensity,
    ),
    Row(
        "C64",
        GUIDE + ", matrix multiplication background",
        "8192 x 1 x 8192, fp16 (printed: < 1)",
        0.999756,
        1e-6,
        lambda: rl.gemm(8192, 1, 8192, "fp16").intensity,
    ),
    Row(
        "C65",
        GUIDE + ", GPU background",
        "linear layer, 4096 outputs, 1024 inputs, batch 512, fp16",
        315,
        0.1,
        lambda: rl.gemm(512, 4096, 1024, "fp16").intensity,
    ),
    Row(
        "C67",
        GUIDE + ", GPU background",
        "max pooling 3 x 3, stride 1, fp16: 9 operations an element",
        2.25,
        1e-9,
        lambda: rl.elementwise(1000, "fp16", reads=1, writes=1, flops_per_element=9).intensity,
    ),
    Row(
        "C68",
        GUIDE + ", GPU background",
        "ReLU, fp16",
        0.25,
        1e-9,
        lambda: rl.elementwise(1000, "fp16", reads=1, writes=1).intensity,
    ),
    Row(
        "C70",
        GUIDE + ", matrix multiplication background",
        "109 tiles on an A100's 108 SMs: waves",
        2,
        1e-9,
        lambda: 109 / (rl.machine("A100 40GB SXM").units * rl.wave_efficiency(109, 108)),
        note="50.5 % busy",
    ),
    Row(
        "C71",
        "Baseten, a guide to LLM inference and performance",
        "A10, 125e12 over 600e9",
        208.3,
        0.1,
        lambda: rl.machine("A10").ridge_point("fp16"),
        ratio=True,
    ),
    Row(
        "C73",
        "Modal GPU glossary, arithmetic intensity",
        "C = A B + C in fp32, N = 1024: N / 8",
        128,
        1e-9,
        lambda: rl.gemm(1024, 1024, 1024, "fp32", beta=1).intensity,
        note="C = A B alone gives N / 6",
    ),
    Row(
        "C74",
        "Modal GPU glossary",
        "A100 80 GB, 312e12 over 2e12",
        156,
        1e-9,
        lambda: chip(312e12, 2e12).ridge_point("bf16"),
        ratio=True,
        note="153.0 with the sheet's 2039 GB/s",
    ),
    Row(
        "C76",
        "Modal GPU glossary",
        "B200 fp8, 4500e12 over 8e12",
        562,
        1,
        lambda: chip(rl.machine("B200 SXM").peak("fp8"), 8e12).ridge_point("bf16"),
        ratio=True,
    ),
    Row(
        "C77",
        "Modal GPU glossary",
        "500e9 fp16 parameters at 10e12 B/s, batch 1: ms a token",
        100,
        1e-9,
        lambda: 1e3 / rl.decode_tokens_per_second(500e9 * rl.bytes_per_element("fp16"), 10e12),
        ratio=True,
    ),
    Row(
        "C79",
        "Horace He, Making deep learning go brrrr",
        "19.5e12 FLOP/s, 1.5e12 B/s, fp32 read and written: operations an element",
        100,
        "5 %",
        lambda: (
            chip(19.5e12, 1.5e12, "fp32").ridge_point("fp32")
            * rl.elementwise(1, "fp32", reads=1, writes=1).bytes_moved
        ),
    ),
    Row(
        "C80",
        "Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785",
        "Opteron X2: 2 sockets, 2 cores, 2 FLOP, 2.2 GHz: GFLOP/s",
        17.6,
        1e-9,
        lambda: rl.peak_flops(2 * 2, 1, 2.2e9) / 1e9,
    ),
    Row(
        "C82",
        "Williams and others 2009",
        "sparse matrix-vector product, fp64: 2 FLOP for a value and a 4-byte index",
        0.17,
        0.005,
        lambda: rl.Work(2, rl.bytes_per_element("fp64") + 4).intensity,
        ratio=True,
    ),
    Row(
        "C83",
        "Williams and others 2009",
        "the same, register-blocked: the index amortised",
        0.25,
        1e-9,
        lambda: rl.Work(2, rl.bytes_per_element("fp64")).intensity,
        ratio=True,
    ),
    Row(
        "C85",
        "LBL, introduction to the roofline model",
        "complex fp64 FFT, 5 N log N FLOP for 48 N B: coefficient",
        0.104,
        1e-3,
        lambda: rl.elementwise(1000, "fp64", reads=4, writes=2, flops_per_element=5).intensity,
    ),
    Row(
        "C86",
        "Bekman, ml-engineering",
        "H100 SXM: 528 tensor cores, 512 multiply-adds, 1830 MHz: TFLOP/s",
        989.43,
        "0.01 %",
        lambda: rl.peak_flops(528, 512, 1830e6) / 1e12,
    ),
    Row(
        "C88",
        "Bekman, ml-engineering",
        "MI300X: 1216 matrix cores, 256 multiply-adds, 2100 MHz: TFLOP/s",
        1307.4,
        "0.01 %",
        lambda: rl.peak_flops(1216, 256, 2100e6) / 1e12,
        note="its own summary table prints 1300",
    ),
    Row(
        "C89",
        "Bekman, ml-engineering",
        "MI250X: 880 matrix cores, 128 multiply-adds, 1700 MHz: TFLOP/s",
        383.0,
        "0.01 %",
        lambda: rl.peak_flops(880, 128, 1700e6) / 1e12,
    ),
    Row(
        "C91",
        "Bekman, ml-engineering",
        "B200: 3996 MHz, 8192 bit, double data rate: TB/s",
        8.184,
        "0.1 %",
        lambda: rl.memory_bandwidth(3996e6, 8192) / 1e12,
        note="a driver reports 7680 bit: 7.672",
    ),
    Row(
        "C92",
        "Stanford CS336 2025, lecture 2",
        "6 x 70e9 x 15e12 FLOP, 1024 H100 of 1979e12 / 2 at 50 %: days",
        143.9,
        0.1,
        lambda: compute_seconds(6 * 70e9 * 15e12, 1024 * 1979e12 / 2 * 0.5) / DAY,
    ),
    Row(
        "C94",
        "Stanford CS336 2025, lecture 2",
        "GPT-3's FFN matrix [49152, 12288] in fp32: MiB",
        2304,
        1e-9,
        lambda: rl.elementwise(49152 * 12288, "fp32", reads=1, writes=0).bytes_moved / MIB,
        note="its comment says 2.3 GB; it is 2.42",
    ),
    Row(
        "C95",
        "Stanford CS336 2025, lecture 10",
        "Llama-2-13B, matrices only: parameters",
        13_015_449_600,
        0.0,
        lambda: matrices(L13_MATRICES),
        note="with norm gains 13,015,864,320",
    ),
    Row(
        "C97",
        "Stanford CS336 2025, lecture 10",
        "Llama-2-13B in bf16, 1024 tokens, B = 64: GB a step",
        79.718,
        "0.01 %",
        lambda: cs336_step(40) / 1e9,
    ),
    Row(
        "C97b",
        "Stanford CS336 2025, lecture 10",
        "the same at 3.35e12 B/s: token/s",
        2689,
        1,
        lambda: rl.decode_tokens_per_second(cs336_step(40), 3.35e12, 64),
    ),
    Row(
        "C98",
        "Stanford CS336 2025, lecture 10",
        "the same with 8 KV heads: token/s",
        6416.69,
        "0.01 %",
        lambda: rl.decode_tokens_per_second(cs336_step(8), 3.35e12, 64),
    ),
    Row(
        "C100",
        "Dao and others 2022, arXiv:2205.14135v2, figure 2",
        "HBM traffic 40.3 and 4.4 GB: ratio (printed: 9)",
        9.16,
        0.01,
        lambda: rl.Work(1, 4.4e9).intensity / rl.Work(1, 40.3e9).intensity,
        ratio=True,
        note="version 1 prints 35.3 GB",
    ),
    Row(
        "C101",
        "Dao and others 2022, arXiv:2205.14135v2, figure 2",
        "41.7 and 7.3 ms: ratio",
        5.71,
        0.01,
        lambda: rl.decode_tokens_per_second(7.3, 41.7),
        ratio=True,
    ),
    Row(
        "C105",
        "MaxText pull request 1988",
        "Llama-2-7B attention, 8192 tokens, B = 4, forward and backward, not causal: TFLOP",
        422.21,
        "0.01 %",
        lambda: 3 * 32 * rl.attention(4, 32, 32, 8192, 8192, 128).flops / 1e12,
        note="the causal half is 211.11",
    ),
    Row(
        "C106",
        "MaxText pull request 1988",
        "6 FLOP for each weight but the input embedding and each of 32,768 tokens: TFLOP",
        1299.0,
        "0.1 %",
        lambda: 6 * (rl.transformer("llama-2-7b").parameters - 32000 * 4096) * 32768 / 1e12,
    ),
    Row(
        "C108",
        "MaxText and FlashAttention conventions",
        "causal share of the work at N = 4096 (printed: 1/2)",
        0.500122,
        1e-6,
        lambda: (
            rl.attention(1, 1, 1, 4096, 4096, 64, causal=True).flops
            / rl.attention(1, 1, 1, 4096, 4096, 64).flops
        ),
    ),
]

OUT_OF_SCOPE = {
    "C5": "bytes over a link between two chips: no network in the model",
    "C16": "sum of one peak over a pod of chips, a bare product",
    "C20": "copies between chips over ICI",
    "C41": "choice between shardings over chips",
    "C47": "scheduling of requests in a server",
    "C49": "queries a second of a serving cluster",
    "C50": "activations over ICI",
    "C58": "an AllGather over NVLink",
}


def gpt3(layers, d_model, heads, head_dim):
    return rl.Transformer(
        layers,
        d_model,
        heads,
        heads,
        head_dim,
        4 * d_model,
        50257,
        gated=False,
        tied=True,
        norm_biases=True,
        attention_biases=True,
        ffn_biases=True,
        learned_positions=2048,
    )


def megatron(layers, d_model, heads):
    return replace(gpt3(layers, d_model, heads, d_model // heads), vocab=51200)


def palm(layers, d_model, heads):
    return rl.Transformer(
        layers, d_model, heads, 1, 256, 4 * d_model, 256_000, tied=True, norms_per_layer=1
    )


def palm_flops_per_token(attention):
    model = palm(118, 18432, 48)
    scores = 3 * 118 * rl.attention(1, 48, 1, 2048, 2048, 256).flops / 2048
    return 6 * model.parameters + (scores if attention else 0)


def mxfp4_checkpoint(model):
    """Bytes with the experts' matrices in MXFP4 and the rest in bf16."""
    packed = model.layers * model.experts * 3 * model.d_model * model.d_ff
    return packed * rl.bytes_per_element("mxfp4") + (
        model.parameters - packed
    ) * rl.bytes_per_element("bf16")


GPT3 = {
    "Small": (12, 768, 12, 64, 125, 2.25e20),
    "Medium": (24, 1024, 16, 64, 356, 6.41e20),
    "Large": (24, 1536, 16, 96, 760, 1.37e21),
    "XL": (24, 2048, 16, 128, 1320, 2.38e21),
    "2.7B": (32, 2560, 32, 80, 2650, 4.77e21),
    "6.7B": (32, 4096, 32, 128, 6660, 1.20e22),
    "13B": (40, 5120, 40, 128, 12850, 2.31e22),
    "175B": (96, 12288, 96, 128, 174600, 3.14e23),
}
BROWN = "Brown and others 2020, arXiv:2005.14165, tables 2.1 and D.1"
MEGATRON = {
    "1.7B": (24, 2304, 24, 1.7),
    "3.6B": (30, 3072, 32, 3.6),
    "7.5B": (36, 4096, 32, 7.5),
    "18.4B": (40, 6144, 48, 18.4),
    "39.1B": (48, 8192, 64, 39.1),
    "76.1B": (60, 10240, 80, 76.1),
    "145.6B": (80, 12288, 96, 145.6),
    "310.1B": (96, 16384, 128, 310.1),
    "529.6B": (105, 20480, 128, 529.6),
    "1008.0B": (128, 25600, 160, 1008.0),
}
NARAYANAN = "Narayanan and others 2021, arXiv:2104.04473"
LLAMA13_STEP_MS = {1: 4.98, 8: 12.13, 16: 20.30, 32: 36.65, 64: 69.33, 240: 249.09}
LLAMA13_GQA_TOKENS = {1: 239.94, 8: 1429.19, 16: 2212.48, 32: 3047.62, 64: 3756.62, 240: 4529.34}
TURING = "NVIDIA Turing Architecture In-Depth, developer blog, 2018"
MI300 = "AMD Instinct MI300 microarchitecture, ROCm documentation"


def llama13_step(batch, kv_heads):
    """Bytes of one decode step at 8192 tokens; the book keeps the parameters of the 40-KV-head
    model."""
    return L13.weight_bytes("bf16") + batch * 8192 * replace(
        L13, kv_heads=kv_heads
    ).kv_bytes_per_token("bf16")


MORE = [
    *(
        Row(
            f"GPT3-{name}-parameters",
            BROWN,
            f"{la} layers, d_model {d}, {h} heads of {w}, 2048 positions: 1e6 parameters",
            n,
            "0.5 %",
            lambda s=(la, d, h, w): gpt3(*s).parameters / 1e6,
            note="sizes of the corrected rows below" if name in ("XL", "13B") else "",
        )
        for name, (la, d, h, w, n, _) in GPT3.items()
    ),
    *(
        Row(
            f"GPT3-{name}-FLOP",
            BROWN,
            "6 FLOP for each parameter of those sizes and each of 300e9 tokens",
            c,
            "0.5 %",
            lambda s=(la, d, h, w): 6 * gpt3(*s).parameters * 300e9,
        )
        for name, (la, d, h, w, _, c) in GPT3.items()
    ),
    Row(
        "GPT3-13B-width",
        BROWN,
        "13B by table 2.1's d_model of 5140: 1e6 parameters, against table D.1",
        12850,
        "0.5 %",
        lambda: gpt3(40, 5140, 40, 128).parameters / 1e6,
        ours=12_936.49,
        note="40 heads of 128 make 5120, and only 5120 gives table D.1's own count",
    ),
    Row(
        "GPT3-XL-heads",
        BROWN,
        "XL by table 2.1's 24 heads of 128: 1e6 parameters, against table D.1",
        1320,
        "0.5 %",
        lambda: gpt3(24, 2048, 24, 128).parameters / 1e6,
        ours=1517.1,
        note="24 heads of 128 are 3072 wide in a model of 2048; 16 heads fit",
    ),
    *(
        Row(
            f"Megatron-{name}",
            NARAYANAN + ", table 1",
            f"{la} layers, hidden {d}, {h} heads, V = 51,200, 2048 positions: 1e9 parameters",
            n,
            max(0.06, 0.001 * n),
            lambda s=(la, d, h): megatron(*s).parameters / 1e9,
        )
        for name, (la, d, h, n) in MEGATRON.items()
    ),
    Row(
        "Megatron-GPT3-days",
        NARAYANAN + ", section 5.1",
        "8 x 300e9 x 175e9 FLOP (recomputation counted), 1024 GPUs at 140e12: days",
        34,
        0.5,
        lambda: compute_seconds(8 * 300e9 * 175e9, 1024 * 140e12) / DAY,
    ),
    Row(
        "Megatron-1T-days",
        NARAYANAN + ", section 5.1",
        "8 x 450e9 x 1e12 FLOP, 3072 GPUs at 163e12: days",
        84,
        "1.5 %",
        lambda: compute_seconds(8 * 450e9 * 1e12, 3072 * 163e12) / DAY,
    ),
    Row(
        "Megatron-1T-share",
        NARAYANAN + ", abstract",
        "163e12 of an A100's bf16 peak: %",
        52,
        0.5,
        lambda: 163e12 / rl.machine("A100 80GB SXM").peak("bf16") * 100,
        ratio=True,
    ),
    Row(
        "PaLM-8B",
        "Chowdhery and others 2022, arXiv:2204.02311, table 1",
        "32 layers, d_model 4096, 16 heads of 256, one KV head: 1e9 parameters",
        8.63,
        "0.1 %",
        lambda: palm(32, 4096, 16).parameters / 1e9,
    ),
    Row(
        "PaLM-62B",
        "Chowdhery and others 2022, table 1",
        "64 layers, d_model 8192, 32 heads of 256, one KV head: 1e9 parameters",
        62.50,
        "0.1 %",
        lambda: palm(64, 8192, 32).parameters / 1e9,
    ),
    Row(
        "PaLM-540B",
        "Chowdhery and others 2022, table 1",
        "118 layers, d_model 18432, 48 heads of 256, one KV head: 1e9 parameters",
        540.35,
        "0.01 %",
        lambda: palm(118, 18432, 48).parameters / 1e9,
    ),
    Row(
        "PaLM-MFU",
        "Chowdhery and others 2022, section 4.1",
        "238.3e3 token/s on 6144 TPU v4, attention not counted: %",
        45.7,
        0.1,
        lambda: (
            238.3e3 * palm_flops_per_token(False) / (6144 * rl.machine("TPU v4").peak("bf16")) * 100
        ),
    ),
    Row(
        "PaLM-MFU-attention",
        "Chowdhery and others 2022, section 4.1",
        "the same with 12 L H Q T FLOP of attention a token: %",
        46.2,
        0.1,
        lambda: (
            238.3e3 * palm_flops_per_token(True) / (6144 * rl.machine("TPU v4").peak("bf16")) * 100
        ),
    ),
    Row(
        "MT-NLG-MFU",
        "Chowdhery and others 2022, section 4.1",
        "MT-NLG: 65.43e3 token/s, 6 x 530e9 FLOP, 2240 A100: %",
        29.7,
        0.1,
        lambda: 65.43e3 * 6 * 530e9 / (2240 * rl.machine("A100 80GB SXM").peak("bf16")) * 100,
    ),
    Row(
        "Llama3-FLOP",
        "Grattafiori and others 2024, arXiv:2407.21783",
        "405B on 15.6e12 tokens, 6 FLOP each",
        3.8e25,
        "0.5 %",
        lambda: 6 * rl.transformer("llama-3.1-405b").parameters * 15.6e12,
    ),
    Row(
        "Llama3-MFU-43",
        "Grattafiori and others 2024, table 4",
        "430e12 of an H100's bf16 peak: %",
        43,
        0.5,
        lambda: 430e12 / rl.machine("H100 SXM").peak("bf16") * 100,
        ratio=True,
    ),
    Row(
        "Llama3-MFU-41",
        "Grattafiori and others 2024, table 4",
        "400e12 of an H100's bf16 peak: %",
        41,
        0.5,
        lambda: 400e12 / rl.machine("H100 SXM").peak("bf16") * 100,
        ours=40.43,
        ratio=True,
        note="400 is printed rounded: 41 % would be 406",
    ),
    Row(
        "Chinchilla-FLOP",
        "Hoffmann and others 2022, arXiv:2203.15556",
        "70e9 parameters, 1.4e12 tokens, 6 FLOP each",
        5.76e23,
        "2.5 %",
        lambda: rl.Work(6 * 70e9 * 1.4e12, 0).flops,
        ratio=True,
        note="the paper counts operator by operator",
    ),
    Row(
        "Pope-KV",
        "Pope and others 2022, arXiv:2211.05102",
        "540B with multi-head attention (48 heads of 128), B = 512, 2048 tokens, bf16: TB",
        3,
        "2 %",
        lambda: (
            rl.Transformer(118, 18432, 48, 48, 128, 73728, 256_000).kv_bytes_per_token("bf16")
            * 512
            * 2048
            / 1e12
        ),
    ),
    Row(
        "vLLM-token",
        "Kwon and others 2023, arXiv:2309.06180, section 3",
        "OPT-13B, 40 layers of 5120, fp16: KiB a token (printed KB)",
        800,
        1e-9,
        lambda: (
            rl.Transformer(40, 5120, 40, 40, 128, 20480, 50272, gated=False).kv_bytes_per_token(
                "fp16"
            )
            / 1024
        ),
    ),
    Row(
        "vLLM-request",
        "Kwon and others 2023, section 3",
        "the same for 2048 tokens: GiB (printed GB)",
        1.6,
        "3 %",
        lambda: (
            rl.Transformer(40, 5120, 40, 40, 128, 20480, 50272, gated=False).kv_bytes_per_token(
                "fp16"
            )
            * 2048
            / GIB
        ),
    ),
    Row(
        "DSV2-small-MHA",
        "DeepSeek-V2, arXiv:2405.04434, appendix",
        "27 layers, 16 heads of 128, multi-head: 1e3 numbers a token",
        110.6,
        0.05,
        lambda: (
            replace(
                rl.transformer("deepseek-v2-lite"), kv_lora_rank=0, rope_head_dim=0
            ).kv_bytes_per_token("int8")
            / 1e3
        ),
    ),
    Row(
        "DSV2-small-MLA",
        "DeepSeek-V2, appendix",
        "the same with a latent of 512 + 64: 1e3 numbers a token",
        15.6,
        0.05,
        lambda: rl.transformer("deepseek-v2-lite").kv_bytes_per_token("int8") / 1e3,
    ),
    Row(
        "DSV2-large-MLA",
        "DeepSeek-V2, appendix",
        "60 layers with a latent of 512 + 64: 1e3 numbers a token",
        34.6,
        0.05,
        lambda: (
            replace(rl.transformer("deepseek-v2-lite"), layers=60).kv_bytes_per_token("int8") / 1e3
        ),
    ),
    Row(
        "DSV3-total",
        "DeepSeek-V3, README_WEIGHTS",
        "main model, router biases included: parameters",
        671e9,
        "0.1 %",
        lambda: rl.transformer("deepseek-v3").parameters,
    ),
    Row(
        "DSV3-active",
        "DeepSeek-V3, arXiv:2412.19437",
        "the same with 8 of 256 experts and without the input embedding: 1e9 parameters",
        37,
        "2 %",
        lambda: (moe_active(rl.transformer("deepseek-v3")) - 129280 * 7168) / 1e9,
    ),
    Row(
        "oss-120b-total",
        "OpenAI gpt-oss model card, table 1",
        "36 layers, 128 experts: 1e9 parameters",
        116.83,
        0.005,
        lambda: rl.transformer("gpt-oss-120b").parameters / 1e9,
    ),
    Row(
        "oss-20b-total",
        "OpenAI gpt-oss model card, table 1",
        "24 layers, 32 experts: 1e9 parameters",
        20.91,
        0.005,
        lambda: rl.transformer("gpt-oss-20b").parameters / 1e9,
    ),
    Row(
        "oss-120b-active",
        "OpenAI gpt-oss model card, table 1",
        "4 of 128 experts, without the input embedding: 1e9 parameters",
        5.13,
        "0.5 %",
        lambda: (moe_active(rl.transformer("gpt-oss-120b")) - 201088 * 2880) / 1e9,
        note="with the whole router 0.013 more",
    ),
    Row(
        "oss-20b-active",
        "OpenAI gpt-oss model card, table 1",
        "4 of 32 experts, without the input embedding: 1e9 parameters",
        3.61,
        "0.5 %",
        lambda: (moe_active(rl.transformer("gpt-oss-20b")) - 201088 * 2880) / 1e9,
    ),
    Row(
        "oss-120b-checkpoint",
        "OpenAI gpt-oss model card, table 1",
        "experts in MXFP4 (4.25 bit), the rest in bf16: GiB",
        60.8,
        0.05,
        lambda: mxfp4_checkpoint(rl.transformer("gpt-oss-120b")) / GIB,
    ),
    Row(
        "oss-20b-checkpoint",
        "OpenAI gpt-oss model card, table 1",
        "experts in MXFP4 (4.25 bit), the rest in bf16: GiB",
        12.8,
        0.05,
        lambda: mxfp4_checkpoint(rl.transformer("gpt-oss-20b")) / GIB,
    ),
    *(
        Row(
            f"LLaMA13-step-{batch}",
            BOOK + "inference.md, LLaMA 2-13B",
            f"batch {batch}, 8192 tokens of bf16 KV each, 8 x 8.2e11 B/s: ms a step",
            ms,
            "0.5 %",
            lambda b=batch: (
                1e3 * b / rl.decode_tokens_per_second(llama13_step(b, 40), 8 * 8.2e11, b)
            ),
        )
        for batch, ms in LLAMA13_STEP_MS.items()
    ),
    *(
        Row(
            f"LLaMA13-GQA-{batch}",
            BOOK + "inference.md, LLaMA 2-13B",
            f"batch {batch}, 8 KV heads, weights as before: token/s",
            tokens,
            "0.5 %",
            lambda b=batch: rl.decode_tokens_per_second(llama13_step(b, 8), 8 * 8.2e11, b),
        )
        for batch, tokens in LLAMA13_GQA_TOKENS.items()
    ),
    Row(
        "LLaMA13-KV-GiB",
        BOOK + "inference.md, LLaMA 2-13B",
        "8192 tokens of bf16 KV: GiB",
        6.7,
        "1 %",
        lambda: 8192 * L13.kv_bytes_per_token("bf16") / GIB,
        ours=6.25,
        note="6.71 GB under a heading that says GiB",
    ),
    Row(
        "LLaMA13-activation",
        BOOK + "inference.md",
        "one bf16 activation [8192, 5120]: MiB (printed MB)",
        80,
        1e-9,
        lambda: rl.elementwise(8192 * 5120, "bf16", reads=0, writes=1).bytes_moved / MIB,
    ),
    Row(
        "LLaMA13-FFW",
        BOOK + "inference.md, LLaMA 2-13B",
        "FFN matrices of 40 layers: 1e9 parameters",
        8.5,
        "1 %",
        lambda: (
            (L13.parameters - replace(L13, d_ff=1, dense_d_ff=1).parameters + 40 * 3 * 5120) / 1e9
        ),
    ),
    Row(
        "Book-quiz-small",
        BOOK + "inference.md, pop quiz",
        "30e9 int8 parameters, batch 4, KV 819e6 B each, 16 x 8.1e11 B/s: ms",
        2.5,
        "3 %",
        lambda: 1e3 * 4 / rl.decode_tokens_per_second(30e9 + 4 * 819e6, 16 * 8.1e11, 4),
    ),
    Row(
        "Book-70B-step",
        BOOK + "applied-inference.md",
        "70e9 B and 32 x 8192 tokens of Llama-3-70B's int8 KV, 8 x 8.1e11 B/s: ms",
        17,
        "3 %",
        lambda: (
            1e3
            * 32
            / rl.decode_tokens_per_second(
                70e9 + 32 * 8192 * rl.transformer("llama-3-70b").kv_bytes_per_token("int8"),
                8 * 8.1e11,
                32,
            )
        ),
    ),
    Row(
        "Book-decode-attention",
        BOOK + "inference.md",
        "decode attention, S = 8192, T = 1: intensity S T / (S + T) (printed: 1)",
        1,
        1e-3,
        lambda: rl.attention(1, 1, 1, 1, 8192, 128, "bf16", flash=True).intensity,
    ),
    Row(
        "TPUv4-peak",
        "Google Cloud documentation, TPU v4",
        "2 cores, 4 matrix units 128 x 128, 1.05 GHz: TFLOP/s",
        275,
        "0.5 %",
        lambda: rl.peak_flops(2, 4 * 128 * 128, 1.05e9) / 1e12,
    ),
    Row(
        "TPUv5e-peak",
        "Google Cloud documentation, TPU v5e",
        "1 core, 4 matrix units 128 x 128, 1.5 GHz: TFLOP/s",
        197,
        "0.5 %",
        lambda: rl.peak_flops(1, 4 * 128 * 128, 1.5e9) / 1e12,
    ),
    Row(
        "TPUv5p-peak",
        "Google Cloud documentation, TPU v5p",
        "2 cores, 4 matrix units 128 x 128, 1.75 GHz: TFLOP/s",
        459,
        "0.5 %",
        lambda: rl.peak_flops(2, 4 * 128 * 128, 1.75e9) / 1e12,
    ),
    Row(
        "Turing-fp32",
        TURING + ", table 1",
        "RTX 2080 Ti: 68 SMs, 64 lanes, 1.545 GHz: TFLOP/s",
        13.4,
        "0.5 %",
        lambda: rl.peak_flops(68, 64, 1.545e9) / 1e12,
    ),
    Row(
        "Turing-fp16",
        TURING + ", table 1",
        "RTX 2080 Ti: 544 tensor cores, 64 multiply-adds, fp16 accumulation: TFLOP/s",
        107.6,
        "0.1 %",
        lambda: rl.peak_flops(544, 64, 1.545e9) / 1e12,
    ),
    Row(
        "Turing-fp16-fp32",
        TURING + ", table 1",
        "the same with fp32 accumulation at half rate: TFLOP/s",
        53.8,
        "0.1 %",
        lambda: rl.peak_flops(544, 32, 1.545e9) / 1e12,
    ),
    Row(
        "Turing-SM",
        TURING,
        "8 tensor cores of 64 multiply-adds: FLOP a cycle and SM",
        1024,
        1e-9,
        lambda: rl.peak_flops(8, 64, 1),
    ),
    Row(
        "Turing-bandwidth",
        TURING + ", table 1",
        "RTX 2080 Ti: 352 bit at 14 Gbit/s: GB/s",
        616,
        1e-9,
        lambda: rl.memory_bandwidth(14e9, 352, 1) / 1e9,
    ),
    Row(
        "Turing-RTX6000",
        TURING + ", table 1",
        "Quadro RTX 6000: 576 tensor cores, 64 multiply-adds, 1.770 GHz: TFLOP/s",
        130.5,
        "0.1 %",
        lambda: rl.peak_flops(576, 64, 1.770e9) / 1e12,
    ),
    Row(
        "MI300X-fp8",
        MI300,
        "304 CUs, 4096 FLOP a clock, 2.1 GHz: TFLOP/s",
        2614.9,
        "0.01 %",
        lambda: rl.peak_flops(304, 4096, 2.1e9, 1) / 1e12,
    ),
    Row(
        "MI300X-tf32",
        MI300,
        "304 CUs, 1024 FLOP a clock, 2.1 GHz: TFLOP/s",
        653.7,
        "0.01 %",
        lambda: rl.peak_flops(304, 1024, 2.1e9, 1) / 1e12,
    ),
    Row(
        "MI300X-fp64",
        MI300,
        "304 CUs, 128 FLOP a clock (vector), 2.1 GHz: TFLOP/s",
        81.7,
        "0.1 %",
        lambda: rl.peak_flops(304, 128, 2.1e9, 1) / 1e12,
    ),
    Row(
        "RTX3090-fp32",
        "NVIDIA Ampere GA102 whitepaper",
        "10496 lanes at 1695 MHz: TFLOP/s",
        35.58,
        "0.1 %",
        lambda: rl.peak_flops(82, 128, 1695e6) / 1e12,
    ),
    Row(
        "RTX4060L-int8",
        "NVIDIA, GeForce RTX 4060 Laptop GPU (233 AI TOPS at 2370 MHz)",
        "24 SMs, 2048 operations a clock, twice that with 2:4 sparsity",
        233,
        "0.1 %",
        lambda: 2 * rl.peak_flops(24, 2048, 2.370e9, 1) / 1e12,
    ),
]

ROWS = OUR_LIST + MORE
