"""Questions on peaks, counted, nominal and measured."""

import math
import re

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied

_V100, _A100, _H100, _L4, _4090 = (
    rl.machine(name) for name in ("V100 SXM2", "A100 80GB SXM", "H100 SXM", "L4", "RTX 4090")
)
_EPYC = rl.machine("EPYC 7452")
_SIDES = r"m(\d+)n(\d+)k(\d+)"


def _ruled_out():
    """What a rate of 21 TFLOP/s on 40 units at 2.4 GHz says about their lanes: counts whose peak is
    below it cannot be."""
    possible = [lanes for lanes in (64, 128, 256) if rl.peak_flops(40, lanes, 2.4e9) >= 21e12]
    return {(64, 128, 256): "nothing", (128, 256): "not 64", (256,): "256"}[tuple(possible)]


def _tensor(units, clock, flops_per_lane=2):
    """A V100's kind of tensor cores as 8 x 64 lanes an SM."""
    return rl.peak_flops(units, 8 * rl.gemm(4, 4, 4).flops / 2, clock, flops_per_lane)


def _macs(rate, worth=2, sparse=1):
    """Percent of an A100's bf16 peak that so many multiply-adds a second are."""
    return 100 * worth * rate / (sparse * _A100.peak("bf16"))


def _copied(seconds, passes=2):
    """Percent of an L4's counted bandwidth that a copy of 6 GB is."""
    (memory,) = (level for level in _L4.details["memory"] if level["level"] == "DRAM")
    return 100 * passes * 6e9 / seconds / rl.memory_bandwidth(memory["clock"], memory["bus_bits"])


def _boosted(rate, clock, flops_per_lane=2):
    """Percent of the fp64 peak of 32 cores with two 256-bit units that a rate is."""
    return 100 * rate / rl.peak_flops(_EPYC.units, 2 * 256 // 64, clock, flops_per_lane)


def _explained():
    """How much of a rate above the nominal peak the logged clock accounts for."""
    logged, needed = 2.58e9, rl.clock_from(88.4e12, _4090.units, 128)
    return (
        "all of it"
        if logged >= needed
        else "a part of it"
        if logged > _4090.details["clock"]
        else "nothing"
    )


def _utilisation(rate, rate_counts, peak, peak_counts, worth=2, sparse=2):
    shape = re.fullmatch(_SIDES, rate_counts)
    each = (
        rl.gemm(*map(int, shape.groups())).flops * worth / 2
        if shape
        else {"FLOP": 1, "MAC": worth}[rate_counts]
    )
    return each * rate / {"FLOP": peak, "MAC": 2 * peak, "sparse FLOP": peak / sparse}[peak_counts]


def _bus_wires(bandwidth, clock, transfers, step):
    """Chip by chip, until the library's count is enough."""
    wires = step
    while rl.memory_bandwidth(clock, wires, transfers) < bandwidth:
        wires += step
    return wires


def _fewest_lanes(measurements, units, candidates):
    left = [
        lanes
        for lanes in candidates
        if all(rl.peak_flops(units, lanes, clock) >= rate for rate, clock in measurements)
    ]
    return float(min(left)) if left else math.inf


def _loop_peak(cores, clock, vector_bits, element_bits, body, ports, starts):
    multiply_adds, additions, loads = body
    limits = [
        limit / count
        for limit, count in (
            (ports[0], multiply_adds + additions),
            (ports[1], loads),
            (starts, sum(body)),
        )
        if count
    ]
    return rl.peak_flops(
        cores,
        vector_bits / element_bits,
        clock,
        flops_per_lane=(2 * multiply_adds + additions) * min(limits),
    )


def _fewest_chains(latency, registers, base, per_chain, most_warps):
    """Every pair of chains and warps, tried."""
    enough = [
        chains
        for chains in range(1, 256)
        for warps in range(1, most_warps + 1)
        if chains * warps >= latency
        and (base + chains * per_chain) * 32 * warps <= registers
        and base + chains * per_chain < 256
    ]
    return float(min(enough)) if enough else math.inf


def _chains_in_fractions(latency, registers, base, per_chain, most_warps):
    """The same where a part of a warp counts as that part."""
    for chains in range(1, (255 - base) // per_chain + 1):
        warps = min(most_warps, registers / (32 * (base + chains * per_chain)))
        if chains * warps >= latency:
            return float(chains)
    return math.inf


def _tensor_asked(units=None, megahertz=1530):
    of = "a V100's 80" if units is None else f"a chip's {units}"
    units, clock = units or _V100.units, 1e6 * megahertz
    return NumberQuestion(
        "peaks.x-tensor",
        f"Each of {of} SMs has 8 tensor cores, and each of those multiplies two 4 x 4 fp16 "
        f"matrices in every cycle, at {megahertz / 1000} GHz. What is the peak?",
        unit="TFLOP/s",
        reference=lambda: _tensor(units, clock),
        tolerance=0.005,
        slips=[
            ("mac-is-flop", lambda: _tensor(units, clock, 1)),
            ("one-of-several", lambda: _tensor(units, clock) / 8),
        ],
        hint="4 x 4 results of 4 multiply-adds, 2 FLOP each.",
    )


def _macs_asked(rate=130):
    return NumberQuestion(
        "peaks.x-macs",
        f"A dense bf16 product runs at {rate} T multiply-adds a second on an A100 80GB SXM. Its "
        "sheet prints 624 TFLOP/s with 2:4 sparsity. What share of the peak is that?",
        unit="%",
        reference=lambda: _macs(1e12 * rate),
        slips=[
            ("mac-is-flop", lambda: _macs(1e12 * rate, worth=1)),
            ("sparse-peak", lambda: _macs(1e12 * rate, sparse=2)),
            ("mac-is-flop", lambda: _macs(1e12 * rate, worth=1, sparse=2)),
            ("sparse-peak", lambda: _macs(1e12 * rate, worth=1, sparse=2)),
        ],
        hint="FLOP on both sides, and no zeros on either: two corrections.",
    )


def _copy_asked(milliseconds=48):
    return NumberQuestion(
        "peaks.x-copy",
        "An L4 has 192 memory wires and a memory clock of 6250 MHz, two transfers a cycle. "
        f"Copying an array of 6 GB takes {milliseconds} ms. What share of the counted bandwidth "
        "is that?",
        unit="%",
        reference=lambda: _copied(milliseconds / 1000),
        slips=[
            ("forgot-c", lambda: _copied(milliseconds / 1000, passes=1)),
            ("bits-for-bytes", lambda: _copied(milliseconds / 1000) / 8),
        ],
        hint="a copy reads its array and writes it.",
    )


def _boost_asked(rate=1410, megahertz=2900):
    return NumberQuestion(
        "peaks.x-boost",
        "An EPYC 7452 has 32 cores, two FMA units on 256 bits each, and a nominal clock of 2.35 "
        f"GHz. A product in fp64 runs at {rate} GFLOP/s; the clock was logged at "
        f"{megahertz / 1000:.2f} GHz. What share of the peak at that clock is that?",
        unit="%",
        reference=lambda: _boosted(1e9 * rate, 1e6 * megahertz),
        slips=[
            ("ran-faster", lambda: _boosted(1e9 * rate, _EPYC.details["clock"])),
            ("mac-is-flop", lambda: _boosted(1e9 * rate, 1e6 * megahertz, 1)),
        ],
        hint="cores x units x numbers in a vector x 2 x the clock that it ran at.",
    )


# with other numbers for each student
VARIED = (
    Varied(
        _tensor_asked,
        lambda rng: {"units": rng.randint(20, 120), "megahertz": 10 * rng.randint(110, 190)},
    ),
    Varied(_macs_asked, lambda rng: {"rate": rng.randint(70, 150)}),
    Varied(_copy_asked, lambda rng: {"milliseconds": rng.randint(42, 95)}),
    Varied(
        _boost_asked,
        lambda rng: {"rate": 10 * rng.randint(100, 130), "megahertz": 10 * rng.randint(256, 330)},
    ),
)

QUESTIONS = [
    NumberQuestion(
        "peaks.clock",
        "An RTX 3090 (82 SMs, 128 fp32 lanes each, nominal clock 1.695 GHz) is measured at 37.0 "
        "TFLOP/s in fp32, more than its nominal 35.6. At which clock, at least, did it run?",
        unit="GHz",
        reference=lambda: rl.clock_from(37.0e12, 82, 128),
        slips=[
            ("mac-is-flop", lambda: rl.clock_from(37.0e12, 82, 128, 1)),
            ("ran-faster", lambda: rl.machine("RTX 3090").details["clock"]),
        ],
        hint="divide the rate by units x lanes x 2.",
    ),
    NumberQuestion(
        "peaks.headline",
        "A dense bf16 product runs at 620 TFLOP/s on an H100 SXM, whose sheet prints 1979 TFLOP/s "
        "with 2:4 sparsity. What share of the peak is that?",
        unit="%",
        reference=lambda: 100 * 620e12 / _H100.peak("bf16"),
        slips=[
            ("sparse-peak", lambda: 100 * 620e12 / (2 * _H100.peak("bf16"))),
            ("wrong-chip", lambda: 100 * 620e12 / rl.machine("H100 PCIe").peak("bf16")),
        ],
        hint="dense work is held against the dense peak.",
    ),
    NumberQuestion(
        "peaks.sums",
        "An fp16 product that keeps its sums in fp32 runs at 160 TFLOP/s on an RTX 4090. What "
        "share of the peak for such products is that? The catalogue has both fp16 peaks.",
        unit="%",
        reference=lambda: 100 * 160e12 / _4090.peak("fp16", accumulate="fp32"),
        slips=[
            ("accumulate-width", lambda: 100 * 160e12 / _4090.peak("fp16", accumulate="fp16")),
            ("sparse-peak", lambda: 100 * 160e12 / (2 * _4090.peak("fp16", accumulate="fp32"))),
            ("wrong-peak", lambda: 100 * 160e12 / _4090.peak("fp32")),
        ],
        hint='rl.machine("RTX 4090").peak("fp16", accumulate="fp32")',
    ),
    ChoiceQuestion(
        "peaks.lanes",
        "A chip of 40 units reaches 21 TFLOP/s in fp32 while its clock reads 2.4 GHz. You "
        "hesitate between 64, 128 and 256 lanes a unit. What does the measurement settle?",
        choices=("nothing", "not 64", "256"),
        reference=_ruled_out,
        slips=[
            ("over-its-peak", lambda: "nothing"),
            ("check-for-proof", lambda: "256"),
        ],
        hint=(
            "A count whose peak lies below the measurement cannot be right. A count whose peak "
            "lies above it can."
        ),
    ),
    _tensor_asked(),
    _macs_asked(),
    _copy_asked(),
    _boost_asked(),
    ChoiceQuestion(
        "peaks.x-explained",
        "An RTX 4090 (128 SMs of 128 lanes, nominal 2.52 GHz and 82.6 TFLOP/s) is measured at "
        "88.4 TFLOP/s in fp32 while its clock reads 2.58 GHz. How much of the excess does the "
        "clock explain?",
        reference=_explained,
        choices=("all of it", "a part of it", "nothing"),
        slips=[
            ("a-rest-stays", lambda: "all of it"),
            ("ran-faster", lambda: "nothing"),
        ],
        hint="Solve for the clock that 88.4 TFLOP/s need; compare with the log.",
    ),
    FunctionQuestion(
        "peaks.x-utilisation",
        "A function: the share of the dense peak, whatever rate and peak count.",
        reference=_utilisation,
        tolerance=1e-6,
        inputs=lambda: [
            (130e12, "MAC", 624e12, "sparse FLOP"),
            (44e9, "m16n8k32", 1979e12, "sparse FLOP"),
            (10e12, "FLOP", 12e12, "MAC"),
        ],
        slips=[
            ("mac-is-flop", lambda *args: _utilisation(*args, worth=1)),
            ("sparse-peak", lambda *args: _utilisation(*args, sparse=1)),
        ],
        hint=(
            "turn both into FLOP first: a MAC is 2, an instruction 2mnk, of a sparse headline "
            "half is done."
        ),
    ),
    FunctionQuestion(
        "peaks.x-bus-wires",
        "A function: the fewest wires, a multiple of `step`, that deliver the bandwidth.",
        reference=_bus_wires,
        tolerance=1e-9,
        inputs=lambda: [(1555e9, 1215e6, 2, 1024), (1.6e12, 1215e6, 2, 1024), (448e9, 14e9, 2, 32)],
        slips=[
            ("bits-for-bytes", lambda bandwidth, *rest: _bus_wires(bandwidth / 8, *rest)),
            (
                "round-up",
                lambda bandwidth, clock, transfers, step: (
                    step * (8 * bandwidth // (clock * transfers * step))
                ),
            ),
        ],
        hint=(
            "clock x transfers bits a second on each wire, 8 bits a byte; round up to whole chips."
        ),
    ),
    FunctionQuestion(
        "peaks.x-fewest-lanes",
        "A function: the smallest lane count that no run rules out; math.inf where none is left.",
        reference=_fewest_lanes,
        tolerance=1e-9,
        inputs=lambda: [
            ([[25.423e12, 2.79e9]], 36, [256, 64, 128]),
            ([[25.423e12, 2.79e9], [12e12, 1.1e9]], 36, [256, 64, 128]),
            ([[30e12, 1e9]], 36, [64, 128, 256]),
        ],
        slips=[
            (
                "mac-is-flop",
                lambda runs, units, lanes: _fewest_lanes(
                    [[2 * rate, clock] for rate, clock in runs], units, lanes
                ),
            ),
        ],
        hint=(
            "each run needs at least rate / (units x 2 x clock) lanes; the most demanding run "
            "decides."
        ),
    ),
    FunctionQuestion(
        "peaks.x-loop-peak",
        "A function: FLOP/s of a loop whose instructions share the ports of a core.",
        reference=_loop_peak,
        tolerance=1e-6,
        inputs=lambda: [
            (32, 2.35e9, 256, 64, [1, 0, 2], [2, 2], 4),
            (8, 3e9, 512, 32, [4, 1, 1], [2, 2], 4),
            (1, 3e9, 256, 32, [2, 2, 3], [3, 3], 4),
        ],
        slips=[
            (
                "mac-is-flop",
                lambda cores, clock, bits, element, body, *rest: (
                    _loop_peak(cores, clock, bits, element, body, *rest)
                    * (body[0] + body[1])
                    / (2 * body[0] + body[1])
                ),
            ),
        ],
        hint="three times for one round, in cycles: arithmetic, loads, starts. The longest counts.",
    ),
    FunctionQuestion(
        "peaks.x-fewest-chains",
        "A function: the fewest chains per thread with which the lanes are full; math.inf where "
        "none are.",
        reference=_fewest_chains,
        tolerance=1e-9,
        inputs=lambda: [
            (24, 16384, 40, 16, 12),
            (25, 16384, 40, 16, 12),
            (40, 8192, 80, 20, 8),
        ],
        slips=[("round-down", _chains_in_fractions)],
        hint=(
            "for each number of chains: how many whole warps fit, and is the product enough? The "
            "first that is, not the best."
        ),
    ),
]
