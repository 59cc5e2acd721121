"""For test_exercises.py, lessons 06 to 10: wrong answers as students give them, and the numbers
that the text shows."""

from itertools import product
from math import ceil, floor, inf, prod
from re import findall
from statistics import mean, median

import roofline_lib as rl
from roofline_lib import measuring

# {lesson: {function: wrong functions}}, {lesson: what its text must hold, given its functions}
SLIPS, PROSE = {}, {}

# 06


def each(counts, mac=2):
    """FLOP of what a rate counts."""
    return {"FLOP": 1, "MAC": mac, "sparse FLOP": 1}.get(counts) or 2 * prod(
        map(int, findall(r"\d+", counts))
    )


def enough_chains(latency, registers, base, per_chain, most_warps, most=255, whole=floor):
    return next(
        (
            c
            for c in range(1, (most - base) // per_chain + 1)
            if c * min(most_warps, whole(registers / 32 / (base + c * per_chain))) >= latency
        ),
        inf,
    )


def round_cycles(body, ports, starts):
    return (body[0] + body[1]) / ports[0], body[2] / ports[1], sum(body) / starts


def loop(wrong):
    return lambda cores, clock, bits, element, body, ports, starts: (
        cores
        * clock
        * bits
        / element
        * (2 * body[0] + body[1])
        / wrong(*round_cycles(body, ports, starts))
    )


SLIPS["06_peaks"] = {
    "utilisation": [
        lambda r, c, p, q: r * each(c) / (p * each(q)),
        lambda r, c, p, q: r * each(c) / (p * each(q) * (1 + ("s" in q))),
        lambda r, c, p, q: r * each(c, 1) / (p * each(q, 1) / (1 + ("s" in q))),
        lambda r, c, p, q: r * each(c) / (2 if "m" in c else 1) / (p * each(q) / (1 + ("s" in q))),
    ],
    "bus_wires": [
        lambda b, f, t, s: s * ceil(8 * b / (2 * f * s)),
        lambda b, f, t, s: ceil(8 * b / (f * t)),
        lambda b, f, t, s: s * ceil(b / (f * t * s)),
        lambda b, f, t, s: s * round(8 * b / (f * t * s)),
        lambda b, f, t, s: s * (floor(8 * b / (f * t * s)) + 1),
    ],
    "fewest_lanes": [
        lambda runs, u, ls: min(
            (x for x in ls if x * u * 2 * max(runs)[1] >= max(runs)[0]), default=inf
        ),
        lambda runs, u, ls: min(
            (x for x in ls if x * u * 2 * runs[0][1] > runs[0][0]), default=inf
        ),
        lambda runs, u, ls: min(ls, key=lambda x: abs(x - max(r / u / 2 / f for r, f in runs))),
        lambda runs, u, ls: next((x for x in ls if all(x * u * 2 * f >= r for r, f in runs)), inf),
        lambda runs, u, ls: min(
            (x for x in ls if any(x * u * 2 * f >= r for r, f in runs)), default=inf
        ),
    ],
    "loop_peak": [
        loop(lambda a, b, c: a),
        loop(lambda a, b, c: max(a, b)),
        loop(lambda a, b, c: a + b),
        loop(lambda a, b, c: max(1, a, b, c)),
        loop(lambda a, b, c: c),
        loop(lambda a, b, c: ceil(max(a, b, c))),
    ],
    "fewest_chains": [
        lambda la, r, b, p, w: ceil(la / w),
        lambda *a: enough_chains(*a, most=10**4),
        lambda *a: enough_chains(*a, whole=float),
        lambda la, r, b, p, w: enough_chains(la, 32 * r, b, p, w),
        lambda la, r, b, p, w: enough_chains(la, r, b, p, inf),
        lambda *a: 8,
    ],
}

_4090 = rl.machine("RTX 4090")
TOO_FAST = {
    sums: rl.peak_flops(128, lanes, 2.64e9) for sums, lanes in (("fp32", 256), ("fp16", 512))
}
PROSE["06_peaks"] = lambda f: [
    f"headline of 1979e12 make {f['utilisation'](44e9, 'm16n8k32', 1979e12, 'sparse FLOP'):.3f}",
    f"chip: {f['bus_wires'](1555e9, 1215e6, 2, 1024)}, the bus of an A100",
    f"would need {f['bus_wires'](1.6e12, 1215e6, 2, 1024)}",
    f"`[256, 64, 128]`, leaves {f['fewest_lanes']([[25.423e12, 2.79e9]], 36, [256, 64, 128])}",
    f"would leave {f['fewest_lanes']([[25.423e12, 2.79e9], [12e12, 1.1e9]], 36, [256, 64, 128])}",
    f"that makes {f['loop_peak'](32, 2.35e9, 256, 64, [1, 0, 2], [2, 2], 4) / 1e9:.1f}e9, half of the peak",
    f"at most 12 warps: {f['fewest_chains'](24, 16384, 40, 16, 12)} chains",
    "which makes {} and {}".format(*(c * (16384 // (32 * (40 + 16 * c))) for c in (4, 6))),
    f"215 TFLOP/s need {rl.clock_from(215e12, 128, 256) / 1e9:.2f} GHz",
    f"the peak is {TOO_FAST['fp32'] / 1e12:.0f} TFLOP/s",
    f"the clock explains {100 * (TOO_FAST['fp32'] / _4090.peak('fp16') - 1):.0f} of the {100 * (215e12 / _4090.peak('fp16') - 1):.0f}",
    f"is {TOO_FAST['fp16'] / 1e12:.0f} TFLOP/s, and 215 would be {100 * 215e12 / TOO_FAST['fp16']:.0f} percent",
    f"{215 / 2} TFLOP/s, {100 * 215e12 / 2 / TOO_FAST['fp32']:.0f} percent of 173",
]

# 09


def wrong_step(first=(1, 1, 1), later=(1, 1, 2), update=28, together=max, always=False):
    """Tokens/s; `first` and `later`: how often the three products of the first and of later
    micro-batches move the width x width matrix."""

    def rate(rows, width, layers, accumulation, peak, bandwidth):
        def time(passes):
            return sum(
                together(
                    (2 * rows * width**2 / peak, 2 * (2 * rows * width + n * width**2) / bandwidth)
                )
                for n in passes
            )

        updates = (accumulation if always else 1) * update * width**2 / bandwidth
        return (
            rows
            * accumulation
            / layers
            / (time(first) + (accumulation - 1) * time(later) + updates)
        )

    return rate


def ways(*choices):
    """Tokens a second of (bytes of a sequence, passes) with whole sequences or not."""

    def rate(parameters, room, tokens, all_bytes, input_bytes, peak, bandwidth):
        rates = []
        for which, passes, whole in choices:
            rows = whole(room / (all_bytes, input_bytes)[which]) * tokens
            rates.append(min(peak, rows * bandwidth) / (passes * 2 * parameters))
        return max(rates)

    return rate


SLIPS["09_training_step"] = {
    "training_days": [
        lambda n, d, c, p, b, r: 6 * n * d / (c * p * b) / 86400,
        lambda n, d, c, p, b, r: (6 + 2 * r) * n * d / (c * p) / 86400,
        lambda n, d, c, p, b, r: (6 + 6 * r) * n * d / (c * p * b) / 86400,
        lambda n, d, c, p, b, r: (6 + 2 * r) * n * d / (c * p * b) / 3600,
    ],
    "kept_bytes": [
        lambda ls, d, q, kv, f, v, r, g, k: (
            2 * r * (ls * (d if "l" == k[0] else 4 * d + 2 * q + 2 * kv + 3 * f) + v)
        ),
        lambda ls, d, q, kv, f, v, r, g, k: (
            2 * r * ls * (d if "l" == k[0] else 4 * d + 2 * q + 2 * kv + (2 + g) * f + v)
        ),
        lambda ls, d, q, kv, f, v, r, g, k: (
            2 * r * (ls * (d if "l" == k[0] else 4 * d + q + 2 * kv + (2 + g) * f) + v)
        ),
        lambda ls, d, q, kv, f, v, r, g, k: (
            2 * r * (d + v if "l" == k[0] else ls * (4 * d + 2 * q + 2 * kv + (2 + g) * f) + v)
        ),
    ],
    "largest_micro_batch": [
        lambda m, p, c, s: max(0, floor((m - 16 * p) / s)),
        lambda m, p, c, s: max(0, floor((m - 16 * p / c) / s)),
        lambda m, p, c, s: floor((m - 4 * p - 12 * p / c) / s),
        lambda m, p, c, s: max(0, ceil((m - 4 * p - 12 * p / c) / s)),
        lambda m, p, c, s: max(0, c * floor((m - 4 * p - 12 * p / c) / s)),
        lambda m, p, c, s: max(0, floor((m - 4 * p - 12 * p / c) / s - 1e-9)),
    ],
    "step_rate": [
        wrong_step(later=(1, 1, 1)),
        wrong_step(first=(1, 1, 2)),
        wrong_step(update=24),
        wrong_step(together=sum),
        wrong_step(always=True),
        lambda r, w, ls, times, p, bw: times * wrong_step()(r, w, ls, 1, p, bw),
    ],
    "best_rate": [
        ways((0, 3, floor)),
        ways((0, 3, floor), (1, 3, floor)),
        ways((0, 3, float), (1, 4, float)),
        ways((1, 4, floor)),
        lambda p, room, t, a, i, pk, bw: (
            ways((0, 3, floor))(p, room, t, a, i, pk, bw)
            or ways((1, 4, floor))(p, room, t, a, i, pk, bw)
        ),
        lambda p, room, t, a, i, pk, bw: pk / (6 if a <= room else 8) / p if i <= room else 0,
    ],
}

LLAMA2, A100 = rl.transformer("llama-2-7b"), rl.machine("A100 80GB SXM")
HELD = rl.training_memory(LLAMA2, 1, 4096)
TOKENS = 0.52 * A100.peak("bf16") / (8 * LLAMA2.parameters)


def llama_step(sequences, tokens=4096):
    """(intensity of its products, tokens/s) with 16 sequences a step."""
    step = rl.training_step(LLAMA2, sequences, tokens, 16 // sequences)
    return step["forward"].intensity, 16 * tokens / rl.time_in_sequence(step.values(), A100, "bf16")


PROSE["09_training_step"] = lambda f: [
    f"of the time: {f['training_days'](7e9, 1e12, 64, 312e12, 0.45, False):.1f} days, or "
    f"{f['training_days'](7e9, 1e12, 64, 312e12, 0.45, True):.1f} with",
    "{:.1f} MB, and {:.1f} MB with layer inputs".format(
        *(
            f["kept_bytes"](24, 1024, 1024, 1024, 4096, 50257, 1024, False, keep) / 1e6
            for keep in ("no scores", "layer inputs")
        )
    ),
    "{} on one card, {} on eight. And however many cards you buy, it is never more than {}".format(
        *(f["largest_micro_batch"](80e9, 7e9, cards, 10e9) for cards in (1, 8, 10**9))
    ),
    "GB/s it is {:,.0f}. With 8 micro-batches a step it is {:,.0f}:".format(
        *(f["step_rate"](32, 4096, 24, times, 312e12, 2039e9) for times in (1, 8))
    ),
    f"that leave {HELD.activations / 1e9:.1f} or {rl.training_memory(LLAMA2, 1, 4096, 'layer inputs').activations / 1e9:.2f} GB",
    "room it is {:,.0f}, everything kept. With 10 GB it is {:,.0f}:".format(
        *(f["best_rate"](7e9, room, 4096, 17.5e9, 1.34e9, 312e12, 2039e9) for room in (20e9, 10e9))
    ),
    f"TFLOP/s are {TOKENS:,.0f} tokens a second",
    f"are real: {TOKENS * 1400 / 4096:,.0f}, so two thirds",
    f"stand at {llama_step(1)[0]:,.0f} FLOP/byte",
    f"ridge point of {A100.ridge_point('bf16'):.0f}",
    f"rise by {100 * (llama_step(4)[1] / llama_step(1)[1] - 1):.1f} percent",
    f"still stand at {llama_step(1, 300)[0]:.0f} FLOP/byte",
    f"take {(HELD.weights + HELD.gradients) / 1e9:.1f} GB, an eighth of the optimizer {HELD.optimizer / 8e9:.1f}, and one sequence with "
    f"everything but the scores {HELD.activations / 1e9:.1f}: {(HELD.total - 7 / 8 * HELD.optimizer) / 1e9:.1f} GB in all",
    f"It saves 2 FLOP of 8: {8 / 6:.2f} times",
    f"from {100 * 1400 / 4096:.0f} percent to 90: {0.9 * 4096 / 1400:.1f} times",
    f"make {8 / 6 * 0.9 * 4096 / 1400:.1f} times",
]

# 10


def half_unit(printed, places=0):
    digits = printed.replace(",", "")
    return float(digits), 0.5 * 10.0 ** -(places + len(digits.partition(".")[2]))


def named(printed, recomputed, slips, near=None, ways=(1, -1), first=False, follows=True):
    """The exercise's answer, with `near` (value, printed) in place of rounding, one way only, or
    the first name only."""
    number, half = half_unit(printed)
    near = near or (lambda value, number: abs(value - number) <= half)
    if follows and near(recomputed, number):
        return "it follows"
    names = [
        name
        for name, factor in slips
        if any(near(recomputed * factor**way, number) for way in ways)
    ]
    return ", ".join(names[:1] if first else names) or "none"


def rate(text, i=1024, bits=8, commas=""):
    number = "".join(findall(r"[\d.,]", text)).replace(",", commas)
    power = next((p for p, letter in enumerate("kMGT", 1) if letter in text.replace("K", "k")), 0)
    return (
        float(number)
        * (i if "i" in text.replace("bit", "") else 1000) ** power
        / (1 if "B" in text else bits)
    )


def slip_count(published, recomputed, factors, ways=(1, -1), most=3, again=True):
    steps = [(at, factor**way) for at, factor in enumerate(factors) for way in ways]
    for count in range(most + 1):
        for taken in product(steps, repeat=count):
            fair = again or len({at for at, _ in taken}) == count
            if fair and abs(recomputed * prod(step for _, step in taken) / published - 1) <= 0.004:
                return count
    return inf


SLIPS["10_numbers_that_lie"] = {
    "real_share": [
        lambda s, a, r, p, x: s * rl.machine(a).peak(p) / rl.machine(r).peak(p),
        lambda s, a, r, p, x: s / (1 + x),
        lambda s, a, r, p, x: s * rl.machine(a).peak(p) / rl.machine(r).peak(p) / (1 + x),
        lambda s, a, r, p, x: min(100, s * (1 + x) * rl.machine(a).peak(p) / rl.machine(r).peak(p)),
    ],
    "byte_rate": [
        lambda t: rate(t, i=1000),
        lambda t: rate(t, bits=1),
        lambda t: rate(t.replace("k", "")),
        lambda t: 8 * rate(t),
        lambda t: rate(t, commas=".") if t.count(",") + t.count(".") < 2 else rate(t),
    ],
    "suspects": [
        lambda *a: named(*a, near=lambda v, n: abs(v / n - 1) <= 0.004),
        lambda *a: named(*a, ways=(1,)),
        lambda *a: named(*a, first=True),
        lambda *a: named(*a, follows=False),
        lambda p, r, s: named(p, r, s, near=lambda v, n: abs(v - n) <= half_unit(p, -1)[1]),
        lambda p, r, s: named(p, r, s, near=lambda v, n: int(v) == int(n)),
        lambda p, r, s: named(p.rstrip("0").rstrip(".") if "." in p else p, r, s),
    ],
    "sequences": [
        lambda m, w, c, t: [
            floor((m - w) * 1e9 / (c * 1024 * t)),
            floor((m - w) * 2**30 / (c * 1000 * t)),
        ],
        lambda m, w, c, t: [
            floor((m * 1e9 - w * 2**30) / (c * 1024 * t)),
            floor((m * 2**30 - w * 1e9) / (c * 1000 * t)),
        ],
        lambda m, w, c, t: [
            max(0, floor((m * g - w * g) / (c * k * t))) for g, k in ((1e9, 1000), (2**30, 1024))
        ],
        lambda m, w, c, t: [
            max(0, floor((m * g - w * h) / (c * k * t)))
            for g, h, k in ((1e9, 2**30, 1000), (2**30, 1e9, 1024))
        ],
    ],
    "fewest_slips": [
        lambda *a: slip_count(*a, ways=(1,)),
        lambda *a: slip_count(*a, most=2),
        lambda *a: slip_count(*a, most=4),
        lambda *a: slip_count(*a, again=False),
        lambda *a: max(1, slip_count(*a)),
    ],
}

H200, LLAMA3 = rl.machine("H200 SXM"), rl.transformer("llama-3-70b")
TOKEN, WEIGHTS = LLAMA3.kv_bytes_per_token("bf16"), LLAMA3.weight_bytes("fp8")
CACHE, FREE, STEP = 128 * 8192 * TOKEN, H200.capacity("DRAM") - WEIGHTS, H200.bandwidth() / 60
BINARY = [["k for Ki", 1.024], ["M for Mi", 1.024**2], ["G for Gi", 1.024**3]]
PROSE["10_numbers_that_lie"] = lambda f: [
    f"with the A100 assumed, were {f['real_share'](104, 'A100 80GB SXM', 'H100 SXM', 'bf16', False):.1f}",
    f'makes {f["byte_rate"]("819 GB/s") / 1e11:.2f}e11, `"800 GiBps"` {f["byte_rate"]("800 GiBps"):,.0f}, and `"800 Gbps"` '
    f"{f['byte_rate']('800 Gbps') / 1e11:.0f}e11",
    f'a printed 6.7 where 6.25 is right makes `"{f["suspects"]("6.7", 6.25, BINARY)}"`',
    f'16 where 17.18 is right makes `"{f["suspects"]("16", 17.18, BINARY)}"`',
    f'as 16.0, it is `"{f["suspects"]("16.0", 17.18, BINARY)}"`',
    f"makes `{f['sequences'](256, 18.385, 128, 262144)}`",
    "takes {}, a prefix and a half. A factor of 8.59 takes {}, bits for bytes and G for Gi. A factor of 1.153 takes {}, G for Gi twice. "
    "And 1.07 takes {}".format(
        *(
            f["fewest_slips"](*figures, [1.024**3, 2, 8, 1000])
            for figures in ((12.7, 25423), (8.59, 1), (1.153, 1), (1.07, 1))
        )
    ),
    f"has {LLAMA3.parameters / 1e9:.1f}e9 parameters",
    f"Weights {WEIGHTS / 1e9:.1f} GB in fp8",
    f"{TOKEN / 1e3:.0f} kB in bf16, {TOKEN / 2e3:.0f}",
    f"are {CACHE / 1e9:.0f} GB, or {CACHE / 2e9:.0f} GB with an fp8 cache; {FREE / 1e9:.1f} GB are free",
    f"for {FREE // (8192 * TOKEN):.0f} users, or {FREE // (4096 * TOKEN):.0f}",
    f"leave {1e3 / 60:.1f} ms a step",
    f"bring {STEP / 1e9:.0f} GB",
    f"so {(STEP - WEIGHTS) / 1e9:.1f} GB are left",
    f"{round((STEP - WEIGHTS) / TOKEN, -2):,.0f} tokens in all",
    f"in all, {(STEP - WEIGHTS) / TOKEN / 128:.0f} for each of 128 users, {(STEP - WEIGHTS) / TOKEN / 64:.0f} in fp8",
    f"by factors of {CACHE / FREE:.0f} and of {CACHE / (STEP - WEIGHTS):.0f}",
    f"({H200.bandwidth() / WEIGHTS:.0f} is what one user",
    f"there {(WEIGHTS + CACHE) / 1e9:.0f} GB fit into {8 * H200.capacity('DRAM') / 1e9:.0f}, and take "
    f"{1e3 * (WEIGHTS + CACHE) / (8 * H200.bandwidth()):.1f} ms",
    f"which is {100 * (WEIGHTS + CACHE) / (8 * STEP):.0f} percent of the 16.7",
]

# 07


def wrong_efficiencies(
    middle=median,
    times=max,
    clocks=lambda sheet, clock: clock / sheet,
    bandwidths=lambda sheet, clock: 1,
):
    def both(flops, moved, seconds, peak, sheet, clock, bandwidth):
        return [
            times(flops / (peak * c), moved / (bandwidth * b)) / middle(seconds)
            for c, b in ((1, 1), (clocks(sheet, clock), bandwidths(sheet, clock)))
        ]

    return both


def wrong_speed_up(cut=lambda n: n // 4, touch=lambda a, b: a <= b, average=median, worst=0):
    def faster(before, after):
        kept = [
            sorted(s)[cut(len(s)) : len(s) - cut(len(s))] or [median(s)] for s in (before, after)
        ]
        (a, *_, b), (c, *_, d) = (s if len(s) > 1 else 2 * s for s in kept)
        if touch(a, d) and touch(c, b):
            return 1
        return max(worst, average(before) / average(after))

    return faster


def wrong_side(choose=min, whole=ceil, exact=lambda share: share / (1 - share)):
    return lambda share, latency, s, p, w: max(
        1,
        whole(
            choose(
                (latency * exact(share) * p / 2) ** (1 / 3),
                (latency * exact(share) * w / 3 / s) ** 0.5,
            )
        ),
    )


def wrong_tile(traffic, far=lambda moved, counted: max(moved / counted, counted / moved)):
    return lambda m, n, k, s, counted, tiles: min(
        tiles, key=lambda tile: far(traffic(m, n, k, s, *tile), counted)
    )


def wrong_lists(part=ceil, whole=floor, most=ceil):
    def lists(nodes, size, sector, latency, bandwidth):
        hops = whole(nodes * part(size / sector) * sector / bandwidth / latency)
        return most(nodes / hops) if hops else inf

    return lists


SLIPS["07_measured"] = {
    "efficiencies": [
        wrong_efficiencies(mean),
        wrong_efficiencies(min),
        wrong_efficiencies(times=lambda a, b: a + b),
        wrong_efficiencies(clocks=lambda sheet, clock: sheet / clock),
        wrong_efficiencies(lambda s: sorted(s)[len(s) // 2]),
        wrong_efficiencies(bandwidths=lambda sheet, clock: clock / sheet),
        lambda f, b, s, p, c, g, w: [e := max(f / p, b / w) / median(s), e * c / g],
    ],
    "speed_up": [
        wrong_speed_up(lambda n: 0),
        wrong_speed_up(touch=lambda a, b: a < b),
        wrong_speed_up(average=mean),
        wrong_speed_up(average=min),
        lambda a, b: median(a) / median(b),
        wrong_speed_up(worst=1),
        lambda a, b: 1 / wrong_speed_up()(a, b),
        wrong_speed_up(lambda n: 1 if n > 2 else 0),
    ],
    "smallest_side": [
        wrong_side(max),
        wrong_side(whole=floor),
        wrong_side(whole=round),
        wrong_side(exact=lambda share: share),
        wrong_side(exact=lambda share: 1 / (1 - share)),
        wrong_side(lambda a, b: a),
        wrong_side(lambda a, b: b),
    ],
    "tile_behind": [
        wrong_tile(lambda m, n, k, s, a, b: s * k * (m * n / a + m * n / b)),
        wrong_tile(lambda m, n, k, s, a, b: s * k * (ceil(n / a) * m + ceil(m / b) * n)),
        wrong_tile(
            lambda m, n, k, s, a, b: (
                s * k * (ceil(n / b) * m + ceil(m / a) * n) + s * m * n * k / 64
            )
        ),
        wrong_tile(lambda m, n, k, s, a, b: k * (ceil(n / b) * m + ceil(m / a) * n)),
        wrong_tile(lambda m, n, k, s, a, b: s * k * ceil(m / a) * ceil(n / b) * (a + b)),
    ],
    "fewest_lists": [
        wrong_lists(float),
        wrong_lists(whole=ceil),
        wrong_lists(most=floor),
        lambda n, b, s, la, w: ceil(w * la / (ceil(b / s) * s)),
        lambda n, b, s, la, w: ceil(w * la / s),
        lambda *a: min(a[0], wrong_lists()(*a)),
    ],
}

RECORD = measuring.load("h200_a1")
KEPT_UP = measuring.sustained_roof(RECORD)


def point(family, precision, **shape):
    return next(
        p
        for p in RECORD.select(family, precision=precision)
        if shape.items() <= p.shape.sizes.items()
    )


CUBES = {n: point("gemm_n", "bf16", n=n) for n in (1024, 2048)}
LAYER, LAYER_8 = (point("gemm_m", precision, m=1024) for precision in ("bf16", "fp8"))
WHY = [
    measuring.explain(p, H200, KEPT_UP, measuring.launch_floor(RECORD, "bf16"))
    for p in (CUBES[1024], LAYER)
]
SMALL, BIG, NARROW = CUBES[1024].seconds, LAYER.seconds, LAYER_8.seconds
BATCHED, MORE_POWER = 8 * SMALL / CUBES[2048].seconds, CUBES[1024].clock / LAYER.clock
PROSE["07_measured"] = lambda f: [
    "makes {:.3f} and {:.3f}".format(
        *f["efficiencies"](2 * 1024 * 4096 * 16384, 0, [208.5e-6], 989e12, 1.83e9, 1.51e9, 4.8e12)
    ),
    f"after make {f['speed_up']([10, 11, 12, 40], [8, 7, 9, 8])}",
    f"it is {f['speed_up']([10, 11, 12, 40], [8, 7, 12, 30])}, though",
    "from n = {}, and nine tenths only from {}".format(
        *(f["smallest_side"](x, 2.62e-6, 2, 989e12, 4.8e12) for x in (0.5, 0.9))
    ),
    f"makes `{f['tile_behind'](4096, 4096, 4096, 2, 1.611e9, [[128, 128], [256, 128], [256, 256]])}`",
    f"4.4 TB/s: {f['fewest_lists'](10**8, 24, 32, 600e-9, 4.4e12):,} lists",
    f"where the traffic takes {1e3 * 3.2e9 / 4.4e12:.1f} ms",
    f"takes {1e6 * SMALL:.2f} µs at {CUBES[1024].clock / 1e9:.2f} GHz, a large one {1e6 * BIG:.1f} µs at {LAYER.clock / 1e9:.2f} GHz",
    f"2048 takes {1e6 * CUBES[2048].seconds:.1f} µs",
    f"says {100 * measuring.efficiency(CUBES[1024], H200):.0f} percent",
    f"ones and {100 * measuring.efficiency(LAYER, H200):.0f} for the large",
    "clock {clock:.2f}, waves {waves:.2f}, latency {latency:.2f}. Their".format(**WHY[0]),
    "clock {clock:.2f}, waves {waves:.2f}, latency {latency:.2f}, rest {rest:.2f}: power".format(
        **WHY[1]
    ),
    f"1.98/1.51 = {MORE_POWER:.2f}: the program gets {1 / (0.7 + 0.3 / MORE_POWER):.2f} times",
    f"are 512 tiles, {100 * rl.wave_efficiency(512, 132):.0f} percent of four waves",
    f"eight kernels take {8e6 * SMALL:.1f}: {BATCHED:.2f} times as fast, so {1 / (0.7 / BATCHED + 0.3):.2f} times",
    f"in fp8, {1e6 * NARROW:.1f} µs: {BIG / NARROW:.2f} times, {1 / (0.7 + 0.3 * NARROW / BIG):.2f} for the program",
    f"together {1 / (0.7 / BATCHED + 0.3 * NARROW / BIG):.2f} times",
]

# 08


def wrong_crossings(
    distinct=set,
    once=True,
    written=lambda made, needed: made & needed,
    read=lambda inputs, made: inputs - made,
):
    def both(steps, needed, elements, s):
        made = {output for _, output in steps}
        apart = sum(len(distinct(inputs)) + 1 for inputs, _ in steps)
        reads = [read(set(inputs), made) for inputs, _ in steps]
        one = (len(set().union(*reads)) if once else sum(map(len, reads))) + len(
            written(made, set(needed))
        )
        return [elements * s * apart, elements * s * one]

    return both


def wrong_step(
    scores=lambda t, context: t * context - t * (t - 1) / 2, keys=lambda heads, kv: kv, rows=2
):
    return lambda heads, kv, t, context, a, b: (
        4 * heads * scores(t, context) / (rows * heads * t * a + 2 * keys(heads, kv) * context * b)
    )


def wrong_trips(keys=lambda at, queries, tokens: min(at + queries, tokens), rows=2):
    return lambda heads, tokens, d, queries, s: (
        heads
        * d
        * s
        * (rows * tokens + sum(2 * keys(at, queries, tokens) for at in range(0, tokens, queries)))
    )


def wrong_narrow(scales=lambda n, k, block: n * ceil(k / block), kept=1, together=max):
    def faster(rows, k, n, bits, block, scale, p, w):
        old, new = 2 * k * n, (k * n * bits + scales(n, k, block) * scale) / 8
        old, new = (
            together((2 * rows * k * n / p, (moved + kept * 2 * rows * (k + n)) / w))
            for moved in (old, new)
        )
        return old / new

    return faster


def wrong_plan(greedy=False, together=max, fits=True, kept=0):
    def seconds(first, steps, room, launch, peak, bandwidth):
        def kernel(i, j):
            flops, side, _, holds = map(sum, zip(*steps[i:j], strict=True))
            moved = (
                (steps[i - 1][2] if i else first)
                + side
                + steps[j - 1][2]
                + kept * sum(step[2] for step in steps[i : j - 1])
            )
            return (
                launch + together((flops / peak, moved / bandwidth))
                if holds <= room or not fits
                else inf
            )

        if greedy:
            at, spent = 0, 0
            while at < len(steps):
                end = max(j for j in range(at + 1, len(steps) + 1) if kernel(at, j) < inf)
                at, spent = end, spent + kernel(at, end)
            return spent
        best = [0]
        for j in range(1, len(steps) + 1):
            best.append(min(best[i] + kernel(i, j) for i in range(j)))
        return best[-1]

    return seconds


SLIPS["08_operators"] = {
    "crossings": [
        wrong_crossings(list),
        wrong_crossings(once=False),
        wrong_crossings(written=lambda made, needed: made),
        wrong_crossings(read=lambda inputs, made: inputs),
        lambda st, ne, n, s: wrong_crossings()(st, [st[-1][1]], n, s),
    ],
    "step_intensity": [
        wrong_step(lambda t, c: t * c),
        wrong_step(lambda t, c: t * c / 2),
        wrong_step(lambda t, c: c * (t + 1) / 2),
        wrong_step(lambda t, c: t * c - t * (t + 1) / 2),
        wrong_step(keys=lambda heads, kv: heads),
        wrong_step(rows=0),
        lambda h, kv, t, c, a, b: 2 / b * h / kv * t * c / (h / kv * t + c),
    ],
    "tiled_attention": [
        wrong_trips(lambda at, q, tokens: tokens),
        wrong_trips(lambda at, q, tokens: at + q),
        wrong_trips(lambda at, q, tokens: tokens / 2),
        wrong_trips(lambda at, q, tokens: at + 1),
        wrong_trips(lambda at, q, tokens: (tokens + 1) / 2),
        wrong_trips(rows=1),
        lambda heads, tokens, d, q, s: 4 * heads * tokens * d * s,
    ],
    "narrow_gain": [
        wrong_narrow(lambda n, k, block: ceil(n * k / block)),
        wrong_narrow(lambda n, k, block: n * k // block),
        wrong_narrow(lambda n, k, block: k * ceil(n / block)),
        wrong_narrow(lambda n, k, block: 0),
        wrong_narrow(kept=0),
        wrong_narrow(together=sum),
        wrong_narrow(together=lambda times: times[1]),
        lambda r, k, n, bits, block, scale, p, w: 16 / (bits + scale / block),
    ],
    "fastest_plan": [
        wrong_plan(greedy=True),
        wrong_plan(together=sum),
        wrong_plan(fits=False),
        wrong_plan(kept=2),
        lambda f, st, room, la, p, w: wrong_plan()(f, st, room, 0, p, w),
        lambda f, st, room, la, p, w: wrong_plan()(f, st, min(step[3] for step in st), la, p, w),
        lambda f, st, room, la, p, w: la * len(st) + wrong_plan()(f, st, room, 0, p, w),
    ],
}

HOUSE, LONG = rl.machine("house chip"), 4096


def least(*works):
    """Seconds of works one after the other on the house chip."""
    return rl.time_in_sequence(works, HOUSE, "bf16")


def around(rows, weights="bf16"):
    """A layer's four products around attention, and the three of its FFN."""
    return (
        4 * [rl.gemm(rows, 4096, 4096, "bf16", b=weights)],
        2 * [rl.gemm(rows, 11008, 4096, "bf16", b=weights)]
        + [rl.gemm(rows, 4096, 11008, "bf16", b=weights)],
    )


QKVO, FFN = around(LONG)
STEPS = [
    32 * rl.gemm(LONG, LONG, 128, "bf16"),
    rl.softmax(32 * LONG, LONG, "bf16"),
    32 * rl.gemm(LONG, 128, LONG, "bf16"),
]
FLASH, MASKED = (
    rl.attention(1, 32, 32, LONG, LONG, 128, "bf16", flash=True, causal=causal)
    for causal in (False, True)
)
NORMS, SUMS = (
    2 * [rl.elementwise(LONG * 4096, "bf16", 1, writes) for writes in (1, 0, 1, 1)],
    2 * [rl.elementwise(LONG * 4096, "bf16")],
)
SILU = [rl.elementwise(LONG * 11008, "bf16", reads) for reads in (1, 2)]
PROMPT = least(*QKVO, *FFN, *STEPS, *NORMS, *SUMS, *SILU)
WITH_FLASH = PROMPT - least(*STEPS) + least(MASKED)
PAIRS = 2 * rl.elementwise(LONG * 4096, "bf16", 2, 2).bytes_moved / HOUSE.bandwidth()
SAVED_B = least(*NORMS, *SUMS) - PAIRS
DECODE = rl.attention(1, 32, 32, 1, LONG, 128, "bf16")
TOKEN_NOW, TOKEN_NARROW = (
    least(*(w for part in around(1, weights) for w in part), DECODE)
    for weights in ("bf16", "mxfp4")
)
LEFT = 80 * WITH_FLASH / PROMPT + 20 * TOKEN_NARROW / TOKEN_NOW
PROSE["08_operators"] = lambda f: [
    f"in bf16: `{f['crossings']([[['x', 'y'], 'sum'], [['sum', 'g'], 'out']], ['sum', 'out'], 10**6, 2)}` if",
    f"and `{f['crossings']([[['x', 'y'], 'sum'], [['sum', 'g'], 'out']], ['out'], 10**6, 2)}` if only",
    "{:.3f} for one new token, {:.1f} for eight".format(
        *(f["step_intensity"](32, 8, new, 4096, 2, 2) for new in (1, 8))
    ),
    "{:.2f} MB in tiles of 128, and {:.2f} MB if".format(
        *(f["tiled_attention"](1, 1024, 64, q, 2) / 1e6 for q in (128, 1024))
    ),
    "{:.2f} with one row, {:.2f} with 100, and {:.0f} with 4096".format(
        *(f["narrow_gain"](rows, 4096, 4096, 4, 32, 8, 3e14, 2e12) for rows in (1, 100, 4096))
    ),
    "it is {:.0f} seconds in two kernels and {:.0f} in one".format(
        *(f["fastest_plan"](4, [[0, 0, 4, 1], [2, 0, 4, 1]], room, 0, 1, 1) for room in (1, 2))
    ),
    f"take {1e3 * least(*QKVO):.2f} ms, three of the FFN {1e3 * least(*FFN):.2f}, attention {1e3 * least(*STEPS):.2f} (",
    f"RMSNorms {1e3 * least(*NORMS):.2f}, two residual sums {1e3 * least(*SUMS):.2f}, SiLU and its product with the gate "
    f"{1e3 * least(*SILU):.2f}: {1e3 * PROMPT:.2f} ms in all",
    f"takes {1e6 * TOKEN_NOW:.0f} µs a layer, {1e6 * (TOKEN_NOW - least(DECODE)):.0f} of them",
    f"only the other {1e3 * (PROMPT - least(*QKVO, *FFN)):.2f} are open",
    f"the ridge, {rl.attention(1, 32, 32, LONG, LONG, 128, 'bf16').intensity:.0f} FLOP/byte",
    f"{1e3 * least(FLASH):.2f} ms, and {1e3 * least(MASKED):.2f} with half",
    f"takes {1e3 * WITH_FLASH:.2f} ms, {100 * (1 - WITH_FLASH / PROMPT):.0f} percent less",
    f"{1e3 * least(*NORMS, *SUMS):.2f} ms become {1e3 * PAIRS:.2f}, {100 * SAVED_B / PROMPT:.1f} percent",
    f"all of {1e3 * least(*SILU):.2f} ms, {100 * least(*SILU) / PROMPT:.1f} percent",
    f"weights from {1e6 * (TOKEN_NOW - least(DECODE)):.0f} µs to {1e6 * (TOKEN_NARROW - least(DECODE)):.0f}, the step from "
    f"{1e6 * TOKEN_NOW:.0f} to {1e6 * TOKEN_NARROW:.0f}, {TOKEN_NOW / TOKEN_NARROW:.1f} times",
    f"(a) takes {80 * (1 - WITH_FLASH / PROMPT):.1f} of 100, (d) {20 * (1 - TOKEN_NARROW / TOKEN_NOW):.1f}, (b) and (c) about",
    f"together leave {LEFT:.1f}: {100 / LEFT:.2f} times",
]
