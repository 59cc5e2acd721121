"""What is said of measured points, and the roofs they are held against."""

import numpy as np
import pytest
from measured_points import made, points

import roofline_lib as rl
from roofline_lib.measuring import load
from roofline_lib.measuring.record import Chip
from roofline_lib.measuring.roofs import counted_peaks, nominal_roof, sustained_by, sustained_roof
from roofline_lib.measuring.verdicts import efficiency, explain, launch_floor, regime, verdict

SWEEPS = ("h200_a1", "h200_a2", "h200_b1")
SHEET = rl.machine("H200 SXM")

CHIP = rl.Machine(
    "made up",
    {
        "fp16": (rl.Peak(100e12, "fp16", unit_kind="tensor core", clock=1.5e9),),
        "fp8": 200e12,
        "fp32": 10e12,
    },
    {"DRAM": 1e12},
    {"DRAM": 8e10, "L2": 5e7},
    units=100,
    kind="GPU",
)
# a second each on CHIP
COMPUTE, MEMORY = {"flops": 1e14, "bytes_moved": 1e10}, {"flops": 1e9, "bytes_moved": 1e12}


@pytest.mark.parametrize(
    ("measured", "suspects"),
    [
        (made(1.25, **COMPUTE), set()),
        (made(1.0, **COMPUTE), set()),
        (made(0.9, **COMPUTE, clock=1.7e9), {"clock", "precision", "sparsity"}),
        (made(0.9, **COMPUTE, clock=1.5e9), {"precision", "sparsity"}),
        (made(0.9, **COMPUTE), {"clock", "precision", "sparsity"}),
        (made(0.6, **COMPUTE, clock=1.7e9), {"precision", "sparsity"}),
        (made(0.5, **COMPUTE, clock=1.5e9), {"precision", "sparsity", "units"}),
        (made(0.3, **COMPUTE, clock=1.5e9), {"units"}),
        (made(0.001, **COMPUTE, clock=1.5e9), {"units"}),
        (made(1 / (2**30 / 1e9), **COMPUTE, clock=1.5e9), {"precision", "sparsity", "units"}),
        (made(0.8, **MEMORY, working_set=3e7), {"cache level"}),
        (made(0.8, **MEMORY), {"precision"}),
        (made(1 / 8, **MEMORY), {"units"}),
    ],
)
def test_a_point_above_the_roof_names_its_suspects(measured, suspects):
    said = verdict(measured, CHIP)
    assert set(said.suspects) == suspects
    assert all(name in str(said) for name in suspects) and said.ratio == efficiency(measured, CHIP)
    assert ("cannot be" in str(said)) == bool(suspects)


def test_the_stream_that_sets_a_roof_stands_on_it():
    """A record keeps six digits of its roofs, so the stream itself may lie above by as much."""
    stream = made(0.3, family="copy", working_set=1e9)
    roof = sustained_by([stream, made(1)], {"L3": 1e7})
    on_it = verdict(stream, rl.Machine("this one", {"fp16": 1e15}, roof.bandwidths, {"L3": 1e7}))
    assert on_it.ratio > 1 and not on_it.suspects and "100 % of attainable" in str(on_it)


def test_a_cpu_has_no_sparsity_to_suspect():
    assert set(
        verdict(
            made(0.9, **COMPUTE), rl.Machine("cpu", {"fp16": 100e12}, {"DRAM": 1e12}, kind="CPU")
        ).suspects
    ) == {"clock"}


@pytest.mark.parametrize(
    ("intensity", "family", "where"),
    [
        (40, "gemm_n", "memory"),
        (60, "gemm_n", "ridge"),
        (150, "gemm_n", "ridge"),
        (250, "gemm_n", "compute"),
        (1, "copy", "cache"),
    ],
)
def test_regimes(intensity, family, where):
    assert regime(made(1, flops=intensity * 1e9, family=family, working_set=6e7), CHIP) == where


@pytest.mark.parametrize("name", SWEEPS)
def test_the_factors_of_a_gap_multiply_to_it_and_explain_tensor_core_products(name):
    record = load(name)
    kept_up = sustained_roof(record)
    for p in points(record, "gemm_m", "gemm_n"):
        factors = explain(p, SHEET, kept_up, launch_floor(record, p.precision))
        assert np.prod(list(factors.values())) == pytest.approx(efficiency(p, SHEET), rel=1e-9)
        # from 64 to 16384 and from 0.2 to 80 % of attainable
        if p.precision in ("bf16", "fp16", "fp8"):
            assert 0.7 < factors["rest"] < 1.3, p.shape


def test_roofs_from_a_record():
    record = load(SWEEPS[0])
    kept_up = sustained_roof(record)
    assert kept_up.peak("bf16") == pytest.approx(
        max(p.performance for p in points(record, "gemm_m", "gemm_n", precision="bf16")), rel=1e-5
    )
    assert kept_up.units == 132 and kept_up.bandwidth("L2") > kept_up.bandwidth() > 4.3e12
    assert all(efficiency(p, kept_up) < 1.02 for p in points(record, "gemm_m", "gemm_n"))


def test_a_cache_that_is_no_faster_than_dram_gets_no_figure():
    streams = [
        made(seconds, 0, size, "copy", "fp32", size)
        for size, seconds in ((1e3, 1e-6), (1e6, 1e-5), (1e9, 0.1))
    ]
    assert sustained_by(streams, {"L1": 1e4, "L2": 1e7}).bandwidths == {"DRAM": 1e10, "L2": 1e11}


def test_dram_is_where_four_caches_pass_between_two_uses_of_a_number():
    """A triad in two passes meets its `a` again after two arrays of three; the others meet a number
    after all they touch."""

    def level(family, size):
        stream = made(1, family=family, working_set=size)
        return list(sustained_by([stream], {"L3": 3e7}).bandwidths)

    assert level("copy", 12e7 - 32) == level("read", 12e7) == ["DRAM"] and level("copy", 11e7) == []
    assert (
        level("triad", 12e7) == []
        and level("triad", 18e7) == ["DRAM"]
        and level("triad", 2e7) == ["L3"]
    )


def test_a_cpus_peak_is_counted():
    chip = Chip("CPU", "two cores", 2, "core", 3e9, {}, vector_flags=("avx2", "avx512f"))
    assert counted_peaks(chip) == {"fp64": 2 * 2 * 8 * 2 * 3e9, "fp32": 2 * 2 * 16 * 2 * 3e9}


def test_the_nominal_roof_is_the_catalogues_for_a_gpu_and_counted_for_a_cpu():
    assert nominal_roof(load("h200_a1")) is SHEET
    record = load("cpu_xeon_4")
    roof = nominal_roof(record)
    assert {p: roof.peak(p) for p in roof.precisions} == counted_peaks(record.chip)
    assert roof.bandwidths == sustained_roof(record).bandwidths


def test_a_cache_serves_a_stream_that_leaves_it_room_to_spare():
    def level(size):
        stream = made(1, family="copy", working_set=size)
        return list(sustained_by([stream], {"L3": 1e7}).bandwidths)

    assert level(6.9e6) == ["L3"] and level(7.1e6) == []
