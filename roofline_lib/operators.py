"""The compulsory Work of operators: every operand crosses memory once, which no schedule can beat.

Sizes are whole numbers of elements, or arrays of them that broadcast. Each function returns a Work,
and raises ValueError for a size that is no positive whole number, UnknownName for an unknown
precision. BLAS: Lawson and others, 1979, doi:10.1145/355841.355847; level 3: Dongarra and others,
1990, doi:10.1145/77626.79170.
"""

from __future__ import annotations

import numpy as np

from roofline_lib.arguments import Number, Value, number, size, switch
from roofline_lib.machines import Machine, as_machine
from roofline_lib.model import Work, at_least_ridge
from roofline_lib.precisions import bytes_per_element, widths


def dot(n: Number, precision: str = "fp32") -> Work:
    """x . y of length n: 2n FLOP; both vectors in, one number out."""
    n = size("n", n)
    return Work(2 * n, bytes_per_element(precision) * (2 * n + 1))


def nrm2(n: Number, precision: str = "fp32") -> Work:
    """Euclidean norm of n numbers: 2n FLOP (the square root left out); one vector in, one number
    out."""
    n = size("n", n)
    return Work(2 * n, bytes_per_element(precision) * (n + 1))


def axpy(n: Number, precision: str = "fp32") -> Work:
    """y += alpha x, length n: 2n FLOP; x and y in, y out."""
    n = size("n", n)
    return Work(2 * n, bytes_per_element(precision) * 3 * n)


def gemv(m: Number, n: Number, precision: str = "fp32") -> Work:
    """y[m] = A[m, n] x[n]: 2mn FLOP; A and x in, y out."""
    m, n = size("m", m), size("n", n)
    return Work(2 * m * n, bytes_per_element(precision) * (m * n + n + m))


def trsv(n: Number, precision: str = "fp32") -> Work:
    """Solve L x = b, L triangular [n, n]: n^2 FLOP; the triangle and b in, x out."""
    n = size("n", n)
    return Work(n * n, bytes_per_element(precision) * (n * (n + 1) / 2 + 2 * n))


def gemm(
    m: Number,
    n: Number,
    k: Number,
    precision: str = "fp32",
    *,
    a: str | None = None,
    b: str | None = None,
    c: str | None = None,
    beta: Number = 0,
) -> Work:
    """C[m, n] = A[m, k] @ B[k, n] + beta C: 2mnk FLOP; A and B in, C out, and C in as well where
    beta is not 0.

    `a`, `b`, `c` are the precisions of single matrices where they differ from `precision`.
    """
    m, n, k = size("m", m), size("n", n), size("k", k)
    width_a, width_b, width_c = widths(precision, a=a, b=b, c=c)
    passes_of_c = 1.0 + (number("beta", beta, "no unit") != 0)  # written, and read to be scaled
    size_of_c = m * n
    bytes_moved = (width_a * m + width_b * n) * k + passes_of_c * width_c * size_of_c
    return Work(2 * k * size_of_c, bytes_moved)


def trsm(m: Number, n: Number, precision: str = "fp32") -> Work:
    """Solve L X = B, L triangular [m, m], B [m, n]: m^2 n FLOP; the triangle and B in, X out."""
    m, n = size("m", m), size("n", n)
    return Work(m * m * n, bytes_per_element(precision) * (m * (m + 1) / 2 + 2 * m * n))


def syrk(n: Number, k: Number, precision: str = "fp32") -> Work:
    """The lower triangle of C[n, n] = A A^T, A [n, k]: n (n + 1) k FLOP; A in, the triangle out."""
    n, k = size("n", n), size("k", k)
    return Work(n * (n + 1) * k, bytes_per_element(precision) * (n * k + n * (n + 1) / 2))


def elementwise(
    n: Number,
    precision: str = "fp32",
    reads: Number = 2,
    writes: Number = 1,
    flops_per_element: Number = 1,
) -> Work:
    """One pass over n positions, `reads` arrays in and `writes` arrays out. The default is C = A +
    B."""
    n = size("n", n)
    passes = number("reads", reads, "arrays", least=0) + number("writes", writes, "arrays", least=0)
    return Work(
        n * number("flops_per_element", flops_per_element, "FLOP", least=0),
        bytes_per_element(precision) * n * passes,
    )


def softmax(rows: Number, cols: Number, precision: str = "fp32") -> Work:
    """Softmax along each row: 5 FLOP an element (maximum, subtract, exponential, sum, divide); one
    array in, one out."""
    n = size("rows", rows) * size("cols", cols)
    return Work(5 * n, bytes_per_element(precision) * 2 * n)


def layer_norm(rows: Number, cols: Number, precision: str = "fp32") -> Work:
    """LayerNorm of each row: 7 FLOP an element (sum, subtract, square, sum, scale, gain, bias);
    array, gain and bias in, array out."""
    n, cols = size("rows", rows) * size("cols", cols), size("cols", cols)
    return Work(7 * n, bytes_per_element(precision) * (2 * n + 2 * cols))


def rms_norm(rows: Number, cols: Number, precision: str = "fp32") -> Work:
    """RMSNorm of each row: 4 FLOP an element (square, sum, scale, gain); array and gain in, array
    out."""
    n, cols = size("rows", rows) * size("cols", cols), size("cols", cols)
    return Work(4 * n, bytes_per_element(precision) * (2 * n + cols))


def conv2d(
    batch: Number,
    height: Number,
    width: Number,
    in_channels: Number,
    out_channels: Number,
    kernel: Number,
    precision: str = "fp32",
    *,
    stride: Number = 1,
    padding: Number = 0,
) -> Work:
    """2-D convolution, square `kernel`: 2 kernel^2 in_channels FLOP an output number; image and
    weights in, image out."""
    batch, height, width, kernel = (
        size("batch", batch),
        size("height", height),
        size("width", width),
        size("kernel", kernel),
    )
    channels_in, channels_out = size("in_channels", in_channels), size("out_channels", out_channels)
    stride, padding = (
        size("stride", stride),
        number("padding", padding, "elements", least=0, whole=True),
    )
    out_height, out_width = (
        np.floor((side + 2 * padding - kernel) / stride) + 1 for side in (height, width)
    )
    if np.any(out_height < 1) or np.any(out_width < 1):
        raise ValueError(
            "kernel must fit into the padded image (elements); "
            f"got kernel {kernel} for {height} x {width}, padding {padding}"
        )
    outputs = batch * out_height * out_width * channels_out
    weights = kernel**2 * channels_in * channels_out
    return Work(
        2 * kernel**2 * channels_in * outputs,
        bytes_per_element(precision) * (batch * height * width * channels_in + weights + outputs),
    )


def attention(
    batch: Number,
    heads: Number,
    kv_heads: Number,
    query_tokens: Number,
    context: Number,
    head_dim: Number,
    precision: str = "fp32",
    *,
    flash: bool = False,
    causal: bool = False,
    window: Number | None = None,
    kv: str | None = None,
) -> Work:
    """softmax(Q K^T) V for all heads: 4 head_dim FLOP for each pair of a query and a key it sees,
    those of the two matrix products. Softmax's own FLOP (5 a score) are left out.

    `context` counts the keys, the queries' own among them; the queries are the last of them. How
    many keys a query sees: all of them; with `causal` those up to its own, which leaves the exact
    fraction 1 - (query_tokens - 1)/(2 context) of the work; with `window` at most that many, up to
    its own (without `causal`, a query with fewer keys before it sees the first `window` keys).

    Bytes: Q in and O out, and those keys and values in that any query sees. Unless `flash`, scores
    and probabilities are each written and read, 4 passes over the full rectangle of queries and
    these keys. `kv` is the precision of K and V where it differs from `precision`.
    FlashAttention: Dao and others, 2022, arXiv:2205.14135. Windows: Beltagy and others, 2020,
    arXiv:2004.05150.
    """
    batch, heads, kv_heads = (
        size("batch", batch, "sequences"),
        size("heads", heads, "heads"),
        size("kv_heads", kv_heads, "heads"),
    )
    queries, context = (
        size("query_tokens", query_tokens, "tokens"),
        size("context", context, "tokens"),
    )
    head_dim, flash, causal = (
        size("head_dim", head_dim),
        switch("flash", flash),
        switch("causal", causal),
    )
    if np.any(heads % kv_heads):
        raise ValueError(f"kv_heads must divide heads; got {kv_heads} for {heads} heads")
    if causal and np.any(queries > context):
        raise ValueError(
            "context (tokens) must count the queries' own keys too, so be at least query_tokens, "
            f"{queries}; got {context}"
        )
    s, (s_kv,) = bytes_per_element(precision), widths(precision, kv=kv)
    window = context if window is None else size("window", window, "tokens")
    # the window moves on by one key from each query to the next
    keys = np.minimum(context, window + queries - 1)
    bytes_moved = batch * head_dim * (2 * heads * queries * s + 2 * kv_heads * keys * s_kv)
    if not flash:
        bytes_moved = bytes_moved + 4 * batch * heads * queries * keys * s
    pairs = _pairs(queries, context, window, causal)
    return Work(4 * batch * heads * head_dim * pairs, bytes_moved)


def _pairs(queries, context, window, causal):
    """How many pairs of a query and a key are multiplied: the sum over the queries of the keys that
    each sees."""
    if not causal:
        return queries * np.minimum(context, window)
    # the first query sees as many keys as this, each later one a key more, until the window is full
    first = context - queries + 1
    growing = np.clip(window - first, 0, queries)
    return growing * first + growing * (growing - 1) / 2 + (queries - growing) * window


def critical_size(
    machine: Machine | str, precision: str, *, accumulate: str | None = None, exact: bool = False
) -> float:
    """Smallest n at which an n x n x n product reaches the ridge point, all three matrices counted.

    A whole number, or with `exact` the real root. `accumulate` picks among several peaks of one
    precision, as in `Machine.peak`.
    """
    machine = as_machine(machine)
    ridge = machine.ridge_point(precision, accumulate=accumulate)
    root = 1.5 * bytes_per_element(precision) * ridge
    if switch("exact", exact):
        return root
    peak = machine.peak(precision, accumulate)
    return int(_smallest(root, lambda n: gemm(n, n, n, precision), peak, machine.bandwidth()))


def critical_batch(
    n: Number,
    k: Number,
    machine: Machine | str,
    precision: str,
    *,
    a: str | None = None,
    b: str | None = None,
    c: str | None = None,
    accumulate: str | None = None,
    exact: bool = False,
) -> Value:
    """Smallest batch at which [batch, k] @ [k, n] reaches the ridge point of `precision`; infinite
    where no batch does.

    All three matrices count, in the precisions `a` (activations in), `b` (weights) and `c`
    (activations out). n and k (elements) may be arrays. A whole number, or with `exact` the real
    root. `accumulate` picks among several peaks of one precision, as in `Machine.peak`.
    """
    machine, n, k, exact = as_machine(machine), size("n", n), size("k", k), switch("exact", exact)
    width_a, width_b, width_c = widths(precision, a=a, b=b, c=c)
    peak = machine.peak(precision, accumulate)
    ridge = peak / machine.bandwidth()
    # FLOP less ridge * byte, for each row of the batch
    grows = 2 * n * k - ridge * (width_a * k + width_c * n)
    # less is rounding: the intensity then tends to the ridge and never gets there
    reachable = grows > 1e-12 * n * k
    root = np.where(reachable, ridge * width_b * n * k / np.where(reachable, grows, 1), np.inf)
    found = (
        root
        if exact
        else _smallest(
            root, lambda m: gemm(m, n, k, precision, a=a, b=b, c=c), peak, machine.bandwidth()
        )
    )
    if np.ndim(found):
        return found
    return float(found) if exact or np.isinf(found) else int(found)


def _smallest(root, work, peak, bandwidth):
    """The whole number at the real root of intensity = ridge, put right where rounding moved it
    across the ridge; infinite stays so."""
    finite = np.isfinite(root)
    n = np.maximum(1.0, np.ceil(np.where(finite, root, 1.0)) - 1)
    # one step is enough, except close under the asymptote, where float64 no longer tells neighbours
    # apart
    for _ in range(3):
        n = n + (finite & ~at_least_ridge(work(n), peak, bandwidth))
    return np.where(finite, n, np.inf)
