"""The recorded H200s, against physics and the tiling model."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from measured_points import points

import roofline_lib as rl
from roofline_lib.measuring import gpu, load
from roofline_lib.measuring.verdicts import verdict
from roofline_lib.tiling import tiled_gemm

ROOT = Path(__file__).resolve().parents[1]
SWEEPS = ("h200_a1", "h200_a2", "h200_b1", "h200_c1", "h200_d1")
COUNTERS = ("h200_counters_a", "h200_counters_b")
SHEET = rl.machine("H200 SXM")

# --- points, against physics


@pytest.mark.parametrize("name", SWEEPS + COUNTERS)
def test_the_device_is_what_the_catalogue_says(name):
    chip = load(name).chip
    assert (chip.units, chip.clock, chip.memory_bus_bits) == (SHEET.units, 1.98e9, 6016)
    bus = rl.memory_bandwidth(chip.memory_clock, chip.memory_bus_bits)
    assert bus == pytest.approx(4.814e12, rel=1e-3)
    for level in ("L2", "shared memory"):
        assert chip.capacities[level] == SHEET.capacity(level)


@pytest.mark.parametrize("name", SWEEPS)
def test_no_point_passes_the_roof_that_its_own_clock_allows(name):
    record = load(name)
    bus = rl.memory_bandwidth(record.chip.memory_clock, record.chip.memory_bus_bits)
    for p in record.points:
        per_clock = SHEET.find_peak(p.precision).flop_per_clock_per_unit
        assert p.performance <= 132 * per_clock * p.clock
        if p.working_set >= 2 * SHEET.capacity("L2"):
            assert p.bandwidth <= bus
        # what stands above the sheet's roof stayed in L2
        assert verdict(p, SHEET).suspects.keys() <= {"cache level"}


@pytest.mark.parametrize("name", SWEEPS)
def test_sizes_show_the_cache(name):
    record = load(name)
    triad = {p.working_set: p.bandwidth for p in record.select("triad")}
    in_l2, in_dram = max(v for k, v in triad.items() if k < 5e7), triad[max(triad)]
    assert 1.25 * in_dram < in_l2 and 0.85 * 4.8e12 < in_dram < 4.8e12


@pytest.mark.parametrize("name", SWEEPS)
def test_one_chain_is_latency_and_many_are_throughput(name):
    record = load(name)
    steps = 1 << 19

    def step(**shape):
        (found,) = points(record, "chain_width", **shape)
        return found.seconds / steps

    alone = {w: step(blocks=1, threads=32, width=w) for w in gpu.WIDTHS}
    assert 4.0 <= alone[1] * 1.98e9 < 4.2  # a multiply-add takes four cycles
    assert alone[4] < 1.1 * alone[1]  # up to four independent ones hide in each other's latency
    assert alone[8] / alone[4] == pytest.approx(2, rel=0.02) and alone[16] / alone[
        8
    ] == pytest.approx(2, rel=0.02)
    full = 132 * 256 * 1.98e9
    for p in points(record, "chain_width", blocks=132):
        # to each of an SM's four schedulers
        chains = p.shape.width * p.shape.threads / 128
        assert p.performance / full == pytest.approx(min(1, chains / 4), rel=0.12), p.shape


@pytest.mark.parametrize("name", SWEEPS)
def test_products_climb_from_the_slope_to_a_plateau_that_power_sets(name):
    record = load(name)
    layer = [p.performance for p in points(record, "gemm_m", precision="bf16")]
    assert layer[0] < 5e12 and max(layer) > 600e12 and np.all(np.diff(layer[:10]) > 0)
    (ridge,) = points(record, "gemm_n", precision="fp32", n=80)  # the formula puts the ridge at 84
    assert ridge.performance < 0.005 * SHEET.peak("fp32")
    (steady,) = points(record, "steady")
    assert (
        steady.power_capped == 1
        and 1.35e9 < steady.clock < 1.6e9
        and steady.power > 0.95 * record.chip.power_limit
    )
    assert 0.6 < steady.performance / SHEET.peak("bf16") < 0.75
    assert 0.8 < steady.performance / (132 * 4096 * steady.clock) < 0.95


@pytest.mark.parametrize("name", SWEEPS)
def test_the_better_order_of_a_chain_wins_by_less_than_its_flop(name):
    poor, good = points(load(name), "chain_order")
    assert (poor.label, good.label) == ("(AB)c", "A(Bc)")
    assert poor.work.flops / good.work.flops == pytest.approx(2080, rel=0.001)
    assert 10 < poor.seconds / good.seconds < 30


def test_cards_agree_and_one_card_repeats_itself():
    """By the points that all of them have."""
    everywhere = {(p.family, p.precision, p.shape, p.label) for p in load("h200_a1").points}
    first, again, *others = (
        [
            p.seconds
            for p in load(name).points
            if (p.family, p.precision, p.shape, p.label) in everywhere
        ]
        for name in SWEEPS
    )
    same, *between = (np.abs(np.divide(x, first) - 1) for x in (again, *others))
    assert np.median(same) < 0.005 and np.quantile(same, 0.9) < 0.02
    for apart in between:
        assert np.median(apart) < 0.02 and np.quantile(apart, 0.9) < 0.05


@pytest.mark.parametrize("data", ["random", "zeros"])
def test_a_cold_card_is_faster_until_its_power_limit_is_met(data):
    cold = load("h200_c1").find("cold", label=data)
    seconds = np.array(cold.timing.repeats)
    rate, at = cold.work.flops / seconds, np.cumsum(seconds)
    burst, kept_up = rate[at < 0.025], rate[at > 2]
    assert np.median(burst) > 1.1 * np.median(kept_up)
    # no cycle at the largest clock does more than its tensor cores can
    assert burst.max() < 132 * 4096 * 1.98e9
    assert cold.power_capped > 0.9


@pytest.mark.parametrize("precision", ["bf16", "fp16", "tf32", "fp8", "int8", "fp64"])
def test_what_the_power_limit_takes_it_takes_after_the_first_moments(precision):
    record = load("h200_d1")
    assert 1.05 < record.cold_peaks[precision] / record.sustained.peaks[precision] < 1.25
    assert record.find("cold", precision, "random").power_capped > 0.8


def test_plain_fp32_never_meets_the_limit_and_loses_nothing():
    record = load("h200_d1")
    assert record.find("cold", "fp32").power_capped == 0
    assert record.cold_peaks["fp32"] == pytest.approx(record.sustained.peaks["fp32"], rel=0.03)


def test_units_issue_what_the_catalogue_says_of_a_clock():
    """Each precision's fastest instruction reaches 85 % of the FLOP a clock and SM that the
    catalogue has, or more, and none passes it."""
    record, best = load("h200_d1"), {}
    for p in record.select("issue"):
        a_clock = p.performance / p.clock / record.chip.units
        best[p.precision] = max(best.get(p.precision, 0.0), a_clock)
    assert set(best) == {"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"}
    for precision, a_clock in best.items():
        assert 0.85 < a_clock / SHEET.find_peak(precision).flop_per_clock_per_unit <= 1, precision
    lanes = record.find("issue", "fp64", "lanes: fma.rn.f64")
    per_lane = lanes.performance / lanes.clock / record.chip.units
    assert per_lane == pytest.approx(128, rel=0.03)  # 64 FP64 cores an SM


def test_zeros_draw_less_power_and_run_faster_and_still_meet_the_limit():
    random, zeros = (load("h200_c1").find("cold", label=data) for data in ("random", "zeros"))
    assert zeros.performance > 1.15 * random.performance and zeros.clock > random.clock
    assert zeros.power < random.power and zeros.clock < 1.98e9


# --- counted bytes, against the tiling model


def counted(kernel, **wanted):
    return [
        t
        for name in COUNTERS
        for t in load(name).traffic
        if t.kernel == kernel and all(getattr(t, key) == value for key, value in wanted.items())
    ]


def panels(t):
    """Bytes of A and B that tiles fetch: the model's count without C."""
    n = t.n
    return (
        tiled_gemm(n, n, n, t.tile, t.precision).bytes_moved
        - rl.bytes_per_element(t.precision) * n * n
    )


def test_the_crossbar_delivers_what_the_tile_says_to_the_byte():
    rows = counted("tiled", loads="past L1")
    assert {t.tile for t in rows} >= {(b, b) for b in (16, 32, 64, 128, 256)}
    for t in rows:
        for repeat in t.repeats:
            assert repeat.l2_to_sm_crossbar == pytest.approx(panels(t), rel=2e-4), t
            assert repeat.sm_to_l2 == pytest.approx(
                rl.bytes_per_element(t.precision) * t.n**2, rel=1e-3
            )


def test_l1_saves_a_little_and_the_slices_read_less_than_is_delivered():
    for t in counted("tiled"):
        for repeat in t.repeats:
            assert repeat.l1_loads == pytest.approx(panels(t), rel=2e-4)
            assert 0.85 * panels(t) < repeat.l2_to_sm_crossbar <= panels(t) * 1.0002
            assert repeat.l2_to_sm <= repeat.l2_to_sm_crossbar * 1.0002


def test_dram_moves_far_less_than_the_tiles_and_never_less_than_the_matrices():
    for t in counted("tiled"):
        once = 2 * rl.bytes_per_element(t.precision) * t.n**2
        dram = t.median.dram_read
        assert once * 0.99 < dram < panels(t)
    for t in counted("tiled", precision="bf16", n=4096):
        if t.tile[0] == t.tile[1]:
            assert 4 < panels(t) / t.median.dram_read < 25, t.tile


@pytest.mark.parametrize(
    ("threads", "a_per_step", "b_per_step"), [("coalesced", 32, None), ("strided", 32 * 32, 32)]
)
def test_a_naive_warp_asks_for_whole_sectors(threads, a_per_step, b_per_step):
    for t in counted("naive", threads=threads):
        s = rl.bytes_per_element(t.precision)
        # bytes a warp asks for in one step of k, for 32 multiply-adds
        warp = a_per_step + (b_per_step or 32 * s)
        for repeat in t.repeats:
            assert repeat.l1_loads == pytest.approx(t.n**3 / 32 * warp, rel=1e-3)


def test_the_order_of_the_loops_shows():
    for precision in ("fp32", "bf16"):
        quick, slow = (
            np.median(
                [
                    r.seconds
                    for t in counted(
                        "naive", precision=precision, loads="through L1", threads=threads, n=4096
                    )
                    for r in t.repeats
                ]
            )
            for threads in ("coalesced", "strided")
        )
        assert 8 < slow / quick < 20


def test_the_librarys_traffic_follows_from_the_tile_in_its_kernels_name():
    for t in counted("library"):
        sides = re.search(r"(\d+)x(\d+)(?:_|x)", t.function.split("tilesize")[-1].split("tst_")[-1])
        n, s = t.n, rl.bytes_per_element(t.precision)
        one, other = int(sides[1]), int(sides[2])
        model = s * n * n * (np.ceil(n / one) + np.ceil(n / other))
        share = t.median.l2_to_sm_crossbar / model
        # its loads go through L1, where neighbouring tiles find what was fetched
        if t.precision == "fp32":
            assert 0.75 < share < 1
        else:  # the copy engine brings whole tiles into shared memory
            assert share == pytest.approx(1, rel=0.03), t.function


def test_the_page_is_what_its_tool_writes():
    tool = runpy.run_path(str(ROOT / "tools" / "roofline_vs_measured.py"))
    for name, text in tool["files"]().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, (
            "run python tools/roofline_vs_measured.py"
        )
