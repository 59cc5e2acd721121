"""Published figures about more than one chip (topic A), each computed by the library.

The rows are of the same kind as in published_numbers.py: `ours` where the published figure does not
follow from its own inputs, with the reason. BARE lists what no formula of the library is in.
"""

from dataclasses import replace

from data.published_numbers import DAY, GIB, Row, compute_seconds, memory_seconds

import roofline_lib as rl

BEKMAN = "stas00/ml-engineering@744d01e, "
NETWORK = BEKMAN + "network"
GPUS = "JAX scaling book, GPUs (1a55377a)"
SHARDING = "JAX scaling book, sharding (04d8de58)"
V5E_PAGE = "Google Cloud documentation, TPU v5e"
KIPPLY = "kipply, transformer inference arithmetic (09819d4)"
ZERO = "Rajbhandari and others 2019, arXiv:1910.02054, fig. 1"
MEGATRON = "Narayanan and others 2021, arXiv:2104.04473, "
INSIGHTS = "Insights into DeepSeek-V3, ISCA 2025, arXiv:2505.09343, sec. 2.3.2"

MANY = 10**9  # ranks, where a text leaves (n-1)/n out
NVLINK_4, NVLINK_5 = rl.link("NVLink 4"), rl.link("NVLink 5")
# the network of a host with eight cards of 400 Gbit/s
HOST = rl.Link(8 * rl.link("InfiniBand NDR").bandwidth, name="eight InfiniBand NDR")
H100 = rl.Machine("H100 as the book rounds it", {"bf16": 990e12}, {"DRAM": 3.35e12})
BOOK_CABLE = rl.Link(4.5e10, name="ICI v5e as the book has it")
LAYER_260B = rl.Transformer(80, 16384, 128, 128, 128, 65536, 1, gated=False)


def ranks_of_a_pair():
    """Ranks for which busbw/algbw of an all-reduce comes nearest to the printed pair."""
    return min(range(2, 100), key=lambda n: abs(rl.bus_factor("all_reduce", n) - 17.13 / 8.84))


def ms_of_an_all_reduce(busbw):
    """Of 4 GiB on 32 ranks, when the bus bandwidth is this one."""
    return 1e3 * rl.all_reduce(4 * GIB, 32, rl.Link(busbw), over="ring").time


def share_that_leaves_the_host():
    """% of what a rank sends in a hierarchical all-reduce over 4 hosts of 8."""
    down, between, up = rl.hierarchical_all_reduce(4 * GIB, 4, 8, NVLINK_5, HOST)
    inside = down.bytes_sent + up.bytes_sent
    return 100 * between.bytes_sent / (inside + between.bytes_sent)


def mesh_of_two_and_of_eight():
    """How many times faster 8 chips of a mesh add up an array than 2, as bus bandwidth."""
    mesh = rl.link("Infinity Fabric MI300X")
    speeds = [
        rl.bus_bandwidth("all_reduce", 1e9, n, rl.all_reduce(1e9, n, mesh).time) for n in (8, 2)
    ]
    return speeds[0] / speeds[1]


def gather_bandwidth(link, ranks):
    """GB/s at which an all-gather over a switch comes in, as algorithm bandwidth."""
    return rl.algorithm_bandwidth(1e9, rl.all_gather(1e9, ranks, link).time) / 1e9


def bf16_gather(over, ranks=4):
    """us of an all-gather of bf16[2048, 8192]."""
    return 1e6 * rl.all_gather(2 * 2048 * 8192, ranks, BOOK_CABLE, over=over).time


def step_of_260b(part, ranks=16, latency=0.0):
    """One decode step of a 260B model on 16 chips, 512 sequences: a part of its all-reduces."""
    link = rl.Link(300e9, latency=latency)
    once = rl.all_reduce(512 * 16384 * 2, ranks, link)
    return getattr(2 * LAYER_260B.layers * once, part)


def layer_of_decode():
    """Latency of a step's all-reduces in us as the library counts them for that model."""
    link = rl.Link(300e9, latency=8e-6)
    step = LAYER_260B.decode(512, 1024, parallel=rl.Parallel(tensor=16), link=link)
    return 1e6 * step.transfers["all-reduces of tensor slices"].latency_time


def gradient_bytes(zero):
    transfers = rl.gradient_transfers(2 * 10e9, 64, zero)
    return sum(transfer.bytes_sent for transfer in transfers.values())


def zero_3_seconds():
    """An 80B model's gathers and scatter for very many ranks at 42.5 GB/s."""
    transfers = rl.gradient_transfers(2 * 80e9, MANY, 3, link=rl.Link(42.5e9))
    return sum(transfer.time for transfer in transfers.values())


def zero_gigabytes(stage):
    return rl.zero_memory(7.5, 64, stage).total


def days(flops, chips, peak, share=1.0):
    return compute_seconds(flops, chips * peak * share) / DAY


def with_recomputation(parameters, tokens):
    """FLOP of training that computes each forward pass once more: 8 a parameter and token."""
    return rl.training_flops(parameters, tokens) * 8 / 6


def exchange_seconds(bandwidth):
    """Dispatch in fp8 and combine in bf16: 32 tokens, 8 routed experts and a shared one."""
    nbytes = rl.expert_bytes(32, 9, 7000, dispatch="fp8", combine="bf16")
    return rl.send(nbytes, rl.Link(bandwidth)).time


ROWS = [
    Row("D2", "NVIDIA nccl-tests, PERFORMANCE.md@a0b82b2", "all-gather, 8 ranks: bus factor",
        0.875, 0.0, lambda: rl.bus_factor("all_gather", 8)),
    Row("D3", NETWORK + "/benchmarks", "17.13 and 8.84 GB/s of one all-reduce: ranks", 32, 0.0,
        ranks_of_a_pair, note="two-decimal figures: 32.3 by the formula"),
    Row("D5", NETWORK, "payload share of NVLink 4's line rate", 0.9412, 5e-5,
        lambda: NVLINK_4.bandwidth / NVLINK_4.line_rate),
    Row("D6", NETWORK, "line rate of a B200: GB/s", 956.25, 1e-9, lambda: NVLINK_5.line_rate / 1e9),
    Row("D7", NETWORK, "one way out of an MI300X, 7 links: GB/s", 448, 1e-9,
        lambda: rl.link("Infinity Fabric MI300X").total_bandwidth / 1e9),
    Row("D9", NETWORK, "2 of 8 MI300X against all 8, as measured: times", 6.5, "8 %",
        mesh_of_two_and_of_eight, note="312.912/47.671; a mesh by itself gives 7 cables against 1"),
    Row("D11", NETWORK, "a copy at 396.40 GB/s over the sheet's one way: %", 88, 0.5,
        lambda: 100 * 396.40e9 / rl.links("H200 SXM")[0].bandwidth),
    Row("D14", NETWORK, "4 GiB on 32 B200 at a busbw of 377.34 GB/s: ms", 22.05, 0.005,
        lambda: ms_of_an_all_reduce(377.34e9)),
    Row("D15", NETWORK, "the same as a flat ring at 400 GB/s: ms", 20.8, 0.05,
        lambda: ms_of_an_all_reduce(HOST.bandwidth)),
    Row("D16", NETWORK, "hierarchical, 4 hosts of 8: % of the bytes leave", 9.7, 0.05,
        share_that_leaves_the_host),
    Row("D17", NETWORK, "NVLink over PCIe on Blackwell: times", 7, 0.5,
        lambda: NVLINK_5.bandwidth / rl.link("PCIe 5 x16").bandwidth, ours=14.285714,
        note="7 is for a PCIe 6 that no accelerator attaches by; B200 has PCIe 5"),
    Row("D19", GPUS, "bisection of 8 H100, both ways: TB/s", 3.6, 1e-9,
        lambda: 2 * rl.bisection_bandwidth(NVLINK_4, 8) / 1e12),
    Row("D20", V5E_PAGE, "all-reduce bandwidth of a pod of 256: TB/s", 51.2, 1e-9,
        lambda: 256 * rl.link("ICI v5e").total_bandwidth / 1e12),
    Row("D21", V5E_PAGE, "bisection of a pod, one way: TB/s", 1.6, 1e-9,
        lambda: rl.bisection_bandwidth(rl.link("ICI v5e"), 256, over=rl.Torus((16, 16))) / 1e12),
    Row("D23", SHARDING, "bf16[2048, 8192] over a ring of 4, both ways: us", 377, "1.2 %",
        lambda: bf16_gather("two-way ring", MANY),
        note="S/W for many chips, and 34e6 for 33,554,432: 372.8; four chips take 279.6"),
    Row("D24", SHARDING, "the same on a line: us", 560, 1, lambda: bf16_gather("line")),
    Row("D25", SHARDING, "a hop of 1 us at 4.5e10 byte/s: kB", 45, 1e-9,
        lambda: replace(BOOK_CABLE, latency=1e-6).half_bandwidth_bytes / 1e3),
    Row("D28", GPUS, "all-gather in a node of 8 H100: GB/s", 514, 0.5,
        lambda: gather_bandwidth(NVLINK_4, 8)),
    Row("D29", GPUS, "all-gather over 32 nodes of 400e9: GB/s", 413, 0.5,
        lambda: gather_bandwidth(HOST, 32)),
    Row("D30", GPUS, "spine of 16 switches with 64 ports over 1024 GPUs: GB/s", 25, 0.5,
        lambda: 16 * 64 * rl.link("InfiniBand NDR").bandwidth / 1024 / 1e9, ours=50,
        note="appendix B halves the switch; the chapter itself says full bisection, 50"),
    Row("D32", GPUS, "990e12 at 450e9: tokens a GPU", 2200, 1e-6,
        lambda: rl.data_parallel_tokens(H100, "bf16", NVLINK_4)),
    Row("D33", GPUS, "990e12 at 400e9: tokens a GPU", 2475, 1e-6,
        lambda: rl.data_parallel_tokens(H100, "bf16", HOST)),
    Row("D35", GPUS, "2048 H800 at 300e9: million tokens", 6.7, 0.06,
        lambda: 2048 * rl.data_parallel_tokens(H100, "bf16", rl.Link(300e9)) / 1e6,
        note="the H800's NVLink is sold as 400 GB/s both ways, 200 one way"),
    Row("D37", GPUS + ", quiz 5", "F = 28672 in a node: ways", 14.372, 0.05,
        lambda: rl.tensor_parallel_limit(28672, H100, "bf16", NVLINK_4), ours=13.032727,
        note="F/1995 was typed; the chapter's own intensity is 2200"),
    Row("D38", GPUS, "70e9 parameters, 15e12 tokens, 4096 at 45 % of 990e12: days", 40, 0.5,
        lambda: days(rl.training_flops(70e9, 15e12), 4096, 990e12, 0.45)),
    Row("D41", "JAX scaling book, training (dea4256c)", "6.3e24 FLOP, 18823 v5p at 50 %: days", 17,
        0.5, lambda: days(6.3e24, 18823, 4.59e14, 0.5)),
    Row("D46", "JAX scaling book, inference (ae4e386f), appendix A",
        "two matrices of 8192 x 32768, bf16, 4 v5e of 8.2e11 byte/s: us", 365, 1,
        lambda: 1e6 * memory_seconds(2 * 8192 * 32768 * 2, 4 * 8.2e11), ours=327.36039,
        note='"about 600M parameters" are 536,870,912'),
    Row("D47", KIPPLY, "52B without embedding, one A100 of 1.5e12: ms", 69, 0.5,
        lambda: 1e3 * memory_seconds(
            rl.Transformer(64, 8192, 64, 64, 128, 4 * 8192, 1, gated=False, norms_per_layer=0)
            .weight_bytes(), 1.5e12)),
    Row("D48", KIPPLY, "52e9 parameters in 16 bit: byte", 104e12, "1 %",
        lambda: 52e9 * rl.bytes_per_element("fp16"), ours=1.04e11,
        note="e12 for e9; the 104 GB after it is right"),
    Row("D50", KIPPLY, "260B on 16 A100, 80 layers, 8 us a message: us", 2560, 1e-6,
        layer_of_decode, note="two all-reduces of two messages; the formula before says 5120"),
    Row("D52", KIPPLY, "batch 512, 260e9 parameters, 16 A100: ms", 53, 0.5,
        lambda: 1e3 * compute_seconds(2 * 512 * 260e9, 16 * 312e12)),
    Row("D53", KIPPLY, "communication of that step at 300e9, (n-1)/n left out: ms", 18, 0.5,
        lambda: 1e3 * step_of_260b("bytes_time", MANY), note="16.8 with 15/16"),
    Row("D54", KIPPLY, "A100, FLOP a byte of NVLink one way", 1040, 1e-9,
        lambda: rl.link_ridge("A100 80GB SXM", "bf16", "NVLink 3")),
    Row("D55", BEKMAN + "model parallelism", "80B, ZeRO-3 at 42.5 GB/s: s", 11, 0.5,
        zero_3_seconds),
    Row("D56", BEKMAN + "model parallelism", "ZeRO-3 against data parallel: times the bytes", 1.5,
        1e-9, lambda: gradient_bytes(3) / gradient_bytes(0)),
    Row("D57", ZERO, "7.5B, 64 ranks, stage 1: GB", 31.4, 0.05, lambda: zero_gigabytes(1)),
    Row("D58", ZERO, "stage 2: GB", 16.6, 0.05, lambda: zero_gigabytes(2)),
    Row("D59", ZERO, "stage 3: GB", 1.9, 0.05, lambda: zero_gigabytes(3)),
    Row("D60", MEGATRON + "sec. 5.1", "175e9, 300e9 tokens, 1024 at 140e12: days", 34, 0.5,
        lambda: days(with_recomputation(175e9, 300e9), 1024, 140e12)),
    Row("D61", MEGATRON + "sec. 5.1", "1.008e12, 450e9 tokens, 3072 at 163e12: days", 84, 0.5,
        lambda: days(with_recomputation(1.008e12, 450e9), 3072, 163e12)),
    Row("D64", INSIGHTS, "dispatch and combine at 50e9 byte/s: us", 120.96, 1e-6,
        lambda: 1e6 * exchange_seconds(50e9), note='"7K" is 7000; the model is 7168 wide: 123.9'),
    Row("D65", INSIGHTS, "61 layers, two micro-batches: ms", 14.76, 0.005,
        lambda: 1e3 * 61 * 2 * exchange_seconds(50e9)),
    Row("D67", INSIGHTS, "dispatch and combine at 900e9: us", 6.72, 1e-6,
        lambda: 1e6 * exchange_seconds(900e9)),
]  # fmt: skip
BARE = {
    "D36": "15360 sequences of 4096 tokens are 62.9 million, not 4: a product of two counts",
    "D62": "3072 chips times 163 TFLOP/s: a product of two printed figures",
    "D63": "two measured rates",
}
