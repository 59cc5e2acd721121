"""Collectives: what each rank sends when n ranks gather, add up or exchange an array, and how long
that takes at least.

S is always the size of the whole array in bytes, as each docstring says. Bytes and conventions:
NVIDIA nccl-tests, doc/PERFORMANCE.md; ring, line and torus: JAX scaling book, "Sharded matrices".
The additions of a reduction are not counted. `counted_collectives` moves real arrays by the same
schedules and counts the same bytes.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from roofline_lib.arguments import Number, UnknownName, Value, number, plain, size, unknown
from roofline_lib.links import Link, as_link

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")


@dataclass(frozen=True)
class Transfer:
    """What one rank sends in a collective, and the time of it once a link is known.

    `bytes_sent` (byte) is what one rank sends over all its connections, one way, passing on
    included; where ranks differ, the busiest. `bytes_on_link` is what crosses the busiest
    connection one way, which sets the time; what follows one another adds up. `steps` messages
    follow one another. `n * transfer` is the same n times over, and transfers over one link add up.
    """

    bytes_sent: Number
    bytes_on_link: Number
    steps: Number
    link: Link | None = None

    __array_ufunc__ = None  # so that numpy numbers leave n * transfer to us

    @property
    def latency_time(self) -> Number:
        """Seconds that the messages wait: steps x latency of the link."""
        return self.steps * self._link.latency

    @property
    def bytes_time(self) -> Number:
        """Seconds on the busiest connection: bytes / bandwidth, one way."""
        return self.bytes_on_link / self._link.bandwidth

    @property
    def time(self) -> Number:
        """Seconds at least: latency part + bytes part. ValueError where no link was given."""
        return self.latency_time + self.bytes_time

    @property
    def _link(self):
        if self.link is None:
            raise ValueError(
                "link must be given for a time, as in all_reduce(bytes, ranks, link); got None"
            )
        return self.link

    def __add__(self, other):
        if isinstance(other, int) and other == 0:  # sum() starts from 0
            return self
        if not isinstance(other, Transfer):
            return NotImplemented
        if other.link != self.link:
            raise ValueError(
                "link must be the same for transfers that are added up: add their times instead; "
                f"got {self.link} and {other.link}"
            )
        return Transfer(
            self.bytes_sent + other.bytes_sent,
            self.bytes_on_link + other.bytes_on_link,
            self.steps + other.steps,
            self.link,
        )

    __radd__ = __add__

    def __mul__(self, times):
        times = number("times", times, "repetitions", least=0)
        return Transfer(
            times * self.bytes_sent, times * self.bytes_on_link, times * self.steps, self.link
        )

    __rmul__ = __mul__


@dataclass(frozen=True)
class _Share:
    """A Transfer as a share of the whole array: bytes sent, bytes on the busiest connection,
    steps."""

    sent: Value
    on_link: Value
    steps: Value


class _Switch:
    """Each rank sends to each other one at once, through one port."""

    def gather(self, n):
        return _Share((n - 1) / n, (n - 1) / n, _any(n))

    def scatter(self, n):
        return self.gather(n)

    def exchange(self, n):
        return _Share((n - 1) / n**2, (n - 1) / n**2, _any(n))


class _Mesh(_Switch):
    """As on a switch, but with a cable of its own to each other rank."""

    def gather(self, n):
        return _Share((n - 1) / n, _any(n) / n, _any(n))

    def exchange(self, n):
        return _Share((n - 1) / n**2, _any(n) / n**2, _any(n))


class _Ring(_Switch):
    """Each rank passes on to its right neighbour, and the last one to the first."""

    def gather(self, n):
        return _Share((n - 1) / n, (n - 1) / n, n - 1)

    def exchange(self, n):
        # a block travels 1 to n - 1 hops, n / 2 on average
        return _Share((n - 1) / (2 * n), (n - 1) / (2 * n), n - 1)


class _TwoWayRing(_Switch):
    """Half of everything goes round to the right, half to the left."""

    def gather(self, n):
        return _Share((n - 1) / n, (n - 1) / (2 * n), np.ceil((n - 1) / 2))

    def exchange(self, n):
        # hops to 1, 2, ... on either side; the opposite rank of an even ring gets half from each
        hops = np.where(n % 2 == 0, n**2, n**2 - 1) / 8
        return _Share(2 * hops / n**2, hops / n**2, np.ceil((n - 1) / 2))


class _Line(_Switch):
    """A ring with one cable missing: both ways, but each end has one neighbour only."""

    def gather(self, n):
        # a rank in the middle sends its own shard both ways
        return _Share((n - 1 + 2 * (n > 2)) / n, (n - 1) / n, n - 1)

    def scatter(self, n):
        return _Share((n - 1) / n, (n - 1) / n, n - 1)

    def exchange(self, n):
        middle = np.floor(n / 2) * np.ceil(n / 2)
        return _Share(np.floor((n**2 - 1) / 2) / n**2, middle / n**2, n - 1)


@dataclass(frozen=True)
class Torus:
    """A grid of chips whose axes are rings used both ways: `Torus((4, 4))` joins 16.

    The array is cut into as many parts as there are axes; each part takes the axes in another
    order, so that all cables are busy at once. With sides of one length they carry the same.
    """

    sides: tuple[int, ...]

    def __post_init__(self):
        if not isinstance(self.sides, tuple | list) or not self.sides:
            raise ValueError(f"sides must be a tuple such as (4, 4) (chips); got {self.sides!r}")
        sides = tuple(int(size("sides", side, "chips", single=True)) for side in self.sides)
        object.__setattr__(self, "sides", sides)

    @property
    def ranks(self) -> int:
        """The number of chips."""
        return prod(self.sides)

    def axis_orders(self) -> list[list[int]]:
        """The order in which each part of the array takes the axes: 0 1 2, 1 2 0, 2 0 1."""
        axes = len(self.sides)
        return [[(part + phase) % axes for phase in range(axes)] for part in range(axes)]

    def gather(self, n: float) -> "_Share":
        shards = [0.0] * len(self.sides)  # what crosses each axis, in shards of one part
        for order in self.axis_orders():
            held = 1
            for axis in order:
                shards[axis] += (self.sides[axis] - 1) * held
                held *= self.sides[axis]
        share = 1 / (n * len(self.sides))
        return _Share((n - 1) / n, max(shards) * share / 2, self._steps())

    def scatter(self, n: float) -> "_Share":
        return self.gather(n)

    def exchange(self, n: float) -> "_Share":
        rings = [_TwoWayRing().exchange(np.float64(side)) for side in self.sides]
        on_axis = [ring.on_link * side / n for ring, side in zip(rings, self.sides, strict=True)]
        return _Share(2 * sum(on_axis), max(on_axis), self._steps())

    def _steps(self):
        return len(self.sides) * float(np.ceil((max(self.sides) - 1) / 2))


_WAYS = {
    "switch": _Switch(),
    "mesh": _Mesh(),
    "ring": _Ring(),
    "two-way ring": _TwoWayRing(),
    "line": _Line(),
}
_ADDING_SWITCH, _ONE_SHOT = "adding switch", "one shot"
WAYS = (*_WAYS, _ADDING_SWITCH, _ONE_SHOT)


def all_gather(
    bytes: Number, ranks: Number, link: Link | str | None = None, *, over: str | Torus | None = None
) -> Transfer:
    """Transfer of an all-gather: each of `ranks` ranks starts with one shard and ends with all.

    `bytes` (S) is the whole array, which each rank holds at the end: each sends S (n-1)/n. On a
    ring in n - 1 steps; on a two-way ring in half of them with half on each cable; on a switch or
    mesh at once. `over` is one of "switch", "mesh", "ring", "two-way ring", "line", or a Torus;
    without it the link's own topology, and a switch without a link.
    """
    way, total, ranks, link = _border(bytes, ranks, link, over)
    return _transfer(way.gather(ranks), total, link)


def reduce_scatter(
    bytes: Number, ranks: Number, link: Link | str | None = None, *, over: str | Torus | None = None
) -> Transfer:
    """Transfer of a reduce-scatter: each of `ranks` ranks starts with a whole array and ends with
    one shard of their sum.

    `bytes` (S) is the whole array, which each rank holds at the start: each sends S (n-1)/n. It is
    the all-gather run backwards. `over` as in `all_gather`.
    """
    way, total, ranks, link = _border(bytes, ranks, link, over)
    return _transfer(way.scatter(ranks), total, link)


def all_reduce(
    bytes: Number, ranks: Number, link: Link | str | None = None, *, over: str | Torus | None = None
) -> Transfer:
    """Transfer of an all-reduce: each of `ranks` ranks starts with a whole array and ends with the
    sum of all.

    `bytes` (S) is the array on one rank. It is a reduce-scatter and an all-gather: each rank sends
    2 S (n-1)/n, whatever the way. Two more ways are open to it alone: "adding switch", whose switch
    adds up what arrives and sends the sum to all (SHARP, NVLS): each rank sends S once, in 2 steps;
    and "one shot", where each sends its whole array to each other one over a switch: (n-1) S in 1
    step, which pays for small arrays only.
    """
    special = over if isinstance(over, str) and over in (_ADDING_SWITCH, _ONE_SHOT) else None
    way, total, ranks, link = _border(bytes, ranks, link, "switch" if special else over, WAYS)
    if special == _ADDING_SWITCH:
        return _transfer(_Share(_any(ranks), _any(ranks), 2 * _any(ranks)), total, link)
    if special == _ONE_SHOT:
        return _transfer(_Share(ranks - 1, ranks - 1, _any(ranks)), total, link)
    return _transfer(way.scatter(ranks), total, link) + _transfer(way.gather(ranks), total, link)


def all_to_all(
    bytes: Number, ranks: Number, link: Link | str | None = None, *, over: str | Torus | None = None
) -> Transfer:
    """Transfer of an all-to-all: rank i sends its j-th block to rank j, a transposition.

    `bytes` (S) is the array over all ranks together, S/n on each. On a switch or mesh each rank
    sends S (n-1)/n^2; on a ring it passes blocks on, S (n-1)/(2n) one way, and S/8 on each cable of
    an even ring used both ways. `over` as in `all_gather`.
    """
    way, total, ranks, link = _border(bytes, ranks, link, over)
    return _transfer(way.exchange(ranks), total, link)


def send(bytes: Number, link: Link | str | None = None, *, hops: Number = 1) -> Transfer:
    """Transfer of `bytes` (byte) from one rank to one other; each of `hops` cables on the way adds
    a latency, and the bytes stream through."""
    hops, total = size("hops", hops, "cables"), number("bytes", bytes, "byte", least=0)
    return Transfer(total, total, hops, None if link is None else as_link(link))


def hierarchical_all_reduce(
    bytes: Number, groups: Number, group_size: Number, inside: Link | str, between: Link | str
) -> tuple[Transfer, Transfer, Transfer]:
    """Three Transfers of an all-reduce over `groups` groups (hosts) of `group_size` ranks:
    reduce-scatter over the link `inside`, all-reduce of one shard over the link `between` the
    groups, all-gather inside.

    `bytes` (S) is the array on one rank. Only 2 (S/g)(k-1)/k of it leave the group.
    """
    total, group_size = (
        number("bytes", bytes, "byte", least=0),
        size("group_size", group_size, "ranks"),
    )
    return (
        reduce_scatter(total, group_size, inside),
        all_reduce(total / group_size, size("groups", groups, "groups"), between),
        all_gather(total, group_size, inside),
    )


def bus_factor(collective: str, ranks: Number) -> Number:
    """Bus bandwidth over algorithm bandwidth, as nccl-tests defines it: 2 (n-1)/n for "all_reduce",
    (n-1)/n for the other three. UnknownName for any other collective."""
    if not isinstance(collective, str) or collective not in COLLECTIVES:
        raise unknown("collective", collective, COLLECTIVES)
    ranks = size("ranks", ranks, "ranks")
    return (2 if collective == "all_reduce" else 1) * (ranks - 1) / ranks


def algorithm_bandwidth(bytes: Number, time: Number) -> Number:
    """nccl-tests' algbw (byte/s): `bytes` (S, byte) over `time` (s).

    S is the whole array, for an all-to-all what one rank holds. It says how soon an array is done,
    and falls with the number of ranks on the same wires.
    """
    return number("bytes", bytes, "byte", least=0) / number("time", time, "s", above=0)


def bus_bandwidth(collective: str, bytes: Number, ranks: Number, time: Number) -> Number:
    """nccl-tests' busbw (byte/s): algbw x `bus_factor`, to compare with a link's bandwidth one way.

    It assumes the bytes of point-to-point messages: a switch that adds up sends fewer, and busbw
    may then exceed the wire.
    """
    return algorithm_bandwidth(bytes, time) * bus_factor(collective, ranks)


def bisection_bandwidth(
    link: Link | str, ranks: Number, *, over: str | Torus | None = None
) -> Number:
    """Byte/s one way from one half of the ranks to the other, all cables between them together.

    A switch: half of the ports. A torus is cut across its longest side, which cuts each ring of
    that axis twice. Texts that count both ways print twice as much.
    """
    link = as_link(link)
    _, _, ranks, _ = _border(0.0, ranks, link, over)
    half = np.floor(ranks / 2)
    if isinstance(over, Torus):
        longest = max(over.sides)
        cables = over.ranks / longest * (2 if longest > 1 else 0)
    else:
        cables = {
            "switch": half,
            "mesh": half * (ranks - half),
            "ring": _any(ranks),
            "two-way ring": 2 * _any(ranks),
            "line": _any(ranks),
        }[over or link.topology]
    return plain(cables * link.bandwidth)


def _any(n):
    """1 where there is anybody else, 0 for a single rank."""
    return np.minimum(n - 1, 1.0)


def _transfer(share, total, link):
    return Transfer(
        plain(share.sent * total),
        plain(share.on_link * total),
        plain(share.steps + 0 * total),
        link,
    )


def _border(bytes, ranks, link, over, choices=tuple(_WAYS)):
    """(way, bytes, ranks, link), checked: the way by its name, by the link, or a switch."""
    total, ranks = number("bytes", bytes, "byte", least=0), size("ranks", ranks, "ranks")
    link = None if link is None else as_link(link)
    if link is not None and link.domain is not None and np.any(ranks > link.domain):
        raise ValueError(
            f"ranks must be at most {link.domain} (ranks), as many as {link.name} joins; "
            f"got {ranks}; over several domains: hierarchical_all_reduce"
        )
    if over is None:
        over = "switch" if link is None else link.topology
        if over == "torus":
            raise UnknownName(
                f"over must be said on {link.name}, whose chips form a torus: choose one of "
                f"Torus((4, 4)) with its sides, 'two-way ring' along one axis, 'line'; got None"
            )
    if isinstance(over, Torus):
        if np.any(ranks != over.ranks):
            raise ValueError(f"ranks must be {over.ranks} (ranks) on {over}; got {ranks}")
        return over, total, ranks, link
    if not isinstance(over, str) or over not in _WAYS:
        raise unknown("over", over, choices)
    return _WAYS[over], total, ranks, link
