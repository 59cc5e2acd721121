"""Questions on several chips and the links between them."""

import roofline_lib as rl
from roofline_lib.checks import ChoiceQuestion, FunctionQuestion, NumberQuestion, Varied
from roofline_lib.collectives import (
    algorithm_bandwidth,
    bus_bandwidth,
    hierarchical_all_reduce,
)

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


_COUNTED = {4: "Four", 8: "Eight", 16: "Sixteen"}


def _share(size, seconds, bandwidth=_NVLINK.bandwidth):
    """Percent of a link's bandwidth that an all-reduce on two ranks uses."""
    return 100 * bus_bandwidth("all_reduce", size, 2, seconds) / bandwidth


def _gradients(parameters, cards):
    """Seconds of the all-reduce of the gradients, in bf16, waits left out."""
    return rl.all_reduce(parameters * rl.bytes_per_element("bf16"), cards, _NVLINK).time


def _ring_wait(ranks, wait):
    return rl.all_reduce(0, ranks, rl.Link(1e9, wait), over="ring").latency_time


def _sent(collective, size, ranks):
    return getattr(rl, collective.replace("-", "_"))(size, ranks).bytes_sent


def _two_shots(size, ranks, bandwidth, wait):
    return rl.all_reduce(size, ranks, rl.Link(bandwidth, wait)).time


def _one_shot(size, ranks, bandwidth, wait):
    return rl.all_reduce(size, ranks, rl.Link(bandwidth, wait), over="one shot").time


def _bandwidths(collective, mib, ranks, microseconds):
    size, time = mib * 2**20, microseconds / 1e6
    bus = bus_bandwidth(collective.replace("-", "_"), size, ranks, time)
    return [algorithm_bandwidth(size, time) / 1e9, bus / 1e9]


def _best_chips(layers, weight_bytes, bandwidth, wait, most):
    """Through the library's all-reduce round a ring, tried with every number of chips."""

    def step(chips):
        return weight_bytes / (chips * bandwidth) + 2 * layers * _ring_wait(chips, wait)

    return min(range(1, most + 1), key=step)


def _two_levels(size, hosts, cards, inside, between):
    phases = hierarchical_all_reduce(size, hosts, cards, rl.Link(inside), rl.Link(between))
    return sum(phase.time for phase in phases)


def _one_slow_ring(size, hosts, cards, inside, between):
    return rl.all_reduce(size, hosts * cards, rl.Link(between)).time


def _whole_between(size, hosts, cards, inside, between):
    inner, outer = (
        rl.all_reduce(size, *one).time for one in _levels(hosts, cards, inside, between)
    )
    return inner + outer


def _levels(hosts, cards, inside, between):
    """(ranks, link) inside a host and between hosts."""
    return (cards, rl.Link(inside)), (hosts, rl.Link(between))


def _bus(gibibytes=4, cards=8, milliseconds=18):
    seconds = milliseconds / 1000
    return NumberQuestion(
        "chips.x-bus",
        f"{_COUNTED[cards]} cards all-reduce {gibibytes} GiB in {milliseconds} ms. What is the bus "
        "bandwidth, that is, how fast does each card send?",
        unit="GB/s",
        reference=lambda: bus_bandwidth("all_reduce", gibibytes * 2**30, cards, seconds),
        tolerance=0.005,
        slips=[
            ("bus-for-algorithm", lambda: algorithm_bandwidth(gibibytes * 2**30, seconds)),
            ("gib-for-gb", lambda: bus_bandwidth("all_reduce", gibibytes * 1e9, cards, seconds)),
        ],
        hint=(f"{gibibytes} x 2^30 bytes over the time, times 2 x {cards - 1}/{cards}."),
    )


def _share_asked(gigabytes=8, milliseconds=24):
    size, seconds = 1e9 * gigabytes, 1e-3 * milliseconds
    return NumberQuestion(
        "chips.x-share",
        f"Two H200, whose data sheet prints 900 GB/s of NVLink, all-reduce {gigabytes} GB in "
        f"{milliseconds} ms. What share of the link's bandwidth, one way, do they use?",
        unit="%",
        reference=lambda: _share(size, seconds),
        tolerance=0.005,
        slips=[
            ("both-ways", lambda: _share(size, seconds, 2 * _NVLINK.bandwidth)),
            ("line-rate", lambda: _share(size, seconds, _NVLINK.line_rate)),
        ],
        hint="two ranks send 2 x 1/2 of the array each; 450 GB/s go one way.",
    )


def _gradients_asked(billions=None, cards=8):
    model, parameters = "Llama-3-8B (8.03e9 parameters)", rl.transformer("llama-3-8b").parameters
    if billions is not None:
        model, parameters = f"A model of {billions}e9 parameters", 1e9 * billions
    return NumberQuestion(
        "chips.x-gradients",
        f"{model} trains by data parallelism on {cards} H200, 450 GB/s one way "
        "each. How long do the gradients' bytes, in bf16, take in a step?",
        unit="ms",
        reference=lambda: _gradients(parameters, cards),
        tolerance=0.005,
        slips=[
            ("own-shard", lambda: _gradients(parameters, cards) * cards / (cards - 1)),
            ("half-of-all-reduce", lambda: _gradients(parameters, cards) / 2),
        ],
        hint=f"2 bytes a parameter, and 2 x {cards - 1}/{cards} of them from each card.",
    )


def _ring_asked(chips=64, wait=1):
    return NumberQuestion(
        "chips.x-ring",
        f"{chips} chips stand in a ring, and each message to the right neighbour waits {wait} us. "
        "How long do the messages of an all-reduce wait, one after the other?",
        unit="us",
        reference=lambda: _ring_wait(chips, 1e-6 * wait),
        tolerance=0.005,
        slips=[
            ("half-of-all-reduce", lambda: _ring_wait(chips, 1e-6 * wait) / 2),
            (
                "ring-not-switch",
                lambda: rl.all_reduce(0, chips, rl.Link(1e9, 1e-6 * wait)).latency_time,
            ),
        ],
        hint=f"a scatter takes {chips - 1} steps, and a gather as many.",
    )


def _layer_asked(wait=20):
    return NumberQuestion(
        "chips.x-layer",
        f"An all-reduce between two H200 (memory of 4.8 TB/s, link of 450 GB/s) waits {wait} us. "
        "Of how many bytes must a layer be at least for the second card to make decode faster?",
        unit="MB",
        reference=lambda: rl.least_layer_bytes(1e-6 * wait, _CARD.bandwidth()),
        tolerance=0.005,
        slips=[
            ("once-a-layer", lambda: rl.least_layer_bytes(0.5e-6 * wait, _CARD.bandwidth())),
            ("which-memory", lambda: rl.least_layer_bytes(1e-6 * wait, _NVLINK.bandwidth)),
        ],
        hint="half of the layer's bytes are saved; two waits are paid.",
    )


def _share_drawn(rng):
    """From 40 to 90 percent of the link."""
    gigabytes = rng.randint(3, 20)
    least = gigabytes * 1e12 / _NVLINK.bandwidth
    return {"gigabytes": gigabytes, "milliseconds": round(least / rng.uniform(0.4, 0.9))}


# with other numbers for each student
VARIED = (
    Varied(
        _bus,
        lambda rng: {
            "gibibytes": rng.randint(2, 9),
            "cards": rng.choice([4, 8, 16]),
            "milliseconds": rng.randint(15, 60),
        },
    ),
    Varied(_share_asked, lambda rng: _share_drawn(rng)),
    Varied(
        _gradients_asked,
        lambda rng: {"billions": rng.randint(10, 90) / 10, "cards": rng.choice([4, 8])},
    ),
    Varied(_ring_asked, lambda rng: {"chips": 4 * rng.randint(4, 64), "wait": rng.randint(1, 9)}),
    Varied(_layer_asked, lambda rng: {"wait": rng.randint(5, 60)}),
)

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
    _share_asked(),
    _bus(),
    _gradients_asked(),
    _ring_asked(),
    _layer_asked(),
    FunctionQuestion(
        "chips.x-bytes-sent",
        "A function: bytes that each rank sends in a collective.",
        reference=_sent,
        tolerance=1e-6,
        inputs=lambda: [("all-reduce", 1e9, 8), ("all-gather", 64e3, 4)],
        slips=[
            ("own-shard", lambda name, size, n: (1 + (name == "all-reduce")) * size),
            ("half-of-all-reduce", lambda name, size, n: _sent("all-gather", size, n)),
        ],
        hint="everything but a rank's own shard, and an all-reduce does it twice.",
    ),
    FunctionQuestion(
        "chips.x-quickest-sum",
        "A function: seconds of the quicker of two ways to all-reduce over a switch.",
        reference=lambda *case: min(_two_shots(*case), _one_shot(*case)),
        tolerance=1e-6,
        inputs=lambda: [(16384, 8, 450e9, 7e-6), (1e8, 8, 450e9, 7e-6)],
        slips=[
            ("always-one-shot", _one_shot),
            ("always-two-shots", _two_shots),
        ],
        hint="one wait and (n - 1) S bytes, or two waits and 2 S (n - 1)/n.",
    ),
    FunctionQuestion(
        "chips.x-bandwidths",
        "A function: [algorithm bandwidth, bus bandwidth] in GB/s.",
        reference=_bandwidths,
        tolerance=1e-6,
        inputs=lambda: [("all-reduce", 1024, 8, 4500), ("all-gather", 512, 4, 1500)],
        slips=[
            ("bus-for-algorithm", lambda *case: _bandwidths(*case)[::-1]),
            (
                "gib-for-gb",
                lambda *case: [rate * 1e6 / 2**20 for rate in _bandwidths(*case)],
            ),
        ],
        hint="mib x 2^20 bytes; the bus bandwidth takes what each rank sends.",
    ),
    FunctionQuestion(
        "chips.x-best-chips",
        "A function: with how many chips in a ring a step of decode is shortest.",
        reference=_best_chips,
        tolerance=1e-9,
        inputs=lambda: [
            (32, 16e9, 4.8e12, 1e-6, 64),
            (32, 16e9, 4.8e12, 7e-6, 64),
            (32, 16e9, 4.8e12, 20e-6, 64),
        ],
        slips=[
            (
                "once-a-layer",
                lambda layers, w, bw, wait, n: _best_chips(layers, w, bw, wait / 2, n),
            ),
            ("more-chips", lambda layers, w, bw, wait, most: most),
        ],
        hint="the bytes fall as 1/n and the waits grow with n - 1: try every n.",
    ),
    FunctionQuestion(
        "chips.x-two-levels",
        "A function: seconds of an all-reduce inside hosts and between them.",
        reference=_two_levels,
        tolerance=1e-6,
        inputs=lambda: [(1e9, 4, 8, 450e9, 50e9), (1e9, 2, 4, 300e9, 25e9)],
        slips=[
            ("one-slow-ring", _one_slow_ring),
            ("whole-between", _whole_between),
        ],
        hint="after the scatter inside a host each card has one shard, and only that one travels.",
    ),
]
