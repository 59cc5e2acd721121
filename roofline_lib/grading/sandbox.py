"""The sandbox: bubblewrap around a bare Python, one for each submission. Only plain JSON comes out,
of bounded size.

In it are the shared libraries, Python, numpy and its neighbours, `inside/`, and a copy of the
course library without its questions' topics, this grader and whatever the question asks to derive;
all read-only but 16 MB of /tmp. No network, no environment, a user of its own.
"""

import ast
import atexit
import compileall
import difflib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy

import roofline_lib
from roofline_lib.grading.inside.lock import KINDS

LINE = 8 << 20  # bytes of one reply, at most
_USERS = 1_900_000_000  # from here on, user numbers that nobody has
PATIENCE = 30  # seconds for the sandbox itself, besides what a question may take
_OWN, _PACKAGES = (
    Path(roofline_lib.__file__).resolve().parent,
    Path(numpy.__file__).resolve().parents[1],
)
_INSIDE = Path(__file__).parent / "inside"
# when the machine is short of memory
_FIRST_TO_GO = ("/bin/sh", "-c", 'echo 1000 > /proc/self/oom_score_adj; exec "$@"', "sh")
_SHARED = (
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libx32",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
)

RECIPE = """no sandbox here: {why}.
Marks need bubblewrap on Linux (apt-get install bubblewrap). Elsewhere, or where it may make no namespaces, grade in a container:
  docker build -t roofline-grade -f - . <<'END'
  FROM python:3.12-slim
  RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap
  COPY . /course
  RUN pip install --no-cache-dir /course
  WORKDIR /course
  END
  docker run --rm --privileged --network none -v "$PWD/submissions:/in:ro" -v "$PWD/marks:/out" roofline-grade \\
    python -m roofline_lib grade LESSON /in --out /out/marks.csv
For a first look without any protection: --unsafe-draft runs the notebooks as you, and says so in the marks."""


class NoSandbox(RuntimeError):
    """Student code cannot be shut in on this machine."""


class Broken(RuntimeError):
    """The sandbox ended before it replied."""


class Sandbox:
    """A running sandbox that holds one notebook. `ask` sends a record and waits for the reply; use
    it in a `with`."""

    def __init__(self, data, *, without=(), reference=False, draft=False):
        library, uid = (
            library_copy(tuple(without)),
            0 if draft else _USERS + threading.get_native_id() % 100_000,
        )
        if draft:
            command = [sys.executable, "-I", "-S", "-B", str(_INSIDE / "serve.py")]
            seen = {"library": str(library), "packages": str(_PACKAGES)}
        else:
            command = [*_FIRST_TO_GO, *wrap(way_in()(uid), library), "/course/inside/serve.py"]
            seen = {"library": "/course/library", "packages": "/course/packages"}
        environment = {
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "1",
            "PYTHONHASHSEED": "0",
            "HOME": "/tmp",
            "MPLBACKEND": "agg",
            "LANG": "C.UTF-8",
        }
        environment |= {
            name: os.environ[name]
            for name in ("SYSTEMROOT", "PATH")
            if name in os.environ and (draft or name != "PATH")
        }
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            stderr=None if reference else subprocess.DEVNULL,
        )
        try:
            self.hello = self.ask(
                {"uid": uid, "size": len(data), "reference": reference, **seen}, data
            )
        except BaseException:
            self.close()
            raise

    def ask(self, record, data=b"", seconds=0):
        """Send a record (and bytes) and give the reply. Broken where none comes within `seconds`
        and some patience."""
        timer = threading.Timer(seconds + PATIENCE, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(record).encode() + b"\n" + data)
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline(LINE))
        except (OSError, ValueError, RecursionError) as error:
            raise Broken("the sandbox ended without a reply") from error
        finally:
            timer.cancel()

    def close(self):
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def as_root(uid):
    """bubblewrap's options where root starts it: a real user of its own, taken on inside
    (serve.become)."""
    return ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


def as_user(uid):
    """The same for an ordinary user: a user namespace."""
    return ["--unshare-user", "--uid", str(uid), "--gid", str(uid)]


def wrap(user, library):
    """The bubblewrap command, up to and with Python."""
    prefix, program = (
        Path(os.path.realpath(sys.base_prefix)),
        Path(os.path.realpath(sys.executable)),
    )
    binds = {
        path: ("--symlink", os.readlink(path)) if os.path.islink(path) else ("--ro-bind", path)
        for path in _SHARED
        if os.path.exists(path)
    }
    if prefix == Path("/usr"):
        binds[str(program)] = ("--ro-bind", str(program))
    else:
        binds["/python"] = ("--ro-bind", str(prefix))
        program = "/python" / program.relative_to(prefix)
    binds["/course/packages"] = ("--ro-bind", str(_PACKAGES))
    # where these hold this package or its solutions, they stay out
    for path, (how, here) in list(binds.items()):
        for secret in (_OWN, _OWN.parent / "solutions"):
            if how == "--ro-bind" and secret.is_dir() and secret.is_relative_to(here):
                binds[f"{path}/{secret.relative_to(here)}"] = (
                    "--perms",
                    "0555",
                    "--size",
                    "4096",
                    "--tmpfs",
                )
    binds |= {
        "/course/library": ("--ro-bind", str(library)),
        "/course/inside": ("--ro-bind", str(_INSIDE)),
    }
    binds |= {
        f"/dev/{device}": ("--dev-bind", f"/dev/{device}")
        for device in ("null", "zero", "random", "urandom")
    }
    command = [
        shutil.which("bwrap") or "bwrap",
        "--die-with-parent",
        "--new-session",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--hostname",
        "sandbox",
        *user,
    ]
    for parent in sorted(
        {str(parent) for path in binds for parent in Path(path).parents} - {"/"} - set(binds)
    ):
        command += ["--perms", "0755", "--dir", parent]
    for path, how in binds.items():
        command += [*how, path]
    return [
        *command,
        "--perms",
        "1777",
        "--size",
        str(16 << 20),
        "--tmpfs",
        "/tmp",
        "--remount-ro",
        "/",
        "--chdir",
        "/tmp",
        "--setenv",
        "LD_LIBRARY_PATH",
        "/python/lib",
        str(program),
        "-I",
        "-S",
        "-B",
    ]


@cache
def way_in():
    """`as_root` or `as_user`, whichever shuts a process in here; NoSandbox, with a way out, where
    neither does."""
    if not sys.platform.startswith("linux") or not shutil.which("bwrap"):
        raise NoSandbox(RECIPE.format(why="bubblewrap (the command bwrap) is not installed"))
    if platform.machine() not in KINDS:
        raise NoSandbox(
            RECIPE.format(
                why=f"its system-call filter knows {' and '.join(KINDS)}, not {platform.machine()}"
            )
        )
    trial = (
        f"import sys, os, socket; sys.path[:0] = ['/course/inside']; import serve, lock; serve.become({_USERS}); sys.path += "
        "['/course/packages']; import numpy; lock.lock(os.getpid())\ntry: socket.socket()\nexcept PermissionError: print('shut in')"
    )
    for user in (as_root, as_user) if os.geteuid() == 0 else (as_user,):
        ran = subprocess.run(
            [*wrap(user(_USERS), library_copy(())), "-c", trial],
            capture_output=True,
            text=True,
            env={},
        )
        if ran.stdout == "shut in\n":
            return user
    raise NoSandbox(RECIPE.format(why=f"bubblewrap says: {ran.stderr.strip()[-300:] or 'nothing'}"))


def _kept_out(folder, names):
    """What no sandbox sees of the library. Of the questions the topics are kept out, with their
    references; what stays is `rl.check`, which then finds none."""
    if Path(folder) == _OWN / "questions":
        return set(names) - {"__init__.py"}
    return {"grading", "__main__.py", "__pycache__"} & set(names)


@cache
def library_copy(without):
    """A folder with a copy of the course library that lacks its questions' topics, this grader and the
    `without`: functions, classes, modules."""
    folder = tempfile.mkdtemp(prefix="roofline-grade-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    package = Path(folder) / "roofline_lib"
    shutil.copytree(_OWN, package, ignore=_kept_out)
    left, names = set(without), set()
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = (
            tree.body
            if path.stem in without
            else [node for node in tree.body if getattr(node, "name", None) in without]
        )
        names |= {path.stem} | {
            node.name for node in tree.body if not getattr(node, "name", "_").startswith("_")
        }
        left -= {path.stem} | {getattr(node, "name", None) for node in nodes}
        for function in (inner for node in nodes for inner in ast.walk(node)):
            if isinstance(function, ast.FunctionDef) and not function.name.startswith("__"):
                function.body = ast.parse(
                    f"raise NotImplementedError('{function.name} is out of reach in this question')"
                ).body
        if nodes:
            path.write_text(ast.unparse(tree), encoding="utf-8")
    if left:
        near = sorted({close for name in left for close in difflib.get_close_matches(name, names)})
        raise ValueError(
            f"without names nothing in roofline_lib: {', '.join(sorted(left))}; near it are {', '.join(near) or 'no names'}"
        )
    compileall.compile_dir(folder, quiet=2)
    return Path(folder)
