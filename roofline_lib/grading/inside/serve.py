"""Runs inside the sandbox: takes a notebook, then one question a line on stdin, and gives back what
the student's function returned.

Nothing here knows a right answer. Each question is answered in a forked process of its own, under
limits of its own.
"""

import ast
import inspect
import json
import math
import os
import random
import select
import signal
import sys
import time
import types
from contextlib import suppress

try:
    import resource
except ImportError:  # Windows, which has the unsafe draft only
    resource = None

MEMORY, FILES, OUTPUT = 1 << 30, 16 << 20, 1 << 20  # bytes
OPEN_FILES, THREADS = 64, 64
DRAWS = 20  # drawn inputs a question, besides its edge cases
WHOLE = 3  # times the CPU seconds, where the whole notebook is executed


def plain(value, depth=0):
    """A returned value as JSON has it; what is neither a number, a text nor a list of them becomes
    {"odd": its type}."""
    if value is ...:
        return None
    if hasattr(value, "tolist") and type(value).__module__.partition(".")[0] == "numpy":
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, complex):
        return value.real if value.imag == 0 else {"odd": "complex"}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, list | tuple) and depth < 8:
        return [plain(item, depth + 1) for item in value]
    return float(value) if hasattr(type(value), "__float__") else {"odd": type(value).__name__[:60]}


def namespace(prelude=""):
    """A fresh `__main__` that has the lesson's own imports."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__dict__.update(display=lambda *_, **__: None, get_ipython=lambda: None)
    exec(prelude, module.__dict__)
    return module.__dict__


def told(error):
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except BaseException:
        return "an exception that cannot be printed"


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


def answer(task, cells, write):
    """Write one JSON line on the notebook, then one for each input: {"value": ...} or {"error":
    ...}."""
    from cells import slice_for, statements

    dumps, loads, name = json.dumps, json.loads, task["name"]
    nodes, skipped, untouched = statements(cells, name)
    names = namespace(task["prelude"])
    codes = [code for _, code, _ in nodes] if task["whole"] else slice_for(name, nodes, names)
    errors = [
        error
        for code in codes
        if (error := execute(code, names, task["whole"] and task["seconds"] / 4))
    ]
    function = names.get(name)
    facts = {
        "skipped": skipped,
        "untouched": untouched,
        "defined": callable(function),
        "is": ""
        if name not in names
        else "a number"
        if isinstance(function, int | float)
        else f"of type {type(function).__name__}",
    }
    write(dumps(facts | {"error": told(errors[0]) if errors else ""}))
    for text in task["inputs"] if callable(function) else ():
        try:
            line = dumps({"value": plain(function(*loads(text)))})
        except BaseException as error:
            untouched = isinstance(error, NotImplementedError) and not error.args
            line = dumps({"value": None} if untouched else {"error": told(error)})
        write(line)


def forked_answer(task, cells, locked):
    """`answer` in a process of its own: {"lines": [...], "ended": "done", "out of time", "too much
    output" or "stopped"}."""
    seconds = task["seconds"] * (WHOLE if task["whole"] else 1)
    receive, send = os.pipe()
    wall = min(2 * seconds + 3, task.get("wall", math.inf))
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for fd, new in ((null, 0), (null, 1), (null, 2), (send, 3)):
                os.dup2(fd, new)
            os.closerange(4, OPEN_FILES)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            if locked:
                from lock import lock

                lock(os.getpid())
            answer(task, cells, lambda line, put=os.write: put_all(put, line.encode() + b"\n"))
        finally:
            os._exit(0)
    os.close(send)
    output, ended, end = bytearray(), "stopped", time.monotonic() + wall
    while True:
        if not select.select([receive], [], [], max(0, end - time.monotonic()))[0]:
            ended = "out of time"
        elif len(output) > OUTPUT:
            ended = "too much output"
        elif piece := os.read(receive, 1 << 16):
            output += piece
            continue
        break
    os.close(receive)
    # it has shut the pipe: a moment to end by itself
    for pause in (0, 0.001, 0.01, 0.1) if ended == "stopped" else (0,):
        time.sleep(pause)
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
    else:
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    if ended == "stopped":
        spent = usage.ru_utime + usage.ru_stime
        ended = "done" if status == 0 else "out of time" if spent >= 0.9 * seconds else "stopped"
    return {"lines": output.decode("utf-8", "replace").splitlines(), "ended": ended}


def put_all(put, data):
    while data:
        data = data[put(3, data) :]


def references(data):
    """Of a solution notebook: (its questions, its imports, a function that draws a student's inputs
    and runs the solution on them)."""
    questions, functions, imports, names = [], {}, [], namespace()

    def marked(function, library=None, *, edges=(), draw, without=(), tolerance=1e-6):
        points = cell["metadata"].get("nbgrader", {}).get("points")
        if points is None:
            raise SystemExit(
                f"no points in the cell that marks {function.__name__}; run tools/make_exercises.py --solutions DIR"
            )
        questions.append(
            {
                "name": function.__name__,
                "points": points,
                "without": sorted(without),
                "tolerance": tolerance,
            }
        )
        functions[function.__name__] = (function, edges, draw)

    sys.modules["roofline_lib.grading"] = types.SimpleNamespace(marked=marked)
    for cell in json.loads(data)["cells"]:
        grader = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            imports += [
                ast.unparse(node)
                for node in tree.body
                if isinstance(node, ast.Import | ast.ImportFrom)
                and getattr(node, "module", None) != "roofline_lib.grading"
            ]
            exec(compile(tree, f"<cell {cell.get('id')}>", "exec"), names)
        elif grader.get("grade"):
            questions.append(
                {"name": grader["grade_id"], "points": grader["points"], "by_hand": True}
            )

    def drawn(seed, student):
        table = {}
        for name, (function, edges, draw) in functions.items():
            rng = random.Random(repr((seed, student, name)))
            texts = [json.dumps(inputs) for inputs in (*edges, *(draw(rng) for _ in range(DRAWS)))]
            table[name] = {
                "inputs": texts,
                "answers": [plain(function(*json.loads(text))) for text in texts],
            }
        return table

    return questions, "\n".join(dict.fromkeys(imports)), drawn


def become(uid):
    """Leave root, if that is what started the sandbox, and hide from the student's processes, which
    will have the same user."""
    # where a user's threads are counted apart
    if os.getuid() == 0 or tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 14):
        resource.setrlimit(resource.RLIMIT_NPROC, (THREADS, THREADS))
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    from lock import hide

    hide()
    signal.signal(signal.SIGIO, signal.SIG_IGN)


def main():
    """Serve the parent: a header line and the notebook's bytes, then a line and a reply for each
    question."""
    channel_in, channel_out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)

    def reply(**value):
        channel_out.write(json.dumps(value).encode() + b"\n")
        channel_out.flush()

    header = json.loads(channel_in.readline())
    sys.path[:] = [header["library"], os.path.dirname(__file__), *sys.path, header["packages"]]
    if header["uid"]:
        become(header["uid"])
    data = channel_in.read(header["size"])
    import numpy  # noqa: F401  warm for every question

    import roofline_lib  # noqa: F401

    if header["reference"]:
        questions, prelude, drawn = references(data)
        reply(questions=questions, prelude=prelude)
        for line in channel_in:
            reply(drawn=drawn(**json.loads(line)))
        return
    if resource:
        for limit, most in (
            (resource.RLIMIT_AS, MEMORY),
            (resource.RLIMIT_FSIZE, FILES),
            (resource.RLIMIT_NOFILE, OPEN_FILES),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(limit, (most, most))
    from cells import code_cells

    try:
        cells = code_cells(data)
    except ValueError as error:
        return reply(problem=str(error))
    reply(cells=len(cells), once=not hasattr(os, "fork"))
    for line in channel_in:
        task = json.loads(line)
        if hasattr(os, "fork"):
            reply(**forked_answer(task, cells, bool(header["uid"])))
        else:  # Windows: one question a process
            lines = []
            answer(task, cells, lines.append)
            return reply(lines=lines, ended="done")


if __name__ == "__main__":
    main()
