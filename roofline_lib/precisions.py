"""Number formats and what one element of each costs in memory."""

from __future__ import annotations

from roofline_lib.arguments import unknown

# tf32 is a way of multiplying, not of storing: its operands lie in memory as fp32. The MX formats
# share one 8-bit scale among 32 elements
# (OCP Microscaling Formats 1.0, 2023); nvfp4 shares one 8-bit scale among 16. int4 weights as GPTQ
# stores them (Frantar and others, 2022, arXiv:2210.17323) share a 16-bit scale among 128 or 64; a
# zero point beside it (AWQ) adds 4 bits more to each group.
_BYTES = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
    "mxfp8": 8.25 / 8,
    "mxfp4": 4.25 / 8,
    "nvfp4": 4.5 / 8,
    "int4g128": 4.125 / 8,
    "int4g64": 4.25 / 8,
}

PRECISIONS = tuple(_BYTES)
# what language models are served in, by what is stored
SERVED = {
    "weights": ("bf16", "fp8", "int4", "mxfp4"),
    "kv": ("bf16", "fp8", "int4"),
    "activations": ("bf16", "fp16", "fp8"),
}
# in numpy, torch and C
_SAID = {"bfloat": "bf", "float": "fp", "half": "fp16", "single": "fp32", "double": "fp64"}


def bytes_per_element(precision: str) -> float:
    """Bytes that one element takes in memory (float): fp64 8, fp32 4, bf16 2, int4 0.5, mxfp4
    0.53125. UnknownName for any other."""
    return bytes_of("precision", precision)


def bytes_of(argument: str, precision: str) -> float:
    """The same, with an error that names this `argument`."""
    if not isinstance(precision, str) or precision not in _BYTES:
        raise unknown(argument, precision, _BYTES, _SAID)
    return _BYTES[precision]


def widths(precision: str, **others) -> list[float]:
    """Bytes per element of several matrices, in order: the keyword names a matrix and gives its
    precision, None where it is `precision`."""
    s = bytes_per_element(precision)
    return [s if other is None else bytes_of(argument, other) for argument, other in others.items()]
