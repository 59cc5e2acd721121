"""Tiled matrix products on two memories, fast and slow: their traffic, its lower bound, and what
tiles waste.

I/O bound: Hong and Kung, 1981, doi:10.1145/800076.802486; its constant: Smith and others, 2017,
arXiv:1702.02017; the tightest known: Kwasniewski and others, 2019, doi:10.1145/3295500.3356181.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from roofline_lib.arguments import Number, Value, number, plain, size, switch
from roofline_lib.model import Work
from roofline_lib.precisions import bytes_of, bytes_per_element, widths

# The side of a square tile, or (tile_m, tile_n); elements.
Tile = Number | tuple[Number, Number]


def tiled_gemm(
    m: Number,
    n: Number,
    k: Number,
    tile: Tile,
    precision: str = "fp32",
    *,
    a: str | None = None,
    b: str | None = None,
    c: str | None = None,
) -> Work:
    """Work of C[m, n] = A @ B by output tiles, at the tile's own memory level.

    `tile` is b, or (tile_m, tile_n) (elements); arrays broadcast. A is read once for each column of
    tiles, B once for each row of tiles, C is written once: s_a ceil(n/tile_n) mk + s_b
    ceil(m/tile_m) kn + s_c mn byte. `a`, `b`, `c` are the precisions of single matrices where they
    differ from `precision`.
    """
    m, n, k, (tile_m, tile_n) = size("m", m), size("n", n), size("k", k), _sides(tile)
    width_a, width_b, width_c = widths(precision, a=a, b=b, c=c)
    reads_of_a, reads_of_b = np.ceil(n / tile_n), np.ceil(m / tile_m)
    return Work(
        2 * m * n * k,
        width_a * reads_of_a * m * k + width_b * reads_of_b * k * n + width_c * m * n,
    )


def naive_gemm(m: Number, n: Number, k: Number, precision: str = "fp32") -> Work:
    """Work of three plain loops with nothing kept: two operands fetched for each multiply-add, C
    written once in the end."""
    m, n, k = size("m", m), size("n", n), size("k", k)
    return Work(2 * m * n * k, bytes_per_element(precision) * (2 * m * n * k + m * n))


def io_lower_bound(
    m: Number, n: Number, k: Number, fast_elements: Number, *, tightest: bool = False
) -> Value:
    """Elements that any schedule of C[m, n] = A @ B must move between a fast memory and a slow one.

    Fast memory holds S = `fast_elements` numbers. The bound is max(mk + kn + mn, 2mnk/sqrt(S) -
    2S): each matrix crosses once at least, and Smith and others, 2017 (arXiv:1702.02017), showed
    the second term. With `tightest` it is 2mnk/sqrt(S) + mn instead, by Kwasniewski and others,
    2019 (doi:10.1145/3295500.3356181), which also counts that C is written.
    """
    m, n, k, fast = (
        size("m", m),
        size("n", n),
        size("k", k),
        number("fast_elements", fast_elements, "elements", above=0),
    )
    beside = m * n if switch("tightest", tightest) else -2 * fast
    return plain(np.maximum(m * k + k * n + m * n, 2 * m * n * k / np.sqrt(fast) + beside))


def tile_memory(
    tile: Tile,
    precision: str = "fp32",
    *,
    sums: str | None = None,
    tile_k: Number | None = None,
    buffers: Number = 2,
) -> Value:
    """Bytes of fast memory that one output tile needs.

    Without `tile_k`: the tile of C with one column of A and one row of B, (tile_m tile_n + tile_m +
    tile_n) s. With it: C's tile and `buffers` panels of A and of B that are `tile_k` deep. `sums`
    is the precision in which the tile of C is summed; left out it is `precision` in the first count
    and in the second fp32, as tensor cores sum, or fp64 for fp64. A GPU keeps these sums in the
    registers of an SM, 256 KiB on NVIDIA's chips of compute capability 7.0 and later, or on
    Blackwell in its tensor memory (TMEM), and the panels in shared memory.
    """
    (tile_m, tile_n), s = _sides(tile), bytes_per_element(precision)
    buffers = size("buffers", buffers, "panels")
    if tile_k is None:
        s_sums = s if sums is None else bytes_of("sums", sums)
        return tile_m * tile_n * s_sums + (tile_m + tile_n) * s
    s_sums = max(s, bytes_of("sums", "fp32")) if sums is None else bytes_of("sums", sums)
    return tile_m * tile_n * s_sums + buffers * (tile_m + tile_n) * size("tile_k", tile_k) * s


def tile_count(m: Number, n: Number, tile: Tile) -> Value:
    """Output tiles that cover an m x n matrix."""
    tile_m, tile_n = _sides(tile)
    return plain(np.ceil(size("m", m) / tile_m) * np.ceil(size("n", n) / tile_n))


def tile_efficiency(m: Number, n: Number, tile: Tile) -> Value:
    """Share (0 to 1) of the tiles' area that lies inside the m x n matrix: the rest is padding,
    computed in vain."""
    tile_m, tile_n = _sides(tile)
    return size("m", m) * size("n", n) / (tile_count(m, n, tile) * tile_m * tile_n)


def wave_efficiency(tiles: Number, units: Number) -> Value:
    """Share (0 to 1) of the units that are busy when `tiles` equal tiles run in waves of `units`:
    109 tiles on 108 units, 0.505."""
    tiles, units = size("tiles", tiles, "tiles"), size("units", units, "multiprocessors")
    return plain(tiles / (np.ceil(tiles / units) * units))


@dataclass(frozen=True)
class CountedProduct:
    """A product that was really tiled, and what it really copied: bytes in and out of fast memory,
    and the most held there at once."""

    product: np.ndarray
    bytes_moved: int
    fast_bytes: int


def counted_tiled_product(
    a: np.ndarray, b: np.ndarray, tile: Tile, tile_k: int = 1
) -> CountedProduct:
    """a @ b by tiles, each slice copied into `fast` before use; the bytes are summed from those
    copies, with no formula in it.

    a [m, k] and b [k, n] are numpy arrays of one dtype. ValueError where the shapes do not meet.
    """
    a, b = np.asarray(a), np.asarray(b)
    if (
        a.ndim != 2
        or b.ndim != 2
        or a.shape[1] != b.shape[0]
        or a.dtype != b.dtype
        or a.dtype.kind not in "iuf"
        or not a.size * b.size
    ):
        raise ValueError(
            "a and b must be [m, k] and [k, n] of numbers of one dtype; "
            f"got {a.shape} {a.dtype} and {b.shape} {b.dtype}"
        )
    (m, k), n = a.shape, b.shape[1]
    tile_m, tile_n = (int(side) for side in _sides(tile, single=True))
    tile_k = int(size("tile_k", tile_k, single=True))
    product, moved, held = np.empty((m, n), a.dtype), 0, 0
    for top in range(0, m, tile_m):
        for left in range(0, n, tile_n):
            fast_c = np.zeros(product[top : top + tile_m, left : left + tile_n].shape, a.dtype)
            for start in range(0, k, tile_k):
                fast_a = a[top : top + tile_m, start : start + tile_k].copy()
                fast_b = b[start : start + tile_k, left : left + tile_n].copy()
                moved += fast_a.nbytes + fast_b.nbytes
                held = max(held, fast_a.nbytes + fast_b.nbytes + fast_c.nbytes)
                fast_c += fast_a @ fast_b
            product[top : top + tile_m, left : left + tile_n] = fast_c
            moved += fast_c.nbytes
    return CountedProduct(product, moved, held)


def _sides(tile: Tile, single: bool = False) -> tuple[Any, Any]:
    """(tile_m, tile_n) of a tile given as b or as a pair; a numpy array is many square tiles."""
    if isinstance(tile, tuple | list):
        if len(tile) != 2:
            raise ValueError(f"tile must be b or (tile_m, tile_n) (elements); got {tile!r}")
        return size("tile_m", tile[0], single=single), size("tile_n", tile[1], single=single)
    side = size("tile", tile, single=single)
    return side, side
