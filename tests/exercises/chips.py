"""More than one chip: wrong answers as students give them, and the numbers that the text
shows."""

import roofline_lib as rl

LESSON = "many_chips"

# by the function that they stand in for
WRONG_ANSWERS = {
    "bytes_sent": [
        lambda name, size, n: size * (n - 1),
        lambda name, size, n: (1 + (name == "all-reduce")) * size / n,
    ],
    "quickest_sum": [
        lambda size, n, bw, wait: min(wait + size / bw, 2 * wait + 2 * size / bw),
        lambda size, n, bw, wait: max(wait + (n - 1) * size / bw, 2 * (wait + size / bw)),
    ],
    "bandwidths": [
        lambda name, mib, n, us: 2 * [mib * 2**20 / us / 1e3],
        lambda name, mib, n, us: [mib * 2**20 / us / 1e3, mib * 2**21 / us / 1e3 * (n - 1) / n],
    ],
    "best_chips": [
        lambda layers, w, bw, wait, most: 1,
        lambda layers, w, bw, wait, most: min(most, max(1, int((w / bw / layers / wait) ** 0.5))),
    ],
    "two_levels": [
        lambda size, k, g, fast, slow: 2 * size * (g - 1) / g / fast,
        lambda size, k, g, fast, slow: (
            2 * size * (g - 1) / g / fast + size / g * (k - 1) / k / slow
        ),
    ],
}

_CARD, _SMALL = rl.machine("H200 SXM"), rl.transformer("llama-3-8b")


def _step(cards, batch=1):
    """Milliseconds of a decode step; an all-reduce waits 14 us."""
    link = rl.Link(450e9, latency=7e-6)
    shared = _SMALL.decode(batch, 1024, parallel=rl.Parallel(tensor=cards), link=link)
    return 1e3 * shared.time(_CARD, "bf16")


def shown_in_the_text(f):
    """What the text must hold, computed with the functions of the solution."""
    algorithm, bus = f["bandwidths"]("all-reduce", 1024, 8, 4500)
    chips = [f["best_chips"](32, 16e9, 4.8e12, wait, 64) for wait in (1e-6, 7e-6, 20e-6)]
    flat = 1e3 * rl.all_reduce(1e9, 32, rl.Link(50e9)).time
    return [
        f"on 8 ranks makes {f['bytes_sent']('all-reduce', 1e9, 8):,.0f}",
        f"take {1e6 * f['quickest_sum'](16384, 8, 450e9, 7e-6):.2f} µs in one shot",
        f"100 MB take {1e6 * f['quickest_sum'](1e8, 8, 450e9, 7e-6):.0f} µs in two",
        f"makes `[{algorithm:.1f}, {bus:.1f}]`",
        f"make {chips[0]} chips; with 7 µs it is {chips[1]}, with 20 µs {chips[2]}",
        f"takes {1e3 * f['two_levels'](1e9, 4, 8, 450e9, 50e9):.2f} ms",
        f"would take {flat:.2f}",
        f"its bytes in {_step(1):.2f} ms",
        f"that is {_step(1) / 8:.2f} ms, and 64 all-reduces wait {64 * 14e-3:.2f}:",
        f"{_step(8):.2f} ms, {_step(1) / _step(8):.1f} times as fast for 8",
        f"give {8e3 / _step(1):,.0f} token/s",
        f"{_step(8, 8):.2f} ms a step, {8e3 / _step(8, 8):,.0f} token/s",
        f"it gives {512e3 / _step(8, 512):,.0f} token/s and (b) {512e3 / _step(1, 64):,.0f}",
        f"{1024e3 / _step(1, 128):,.0f} against {1024e3 / _step(8, 1024):,.0f}",
    ]


# (question, a wrong answer, the slip that is named: two where both fit)
WRONG_VALUES = [
    ("chips.gather", "1.944 ms", "both-ways"),
    ("chips.gather", "4.444 ms", "own-shard"),
    ("chips.gather", "7.778 ms", "all-reduce-for-half"),
    ("chips.waits", "0.576 ms", "once-a-layer"),
    ("chips.waits", "2.304 ms", "wait-of-message"),
    ("chips.tokens", 10000, "own-shard"),
    ("chips.tokens", 1172, "bits-for-bytes"),
    ("chips.helps", "a link of twice the bandwidth", "not-the-limit"),
    ("chips.helps", "memory a quarter faster", "not-the-limit"),
    ("chips.x-share", "37.04 %", "both-ways"),
    ("chips.x-share", "69.72 %", "line-rate"),
    ("chips.x-bus", "238.6 GB/s", "bus-for-algorithm"),
    ("chips.x-bus", "388.9 GB/s", "gib-for-gb"),
    ("chips.x-gradients", "71.38 ms", "own-shard"),
    ("chips.x-gradients", "31.23 ms", "half-of-all-reduce"),
    ("chips.x-ring", "63 us", "half-of-all-reduce"),
    ("chips.x-ring", "2 us", "ring-not-switch"),
    ("chips.x-layer", "192 MB", "once-a-layer"),
    ("chips.x-layer", "36 MB", "which-memory"),
]
