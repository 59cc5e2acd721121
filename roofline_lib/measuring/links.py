"""Links, timed: collectives between GPUs or processes over size, copies to a neighbour, an FFN on
one chip and on several, and gradients sent beside products."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from roofline_lib import collectives
from roofline_lib.measuring import cpu
from roofline_lib.measuring.clocks import Nvml, Sampler
from roofline_lib.measuring.jobs import Job, Pace, Setup, settle
from roofline_lib.measuring.ranks import COLLECTIVES, NCCL, Ranks, Task, Turns, backend_for
from roofline_lib.measuring.record import (
    Absent,
    Chip,
    MessageShape,
    Point,
    Settings,
    SlicedShape,
    Timing,
)
from roofline_lib.model import Work
from roofline_lib.operators import gemm

LAUNCHES = ("graph", "eager")
FFN = (8192, 28672)  # d_model and d_ff of a 70B model
ROWS = (1, 16, 128, 512, 1024, 2048, 4096, 8192)
GRADIENT = 2**30  # byte
OVERLAPS = ("products", "all-reduce", "products and all-reduce", "copy", "products and copy")


def prepare(device: str, quick: bool, repeats: int, ranks: int | None = None) -> Setup:
    """The Setup for collectives among `ranks` GPUs, or processes where there are fewer than two
    GPUs: by default all GPUs, or two to four processes. ValueError for fewer than two ranks or more
    than there are GPUs."""
    backend, cards = backend_for(device)
    on_gpus = backend == NCCL
    if ranks is None:
        ranks = cards if on_gpus else int(np.clip(cpu.usable_threads(), 2, 4))
    if ranks < 2 or (on_gpus and ranks > cards):
        most = f" and at most {cards}, the GPUs here" if on_gpus else ""
        raise ValueError(f"ranks must be at least 2{most} (GPUs or processes); got {ranks}")
    group = Ranks(ranks, backend)
    chip, sampler, absent = _described(group, ranks)
    bench = LinkBench(group, sampler, on_gpus, quick, repeats)

    def close():
        group.close()
        if sampler:
            sampler.close()

    return Setup(
        chip=chip,
        software=group.about.software,
        settings=Settings(quick, repeats, load_average=(), ranks=ranks),
        jobs=bench.jobs(),
        absent=absent,
        samples=sampler.samples if sampler else [],
        close=close,
    )


def _described(group, ranks):
    """(chip, sampler, absent) of one GPU, or of the CPU's cores that hold a process each."""
    device = group.about.device
    if device is None:
        return cpu.describe(ranks), None, ()
    chip = Chip(
        kind="GPU",
        name=device.name,
        units=device.units,
        unit_name="SM",
        clock=None,
        capacities={k: v for k, v in device.capacities.items() if k != "shared memory"},
        card=device.card,
    )
    try:
        nvml = Nvml(device.pci_bus_id)
    except OSError as error:
        return chip, None, (Absent("clock, power and temperature", str(error)),)
    return nvml.complete(chip), Sampler(nvml), ()


class LinkBench:
    """The jobs among a group of ranks; each returns one point."""

    def __init__(self, group, sampler, on_gpus, quick, repeats):
        self.group, self.sampler, self.on_gpus, self.quick = group, sampler, on_gpus, quick
        self.pace = Pace(0.01, 0.02, repeats) if quick else Pace(0.03, 0.1, repeats)
        self.precision = "bf16" if on_gpus else "fp32"

    def jobs(self) -> list[Job]:
        """All that can be done here: small messages first."""
        last = 30 if self.on_gpus else 24
        # in whole elements for each block of each rank
        unit = 4 * self.group.count**2
        powers = range(12, last + 1, 4 if self.quick else 2)
        sizes = [-(-(2**power) // unit) * unit for power in powers]
        launches = LAUNCHES if self.on_gpus else ("eager",)
        tasks = [
            Task(family, MessageShape(float(size), self.group.count), launch)
            for family in COLLECTIVES
            for launch in launches
            for size in sizes
        ]
        if self.on_gpus:
            tasks += self.gpu_tasks(sizes)
        return [Job(f"{t.family} {t.shape} {t.label}", partial(self.point, t)) for t in tasks]

    def gpu_tasks(self, sizes):
        """What only GPUs have: messages that are waited for, copies, an FFN in slices, gradients
        beside products."""
        ranks = self.group.count
        small = [size for size in sizes if size <= 2**20]
        rows = ROWS[::3] if self.quick else ROWS
        whole = [Task("sliced_ffn", SlicedShape(m, *FFN, 1), "whole") for m in rows]
        return [
            *(Task("all_reduce", MessageShape(float(s), ranks), "one by one") for s in small),
            *(
                Task("peer_copy", MessageShape(float(size), 2), way)
                for way in ("one way", "both ways")
                for size in sizes
            ),
            *whole,
            *(
                Task("sliced_ffn", SlicedShape(m, *FFN, ranks), label)
                for label in ("slice", "slice and all-reduce")
                for m in rows
            ),
            *(Task("overlap", MessageShape(float(GRADIENT), ranks), label) for label in OVERLAPS),
        ]

    def point(self, task) -> Point:
        """Time a task: a turn takes as long as its slowest rank."""
        self.group.ready()
        calls = max(self.group.ask(task))

        def run(count):
            return max(self.group.ask(Turns(count)))

        count = settle(run, self.pace)
        seconds = [run(count) / count / calls for _ in range(self.pace.repeats)]
        work = counted_work(task)
        return Point(
            family=task.family,
            precision=self.precision,
            shape=task.shape,
            work=work,
            working_set=work.bytes_moved,
            timing=Timing.of(seconds),
            label=task.label,
        )


def counted_work(task: Task) -> Work:
    """What the model counts for one rank: bytes sent in a collective or copied; FLOP and bytes of
    an FFN's slice; of gradients beside products what the link carries, and the products' FLOP."""
    shape = task.shape
    if isinstance(shape, SlicedShape):
        width = shape.d_ff // shape.ranks
        return gemm(shape.m, width, shape.d_model, "bf16") + gemm(
            shape.m, shape.d_model, width, "bf16"
        )
    if task.family in COLLECTIVES:
        transfer = getattr(collectives, task.family)(shape.bytes, shape.ranks)
        return Work(0, transfer.bytes_sent)
    if task.family == "peer_copy":
        return Work(0, shape.bytes)
    products = 4 * gemm(8192, 8192, 8192, "bf16")
    if task.label == "products":
        return products
    sent = (
        shape.bytes
        if "copy" in task.label
        else collectives.all_reduce(shape.bytes, shape.ranks).bytes_sent
    )
    return Work(products.flops if "products" in task.label else 0, sent)


@dataclass(frozen=True)
class LinkFit:
    """A straight line through measured messages: seconds = latency (s) + bytes sent / bandwidth
    (byte/s, one way), with the standard error of each."""

    latency: float
    latency_error: float
    bandwidth: float
    bandwidth_error: float


def fits(points: Iterable[Point]) -> dict[str, LinkFit]:
    """{family and label: LinkFit} of all collectives and copies among the points, over size."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if point.family in (*COLLECTIVES, "peer_copy") and point.label != "one by one":
            groups.setdefault(f"{point.family}, {point.label}", []).append(point)
    found = {}
    for name, group in groups.items():
        try:
            found[name] = fit_link(group)
        except ValueError:
            continue  # too few sizes, or too small ones, to tell a bandwidth
    return found


def fit_link(points: Iterable[Point]) -> LinkFit:
    """The LinkFit of points of one family and label over size, in least squares of relative
    deviations, so that small messages count as much as large ones. ValueError for fewer than
    three sizes, and where larger messages took no longer."""
    points = list(points)
    sent = np.array([point.work.bytes_moved for point in points])
    seconds = np.array([point.seconds for point in points])
    if len(np.unique(sent)) < 3:
        raise ValueError(f"points must be of at least three sizes (byte); got {len(points)} points")
    rows = np.stack([1 / seconds, sent / seconds], axis=1)
    scale = np.linalg.norm(rows, axis=0)  # bytes and seconds are far apart
    solved, *_ = np.linalg.lstsq(rows / scale, np.ones(len(points)), rcond=None)
    latency, slope = solved / scale
    if slope <= 0:
        raise ValueError(
            "points must reach sizes at which a larger message takes longer (byte); "
            f"the largest is {sent.max():.0f}"
        )
    left = rows @ (latency, slope) - 1
    variance = left @ left / (len(points) - 2)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(rows.T @ rows / np.outer(scale, scale))))
    latency_error, slope_error = errors / scale
    return LinkFit(
        float(latency), float(latency_error), float(1 / slope), float(slope_error / slope**2)
    )
