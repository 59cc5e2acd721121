"""Guards at the border: the errors that a wrong argument gets, and the value that a right one
has."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What a caller hands in: one number, or an array of numbers that broadcasts.
Number = float | np.ndarray
# What comes out: a float where only single numbers went in, else an array. No type checker can tell
# which, so it may be used as either.
Value = float | Any

_BLOCK = 2**14
_NOT_IN_KEYS = str.maketrans("", "", " -_")


class UnknownName(KeyError, ValueError):
    """An unknown name, which is a KeyError and a ValueError, printed as a sentence."""

    def __str__(self) -> str:
        return str(self.args[0])


def unknown(
    kind: str,
    name: object,
    choices: Iterable[str],
    said: Mapping[str, str] | None = None,
    *,
    where: str = "",
) -> UnknownName:
    """The error for a name that is not among `choices`.

    It names the nearest choices first: those that contain the name or are contained in it, or else
    those spelled nearly the same. Then it lists all choices, or says how many there are where the
    list would fill a screen. `said` maps what others call a part of a name to what it is called
    here. `where` is what prints the list: then three of the nearest will do, and the list is left
    to it.
    """
    choices = list(choices)
    typed = _bare(short(name))
    for word, ours in (said or {}).items():
        typed = typed.replace(word, ours)
    by_key = {_bare(choice): choice for choice in choices}
    near = [key for key in by_key if len(typed) > 1 and (typed in key or key in typed)][:6]
    near = (near or _spelled_alike(typed, by_key))[: 3 if where else None]
    hint = f"; nearest: {', '.join(by_key[key] for key in near)}" if near else ""
    if where:
        rest = f"choose one of the {len(choices)} that {where}"
    elif len(choices) <= 60:
        rest = f"choose one of {', '.join(choices)}"
    else:
        rest = f"there are {len(choices)}, {min(choices)} to {max(choices)}"
    return UnknownName(f"{kind} {short(name)} is not known{hint}; {rest}")


def _bare(name: str) -> str:
    return re.sub(r"[\s'\"_-]", "", name.lower())


def _spelled_alike(typed: str, keys: Iterable[str]) -> list[str]:
    """Keys in which a letter or two of a long name differ. In a short name, such as fp12 beside
    fp16, one letter is the whole difference: those are not taken for each other."""
    from difflib import get_close_matches  # only an error needs it

    return get_close_matches(typed, keys, n=4, cutoff=0.8)


def number(
    name: str,
    value: Any,
    unit: str,
    *,
    least: float | None = None,
    above: float | None = None,
    whole: bool = False,
    finite: bool = True,
    single: bool = False,
) -> Any:
    """`value` as a float, or as a float64 array unless `single`.

    ValueError where it is none, or is less than `least`, not `above`, not `whole` or not `finite`;
    it names the argument, its unit, what came and what would do.
    """
    try:
        found = float(value) if type(value) in (float, int) else _floats(value)
        if _fits(found, least, above, finite) and not (
            single and type(found) is not float or whole and not _whole(found, value)
        ):
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    wanted = ("one " if single else "a ") + ("whole number" if whole else "number")
    limit = ""
    if above is not None:
        limit = f" above {above}"
    elif least is not None:
        limit = f" of at least {least}"
    raise ValueError(f"{name} must be {wanted}{limit} ({unit}); got {short(value)}")


def _floats(value: Any) -> Value:
    """What is no plain float or int, as float64; TypeError where an entry is no real number."""
    if not isinstance(value, np.ndarray | np.generic):
        # as objects, so that a True or a "2" in a list is seen, and integers of any length pass
        value = np.asarray(value, dtype=object)
    if value.dtype.kind == "O":
        if not all(map(_real, value.flat)):
            raise TypeError
    elif value.dtype.kind not in "iuf":
        raise TypeError
    return plain(value.astype(np.float64, copy=False))


def _fits(found: Number, least: float | None, above: float | None, finite: bool) -> bool:
    """Whether all numbers lie within the limits; of an array, its smallest and largest do."""
    if isinstance(found, float):
        low = high = found
    elif found.size:
        low, high = found.min(), found.max()  # both are NaN where one entry is
    else:
        return False
    if finite and not (-math.inf < low and high < math.inf):
        return False
    # written so that a NaN fits no limit
    return low <= high and (above is None or low > above) and (least is None or low >= least)


def _whole(found: Number, value: Any) -> bool:
    if isinstance(found, float):
        return found % 1 == 0
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return True
    # block by block, so that what is compared stays in cache: half the time for a million numbers
    flat = found.reshape(-1)
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return all((np.floor(block) == block).all() for block in blocks)


def size(name: str, value: Any, unit: str = "elements", single: bool = False) -> Any:
    """A matrix side, a batch, a count: whole and at least 1."""
    return number(name, value, unit, least=1, whole=True, single=single)


def switch(name: str, value: object) -> bool:
    """A yes or no: True or False and nothing else, so that a misplaced argument is heard of."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {short(value)}")
    return bool(value)


def parsed_json(what: str, text: str | bytes) -> Any:
    """The value of a JSON text; ValueError where `what` is none, with the place at which it
    breaks."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"it breaks at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError:
        place = "it is not even text"
    except RecursionError:
        place = "it is nested too deeply"
    raise ValueError(f"{what} is no JSON: {place if text.strip() else 'it is empty'}")


def name_key(name: str) -> str:
    """A name as it is looked up: case, spaces, hyphens and underscores do not matter."""
    return name.lower().translate(_NOT_IN_KEYS)


def plain(value: Any) -> Any:
    """A float where numpy made a scalar or an array without axes; arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value


def _real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def short(value: object) -> str:
    """What came, as an error shows it: its repr, cut after 80 characters."""
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
