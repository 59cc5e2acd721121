"""Bytes per element, against numpy's types and the formats' own definitions."""

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib.arguments import unknown


@pytest.mark.parametrize(
    ("precision", "stored_as"),
    [
        ("fp64", np.float64),
        ("fp32", np.float32),
        ("tf32", np.float32),
        ("fp16", np.float16),
        ("bf16", np.uint16),
        ("fp8", np.uint8),
        ("int8", np.int8),
    ],
)
def test_as_wide_as_the_type_that_holds_it(precision, stored_as):
    assert rl.bytes_per_element(precision) == np.dtype(stored_as).itemsize


@pytest.mark.parametrize(
    ("precision", "bits", "block"),
    [("fp4", 4, None), ("int4", 4, None), ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)],
)
def test_block_formats_add_one_8_bit_scale_a_block(precision, bits, block):
    total = bits * block + 8 if block else bits
    assert rl.bytes_per_element(precision) == total / (block or 1) / 8


@pytest.mark.parametrize(("precision", "group"), [("int4g128", 128), ("int4g64", 64)])
def test_group_formats_add_one_16_bit_scale_a_group(precision, group):
    assert 8 * rl.bytes_per_element(precision) == 4 + 16 / group


def test_all_are_floats_and_named_in_the_error():
    assert all(type(rl.bytes_per_element(precision)) is float for precision in rl.PRECISIONS)
    with pytest.raises(
        KeyError,
        match="^precision 'float32' is not known; nearest: fp32; choose one of "
        + ", ".join(rl.PRECISIONS),
    ):
        rl.bytes_per_element("float32")


@pytest.mark.parametrize("more", [(), ("fp6",), tuple(f"q{bits}" for bits in range(30))])
def test_one_more_precision_changes_no_error(more):
    """What is nearest depends on the name that came, not on how many choices there are."""
    choices = [*rl.PRECISIONS, *more]
    for came, nearest in (
        ("fp12", ""),
        ("mxfp5", "nearest: mxfp8, mxfp4; "),
        ("BF-16", "nearest: bf16; "),
    ):
        assert (
            str(unknown("precision", came, choices))
            == f"precision '{came}' is not known; {nearest}choose one of {', '.join(choices)}"
        )


@pytest.mark.parametrize(
    ("came", "nearest"),
    [
        ("BF16", "bf16"),
        ("float16", "fp16"),
        ("half", "fp16"),
        ("double", "fp64"),
        (np.float32, "fp32"),
        (np.dtype("float16"), "fp16"),
        ("torch.bfloat16", "bf16"),
        ("FP-8", "fp8, mxfp8"),
        ("float8_e4m3", "fp8"),
    ],
)
def test_what_others_call_a_precision(came, nearest):
    with pytest.raises(KeyError, match=f"is not known; nearest: {nearest}; choose one of fp64, "):
        rl.bytes_per_element(came)
