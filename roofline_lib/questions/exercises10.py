"""Exercises of lesson 10: practice values and choices, and what the marked functions are checked
with on the spot."""

import math
from itertools import product

import roofline_lib as rl
from roofline_lib.checks import Question, within
from roofline_lib.quantities import parse_quantity

_SXM, _PCIE = rl.machine("H100 SXM"), rl.machine("H100 PCIe")
_LLAMA = rl.transformer("llama-3-70b")


def _early():
    """Percent of 2n^3 that is lost where 4096 was written as 4e3."""
    return 100 * (1 - rl.gemm(4000, 4000, 4000).flops / rl.gemm(4096, 4096, 4096).flops)


def _activations(tokens):
    """Bytes of 20 bf16 numbers a token, layer and unit of width."""
    return rl.elementwise(20 * tokens * 8192 * 64, "bf16", reads=1, writes=0).bytes_moved


def _not_this():
    """The slip whose factor does not lie between a cache of 21.5 GB and the right one."""
    factor = 21.5e9 / (8192 * _LLAMA.kv_bytes_per_token("bf16"))
    slips = {
        "bits for bytes": 8,
        "heads for KV heads": _LLAMA.heads / _LLAMA.kv_heads,
        "G for Gi": 2**30 / 1e9,
    }
    (left,) = (name for name, size in slips.items() if not within(factor, size, 0.005))
    return left


def _real_share(shown, assumed, real, precision, sparse):
    """Through the FLOP/s that the program saw."""
    seen = rl.Work(shown / 100 * rl.machine(assumed).find_peak(precision).flops * (1 + sparse), 1.0)
    return 100 * rl.bound(seen, real, precision).compute_time


def _byte_rate(text):
    for people, library in (("Bps", "B/s"), ("bps", "bit/s"), ("ki", "Ki")):
        text = text.replace(people, library)
    value, base, _ = parse_quantity(text)
    return value / 8 if base == "bit/s" else value


def _suspects(printed, recomputed, slips):
    """By rounding as Python prints."""
    decimals = len(printed.partition(".")[2])
    shown = {
        name: {f"{recomputed * factor**sign:,.{decimals}f}" for sign in (1, -1)}
        for name, factor in slips
    }
    if f"{recomputed:,.{decimals}f}" == printed:
        return "it follows"
    return ", ".join(name for name in shown if printed in shown[name]) or "none"


def _sequences(memory, weights, context, kv_per_token):
    """All eight readings."""

    def fit(g, other_g, k):
        free = parse_quantity(f"{memory} {g}")[0] - parse_quantity(f"{weights} {other_g}")[0]
        return max(0.0, free // (parse_quantity(f"{context} {k}")[0] * kv_per_token))

    found = [fit(*letters) for letters in product(("GB", "GiB"), ("GB", "GiB"), ("kB", "KiB"))]
    return [min(found), max(found)]


def _fewest_slips(published, recomputed, factors):
    """Step by step: all figures that one slip more can lead to."""
    reached = {float(recomputed)}
    for count in range(4):
        if any(within(figure, published, 0.004) for figure in reached):
            return float(count)
        reached = {
            figure * factor**sign for figure in reached for factor in factors for sign in (1, -1)
        }
    return math.inf


_BINARY = [["k for Ki", 1.024], ["M for Mi", 1.024**2], ["G for Gi", 1.024**3]]
_FACTORS = [1.024**3, 2, 8, 1000]

QUESTIONS = [
    Question(
        "10.x-driver",
        "The driver of an H100 sold with 80 GB reports 81,559 MiB. How many GB, of 1e9 byte, is that?",
        unit="GB",
        reference=lambda: parse_quantity("81,559 MiB")[0],
        tolerance=0.004,
        hint="one MiB is 1024 x 1024 byte.",
    ),
    Question(
        "10.x-pcie",
        "A program takes every H100 for the SXM module. On H100 PCIe cards it shows 38 % utilisation in bf16. What is "
        "it really?",
        unit="%",
        reference=lambda: 38 * _SXM.peak("bf16") / _PCIE.peak("bf16"),
        tolerance=0.005,
        slips={"wrong-chip": lambda: 38 * _PCIE.peak("bf16") / _SXM.peak("bf16")},
        hint="which peak did it divide by, which should it have been, and so is the share larger or smaller?",
    ),
    Question(
        "10.x-early",
        "A text writes 4e3 for n = 4096 and then computes 2n³ FLOP. By how many percent is that too small?",
        unit="%",
        reference=_early,
        tolerance=0.005,
        hint="2.3 % went missing three times.",
    ),
    Question(
        "10.x-mega",
        "The JAX scaling book gives the activations of 4M tokens, 2 x 20 x tokens x 8192 x 64 byte, as 84 TB. How many "
        "TB is it if that M is 2^20?",
        unit="TB",
        reference=lambda: _activations(4 * 2**20),
        tolerance=0.004,
        slips={
            "elements-not-bytes": lambda: _activations(4 * 2**20) / rl.bytes_per_element("bf16")
        },
        hint="4 x 1,048,576 tokens; the TB stays 1e12 byte.",
    ),
    Question(
        "10.x-not-this",
        "A calculator gives llama-3-70b (80 layers, 64 heads, 8 KV heads of 128, bf16) a KV cache of 21.5 GB for "
        "8192 tokens. Which of these slips can it not be?",
        reference=_not_this,
        choices=("bits for bytes", "heads for KV heads", "G for Gi"),
        hint="right are 2.68 GB; two of the three leave this factor.",
    ),
    Question(
        "10.x-real-share",
        "A function: the real utilisation, where a program divided by another chip's peak.",
        reference=_real_share,
        tolerance=1e-6,
        inputs=lambda: [
            (104, "A100 80GB SXM", "H100 SXM", "bf16", False),
            (20, "H100 SXM", "H100 PCIe", "fp8", True),
            (563, "A100 80GB SXM", "MI355X", "bf16", False),
        ],
        slips={
            "sparse-peak": lambda *args: _real_share(*args[:4], False),
            "wrong-chip": lambda shown, assumed, real, *rest: _real_share(
                shown, real, assumed, *rest
            ),
        },
        hint="times what was divided by, over what should have been.",
    ),
    Question(
        "10.x-byte-rate",
        "A function: byte/s of a bandwidth as people print it.",
        reference=_byte_rate,
        tolerance=1e-9,
        inputs=lambda: [
            ("819 GB/s",),
            ("800 GiBps",),
            ("800 Gbps",),
            ("1,555,000 Mb/s",),
            ("12.5TB/s",),
        ],
        slips={"gib-for-gb": lambda text: _byte_rate(text.replace("i", "").replace("bt", "bit"))},
        hint="number, prefix, i or not, B or b: a regular expression with four groups, or step by step from the end.",
    ),
    Question(
        "10.x-suspects",
        "A function: the slips that lead to a printed figure, as one text.",
        reference=_suspects,
        inputs=lambda: [
            ("6.7", 6.25, _BINARY),
            ("16", 17.18, _BINARY),
            ("16.0", 17.18, _BINARY),
            ("72", 72.4, _BINARY),
            ("15", 16.8, _BINARY),
        ],
        hint='half a unit of the last digit: 0.5 for "16", 0.05 for "16.0"; hold each candidate against that.',
    ),
    Question(
        "10.x-sequences",
        "A function: [fewest, most] sequences over all readings of G and k.",
        reference=_sequences,
        tolerance=1e-9,
        inputs=lambda: [(256, 18.385, 128, 262144), (80, 80, 8, 131072), (16, 13.5, 4, 524288)],
        hint="the fewest: little memory, heavy weights, long sequences. Which reading of each letter is that?",
    ),
    Question(
        "10.x-fewest-slips",
        "A function: the fewest slips, three at most, that lead from one figure to the other; math.inf where "
        "none do.",
        reference=_fewest_slips,
        tolerance=1e-9,
        inputs=lambda: [
            (12.7, 25423, _FACTORS),
            (8.59, 1, _FACTORS),
            (1.153, 1, _FACTORS),
            (1.07, 1, _FACTORS),
            (3, 1, _FACTORS),
        ],
        hint="try none, then each, then each pair, then each triple; every factor counts both ways.",
    ),
]
