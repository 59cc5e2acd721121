"""Numbers in and out of words: SI prefixes, units, and the errors that a wrong argument gets."""

import difflib
import re
import textwrap
import unicodedata

import numpy as np

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


class UnknownName(KeyError, ValueError):
    """An unknown name, which is a KeyError and a ValueError, printed as a sentence."""

    def __str__(self):
        return str(self.args[0])


def quantity(value, unit, digits=3):
    """`value` (one SI float) in words: quantity(4.362e9, "byte") is "4.36 GB". Units such as
    FLOP/byte get no prefix."""
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


def parse_quantity(text):
    """(value in base units, base unit, prefix) of a text such as "2.147 GFLOP", "1,000 MiB", "1/6";
    ValueError if it is none."""
    # commas and underscores only between groups of three: a decimal comma, as in 2,14, is asked
    # about and not read as 214
    match = re.fullmatch(
        r"\s*([-+]?(?:(?:\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?: ?/ ?(\d+))?(?![\d.,_])\s*(.*?)\s*",
        str(text),
    )
    if not match or match[2] and not float(match[2]):
        raise ValueError(f"{text!r} is no number with a unit, such as '2.147 GFLOP'")
    number, unit = float(re.sub("[,_]", "", match[1])) / float(match[2] or 1), match[3]
    if unit in _BASE:
        return number, _BASE[unit], ""
    for prefix in sorted(_SCALE, key=len, reverse=True):
        rest = unit.removeprefix(prefix)
        if prefix and rest != unit and _BASE.get(rest) in (*_PREFIXED, "MAC", "bit", "bit/s"):
            return number * _SCALE[prefix], _BASE[rest], prefix
    raise ValueError(
        f"unit {unit!r} is not known; use for example GFLOP, TFLOP/s, MB, GiB, ms, FLOP/byte or %"
    )


def unknown(kind, name, choices, said=None):
    """The error for a name not among `choices`: those that contain it first, then the nearest.
    `said`: other words for parts of them."""
    choices, typed = list(choices), re.sub(r"[\s'\"_-]", "", _short(name).lower())
    for word, ours in (said or {}).items():
        typed = typed.replace(word, ours)
    by_key = {re.sub(r"[\s_-]", "", choice.lower()): choice for choice in choices}
    near = [key for key in by_key if len(typed) > 1 and (typed in key or key in typed)][:6]
    if len(choices) > 12:
        near += [
            key
            for key in difflib.get_close_matches(typed, by_key, n=4, cutoff=0.5)
            if key not in near
        ][: max(0, 4 - len(near))]
    hint = f"; nearest: {', '.join(by_key[key] for key in near)}" if near else ""
    rest = (
        f"choose one of {', '.join(choices)}"
        if len(choices) <= 60
        else f"there are {len(choices)}, {min(choices)} to {max(choices)}"
    )
    return UnknownName(f"{kind} {_short(name)} is not known{hint}; {rest}")


def meant(text, choices):
    """The one of `choices` that a text means: in full, by its letter, or by its beginning or some
    of its words if no other has them."""

    # small, 3n² as 3n2, without quotes and what stands for nothing, such as an article
    def words(text):
        found = re.findall(
            r"(?:(?<!\w)-(?=\d))?[^\W_]+(?:(?<=\d)[.,/](?=\d)\d+)*",
            unicodedata.normalize("NFKC", text).lower(),
        )
        return [
            word for word in found if word not in ("a", "an", "the", "is", "are", "was", "it")
        ] or found

    def begins(whole):
        # 25 is not the beginning of 256
        return whole.startswith(key) and not re.match(r"\d\d", whole[len(key) - 1 :])

    given, key, letter = (
        words(text),
        "".join(words(text)),
        re.fullmatch(r"\W*([a-h])\W*", text.lower()),
    )
    # in (AB)C every sign counts
    loose = [] if any("(" in choice for choice in choices) else choices
    exact = [
        choice
        for choice in choices
        if re.sub(r"[\s'\"]", "", choice.lower()) == re.sub(r"[\s'\"]", "", text.lower())
    ]
    same = [choice for choice in loose if "".join(words(choice)) == key]
    some = [
        choice
        for choice in loose
        if set(given) <= set(words(choice)) or begins("".join(words(choice)))
    ]
    found = exact or letter and list(choices["abcdefgh".index(letter[1]) :][:1]) or same or some
    return found[0] if key and len(found) == 1 else None


def wrapped(message):
    """The lines of a message broken at spaces, since a notebook breaks a long one anywhere."""
    return "\n".join(
        textwrap.fill(
            line, 88, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        for line in message.split("\n")
    )


def number(name, value, unit, *, least=None, above=None, whole=False, finite=True, single=False):
    """`value` as float or, unless `single`, float64 array; ValueError that names the argument, its
    unit, what came and what would do."""
    try:
        if type(value) in (float, int):
            array = float(value)
        # as objects, so that a True or a "2" in a list is seen, and integers of any length pass
        else:
            raw = (
                value
                if isinstance(value, np.ndarray | np.generic)
                else np.asarray(value, dtype=object)
            )
            if (
                raw.dtype.kind not in "iufO"
                or raw.dtype.kind == "O"
                and not all(map(_real, raw.flat))
            ):
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
        limit = (
            f" above {above}"
            if above is not None
            else f" of at least {least}"
            if least is not None
            else ""
        )
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


def name_key(name):
    """A name as it is looked up: case, spaces, hyphens and underscores do not matter."""
    return "".join(ch for ch in name.lower() if ch not in " -_")


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
