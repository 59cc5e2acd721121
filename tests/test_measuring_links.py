"""Links, timed: the processes carry out real collectives, the record reads back, the fitted line is
the one that was drawn."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import roofline_lib as rl
from roofline_lib import measuring, own_curve
from roofline_lib.measuring import links, ranks, record
from roofline_lib.measuring.record import MessageShape, SlicedShape
from roofline_lib.model import Work

COUNTED = {
    "all_gather": rl.counted_all_gather,
    "reduce_scatter": rl.counted_reduce_scatter,
    "all_reduce": rl.counted_all_reduce,
    "all_to_all": rl.counted_all_to_all,
}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("family", ranks.COLLECTIVES)
def test_what_is_timed_is_the_collective_by_its_name(family, count):
    """Ranks as threads over the same shared room, against collectives between plain arrays."""
    elements = 6 * count**2
    room = np.zeros((count, 100), np.float32)
    shared = SimpleNamespace(room=room, barrier=threading.Barrier(count))
    group = [ranks.SharedMemory(rank, count, shared) for rank in range(count)]
    own = elements // count if family in ("all_gather", "all_to_all") else elements
    arrays = np.random.default_rng(count).integers(-9, 10, (count, own)).astype(np.float32)
    room[:, :own] = arrays
    calls = [rank.collective(family, elements) for rank in group]
    results = [None] * count

    def call(rank):
        results[rank] = calls[rank]().copy()

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    counted = COUNTED[family](list(arrays), "switch")
    assert all(map(np.array_equal, results, counted.results))


def test_a_record_of_links_is_measured_and_reads_back(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ranks, "find_spec", lambda name: None)  # shared memory, torch or not
    monkeypatch.setattr(links, "COLLECTIVES", ("all_reduce",))
    path = tmp_path / "links.json"
    assert own_curve.main(["--links", "--ranks", "2", "--quick", "--out", str(path)]) == 0
    found = measuring.load(path)
    assert found.absent == () and found.finished and found.settings.ranks == 2
    assert "shared memory" in found.software["collectives"]
    assert [point.shape.bytes for point in found.points] == [2.0**12, 2.0**16, 2.0**20, 2.0**24]
    for point in found.points:
        assert point.work == Work(0, rl.all_reduce(point.shape.bytes, 2).bytes_sent)
    assert "all_reduce, eager: " in capsys.readouterr().out
    assert record.Record.from_json(found.to_json()) == found


def test_a_rank_that_fails_is_said_and_the_next_point_starts_anew():
    group = ranks.Ranks(2, ranks.SHARED)
    try:
        with pytest.raises(RuntimeError, match="rank 0: "):
            group.ask(ranks.Task("no such collective", MessageShape(4096.0, 2), "eager"))
        group.ready()
        assert group.ask(ranks.Task("all_reduce", MessageShape(4096.0, 2), "eager")) == [1, 1]
        assert min(group.ask(ranks.Turns(3))) > 0
    finally:
        group.close()


def test_what_cannot_be_is_refused(capsys):
    for count in (1, -3):
        with pytest.raises(ValueError, match=r"ranks must be at least 2.*got"):
            links.prepare("cpu", True, 3, count)
    with pytest.raises(ValueError, match="model and ranks are timed one at a time"):
        measuring.measure("cpu", model="laptop", ranks=2)
    assert own_curve.main(["--ranks", "2"]) == 2
    assert "--ranks goes with --links" in capsys.readouterr().err


def drawn(latency, bandwidth, noise=0.0):
    """Points of an all-reduce on 2 ranks whose times follow a line, some above and some below."""
    sign = 1
    for power in range(10, 31, 2):
        sent = rl.all_reduce(2.0**power, 2).bytes_sent
        seconds = (latency + sent / bandwidth) * (1 + sign * noise)
        sign = -sign
        timing = record.Timing.of([seconds] * 3)
        yield record.Point(
            "all_reduce", "bf16", MessageShape(2.0**power, 2), Work(0, sent), sent, timing, "graph"
        )


def test_the_fit_finds_the_line_and_its_error_covers_the_noise():
    exact = links.fit_link(drawn(9e-6, 342e9))
    assert exact.latency == pytest.approx(9e-6, rel=1e-4)
    assert exact.bandwidth == pytest.approx(342e9, rel=1e-4)
    noisy = links.fit_link(drawn(9e-6, 342e9, 0.05))
    assert abs(noisy.latency - 9e-6) < 3 * noisy.latency_error < 2e-6
    assert abs(noisy.bandwidth - 342e9) < 3 * noisy.bandwidth_error < 1e11
    assert list(links.fits(drawn(9e-6, 342e9))) == ["all_reduce, graph"]
    with pytest.raises(ValueError, match="points must be of at least three sizes"):
        links.fit_link(list(drawn(9e-6, 342e9))[:2])


def test_no_bandwidth_is_told_from_messages_that_all_take_the_same():
    points = list(drawn(9e-6, 342e9))[:4]
    timings = [point.timing for point in reversed(points)]  # noise may well look like this
    small = [replace(point, timing=timing) for point, timing in zip(points, timings, strict=True)]
    with pytest.raises(ValueError, match="a larger message takes longer"):
        links.fit_link(small)
    assert links.fits(small) == {}


def test_work_of_a_point_is_that_of_one_rank():
    whole = links.counted_work(ranks.Task("sliced_ffn", SlicedShape(16, 64, 128, 1), "whole"))
    slice_ = links.counted_work(ranks.Task("sliced_ffn", SlicedShape(16, 64, 128, 4), "slice"))
    assert whole.flops == 2 * 2 * 16 * 64 * 128 == 4 * slice_.flops
    message = MessageShape(1e6, 4)
    for family, sent in (("all_gather", 0.75e6), ("all_reduce", 1.5e6), ("all_to_all", 0.1875e6)):
        assert links.counted_work(ranks.Task(family, message, "graph")) == Work(0, sent)
    for label, flops, sent in (
        ("all-reduce", 0, 1.5e6),
        ("copy", 0, 1e6),
        ("products and copy", 8 * 8192**3, 1e6),
    ):
        work = links.counted_work(ranks.Task("overlap", message, label))
        assert (work.flops, work.bytes_moved) == (flops, sent)
    assert links.counted_work(ranks.Task("peer_copy", message, "one way")) == Work(0, 1e6)
