"""Arithmetic intensity and the roofline model: `import roofline_lib as rl`.

Quantities are SI floats (FLOP, byte, second); sizes may be arrays. What most sessions never use is
imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
from roofline_lib.peaks import clock_from, memory_bandwidth, peak_flops
from roofline_lib.precisions import PRECISIONS, bytes_per_element
from roofline_lib.quantities import quantity
from roofline_lib.transformer import (
    Transformer,
    decode_tokens_per_second,
    transformer,
    transformers,
)

if TYPE_CHECKING:  # imported when first asked for, so that the first import stays short
    from roofline_lib.caches import Misses, bank_turns, count_misses, loop_addresses, loop_misses
    from roofline_lib.chains import ChainCost, best_chain_order, chain_cost, chain_orders, strassen
    from roofline_lib.checks import (
        ChoiceQuestion,
        FunctionQuestion,
        NumberQuestion,
        Verdict,
        guessed,
    )
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
    from roofline_lib.diagrams import Diagram, draw_sm, draw_transformer_layer
    from roofline_lib.explorers.chain import ChainExplorer
    from roofline_lib.explorers.decode import DecodeExplorer
    from roofline_lib.explorers.gemm import GemmExplorer
    from roofline_lib.explorers.measured import MeasuredExplorer
    from roofline_lib.explorers.operator import OperatorExplorer
    from roofline_lib.explorers.parallel import ParallelExplorer
    from roofline_lib.explorers.peak import PeakExplorer
    from roofline_lib.explorers.serving import ServingExplorer
    from roofline_lib.explorers.tiling import TilingExplorer
    from roofline_lib.explorers.training import TrainingExplorer
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
    from roofline_lib.pricing import Price, price
    from roofline_lib.questions import check
    from roofline_lib.rooflines import draw_roofline
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

# The same once more, for Python itself; a test holds the two together.
_LAZY = {
    "caches": ("Misses", "bank_turns", "count_misses", "loop_addresses", "loop_misses"),
    "chains": ("ChainCost", "best_chain_order", "chain_cost", "chain_orders", "strassen"),
    "checks": ("ChoiceQuestion", "FunctionQuestion", "NumberQuestion", "Verdict", "guessed"),
    "collectives": (
        "Torus",
        "Transfer",
        "algorithm_bandwidth",
        "all_gather",
        "all_reduce",
        "all_to_all",
        "bisection_bandwidth",
        "bus_bandwidth",
        "bus_factor",
        "hierarchical_all_reduce",
        "reduce_scatter",
        "send",
    ),
    "counted_collectives": (
        "CountedCollective",
        "counted_all_gather",
        "counted_all_reduce",
        "counted_all_to_all",
        "counted_reduce_scatter",
    ),
    "diagrams": ("Diagram", "draw_sm", "draw_transformer_layer"),
    "explorers.chain": ("ChainExplorer",),
    "explorers.decode": ("DecodeExplorer",),
    "explorers.gemm": ("GemmExplorer",),
    "explorers.measured": ("MeasuredExplorer",),
    "explorers.operator": ("OperatorExplorer",),
    "explorers.parallel": ("ParallelExplorer",),
    "explorers.peak": ("PeakExplorer",),
    "explorers.serving": ("ServingExplorer",),
    "explorers.tiling": ("TilingExplorer",),
    "explorers.training": ("TrainingExplorer",),
    "parallel": (
        "Parallel",
        "ParallelStep",
        "data_parallel_tokens",
        "expert_bytes",
        "gradient_transfers",
        "least_layer_bytes",
        "link_ridge",
        "pipeline_bubble",
        "tensor_parallel_limit",
    ),
    "pricing": ("Price", "price"),
    "questions": ("check",),
    "rooflines": ("draw_roofline",),
    "serving": (
        "MLPERF_LIMITS",
        "DecodeCurve",
        "Limits",
        "cost_per_million_tokens",
        "decode_curve",
        "disaggregated_rate",
        "expected_tokens",
        "free_chunk",
        "goodput",
        "page_use",
        "page_waste",
        "pareto_points",
        "prefill_chips_per_decode_chip",
        "prefix_hit_tokens",
        "reading_rate",
        "request_latency",
        "requests_in_flight",
        "servers_needed",
        "speculation_operations",
        "speculation_speedup",
        "static_batch_use",
        "time_per_output_token",
    ),
    "steps": ("StepTime", "kernels_per_step", "step_time"),
    "tiling": (
        "CountedProduct",
        "counted_tiled_product",
        "io_lower_bound",
        "naive_gemm",
        "tile_count",
        "tile_efficiency",
        "tile_memory",
        "tiled_gemm",
        "wave_efficiency",
    ),
    "training": (
        "ParallelTraining",
        "TrainingMemory",
        "training_flops",
        "training_memory",
        "training_step",
        "zero_memory",
    ),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "Bound",
    "ChainCost",
    "ChainExplorer",
    "ChoiceQuestion",
    "CountedCollective",
    "CountedProduct",
    "DecodeCurve",
    "DecodeExplorer",
    "Diagram",
    "FunctionQuestion",
    "GemmExplorer",
    "Limits",
    "Link",
    "MLPERF_LIMITS",
    "Machine",
    "MeasuredExplorer",
    "Misses",
    "NumberQuestion",
    "OperatorExplorer",
    "PRECISIONS",
    "Parallel",
    "ParallelExplorer",
    "ParallelStep",
    "ParallelTraining",
    "Peak",
    "PeakExplorer",
    "Price",
    "ServingExplorer",
    "StepTime",
    "TilingExplorer",
    "Torus",
    "TrainingExplorer",
    "TrainingMemory",
    "Transfer",
    "Transformer",
    "Verdict",
    "Work",
    "algorithm_bandwidth",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "attainable_performance",
    "attention",
    "axpy",
    "bank_turns",
    "best_chain_order",
    "bisection_bandwidth",
    "bound",
    "bus_bandwidth",
    "bus_factor",
    "bytes_per_element",
    "chain_cost",
    "chain_orders",
    "check",
    "clock_from",
    "conv2d",
    "cost_per_million_tokens",
    "count_misses",
    "counted_all_gather",
    "counted_all_reduce",
    "counted_all_to_all",
    "counted_reduce_scatter",
    "counted_tiled_product",
    "critical_batch",
    "critical_size",
    "data_parallel_tokens",
    "decode_curve",
    "decode_tokens_per_second",
    "disaggregated_rate",
    "dot",
    "draw_roofline",
    "draw_sm",
    "draw_transformer_layer",
    "elementwise",
    "expected_tokens",
    "expert_bytes",
    "free_chunk",
    "fused",
    "gemm",
    "gemv",
    "goodput",
    "gradient_transfers",
    "guessed",
    "hierarchical_all_reduce",
    "io_lower_bound",
    "kernels_per_step",
    "layer_norm",
    "least_layer_bytes",
    "link",
    "link_names",
    "link_ridge",
    "links",
    "loop_addresses",
    "loop_misses",
    "machine",
    "machines",
    "memory_bandwidth",
    "naive_gemm",
    "nrm2",
    "page_use",
    "page_waste",
    "pareto_points",
    "peak_flops",
    "pipeline_bubble",
    "prefill_chips_per_decode_chip",
    "prefix_hit_tokens",
    "price",
    "quantity",
    "reading_rate",
    "reduce_scatter",
    "request_latency",
    "requests_in_flight",
    "rms_norm",
    "send",
    "servers_needed",
    "softmax",
    "speculation_operations",
    "speculation_speedup",
    "static_batch_use",
    "step_time",
    "strassen",
    "syrk",
    "tensor_parallel_limit",
    "tile_count",
    "tile_efficiency",
    "tile_memory",
    "tiled_gemm",
    "time_in_sequence",
    "time_per_output_token",
    "training_flops",
    "training_memory",
    "training_step",
    "transformer",
    "transformers",
    "trsm",
    "trsv",
    "wave_efficiency",
    "zero_memory",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'roofline_lib' has no attribute {name!r}")
    found = getattr(import_module(f"roofline_lib.{_HOME[name]}"), name)
    globals()[name] = found  # the next look needs no detour
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
