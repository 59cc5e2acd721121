"""MeasuredExplorer: a size that was not recorded is said to be another one."""

from dataclasses import replace

import numpy as np
import pytest
from measured_points import points

import roofline_lib as rl
from roofline_lib import measuring
from roofline_lib.explorers import marks
from roofline_lib.measuring import load
from roofline_lib.measuring.verdicts import efficiency
from roofline_lib.quantities import significant

SHEET = rl.machine("H200 SXM")


@pytest.mark.parametrize(
    ("family", "m", "said"),
    [
        (
            "gemm_m",
            1000,
            "m = 1000 was not recorded: this is the nearest that was, m = 1024. [1024, 4096] @",
        ),
        (
            "gemm_m",
            16384,
            "m = 16384 was not recorded: this is the nearest that was, m = 1024. [1024, 4096] @",
        ),
        (
            "gemm_n",
            1,
            "n = 1 was not recorded: this is the nearest that was, n = 64. [64, 64] @",
        ),
        ("gemm_m", 1024, "[1024, 4096] @"),
        ("gemm_n", 16384, "[16384, 16384] @"),
    ],
)
def test_the_nearest_recorded_size_is_shown_and_said(family, m, said):
    explorer = rl.MeasuredExplorer("h200_a1", "bf16", family, m)
    assert explorer.now.readout.startswith(said) and explorer.controls["m"].value == m


def test_above_the_roof_there_is_no_gap_to_explain():
    explorer = rl.MeasuredExplorer("cpu_epyc_2", "fp32", "gemm_n", 3072)
    assert "which cannot be" in explorer.readout and "gap" not in explorer.readout
    explorer.controls["m"].value = 64
    assert "Most of the gap: " in explorer.readout


@pytest.mark.parametrize(
    ("family", "m"),
    [("gemm_m", 1), ("gemm_m", 1024), ("gemm_n", 1024)],
)
def test_the_explorer_shows_the_records_own_point_and_its_factors(family, m):
    explorer = rl.MeasuredExplorer("h200_b1", "bf16", family, m)
    (p,) = points(
        load("h200_b1"),
        family,
        precision="bf16",
        m=m,
    )
    bold = [mark for mark in explorer.now.marks if isinstance(mark, marks.Point) and mark.bold]
    share, filled = sorted(bold, key=lambda mark: mark.panel)
    assert (share.x, share.y) == (m, pytest.approx(efficiency(p, SHEET)))
    assert filled.y == p.performance and filled.x == p.work.intensity
    *factors, share = [mark.parts[0] for mark in explorer.now.marks if isinstance(mark, marks.Bar)]
    assert np.prod(factors) == pytest.approx(share) == pytest.approx(efficiency(p, SHEET))
    assert rl.quantity(p.performance, "FLOP/s") in explorer.readout and (
        "power limit" in explorer.readout
    ) == (p.power_capped > 0.5)


@pytest.mark.parametrize(("family", "m"), [("gemm_m", 1), ("gemm_m", 1024), ("gemm_n", 64)])
def test_the_gap_is_as_long_as_what_the_roof_and_the_point_are_apart(family, m):
    scene = rl.MeasuredExplorer("h200_a1", "bf16", family, m).now
    (gap,) = [mark for mark in scene.marks if isinstance(mark, marks.Gap)]
    p = load("h200_a1").find(family, "bf16", m=m)
    assert (gap.panel, gap.high) == (0, 1) and gap.low == pytest.approx(efficiency(p, SHEET))
    # on an axis that starts at nothing, a fifth that is missing is a fifth of its height
    assert scene.axes[0].ylim[0] == 0 and not scene.axes[0].ylog


def test_the_explorer_takes_a_record_of_ones_own_and_says_what_it_does_not_know():
    record = load("h200_a1")
    mine = replace(record, chip=replace(record.chip, name="some card"))
    explorer = rl.MeasuredExplorer(mine, "fp8", "gemm_n", 300)
    assert "[256, 256] @" in explorer.readout and "catalogue has no some card" in explorer.readout
    explorer.controls["precision"].value = "fp64"
    assert (
        explorer.now.readout
        == "The record of some card has no products in fp64. It has bf16, fp16, tf32, fp32, fp8."
    )
    broken = replace(mine.points[0], timing=replace(mine.points[0].timing, q3=float("nan")))
    with pytest.raises(ValueError, match="finite"):
        rl.MeasuredExplorer(replace(mine, points=(broken,)))


def test_the_explorer_takes_the_path_of_a_record(tmp_path):
    measuring.save(measuring.load("cpu_xeon_4"), tmp_path / "mine.json")
    assert "fp32" in rl.MeasuredExplorer(str(tmp_path / "mine.json"), precision="fp32").readout


def test_a_second_record_stands_beside_the_first():
    """Its products are squares on the same axes, and the sentence holds it against the first."""
    explorer = rl.MeasuredExplorer("cpu_xeon_4", "fp32", m=64, beside="h200_a1")
    squares = [m for m in explorer.now.marks if isinstance(m, marks.Point) and m.kind == "s"]
    there = load("h200_a1").select("gemm_m", precision="fp32")
    assert sorted(p.y for p in squares if p.panel == 1) == sorted(p.performance for p in there)
    (left, right), (low, high) = explorer.now.axes[1].xlim, explorer.now.axes[1].ylim
    assert all(left < p.x < right and low < p.y < high for p in squares if p.panel == 1)
    (own,) = (p for p in load("cpu_xeon_4").select("gemm_m", precision="fp32") if p.shape.m == 64)
    (other,) = (p for p in there if p.shape.m == 64)
    times = significant(other.performance / own.performance)
    assert f"{times} times as fast" in explorer.readout
    assert "Squares" in explorer.now.alt
    explorer.controls["beside"].value = "none"
    assert "Squares" not in explorer.readout and "Squares" not in explorer.now.alt


def test_a_second_record_without_such_products_is_said():
    explorer = rl.MeasuredExplorer("h200_a1", "bf16", beside="cpu_xeon_4")
    assert "Xeon(R) Processor has no products in bf16." in explorer.readout
    with pytest.raises(ValueError, match="beside"):
        rl.MeasuredExplorer(beside="nobody's")
    with pytest.raises((TypeError, ValueError), match="beside"):
        rl.MeasuredExplorer(beside=None)
