"""PeakExplorer: what it counts is what the library counts, a chosen peak brings its own factors,
and nothing is filled in silently."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.explorers.marks import Bar, Line, Point
from roofline_lib.explorers.peak import Listing, PeakExplorer
from roofline_lib.explorers.shapes import Path, Words
from roofline_lib.style import FAINT, OVER

RANGES = {
    "units": (1, 1024),
    "lanes": (1, 2**18),
    "flops_per_lane": (1, 16),
    "clock": (0.1e9, 6e9),
    "measured": (0, 20e15),
}


def marks(explorer, kind):
    return [mark for mark in explorer.now.marks if isinstance(mark, kind)]


def lines(explorer):
    """{label of a line: the line}."""
    return {line.label: line for line in marks(explorer, Line)}


def level(value):
    """A height of the axis as labels write it."""
    return rl.quantity(value, "FLOP/s", 4).removesuffix("FLOP/s")


def agrees(explorer, sparse=False):
    """Every figure shown against the library, from the controls' values alone."""
    now = {name: control.value for name, control in explorer.controls.items()}
    per_lane, measured = now["flops_per_lane"] * (2 if sparse else 1), now["measured"]
    counted = rl.peak_flops(now["units"], now["lanes"], now["clock"], per_lane)
    spot = next(
        point for point in marks(explorer, Point) if point.label == f"counted {level(counted)}"
    )
    assert (spot.x, spot.y) == (
        now["clock"] / 1e9,
        counted,
    ) and f"= {rl.quantity(counted, 'FLOP/s', 4)} counted." in explorer.readout
    (ray,) = [line for line in marks(explorer, Line) if line.width == 3]
    assert ray.y[0] == 0 and ray.y[1] / ray.x[1] == pytest.approx(counted / (now["clock"] / 1e9))
    shares = {bar.name: bar.parts[0] for bar in marks(explorer, Bar)}
    assert ("measured of counted" in shares) == (measured > 0)
    if measured:
        needed = rl.clock_from(measured, now["units"], now["lanes"], per_lane) / 1e9
        assert shares["measured of counted"] == measured / counted
        assert [point.x for point in marks(explorer, Point) if point.kind == "D"] == [needed] * (
            needed <= 6
        )
        assert ("one of the factors is wrong" in explorer.readout) == (measured > counted)
        line = next(
            line
            for line in marks(explorer, Line)
            if line.y == (measured, measured) and line.width == 2
        )
        assert (line.color == OVER) == (measured > counted)
        low = 20 * measured <= explorer.now.axes[0].ylim[1]
        assert line.label == ("" if low else f"measured {level(measured)}")


def test_the_card_that_beat_its_peak():
    explorer = PeakExplorer("RTX 5060 Ti", "fp32", measured=25.423e12)
    assert explorer.now.readout == (
        "36 SMs x 128 lanes x 2 FLOP x 2.572 GHz = 23.7 TFLOP/s counted. Nominal fp32 of "
        "RTX 5060 Ti: 23.7 TFLOP/s. Measured 25.42 TFLOP/s is 107 % of the counted peak; it takes "
        "a clock of at least 2.759 GHz. It would be 215 % with 64 lanes and 53.6 % with 256 lanes. "
        "Nothing beats its own peak: one of the factors is wrong."
    )
    explorer.controls["clock"].value = 2.790e9
    assert "98.9 % of the counted peak" in explorer.readout and "wrong" not in explorer.readout
    agrees(explorer)


@pytest.mark.parametrize("name", RANGES)
def test_both_ends_of_every_number(name):
    explorer = PeakExplorer(measured=25.423e12)
    for end in RANGES[name]:
        explorer.controls[name].value = end
        agrees(explorer)


@pytest.mark.parametrize("lanes", [128, 2048, 16384, 2**18])
def test_no_label_covers_another_however_many_lanes(lanes):
    words = [
        shape
        for shape in PeakExplorer(measured=25.423e12, lanes=lanes).shapes
        if isinstance(shape, Words)
    ]
    for i, one in enumerate(words):
        for other in words[i + 1 :]:
            assert (
                np.hypot(*(one.covered()[:, None] - other.covered()[None]).transpose(2, 0, 1)).min()
                > 1
            ), (one.text, other.text)
    # none among the axis' own numbers
    assert all(shape.y < 14 + 300 or shape.y > 14 + 300 + 40 for shape in words)


@pytest.mark.parametrize("clock", [2.572e9, 2.79e9])
@pytest.mark.parametrize("lanes", [64, 128, 256])
def test_the_lines_that_are_compared_cross_no_label(lanes, clock):
    """The count's own ray, the measured and the nominal level, as the lesson sets them."""
    shapes = PeakExplorer(measured=25.423e12, lanes=lanes, clock=clock).shapes
    lines = [
        shape.covered() for shape in shapes if isinstance(shape, Path) and shape.stroke != FAINT
    ]
    crossed = [
        words.text
        for words in shapes
        if isinstance(words, Words) and words.text
        for line in lines
        if line.size and words.text.split()[0] in ("counted", "measured", "nominal")
        if np.hypot(*(words.covered()[:, None] - line[None]).transpose(2, 0, 1)).min() < 1.5
    ]
    assert crossed == []


@pytest.mark.parametrize("name", RANGES)
def test_nonsense_is_refused_and_nothing_moves(name):
    explorer = PeakExplorer()
    before, readout = explorer.controls[name].value, explorer.readout
    low, high = RANGES[name]
    for nonsense in (low - 1, 2 * high, math.nan, math.inf, "12", None, True):
        with pytest.raises(
            ValueError, match=f"{name} must be a (whole )?number from .* to .*; got"
        ):
            explorer.controls[name].value = nonsense
        assert (explorer.controls[name].value, explorer.readout) == (before, readout)


@given(st.data())
def test_any_settings_in_any_order(data):
    explorer = PeakExplorer()
    for name in data.draw(
        st.lists(
            st.sampled_from([*RANGES, "machine", "precision", "fp16_sums"]), min_size=1, max_size=10
        )
    ):
        control = explorer.controls[name]
        values = (
            st.booleans()
            if name == "fp16_sums"
            else st.sampled_from(control.ladder if name in RANGES else sorted(control.options))
        )
        control.value = data.draw(values, label=name)
        agrees(explorer)


@pytest.mark.parametrize("chip", rl.machines())
def test_every_peak_of_the_catalogue_is_counted_from_its_own_factors(chip):
    """Switching to a peak sets units, lanes and clock to those behind it: the count then misses
    only what the catalogue says it misses."""
    explorer, machine = PeakExplorer(), rl.machine(chip)
    missed = {
        **machine.details.get("identity_exceptions", {}),
        **machine.details.get("unchecked", {}),
    }
    explorer.controls["machine"].value = chip
    for precision in machine.precisions:
        for narrow in (False, True):
            explorer.controls["precision"].value, explorer.controls["fp16_sums"].value = (
                precision,
                narrow,
            )
            assert explorer.controls["units"].value == machine.units
            both = len({peak.accumulate for peak in machine.peaks[precision]}) > 1
            nominal = machine.peak(precision, ("fp16" if narrow else "fp32") if both else None)
            assert f"nominal {level(nominal)}" in lines(explorer)
            counted = next(point.y for point in marks(explorer, Point))
            assert precision in missed or counted == pytest.approx(nominal, rel=0.005)
            agrees(explorer)


def test_a_machine_chosen_brings_one_picture_and_no_measurement(monkeypatch):
    explorer, drawn = PeakExplorer(measured=25.423e12, lanes=64), []
    scene = PeakExplorer.scene
    monkeypatch.setattr(
        PeakExplorer,
        "scene",
        staticmethod(lambda **values: drawn.append(values) or scene(**values)),
    )
    explorer.controls["machine"].value = "H100 SXM"
    assert len(drawn) == 1
    values = {name: explorer.controls[name].value for name in RANGES}
    assert values == {
        "units": 132,
        "lanes": 128,
        "flops_per_lane": 2,
        "clock": 1.98e9,
        "measured": 0,
    }
    explorer.controls["precision"].value = "bf16"
    assert explorer.controls["clock"].value == 1.83e9 and explorer.controls["lanes"].value == 2048


def test_what_the_catalogue_does_not_know_is_said():
    explorer = PeakExplorer("TPU v5e", "bf16")
    explorer.controls["machine"].value = "TPU v6e"
    assert (
        explorer.controls["clock"].value == 1.5e9
        and "Not in the catalogue: its clock;" in explorer.readout
    )
    explorer.controls["precision"].value = "fp64"
    assert explorer.readout.endswith(
        "has no fp64 peak in the catalogue; what it does not know stays as it was set."
    )
    assert not [x for x in lines(explorer) if "nominal" in x]
    with pytest.raises(ValueError, match="clock must be given for bf16 on TPU v6e"):
        PeakExplorer("TPU v6e", "bf16")
    assert "counted" in PeakExplorer("TPU v6e", "bf16", clock=3.5e9).readout


def test_accumulate_width_and_sparsity_are_switches_where_they_mean_something():
    explorer = PeakExplorer("RTX 5090", "fp16")
    dense = next(point.y for point in marks(explorer, Point))
    explorer.controls["fp16_sums"].value = True
    assert next(point.y for point in marks(explorer, Point)) == 2 * dense
    explorer.controls["sparsity"].value = True
    agrees(explorer, sparse=True)
    assert (
        next(point.y for point in marks(explorer, Point)) == 4 * dense
        and "419 TFLOP/s dense" in explorer.readout
    )
    assert explorer.now.hidden == ()
    # lanes of their own, no tensor core: neither switch means anything
    explorer.controls["precision"].value = "fp32"
    agrees(explorer)
    assert explorer.now.hidden == ("fp16_sums", "sparsity") and "zeros" not in explorer.readout
    assert (
        explorer.controls["fp16_sums"].layout.display
        == explorer.controls["sparsity"].layout.display
        == "none"
    )


def test_the_list_shows_every_peak_under_its_unit():
    explorer = PeakExplorer("A100 40GB SXM", "bf16")
    (listing,) = marks(explorer, Listing)
    names = [texts[0].strip("•\u2002 ") for texts, _, _ in listing.lines]
    assert names == [
        "",
        "tensor cores",
        "fp64",
        "tf32",
        "bf16",
        "fp16",
        "int8",
        "FP64 cores",
        "fp64",
        "CUDA cores",
        "fp32",
    ]
    assert [texts for texts, bold, _ in listing.lines if bold] == [("• bf16", "2,048", "312")]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"units": 0}, "units must be a whole number from 1 to 1024 (SMs, cores); got 0"),
        ({"clock": 2.572}, "clock must be a number from 100 MHz to 6 GHz (Hz); got 2.572 Hz"),
        ({"lanes": 1.5}, "lanes must be a whole number from 1 to 262144 (of a unit); got 1.5"),
        (
            {"measured": -1},
            "measured must be a number from 0 FLOP/s to 20 PFLOP/s (FLOP/s); got -1 FLOP/s",
        ),
        ({"precision": "fp12"}, "precision 'fp12' is not known; choose one of fp64, fp32"),
        ({"fp16_sums": "fp16"}, "fp16_sums must be True or False; got 'fp16'"),
        ({"sparsity": 1}, "sparsity must be True or False; got 1"),
        ({"machine": "H1000"}, "machine 'H1000' is not known"),
        ({"machine": "house chip"}, "lanes must be given for fp32 on house chip"),
    ],
)
def test_bad_arguments_say_what_would_do(bad, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        PeakExplorer(**bad)
