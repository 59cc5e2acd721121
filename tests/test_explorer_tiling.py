"""TilingExplorer: what it shows is what the library says, at the ends of every control and anywhere
between."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.explorers.marks import Bar, Point
from roofline_lib.explorers.tiling import TilingExplorer

SIDES = {"m": 65536, "n": 65536, "k": 65536, "tile_m": 4096, "tile_n": 4096}
COUNTS = {"tile_k": 1024, "buffers": 8, "units": 1024}
LIMITS = {name: (1, high) for name, high in (SIDES | COUNTS).items()}
LIMITS |= {"fast_memory": (4096, 2**30)}


def points(explorer):
    """{first word of a point's label: the point}."""
    return {mark.label.split()[0]: mark for mark in explorer.now.marks if isinstance(mark, Point)}


def bars(explorer):
    return {mark.name: mark for mark in explorer.now.marks if isinstance(mark, Bar)}


def agrees(explorer):
    """Every figure shown against the library, from the controls' values alone."""
    now = {name: control.chosen for name, control in explorer.controls.items()}
    m, n, k, tile, precision = (
        now["m"],
        now["n"],
        now["k"],
        (now["tile_m"], now["tile_n"]),
        now["precision"],
    )
    width, tiled, shown = (
        rl.bytes_per_element(precision),
        rl.tiled_gemm(m, n, k, tile, precision),
        points(explorer),
    )
    least = width * rl.io_lower_bound(m, n, k, now["fast_memory"] / width, tightest=True)
    held = rl.tile_memory(tile, precision, tile_k=now["tile_k"], buffers=now["buffers"])
    filled = held / now["fast_memory"]
    assert shown["naive"].x == rl.naive_gemm(m, n, k, precision).intensity
    assert (
        shown["tiles"].x
        == tiled.intensity
        <= shown["compulsory"].x
        == rl.gemm(m, n, k, precision).intensity
    )
    if "best" in shown:
        assert shown["best"].x == tiled.flops / least < shown["compulsory"].x
    else:
        assert least == rl.gemm(m, n, k, precision).bytes_moved
    peak, bandwidth = now["machine"].peak(precision), now["machine"].bandwidth()
    for point in shown.values():
        assert point.y == min(peak, bandwidth * point.x)
    memory, edge, wave = (
        bars(explorer)[name] for name in ("fast memory", "edge waste", "wave waste")
    )
    assert memory.parts == (filled,)
    assert edge.parts == (1 - rl.tile_efficiency(m, n, tile),)
    assert wave.parts == (1 - rl.wave_efficiency(rl.tile_count(m, n, tile), now["units"]),)
    assert (
        memory.value.startswith("over: ")
        == ("too big" in shown["tiles"].label)
        == shown["tiles"].hollow
        == (filled > 1)
    )
    assert (", more than the " in explorer.readout) == (filled > 1)
    moved, intensity = (
        rl.quantity(tiled.bytes_moved, "byte"),
        rl.quantity(tiled.intensity, "FLOP/byte"),
    )
    assert f"{moved} moved, {intensity}" in explorer.readout
    assert f"{rl.bound(tiled, now['machine'], precision).bound_by}-bound" in explorer.readout
    assert all(
        math.isfinite(x)
        for shape in explorer.shapes
        for x in (getattr(shape, "x", 0), getattr(shape, "y", 0))
    )


def test_readout_in_words():
    assert TilingExplorer("house chip").now.readout == (
        "128 x 128 tiles: 4.36 GB moved, 31.5 FLOP/byte, compute-bound, 66.6 kB of fast memory "
        "(65.5 kB sums). "
        "1,024 tiles on 132 SMs: 0 % of their area lies outside C, 3 % of the waves' places stay "
        "empty."
    )


@pytest.mark.parametrize(
    ("tile", "said"),
    [(240, "99.5 %"), (241, "over: 1.003x"), (256, "over: 1.13x"), (1024, "over: 18x")],
)
def test_a_full_memory_shows_in_words_and_shape(tile, said):
    explorer = TilingExplorer("house chip", tile_m=tile, tile_n=tile)
    assert bars(explorer)["fast memory"].value == said
    tips = len(bars(explorer)["fast memory"].shapes(None)) - len(
        bars(TilingExplorer("house chip"))["fast memory"].shapes(None)
    )
    # a line where the memory ends, and a thin bar over what lies past it
    assert tips == (2 if tile > 240 else 0)
    agrees(explorer)


@pytest.mark.parametrize("name", LIMITS)
def test_both_ends_of_every_control(name):
    explorer = TilingExplorer("house chip")
    for end in LIMITS[name]:
        explorer.controls[name].value = end
        agrees(explorer)


@pytest.mark.parametrize("name", LIMITS)
def test_nonsense_is_refused_and_nothing_moves(name):
    explorer = TilingExplorer("house chip")
    before, readout = explorer.controls[name].value, explorer.readout
    low, high = LIMITS[name]
    for nonsense in (low - 1, high + 1, 2.5, math.nan, math.inf, "12", None, True):
        with pytest.raises(ValueError, match=f"{name} must be a whole number from {low} to {high}"):
            explorer.controls[name].value = nonsense
        assert (explorer.controls[name].value, explorer.readout) == (before, readout)


changes = st.one_of(
    *(
        st.tuples(st.just(name), st.one_of(st.sampled_from(ends), st.integers(*ends)))
        for name, ends in LIMITS.items()
    ),
    st.tuples(st.just("precision"), st.sampled_from(["fp32", "bf16", "fp8"])),
    st.tuples(
        st.just("machine"), st.sampled_from(["house chip", "H100 SXM", "MI300X", "T4", "M1 Max"])
    ),
)


@given(st.lists(changes, min_size=1, max_size=8))
def test_any_settings_in_any_order(steps):
    explorer = TilingExplorer("house chip")
    for name, value in steps:
        explorer.controls[name].value = value
    chip, precision = explorer.controls["machine"].chosen, explorer.controls["precision"].value
    if precision in chip.precisions:
        agrees(explorer)
    else:
        assert explorer.readout.startswith(f"{chip.name} has no {precision} peak")


@pytest.mark.parametrize("precision", ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"])
def test_every_precision(precision):
    agrees(TilingExplorer("H100 SXM", precision=precision, tile_m=96, tile_n=160))


def test_a_machine_brings_its_own_memory_and_units():
    explorer = TilingExplorer("house chip", fast_memory=100_000, units=7)
    assert (explorer.controls["fast_memory"].value, explorer.controls["units"].value) == (
        100_000,
        7,
    )
    explorer.controls["machine"].value = "A100 40GB SXM"
    assert (explorer.controls["fast_memory"].value, explorer.controls["units"].value) == (
        164 * 1024,
        108,
    )
    # no fast memory in the catalogue: what was there stays
    explorer.controls["machine"].value = "M1 Max"
    assert (explorer.controls["fast_memory"].value, explorer.controls["units"].value) == (
        164 * 1024,
        32,
    )


def test_what_the_machine_lacks_must_be_given():
    bare = rl.Machine("bare", peaks={"fp32": 1e12}, bandwidths={"DRAM": 1e11})
    with pytest.raises(ValueError, match="fast_memory must be given for bare"):
        TilingExplorer(bare)
    with pytest.raises(ValueError, match="units must be given for bare"):
        TilingExplorer(bare, fast_memory=65536)
    agrees(TilingExplorer(bare, fast_memory=65536, units=4))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"m": 0}, "m must be a whole number from 1 to 65536"),
        ({"tile_n": 5000}, "tile_n must be"),
        ({"fast_memory": 1}, "fast_memory must be"),
        ({"units": 0}, "units must be"),
        ({"precision": "fp12"}, "precision 'fp12' is not known; choose one of"),
        ({"machine": "H1000"}, "machine 'H1000' is not known"),
    ],
)
def test_bad_arguments_say_what_would_do(bad, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        TilingExplorer(**bad)


def test_small_products_have_one_best_point():
    """Where the whole problem fits, compulsory traffic is the bound, and no second point stands on
    it."""
    assert "best" not in points(TilingExplorer("house chip", m=241, n=241, k=241))
    assert "best" in points(TilingExplorer("house chip", m=242, n=242, k=242))


def test_sums_stay_in_fp32_where_the_matrices_are_in_bf16():
    """241 is the largest bf16 tile on the house chip even with a single column and row beside its
    sums, so that no tile that fits is compute-bound; panels leave less room, and 128 x 256 with two
    panels each, 64 deep, is a real kernel's size."""
    fits, over = (
        TilingExplorer("house chip", precision="bf16", tile_m=b, tile_n=b) for b in (241, 242)
    )
    assert bars(fits)["fast memory"].parts[0] <= 1 < bars(over)["fast memory"].parts[0]
    assert "memory-bound" in fits.readout
    real = TilingExplorer(
        "house chip", precision="bf16", tile_m=128, tile_n=256, tile_k=64, buffers=2
    )
    assert bars(real)["fast memory"].parts == (224 / 228,)
    assert "229 kB of fast memory (131 kB sums)" in real.readout
    deep = TilingExplorer("H100 SXM", precision="fp64", tile_m=64, tile_n=64, tile_k=8)
    assert "(32.8 kB sums)" in deep.readout


def test_a_tile_as_large_as_c_is_compulsory():
    shown = points(TilingExplorer("house chip", m=1000, n=700, k=300, tile_m=1000, tile_n=700))
    assert shown["tiles"].x == shown["compulsory"].x
