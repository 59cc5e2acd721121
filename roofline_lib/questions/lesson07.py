"""Lesson 07: measured points under the roof."""

import roofline_lib as rl
from roofline_lib.checks import Question

_H200 = rl.machine("H200 SXM")
_LAYER = rl.gemm(64, 16384, 4096, "bf16")
_TILES = rl.tile_count(2560, 2560, 128)
# into the SMs; C goes the other way
_CROSSED = rl.tiled_gemm(2048, 2048, 2048, 64, "bf16").bytes_moved - 2 * 2048**2

QUESTIONS = [
    Question(
        "07.clock",
        "Each of an H200's 132 SMs can do 4096 FLOP a cycle in bf16. Under load the clock falls to 1.5 GHz. What is "
        "the peak then?",
        unit="TFLOP/s",
        reference=lambda: rl.peak_flops(132, 2048, 1.5e9),
        tolerance=0.01,
        slips={
            "clock-nominal": lambda: _H200.peak("bf16"),
            "mac-is-flop": lambda: rl.peak_flops(132, 2048, 1.5e9, 1),
        },
        hint="units x FLOP a cycle x clock.",
    ),
    Question(
        "07.efficiency",
        "[64, 4096] @ [4096, 16384] in bf16 takes 40 µs on an H200. How many percent of attainable is that, on "
        "the sheet's roof?",
        unit="%",
        reference=lambda: 100 * rl.bound(_LAYER, _H200, "bf16").time / 40e-6,
        tolerance=0.01,
        slips={"peak-for-roof": lambda: 100 * _LAYER.flops / 40e-6 / _H200.peak("bf16")},
        hint='rl.bound(rl.gemm(64, 16384, 4096, "bf16"), "H200 SXM", "bf16").time is the least time.',
    ),
    Question(
        "07.waves",
        "A 2560 x 2560 result is made of 128 x 128 tiles on 132 SMs. How many percent of the SMs' time is used?",
        unit="%",
        reference=lambda: 100 * rl.wave_efficiency(_TILES, 132),
        tolerance=0.005,
        hint="20 x 20 tiles in waves of 132; the last wave takes as long as a full one.",
    ),
    Question(
        "07.bytes",
        "Tiles of 64 x 64 in bf16, n = 2048, loaded past L1. The counters saw 60 MB come from DRAM. How many percent of "
        "the bytes that went into the SMs did L2 have already?",
        unit="%",
        reference=lambda: 100 * (1 - 60e6 / _CROSSED),
        tolerance=0.005,
        slips={"elements-not-bytes": lambda: 100 * (1 - 60e6 / (_CROSSED / 2))},
        hint="the rule 2MNK/b numbers says what went into the SMs; the rest of it did not come from DRAM.",
    ),
    Question(
        "07.chains",
        "A multiply-add takes 4 cycles, at 1.98 GHz. One warp runs 8 independent chains of them. How long is one "
        "step of all eight?",
        unit="ns",
        reference=lambda: max(4, 8) / 1.98e9,
        tolerance=0.01,
        slips={"latency-for-rate": lambda: 4 / 1.98e9},
        hint="a scheduler starts one instruction of a warp in a cycle; whichever takes longer counts, waiting or starting.",
    ),
    Question(
        "07.above",
        "A stream over 20 MB, passed a thousand times, shows 5.6 TB/s on a chip with 4.8 TB/s of DRAM bandwidth and "
        "60 MiB of L2. What is the first suspect?",
        choices=("units", "sparsity", "clock", "cache level", "precision"),
        reference=lambda: "cache level",
        hint="where are the 20 MB after the first pass?",
    ),
]
