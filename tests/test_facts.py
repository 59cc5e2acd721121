"""Every row of the course's facts that the core covers, by its id: computed by the library, held
against the figure that is taught.

Errata, figures that common texts print and that do not follow from their own inputs, assert both:
what they print and what is right.
"""

import math

import numpy as np
import pytest

import roofline_lib as rl

HOUSE, A100 = rl.machine("house chip"), rl.machine("A100 40GB SXM")
GB, MB, KIB, MS, US, TERA = 1e9, 1e6, 2.0**10, 1e-3, 1e-6, 1e12
FOUR = (4096, 4096, 4096)


def close(figure, digits=4):
    """The figure as it is taught, to `digits` significant digits: right to half a unit of the last
    one."""
    return pytest.approx(
        figure, rel=0, abs=0.500001 * 10.0 ** (math.floor(math.log10(figure)) - digits + 1)
    )


# --- F1 arithmetic intensity
# -----------------------------------------------------------------------------------------


def test_f1_1_intensity_is_flop_over_bytes_and_knows_no_machine():
    work = rl.gemm(*FOUR)
    assert work.intensity == work.flops / work.bytes_moved
    assert {
        rl.bound(work, name, "fp32").work.intensity for name in ("house chip", "T4", "H200 SXM")
    } == {work.intensity}


def test_f1_2_vector_add_in_fp16():
    add = rl.elementwise(1000, "fp16")
    assert (add.flops, add.bytes_moved) == (1000, 6000) and add.intensity == close(0.1667)


def test_f1_3_gemm_counts():
    m, n, k = 3, 5, 7
    for precision in rl.PRECISIONS:
        work, s = rl.gemm(m, n, k, precision), rl.bytes_per_element(precision)
        assert (work.flops, work.bytes_moved) == (2 * m * n * k, s * (m * k + k * n + m * n))


def test_f1_4_square_gemm():
    n = np.array([64, 4096])
    assert rl.gemm(n, n, n).intensity == pytest.approx(n / 6)
    for precision in ("fp16", "bf16", "fp32", "fp8"):
        assert rl.gemm(n, n, n, precision).intensity == pytest.approx(
            2 * n / (3 * rl.bytes_per_element(precision))
        )
    assert rl.gemm(n, n, n, "fp16").intensity == pytest.approx(n / 3)
    work = rl.gemm(*FOUR)
    assert (
        work.intensity == close(682.7)
        and work.flops == close(1.374e11)
        and work.bytes_moved == close(2.013e8)
    )


def test_f1_5_blas_levels():
    n = 10**6
    assert (
        rl.dot(n).intensity == close(1 / 4)
        and rl.axpy(n).intensity == close(1 / 6)
        and rl.gemv(n, n).intensity == close(1 / 2)
    )
    assert rl.gemv(n, n, "bf16").intensity == close(1) and rl.trsv(n).intensity == close(1 / 2)
    for level, operators in enumerate(
        ((rl.axpy, rl.dot, rl.nrm2), (rl.gemv, rl.trsv), (rl.gemm, rl.trsm, rl.syrk)), start=1
    ):
        for operator in operators:
            sides = {rl.gemm: 3, rl.gemv: 2, rl.trsm: 2, rl.syrk: 2}.get(operator, 1)
            small, large = operator(*sides * [1000]), operator(*sides * [2000])
            assert large.flops / small.flops == pytest.approx(2**level, rel=1e-2)
            assert large.intensity / small.intensity == pytest.approx(
                2 if level == 3 else 1, rel=1e-2
            )


def test_f1_6_one_row_through_a_layer():
    work = rl.gemm(1, 4096, 4096, "bf16")
    weights = rl.bytes_per_element("bf16") * 4096**2
    assert (
        work.flops == close(3.355e7)
        and weights == close(33.55 * MB)
        and work.flops / weights == 1.0
        and work.intensity == close(0.9995)
    )


def test_f1_7_64_rows():
    assert rl.gemm(64, 4096, 4096, "bf16").intensity == close(62.06)


def test_f1_8_a_feed_forward_product():
    assert rl.gemm(32768, 16384, 4096, "bf16").intensity == close(2978.9, 5)
    assert rl.gemm(32768, 16384, 4096, "fp32").intensity == close(1489.5, 5)
    assert rl.gemm(32, 16384, 4096, "bf16").intensity == close(31.7, 3)


def test_f1_9_erratum_compulsory_traffic_is_perfect_reuse():
    """Texts call 3 n^2 elements the worst case; every tiling moves at least that, and no reuse at
    all is another figure."""
    for n in (64, 1024):
        best = rl.gemm(n, n, n).intensity
        assert all(rl.tiled_gemm(n, n, n, tile).intensity <= best for tile in range(1, n + 1, 7))
        assert [
            rl.Work(2, 2 * rl.bytes_per_element(precision)).intensity
            for precision in ("fp32", "bf16")
        ] == [0.25, 0.5]
        assert rl.naive_gemm(n, n, n).intensity < 0.25 < best


def test_f1_10_slips_of_units_are_named():
    cache = rl.NumberQuestion("f", "?", rl.transformer("llama-2-7b").kv_bytes_per_token, unit="MB")
    flops = rl.NumberQuestion(
        "f",
        "?",
        lambda: rl.gemm(*FOUR).flops,
        unit="GFLOP",
        slips=[("mac-is-flop", lambda: rl.gemm(*FOUR).flops / 2)],
    )
    assert 2.0**30 / 1e9 == close(1.074)
    assert rl.check(cache, 524288 / 2**20).slips == ("gib-for-gb",) and rl.check(
        flops, "137.4 GFLOP/s"
    ).slips == ("flops-rate",)
    assert rl.check(flops, 4096**3 / 1e9).slips == ("mac-is-flop",)


# --- F2 roofline
# ----------------------------------------------------------------------


def test_f2_1_the_roof():
    for intensity in (0.25, 10.0, 1000.0):
        assert rl.attainable_performance(intensity, 20 * TERA, 2 * TERA) == min(
            20 * TERA, 2 * TERA * intensity
        )
    bound = rl.bound(rl.gemm(*FOUR), HOUSE, "fp32")
    assert bound.time == max(
        bound.work.flops / HOUSE.peak("fp32"), bound.work.bytes_moved / HOUSE.bandwidth()
    )
    assert HOUSE.ridge_point("fp32") == HOUSE.peak("fp32") / HOUSE.bandwidth()


def test_f2_3_ridge_of_the_a100():
    assert (A100.peak("fp32"), A100.bandwidth()) == (19.5 * TERA, 1555 * GB) and A100.ridge_point(
        "fp32"
    ) == close(12.54)


def test_f2_4_erratum_76_and_not_75():
    assert (
        rl.critical_size(A100, "fp32", exact=True)
        == close(75.24)
        == 1.5 * 4 * A100.ridge_point("fp32")
    )
    assert rl.critical_size(A100, "fp32") == 76 and rl.gemm(
        75, 75, 75
    ).intensity == 12.5 < A100.ridge_point("fp32")


def test_f2_5_the_same_in_tf32():
    assert A100.peak("tf32") == 156 * TERA
    assert (
        rl.critical_size(A100, "tf32", exact=True) == close(601.9)
        and rl.critical_size(A100, "tf32") == 602
    )


def test_f2_6_two_bandwidths_two_ridges():
    rounded = rl.Machine("as texts round it", {"bf16": 312 * TERA}, {"DRAM": 2 * TERA})
    assert rounded.ridge_point("bf16") == 156 and rl.machine("A100 80GB SXM").ridge_point(
        "bf16"
    ) == close(153.0)


def test_f2_7_erratum_the_margin_shrinks_by_half_as_much_as_the_ridge_moves():
    assert [HOUSE.peak(p) for p in ("fp32", "bf16")] == [
        20 * TERA,
        300 * TERA,
    ] and HOUSE.bandwidth() == 2 * TERA
    assert HOUSE.capacity("shared memory") == 228 * KIB and HOUSE.units == 132
    ridges = [HOUSE.ridge_point(p) for p in ("fp32", "bf16")]
    margins = [rl.gemm(*FOUR, p).intensity / HOUSE.ridge_point(p) for p in ("fp32", "bf16")]
    assert (
        ridges == [10, 150]
        and margins == [close(68.3, 3), close(9.1, 2)]
        and margins[0] / margins[1] == pytest.approx(7.5)
    )
    assert rl.gemm(60, 60, 60).intensity == 10 and rl.gemm(450, 450, 450, "bf16").intensity == 150


def test_f2_8_erratum_201_mb_is_the_fp32_traffic():
    printed, right = rl.gemm(*FOUR, "fp32"), rl.bound(rl.gemm(*FOUR, "bf16"), HOUSE, "bf16")
    assert printed.bytes_moved == close(
        201 * MB, 3
    ) and printed.bytes_moved / HOUSE.bandwidth() == close(0.101 * MS, 3)
    assert right.work.bytes_moved == close(100.7 * MB) and right.memory_time == close(0.050 * MS, 2)
    assert right.compute_time == close(
        0.458 * MS, 3
    ) and right.compute_time / right.memory_time == close(9.1, 2)
    assert right.compute_time / (printed.bytes_moved / HOUSE.bandwidth()) == close(4.55, 3)


def test_f2_9_n_1024_in_fp32():
    bound = rl.bound(rl.gemm(1024, 1024, 1024), HOUSE, "fp32")
    assert (
        bound.work.flops == close(2.147e9)
        and bound.work.bytes_moved == close(1.258e7)
        and bound.work.intensity == close(170.7)
    )
    assert (
        bound.compute_time == close(0.107 * MS, 3)
        and bound.memory_time == close(6.3 * US, 2)
        and bound.bound_by == "compute"
    )


def test_f2_10_erratum_tiling_makes_no_smaller_matrix_compute_bound():
    for n in (50, 59, 449, 1024):
        for tile in (1, 16, 100, n, 2 * n):
            assert rl.tiled_gemm(n, n, n, tile).intensity <= rl.gemm(n, n, n).intensity
        # the rule b/s, at b = n, overshoots it
        assert n / rl.bytes_per_element("fp32") > rl.gemm(n, n, n).intensity
    n = 900
    assert 2 * n / 3 / 4 == pytest.approx(rl.gemm(n, n, n).intensity)  # b/s meets it at b = 2n/3


def test_f2_11_peaks_are_dense():
    assert all(
        peak.dense
        for name in rl.machines()
        for options in rl.machine(name).peaks.values()
        for peak in options
    )
    h100 = rl.machine("H100 SXM")
    question = rl.NumberQuestion(
        "f",
        "?",
        lambda: h100.peak("bf16"),
        unit="TFLOP/s",
        slips=[("sparse-peak", lambda: 2 * h100.peak("bf16"))],
    )
    assert (
        rl.check(question, "1979 TFLOP/s").slips == ("sparse-peak",)
        and rl.check(question, 989).right
    )


# --- F3 tiling
# ----------------------------------------------------------------------


def test_f3_1_naive_loops():
    one_step = rl.Work(2, 8)
    assert one_step.intensity == 0.25
    moved = (4096**3 * one_step).bytes_moved
    assert moved == close(5.498e11) and moved / HOUSE.bandwidth() == close(0.275, 3)
    assert rl.naive_gemm(*FOUR).bytes_moved == pytest.approx(moved + 4 * 4096**2)


def test_f3_2_square_tiles_without_c():
    for b, intensity in ((128, 32), (256, 64)):
        tiled = rl.tiled_gemm(*FOUR, b)
        assert tiled.flops / (tiled.bytes_moved - 4 * 4096**2) == intensity == b / 4
        assert rl.tile_count(4096, 4096, b) * 2 * b * 4096 * 4 == tiled.bytes_moved - 4 * 4096**2


def test_f3_3_with_c_ragged_and_rectangular():
    m, n, k, b = 1024, 2048, 512, 128
    assert rl.tiled_gemm(m, n, k, b).bytes_moved == 4 * (2 * m * n * k / b + m * n)
    ragged = rl.tiled_gemm(1000, 300, 70, (128, 64)).bytes_moved
    # ceil(300/64) = 5, ceil(1000/128) = 8
    assert ragged == 4 * (5 * 1000 * 70 + 8 * 70 * 300 + 1000 * 300)
    wide = rl.tiled_gemm(m, n, k, (128, 64), "bf16")
    assert wide.flops / (wide.bytes_moved - 2 * m * n) == pytest.approx(
        128 * 64 / (128 + 64) * 2 / 2
    )
    assert rl.tiled_gemm(m, n, k, (m, n)) == rl.gemm(m, n, k)


def test_f3_4_tiles_of_128():
    tiled, c = rl.tiled_gemm(*FOUR, 128), 4 * 4096**2
    panels = tiled.bytes_moved - c
    assert (
        panels == close(4.295 * GB)
        and panels / HOUSE.bandwidth() == close(2.15 * MS, 3)
        and c == close(67 * MB, 2)
    )


def test_f3_5_fast_memory_is_full_at_240():
    assert (
        rl.tile_memory((240, 240)) == (240 * 240 + 240 + 240) * 4 <= 228 * KIB < rl.tile_memory(241)
    )
    assert rl.tile_memory(128, "fp16", tile_k=32) == 128 * 128 * 4 + 2 * (128 + 128) * 32 * 2


def test_f3_6_no_schedule_moves_less():
    fast, n = 228 * KIB / 4, np.arange(100, 3000)
    second = rl.io_lower_bound(n, n, n, fast) == 3.0 * n**2
    assert n[second].max() == 436 and second[:336].all()  # "about 430"
    assert rl.io_lower_bound(100, 200, 300, 400) == max(
        2 * 100 * 200 * 300 / 20 - 800, 100 * 300 + 300 * 200 + 100 * 200
    )
    huge = 2.0**22
    assert 2 * huge**3 / (4 * rl.io_lower_bound(huge, huge, huge, fast)) == close(fast**0.5 / 4, 3)


def test_f3_8_loop_order():
    """Scaled down: B's column is a new line each time and the line is gone before its neighbours
    are wanted."""
    ijk, ikj = (rl.loop_misses(64, order, capacity=4096, ways=8) for order in ("ijk", "ikj"))
    # 15 of a line's 16 numbers wait in vain
    assert ijk.misses > 64**3 and 14 < ijk.misses / ikj.misses < 18
    conflict, padded = (
        rl.loop_misses(64, "ijk", capacity=64 * 8 * 16, ways=8, pitch=pitch)
        for pitch in (64, 64 + 16)
    )
    assert conflict.misses > 10 * padded.misses
    stride, lines = 4096 * 4, 64
    # at full size: one line a row of B, past an L1
    assert stride == 16 * KIB and 4096 * lines == 256 * KIB
    column = [k * stride for k in range(4096)] * 2
    # all in one set of 64
    assert rl.count_misses(column, capacity=64 * 64 * 8, line=64, ways=8).misses == len(column)


def test_f3_9_a_product_as_n_matrix_vector_products():
    columns, panels = (
        4096 * rl.gemv(4096, 4096),
        rl.tiled_gemm(*FOUR, 128).bytes_moved - 4 * 4096**2,
    )
    again = 4096 * 4 * 4096**2
    assert columns.bytes_moved == pytest.approx(again, rel=1e-3) and again == close(274.9 * GB)
    assert again / HOUSE.bandwidth() == close(137 * MS, 3) and again / panels == 64


def test_f3_10_quantisation():
    assert (
        rl.tile_count(128, 257, 128) == 3
        and rl.tile_count(128, 257, 128) / rl.tile_count(128, 256, 128) == 1.5
    )
    assert 257 / 256 - 1 == close(0.0039, 2)
    assert np.ceil(109 / A100.units) == 2 and rl.wave_efficiency(109, A100.units) == close(0.505, 3)


# --- F4 prefill, decode, KV cache
# ------------------------------------------------------------------------------------


def test_f4_1_prefill():
    up, down = rl.gemm(8 * 2048, 4 * 4096, 4096, "bf16"), rl.gemm(8 * 2048, 4096, 4 * 4096, "bf16")
    both = rl.bound(up + down, HOUSE, "bf16")
    assert up.flops == close(2.2e12, 2) and both.work.flops == close(4.4e12, 2)
    assert both.compute_time == close(14.7 * MS, 3) and both.bound_by == "compute"


def test_f4_2_decode_of_one():
    bound = rl.bound(rl.gemm(1, 4096, 4096, "bf16"), HOUSE, "bf16")
    assert (
        bound.memory_time == close(16.8 * US, 3)
        and bound.compute_time == close(0.11 * US, 2)
        and bound.bound_by == "memory"
    )
    assert bound.memory_time / bound.compute_time == close(150, 3)


def test_f4_3_the_batch_at_the_ridge():
    assert (
        rl.critical_batch(4096, 4096, HOUSE, "bf16", exact=True) == close(161.85, 5)
        and HOUSE.ridge_point("bf16") == 150
    )
    assert rl.critical_batch(4096, 4096, HOUSE, "bf16") == 162


def test_f4_4_seven_billion_parameters():
    weights = 7e9 * rl.bytes_per_element("bf16")
    assert weights == 14 * GB and rl.bound(rl.Work(0, weights), HOUSE, "bf16").time == 7 * MS
    assert [
        rl.decode_tokens_per_second(weights, bandwidth) for bandwidth in (2 * TERA, 1 * TERA)
    ] == [close(143, 3), close(71, 2)]


def test_f4_5_kv_cache():
    token = rl.transformer("llama-2-7b").kv_bytes_per_token("bf16")
    assert (
        token == 2 * 32 * 32 * 128 * 2 == 524_288 == 512 * KIB
        and 4096 * token == 2 * 2** 30 == close(2.147 * GB)
    )


def test_f4_6_cache_as_heavy_as_the_weights():
    assert 14 * GB / rl.transformer("llama-2-7b").kv_bytes_per_token() == close(26_703, 5)


def test_f4_7_what_changes_the_bytes_changes_the_bound():
    def step(name="llama-3-70b", batch=8, **precisions):
        return sum(rl.transformer(name).decode(batch, 4096, **precisions).values()).bytes_moved

    assert step(weights="int4") < 0.31 * step() and step(kv="fp8") < step() < step(
        "llama-2-70b", weights="fp32"
    )
    # GQA, 8 of 32 heads
    assert (
        rl.transformer("llama-3-8b").kv_bytes_per_token()
        == rl.transformer("llama-2-7b").kv_bytes_per_token() / 4
    )
    mixtral = rl.transformer("mixtral-8x7b")
    assert (
        sum(mixtral.decode(1, 1).values()).bytes_moved
        < 0.3 * mixtral.weight_bytes()
        < sum(mixtral.decode(64, 1).values()).bytes_moved
    )
    times = [
        rl.bound(sum(rl.transformer("llama-3-8b").decode(batch, 4096).values()), HOUSE, "bf16").time
        for batch in (1, 16, 256)
    ]
    assert times == sorted(times) and [
        batch / time for batch, time in zip((1, 16, 256), times, strict=True)
    ] == sorted(batch / time for batch, time in zip((1, 16, 256), times, strict=True))


def test_f4_8_the_sweep_climbs_to_the_plateau():
    m = np.arange(1, 1025)
    bound = rl.bound(rl.gemm(m, 4096, 4096, "bf16"), HOUSE, "bf16")
    performance = bound.work.flops / bound.time
    assert (np.diff(performance) >= -1).all() and performance[-1] == HOUSE.peak("bf16")
    assert (bound.bound_by == "memory").sum() == 161 and performance[0] == close(2 * TERA, 3)


# --- F5 chain ordering
# ----------------------------------------------------------------------


def test_f5_1_two_orders():
    left, right = (
        rl.chain_cost((4096, 64, 4096, 1), order) for order in (((0, 1), 2), (0, (1, 2)))
    )
    assert (
        left.flops == close(2.181e9)
        and left.largest_intermediate == close(67.1 * MB, 3)
        and right.flops == close(1.049e6)
    )
    assert left.flops / right.flops == 2080


def test_f5_2_erratum_256_byte_and_not_512_kb():
    assert rl.chain_cost((4096, 64, 4096, 1), (0, (1, 2))).largest_intermediate == 64 * 4 == 256


def test_f5_3_lora():
    rank, d, tokens = 16, 4096, 8
    # B (A x), (B A) x
    thin, thick = (
        rl.chain_cost((d, rank, d, tokens), order) for order in ((0, (1, 2)), ((0, 1), 2))
    )
    assert thin.flops < thick.flops / 100 and rl.best_chain_order((d, rank, d, tokens)).order == (
        0,
        (1, 2),
    )


def test_f5_4_three_objectives_disagree():
    dims = (112, 88, 96, 200, 248)
    assert (
        len(
            {
                rl.best_chain_order(dims, minimise).order
                for minimise in ("flops", "bytes_moved", "largest_intermediate")
            }
        )
        == 3
    )


def test_f5_5_equal_but_not_bit_for_bit():
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((200, 300), (300, 250), (250, 100))
    )
    left, right = (a @ b) @ c, a @ (b @ c)
    assert not np.array_equal(left, right) and np.allclose(left, right, atol=1e-2)


def test_f5_6_strassen():
    flops = [rl.strassen(n).flops - rl.gemm(n, n, n).flops for n in (16, 18, 20)]
    assert flops[0] > 0 == flops[1] > flops[2]
    assert (
        rl.strassen(4096).flops < rl.gemm(*FOUR).flops
        and rl.strassen(4096).intensity < 0.5 * rl.gemm(*FOUR).intensity
    )


# --- F6 peaks
# ----------------------------------------------------------------------


def test_f6_1_counted():
    assert rl.peak_flops(36, 128, 2.572e9) == close(23_704 * GB, 5)


def test_f6_2_measured_above_it():
    assert 25_423 * GB > rl.peak_flops(36, 128, 2.572e9) and rl.peak_flops(
        36, 128, 2.790e9
    ) == close(25_713 * GB, 5)
    assert 25_423 * GB / rl.peak_flops(36, 128, 2.790e9) == close(0.989, 3) and rl.clock_from(
        25_423 * GB, 36, 128
    ) == close(2.759e9)


def test_f6_3_bandwidth():
    assert rl.memory_bandwidth(14_001e6, 128) == close(
        448.0 * GB
    ) and 412 * GB / rl.memory_bandwidth(14_001e6, 128) == close(0.92, 2)


def test_f6_4_lanes_are_an_assumption():
    assert [25_423 * GB / rl.peak_flops(36, lanes, 2.790e9) for lanes in (64, 256)] == [
        close(1.98, 3),
        close(0.49, 2),
    ]


def test_f6_5_erratum_tera_and_not_giga():
    assert 25.4 * TERA / rl.gemm(1, 1, 1).flops == 12.7 * TERA == 1000 * 12.7 * GB


def test_f6_7_two_shapes_of_8192_flop():
    assert rl.gemm(16, 16, 16).flops == rl.gemm(16, 8, 32).flops == 8192


def test_f6_8_accumulate_width_and_sparsity_are_part_of_the_name():
    for card in map(rl.machine, ("RTX 4090", "RTX 5090")):
        for precision in ("fp8", "fp16"):
            wide, narrow = card.peak(precision, "fp32"), card.peak(precision, "fp16")
            assert narrow == pytest.approx(2 * wide, rel=1e-2) and card.peak(precision) == wide
        assert (
            card.peak("fp8") == pytest.approx(2 * card.peak("fp16"), rel=1e-2)
            and card.find_peak("fp8").unit_kind == "tensor core"
        )
    fp32, fp64 = (rl.peak_flops(36, lanes, 2.790e9) for lanes in (128, 2))
    assert fp32 / fp64 == 64 and 25.4 / 0.41 == close(62, 2)  # counted, and measured


def test_f6_9_a_cpu():
    """Cores x FMA units x lanes x 2 x clock: AVX-512 doubles the count per instruction, so compare
    shares, not instruction counts."""
    avx2, avx512 = (rl.peak_flops(8, 2 * bits // 32, 3e9) for bits in (256, 512))
    assert avx2 == 8 * 2 * 8 * 2 * 3e9 and avx512 == 2 * avx2


# --- F7 one training step
# ----------------------------------------------------------------------

STEP = rl.Work(rl.training_flops(7e9, 4e6), 1)


def test_f7_1_and_2_six_n_d():
    time = rl.bound(STEP, HOUSE, "bf16").time
    assert (
        STEP.flops == close(1.68e17, 3)
        and time == pytest.approx(560)
        and time / 60 == close(9.33, 3)
    )
    assert time / 0.30 / 60 == close(31.1, 3)


def test_f7_3_erratum_16_8_hours_a_day_are_lost():
    day = rl.Work(0.30 * HOUSE.peak("bf16") * 24 * 3600, 1)
    useful = rl.bound(day, HOUSE, "bf16").time / 3600
    assert useful == pytest.approx(7.2) and 24 - useful == close(16.8, 3) and 24 - useful > 15 + 1


def test_f7_4_the_ffn():
    ffn = rl.bound(
        rl.gemm(32768, 16384, 4096, "bf16") + rl.gemm(32768, 4096, 16384, "bf16"), HOUSE, "bf16"
    )
    assert (
        ffn.work.flops == close(8.80e12, 3)
        and ffn.time == close(29.3 * MS, 3)
        and 32768 / ffn.time == close(1.1e6, 2)
    )


def test_f7_5_its_activation():
    written = rl.elementwise(32768 * 16384, "bf16", reads=0, writes=1).bytes_moved
    assert written == 2**30 == close(1.074 * GB)


def test_f7_6_a_ragged_last_micro_batch():
    last = rl.bound(rl.gemm(32, 16384, 4096, "bf16"), HOUSE, "bf16")
    assert (
        last.work.intensity == close(31.7, 3)
        and HOUSE.ridge_point("bf16") == 150
        and last.bound_by == "memory"
    )


def test_f7_7_sixteen_byte_a_parameter():
    model = rl.transformer("llama-2-7b")
    step = rl.training_memory(model, 1, 1)
    held = step.weights + step.gradients + step.optimizer
    # fp32 master and moments
    assert (
        held
        == 2 * model.weight_bytes("bf16") + 3 * model.weight_bytes("fp32")
        == 16 * model.parameters
    )
    assert rl.machine("A100 80GB SXM").capacity() < held < rl.machine("H200 SXM").capacity()


# --- F8 operators
# ----------------------------------------------------------------------


def test_f8_1_far_left_of_the_ridge():
    s, g = 8192, 8
    decode = rl.attention(1, g, 1, 1, s, 128, "bf16", flash=True)
    assert decode.intensity == pytest.approx(s * g / (g + s)) == close(7.99, 3) and rl.elementwise(
        1000, "bf16"
    ).intensity == close(1 / 6)
    for work in (
        decode,
        rl.softmax(s, s, "bf16"),
        rl.layer_norm(s, 4096, "bf16"),
        rl.rms_norm(s, 4096, "bf16"),
    ):
        assert work.intensity < HOUSE.ridge_point("bf16") / 15


def test_f8_2_right_of_it():
    prefill = rl.attention(1, 32, 32, 4096, 4096, 128, "bf16", flash=True)
    assert prefill.intensity == pytest.approx(2048)
    for work in (
        prefill,
        rl.gemm(*FOUR, "bf16"),
        rl.conv2d(32, 56, 56, 256, 256, 3, "bf16", padding=1),
    ):
        assert rl.bound(work, HOUSE, "bf16").bound_by == "compute"


def test_f8_3_fusion():
    one = rl.elementwise(1000, "bf16", reads=1)
    fused = rl.fused(one, one, one, bytes_moved=one.bytes_moved)
    assert (
        (3 * one).bytes_moved == 12 * 1000
        and fused.bytes_moved == 4 * 1000
        and fused.flops == (3 * one).flops
    )


def test_f8_4_fewer_bits():
    widths = [rl.bytes_per_element(p) for p in ("fp32", "bf16", "fp8", "mxfp4", "fp4")]
    assert widths == sorted(widths, reverse=True) and 8 * rl.bytes_per_element("mxfp4") == 4.25
    assert rl.bytes_per_element("int8") == rl.bytes_per_element("fp8") == 1


def test_f8_5_flash_attention():
    apart, flash = (
        rl.attention(64, 16, 16, 1024, 1024, 64, "fp16", flash=flash) for flash in (False, True)
    )
    assert apart.flops == flash.flops and (
        apart.bytes_moved - flash.bytes_moved
    ) / 4 == 2**31 == close(2.147 * GB)


def test_f8_6_erratum_half_is_the_limit():
    for t in (1, 2, 100, 4096):
        full, masked = (
            rl.attention(1, 1, 1, t, t, 64, causal=causal).flops for causal in (False, True)
        )
        assert masked / full == pytest.approx((t + 1) / (2 * t)) and masked / full > 0.5
