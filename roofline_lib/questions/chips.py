"""Questions on several chips and the links between them."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, NumberQuestion

_CARD = rl.machine("H200 SXM")
_NVLINK = rl.links(_CARD)[0]
_NETWORK = rl.Link(50e9, name="a network")
_CHIP = rl.Machine("a chip", peaks={"bf16": 500e12}, bandwidths={"DRAM": 2e12})


def _gather(ranks=8, bandwidth=900e9):
    """Seconds of an all-gather of 4 GB."""
    return rl.all_gather(4e9, ranks, rl.Link(bandwidth)).time


def _waits(sums_a_layer=2, messages=1):
    """Seconds that the sums of 48 layers wait, 12 us each."""
    layer = sums_a_layer * messages * rl.send(0, rl.Link(1e9, 12e-6))
    return (48 * layer).time


def _small_step(bandwidth=1.0, wait=1.0, memory=1.0):
    """Seconds of a decode step of llama-3-8b on two cards, each of these a factor of what it is."""
    link = rl.Link(bandwidth * _NVLINK.bandwidth, latency=wait * 7e-6)
    card = rl.Machine("a card", {"bf16": _CARD.peak("bf16")}, {"DRAM": memory * _CARD.bandwidth()})
    shared = rl.transformer("llama-3-8b").decode(1, 1024, parallel=rl.Parallel(tensor=2), link=link)
    return shared.time(card, "bf16")


def _what_helps():
    times = {
        "a link of twice the bandwidth": _small_step(bandwidth=2),
        "half the wait of each sum": _small_step(wait=0.5),
        "memory a quarter faster": _small_step(memory=1.25),
    }
    return min(times, key=times.get)


QUESTIONS = [
    NumberQuestion(
        "chips.gather",
        "Eight B200, whose data sheet prints 1.8 TB/s of NVLink, hold an eighth of an array of "
        "4 GB each. How long until each has all of it, at least, without any wait?",
        unit="ms",
        reference=_gather,
        tolerance=0.005,
        slips=[
            ("both-ways", lambda: _gather(bandwidth=1.8e12)),
            ("own-shard", lambda: _gather() * 8 / 7),
            ("all-reduce-for-half", lambda: rl.all_reduce(4e9, 8, rl.Link(900e9)).time),
        ],
        hint="seven eighths of the array come from others, over one way of the link.",
    ),
    NumberQuestion(
        "chips.waits",
        "A model of 48 layers decodes on 4 chips by tensor parallelism, one token for one user. An "
        "all-reduce of so few bytes takes 12 us. How long do the all-reduces of a step take?",
        unit="ms",
        reference=_waits,
        tolerance=0.005,
        slips=[
            ("once-a-layer", lambda: _waits(1)),
            ("wait-of-message", lambda: _waits(2, 2)),
        ],
        hint="one behind attention and one behind the feed-forward block, in each layer.",
    ),
    NumberQuestion(
        "chips.tokens",
        "16 chips of 500 TFLOP/s in bf16, joined by a network of 400 Gbit/s each, train by data "
        "parallelism. How many tokens a chip and step must there be at least, so that the "
        "all-reduce of the gradients, in bf16, can hide behind the backward pass?",
        reference=lambda: rl.data_parallel_tokens(_CHIP, "bf16", _NETWORK, 16),
        tolerance=0.005,
        slips=[
            ("own-shard", lambda: rl.data_parallel_tokens(_CHIP, "bf16", _NETWORK)),
            (
                "bits-for-bytes",
                lambda: rl.data_parallel_tokens(_CHIP, "bf16", rl.Link(400e9), 16),
            ),
        ],
        hint="400 Gbit/s are 50 GB/s one way; peak over that, times (n - 1)/n.",
        counts="tokens",
    ),
    ChoiceQuestion(
        "chips.helps",
        "Llama-3-8B writes for one user on two H200 by tensor parallelism, in bf16, 1024 tokens of "
        "context. An all-reduce waits 14 us. What gets the next token soonest?",
        choices=(
            "a link of twice the bandwidth",
            "half the wait of each sum",
            "memory a quarter faster",
        ),
        reference=_what_helps,
        slips=[
            ("not-the-limit", lambda: "a link of twice the bandwidth"),
            ("not-the-limit", lambda: "memory a quarter faster"),
        ],
        hint="1.58 ms of bytes, 64 waits, and a microsecond on the wires.",
    ),
]
