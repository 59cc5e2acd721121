"""Clock, power and temperature of an NVIDIA GPU while it is measured, read through the driver's own
library (NVML). Reads only."""

import ctypes
import threading
import time
from dataclasses import replace

import numpy as np

from roofline_lib.measuring.record import Chip, Sample

SM, MEMORY = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
# NVML_FI_DEV_POWER_INSTANT: the plain power call is an average over a second
POWER_INSTANT = 186
POWER_CAPPED = 0x4 | 0x80  # software power cap, hardware power brake


class Nvml:
    """One GPU, by its PCI bus id. OSError where the driver's library is missing or the id is not
    known; a figure that it does not give, a call that it does not have and a zero read None."""

    def __init__(self, pci_bus_id):
        if not pci_bus_id:
            raise OSError("this library does not tell where on the bus the GPU is")
        self.nvml, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByPciBusId_v2(
            pci_bus_id.encode(), ctypes.byref(self.device)
        ):
            raise OSError(f"NVML does not know the GPU at {pci_bus_id}")

    def read(self, name, *arguments, scale=1.0, kind=ctypes.c_uint):
        """nvmlDeviceGet<name>(device, *arguments), times scale; None where the driver refuses, has
        no such call, or gives 0."""
        value = kind()
        call = getattr(self.nvml, f"nvmlDeviceGet{name}", None)
        failed = call is None or call(self.device, *arguments, ctypes.byref(value))
        return None if failed or not value.value else value.value * scale

    def complete(self, chip: Chip) -> Chip:
        """The chip with what the driver knows of it: maximum clocks, bus width, power limit, and
        the driver's own version. What it does not give stays None."""
        driver = ctypes.create_string_buffer(80)
        self.nvml.nvmlSystemGetDriverVersion(driver, 80)
        return replace(
            chip,
            clock=self.read("MaxClockInfo", SM, scale=1e6),
            memory_clock=self.read("MaxClockInfo", MEMORY, scale=1e6),
            memory_bus_bits=self.read("MemoryBusWidth"),
            power_limit=self.read("EnforcedPowerLimit", scale=1e-3),
            driver=driver.value.decode() or None,
        )

    def power(self):
        """Watts at this instant, or averaged by the driver where it gives no more."""
        field, call = _Field(POWER_INSTANT), getattr(self.nvml, "nvmlDeviceGetFieldValues", None)
        if (
            call is not None
            and call(self.device, 1, ctypes.byref(field)) == 0
            and field.status == 0
            and field.value
        ):
            return field.value * 1e-3
        return self.read("PowerUsage", scale=1e-3)

    def sample(self) -> Sample:
        """The GPU at this moment, `at` by the monotonic clock."""
        reasons = self.read("CurrentClocksThrottleReasons", kind=ctypes.c_ulonglong) or 0
        return Sample(
            at=time.monotonic(),
            clock=self.read("ClockInfo", SM, scale=1e6),
            power=self.power(),
            temperature=self.read("Temperature", 0),
            power_capped=float(bool(int(reasons) & POWER_CAPPED)),
        )


class _Field(ctypes.Structure):
    """nvmlFieldValue_t, with its value read as an unsigned int."""

    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("type", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_uint),
        ("rest", ctypes.c_uint),
    ]


class Sampler:
    """Looks at a GPU at once and then every 10 ms, in a thread. `samples` keeps two a second for
    the record, with times from the start, and those that `keep` adds; `window` averages what lies
    between two times."""

    AVERAGED = ("clock", "power", "temperature", "power_capped")

    def __init__(self, nvml):
        self.seen: list[Sample] = []
        self.samples: list[Sample] = []
        self._nvml, self._started, self._stop = nvml, time.monotonic(), threading.Event()
        self._keeping = threading.Lock()
        # before the thread starts, which may take a while on a busy machine: a window never finds
        # nothing
        self._look()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.wait(0.01):
            self._look()

    def _look(self):
        now = self._nvml.sample()
        self.seen.append(now)
        with self._keeping:
            kept = self._kept(now)
            if not self.samples or kept.at - self.samples[-1].at >= 0.5:
                self.samples.append(kept)

    def since_start(self, moment: float) -> float:
        """A monotonic time as seconds since the start, to the millisecond."""
        return round(moment - self._started, 3)

    def _kept(self, sample):
        return replace(sample, at=self.since_start(sample.at))

    def keep(self, start: float, end: float) -> None:
        """Let `samples` hold every look between two monotonic times."""
        wanted = [self._kept(seen) for seen in list(self.seen) if start <= seen.at <= end]
        with self._keeping:
            together = {sample.at: sample for sample in [*self.samples, *wanted]}
            self.samples[:] = [together[at] for at in sorted(together)]

    def window(self, start: float, end: float) -> dict[str, float]:
        """{name: mean} of the samples between two monotonic times; without a sample there, of the
        last one. A figure that the driver refused is left out."""
        inside = [seen for seen in self.seen if start <= seen.at <= end] or self.seen[-1:]
        means = {}
        for name in self.AVERAGED:
            values = [getattr(seen, name) for seen in inside if getattr(seen, name) is not None]
            if values:
                means[name] = float(np.mean(values))
        return means

    def close(self):
        """Stop the thread."""
        self._stop.set()
        self._thread.join()
