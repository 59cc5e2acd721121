"""Questions on numbers that lie. Claims that the lesson has not treated, to be recomputed from
their inputs."""

import math
import re
from itertools import product

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied, within
from roofline_lib.quantities import parse_quantity

_A100, _H100, _PCIE, _L4, _MI355X = (
    rl.machine(name) for name in ("A100 80GB SXM", "H100 SXM", "H100 PCIe", "L4", "MI355X")
)
_LLAMA = rl.transformer("llama-3-70b")
_BINARY = [["k for Ki", 1.024], ["M for Mi", 1.024**2], ["G for Gi", 1.024**3]]
_FACTORS = [1.024**3, 2, 8, 1000]


def _slip_of(published, recomputed):
    """The name of the slip whose factor lies between two figures."""
    ratio = max(published / recomputed, recomputed / published)
    factors = {
        "it is right": 1,
        "80 MiB printed as MB": 1.024**2,
        "numbers counted, not bytes": 2,
        "80 Mbit printed as MB": 8,
    }
    return next(name for name, factor in factors.items() if within(ratio, factor, 0.005))


def _that_follows():
    """Which of the last question's four figures follows from its inputs to within half a
    percent."""
    claims = {
        "A10": (208, 125e12 / 600e9),
        "A100": (156, _A100.ridge_point("bf16")),
        "MI300X": (1300, rl.peak_flops(1216, 256, 2.1e9) / 1e12),
        "H100": (298, _H100.ridge_point("bf16")),
    }
    (right,) = (
        name
        for name, (published, recomputed) in claims.items()
        if within(published, recomputed, 0.005)
    )
    return right


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


def _pcie_asked(shown=38):
    return NumberQuestion(
        "lies.x-pcie",
        f"A program takes every H100 for the SXM module. On H100 PCIe cards it shows {shown} % "
        "utilisation in bf16. What is it really?",
        unit="%",
        reference=lambda: shown * _H100.peak("bf16") / _PCIE.peak("bf16"),
        tolerance=0.005,
        slips=[
            ("wrong-chip", lambda: shown * _PCIE.peak("bf16") / _H100.peak("bf16")),
            ("sparse-peak", lambda: shown * _H100.peak("bf16") / _PCIE.peak("bf16") / 2),
        ],
        hint=(
            "which peak did it divide by, which should it have been, and so is the share larger "
            "or smaller?"
        ),
    )


# with other numbers for each student
VARIED = (Varied(_pcie_asked, lambda rng: {"shown": rng.randint(15, 60)}),)

QUESTIONS = [
    ChoiceQuestion(
        "lies.activation",
        "The JAX scaling book says that one bf16 activation of 8192 x 5120 numbers takes 80 MB. "
        "What happened there?",
        reference=lambda: _slip_of(
            80e6, rl.elementwise(8192 * 5120, "bf16", reads=1, writes=0).bytes_moved
        ),
        choices=(
            "it is right",
            "80 MiB printed as MB",
            "numbers counted, not bytes",
            "80 Mbit printed as MB",
        ),
        slips=[
            ("gib-for-gb", lambda: "it is right"),
            ("elements-not-bytes", lambda: "numbers counted, not bytes"),
            ("bits-for-bytes", lambda: "80 Mbit printed as MB"),
        ],
        hint="Two bytes a number; then look at the ratio.",
    ),
    NumberQuestion(
        "lies.mi355x",
        "A training tool that does not know the MI355X silently takes the A100's bf16 peak, 312 "
        "TFLOP/s, and reports 563 % utilisation (Primus, pull request 772). What was it really?",
        unit="%",
        reference=lambda: 563 * _A100.peak("bf16") / _MI355X.peak("bf16"),
        slips=[
            ("sparse-peak", lambda: 563 * _A100.peak("bf16") / _MI355X.peak("bf16") / 2),
            ("wrong-chip", lambda: 563 * _A100.peak("bf16") / rl.machine("MI300X").peak("bf16")),
        ],
        hint='rl.machine("MI355X").peak("bf16") is the dense one.',
    ),
    NumberQuestion(
        "lies.l4",
        "The site cputronic.com gives the L4 31.33 TFLOP/s in fp32. Each of its SMs has 128 "
        "lanes, and the clock is 2.04 GHz. For how many SMs did the site count?",
        reference=lambda: round(31.33e12 / rl.peak_flops(1, 128, 2.04e9)),
        tolerance=0.005,
        slips=[
            ("true-not-claimed", lambda: _L4.units),
            ("mac-is-flop", lambda: round(31.33e12 / rl.peak_flops(1, 128, 2.04e9, 1))),
        ],
        hint=f"The card has {_L4.units}.",
        counts="SMs",
    ),
    ChoiceQuestion(
        "lies.follows",
        "Four figures: A10, ridge point 208 from 125 TFLOP/s and 600 GB/s (Baseten). A100 80GB "
        "SXM, ridge point 156 from 312 TFLOP/s and 2039 GB/s (ours). MI300X, 1300 TFLOP/s from "
        "1216 cores x 256 multiply-adds x 2.1 GHz (Bekman). H100 SXM, ridge point 298 from 989.4 "
        "TFLOP/s and 3.35 TB/s (JAX scaling book, February 2025). "
        "Which one follows from its inputs to within half a percent?",
        choices=("A10", "A100", "MI300X", "H100"),
        reference=_that_follows,
        slips=[
            ("wrong-chip", lambda: "A100"),
            ("rounded-early", lambda: "MI300X"),
            ("rounded-early", lambda: "H100"),
        ],
        hint="Four divisions; round at the end.",
    ),
    NumberQuestion(
        "lies.x-driver",
        "The driver of an H100 sold with 80 GB reports 81,559 MiB. How many GB, of 1e9 byte, is "
        "that?",
        unit="GB",
        reference=lambda: parse_quantity("81,559 MiB")[0],
        tolerance=0.004,
        hint="one MiB is 1024 x 1024 byte.",
    ),
    _pcie_asked(),
    NumberQuestion(
        "lies.x-early",
        "A text writes 4e3 for n = 4096 and then computes 2n³ FLOP. By how many percent is that "
        "too small?",
        unit="%",
        reference=_early,
        tolerance=0.005,
        slips=[
            ("one-of-several", lambda: 100 * (1 - 4000 / 4096)),
            ("one-of-several", lambda: 100 * (1 - (4000 / 4096) ** 2)),
        ],
        hint="2.3 % went missing three times.",
    ),
    NumberQuestion(
        "lies.x-mega",
        "The JAX scaling book gives the activations of 4M tokens, 2 x 20 x tokens x 8192 x 64 "
        "byte, as 84 TB. How many TB is it if that M is 2^20?",
        unit="TB",
        reference=lambda: _activations(4 * 2**20),
        tolerance=0.004,
        slips=[
            ("elements-not-bytes", lambda: _activations(4 * 2**20) / rl.bytes_per_element("bf16")),
        ],
        hint="4 x 1,048,576 tokens; the TB stays 1e12 byte.",
    ),
    ChoiceQuestion(
        "lies.x-not-this",
        "A calculator gives llama-3-70b (80 layers, 64 heads, 8 KV heads of 128, bf16) a KV cache "
        "of 21.5 GB for 8192 tokens. Which of these slips can it not be?",
        reference=_not_this,
        choices=("bits for bytes", "heads for KV heads", "G for Gi"),
        slips=[
            ("bits-for-bytes", lambda: "bits for bytes"),
            ("heads-not-kv-heads", lambda: "heads for KV heads"),
        ],
        hint="Right are 2.68 GB; two of the three leave this factor.",
    ),
    FunctionQuestion(
        "lies.x-real-share",
        "A function: the real utilisation, where a program divided by another chip's peak.",
        reference=_real_share,
        tolerance=1e-6,
        inputs=lambda: [
            (104, "A100 80GB SXM", "H100 SXM", "bf16", False),
            (20, "H100 SXM", "H100 PCIe", "fp8", True),
            (563, "A100 80GB SXM", "MI355X", "bf16", False),
        ],
        slips=[
            ("sparse-peak", lambda *args: _real_share(*args[:4], False)),
            (
                "wrong-chip",
                lambda shown, assumed, real, *rest: _real_share(shown, real, assumed, *rest),
            ),
        ],
        hint="times what was divided by, over what should have been.",
    ),
    FunctionQuestion(
        "lies.x-byte-rate",
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
        slips=[
            ("gib-for-gb", lambda text: _byte_rate(text.replace("i", "").replace("bt", "bit"))),
            ("bits-for-bytes", lambda text: _byte_rate(re.sub("bit/s|b/s|bps", "B/s", text))),
        ],
        hint=(
            "number, prefix, i or not, B or b: a regular expression with four groups, or step by "
            "step from the end."
        ),
    ),
    FunctionQuestion(
        "lies.x-suspects",
        "A function: the slips that lead to a printed figure, as one text.",
        reference=_suspects,
        inputs=lambda: [
            ("6.7", 6.25, _BINARY),
            ("16", 17.18, _BINARY),
            ("16.0", 17.18, _BINARY),
            ("72", 72.4, _BINARY),
            ("15", 16.8, _BINARY),
        ],
        hint=(
            'half a unit of the last digit: 0.5 for "16", 0.05 for "16.0"; hold each candidate '
            "against that."
        ),
    ),
    FunctionQuestion(
        "lies.x-sequences",
        "A function: [fewest, most] sequences over all readings of G and k.",
        reference=_sequences,
        tolerance=1e-9,
        inputs=lambda: [(256, 18.385, 128, 262144), (80, 80, 8, 131072), (16, 13.5, 4, 524288)],
        hint=(
            "the fewest: little memory, heavy weights, long sequences. Which reading of each "
            "letter is that?"
        ),
    ),
    FunctionQuestion(
        "lies.x-fewest-slips",
        "A function: the fewest slips, three at most, that lead from one figure to the other; "
        "math.inf where none do.",
        reference=_fewest_slips,
        tolerance=1e-9,
        inputs=lambda: [
            (12.7, 25423, _FACTORS),
            (8.59, 1, _FACTORS),
            (1.153, 1, _FACTORS),
            (1.07, 1, _FACTORS),
            (3, 1, _FACTORS),
        ],
        hint=(
            "try none, then each, then each pair, then each triple; every factor counts both ways."
        ),
    ),
]
