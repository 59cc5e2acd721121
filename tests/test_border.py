"""The border of every public function: a bad argument gets an error with its name, its unit and
what came; every kind of number will do."""

import dataclasses
import inspect
from types import GeneratorType

import numpy as np
import pytest
import test_operators
from harness.borders import BATCH, ELEMENTS, TOKENS

import roofline_lib as rl

INF = float("inf")
NO_NUMBER = [
    "96",
    b"96",
    None,
    True,
    np.True_,
    [True, 96],
    96 + 1j,
    float("nan"),
    [],
    np.array([]),
    [[1], [2, 3]],
    {},
    object(),
    [96, None],
    np.datetime64("2020"),
    "x" * 200,
]
REFUSED = {  # beside what is no number at all
    "size": [-1, 0, 2.5, INF, [96, 0], [96, 2.5], np.int8(-5)],
    "count": [-1, 2.5, INF],
    "positive": [-1.0, 0, INF, [1e9, 0.0]],
    "amount": [-1, INF, -INF],
    "ratio": [-1, -INF],
    "any": [INF],
}
MODEL = rl.Transformer(2, 64, 4, 2, 16, 128, 100, experts=4, experts_per_token=2)
SPECIAL = (
    (MODEL.prefill, "tokens", "cached"),
    (MODEL.decode, "context", "queries"),
    (rl.transformer("deepseek-v3").decode, "context", "queries"),
)

# function, good arguments, and for each argument its unit and kind; a star marks one that takes a
# single number, no array; "name" a word.
CALLS = [
    *test_operators.BORDER,
    (
        rl.Work,
        dict(flops=100, bytes_moved=120),
        dict(flops="FLOP amount", bytes_moved="byte amount"),
    ),
    (
        rl.attainable_performance,
        dict(intensity=100, peak_flops=120, bandwidth=3),
        dict(
            intensity="FLOP/byte ratio", peak_flops="FLOP/s positive", bandwidth="byte/s positive"
        ),
    ),
    (
        rl.bound,
        dict(
            work=rl.Work(1, 1),
            machine="RTX 4090",
            precision="fp16",
            level="DRAM",
            accumulate="fp16",
        ),
        dict(work="object", machine="name", precision="name", level="name", accumulate="name"),
    ),
    (
        rl.tiled_gemm,
        dict(m=96, n=80, k=120, tile=50, precision="bf16", a="fp8", b="int4", c="fp32"),
        dict(
            m=ELEMENTS,
            n=ELEMENTS,
            k=ELEMENTS,
            tile=ELEMENTS,
            precision="name",
            a="name",
            b="name",
            c="name",
        ),
    ),
    (
        rl.naive_gemm,
        dict(m=96, n=80, k=120, precision="bf16"),
        dict(m=ELEMENTS, n=ELEMENTS, k=ELEMENTS, precision="name"),
    ),
    (
        rl.io_lower_bound,
        dict(m=96, n=80, k=120, fast_elements=100, tightest=True),
        dict(
            m=ELEMENTS, n=ELEMENTS, k=ELEMENTS, fast_elements="elements positive", tightest="switch"
        ),
    ),
    (
        rl.tile_memory,
        dict(tile=96, precision="bf16", tile_k=80, sums="bf16", buffers=3),
        dict(tile=ELEMENTS, precision="name", tile_k=ELEMENTS, sums="name", buffers="panels size"),
    ),
    (rl.tile_count, dict(m=96, n=80, tile=50), dict(m=ELEMENTS, n=ELEMENTS, tile=ELEMENTS)),
    (rl.tile_efficiency, dict(m=96, n=80, tile=50), dict(m=ELEMENTS, n=ELEMENTS, tile=ELEMENTS)),
    (
        rl.wave_efficiency,
        dict(tiles=96, units=80),
        dict(tiles="tiles size", units="multiprocessors size"),
    ),
    (
        rl.counted_tiled_product,
        dict(a=np.ones((5, 4)), b=np.ones((4, 6)), tile=2, tile_k=3),
        dict(a="object", b="object", tile="elements size*", tile_k="elements size*"),
    ),
    (
        rl.count_misses,
        dict(addresses=range(0, 900, 4), capacity=120, line=10, ways=4),
        dict(
            addresses="object", capacity="byte size*", line="byte size*", ways="lines a set size*"
        ),
    ),
    (
        rl.loop_addresses,
        dict(n=5, order="blocked", pitch=7, bytes_per_element=4, block=2),
        dict(
            n="elements size*",
            order="name",
            pitch="elements size*",
            bytes_per_element="byte size*",
            block="elements size*",
        ),
    ),
    (
        rl.loop_misses,
        dict(
            n=5,
            order="blocked",
            capacity=120,
            line=15,
            ways=4,
            pitch=7,
            bytes_per_element=4,
            block=2,
        ),
        dict(
            n="elements size*",
            order="name",
            capacity="byte size*",
            line="byte size*",
            ways="lines a set size*",
            pitch="elements size*",
            bytes_per_element="byte size*",
            block="elements size*",
        ),
    ),
    (
        rl.bank_turns,
        dict(addresses=range(0, 900, 4), banks=20, word=5),
        dict(addresses="object", banks="banks size*", word="byte size*"),
    ),
    (
        rl.chain_cost,
        dict(dims=(96, 80, 120, 3), order=((0, 1), 2), precision="bf16"),
        dict(dims="object", order="object", precision="name"),
    ),
    (
        rl.best_chain_order,
        dict(dims=(96, 80, 120, 3), minimise="flops", precision="bf16"),
        dict(dims="object", minimise="name", precision="name"),
    ),
    (rl.chain_orders, dict(count=4), dict(count="matrices size*")),
    (
        rl.strassen,
        dict(n=96, levels=3, precision="bf16"),
        dict(n=ELEMENTS, levels="levels size*", precision="name"),
    ),
    (rl.transformer, dict(name="gpt-3"), dict(name="name")),
    (rl.machine, dict(name="T4"), dict(name="name")),
    (
        rl.decode_tokens_per_second,
        dict(bytes_per_step=100, bandwidth=120, batch=3),
        dict(bytes_per_step="byte positive", bandwidth="byte/s positive", batch=BATCH),
    ),
    (
        rl.peak_flops,
        dict(units=96, lanes=120, clock=100, flops_per_lane=2),
        dict(
            units="multiprocessors or cores size",
            lanes="lanes a unit size",
            clock="Hz positive",
            flops_per_lane="FLOP a lane and cycle positive",
        ),
    ),
    (
        rl.clock_from,
        dict(performance=100, units=96, lanes=120, flops_per_lane=2),
        dict(
            performance="FLOP/s positive",
            units="multiprocessors or cores size",
            lanes="lanes a unit size",
            flops_per_lane="FLOP a lane and cycle positive",
        ),
    ),
    (
        rl.memory_bandwidth,
        dict(clock=100, bus_bits=120, transfers_per_clock=2),
        dict(clock="Hz positive", bus_bits="bit size", transfers_per_clock="transfers positive"),
    ),
    (
        rl.training_flops,
        dict(parameters=100, tokens=120),
        dict(parameters="parameters positive", tokens=TOKENS),
    ),
    (
        rl.training_memory,
        dict(model=MODEL, micro_batch=100, tokens=120, keep="everything", gradients="bf16"),
        dict(model="object", micro_batch=BATCH, tokens=TOKENS, keep="name", gradients="name"),
    ),
    (
        rl.training_step,
        dict(
            model=MODEL,
            micro_batch=100,
            tokens=120,
            accumulation=3,
            keep="layer inputs",
            gradients="bf16",
        ),
        dict(
            model="object",
            micro_batch=BATCH,
            tokens=TOKENS,
            accumulation="micro-batches size",
            keep="name",
            gradients="name",
            parallel="object",
            link="object",
        ),
    ),
    (
        rl.zero_memory,
        dict(parameters=100, ranks=8, zero=2, gradients="bf16"),
        dict(
            parameters="parameters amount",
            ranks="ranks size",
            zero="stage count*",
            gradients="name",
        ),
    ),
    (
        rl.Parallel,
        dict(tensor=2, data=3, pipeline=4, expert=5, zero=1),
        dict.fromkeys(("tensor", "data", "pipeline", "expert"), "chips size*")
        | dict(zero="stage count*"),
    ),
    (
        rl.gradient_transfers,
        dict(bytes=100, ranks=8, zero=2, accumulation=3, link="NVLink 4"),
        dict(
            bytes="byte amount",
            ranks="ranks size*",
            zero="stage count*",
            accumulation="micro-batches size",
            link="name",
        ),
    ),
    (
        rl.link_ridge,
        dict(machine="H200 SXM", precision="bf16", link="NVLink 4"),
        dict(machine="name", precision="name", link="name"),
    ),
    (
        rl.data_parallel_tokens,
        dict(machine="H200 SXM", precision="bf16", link="NVLink 4", ranks=8, sparsity=3),
        dict(
            machine="name",
            precision="name",
            link="name",
            ranks="ranks size",
            sparsity="parameters a parameter used positive",
        ),
    ),
    (
        rl.tensor_parallel_limit,
        dict(d_ff=120, machine="H200 SXM", precision="bf16", link="NVLink 4", matrices=3),
        dict(
            d_ff=ELEMENTS, machine="name", precision="name", link="name", matrices="matrices size"
        ),
    ),
    (
        rl.least_layer_bytes,
        dict(latency=3, bandwidth=100, ranks=8),
        dict(latency="s amount", bandwidth="byte/s positive", ranks="chips size"),
    ),
    (
        rl.pipeline_bubble,
        dict(stages=8, micro_batches=32, interleaved=2),
        dict(stages="stages size", micro_batches="micro-batches size", interleaved="parts size"),
    ),
    (
        rl.expert_bytes,
        dict(tokens=32, copies=9, d_model=120, ranks=8, dispatch="fp8", combine="bf16"),
        dict(
            tokens=TOKENS,
            copies="experts a token positive",
            d_model=ELEMENTS,
            ranks="ranks size",
            dispatch="name",
            combine="name",
        ),
    ),
    (rl.link, dict(name="NVLink 4"), dict(name="name")),
    (rl.links, dict(machine="H200 SXM"), dict(machine="name")),
    (
        rl.Link,
        dict(
            bandwidth=100,
            latency=3,
            name="mine",
            topology="mesh",
            ports=7,
            domain=8,
            line_rate=120,
            kind="bus",
            source="measured",
            status="V",
            conflicts=(),
        ),
        dict(
            bandwidth="byte/s positive*",
            latency="s amount*",
            topology="name",
            ports="connections size*",
            domain="chips size*",
            line_rate="byte/s positive*",
            name="object",
            kind="object",
            source="object",
            status="object",
            conflicts="object",
        ),
    ),
    (rl.Torus, dict(sides=(2, 4)), dict(sides="object")),
    *(
        (
            collective,
            dict(bytes=100, ranks=8, link="NVLink 4", over="ring"),
            dict(bytes="byte amount", ranks="ranks size", link="name", over="name"),
        )
        for collective in (rl.all_gather, rl.reduce_scatter, rl.all_reduce, rl.all_to_all)
    ),
    (
        rl.send,
        dict(bytes=100, link="NVLink 4", hops=3),
        dict(bytes="byte amount", link="name", hops="cables size"),
    ),
    (
        rl.hierarchical_all_reduce,
        dict(bytes=100, groups=4, group_size=8, inside="NVLink 4", between="InfiniBand NDR"),
        dict(
            bytes="byte amount",
            groups="groups size",
            group_size="ranks size",
            inside="object",
            between="object",
        ),
    ),
    (
        rl.bus_factor,
        dict(collective="all_reduce", ranks=8),
        dict(collective="name", ranks="ranks size"),
    ),
    (
        rl.algorithm_bandwidth,
        dict(bytes=100, time=3),
        dict(bytes="byte amount", time="s positive"),
    ),
    (
        rl.bus_bandwidth,
        dict(collective="all_reduce", bytes=100, ranks=8, time=3),
        dict(collective="name", bytes="byte amount", ranks="ranks size", time="s positive"),
    ),
    (
        rl.bisection_bandwidth,
        dict(link="NVLink 4", ranks=8, over="ring"),
        dict(link="name", ranks="ranks size", over="name"),
    ),
    *(
        (
            collective,
            dict(arrays=[np.ones(4), np.ones(4)], over="line"),
            dict(arrays="object", over="name"),
        )
        for collective in (
            rl.counted_all_gather,
            rl.counted_reduce_scatter,
            rl.counted_all_reduce,
            rl.counted_all_to_all,
        )
    ),
    (
        rl.step_time,
        dict(
            works=[rl.Work(100, 120)],
            machine="T4",
            precision="fp16",
            kernels=100,
            per_kernel=3,
            transfers=(),
        ),
        dict(
            works="object",
            machine="object",
            precision="object",
            kernels="kernels amount",
            per_kernel="s amount",
            transfers="object",
        ),
    ),
    (rl.kernels_per_step, dict(model=MODEL, fused=True), dict(model="object", fused="switch")),
    (
        rl.price,
        dict(
            model=MODEL,
            machine="H200 SXM",
            context=100,
            weights="bf16",
            kv="bf16",
            activations="bf16",
            kernels=10,
            per_kernel=2,
        ),
        dict(
            model="object",
            machine="object",
            context=f"{TOKENS}*",
            weights="object",
            kv="name",
            activations="name",
            kernels="kernels amount*",
            per_kernel="s amount*",
        ),
    ),
    (
        rl.request_latency,
        dict(ttft=3, tpot=5, tokens=100),
        dict(ttft="s amount", tpot="s amount", tokens=TOKENS),
    ),
    (
        rl.time_per_output_token,
        dict(latency=100, ttft=3, tokens=120, first_chunk=2),
        dict(latency="s amount", ttft="s amount", tokens=TOKENS, first_chunk=TOKENS),
    ),
    (
        rl.goodput,
        dict(ttft=[1, 2], tpot=[1, 1], duration=100, limits=rl.Limits(1, 1)),
        dict(ttft="object", tpot="object", duration="s positive", limits="object"),
    ),
    (rl.Limits, dict(ttft=2, tpot=1), dict(ttft="s positive*", tpot="s positive*")),
    (
        rl.requests_in_flight,
        dict(rate=100, latency=3),
        dict(rate="request/s amount", latency="s amount"),
    ),
    (
        rl.decode_curve,
        dict(
            model=MODEL,
            machine="A100 40GB SXM",
            context=100,
            batches=[1, 2],
            kernels=100,
            per_kernel=3,
            weights="int4",
            kv="fp8",
            activations="bf16",
        ),
        dict(
            model="object",
            machine="object",
            context="object",
            batches="object",
            kernels="object",
            per_kernel="object",
            weights="name",
            kv="name",
            activations="name",
        ),
    ),
    (
        rl.pareto_points,
        dict(wait=[1, 2], throughput=[3, 4]),
        dict(wait="object", throughput="object"),
    ),
    (rl.static_batch_use, dict(tokens=[100, 50]), dict(tokens="object")),
    (
        rl.free_chunk,
        dict(decode_rows=100, machine="H200 SXM", precision="bf16", weights="fp8"),
        dict(decode_rows="rows size", machine="object", precision="object", weights="name"),
    ),
    (
        rl.prefix_hit_tokens,
        dict(tokens=100, hit_rate=1),
        dict(tokens="tokens amount", hit_rate="share amount"),
    ),
    (rl.page_waste, dict(block=16), dict(block=TOKENS)),
    (rl.page_use, dict(tokens=100, block=16), dict(tokens=TOKENS, block=TOKENS)),
    (
        rl.prefill_chips_per_decode_chip,
        dict(prefill_time=3, step=2, batch=100, tokens=120),
        dict(prefill_time="s positive", step="s positive", batch=BATCH, tokens=TOKENS),
    ),
    (
        rl.disaggregated_rate,
        dict(prefill_rate=3, decode_rate=5, prefill_chips=2, decode_chips=1),
        dict(
            prefill_rate="request/s amount",
            decode_rate="request/s amount",
            prefill_chips="chips size",
            decode_chips="chips size",
        ),
    ),
    (
        rl.expected_tokens,
        dict(acceptance=1, guesses=5),
        dict(acceptance="share amount", guesses="tokens amount"),
    ),
    (
        rl.speculation_speedup,
        dict(acceptance=1, guesses=5, draft_time=1),
        dict(acceptance="share amount", guesses="tokens amount", draft_time="of a pass amount"),
    ),
    (
        rl.speculation_operations,
        dict(acceptance=1, guesses=5, draft_operations=1),
        dict(
            acceptance="share amount",
            guesses="tokens amount",
            draft_operations="of a token amount",
        ),
    ),
    (
        rl.cost_per_million_tokens,
        dict(price_per_hour=16, tokens_per_second=100),
        dict(price_per_hour="currency/h amount", tokens_per_second="token/s positive"),
    ),
    (
        rl.servers_needed,
        dict(tokens=100, seconds=60, tokens_per_second=3),
        dict(tokens="tokens amount", seconds="s positive", tokens_per_second="token/s positive"),
    ),
    (
        rl.reading_rate,
        dict(words_per_minute=100, tokens_per_word=2),
        dict(words_per_minute="words/min amount", tokens_per_word="tokens positive"),
    ),
    (rl.bytes_per_element, dict(precision="bf16"), dict(precision="name")),
    (
        rl.quantity,
        dict(value=100, unit="byte", digits=4),
        dict(value="byte any*", unit="object", digits="digits size*"),
    ),
    (
        rl.Machine,
        dict(
            name="mine",
            peaks={"fp32": 100},
            bandwidths={"DRAM": 120},
            capacities={"DRAM": 100},
            units=100,
        ),
        dict(
            name="object",
            peaks="object",
            bandwidths="object",
            capacities="object",
            units="multiprocessors or cores size*",
        ),
    ),
    (
        rl.Transformer,
        dict(
            layers=3,
            d_model=96,
            heads=12,
            kv_heads=4,
            head_dim=8,
            d_ff=100,
            vocab=120,
            experts=5,
            experts_per_token=2,
            dense_layers=1,
            norms_per_layer=3,
            gated=True,
        ),
        dict.fromkeys(
            (
                "layers",
                "d_model",
                "heads",
                "kv_heads",
                "head_dim",
                "d_ff",
                "vocab",
                "experts",
                "experts_per_token",
            ),
            "count size*",
        )
        | dict(dense_layers="count count*", norms_per_layer="count count*", gated="switch"),
    ),
    *(
        (
            step,
            dict(batch=100, weights="int4", kv="fp8", activations="bf16", elementwise=True)
            | {second: 120, more: 3},
            {
                "batch": BATCH,
                second: TOKENS,
                more: "tokens count" if more == "cached" else TOKENS,
                "elementwise": "switch",
                "weights": "name",
                "kv": "name",
                "activations": "name",
                "parallel": "object",
                "link": "object",
            },
        )
        for step, second, more in SPECIAL
    ),
]
IDS = [f"{call[0].__qualname__}-{i}" for i, call in enumerate(CALLS)]
NUMBERS = [
    (function, good, argument, *kind.removesuffix("*").rsplit(" ", 1), kind.endswith("*"))
    for function, good, arguments in CALLS
    for argument, kind in arguments.items()
    if " " in kind
]
NUMBER_IDS = [f"{row[0].__qualname__}-{row[2]}-{i}" for i, row in enumerate(NUMBERS)]


@pytest.mark.parametrize(
    ("function", "good", "argument", "unit", "kind", "single"), NUMBERS, ids=NUMBER_IDS
)
def test_bad_number(function, good, argument, unit, kind, single):
    default = inspect.signature(function).parameters[argument].default
    for bad in NO_NUMBER + REFUSED[kind] + [np.array([2, 3])] * single:
        if bad is None and default is None or function is rl.quantity and isinstance(bad, float):
            continue  # None asks for the default; quantity also words what is not finite
        if argument == "tile" and isinstance(bad, list):
            continue  # a pair of sides: below
        with pytest.raises(ValueError) as error:
            function(**good | {argument: bad})
        message = str(error.value)
        assert (
            message.startswith(argument) and f"({unit})" in message and repr(bad)[:77] in message
        ), message


@pytest.mark.parametrize(
    ("function", "good", "argument", "unit", "kind", "single"), NUMBERS, ids=NUMBER_IDS
)
def test_every_kind_of_number_will_do(function, good, argument, unit, kind, single):
    value, expected = good[argument], plain(function(**good))
    kinds = [
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
        np.float16,
        np.float32,
        float,
        int,
    ]
    for convert in kinds:
        for given in (convert(value), np.asarray(convert(value))):
            assert plain(function(**good | {argument: given})) == expected, (convert, given)
        if not single:  # an int8 array would overflow at 128 if anything were computed in it
            many = plain(function(**good | {argument: np.full((2, 1), convert(value))}))
            np.testing.assert_array_equal(
                np.broadcast_arrays(*many),
                np.broadcast_to(np.reshape(expected, (-1, 1, 1)), (len(many), 2, 1)),
            )


WORDS = [
    (function, good, argument)
    for function, good, arguments in CALLS
    for argument, kind in arguments.items()
    if kind == "name"
]
SWITCHES = [
    (function, good, argument)
    for function, good, arguments in CALLS
    for argument, kind in arguments.items()
    if kind == "switch"
]


@pytest.mark.parametrize(
    ("function", "good", "argument"),
    WORDS,
    ids=[f"{row[0].__qualname__}-{row[2]}" for row in WORDS],
)
def test_bad_name(function, good, argument):
    for bad in ("fp12", "", "x" * 200, 3, 0.5, True, [], {}, None, object(), np.ones(2)):
        if bad is None and inspect.signature(function).parameters[argument].default is None:
            continue
        with pytest.raises(ValueError) as error:
            function(**good | {argument: bad})
        message = str(error.value)
        assert (argument in message or function.__name__ + " " in message) and repr(bad)[
            :77
        ] in message, message
        if isinstance(bad, str):
            assert isinstance(error.value, KeyError) and "choose one of" in message


@pytest.mark.parametrize(
    ("function", "good", "argument"),
    SWITCHES,
    ids=[f"{row[0].__qualname__}-{row[2]}" for row in SWITCHES],
)
def test_bad_switch(function, good, argument):
    for bad in (0, 1, None, "yes", [], np.array([True])):
        with pytest.raises(ValueError, match=f"^{argument} must be True or False; got "):
            function(**good | {argument: bad})
    function(**good | {argument: np.True_})


@pytest.mark.parametrize(
    ("function", "argument", "bad"),
    [
        (rl.bound, "work", [3, None, (1, 2), "work"]),
        (rl.count_misses, "addresses", [3, None, "abc", [0, -4], [0.5], ["0"], [None]]),
        (rl.bank_turns, "addresses", [3, None, "abc", [0, -4], [0.5], ["0"], [None]]),
        (
            rl.counted_tiled_product,
            "a",
            [
                3,
                None,
                np.ones(4),
                np.ones((5, 3)),
                np.ones((5, 4), np.float32),
                np.ones((0, 4)),
                [["x"] * 4] * 5,
            ],
        ),
        (
            rl.counted_tiled_product,
            "b",
            [3, None, np.ones(4), np.ones((3, 6)), np.ones((4, 6), bool), np.ones((4, 0))],
        ),
        (
            rl.chain_cost,
            "dims",
            [3, None, (), (5,), "abcd", (96, 80, 0, 3), (96, 2.5, 9, 9), (96, True, 9, 9)],
        ),
        (
            rl.chain_cost,
            "order",
            [
                None,
                0,
                (0, 1),
                ((0, 1), 3),
                ((0, 1), 1),
                ((1, 0), 2),
                (0, 1, 2),
                ("AB", "C"),
                ((0, 1), True),
                ((-1, 0), 1),
                0.0,
            ],
        ),
        (rl.best_chain_order, "dims", [3, None, (), (5,), "abcd", (96, np.array([8, 9]), 9)]),
        (rl.Machine, "name", [None, 3, ""]),
        (rl.Machine, "capacities", [None, 3, [1], {"DRAM": 0}]),
        (
            rl.Machine,
            "peaks",
            [
                None,
                {},
                [],
                3,
                {"fp32": 0},
                {"fp32": []},
                {"fp32": "20 TFLOP/s"},
                {"fp12": 3},
                {"fp32": [rl.Peak(-1)]},
            ],
        ),
        (rl.Machine, "bandwidths", [None, {}, 3, {"DRAM": -1}, {"DRAM": None}, {"DRAM": [1, 2]}]),
        (rl.Transformer, "heads", [13]),
        (rl.Transformer, "experts_per_token", [6]),
        (rl.Transformer, "dense_layers", [4]),
        (rl.Transformer, "windowed_layers", [1]),
        (MODEL.decode, "queries", [121, [100, 121]]),
        (MODEL.decode, "weights", [{"experts": "int4"}, {"other": "fp12"}, {"expert": "int4"}]),
        (rl.attention, "kv_heads", [25, [24, 25]]),
        (rl.attention, "context", [79]),
        (rl.conv2d, "kernel", [85]),
        (rl.strassen, "n", [90, [96, 90]]),
        (rl.strassen, "levels", [6, 5000]),
        (rl.count_misses, "capacity", [30, 130]),
        (rl.loop_addresses, "pitch", [4]),
        (rl.quantity, "unit", [3, None, []]),
        (rl.Torus, "sides", [3, None, (), "ab", (0,), (2, 2.5), (2, True), (2, [3])]),
        (
            rl.counted_all_reduce,
            "arrays",
            [
                [],
                [np.ones(4), np.ones(5)],
                [np.ones(3), np.ones(3)],
                [np.ones(4), np.ones(4, int)],
                [np.float64(1), np.float64(2)],
                [np.ones(0), np.ones(0)],
                [["a", "b"], ["c", "d"]],
            ],
        ),
        (rl.step_time, "works", [None, (), [3], rl.Work(1, 1), {}]),
        (rl.kernels_per_step, "model", [None, 7e9, "no such model"]),
        (rl.time_per_output_token, "tokens", [2, 1, [3, 2]]),
        (rl.time_per_output_token, "latency", [2, [3, 2]]),
        (rl.goodput, "limits", [None, 3, (1, 1)]),
        (rl.decode_curve, "batches", [None, 0, [1, 0.5]]),
        (rl.pareto_points, "throughput", [[1], [1, 2, 3], 0]),
        (rl.expected_tokens, "acceptance", [2, 1.01, [0.5, 1.5]]),
        (rl.prefix_hit_tokens, "hit_rate", [2]),
        (rl.training_memory, "model", [None, 7e9, "no such model"]),
        (rl.training_step, "model", [None, 7e9, "no such model"]),
    ],
)
def test_what_does_not_fit_together(function, argument, bad):
    good = next(good for call, good, _ in CALLS if call == function)
    for value in bad:
        with pytest.raises(ValueError, match=rf"\b{argument}|precision 'fp12'"):
            function(**good | {argument: value})


def test_every_public_function_and_argument_is_in_the_table():
    tried = {function: arguments for function, _, arguments in CALLS}
    elsewhere = {
        rl.check,
        rl.guessed,
        rl.NumberQuestion,
        rl.ChoiceQuestion,
        rl.FunctionQuestion,
        rl.Verdict,
        rl.fused,
        rl.time_in_sequence,
        rl.machines,
        rl.transformers,
        rl.link_names,
    }
    made_by_the_library = {
        rl.Bound,
        rl.Peak,
        rl.Misses,
        rl.CountedProduct,
        rl.ChainCost,
        rl.TrainingMemory,
        rl.Transfer,
        rl.CountedCollective,
        rl.StepTime,
        rl.DecodeCurve,
        rl.ParallelStep,
        rl.ParallelTraining,
        rl.Price,
        rl.Diagram,
    }
    public = {value for name in rl.__all__ if callable(value := getattr(rl, name))}
    pictures = {
        value
        for value in public
        if value.__module__.startswith(
            ("roofline_lib.explorers", "roofline_lib.rooflines", "roofline_lib.diagrams")
        )
    }
    assert public - set(tried) - elsewhere - made_by_the_library - pictures == set()
    for function, arguments in tried.items():
        missing = set(inspect.signature(function).parameters) - set(arguments)
        assert not missing or function in (rl.Machine, rl.Transformer), (function, missing)


@pytest.mark.parametrize("tile", [(), (8,), (8, 8, 8), (8, 0), ("8", 8), (8, None), ([], 8)])
def test_bad_pairs_of_tile_sides(tile):
    for call in (
        lambda: rl.tiled_gemm(9, 9, 9, tile),
        lambda: rl.tile_memory(tile),
        lambda: rl.tile_count(9, 9, tile),
    ):
        with pytest.raises(ValueError, match=r"tile.* must .*\(elements\); got"):
            call()


def test_counts_beyond_64_bits():
    big = 10**30
    assert rl.gemm(big, big, big).flops == pytest.approx(2e90) and rl.gemm([big, 1.0], 1, 1).flops[
        0
    ] == pytest.approx(2e30)
    with pytest.raises(ValueError, match=r"flops .*\(FLOP\); got inf"):
        rl.gemm(10**200, 10**200, 10**200)
    with pytest.raises(ValueError, match=r"m must be .*\(elements\)"):
        rl.gemm(10**400, 1, 1)


def plain(result):
    """A result as a list of its numbers."""
    if isinstance(
        result,
        rl.Work
        | rl.Misses
        | rl.ChainCost
        | rl.Transformer
        | rl.TrainingMemory
        | rl.StepTime
        | rl.Limits
        | rl.DecodeCurve,
    ):
        return [getattr(result, field.name) for field in dataclasses.fields(result)]
    if isinstance(result, rl.Transfer):
        return [result.bytes_sent, result.bytes_on_link, result.steps]
    if isinstance(result, rl.Parallel):
        return [result.chips, result.replicas, result.zero]
    if isinstance(result, rl.Link):
        return [result.bandwidth, result.latency, result.ports, result.domain, result.line_rate]
    if isinstance(result, dict | tuple):
        parts = result.values() if isinstance(result, dict) else result
        return [number for part in parts for number in plain(part)]
    if isinstance(result, rl.CountedProduct):
        return [result.bytes_moved, result.fast_bytes, *result.product.flat]
    if isinstance(result, rl.Machine):
        return [result.units]
    return list(result) if isinstance(result, list | GeneratorType) else [result]
