"""What a device module hands over to be timed, and how a call is timed."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from roofline_lib.measuring.record import Absent, Chip, Point, Record, Sample, Settings


@dataclass(frozen=True)
class Job:
    """One point to measure: its name for messages, and the function that measures it."""

    name: str
    run: Callable[[], Point]


@dataclass(frozen=True)
class Setup:
    """A device made ready. `samples` goes on filling while the device module's own thread adds to
    it, until `close` is called."""

    chip: Chip
    software: dict[str, str]
    settings: Settings
    jobs: list[Job]
    absent: tuple[Absent, ...] = ()
    samples: list[Sample] = field(default_factory=list)
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Pace:
    """How a call is timed: `repeats` blocks of about `block` seconds each, after at least `warm_up`
    seconds that do not count."""

    block: float
    warm_up: float
    repeats: int


def new_record(setup: Setup, command: str) -> Record:
    """A record of this moment, without points."""
    software = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "numpy": np.__version__,
        **setup.software,
    }
    return Record(
        command=command,
        started=now(),
        finished=None,
        chip=setup.chip,
        software=software,
        settings=setup.settings,
        absent=setup.absent,
    )


def now() -> str:
    """This moment in UTC, to the second, as text."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def settle(run: Callable[[int], float], pace: Pace) -> int:
    """Warm up, and return how many executions make one timed block. `run(count)` executes `count`
    times and returns the seconds that took.

    Executions are doubled until they last half a block and the warm-up has gone by: start-up and
    the grain of the timer do not count.
    """
    count, spent = 1, run(1)
    while True:
        elapsed = run(count)
        spent += elapsed
        if elapsed < pace.block / 2:
            count *= 2
        elif spent >= pace.warm_up:
            return count
