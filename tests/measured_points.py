"""What several tests of measuring need: points of a record, and points made up."""

import numpy as np

import roofline_lib as rl
from roofline_lib.measuring.record import (
    BANDWIDTH_FAMILIES,
    PRODUCT_FAMILIES,
    Point,
    ProductShape,
    StreamShape,
    Timing,
)


def points(record, *families, precision=None, **sizes):
    """A record's points of these families whose precision and sizes are as wanted."""
    return [
        point
        for point in record.select(*families, precision=precision)
        if sizes.items() <= point.shape.sizes.items()
    ]


def hangs_together(record):
    """Quartiles are those of the repeats; products came from more memory than the last cache holds,
    or from 4096 sets of matrices."""
    last, _ = record.chip.caches[-1]
    for point in record.points:
        timing = point.timing
        quartiles = np.quantile(timing.repeats, [0.25, 0.5, 0.75])
        assert np.allclose([timing.q1, timing.median, timing.q3], quartiles, rtol=1e-5)
        assert len(timing.repeats) >= record.settings.repeats
        if point.family in PRODUCT_FAMILIES:
            assert point.working_set >= min(2 * last, 4096 * point.work.bytes_moved)


def made(
    seconds, flops=2e9, bytes_moved=1e9, family="gemm_n", precision="fp16", working_set=1e12, **more
):
    shape = StreamShape(1e9) if family in BANDWIDTH_FAMILIES else ProductShape(1000, 1000, 1000)
    work, timing = rl.Work(flops, bytes_moved), Timing.of([seconds] * 3)
    return Point(family, precision, shape, work, working_set, timing, **more)
