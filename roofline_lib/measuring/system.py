"""What a system tells of its CPU: clock, cores, caches, and how much of them this process may use.

Read from the files of Linux under `ROOT`. Other systems have no such files, and virtual machines
and containers leave some out: what is not told is None or empty, never a guess.
"""

import os
import re
from pathlib import Path

ROOT = Path("/")
# x86, the widest last; then ARM, whose widths say nothing of how many units there are
VECTOR_FLAGS = (
    "sse2",
    "avx",
    "avx2",
    "fma",
    "avx512f",
    "avx512_bf16",
    "amx_bf16",
    "asimd",
    "sve",
)
# what version 1 of control groups writes where there is no limit lies just below 2**63
NO_LIMIT = 2.0**60


def first_processor() -> dict[str, str]:
    """The first processor's entries of /proc/cpuinfo, {} where there is none."""
    lines = _text("proc/cpuinfo").split("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def vector_flags() -> tuple[str, ...]:
    """Which vector units the system names, of those that peaks are counted by."""
    info = first_processor()
    flags = f"{info.get('flags', '')} {info.get('Features', '')}".split()
    return tuple(flag for flag in VECTOR_FLAGS if flag in flags)


def nominal_clock() -> float | None:
    """The nominal clock in Hz, None where the system names none.

    It is the one in the CPU's name ("@ 2.40GHz"), that of cpufreq, or its largest. "cpu MHz" is the
    clock of this moment on a bare machine, low where the core has nothing to do; only a virtual
    machine without cpufreq prints a constant there.
    """
    info = first_processor()
    named = re.search(r"@\s*([\d.]+)\s*GHz", info.get("model name", ""))
    if named:
        return float(named[1]) * 1e9
    folder = "sys/devices/system/cpu/cpu0/cpufreq"
    for name in ("base_frequency", "cpuinfo_max_freq"):
        kilohertz = _number(_text(f"{folder}/{name}"))
        if kilohertz:
            return kilohertz * 1e3
    virtual = "hypervisor" in info.get("flags", "").split()
    megahertz = _number(info.get("cpu MHz", ""))
    return megahertz * 1e6 if virtual and megahertz and not (ROOT / folder).exists() else None


def processors() -> list[int]:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def cores(among: list[int]) -> int | None:
    """How many cores these processors are: two that share a core count once. None where the system
    does not tell of each of them."""
    siblings = {
        _text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in among
    }
    return None if "" in siblings else len(siblings)


def data_caches(among: list[int]) -> dict[str, float]:
    """{level: byte} of the data caches of these processors, each counted once. {} where the system
    does not tell the size of each: which one is the last is not known then."""
    found: dict[str, dict[str, float]] = {}
    for cpu in among:
        folder = ROOT / f"sys/devices/system/cpu/cpu{cpu}/cache"
        for index in sorted(folder.glob("index*")):
            if _text(index / "type") == "Instruction":
                continue
            level, size = _text(index / "level"), _bytes(_text(index / "size"))
            if not (level and size):
                return {}
            shared = _text(index / "shared_cpu_list") or str(cpu)
            found.setdefault(f"L{level}", {})[shared] = size
    return {level: sum(sizes.values()) for level, sizes in sorted(found.items())}


def cpu_quota() -> float | None:
    """How many processors' time the control groups leave this process; None for all."""
    quotas = []
    for folder in _control_groups("cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if not quota:
            quota = _text(folder / "cpu.cfs_quota_us")
            period = _text(folder / "cpu.cfs_period_us")
        share, whole = _number(quota), _number(period)
        if share and whole and share > 0:
            quotas.append(share / whole)
    return min(quotas, default=None)


def memory_left() -> float | None:
    """The bytes that this process may still use: what is free, and what its control groups allow;
    None where the system tells neither."""
    limits = []
    for folder in _control_groups("memory"):
        texts = (_text(folder / name) for name in ("memory.max", "memory.limit_in_bytes"))
        limits += [limit for limit in map(_number, texts) if limit and limit < NO_LIMIT]
    free = re.search(r"MemAvailable:\s*(\d+) kB", _text("proc/meminfo"))
    if free:
        limits.append(float(free[1]) * 1024)
    return min(limits, default=None)


def _control_groups(controller: str) -> list[Path]:
    """The folders of this process's control groups for a controller, of both versions, each with
    those above it: the tightest limit counts."""
    folders = []
    for line in _text("proc/self/cgroup").splitlines() or ["0::/"]:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounted = [controllers, controller] if controllers else ["", "unified"]
        parts = Path(path.lstrip("/")).parts
        for base in mounted:
            top = ROOT / "sys/fs/cgroup" / base
            folders += [top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return folders


def _bytes(text: str) -> float | None:
    """A size as the kernel prints it ("36864K", "36M") in byte; None where it is not one, or 0."""
    scales = {"K": 1024.0, "M": 1024.0**2, "G": 1024.0**3}
    value = _number(text.rstrip("KMG"))
    return value * scales.get(text[-1:], 1.0) if value else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _text(path: str | Path) -> str:
    """The text of a file under ROOT; "" where it is not there or cannot be read."""
    try:
        return (ROOT / path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
