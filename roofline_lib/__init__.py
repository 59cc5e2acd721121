"""Arithmetic intensity and the roofline model: `import roofline_lib as rl`.

Quantities are SI floats (FLOP, byte, second); sizes may be arrays. Drawing and explorers are
imported when they are first asked for.
"""

from importlib import import_module

from roofline_lib.caches import Misses, count_misses, loop_addresses, loop_misses
from roofline_lib.chains import ChainCost, best_chain_order, chain_cost, chain_orders, strassen
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Verdict
from roofline_lib.collectives import (
    Torus,
    Transfer,
    algorithm_bandwidth,
    all_gather,
    all_reduce,
    all_to_all,
    bisection_bandwidth,
    bus_bandwidth,
    bus_factor,
    hierarchical_all_reduce,
    reduce_scatter,
    send,
)
from roofline_lib.counted_collectives import (
    CountedCollective,
    counted_all_gather,
    counted_all_reduce,
    counted_all_to_all,
    counted_reduce_scatter,
)
from roofline_lib.links import Link, link, link_names, links
from roofline_lib.machines import Machine, Peak, machine, machines
from roofline_lib.model import Bound, Work, attainable_performance, bound, fused, time_in_sequence
from roofline_lib.operators import (
    attention,
    axpy,
    conv2d,
    critical_batch,
    critical_size,
    dot,
    elementwise,
    gemm,
    gemv,
    layer_norm,
    nrm2,
    rms_norm,
    softmax,
    syrk,
    trsm,
    trsv,
)
from roofline_lib.parallel import (
    Parallel,
    ParallelStep,
    data_parallel_tokens,
    expert_bytes,
    gradient_transfers,
    least_layer_bytes,
    link_ridge,
    pipeline_bubble,
    tensor_parallel_limit,
)
from roofline_lib.peaks import clock_from, memory_bandwidth, peak_flops
from roofline_lib.precisions import PRECISIONS, bytes_per_element
from roofline_lib.quantities import quantity
from roofline_lib.questions import check
from roofline_lib.serving import (
    MLPERF_LIMITS,
    DecodeCurve,
    Limits,
    cost_per_million_tokens,
    decode_curve,
    disaggregated_rate,
    expected_tokens,
    free_chunk,
    goodput,
    page_use,
    page_waste,
    pareto_points,
    prefill_chips_per_decode_chip,
    prefix_hit_tokens,
    reading_rate,
    request_latency,
    requests_in_flight,
    servers_needed,
    speculation_operations,
    speculation_speedup,
    static_batch_use,
    time_per_output_token,
)
from roofline_lib.steps import StepTime, kernels_per_step, step_time
from roofline_lib.tiling import (
    CountedProduct,
    counted_tiled_product,
    io_lower_bound,
    naive_gemm,
    tile_count,
    tile_efficiency,
    tile_memory,
    tiled_gemm,
    wave_efficiency,
)
from roofline_lib.training import (
    ParallelTraining,
    TrainingMemory,
    training_flops,
    training_memory,
    training_step,
    zero_memory,
)
from roofline_lib.transformer import (
    Transformer,
    decode_tokens_per_second,
    transformer,
    transformers,
)

_LAZY = {
    "draw_roofline": "rooflines",
    "GemmExplorer": "explorers.gemm",
    "TilingExplorer": "explorers.tiling",
    "DecodeExplorer": "explorers.decode",
    "ChainExplorer": "explorers.chain",
    "PeakExplorer": "explorers.peak",
    "MeasuredExplorer": "explorers.measured",
    "OperatorExplorer": "explorers.operator",
    "TrainingExplorer": "explorers.training",
}

_PUBLIC = [
    name
    for name, value in globals().items()
    if getattr(value, "__module__", "").startswith("roofline_lib.")
]
__all__ = [*_PUBLIC, "PRECISIONS", "MLPERF_LIMITS", *_LAZY]  # not the modules themselves


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module 'roofline_lib' has no attribute {name!r}")
    return getattr(import_module(f"roofline_lib.{_LAZY[name]}"), name)
