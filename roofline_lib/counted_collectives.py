"""Collectives that really happen, between numpy arrays: each shard is copied from rank to rank,
step by step, and the bytes are summed from those copies. There is no formula here; `collectives`
has the formulas, and tests hold the two together.

A rank is an entry of a list. The only way from one rank to another is `_Wires.carry`, which counts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from roofline_lib.arguments import unknown
from roofline_lib.collectives import WAYS, Torus

_RIGHT, _LEFT = 1, -1
_DIRECT = ("switch", "mesh")


@dataclass(frozen=True)
class CountedCollective:
    """A collective that was really carried out: `results[i]` is what rank i holds at the end;
    `bytes_sent` what the busiest rank sent, `bytes_on_link` what crossed the busiest connection one
    way, `steps` how many messages followed one another. The two halves of an all-reduce add up."""

    results: list[np.ndarray]
    bytes_sent: int
    bytes_on_link: int
    steps: int


def counted_all_gather(
    arrays: Sequence[np.ndarray], over: str | Torus = "ring"
) -> CountedCollective:
    """Each rank starts with the shard arrays[i] (numpy arrays of one shape) and ends with all of
    them, joined along the first axis.

    `over` is "switch", "mesh", "ring", "two-way ring", "line" or a Torus. ValueError where the
    shapes differ or do not fit the way.
    """
    shards, wires = _ranks(arrays, over), _Wires()
    results, steps = _gather([shard.ravel() for shard in shards], over, wires)
    shape = (-1, *shards[0].shape[1:])
    return wires.counted([joined.reshape(shape) for joined in results], steps)


def counted_reduce_scatter(
    arrays: Sequence[np.ndarray], over: str | Torus = "ring"
) -> CountedCollective:
    """Each rank starts with a whole array arrays[i] and ends with the i-th shard, along the first
    axis, of the sum of all. That axis must be a multiple of the number of ranks. `over` as in
    `counted_all_gather`."""
    wholes, wires = _ranks(arrays, over, shared=True), _Wires()
    results, steps = _scatter([_blocks(whole, len(wholes)) for whole in wholes], over, wires)
    shape = (-1, *wholes[0].shape[1:])
    return wires.counted([shard.reshape(shape) for shard in results], steps)


def counted_all_reduce(
    arrays: Sequence[np.ndarray], over: str | Torus = "ring"
) -> CountedCollective:
    """Each rank starts with a whole array arrays[i] and ends with the sum of all.

    Two more ways than `counted_all_gather`: "adding switch" and "one shot". In the others the first
    axis must be a multiple of the number of ranks.
    """
    if isinstance(over, str) and over == "one shot":
        return _one_shot(_ranks(arrays, "switch"))
    if isinstance(over, str) and over == "adding switch":
        return _adding_switch(_ranks(arrays, "switch"))
    down = counted_reduce_scatter(arrays, over)
    up = counted_all_gather(down.results, over)
    return CountedCollective(
        up.results,
        down.bytes_sent + up.bytes_sent,
        down.bytes_on_link + up.bytes_on_link,
        down.steps + up.steps,
    )


def counted_all_to_all(
    arrays: Sequence[np.ndarray], over: str | Torus = "ring"
) -> CountedCollective:
    """Rank i cuts arrays[i] into as many blocks along the first axis as there are ranks and ends
    with the i-th block of each rank, in their order. `over` as in `counted_all_gather`."""
    wholes, wires = _ranks(arrays, over, shared=True), _Wires()
    results, steps = _exchange([_blocks(whole, len(wholes)) for whole in wholes], over, wires)
    return wires.counted([blocks.reshape(wholes[0].shape) for blocks in results], steps)


class _Wires:
    """All connections: `carry` is the only way from one rank to another, and counts."""

    def __init__(self):
        self.sent = Counter()  # (rank, connection) -> bytes

    def carry(self, sender, connection, array):
        """A copy of the array for the receiver. `connection` names the sender's port or cable."""
        self.sent[sender, connection] += array.nbytes
        return array.copy()

    def counted(self, results, steps):
        by_rank = Counter()
        for (rank, _), nbytes in self.sent.items():
            by_rank[rank] += nbytes
        busiest = max(self.sent.values(), default=0)
        return CountedCollective(results, max(by_rank.values(), default=0), busiest, steps)


def _gather(shards, over, wires):
    """(what each rank holds, steps): the shards, one-dimensional, joined in the order of ranks."""
    if isinstance(over, Torus):
        return _gather_on_torus(shards, over, wires)
    ranks = range(len(shards))
    if over in _DIRECT:
        return _gather_directly(shards, over, wires), min(len(shards) - 1, 1)
    results, steps = _gather_along(list(ranks), shards, over, wires, "")
    return [joined.ravel() for joined in results], steps


def _gather_directly(shards, over, wires):
    results = []
    for receiver, own in enumerate(shards):
        held = [
            own if sender == receiver else wires.carry(sender, _port(over, receiver), shard)
            for sender, shard in enumerate(shards)
        ]
        results.append(np.concatenate(held))
    return results


def _gather_along(members, shards, over, wires, axis):
    """All-gather among `members`, who stand along one ring or line: what arrived in one step is
    passed on in the next. Shards are cut in their last axis. (arrays [members, ...], steps)."""
    count = len(members)
    held = [np.zeros((count, *shards[0].shape), shards[0].dtype) for _ in members]
    for position, shard in enumerate(shards):
        held[position][position] = shard
    steps = 0
    for step in range(1, count):
        for origin in range(count):
            for direction, hops in _reach(over, count, origin).items():
                piece = _piece(shards[0], direction, hops, step)
                if piece is None:
                    continue
                steps = step
                here = (origin + direction * (step - 1)) % count
                there = (here + direction) % count
                held[there][origin][piece] = wires.carry(
                    members[here], (axis, direction), held[here][origin][piece]
                )
    return held, steps


def _scatter(blocks, over, wires):
    """(shards, steps): blocks[i] is rank i's whole array, [ranks, length]."""
    if isinstance(over, Torus):
        return _scatter_on_torus(blocks, over, wires)
    if over in _DIRECT:
        results = [whole[rank].copy() for rank, whole in enumerate(blocks)]
        for sender, whole in enumerate(blocks):
            for owner in range(len(blocks)):
                if owner != sender:
                    port = _port(over, owner)
                    results[owner] += wires.carry(sender, port, whole[owner])
        return results, min(len(blocks) - 1, 1)
    return _scatter_along(list(range(len(blocks))), blocks, over, wires, "")


def _scatter_along(members, wholes, over, wires, axis):
    """Reduce-scatter among `members` along a ring or line: the all-gather run backwards. Partial
    sums come from the farthest rank towards the owner, each rank on the way adding its own."""
    count = len(members)
    partial = [whole.copy() for whole in wholes]
    steps = 0
    for distance in range(count - 1, 0, -1):
        for owner in range(count):
            for side, hops in _sources(over, count, owner).items():
                piece = _piece(partial[0][0], side, hops, distance)
                if piece is None:
                    continue
                steps = max(steps, distance)
                here, there = ((owner + side * hop) % count for hop in (distance, distance - 1))
                partial[there][owner][piece] += wires.carry(
                    members[here], (axis, -side), partial[here][owner][piece]
                )
    return [partial[position][position] for position in range(count)], steps


def _exchange(blocks, over, wires):
    """(what each rank holds [ranks, length], steps): blocks[i][j] goes from rank i to rank j."""
    if isinstance(over, Torus):
        return _exchange_on_torus(blocks, over, wires)
    if over in _DIRECT:
        results = [whole.copy() for whole in blocks]
        for sender, whole in enumerate(blocks):
            for owner in range(len(blocks)):
                if owner != sender:
                    port = _port(over, owner)
                    results[owner][sender] = wires.carry(sender, port, whole[owner])
        return results, min(len(blocks) - 1, 1)
    return _exchange_along(list(range(len(blocks))), blocks, over, wires, "")


def _exchange_along(members, wholes, over, wires, axis):
    """All-to-all among `members` along a ring or line: each block travels its own way, and ranks
    between pass it on."""
    count, steps = len(members), 0
    results = [whole.copy() for whole in wholes]
    for origin in range(count):
        for direction, hops in _reach(over, count, origin).items():
            for distance in range(1, count):
                target = (origin + direction * distance) % count
                piece = _piece(wholes[0][0], direction, hops, distance)
                if piece is None:
                    continue
                steps = max(steps, distance)
                block = wholes[origin][target][piece]
                for hop in range(distance):
                    here = (origin + direction * hop) % count
                    block = wires.carry(members[here], (axis, direction), block)
                results[target][origin][piece] = block
    return results, steps


def _reach(over, count, rank):
    """{direction: hops} that a rank's data travels. Half a hop: to the last rank goes only a half,
    since the other half comes round from the other side."""
    return {
        "ring": {_RIGHT: count - 1},
        "two-way ring": {_RIGHT: (count - 1) / 2, _LEFT: (count - 1) / 2},
        "line": {_RIGHT: count - 1 - rank, _LEFT: rank},
    }[over]


def _sources(over, count, rank):
    """{side: hops} from which partial sums come to a rank: on a one-way ring from its left, so that
    they too travel to the right."""
    return {_LEFT: count - 1} if over == "ring" else _reach(over, count, rank)


def _piece(array, direction, hops, distance):
    """What of an array travels this far: all of it, the half of this direction, or None."""
    half = array.shape[-1] // 2
    if distance <= hops:
        return (...,)
    if distance - hops == 0.5:
        return (..., slice(None, half) if direction == _RIGHT else slice(half, None))
    return None


def _gather_on_torus(shards, torus, wires):
    """Each part of the shards goes along the axes in its own order; the phases of all parts run at
    the same time."""
    parts, phases = _parts(shards, torus), _Phases(torus)
    joined = []
    for order, held in zip(torus.axis_orders(), parts, strict=True):
        for phase, axis in enumerate(order):
            for members in _rings(torus, axis):
                along = [held[rank] for rank in members]
                gathered, steps = _gather_along(members, along, "two-way ring", wires, axis)
                phases.saw(phase, steps)
                for rank, array in zip(members, gathered, strict=True):
                    held[rank] = array
        # gathered last stands first: back into the order of the axes
        back = np.argsort(order[::-1])
        joined.append([array.transpose(*back, -1).reshape(torus.ranks, -1) for array in held])
    results = [np.concatenate(pieces, axis=1).ravel() for pieces in zip(*joined, strict=True)]
    return results, phases.steps


def _scatter_on_torus(blocks, torus, wires):
    phases, joined = _Phases(torus), []
    for order, held in zip(torus.axis_orders(), _parts(blocks, torus), strict=True):
        held = [array.reshape(*torus.sides, -1) for array in held]
        left = list(range(len(torus.sides)))  # the axes that the arrays still have
        for phase, axis in enumerate(reversed(order)):
            place = left.index(axis)
            for members in _rings(torus, axis):
                wholes = [np.moveaxis(held[rank], place, 0) for rank in members]
                sums, steps = _scatter_along(members, wholes, "two-way ring", wires, axis)
                phases.saw(phase, steps)
                for rank, array in zip(members, sums, strict=True):
                    held[rank] = array
            left.remove(axis)
        joined.append(held)
    return [np.concatenate(pieces) for pieces in zip(*joined, strict=True)], phases.steps


def _exchange_on_torus(blocks, torus, wires):
    """Along each axis, blocks go to the coordinate of their target on that axis: an axis of targets
    becomes an axis of origins."""
    phases, joined = _Phases(torus), []
    for order, held in zip(torus.axis_orders(), _parts(blocks, torus), strict=True):
        held = [array.reshape(*torus.sides, -1) for array in held]
        for phase, axis in enumerate(order):
            for members in _rings(torus, axis):
                wholes = [np.moveaxis(held[rank], axis, 0) for rank in members]
                moved, steps = _exchange_along(members, wholes, "two-way ring", wires, axis)
                phases.saw(phase, steps)
                for rank, array in zip(members, moved, strict=True):
                    held[rank] = np.moveaxis(array, 0, axis)
        joined.append([array.reshape(torus.ranks, -1) for array in held])
    return [np.concatenate(pieces, axis=1) for pieces in zip(*joined, strict=True)], phases.steps


class _Phases:
    """Steps of phases that follow one another; within a phase all rings move at the same time."""

    def __init__(self, torus):
        self.most = [0] * len(torus.sides)

    def saw(self, phase, steps):
        self.most[phase] = max(self.most[phase], steps)

    @property
    def steps(self):
        return sum(self.most)


def _parts(arrays, torus):
    """For each axis of the torus a list of ranks' parts, cut in their last axis."""
    cut = [np.array_split(array, len(torus.sides), axis=-1) for array in arrays]
    return [[pieces[part] for pieces in cut] for part in range(len(torus.sides))]


def _rings(torus, axis):
    """The rings along one axis: lists of ranks that differ in that coordinate only."""
    grid = np.arange(torus.ranks).reshape(torus.sides)
    return np.moveaxis(grid, axis, -1).reshape(-1, torus.sides[axis]).tolist()


def _one_shot(wholes):
    wires = _Wires()
    results = []
    for receiver, own in enumerate(wholes):
        total = own.copy()
        for sender, whole in enumerate(wholes):
            if sender != receiver:
                total += wires.carry(sender, "port", whole)
        results.append(total)
    return wires.counted(results, min(len(wholes) - 1, 1))


def _adding_switch(wholes):
    """The switch adds up what comes in and sends the sum to all. What the switch sends is on
    connections of its own, one to each rank: the same bytes, in the other direction."""
    wires, back = _Wires(), _Wires()
    if len(wholes) == 1:
        return wires.counted([wholes[0].copy()], 0)
    arrived = [wires.carry(rank, "port", whole) for rank, whole in enumerate(wholes)]
    total = arrived[0]
    for array in arrived[1:]:
        total += array
    results = [back.carry("switch", rank, total) for rank in range(len(wholes))]
    return wires.counted(results, 2)


def _port(over, receiver):
    """The connection of a sender: one port to the switch, or the cable to this receiver."""
    return "port" if over == "switch" else receiver


def _blocks(whole, count):
    return whole.reshape(count, -1)


def _ranks(arrays, over, shared=False):
    """The arrays of all ranks, checked; `shared`: they are cut into one block a rank."""
    if not isinstance(over, Torus) and (not isinstance(over, str) or over not in WAYS[:5]):
        raise unknown("over", over, WAYS)
    ranks = [np.asarray(array) for array in arrays]
    alike = {(array.shape, array.dtype) for array in ranks}
    if len(alike) != 1 or not ranks[0].ndim or ranks[0].dtype.kind not in "iuf":
        raise ValueError(
            "arrays must be one array of numbers a rank, all of one shape and dtype; "
            f"got {sorted(map(str, alike))}"
        )
    if isinstance(over, Torus) and len(ranks) != prod(over.sides):
        raise ValueError(f"arrays must be {over.ranks} on {over}; got {len(ranks)}")
    if shared and (ranks[0].shape[0] % len(ranks) or not ranks[0].size):
        raise ValueError(
            f"arrays must have a first axis that is a multiple of the {len(ranks)} ranks (elements)"
            f"; got {ranks[0].shape}"
        )
    return ranks
