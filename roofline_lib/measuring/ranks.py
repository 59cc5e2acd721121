"""The processes between which collectives are timed, one for each rank, and what they run.

The measuring process asks all ranks at once and waits for all answers, so that they enter every
collective together. What each rank does stands in a backend: torch.distributed over NCCL (one GPU a
rank) or gloo (CPU), or shared memory with numpy alone.
"""

import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

import numpy as np

from roofline_lib.measuring import cuda
from roofline_lib.measuring.record import MessageShape, SlicedShape

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
NCCL, GLOO, SHARED = "NCCL", "gloo", "shared memory"
LARGEST = 2**25  # byte of an array in shared memory
PATIENCE = 120.0  # s: a rank that says nothing for so long hangs


@dataclass(frozen=True)
class Task:
    """What the ranks make ready: a family of points, its shape, and how it is run."""

    family: str
    shape: MessageShape | SlicedShape
    label: str


@dataclass(frozen=True)
class Turns:
    """Run what was made ready so many times; each rank answers with its seconds."""

    count: int


@dataclass(frozen=True)
class Failed:
    """The answer of a rank that could not do it, and why."""

    why: str


@dataclass(frozen=True)
class About:
    """What a rank tells of its device and its software."""

    device: cuda.Device | None
    software: dict[str, str]


@dataclass(frozen=True)
class Shared:
    """What ranks on one machine share: a port to meet at, a barrier, room for an array each."""

    port: int
    barrier: Any = None
    room: Any = None


class Ranks:
    """`count` processes over one backend. After a failure they are started anew, since some may
    still wait for the one that failed."""

    def __init__(self, count: int, backend: str):
        self.count, self.backend = count, backend
        self._start()

    def _start(self):
        context = get_context("spawn")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        shared = Shared(port)
        if self.backend == SHARED:
            room = context.RawArray("b", self.count * LARGEST)
            shared = Shared(port, context.Barrier(self.count), room)
        self.pipes, self.processes = [], []
        for rank in range(self.count):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(rank, self.count, self.backend, shared, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)
        self.about: About = self._answers()[0]

    def ask(self, message: Task | Turns) -> list:
        """The answers of all ranks. RuntimeError where one failed or says nothing."""
        for pipe in self.pipes:
            pipe.send(message)
        return self._answers()

    def _answers(self):
        answers, end = [], time.monotonic() + PATIENCE
        for rank, pipe in enumerate(self.pipes):
            try:
                if not pipe.poll(max(0.0, end - time.monotonic())):
                    raise RuntimeError(f"rank {rank} did not answer in {PATIENCE:.0f} s")
                answer = pipe.recv()
            except (EOFError, OSError):
                answer = Failed("its process ended")
            except RuntimeError as error:
                answer = Failed(str(error))
            if isinstance(answer, Failed):
                self.close()
                self.processes = []
                raise RuntimeError(f"rank {rank}: {answer.why}")
            answers.append(answer)
        return answers

    def ready(self):
        """Start the processes anew where a failure has ended them."""
        if not self.processes:
            self._start()

    def close(self):
        """End the processes."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join()
        for pipe in self.pipes:
            pipe.close()
        self.pipes = []


def _serve(rank, count, name, shared, pipe):
    """A rank's process: answer one message after the other until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the measuring process
    try:
        backend = BACKENDS[name](rank, count, shared)
        pipe.send(backend.about())
        turn = None
        while True:
            message = pipe.recv()
            if isinstance(message, Task):
                turn = None  # frees what the last one held
                turn = backend.prepare(message)
                pipe.send(turn.calls)
            else:
                pipe.send(backend.seconds(turn, message.count))
    except EOFError:
        return
    except Exception as error:  # whatever it is, the measuring process must hear of it
        lines = str(error).strip().splitlines() or [type(error).__name__]
        pipe.send(Failed(lines[0][:200]))


@dataclass(frozen=True)
class Turn:
    """Something to time: `run` does it `calls` times."""

    run: Callable[[], Any]
    calls: int = 1


class SharedMemory:
    """Ranks that read each other's arrays in shared memory, with numpy. Each collective is direct:
    every rank copies, or adds up, what it needs from all others."""

    def __init__(self, rank, count, shared):
        self.rank, self.count, self.barrier = rank, count, shared.barrier
        room = np.frombuffer(shared.room, np.float32).reshape(count, -1)
        room[rank] = rank  # touched once, so that no page is new while it is timed
        self.room = room

    def about(self):
        return About(None, {"collectives": f"numpy {np.__version__} in shared memory"})

    def prepare(self, task):
        return Turn(self.collective(task.family, int(task.shape.bytes) // 4))

    def collective(self, family, elements):
        """A call that does it once and returns what this rank then holds; an array of so many
        elements, all ranks' together for an all-to-all."""
        rank, count, wait = self.rank, self.count, self.barrier.wait
        each = elements // count
        shards = self.room[:, : each * count].reshape(count, count, each)  # [owner, part, ...]
        gathered, summed = np.empty((count, each), np.float32), np.empty(each, np.float32)
        blocks = self.room[:, :each].reshape(count, count, -1) if each % count == 0 else None

        def reduce_scatter():
            wait()
            np.sum(shards[:, rank], axis=0, out=summed)
            wait()
            return summed

        def all_gather():
            wait()
            np.copyto(gathered, self.room[:, :each])
            wait()
            return gathered.ravel()

        def all_reduce():
            # the sum of a shard goes where its owner's own part stood, which nobody else reads
            wait()
            np.sum(shards[:, rank], axis=0, out=summed)
            shards[rank, rank] = summed
            wait()
            for owner in range(count):
                gathered[owner] = shards[owner, owner]
            wait()
            return gathered.ravel()

        def all_to_all():
            wait()
            received = blocks[:, rank].copy()
            wait()
            return received.ravel()

        return {
            "reduce_scatter": reduce_scatter,
            "all_gather": all_gather,
            "all_reduce": all_reduce,
            "all_to_all": all_to_all,
        }[family]

    def seconds(self, turn, count):
        self.barrier.wait()
        start = time.perf_counter()
        for _ in range(count):
            turn.run()
        return time.perf_counter() - start


class _Distributed:
    """What torch.distributed does alike over NCCL and gloo."""

    name, where = "", "cpu"

    def __init__(self, rank, count, shared):
        import torch
        import torch.distributed

        self.torch, self.dist = torch, torch.distributed
        self.rank, self.count = rank, count
        self.dist.init_process_group(
            self.name.lower(),
            init_method=f"tcp://127.0.0.1:{shared.port}",
            rank=rank,
            world_size=count,
        )

    def zeros(self, elements):
        return self.torch.zeros(elements, dtype=self.type, device=self.where)

    def collective(self, family, nbytes):
        """A call that does the collective once on an array of so many bytes, all ranks' together
        for an all-to-all."""
        dist, elements = self.dist, int(nbytes) // self.type.itemsize
        each = elements // self.count
        if family == "all_reduce":
            whole = self.zeros(elements)
            return lambda: dist.all_reduce(whole)
        if family == "all_to_all":
            mine, received = self.zeros(each), self.zeros(each)
            return lambda: dist.all_to_all_single(received, mine)
        whole, shard = self.zeros(each * self.count), self.zeros(each)
        if family == "all_gather":
            return lambda: dist.all_gather_into_tensor(whole, shard)
        return lambda: dist.reduce_scatter_tensor(shard, whole)


class Gloo(_Distributed):
    """Processes on a CPU, which send through the loopback network."""

    name = GLOO

    def __init__(self, rank, count, shared):
        super().__init__(rank, count, shared)
        self.type = self.torch.float32
        self.torch.set_num_threads(1)

    def about(self):
        return About(None, {"torch": self.torch.__version__, "collectives": "gloo"})

    def prepare(self, task):
        return Turn(self.collective(task.family, task.shape.bytes))

    def seconds(self, turn, count):
        self.dist.barrier()
        start = time.perf_counter()
        for _ in range(count):
            turn.run()
        return time.perf_counter() - start


class Nccl(_Distributed):
    """One GPU a rank. A `label` says how the calls are launched: "graph" replays a captured CUDA
    graph, "eager" launches one after the other, "one by one" waits for each."""

    name = NCCL

    def __init__(self, rank, count, shared):
        # reductions in the switch change what is counted, and are not to be had everywhere
        os.environ["NCCL_NVLS_ENABLE"] = "0"
        import torch

        torch.cuda.set_device(rank)
        self.where = torch.device("cuda", rank)
        super().__init__(rank, count, shared)
        self.type = torch.bfloat16
        self.side = torch.cuda.Stream()
        self.first = self.zeros(1)
        self.dist.all_reduce(self.first)  # NCCL connects at its first collective
        torch.cuda.synchronize()

    def about(self):
        lib = cuda.Torch()
        version = ".".join(map(str, self.torch.cuda.nccl.version()))
        software = {**lib.versions(), "collectives": f"NCCL {version}, NCCL_NVLS_ENABLE=0"}
        return About(lib.describe(), software)

    def prepare(self, task):
        makers = {"peer_copy": self.copies, "sliced_ffn": self.ffn, "overlap": self.overlap}
        if task.family in makers:
            return makers[task.family](task)
        call = self.collective(task.family, task.shape.bytes)
        if task.label == "graph":
            return self.captured(call, int(np.clip(2**26 // task.shape.bytes, 1, 32)))
        if task.label == "one by one":
            return Turn(lambda: (call(), self.torch.cuda.synchronize()))
        return Turn(call)

    def seconds(self, turn, count):
        self.dist.all_reduce(self.first)
        self.torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            turn.run()
        self._all_devices_done()
        return time.perf_counter() - start

    def _all_devices_done(self):
        """Copies between two cards may run on a stream of the other one."""
        for device in range(self.count if self.rank == 0 else 0):
            self.torch.cuda.synchronize(device)
        self.torch.cuda.synchronize()

    def captured(self, call, calls):
        """The call so many times in one CUDA graph."""
        torch = self.torch
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(self.side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # NCCL's own threads ask the driver things meanwhile
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(calls):
                call()
        return Turn(graph.replay, calls)

    def copies(self, task):
        """Rank 0 copies to its neighbour's memory, "one way", or at once back as well, "both
        ways"; the copy engines do it. The other ranks wait."""
        if self.rank:
            return Turn(lambda: None)
        torch = self.torch
        elements = int(task.shape.bytes) // 2
        here, there = (
            [torch.zeros(elements, dtype=self.type, device=f"cuda:{card}") for _ in range(2)]
            for card in (0, 1)
        )
        # a copy waits for the current streams of both cards: the way back has its own on each
        arriving, leaving = (torch.cuda.Stream(device=card) for card in (0, 1))

        def one_way():
            there[0].copy_(here[0], non_blocking=True)

        def both_ways():
            one_way()
            with torch.cuda.stream(arriving), torch.cuda.stream(leaving):
                here[1].copy_(there[1], non_blocking=True)

        return Turn(both_ways if task.label == "both ways" else one_way)

    def ffn(self, task):
        """Two products of an FFN: "whole" on rank 0 alone, or a "slice" of the width on each rank,
        without or with the all-reduce that adds the parts up."""
        shape, torch = task.shape, self.torch
        if task.label == "whole" and self.rank:
            return Turn(lambda: None)
        width = shape.d_ff // shape.ranks
        drawn = [(shape.m, shape.d_model), (shape.d_model, width), (width, shape.d_model)]
        x, up, down = (torch.randn(s, dtype=self.type, device=self.where) * 0.02 for s in drawn)
        inner, out = x @ up, torch.empty_like(x)

        def products():
            torch.mm(x, up, out=inner)
            torch.mm(inner, down, out=out)

        def with_all_reduce():
            products()
            self.dist.all_reduce(out)

        summed = task.label == "slice and all-reduce"
        return self.captured(with_all_reduce if summed else products, 8)

    def overlap(self, task):
        """Four products of 8192 cubed beside the all-reduce of a gradient, which needs
        multiprocessors, or beside a copy of it to a neighbour, which the copy engine makes."""
        torch, side = self.torch, self.side
        products, reduces, copies = (
            word in task.label for word in ("products", "all-reduce", "copy")
        )
        a, b = (torch.randn(8192, 8192, dtype=self.type, device=self.where) for _ in range(2))
        out = torch.empty_like(a)
        gradient = self.zeros(int(task.shape.bytes) // 2)
        peer = (self.rank + 1) % self.count
        target = torch.empty_like(gradient, device=f"cuda:{peer}") if copies else None

        def run():
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                if reduces:
                    self.dist.all_reduce(gradient)
                if copies:
                    target.copy_(gradient, non_blocking=True)
            for _ in range(4 if products else 0):
                torch.mm(a, b, out=out)
            torch.cuda.current_stream().wait_stream(side)

        return Turn(run)


BACKENDS = {NCCL: Nccl, GLOO: Gloo, SHARED: SharedMemory}


def backend_for(device: str) -> tuple[str, int]:
    """(backend, GPUs it sees): NCCL where torch sees two CUDA devices or more, else gloo where
    torch is installed, else shared memory. `device` "cpu" leaves GPUs alone, "gpu" insists."""
    cards = 0
    if find_spec("torch"):
        import torch

        cards = torch.cuda.device_count() if device != "cpu" else 0
        if cards >= 2:
            return NCCL, cards
    if device == "gpu":
        raise ValueError(f"device gpu with links needs torch and two GPUs or more; found {cards}")
    return (GLOO if find_spec("torch") else SHARED), cards
