"""A small cache, simulated: which accesses of a loop nest miss, given capacity, line and ways; and
the banks of a shared memory, where threads that meet take turns.

At scaled-down sizes, since every access is a step of plain Python: a 48 x 48 x 48 product takes a
tenth of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import index

from roofline_lib.arguments import size, unknown

_ORDERS = ("ijk", "ikj", "blocked")


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
    for address in _whole(addresses):
        accesses += 1
        tag = address // line
        lines = held[tag % sets]
        if lines.pop(tag, None) is None:
            misses += 1
            if len(lines) == ways:
                del lines[next(iter(lines))]
        lines[tag] = True
    return Misses(accesses, misses, misses * line)


def bank_turns(addresses: Iterable[int], banks: int = 32, word: int = 4) -> int:
    """Turns that a shared memory takes to serve one request of a warp, whose threads ask for these
    byte addresses.

    Words of `word` byte lie in `banks` banks in turn, and a bank serves one word at a time: the
    bank with the most different words sets the number of turns. Threads that ask for the same word
    are served together. 1 is a request without conflict. Source: CUDA C++ Programming Guide, shared
    memory of compute capability 5.x and later (32 banks of 4 byte).
    """
    banks = int(size("banks", banks, "banks", single=True))
    word = int(size("word", word, "byte", single=True))
    words = {address // word for address in _whole(addresses)}
    return max(Counter(each % banks for each in words).values(), default=0)


def _whole(addresses: Iterable[int]) -> Iterator[int]:
    """The addresses as Python integers: numpy's might overflow."""
    if not isinstance(addresses, Iterable):
        raise ValueError(f"addresses must be whole numbers from 0 up (byte); got {addresses!r}")
    for address in addresses:
        try:
            whole = index(address)
        except TypeError:
            whole = -1
        if whole < 0:
            raise ValueError(f"addresses must be whole numbers from 0 up (byte); got {address!r}")
        yield whole


def loop_addresses(
    n: int,
    order: str,
    pitch: int | None = None,
    bytes_per_element: int = 4,
    block: int = 16,
) -> Iterator[int]:
    """Byte addresses touched by C += A B on row-major n x n matrices, `pitch` elements from row to
    row, in order "ijk", "ikj" or "blocked".

    "blocked" takes a `block` x `block` square of B at a time, and runs "ikj" over it for all rows
    of A before it takes the next one below. The innermost loop keeps in a register what does not
    depend on it: C[i, j] in "ijk", A[i, k] in the other two.
    """
    n, width, block = (
        int(size("n", n, single=True)),
        int(size("bytes_per_element", bytes_per_element, "byte", single=True)),
        int(size("block", block, single=True)),
    )
    pitch = n if pitch is None else int(size("pitch", pitch, single=True))
    if pitch < n:
        raise ValueError(f"pitch must be at least n = {n} elements; got {pitch}")
    if not isinstance(order, str) or order not in _ORDERS:
        raise unknown("order", order, _ORDERS)
    row, matrix = pitch * width, n * pitch * width
    if order == "ijk":
        return _ijk(range(n), range(0, n * width, width), row, matrix)
    return _blocked(n, block if order == "blocked" else n, width, row, matrix)


def _ijk(rows, columns, row, matrix):
    """`columns` are the byte offsets in a row; A lies at 0, B at `matrix`, C at 2 `matrix`."""
    for i in rows:
        for j in columns:
            for k, offset in zip(rows, columns, strict=True):
                yield i * row + offset
                yield matrix + k * row + j
            yield 2 * matrix + i * row + j


def _blocked(n, block, width, row, matrix):
    """With one block as large as the matrix this is the order i, k, j."""
    for left in range(0, n, block):
        columns = range(left * width, min(left + block, n) * width, width)
        for top in range(0, n, block):
            for i in range(n):
                for k in range(top, min(top + block, n)):
                    yield i * row + k * width
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
    block: int = 16,
) -> Misses:
    """Misses of one loop order of an n x n x n product in one cache: `loop_addresses` run through
    `count_misses`."""
    addresses = loop_addresses(n, order, pitch, bytes_per_element, block)
    return count_misses(addresses, capacity, line, ways)
