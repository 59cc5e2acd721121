"""CUDA kernels of our own, compiled where a compiler is found: the library NVRTC, which comes with
torch and with CUDA's wheels, or the program nvcc. Loaded and started through the driver (libcuda),
on the memory and the stream of torch or cupy."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from roofline_lib.measuring.jobs import first_line

# one of these is NVRTC where the system's own search finds it
_NVRTC = (
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "libnvrtc.so",
    "nvrtc64_130_0.dll",
    "nvrtc64_120_0.dll",
)
_DRIVER = ("libcuda.so.1", "nvcuda.dll")


class NoCompiler(RuntimeError):
    """Why no kernel can be compiled here, in a few words."""


@dataclass(frozen=True)
class Kernel:
    """A kernel `name(float *out, float b, int steps)` in CUDA C++, and how it is started: so many
    `blocks` of `threads`, each thread writing one float to `out`."""

    name: str
    source: str
    blocks: int
    threads: int
    steps: int


class Compiler:
    """What compiles for one GPU and starts what it compiled.

    `name` says what compiles ("NVRTC 13.0", "nvcc"). `lib` is torch's or cupy's face (see `cuda`),
    `capability` the GPU's, such as (9, 0). RuntimeError with the first line of what the
    compiler or the driver says, for a kernel that it refuses.
    """

    def __init__(
        self,
        name: str,
        to_cubin: Callable[[str, str], bytes],
        driver: ctypes.CDLL,
        lib,
        capability: tuple[int, int],
    ):
        self.name, self.capability = name, capability
        self._to_cubin, self._driver, self._lib = to_cubin, driver, lib

    @property
    def architecture(self) -> str:
        """The GPU as compilers name it: "sm_80"; units of Hopper and later ones answer to names
        with an a alone, "sm_90a"."""
        major, minor = self.capability
        return f"sm_{major}{minor}" + ("a" if major >= 9 else "")

    def starter(self, kernel: Kernel) -> Callable[[], None]:
        """A function that starts the kernel once, on the library's current stream."""
        image = self._to_cubin(kernel.source, self.architecture)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._ask("cuModuleLoadData", ctypes.byref(module), image)
        self._ask("cuModuleGetFunction", ctypes.byref(function), module, kernel.name.encode())
        out = self._lib.empty((kernel.blocks * kernel.threads,), "fp32")
        values = (
            ctypes.c_void_p(self._lib.address(out)),
            ctypes.c_float(0.5),
            ctypes.c_int(kernel.steps),
        )
        places = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        arguments = (ctypes.c_void_p * len(values))(*places)

        def start() -> None:
            self._ask(
                "cuLaunchKernel",
                function,
                *(kernel.blocks, 1, 1),
                *(kernel.threads, 1, 1),
                0,
                ctypes.c_void_p(self._lib.stream_handle()),
                arguments,
                None,
            )

        # what the driver reads at every start must live as long as the function
        start.kept = (out, values, image)  # type: ignore[attr-defined]
        return start

    def _ask(self, call: str, *arguments: object) -> None:
        code = getattr(self._driver, call)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{call}: {(text.value or b'error %d' % code).decode()}")


def find_compiler(lib, capability: tuple[int, int] | None) -> Compiler:
    """The Compiler for a GPU of that compute capability. NoCompiler where none is found, and where
    the library does not tell the capability, as on a GPU that is not NVIDIA's."""
    if capability is None:
        raise NoCompiler(f"{lib.name} tells no compute capability of this GPU")
    driver = _first_loaded(_DRIVER)
    if driver is None:
        raise NoCompiler("the driver's library libcuda is not found")
    nvrtc = _load_nvrtc()
    if nvrtc is not None:
        return Compiler(_nvrtc_name(nvrtc), _by_nvrtc(nvrtc), driver, lib, capability)
    if shutil.which("nvcc"):
        return Compiler("nvcc", _by_nvcc, driver, lib, capability)
    raise NoCompiler("needs NVRTC (pip install nvidia-cuda-nvrtc) or nvcc to compile a kernel")


def _load_nvrtc() -> ctypes.CDLL | None:
    """NVRTC: as CUDA's own finder finds it, out of the wheels beside this Python, or by its
    name."""
    try:
        find = import_module("cuda.pathfinder").load_nvidia_dynamic_lib
        return ctypes.CDLL(find("nvrtc").abs_path)
    except (ImportError, OSError, RuntimeError, AttributeError, TypeError):
        pass  # no such finder, or nothing that it finds
    return _first_loaded([*map(str, _in_wheels()), *_NVRTC])


def _in_wheels() -> Iterator[Path]:
    """NVRTC's files in the folders of the packages nvidia and torch."""
    for package in ("nvidia", "torch"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for pattern in ("*/lib/libnvrtc.so.*", "lib/nvrtc64_*.dll", "*/bin/nvrtc64_*.dll"):
                yield from sorted(Path(folder).glob(pattern), reverse=True)


def _first_loaded(names) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _nvrtc_name(nvrtc: ctypes.CDLL) -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"NVRTC {major.value}.{minor.value}"


def _by_nvrtc(nvrtc: ctypes.CDLL) -> Callable[[str, str], bytes]:
    def to_cubin(source: str, architecture: str) -> bytes:
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        nvrtc.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"roofline.cu", 0, None, None
        )
        try:
            option = f"--gpu-architecture={architecture}".encode()
            if nvrtc.nvrtcCompileProgram(program, 1, (ctypes.c_char_p * 1)(option)):
                nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
                log = ctypes.create_string_buffer(size.value)
                nvrtc.nvrtcGetProgramLog(program, log)
                raise RuntimeError(_complaint(log.value.decode(errors="replace")))
            nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
            image = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetCUBIN(program, image)
            return image.raw
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

    return to_cubin


def _by_nvcc(source: str, architecture: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "roofline.cu").write_text(source, encoding="utf-8")
        command = ["nvcc", "-cubin", f"-arch={architecture}", "-o", "roofline.cubin", "roofline.cu"]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(_complaint(done.stderr or done.stdout))
        return (here / "roofline.cubin").read_bytes()


def _complaint(log: str) -> str:
    """The first line of a compiler's log that names an error, else its first line."""
    errors = [line for line in log.splitlines() if "error" in line.lower()]
    return f"the compiler refuses it: {first_line(RuntimeError(errors[0] if errors else log))}"
