"""A small cache, simulated: which accesses of a loop nest miss, given capacity, line and ways.

At scaled-down sizes, since every access is a step of plain Python: a 48 x 48 x 48 product takes a
tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import index

from roofline_lib.arguments import size, unknown


@dataclass(frozen=True)
class Misses:
    """How many accesses were made, how many missed, and the bytes that the misses' lines brought
    in."""

    accesses: int
    misses: int
    bytes_moved: int


def count_misses(addresses: Iterable[int], capacity: int, line: int = 64, ways: int = 8) -> Misses:
    """Run byte addresses through an empty set-associative cache that evicts the least recently used
    line of a set.

    `capacity` and `line` in byte. ValueError unless the capacity is a whole number of sets of
    `ways` lines, and each address one from 0 up.
    """
    capacity, line, ways = (
        int(size(name, v, unit, single=True))
        for name, v, unit in (
            ("capacity", capacity, "byte"),
            ("line", line, "byte"),
            ("ways", ways, "lines a set"),
        )
    )
    sets, rest = divmod(capacity, line * ways)
    if rest or not sets:
        raise ValueError(
            f"capacity must be a multiple of line * ways = {line * ways} byte; got {capacity}"
        )
    # a dict keeps its keys in order of insertion: first is the least recently used
    held: list[dict[int, bool]] = [{} for _ in range(sets)]
    accesses = misses = 0
    if not isinstance(addresses, Iterable):
        raise ValueError(f"addresses must be whole numbers from 0 up (byte); got {addresses!r}")
    for address in addresses:
        accesses += 1
        try:
            tag = index(address) // line  # as a Python integer: one of numpy's might overflow
        except TypeError:
            tag = -1
        if tag < 0:
            raise ValueError(f"addresses must be whole numbers from 0 up (byte); got {address!r}")
        lines = held[tag % sets]
        if lines.pop(tag, None) is None:
            misses += 1
            if len(lines) == ways:
                del lines[next(iter(lines))]
        lines[tag] = True
    return Misses(accesses, misses, misses * line)


def loop_addresses(
    n: int, order: str, pitch: int | None = None, bytes_per_element: int = 4
) -> Iterator[int]:
    """Byte addresses touched by C += A B on row-major n x n matrices, in order "ijk" or "ikj",
    `pitch` elements from row to row.

    The innermost loop keeps in a register what does not depend on it: C[i, j] in "ijk", A[i, k] in
    "ikj".
    """
    n, width = (
        int(size("n", n, single=True)),
        int(size("bytes_per_element", bytes_per_element, "byte", single=True)),
    )
    pitch = n if pitch is None else int(size("pitch", pitch, single=True))
    if pitch < n:
        raise ValueError(f"pitch must be at least n = {n} elements; got {pitch}")
    if not isinstance(order, str) or order not in ("ijk", "ikj"):
        raise unknown("order", order, ("ijk", "ikj"))
    return (_ijk if order == "ijk" else _ikj)(
        range(n), range(0, n * width, width), pitch * width, n * pitch * width
    )


def _ijk(rows, columns, row, matrix):
    """`columns` are the byte offsets in a row; A lies at 0, B at `matrix`, C at 2 `matrix`."""
    for i in rows:
        for j in columns:
            for k, offset in zip(rows, columns, strict=True):
                yield i * row + offset
                yield matrix + k * row + j
            yield 2 * matrix + i * row + j


def _ikj(rows, columns, row, matrix):
    for i in rows:
        for k, offset in zip(rows, columns, strict=True):
            yield i * row + offset
            for j in columns:
                yield matrix + k * row + j
                yield 2 * matrix + i * row + j


def loop_misses(
    n: int,
    order: str,
    capacity: int,
    line: int = 64,
    ways: int = 8,
    pitch: int | None = None,
    bytes_per_element: int = 4,
) -> Misses:
    """Misses of one loop order of an n x n x n product in one cache: `loop_addresses` run through
    `count_misses`."""
    return count_misses(loop_addresses(n, order, pitch, bytes_per_element), capacity, line, ways)
