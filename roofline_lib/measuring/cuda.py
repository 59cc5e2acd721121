"""torch and cupy behind one face: random arrays, matrix products, streams, and a runner that times
a list of calls on the device."""

import hashlib
from dataclasses import dataclass
from types import SimpleNamespace


@dataclass(frozen=True)
class Names:
    """What torch and cupy call a precision; None where a library has no product in it. `call` is
    torch's function, `sums` what torch calls the type of its result, where that is another one."""

    torch: str | None
    cupy: str | None
    call: str = "matmul"
    sums: str | None = None


# the precisions whose products are timed, in the order of the record
PRECISIONS = {
    "bf16": Names("bfloat16", None),
    "fp16": Names("float16", "float16"),
    "tf32": Names("float32", None),
    "fp32": Names("float32", "float32"),
    "fp8": Names("float8_e4m3fn", None, "_scaled_mm", "bfloat16"),
    "int8": Names("int8", None, "_int_mm", "int32"),
    "fp64": Names("float64", "float64"),
}
# torch._int_mm refuses fewer rows of A on CUDA (aten/src/ATen/native/cuda/Blas.cpp)
LEAST_INT8_ROWS = 17


def result_precision(precision: str) -> str:
    """The precision that a product is written in: that of its factors, except for fp8 (bf16) and
    int8 (int32, which is as wide as fp32)."""
    return {"fp8": "bf16", "int8": "fp32"}.get(precision, precision)


@dataclass(frozen=True)
class Device:
    """A GPU as its library describes it: sizes in byte, shared memory of one multiprocessor. None
    is what the library does not tell: ROCm and older versions leave attributes out."""

    name: str
    units: int
    memory: float
    l2: float | None
    shared_memory: float | None
    uuid: str | None
    pci_bus_id: str | None
    capability: tuple[int, int] | None = None

    @property
    def capacities(self) -> dict[str, float]:
        """{memory level: byte}, without those that are not told."""
        sizes = {"DRAM": self.memory, "L2": self.l2, "shared memory": self.shared_memory}
        return {level: size for level, size in sizes.items() if size}

    @property
    def card(self) -> str | None:
        """A hash that tells two cards apart."""
        return self.uuid and hashlib.sha256(self.uuid.encode()).hexdigest()[:12]


class Runner:
    """`runner(count)`: the calls, `count` times over, between two events; seconds of the whole.
    `calls` is how many one turn holds."""

    def __init__(self, turn, calls, events, elapsed):
        self.turn, self.calls, self.events, self.elapsed = turn, calls, events, elapsed

    def __call__(self, count):
        start, end = self.events
        start.record()
        for _ in range(count):
            self.turn()
        end.record()
        end.synchronize()
        return self.elapsed(start, end) / 1e3


class Torch:
    """torch's CUDA device 0. Products in every precision; calls are captured in a CUDA graph."""

    name, graphs = "torch", True

    def __init__(self):
        import torch

        self.torch, self.one = torch, torch.ones((), device="cuda")
        self.precisions = tuple(
            precision
            for precision, names in PRECISIONS.items()
            if names.torch and hasattr(torch, names.torch) and hasattr(torch, names.call)
        )
        self.types = {name: getattr(torch, PRECISIONS[name].torch) for name in self.precisions}
        self.sums = {
            name: getattr(torch, PRECISIONS[name].sums or PRECISIONS[name].torch)
            for name in self.precisions
        }
        self.calls = {name: f"torch.{PRECISIONS[name].call}" for name in self.precisions}

    def versions(self):
        told = {name: getattr(self.torch.version, name, None) for name in ("cuda", "hip")}
        return {"torch": self.torch.__version__} | {name: v for name, v in told.items() if v}

    def describe(self):
        p = self.torch.cuda.get_device_properties(0)
        return Device(
            name=p.name,
            units=p.multi_processor_count,
            memory=float(p.total_memory),
            l2=_size(p, "L2_cache_size"),
            shared_memory=_size(p, "shared_memory_per_multiprocessor"),
            uuid=str(p.uuid) if hasattr(p, "uuid") else None,
            pci_bus_id=f"{p.pci_domain_id:08x}:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0"
            if hasattr(p, "pci_bus_id")
            else None,
            # ROCm has a pair of that name too, which is not CUDA's
            capability=None
            if getattr(self.torch.version, "hip", None) or not hasattr(p, "major")
            else (p.major, p.minor),
        )

    def random(self, shape, precision):
        if precision == "int8":
            return self.torch.randint(-128, 128, shape, device="cuda", dtype=self.types[precision])
        # torch draws no random fp8: drawn in bf16, then converted
        drawn = self.torch.randn(shape, device="cuda", dtype=self.sums[precision])
        return drawn.to(self.types[precision])

    def empty(self, shape, precision):
        """Room for a product in that precision."""
        return self.torch.empty(shape, device="cuda", dtype=self.sums[precision])

    def address(self, array):
        return array.data_ptr()

    def stream_handle(self):
        return self.torch.cuda.current_stream().cuda_stream

    def product(self, a, b, out, precision):
        torch = self.torch
        if precision == "int8":
            return lambda: torch._int_mm(a, b, out=out)
        if precision == "fp8":
            return lambda: torch._scaled_mm(
                a, b, self.one, self.one, out_dtype=out.dtype, use_fast_accum=True, out=out
            )
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        return lambda: torch.matmul(a, b, out=out)

    def stream(self, family, *arrays):
        torch = self.torch
        if family == "read":
            total = torch.empty((), device="cuda")
            return lambda: torch.sum(arrays[0], 0, out=total)
        if family == "copy":
            return lambda: arrays[0].copy_(arrays[1])
        if family == "scale":
            return lambda: torch.mul(arrays[1], 3.0, out=arrays[0])
        return lambda: torch.add(arrays[1], arrays[2], alpha=3.0, out=arrays[0])

    def runner(self, calls):
        torch = self.torch
        torch.cuda.synchronize()
        # first call outside the graph: the library picks its kernel and its workspace
        with torch.cuda.stream(torch.cuda.Stream()):
            calls[0]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for call in calls:
                call()
        return self._timed(graph.replay, len(calls))

    def eager_runner(self, calls):
        """The same without a graph: every kernel is started from Python."""

        def turn():
            for call in calls:
                call()

        turn()
        return self._timed(turn, len(calls))

    def _timed(self, turn, calls):
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
        return Runner(turn, calls, events, lambda start, end: start.elapsed_time(end))


class Cupy:
    """cupy's current device. No call for bf16, tf32, fp8 or int8 products on tensor cores; calls
    are launched one by one."""

    name, graphs = "cupy", False
    precisions = tuple(precision for precision, names in PRECISIONS.items() if names.cupy)
    calls = dict.fromkeys(precisions, "cupy.matmul")

    def __init__(self):
        import cupy

        self.cupy = cupy
        self.types = {name: getattr(cupy, PRECISIONS[name].cupy) for name in self.precisions}

    def versions(self):
        return {
            "cupy": self.cupy.__version__,
            "cuda": str(self.cupy.cuda.runtime.runtimeGetVersion()),
        }

    def describe(self):
        runtime = self.cupy.cuda.runtime
        p = SimpleNamespace(**runtime.getDeviceProperties(0))
        return Device(
            name=p.name.decode(),
            units=p.multiProcessorCount,
            memory=float(p.totalGlobalMem),
            l2=float(p.l2CacheSize),
            shared_memory=float(p.sharedMemPerMultiprocessor),
            uuid=bytes(p.uuid).hex(),
            pci_bus_id=runtime.deviceGetPCIBusId(0),
            capability=None if runtime.is_hip else (p.major, p.minor),
        )

    def random(self, shape, precision):
        return self.cupy.random.standard_normal(shape, dtype=self.cupy.float32).astype(
            self.types[precision]
        )

    def empty(self, shape, precision):
        return self.cupy.empty(shape, self.types[precision])

    def address(self, array):
        return array.data.ptr

    def stream_handle(self):
        return self.cupy.cuda.get_current_stream().ptr

    def product(self, a, b, out, precision):
        return lambda: self.cupy.matmul(a, b, out=out)

    def stream(self, family, *arrays):
        cupy = self.cupy
        if family == "read":
            total = cupy.empty((), cupy.float32)
            return lambda: cupy.sum(arrays[0], out=total)
        if family == "copy":
            return lambda: cupy.copyto(*arrays)
        if family == "scale":
            return lambda: cupy.multiply(arrays[1], 3.0, out=arrays[0])
        triad = cupy.ElementwiseKernel(
            "float32 b, float32 c", "float32 a", "a = b + 3.0f * c", "triad"
        )
        return lambda: triad(arrays[1], arrays[2], arrays[0])

    def runner(self, calls):
        def turn():
            for call in calls:
                call()

        return Runner(
            turn,
            len(calls),
            [self.cupy.cuda.Event() for _ in range(2)],
            self.cupy.cuda.get_elapsed_time,
        )


def _size(properties, name):
    """A size in byte; None where the properties have none of that name."""
    value = getattr(properties, name, None)
    return float(value) if value else None
