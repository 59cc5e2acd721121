"""The clock of a CPU while it works: a chain of subtractions, each of which needs the one before.

Every core of today does one such step a cycle, whatever its make; so steps over seconds are its
clock. The chain is six bytes of machine code, `subtract 1, again if not 0`, called right after a
matrix product that loads all cores, before the clock has time to rise again.
"""

import ctypes
import mmap
import platform
import time
from collections.abc import Callable
from statistics import median

STEPS = 600_000  # 0.2 ms at 3 GHz
TRIES = 7
# dec rdi; jnz -5; ret            subs x0, x0, 1; b.ne -4; ret
_CODE = {
    "x86_64": bytes.fromhex("48ffcf75fbc3"),
    "AMD64": bytes.fromhex("48ffcf75fbc3"),
    "aarch64": bytes.fromhex("000400f1e1ffff54c0035fd6"),
    "arm64": bytes.fromhex("000400f1e1ffff54c0035fd6"),
}


def chain() -> Callable[[int], float]:
    """A function that runs a chain of so many steps and gives its seconds. OSError where this
    system runs no code of ours, or has another kind of processor."""
    machine = platform.machine()
    if machine not in _CODE:
        raise OSError(f"no chain is written for {machine or 'this processor'}")
    if not hasattr(mmap, "PROT_EXEC"):
        raise OSError("this system gives no memory that code can run from")
    try:
        room = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except (OSError, ValueError) as error:
        raise OSError(f"this system runs no code of ours ({error})") from None
    room.write(_CODE[machine])
    place = ctypes.addressof(ctypes.c_char.from_buffer(room))
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(place)

    def seconds(steps: int) -> float:
        start = time.perf_counter()
        call(steps)
        return time.perf_counter() - start

    seconds.room = room  # type: ignore[attr-defined]  # the code lives as long as who calls it
    return seconds


def clock_under_load(load: Callable[[], object]) -> float:
    """The clock in Hz right after each of a few calls of `load`, the median of these. OSError where
    it cannot be measured."""
    seconds = chain()
    seconds(STEPS)
    found = []
    for _ in range(TRIES):
        load()
        found.append(STEPS / seconds(STEPS))
    return median(found)
