"""OperatorExplorer: every point is where the library puts that operator, in both states, and eight
labels never meet."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.explorers.operator import OperatorExplorer, Staircase
from roofline_lib.explorers.shapes import Dot, Words

NAMES = (
    "elementwise",
    "softmax",
    "LayerNorm",
    "RMSNorm",
    "convolution",
    "GEMM",
    "prefill attention",
    "decode attention",
)
PAIRS = [
    (name, precision)
    for name in rl.machines()
    for precision in rl.machine(name).precisions
    if precision != "fp64"
]
anywhere = given(
    st.sampled_from(PAIRS),
    st.integers(1, 65536) | st.sampled_from([1, 2, 64, 4096, 65536]),
    st.sampled_from([32, 8, 1]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def points(explorer):
    """{operator: its point}."""
    (staircase,) = (mark for mark in explorer.now.marks if isinstance(mark, Staircase))
    return {point.label.rpartition(" ")[0]: point for point in staircase.points}


def expected(precision, tokens, kv_heads, fused, flash, causal):
    """{operator: its Works, one a kernel}, spelled out: crossings of all the numbers, an operator,
    or an operator and a ReLU."""
    wide, scores, image = 4096 * tokens, 32 * tokens**2, 32 * 56 * 56 * 64
    width, relu = rl.bytes_per_element(precision), lambda n: rl.elementwise(n, precision, 1, 1)
    conv = rl.conv2d(32, 56, 56, 64, 64, 3, precision, padding=1)
    product, shape = rl.gemm(tokens, 4096, 4096, precision), (32, kv_heads)
    whole = {
        "elementwise": rl.elementwise(wide, precision, 1, 1, 3),
        "softmax": rl.softmax(32 * tokens, tokens, precision),
        "LayerNorm": rl.layer_norm(tokens, 4096, precision),
        "RMSNorm": rl.rms_norm(tokens, 4096, precision),
    }
    crossings = {
        "elementwise": 6 * wide,
        "softmax": 8 * scores,
        "LayerNorm": 12 * wide,
        "RMSNorm": 7 * wide,
    }
    works = {
        name: [work if fused else rl.Work(work.flops, width * crossings[name])]
        for name, work in whole.items()
    }
    works["convolution"] = (
        [rl.Work(conv.flops + image, conv.bytes_moved)] if fused else [conv, relu(image)]
    )
    works["GEMM"] = (
        [rl.Work(product.flops + wide, product.bytes_moved)] if fused else [product, relu(wide)]
    )
    works["prefill attention"] = [
        rl.attention(1, *shape, tokens, tokens, 128, precision, flash=flash, causal=causal)
    ]
    works["decode attention"] = [rl.attention(1, *shape, 1, tokens, 128, precision, flash=flash)]
    return works


@anywhere
def test_every_point_is_where_the_library_puts_it(pair, tokens, kv_heads, fused, flash, causal):
    machine, precision = pair
    explorer = OperatorExplorer(machine, precision, tokens, kv_heads, fused, flash, causal)
    works, shown = expected(precision, tokens, kv_heads, fused, flash, causal), points(explorer)
    assert tuple(shown) == NAMES
    for name, kernels in works.items():
        total, point = sum(kernels), shown[name]
        time = sum(rl.bound(work, machine, precision).time for work in kernels)
        assert np.isclose(point.x, total.intensity) and np.isclose(point.y, total.flops / time), (
            name
        )
        assert point.y <= rl.bound(total, machine, precision).attainable_performance * (1 + 1e-9)
        assert point.hollow != (flash if "attention" in name else fused)
        assert point.label == f"{name} {rl.quantity(point.x, '')}"


@settings(max_examples=50)
# a label at the right edge, over the point to its left
@example(("RTX 5060 Ti", "fp4"), 4096, 1, False, True, False)
# a roof close under the name of its side
@example(("H100 SXM", "fp8"), 65536, 32, False, False, False)
@example(("TPU v6e", "int8"), 4096, 32, True, True, False)
@example(("EPYC 7452", "fp32"), 1, 32, True, False, False)  # eight labels close above the foot
@anywhere
def test_labels_stay_apart_and_in_the_frame(pair, tokens, kv_heads, fused, flash, causal):
    explorer = OperatorExplorer(*pair, tokens, kv_heads, fused, flash, causal, operator="softmax")
    frame = np.array(explorer.now.axes[0].frame)
    words = [shape for shape in explorer.shapes if isinstance(shape, Words)]
    dots = [shape for shape in explorer.shapes if isinstance(shape, Dot)]
    assert len(dots) == 8 and len(words) >= 11
    for one, other in itertools.combinations(words, 2):
        assert (
            np.hypot(*(one.covered()[:, None] - other.covered()[None]).transpose(2, 0, 1)).min() > 1
        ), (
            one.text,
            other.text,
        )
    for one in words:
        assert (one.covered() >= frame[:2] - 1).all() and (one.covered() <= frame[2:] + 1).all(), (
            one.text
        )
        if one.text.startswith(NAMES):
            assert all(
                np.hypot(*(one.covered() - (dot.x, dot.y)).T).min() > 0.8 * dot.radius
                for dot in dots
            ), one.text


@example(("EPYC 7452", "fp32"), 4096, 32, False, False, False)
@anywhere
def test_a_switch_moves_points_and_not_the_scale(pair, tokens, kv_heads, fused, flash, causal):
    one, other = (
        OperatorExplorer(*pair, tokens, kv_heads, *state, causal)
        for state in ((fused, flash), (not fused, not flash))
    )
    assert one.now.axes == other.now.axes
    for before, after in zip(points(one).values(), points(other).values(), strict=True):
        assert (before.x < after.x) == before.hollow or before.x == after.x


def test_the_readout_compares_both_ways():
    explorer = OperatorExplorer(operator="softmax")
    assert explorer.now.readout == (
        "softmax, 131,072 rows of 4,096 scores, in bf16 on house chip: 2.68 GFLOP either "
        "way. Step by step 8.59 GB, 0.312 FLOP/byte, memory-bound, at least 4.29 ms; in one kernel "
        "2.15 GB, 1.25 FLOP/byte, memory-bound, at least 1.07 ms, 4 times as fast."
    )
    explorer = OperatorExplorer(fused=True, flash=True)
    gains = dict(
        re.findall(
            r"(\w+(?: attention)?) (\d[\d.]*\d|\d)[,.]", explorer.readout.partition("kernel: ")[2]
        )
    )
    assert gains == {
        "elementwise": "3",
        "softmax": "4",
        "LayerNorm": "6",
        "RMSNorm": "3.5",
        "convolution": "1.52",
        "GEMM": "1.07",
        "prefill attention": "2.42",
        "decode attention": "1.02",
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_operator_has_its_sentence_and_its_mark(name):
    explorer = OperatorExplorer("H100 SXM", "fp8", operator=name)
    assert explorer.readout.startswith(f"{name}, ")
    assert explorer.readout.count("-bound") == (3 if name == "GEMM" else 2)
    assert [key for key, point in points(explorer).items() if point.bold] == [name]


def test_causal_halves_prefill_almost_and_nothing_else():
    plain, masked = (
        points(OperatorExplorer(tokens=64, flash=True, causal=causal)) for causal in (False, True)
    )
    assert [name for name in NAMES if plain[name] != masked[name]] == ["prefill attention"]
    assert masked["prefill attention"].x / plain["prefill attention"].x == 65 / 128


@pytest.mark.parametrize(("machine", "precision"), PAIRS)
def test_the_lower_roof_of_ordinary_arithmetic_changes_no_verdict(machine, precision):
    """Softmax and norms cannot use matrix units. Fused, they are memory-bound under fp32 as well,
    so the explorer may draw them under the roof of products."""
    if "fp32" not in rl.machine(machine).precisions:
        pytest.skip("its sheet gives no rate of ordinary arithmetic")
    works = expected(precision, 4096, 32, True, True, False)
    for name in ("elementwise", "softmax", "LayerNorm", "RMSNorm"):
        assert rl.bound(sum(works[name]), machine, "fp32").bound_by == "memory", name


def test_a_precision_that_the_machine_lacks_is_said():
    assert "house chip has no fp8 peak" in OperatorExplorer(precision="fp8").readout


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"tokens": 0}, "tokens must be a whole number from 1 to 65536 (rows, keys); got 0"),
        ({"kv_heads": 3}, "kv_heads 3 is not known; choose one of 32, 16, 8, 4, 2, 1"),
        ({"fused": 1}, "fused must be True or False; got 1"),
        ({"flash": "yes"}, "flash must be True or False; got 'yes'"),
        ({"precision": "fp12"}, "precision 'fp12' is not known; choose one of"),
        ({"operator": "GELU"}, "operator 'GELU' is not known"),
    ],
)
def test_bad_arguments_say_what_would_do(bad, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        OperatorExplorer(**bad)


def test_a_gain_is_told_only_where_it_is_shown():
    assert "fast" not in str(OperatorExplorer().readout)
    merged = str(OperatorExplorer(fused=True).readout)
    assert "softmax 4, LayerNorm 6" in merged and "attention" not in merged


def test_kernels_on_both_sides_of_the_ridge_add_their_times():
    """An average of the two would say memory-bound, and a gain of 1.04."""
    found = OperatorExplorer(operator="convolution")
    said = str(found.readout)
    assert "24.7 µs compute-bound + 12.8 µs memory-bound = 37.5 µs" in said
    assert "1.52 times as fast" in said
