"""A gallery of machines: what their systems and drivers leave out is absent and said, and no roof
is shown that nobody saw."""

import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from measured_points import made

import roofline_lib as rl
from roofline_lib import own_curve
from roofline_lib.measuring import (
    NoNominalRoof,
    clocks,
    command,
    counted_peaks,
    cpu,
    cuda,
    gpu,
    load,
    loaded_clock,
    measure,
    nominal_roof,
    sustained_roof,
    system,
    validate,
    verdict,
)
from roofline_lib.measuring.record import Chip
from roofline_lib.measuring.roofs import counted_from, sustained_by
from roofline_lib.quantities import quantity

CPU_RECORDS = ("cpu_epyc_2", "cpu_epyc_2_quick", "cpu_xeon_4")
AVX2 = "fpu sse2 avx avx2 fma"
ONE_CPU = {"sys/fs/cgroup/cpu.max": "100000 100000"}


@dataclass(frozen=True)
class Fake:
    """A system: the lines of /proc/cpuinfo for a processor, its other files, what is seen of it."""

    cpuinfo: str
    processors: int = 2
    files: dict = field(default_factory=dict)
    clock: float | None = None
    units: int = 2
    levels: tuple = ()
    threads: int = 2
    a_cycle: int | None = None  # fp32 FLOP of one core, None where no peak can be counted
    absent: frozenset = frozenset()


def caches(cpu=0, size="32K", **other):
    """One data cache in sysfs, and a leaf of instructions that must not count."""
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache"
    texts = {"level": "1", "type": "Data", "size": size, "shared_cpu_list": str(cpu)} | other
    found = {f"{folder}/index0/{name}": text for name, text in texts.items() if text is not None}
    return found | {f"{folder}/index1/type": "Instruction"}


def siblings(*lists):
    folder = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    return {folder.format(cpu): text for cpu, text in enumerate(lists)}


def x86(name, flags=AVX2, **other):
    lines = {"model name": name, **other, "flags": flags}
    return "\n".join(f"{key}\t: {value}" for key, value in lines.items())


TOLD = {**caches(0), **caches(1), **siblings("0", "1")}
GALLERY = {
    "ARM server, no clock anywhere": Fake(
        "CPU implementer\t: 0x41\nFeatures\t: fp asimd",
        files=siblings("0", "1") | caches(0) | caches(1),
        levels=("L1",),
        absent=frozenset({"clock"}),
    ),
    "ARM board, caches without a size": Fake(
        "Features\t: fp asimd",
        files=caches(0, None)
        | caches(1, None)
        | {"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "1800000"},
        clock=1.8e9,
        absent=frozenset({"caches", "cores"}),
    ),
    "not Linux": Fake("", absent=frozenset({"clock", "caches", "cores"})),
    "caches of 0K": Fake(
        x86("Xeon @ 2.50GHz"),
        files=TOLD | caches(1, "0K"),
        clock=2.5e9,
        a_cycle=32,
        absent=frozenset({"caches"}),
    ),
    "a blank cache size": Fake(
        x86("Xeon @ 2.50GHz"),
        files=TOLD | caches(0, ""),
        clock=2.5e9,
        a_cycle=32,
        absent=frozenset({"caches"}),
    ),
    "a cache in megabytes, and who shares it not said": Fake(
        x86("Xeon @ 2.50GHz"),
        files=TOLD | caches(0, "36M", shared_cpu_list=None),
        clock=2.5e9,
        levels=("L1",),
        a_cycle=32,
    ),
    "two threads a core": Fake(
        x86("Ryzen 7 5800X", **{"cpu MHz": "2200.0"}),
        processors=16,
        files={
            **siblings(*[f"{n % 8},{n % 8 + 8}" for n in range(16)]),
            **{key: text for n in range(16) for key, text in caches(n).items()},
            "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "4000000",
        },
        clock=4e9,
        units=8,
        threads=16,
        levels=("L1",),
        a_cycle=32,
    ),
    "an idle Atom, SSE only": Fake(
        x86("Atom(TM) CPU C2550 @ 2.40GHz", "fpu sse2", **{"cpu MHz": "1200.000"}),
        files=TOLD,
        clock=2.4e9,
        levels=("L1",),
        a_cycle=8,
    ),
    "an idle core and no clock in its name": Fake(
        x86("Core(TM) i5-13500", **{"cpu MHz": "800.000"}),
        files=TOLD,
        levels=("L1",),
        absent=frozenset({"clock"}),
    ),
    "a virtual machine's constant clock": Fake(
        x86("AMD EPYC", AVX2 + " hypervisor", **{"cpu MHz": "2596.096"}),
        files=TOLD,
        clock=2.596096e9,
        levels=("L1",),
        a_cycle=32,
    ),
    "AVX without FMA": Fake(
        x86("Xeon E5-2670 @ 2.60GHz", "sse2 avx"),
        files=TOLD,
        clock=2.6e9,
        levels=("L1",),
        a_cycle=16,
    ),
    "a container of one CPU": Fake(
        x86("EPYC 7763 @ 2.45GHz"),
        files=TOLD | ONE_CPU,
        clock=2.45e9,
        units=1,
        threads=1,
        levels=("L1",),
        a_cycle=32,
        absent=frozenset({"all processors"}),
    ),
    "a quota of version 1, in a group above": Fake(
        x86("EPYC 7763 @ 2.45GHz"),
        files=TOLD
        | {
            "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us": "150000",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "-1",
        },
        clock=2.45e9,
        units=1,
        threads=1,
        levels=("L1",),
        a_cycle=32,
        absent=frozenset({"all processors"}),
    ),
    "two sockets": Fake(
        x86("Xeon @ 2.50GHz"),
        processors=4,
        files={
            **siblings("0", "1", "2", "3"),
            **{k: t for n in range(4) for k, t in caches(n, "32K").items()},
        },
        clock=2.5e9,
        units=4,
        threads=4,
        levels=("L1",),
        a_cycle=32,
    ),
}


@pytest.fixture
def pretend(monkeypatch, tmp_path):
    """Let the system be one of the gallery."""

    def build(fake):
        text = "\n\n".join(fake.cpuinfo for _ in range(fake.processors))
        for path, content in ({"proc/cpuinfo": text} | fake.files).items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content + "\n")
        monkeypatch.setattr(system, "ROOT", tmp_path)
        monkeypatch.setattr(system, "processors", lambda: list(range(fake.processors)))

    return build


def without_clock(record):
    return replace(record, chip=replace(record.chip, clock=None))


def without_caches(record):
    return replace(
        record,
        chip=replace(record.chip, capacities={}),
        sustained=sustained_by(record.points, {}),
    )


@pytest.mark.parametrize("name", GALLERY)
def test_what_a_system_tells_is_read_and_what_it_does_not_is_said(name, pretend):
    fake = GALLERY[name]
    pretend(fake)
    assert cpu.usable_threads() == fake.threads
    setup = cpu.prepare(fake.threads, quick=True, repeats=3)
    chip = setup.chip
    assert chip.clock == (None if fake.clock is None else pytest.approx(fake.clock))
    assert (chip.units, tuple(chip.capacities)) == (fake.units, fake.levels)
    assert {missing.what for missing in setup.absent} == {"gemm fp16", *fake.absent}
    assert all(missing.why for missing in setup.absent) and chip.name
    record = replace(load("cpu_epyc_2_quick"), chip=chip)
    validate(replace(record, sustained=sustained_by(record.points, chip.capacities)))


@pytest.mark.parametrize("name", GALLERY)
def test_a_peak_is_counted_from_what_is_known_or_not_at_all(name, pretend):
    fake = GALLERY[name]
    pretend(fake)
    chip = cpu.describe(fake.threads)
    if fake.a_cycle is None:
        with pytest.raises(NoNominalRoof, match="not known|no clock"):
            counted_peaks(chip)
    else:
        peaks = counted_peaks(chip)
        assert peaks["fp32"] == pytest.approx(fake.units * fake.a_cycle * fake.clock)
        assert peaks["fp64"] == peaks["fp32"] / 2


def test_neon_is_counted_where_its_units_are_given():
    chip = Chip("CPU", "an ARM", 4, "core", 2e9, {}, vector_flags=("asimd",))
    assert counted_peaks(chip, vector_units=2)["fp32"] == 4 * 2 * 4 * 2 * 2e9


def test_arrays_stay_within_half_of_the_memory_that_is_left(pretend):
    """A pod of 512 MB on a processor with 256 MB of cache: 1 GB would be taken."""
    pretend(
        Fake(
            x86("EPYC @ 2.50GHz"),
            processors=1,
            files=siblings("0")
            | caches(0, "256M", level="3")
            | {
                "sys/fs/cgroup/memory.max": str(512 << 20),
                "proc/meminfo": "MemAvailable:   99999999 kB",
            },
        )
    )
    setup = cpu.prepare(1, quick=True, repeats=3)
    sizes = [job.run.args[1] for job in setup.jobs if job.run.func is cpu._stream]
    assert max(sizes) == 256 << 20
    assert any("memory" in missing.why for missing in setup.absent)
    (room,) = {job.run.args[3] for job in setup.jobs if job.run.func is cpu._product}
    assert (room.last_level, room.held) == (256 << 20, 256 << 20)


@pytest.mark.parametrize("name", CPU_RECORDS)
def test_without_caches_dram_is_what_the_largest_arrays_show(name):
    record = load(name)
    known, without = record.sustained.bandwidths, without_caches(record).sustained.bandwidths
    assert list(without) == ["DRAM"]
    assert 0.8 * known["DRAM"] < without["DRAM"] <= known["DRAM"]


def test_without_caches_small_arrays_show_no_dram():
    streams = [made(1.0, family="copy", working_set=size) for size in (1e5, 1e8)]
    assert sustained_by(streams, {}).bandwidths == {}


@pytest.mark.parametrize("change", [without_clock, without_caches])
def test_a_record_that_lacks_something_is_drawn_and_says_so(change):
    record = validate(change(load("cpu_epyc_2_quick")))
    explorer = rl.MeasuredExplorer(record, precision="fp32")
    assert "measured" in explorer.readout
    assert ("no clock" in explorer.readout.lower()) == (record.chip.clock is None)
    assert str(verdict(record.points[0], sustained_roof(record)))
    if record.chip.clock is None:
        with pytest.raises(NoNominalRoof, match="clock"):
            nominal_roof(record)


def test_without_a_roof_over_memory_the_explorer_is_empty_and_says_why():
    record = load("cpu_epyc_2_quick")
    bare = replace(record, sustained=replace(record.sustained, bandwidths={"L2": 1e11}))
    explorer = rl.MeasuredExplorer(bare, precision="fp32")
    assert "no stream that surely came from DRAM" in explorer.readout


def test_a_stream_above_the_roof_of_a_machine_without_caches_suspects_one():
    record = without_caches(load("cpu_epyc_2_quick"))
    fastest = max(record.select("copy"), key=lambda point: point.bandwidth)
    assert set(verdict(fastest, nominal_roof(record)).suspects) == {"cache level"}


def test_products_over_the_peak_of_an_idle_clock_suspect_the_clock():
    record = load("cpu_epyc_2_quick")
    idle = replace(record, chip=replace(record.chip, clock=8e8))
    fastest = max(record.select("gemm_n", precision="fp32"), key=lambda point: point.performance)
    found = verdict(fastest, nominal_roof(idle))
    assert found.ratio > 1.6 and "idle" in found.suspects["clock"] and "units" not in found.suspects


class FakeDriver:
    """libnvidia-ml: each call gives a number, refuses (None) or is missing."""

    def __init__(self, **figures):
        self.figures = figures

    def __getattr__(self, name):
        figures = self.figures
        if name in ("nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2"):
            return lambda *_: 0
        if name == "nvmlSystemGetDriverVersion":
            return lambda *_: 1
        short = name.removeprefix("nvmlDeviceGet")
        if short not in figures:
            raise AttributeError(f"undefined symbol: {name}")

        def call(device, *arguments):
            if figures[short] is None:
                return 3
            arguments[-1]._obj.value = figures[short]
            return 0

        return call


GPU = Chip("GPU", "NVIDIA GB10", 48, "SM", None, {"DRAM": 1e11})
DRIVERS = {
    "GB10": ({"MaxClockInfo": None, "MemoryBusWidth": 0, "EnforcedPowerLimit": None}, None),
    "driver 470": ({"MaxClockInfo": 1500, "EnforcedPowerLimit": 250000}, 1.5e9),
    "MIG": ({"MaxClockInfo": 1980, "ClockInfo": None, "PowerUsage": None}, 1.98e9),
    "asleep": ({"MaxClockInfo": 1980, "ClockInfo": 0, "PowerUsage": 0}, 1.98e9),
}


@pytest.mark.parametrize("name", DRIVERS)
def test_what_a_driver_does_not_give_is_left_out(name, monkeypatch):
    figures, clock = DRIVERS[name]
    monkeypatch.setattr(clocks.ctypes, "CDLL", lambda _: FakeDriver(**figures))
    nvml = clocks.Nvml("0000:01:00.0")
    chip, sample = nvml.complete(GPU), nvml.sample()
    assert chip.clock == clock and chip.memory_bus_bits is None and chip.driver is None
    assert (sample.clock, sample.power, sample.temperature) == (None, None, None)
    validate(replace(load("h200_a1"), chip=chip, samples=(replace(sample, at=0.0),)))


def fake_torch(attributes, cuda_version=None, hip=None, fails=None):
    """torch as far as a device is described: the attributes that this version has, and no fp8."""
    properties = SimpleNamespace(
        name="a GPU", multi_processor_count=4, total_memory=8 << 30, **attributes
    )

    def ones(*_, **__):
        if fails:
            raise RuntimeError(fails)

    return SimpleNamespace(
        __version__="2",
        version=SimpleNamespace(cuda=cuda_version, hip=hip),
        cuda=SimpleNamespace(get_device_properties=lambda _: properties, is_available=lambda: True),
        ones=ones,
        bfloat16=1,
        float16=2,
        float32=3,
    )


@pytest.mark.parametrize(
    ("torch", "levels", "software"),
    [
        (
            fake_torch({"major": 9, "minor": 4}, hip="6.2"),
            ["DRAM"],
            {"torch": "2", "hip": "6.2"},
        ),
        (
            fake_torch({"L2_cache_size": 4 << 20}, cuda_version="12.1"),
            ["DRAM", "L2"],
            {"torch": "2", "cuda": "12.1"},
        ),
    ],
    ids=["ROCm", "torch 2.5"],
)
def test_what_torch_does_not_tell_is_left_out(torch, levels, software, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    lib = cuda.Torch()
    device = lib.describe()
    assert list(device.capacities) == levels and device.card is None
    assert device.capability is None  # no kernel of CUDA's is compiled for these
    assert lib.versions() == software and "fp8" not in lib.precisions
    with pytest.raises(OSError, match="bus"):
        clocks.Nvml(device.pci_bus_id)


def test_a_gpu_that_runs_nothing_is_absent_with_its_reason(monkeypatch, tmp_path, capsys):
    said = "CUDA error: no kernel image is available for execution on the device"
    monkeypatch.setitem(sys.modules, "torch", fake_torch({}, fails=f"{said}\nand more"))
    monkeypatch.setattr(gpu, "library", lambda: "torch")
    monkeypatch.setattr(cpu, "_jobs", lambda *_: [])
    record = measure("auto", quick=True, progress=False)
    assert record.chip.kind == "CPU" and said in record.absent[0].why
    out = tmp_path / "mine.json"
    assert own_curve.main(["--device", "gpu", "--quick", "--out", str(out)]) == 2
    assert said in capsys.readouterr().err and not out.exists()


@pytest.mark.parametrize(
    ("printed", "units", "chip"),
    [
        ("NVIDIA H100 80GB HBM3", 132, "H100 SXM"),
        ("NVIDIA GeForce RTX 3090", 82, "RTX 3090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, "RTX 4090 Laptop"),
        ("Tesla V100-SXM2-32GB", 80, "V100 SXM2"),
        ("NVIDIA A100-SXM4-80GB", 108, "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", 108, "A100 80GB PCIe"),
        ("NVIDIA L40S", 142, "L40S"),
        ("Tesla T4", 40, "T4"),
        ("AMD Instinct MI300X", 304, "MI300X"),
        ("NVIDIA H100 NVL", 132, None),
        ("NVIDIA H200 NVL", 132, None),
        ("NVIDIA A100-PCIE-40GB", 108, None),
        ("NVIDIA GeForce RTX 3090 Ti", 84, None),
        ("NVIDIA GeForce RTX 4090 D", 114, None),
        ("NVIDIA RTX 6000 Ada Generation", 142, None),
        ("NVIDIA A10G", 80, None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, None),
        ("NVIDIA H100 80GB HBM3", 16, None),  # a slice that does not say so
        ("AMD Instinct MI250X", 110, None),  # one of its two dies
    ],
)
def test_a_name_as_drivers_print_it_finds_its_chip_or_none(printed, units, chip):
    record = load("h200_a1")
    made_up = replace(record, chip=replace(record.chip, name=printed, units=units))
    if chip is None:
        with pytest.raises(NoNominalRoof, match="catalogue"):
            nominal_roof(made_up)
    else:
        assert nominal_roof(made_up).name == chip and rl.machine(printed).name == chip


# The clock under load, and where a counted peak's factors come from


def test_the_chain_runs_and_its_steps_are_the_clock(monkeypatch):
    assert loaded_clock.chain()(1000) > 0
    monkeypatch.setattr(loaded_clock, "chain", lambda: lambda steps: steps / 3.1e9)
    loads = []
    assert loaded_clock.clock_under_load(lambda: loads.append(1)) == pytest.approx(3.1e9)
    assert len(loads) == loaded_clock.TRIES


def test_where_no_chain_runs_the_clock_is_absent_and_the_nominal_one_counts(monkeypatch):
    monkeypatch.setattr(loaded_clock.platform, "machine", lambda: "riscv64")
    setup = cpu.prepare(1, quick=True, repeats=3)
    assert setup.chip.clock_under_load is None
    assert "riscv64" in {one.what: one.why for one in setup.absent}["clock under load"]


def test_a_counted_peak_takes_the_clock_under_load_and_says_where_its_factors_come_from():
    chip = replace(load("cpu_xeon_4").chip, vector_flags=("avx2", "fma"), clock=2.5e9)
    faster = replace(chip, clock_under_load=3e9)
    assert counted_peaks(faster)["fp32"] == pytest.approx(counted_peaks(chip)["fp32"] * 3 / 2.5)
    told = counted_from(faster)
    assert set(told) == {"cores", "vector units", "lanes", "FLOP a lane", "clock"}
    assert told["vector units"].startswith("assumed") and told["clock"].startswith("measured")
    assert counted_from(chip)["clock"].startswith("read")
    record = replace(load("cpu_xeon_4"), chip=replace(faster, sources=told))
    assert validate(record).to_json()["machine"]["sources"] == told


# The own curve


def test_lab_measures_draws_and_names_the_plateau(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "measure", lambda *_, **__: load("cpu_epyc_2_quick"))
    out = tmp_path / "mine.json"
    assert own_curve.main(["--lab", "--out", str(out)]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert f"from m = {own_curve.plateau(load('cpu_epyc_2_quick'))}" in told
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("other", [["--links"], ["--model", "laptop"], ["--device", "gpu"]])
def test_lab_goes_with_a_cpus_products_alone(other, tmp_path, capsys):
    assert own_curve.main(["--lab", *other, "--out", str(tmp_path / "m.json")]) == 2
    assert capsys.readouterr().err.startswith("--lab draws the products of a CPU")
    assert list(tmp_path.iterdir()) == []


def test_the_curve_is_what_was_measured():
    fig, ax = plt.subplots()
    record = load("cpu_epyc_2_quick")
    own_curve.draw_own_curve(ax, record)
    points = record.select("gemm_m", precision="fp32")
    dots = ax.lines[1].get_ydata()
    assert np.allclose(dots, [point.performance / 1e9 for point in points])
    assert (ax.lines[0].get_ydata() >= 0.8 * dots).all()
    with pytest.raises(ValueError, match="products over m in fp8"):
        own_curve.draw_own_curve(ax, record, "fp8")
    plt.close(fig)


def test_each_memory_that_streams_show_has_a_level_line():
    """As high as its best stream, from where the smaller cache is full; the last one to the end."""
    fig, ax = plt.subplots()
    own_curve.draw_streams(ax, load("cpu_xeon_4"))
    own = load("cpu_xeon_4")
    levels = {line.get_ydata()[0]: line.get_xdata() for line in ax.lines if line.get_lw() == 2}
    for level, bandwidth in own.sustained.bandwidths.items():
        start, end = levels[bandwidth / 1e9]
        assert own.chip.capacities.get(level, end) == pytest.approx(end) and start < end
    labels = [text.get_text() for text in ax.texts]
    assert any(text.startswith("this machine, L") for text in labels)
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_ls() == ":"]
    for size, level in own.chip.caches:
        assert (f"{level} {quantity(size, 'byte')}" in labels) == (size in marks)
    assert len(marks) >= 3  # two of this machine at least, one of the H200
    assert any(text.startswith("DRAM 60.7 GB/s") for text in labels)
    plt.close(fig)


def test_streams_of_a_machine_without_known_caches_have_one_line():
    fig, ax = plt.subplots()
    known = load("cpu_epyc_2_quick")
    sustained = replace(known.sustained, bandwidths={"DRAM": 72e9})
    blind = replace(known, chip=replace(known.chip, capacities={}), sustained=sustained)
    own_curve.draw_streams(ax, blind)
    assert [text.get_text() for text in ax.texts][:1] == [
        "this machine, DRAM (caches unknown) 72 GB/s"
    ]
    with pytest.raises(ValueError, match="must hold streams"):
        own_curve.draw_streams(ax, replace(known, points=()))
    plt.close(fig)
