"""Quantities in words and back: SI prefixes and units."""

from __future__ import annotations

import re
import sys

import numpy as np

from roofline_lib.arguments import number, short

_PREFIXES = [
    (1e24, "Y"),
    (1e21, "Z"),
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
    (1e-12, "p"),
]
_SCALE = (
    {prefix: scale for scale, prefix in _PREFIXES}
    | {"K": 1e3, "u": 1e-6, "μ": 1e-6}
    | {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
)
_SYMBOL = {"byte": "B", "byte/s": "B/s"}
_PREFIXED = ("byte", "byte/s", "FLOP", "FLOP/s", "s", "Hz", "token/s", "W")
_BASE = {"": ""} | {
    word: base
    for base, words in {
        "byte": "B byte bytes",
        "byte/s": "B/s byte/s bytes/s",
        "bit": "b bit bits",
        "bit/s": "b/s bit/s",
        "FLOP": "FLOP FLOPs",
        "FLOP/s": "FLOP/s FLOPs/s FLOPS",
        "MAC": "MAC MACs",
        "s": "s sec seconds",
        "Hz": "Hz",
        "FLOP/byte": "FLOP/byte FLOP/B FLOPs/byte",
        "byte/FLOP": "byte/FLOP B/FLOP",
        "token": "token tokens",
        "token/s": "token/s tokens/s",
        "W": "W",
        "%": "% percent",
        "": "x times",
    }.items()
    for word in words.split()
}

# commas and underscores only between groups of three: a decimal comma, as in 2,14, is asked about
# and not read as 214
_QUANTITY = re.compile(
    r"\s*"
    r"([-+]?(?:(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"(?: ?/ ?(\d+))?"
    r"(?![\d.,_])\s*(.*?)\s*"
)


def quantity(value: float, unit: str, digits: int = 3) -> str:
    """`value` (one SI float) in words: quantity(4.362e9, "byte") is "4.36 GB". Units such as
    FLOP/byte get no prefix."""
    if not isinstance(unit, str):
        raise ValueError(f"unit must be a text such as 'byte', 'FLOP/s' or ''; got {short(unit)}")
    digits = int(number("digits", digits, "digits", least=1, whole=True, single=True))
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return f"{float(value)} {unit}".strip()
    value = number("value", value, unit or "no unit", single=True)
    scale, prefix = 1.0, ""
    if unit in _PREFIXED and value:
        value = float(f"{value:.{digits}g}")  # before the prefix is chosen: 999.6 MB reads 1 GB
        scale, prefix = next((p for p in _PREFIXES if abs(value) >= p[0]), _PREFIXES[-1])
    if prefix == "µ" and not _can_print(prefix):
        prefix = "u"
    gap = "" if unit == "%" else " "
    return f"{significant(value / scale, digits)}{gap}{prefix}{_SYMBOL.get(unit, unit)}".rstrip()


def _can_print(text: str) -> bool:
    """Whether standard output has these letters: many an East Asian console has no µ."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def plural(count: int, thing: str) -> str:
    """ "1 lane", "2 lanes", "1,024 lanes": a count with what it counts."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits and no needless exponent: 1234.5 -> "1,230", 0.24999
    -> "0.25"."""
    rounded = float(f"{float(value):.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        return (
            f"{rounded:.{digits - 1}e}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
        )
    decimals = 0 if not rounded else max(0, digits - 1 - int(np.floor(np.log10(abs(rounded)))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_quantity(text: str) -> tuple[float, str, str]:
    """(value in base units, base unit, prefix) of a text such as "2.147 GFLOP", "1,000 MiB", "1/6";
    ValueError if it is none."""
    match = _QUANTITY.fullmatch(str(text))
    if not match or match[2] and not float(match[2]):
        raise ValueError(f"{text!r} is no number with a unit, such as '2.147 GFLOP'")
    magnitude = float(re.sub("[,_]", "", match[1])) / float(match[2] or 1)
    unit = match[3]
    if unit in _BASE:
        return magnitude, _BASE[unit], ""
    for prefix in sorted(_SCALE, key=len, reverse=True):
        rest = unit.removeprefix(prefix)
        if prefix and rest != unit and _BASE.get(rest) in (*_PREFIXED, "MAC", "bit", "bit/s"):
            return magnitude * _SCALE[prefix], _BASE[rest], prefix
    raise ValueError(
        f"unit {unit!r} is not known; use for example GFLOP, TFLOP/s, MB, GiB, ms, FLOP/byte or %"
    )
