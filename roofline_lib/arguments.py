"""Guards at the border: the errors that a wrong argument gets, and the value that a right one has."""

import difflib
import re

import numpy as np


class UnknownName(KeyError, ValueError):
    """An unknown name, which is a KeyError and a ValueError, printed as a sentence."""

    def __str__(self):
        return str(self.args[0])


def unknown(kind, name, choices, said=None):
    """The error for a name not among `choices`: those that contain it first, then the nearest.
    `said`: other words for parts of them."""
    choices, typed = list(choices), re.sub(r"[\s'\"_-]", "", short(name).lower())
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
    return UnknownName(f"{kind} {short(name)} is not known{hint}; {rest}")


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
        raise ValueError(f"{name} must be {wanted}{limit} ({unit}); got {short(value)}") from None
    return array


def size(name, value, unit="elements", single=False):
    """A matrix side, a batch, a count: whole and at least 1."""
    return number(name, value, unit, least=1, whole=True, single=single)


def switch(name, value):
    """A yes or no: True or False and nothing else, so that a misplaced argument is heard of."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {short(value)}")
    return bool(value)


def name_key(name):
    """A name as it is looked up: case, spaces, hyphens and underscores do not matter."""
    return "".join(ch for ch in name.lower() if ch not in " -_")


def plain(value):
    """A float where numpy made a scalar or an array without axes; arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value


def _real(value):
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def short(value):
    try:
        text = repr(value)
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
