"""MeasuredExplorer: a size that was not recorded is said to be another one."""

import pytest

import roofline_lib as rl


@pytest.mark.parametrize(
    ("family", "m", "said"),
    [
        (
            "over m, one layer",
            1000,
            "m = 1000 was not recorded: this is the nearest that was, m = 1024. [1024, 4096] @",
        ),
        (
            "over m, one layer",
            16384,
            "m = 16384 was not recorded: this is the nearest that was, m = 1024. [1024, 4096] @",
        ),
        (
            "over n = m = k",
            1,
            "n = 1 was not recorded: this is the nearest that was, n = 64. [64, 64] @",
        ),
        ("over m, one layer", 1024, "[1024, 4096] @"),
        ("over n = m = k", 16384, "[16384, 16384] @"),
    ],
)
def test_the_nearest_recorded_size_is_shown_and_said(family, m, said):
    explorer = rl.MeasuredExplorer("h200_a1", "bf16", family, m)
    assert explorer.now.readout.startswith(said) and explorer.controls["m"].value == m


def test_above_the_roof_there_is_no_gap_to_explain():
    explorer = rl.MeasuredExplorer("cpu_epyc_2", "fp32", "over n = m = k", 3072)
    assert "which cannot be" in explorer.readout and "gap" not in explorer.readout
    explorer.controls["m"].value = 64
    assert "Most of the gap: " in explorer.readout
