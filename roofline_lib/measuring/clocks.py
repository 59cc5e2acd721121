"""Clock, power and temperature of an NVIDIA GPU while it is measured, read through the driver's own
library (NVML). Reads only."""

import ctypes
import threading
import time

import numpy as np

SM, MEMORY = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
# NVML_FI_DEV_POWER_INSTANT: the plain power call is an average over a second
POWER_INSTANT = 186
POWER_CAPPED = 0x4 | 0x80  # software power cap, hardware power brake


class Nvml:
    """One GPU, by its PCI bus id. OSError where the driver's library is missing; a figure it does
    not give reads None."""

    def __init__(self, pci_bus_id):
        self.nvml, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.nvml.nvmlInit_v2() or self.nvml.nvmlDeviceGetHandleByPciBusId_v2(
            pci_bus_id.encode(), ctypes.byref(self.device)
        ):
            raise OSError(f"NVML does not know the GPU at {pci_bus_id}")

    def read(self, name, *arguments, scale=1.0, kind=ctypes.c_uint):
        """nvmlDeviceGet<name>(device, *arguments), times scale; None where the driver refuses."""
        value = kind()
        failed = getattr(self.nvml, f"nvmlDeviceGet{name}")(
            self.device, *arguments, ctypes.byref(value)
        )
        return None if failed else value.value * scale

    def describe(self):
        """Maximum clocks (Hz), bus width (bit), power limit (W) and driver, as the schema's
        `machine` wants them."""
        driver = ctypes.create_string_buffer(80)
        self.nvml.nvmlSystemGetDriverVersion(driver, 80)
        return {
            "clock": self.read("MaxClockInfo", SM, scale=1e6),
            "memory_clock": self.read("MaxClockInfo", MEMORY, scale=1e6),
            "memory_bus_bits": self.read("MemoryBusWidth"),
            "power_limit": self.read("EnforcedPowerLimit", scale=1e-3),
            "driver": driver.value.decode(),
        }

    def power(self):
        """Watts at this instant, or averaged by the driver where it gives no more."""
        field = _Field(POWER_INSTANT)
        if (
            self.nvml.nvmlDeviceGetFieldValues(self.device, 1, ctypes.byref(field)) == 0
            and field.status == 0
        ):
            return field.value * 1e-3
        return self.read("PowerUsage", scale=1e-3)

    def sample(self):
        """(s, Hz, W, degrees C, 1 if the power limit holds the clock down else 0)"""
        reasons = self.read("CurrentClocksThrottleReasons", kind=ctypes.c_ulonglong) or 0
        return (
            time.monotonic(),
            self.read("ClockInfo", SM, scale=1e6),
            self.power(),
            self.read("Temperature", 0),
            float(bool(int(reasons) & POWER_CAPPED)),
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
    """Samples a GPU every 10 ms in a thread. `samples` keeps two a second for the record, `window`
    averages what lies between two times."""

    NAMES = ("clock", "power", "temperature", "power_capped")

    def __init__(self, nvml):
        self.rows, self.samples, self._stop = [], [], threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(nvml, time.monotonic()), daemon=True
        )
        self._thread.start()

    def _run(self, nvml, started):
        while not self._stop.wait(0.01):
            row = nvml.sample()
            self.rows.append(row)
            at = round(row[0] - started, 3)
            if not self.samples or at - self.samples[-1]["at"] >= 0.5:
                self.samples.append({"at": at, **dict(zip(self.NAMES, row[1:], strict=True))})

    def window(self, start, end):
        """{name: mean} of the samples between two monotonic times; without a sample there, of the
        last one."""
        inside = [row for row in self.rows if start <= row[0] <= end] or self.rows[-1:]
        columns = {
            name: [row[i] for row in inside if row[i] is not None]
            for i, name in enumerate(self.NAMES, 1)
        }
        return {name: float(np.mean(values)) for name, values in columns.items() if values}

    def close(self):
        """Stop the thread."""
        self._stop.set()
        self._thread.join()
