"""A small cache, simulated: which accesses of a loop nest miss, given capacity, line and ways.

At scaled-down sizes, since every access is a step of plain Python: a 48 x 48 x 48 product takes a tenth of a second.
"""

from dataclasses import dataclass

from roofline_lib.text import size, unknown


@dataclass(frozen=True)
class Misses:
    """How many accesses were made, how many missed, and the bytes that the misses' lines brought in."""

    accesses: int
    misses: int
    bytes_moved: int


def count_misses(addresses, capacity, line=64, ways=8):
    """Run byte addresses through an empty set-associative cache that evicts the least recently used line of a set.

    `capacity` and `line` in byte. ValueError unless the capacity is a whole number of sets of `ways` lines.
    """
    capacity, line, ways = (int(size(name, v, unit)) for name, v, unit in
                            (("capacity", capacity, "byte"), ("line", line, "byte"), ("ways", ways, "lines a set")))
    sets, rest = divmod(capacity, line * ways)
    if rest or not sets:
        raise ValueError(f"capacity must be a multiple of line * ways = {line * ways} byte; got {capacity}")
    held = [{} for _ in range(sets)]  # a dict keeps its keys in order of insertion: first is the least recently used
    accesses = misses = 0
    for address in addresses:
        accesses += 1
        tag = address // line
        lines = held[tag % sets]
        if lines.pop(tag, None) is None:
            misses += 1
            if len(lines) == ways:
                del lines[next(iter(lines))]
        lines[tag] = True
    return Misses(accesses, misses, misses * line)


def loop_addresses(n, order, pitch=None, bytes_per_element=4):
    """Byte addresses touched by C += A B on row-major n x n matrices, in order "ijk" or "ikj", `pitch` elements from row to row.

    The innermost loop keeps in a register what does not depend on it: C[i, j] in "ijk", A[i, k] in "ikj".
    """
    n = int(size("n", n))
    pitch = int(size("pitch", pitch)) if pitch is not None else n
    if pitch < n:
        raise ValueError(f"pitch must be at least n = {n} elements; got {pitch}")
    row, matrix = pitch * bytes_per_element, n * pitch * bytes_per_element
    a, b, c = 0, matrix, 2 * matrix
    columns = range(0, n * bytes_per_element, bytes_per_element)
    if order == "ijk":
        for i in range(n):
            for j in columns:
                for k in range(n):
                    yield a + i * row + k * bytes_per_element
                    yield b + k * row + j
                yield c + i * row + j
    elif order == "ikj":
        for i in range(n):
            for k in range(n):
                yield a + i * row + k * bytes_per_element
                for j in columns:
                    yield b + k * row + j
                    yield c + i * row + j
    else:
        raise unknown("order", order, ("ijk", "ikj"))


def loop_misses(n, order, capacity, line=64, ways=8, pitch=None, bytes_per_element=4):
    """Misses of one loop order of an n x n x n product in one cache: `loop_addresses` run through `count_misses`."""
    return count_misses(loop_addresses(n, order, pitch, bytes_per_element), capacity, line, ways)
