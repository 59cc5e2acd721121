"""Runs inside the sandbox: takes a notebook, then one task after another, and gives back what the
student's function returned.

Nothing here knows a right answer. Each task is answered in a forked process of its own, under
limits of its own.
"""

import inspect
import json
import os
import random
import select
import signal
import sys
import time
import types
from contextlib import suppress

from .protocol import (
    WHOLE_NOTEBOOK,
    Ended,
    Facts,
    Raised,
    Ready,
    Reply,
    Returned,
    Start,
    Task,
    Unreadable,
    from_line,
    json_value,
    to_line,
)
from .slicing import code_cells, read_statements, slice_for
from .syscalls import deny_system_calls, hide_from_own_user

try:
    import resource
except ImportError:  # Windows, which has the unsafe draft only
    resource = None  # type: ignore[assignment]

# bytes that a student's process may hold, write into files, and give back as answers
MEMORY, FILES, OUTPUT = 1 << 30, 16 << 20, 1 << 20
OPEN_FILES, THREADS = 64, 64
_ANSWERS = 3  # the file number on which a student's process writes its answers


class Channel:
    """The line to the grader. It moves away from file numbers 0 and 1, where a notebook would
    print, and leaves nothing there."""

    def __init__(self):
        self._incoming = os.fdopen(os.dup(0), "rb")
        self._outgoing = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)

    def receive(self, kind):
        """The next message, of the class `kind`."""
        return from_line(self._incoming.readline(), kind)

    def receive_all(self, kind):
        """One message after another, until the grader has no more."""
        for line in self._incoming:
            yield from_line(line, kind)

    def read(self, size):
        return self._incoming.read(size)

    def send(self, message):
        self._outgoing.write(to_line(message))
        self._outgoing.flush()


def enter():
    """Begin in the sandbox: leave root, take the notebook. Gives (the channel
    to the grader, the notebook's bytes, whether this is a sandbox and no unsafe draft)."""
    channel = Channel()
    start = channel.receive(Start)
    if start.processor is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {start.processor})
    if start.uid:
        drop_root(start.uid)
    notebook = channel.read(start.size)
    import numpy.random  # noqa: F401  warm for every question

    import roofline_lib  # noqa: F401

    return channel, notebook, bool(start.uid)


def drop_root(uid):
    """Become the user `uid`, if root started the sandbox, and hide from the student's processes,
    which will be of the same user."""
    # where the kernel counts a user's threads in each namespace apart
    if os.getuid() == 0 or tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 14):
        resource.setrlimit(resource.RLIMIT_NPROC, (THREADS, THREADS))
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    hide_from_own_user()
    signal.signal(signal.SIGIO, signal.SIG_IGN)


def main():
    """Serve the grader: take a notebook, then answer each task with a reply."""
    channel, notebook, in_sandbox = enter()
    if resource:
        limit_resources()
    try:
        cells = code_cells(notebook)
    except ValueError as error:
        channel.send(Unreadable(str(error)))
        return
    can_fork = hasattr(os, "fork")
    channel.send(Ready(one_task=not can_fork))
    for task in channel.receive_all(Task):
        if not can_fork:  # Windows: one task a process
            lines = []
            answer(task, cells, lines.append)
            channel.send(Reply(lines, Ended.DONE))
            return
        channel.send(forked_answer(task, cells, in_sandbox))


def limit_resources():
    """The limits that this process and all that it forks have in common."""
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, FILES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))


def answer(task, cells, write):
    """Write one line of JSON on the notebook (Facts), then one for each input (Returned or
    Raised)."""
    # taken before any of the notebook is executed, which may patch json
    dumps, loads = json.dumps, json.loads
    reading = read_statements(cells, task.name)
    seed_generators()
    names = namespace(task.prelude)
    if task.whole:
        codes, seconds = [statement.code for statement in reading.statements], task.seconds / 4
    else:
        codes, seconds = slice_for(task.name, reading.statements, names), None
    errors = [error for code in codes if (error := execute(code, names, seconds))]
    function = names.get(task.name)
    facts = Facts(
        skipped=reading.skipped,
        untouched=reading.untouched,
        defined=callable(function),
        kind=kind_of(function) if task.name in names else "",
        error=described(errors[0]) if errors else "",
    )
    write(dumps(facts.__dict__))
    for text in task.inputs if callable(function) else ():
        try:
            line = dumps(Returned(json_value(function(*loads(text)))).__dict__)
        except BaseException as error:
            untouched = isinstance(error, NotImplementedError) and not error.args
            said = Returned(None) if untouched else Raised(described(error))
            line = dumps(said.__dict__)
        write(line)


def seed_generators():
    """Begin all that a notebook draws without a seed at the same place each time, so that it gets
    the same mark each time. Not so `numpy.random.default_rng()`, which asks the kernel."""
    import numpy.random

    random.seed(0)
    numpy.random.seed(0)


def namespace(prelude=""):
    """A fresh `__main__` that has the lesson's own imports."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__.update(display=lambda *_, **__: None, get_ipython=lambda: None)
    exec(prelude, module.__dict__)
    return module.__dict__


def execute(code, names, seconds):
    """Run one statement, come what may; give the exception that it ended with. `seconds` of CPU
    time where not None."""

    def stop(*_):
        raise TimeoutError("this statement ran out of time")

    timed = seconds and hasattr(signal, "setitimer")
    try:
        if timed:
            signal.signal(signal.SIGPROF, stop)
            signal.setitimer(signal.ITIMER_PROF, seconds)
        # `await` at the top, without an event loop, which would need a socket
        if code.co_flags & inspect.CO_COROUTINE:
            running = eval(code, names)
            with suppress(StopIteration):
                while True:
                    running.send(None)
        else:
            exec(code, names)
    except BaseException as error:
        return error
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


def kind_of(value):
    if isinstance(value, int | float):
        return "a number"
    return f"of type {type(value).__name__}"


def described(error):
    """An exception in words: a student's own may fail even at that."""
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return "an exception that cannot be printed"


def forked_answer(task, cells, in_sandbox):
    """`answer` in a process of its own, as a Reply."""
    seconds = task.seconds * (WHOLE_NOTEBOOK if task.whole else 1)
    end = time.monotonic() + min(2 * seconds + 3, task.wall)
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer_and_end(task, cells, send, seconds, in_sandbox)
        finally:
            os._exit(0)
    os.close(send)
    output, ended = read_answers(receive, end)
    os.close(receive)
    status, usage = wait_for(pid, moment_to_end=ended == Ended.STOPPED)
    if ended == Ended.STOPPED and status == 0:
        ended = Ended.DONE
    elif ended == Ended.STOPPED and used_up(status, usage, seconds):
        ended = Ended.OUT_OF_TIME
    return Reply(output.decode("utf-8", "replace").splitlines(), ended)


def used_up(status, usage, seconds):
    """Whether a process ended because its CPU seconds were used up, by the kernel's own count: what
    is measured afterwards may be a sixth less."""
    said_so = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
    return said_so or usage.ru_utime + usage.ru_stime >= seconds


def answer_and_end(task, cells, send, seconds, in_sandbox):
    """The life of a student's process: nothing is open but the pipe to its parent."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, place in ((nothing, 0), (nothing, 1), (nothing, 2), (send, _ANSWERS)):
        os.dup2(fd, place)
    os.closerange(_ANSWERS + 1, OPEN_FILES)
    # at the first the kernel sends SIGXCPU, which tells why; at the second it kills
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if in_sandbox:
        deny_system_calls(os.getpid())

    # os.write is bound now: the notebook may put another in its place
    def write(line, put=os.write):
        data = line.encode() + b"\n"
        while data:
            data = data[put(_ANSWERS, data) :]

    answer(task, cells, write)


def read_answers(receive, end):
    """(the bytes that a student's process wrote up to the time `end`, how it ended). STOPPED only
    says that it has shut the pipe."""
    output = bytearray()
    while select.select([receive], [], [], max(0, end - time.monotonic()))[0]:
        if len(output) > OUTPUT:
            return output, Ended.TOO_MUCH_OUTPUT
        piece = os.read(receive, 1 << 16)
        if not piece:
            return output, Ended.STOPPED
        output += piece
    return output, Ended.OUT_OF_TIME


def wait_for(pid, moment_to_end):
    """(status, resources used) of a process, which is killed unless it ends by itself: at once, or
    within a tenth of a second where it has a `moment_to_end`."""
    for pause in (0, 0.001, 0.01, 0.1) if moment_to_end else (0,):
        time.sleep(pause)
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
    os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return status, usage
