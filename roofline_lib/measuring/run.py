"""One run: every job of a device, timed one after the other, and the record of it."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from roofline_lib.extras import extra
from roofline_lib.measuring import cpu, gpu, links
from roofline_lib.measuring.jobs import Job, Setup, first_line, new_record, now
from roofline_lib.measuring.record import LEAST_REPEATS, Absent, Record, load
from roofline_lib.measuring.roofs import cold_peaks, sustained_by
from roofline_lib.measuring.whole_models import model_to_time
from roofline_lib.surroundings import in_browser
from roofline_lib.transformer import Transformer

RECORDED = "cpu_epyc_2_quick"  # shown where nothing can be measured


def measure(
    device: str = "auto",
    quick: bool = False,
    threads: int | None = None,
    repeats: int | None = None,
    progress: bool = True,
    command: str = "measure()",
    model: Transformer | str | None = None,
    ranks: int | None = None,
) -> Record:
    """Measure this machine and return the Record, which `save` writes and `sustained_roof` makes a
    machine of.

    `device` is "cpu", "gpu" (CUDA through torch or cupy), or "auto": the GPU where there is one.
    `quick` takes fewer sizes and shorter blocks. `threads` are those of a CPU, unless given one for
    every processor that this process may use and its control groups pay for; `repeats` is how often
    each point is timed, 7 unless given, 3 if `quick`. With a `model` (a Transformer, a preset's
    name, the path of a config.json, or "laptop" for a small one) its decode steps and prefill
    passes are timed instead of the sweeps, with random weights. With `ranks` collectives between so
    many GPUs are timed instead, or between processes where there are fewer than two GPUs; 0 takes
    all GPUs, or up to four processes. Ctrl-C ends early and returns what is there, with `finished`
    left None. In a browser's page, whose Python cannot see the machine, it says so and gives a
    record that ships with the course. ValueError for another device, fewer than 1 thread or more
    than there are processors, fewer than 3 repeats, "gpu" where there is none, a model that cannot
    be timed, and a model together with `ranks`.
    """
    if device not in ("auto", "cpu", "gpu"):
        raise ValueError(f"device must be auto, cpu or gpu; got {device!r}")
    if threads is None:
        threads = 1 if in_browser() else cpu.usable_threads()
    if repeats is None:
        repeats = 3 if quick else 7
    _check_counts(threads, repeats)
    if model is not None and ranks is not None:
        raise ValueError("model and ranks are timed one at a time; got both")
    timed = None if model is None else model_to_time(model)
    if in_browser():
        return _recorded(device)
    if ranks is not None:
        setup = links.prepare(device, quick, repeats, ranks or None)
    else:
        setup = _prepare(device, quick, threads, repeats, timed)
    load_before = _load()
    record = new_record(setup, command)
    points, absent, finished = [], list(setup.absent), None
    try:
        for job in _shown(setup.jobs, progress):
            try:
                points.append(job.run())
            except (MemoryError, RuntimeError) as error:
                absent.append(Absent(job.name, first_line(error)))
        finished = now()
    except KeyboardInterrupt:
        print(
            f"interrupted: the record holds {len(points)} of {len(setup.jobs)} points",
            file=sys.stderr,
        )
    finally:
        setup.close()
    return replace(
        record,
        finished=finished,
        settings=replace(record.settings, load_average=load_before + _load()),
        sustained=sustained_by(points, record.chip.capacities),
        cold_peaks=cold_peaks(points),
        absent=tuple(absent),
        points=tuple(points),
        samples=tuple(setup.samples),
        model=None if timed is None else _sizes(timed),
    )


def _recorded(device: str) -> Record:
    """What a page's Python has of a machine: a record that ships with the course, and a line that
    says so."""
    if device == "gpu":
        raise ValueError("device 'gpu' is not to be had by a page's Python; choose cpu")
    record = load(RECORDED)
    print(
        "A page's Python cannot measure the machine under it. This is a record that ships with "
        f"the course, {RECORDED}: {record.chip.units} {record.chip.unit_name}s of an "
        f"{record.chip.name}, {record.started[:10]}."
    )
    return record


def _check_counts(threads, repeats):
    """ValueError where either is out of range, naming that one alone."""
    processors = os.cpu_count() or 1
    if not 1 <= threads <= processors:
        raise ValueError(
            f"threads must be 1 to {processors}, at most one for each processor; got {threads}"
        )
    if repeats < LEAST_REPEATS:
        raise ValueError(f"repeats must be at least {LEAST_REPEATS} timed blocks; got {repeats}")


def _shown(jobs: Sequence[Job], progress: bool) -> Iterable[Job]:
    """The jobs, under a progress bar where one is wanted."""
    return extra("tqdm.auto").tqdm(jobs, unit="point") if progress else jobs


def _prepare(device, quick, threads, repeats, model) -> Setup:
    library = None if device == "cpu" else gpu.library()
    refused: tuple[Absent, ...] = ()
    if library:
        try:
            return gpu.prepare(library, quick, repeats, model)
        except gpu.GpuUnusable as error:
            if device == "gpu":
                raise ValueError(f"device 'gpu' must run kernels; {error}") from error
            refused = (Absent("gpu", str(error)),)
    if device == "gpu":
        raise ValueError(
            "device 'gpu' needs torch or cupy and a CUDA device that it sees; choose cpu"
        )
    setup = cpu.prepare(threads, quick, repeats, model)
    return replace(setup, absent=(*refused, *setup.absent))


def _sizes(model):
    """The fields of a Transformer that differ from their defaults."""
    return {
        each.name: getattr(model, each.name)
        for each in fields(model)
        if getattr(model, each.name) != each.default
    }


def _load():
    """The system's load of the last minute, in a tuple; an empty one where it is not told."""
    return (round(os.getloadavg()[0], 2),) if hasattr(os, "getloadavg") else ()
