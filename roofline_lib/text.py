"""Numbers in and out of words: SI prefixes, units, and the errors that a wrong argument gets."""

import difflib
import re

import numpy as np

_PREFIXES = [(1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""),
             (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p")]
_SCALE = {prefix: scale for scale, prefix in _PREFIXES} | {"K": 1e3, "u": 1e-6, "μ": 1e-6} | {
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SYMBOL = {"byte": "B", "byte/s": "B/s"}
_PREFIXED = ("byte", "byte/s", "FLOP", "FLOP/s", "s", "Hz", "token/s", "W")
_BASE = {"B": "byte", "byte": "byte", "bytes": "byte", "b/s": "bit/s", "bit/s": "bit/s", "B/s": "byte/s", "byte/s": "byte/s",
         "bytes/s": "byte/s", "FLOP": "FLOP", "FLOPs": "FLOP", "FLOP/s": "FLOP/s", "FLOPs/s": "FLOP/s", "FLOPS": "FLOP/s",
         "MAC": "MAC", "MACs": "MAC", "s": "s", "sec": "s", "seconds": "s", "Hz": "Hz", "FLOP/byte": "FLOP/byte",
         "FLOP/B": "FLOP/byte", "FLOPs/byte": "FLOP/byte", "token/s": "token/s", "tokens/s": "token/s", "W": "W", "%": "%",
         "token": "token", "tokens": "token", "x": "", "": ""}


class UnknownName(KeyError, ValueError):
    """An unknown name, which is a KeyError and a ValueError, printed as a sentence."""

    def __str__(self):
        return str(self.args[0])


def quantity(value, unit, digits=3):
    """`value` (one SI float) in words: quantity(4.362e9, "byte") is "4.36 GB". Units such as FLOP/byte get no prefix."""
    if not isinstance(unit, str):
        raise ValueError(f"unit must be a text such as 'byte', 'FLOP/s' or ''; got {_short(unit)}")
    digits = int(number("digits", digits, "digits", least=1, whole=True, single=True))
    if isinstance(value, float | np.floating) and not np.isfinite(value):
        return f"{float(value)} {unit}".strip()
    value = number("value", value, unit or "no unit", single=True)
    scale, prefix = 1.0, ""
    if unit in _PREFIXED and value:
        value = float(f"{value:.{digits}g}")  # before the prefix is chosen: 999.6 MB reads 1 GB
        scale, prefix = next((p for p in _PREFIXES if abs(value) >= p[0]), _PREFIXES[-1])
    gap = "" if unit == "%" else " "
    return f"{significant(value / scale, digits)}{gap}{prefix}{_SYMBOL.get(unit, unit)}".rstrip()


def significant(value, digits=3):
    """`value` with `digits` significant digits and no needless exponent: 1234.5 -> "1,230", 0.24999 -> "0.25"."""
    rounded = float(f"{float(value):.{digits}g}")
    if rounded and not 1e-4 <= abs(rounded) < 1e7:
        return f"{rounded:.{digits - 1}e}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")
    decimals = 0 if not rounded else max(0, digits - 1 - int(np.floor(np.log10(abs(rounded)))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def parse_quantity(text):
    """(value in base units, base unit, prefix) of a text such as "2.147 GFLOP", "1,000 MiB", "16.8 us"; ValueError if it is none."""
    # commas and underscores only between groups of three: a decimal comma, as in 2,14, is asked about and not read as 214
    match = re.fullmatch(r"\s*([-+]?(?:(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![\d.,_])\s*(.*?)\s*", str(text))
    if not match:
        raise ValueError(f"{text!r} is no number with a unit, such as '2.147 GFLOP'")
    number, unit = float(re.sub("[,_]", "", match[1])), match[2]
    if unit in _BASE:
        return number, _BASE[unit], ""
    for prefix in sorted(_SCALE, key=len, reverse=True):
        rest = unit.removeprefix(prefix)
        if prefix and rest != unit and _BASE.get(rest) in (*_PREFIXED, "MAC", "bit/s"):
            return number * _SCALE[prefix], _BASE[rest], prefix
    raise ValueError(f"unit {unit!r} is not known; use for example GFLOP, TFLOP/s, MB, GiB, ms, FLOP/byte or %")


def unknown(kind, name, choices):
    """The error for a name that is not among `choices`, nearest ones first."""
    choices = list(choices)
    by_key = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(_short(name).strip("'\"").lower(), by_key, n=4, cutoff=0.5)
    hint = f"; nearest: {', '.join(by_key[key] for key in near)}" if near and len(choices) > 12 else ""
    return UnknownName(f"{kind} {_short(name)} is not known{hint}; choose one of {', '.join(choices)}")


def number(name, value, unit, *, least=None, above=None, whole=False, finite=True, single=False):
    """`value` as float or, unless `single`, float64 array; ValueError that names the argument, its unit, what came and what would do."""
    try:
        if type(value) in (float, int):
            array = float(value)
        else:  # as objects, so that a True or a "2" in a list is seen, and integers of any length pass
            raw = value if isinstance(value, np.ndarray | np.generic) else np.asarray(value, dtype=object)
            if raw.dtype.kind not in "iufO" or raw.dtype.kind == "O" and not all(map(_real, raw.flat)):
                raise TypeError
            array = plain(raw.astype(np.float64))
        bad = (array != array) | (finite & (abs(array) == np.inf))
        if above is not None:
            bad = bad | (array <= above)
        if least is not None:
            bad = bad | (array < least)
        if whole:
            bad = bad | (array != (array // 1 if isinstance(array, float) else np.floor(array)))
        if bad if isinstance(array, float) else np.any(bad) or array.size == 0 or single:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        wanted = ("one " if single else "a ") + ("whole number" if whole else "number")
        limit = f" above {above}" if above is not None else f" of at least {least}" if least is not None else ""
        raise ValueError(f"{name} must be {wanted}{limit} ({unit}); got {_short(value)}") from None
    return array


def size(name, value, unit="elements", single=False):
    """A matrix side, a batch, a count: whole and at least 1."""
    return number(name, value, unit, least=1, whole=True, single=single)


def switch(name, value):
    """A yes or no: True or False and nothing else, so that a misplaced argument is heard of."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {_short(value)}")
    return bool(value)


def plain(value):
    """A float where numpy made a scalar or an array without axes; arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value


def _real(value):
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _short(value):
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
