"""The sandbox: bubblewrap around a bare Python, one for each submission. Only plain JSON comes out,
of bounded size.

In it are the shared libraries, Python, numpy and its neighbours, `inside/`, and a copy of the
course library without its questions' topics, this grader and whatever the question asks for; all
read-only but 16 MB of /tmp. No network, no environment, a user of its own. A solution runs in the
same way, but with the whole library beside it.
"""

import ast
import atexit
import compileall
import difflib
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy

try:
    import fcntl
except ImportError:  # Windows, which has the unsafe draft only
    fcntl = None  # type: ignore[assignment]

import roofline_lib
from roofline_lib.grading.inside.protocol import (
    WHOLE_NOTEBOOK,
    Ready,
    Reply,
    Start,
    Unreadable,
    from_line,
    to_line,
)
from roofline_lib.grading.inside.serve import OUTPUT
from roofline_lib.grading.inside.syscalls import KINDS

_LINE = 8 * OUTPUT  # bytes of a reply: JSON may take six for one of a notebook's answers
_USERS = 1_900_000_000  # from here on, user numbers that nobody has
_OWN_PREFIX, _ALIVE = "roofline-grade-", "alive"  # folders of ours, and the sign in each
# a bare Python's options. Not -I, which is as bare but passes over the seed of hashes as well, so
# that a loop over a set of texts went another way each time
_BARE = ("-s", "-P", "-S", "-B")
PATIENCE = 30  # seconds for the sandbox itself, besides what a question may take
_OWN = Path(roofline_lib.__file__).resolve().parent
_PACKAGES = Path(numpy.__file__).resolve().parents[1]
_INSIDE = Path(__file__).parent / "inside"
# the sandbox is the first that the kernel ends when the machine is short of memory
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

# of what the system itself has installed, only the upper levels are searched for copies of the key
_LEVELS = dict.fromkeys(_SHARED, 2)
_EMPTY_FOLDER = ("--perms", "0555", "--size", "4096", "--tmpfs")
_EMPTY_FILE = ("--ro-bind", "/dev/null")

# prints "shut in" where a sandbox does what it must
_TRIAL = f"""
import sys, os, socket
sys.path[:0] = ['/course']
from inside import serve, syscalls
serve.drop_root({_USERS})
sys.path += ['/course/packages']
import numpy
syscalls.deny_system_calls(os.getpid())
try:
    socket.socket()
except PermissionError:
    print('shut in')
"""

RECIPE = """no sandbox here: {why}.
Marks need bubblewrap on Linux (apt-get install bubblewrap).
Elsewhere, or where it may make no namespaces, grade in a container:
  docker build -t roofline-grade -f - . <<'END'
  FROM python:3.12-slim
  RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap
  COPY . /course
  RUN pip install --no-cache-dir -e '/course[course]'
  WORKDIR /course
  END
  docker run --rm --privileged --network none \\
    -v "$PWD/submissions:/in:ro" -v "$PWD/marks:/out" roofline-grade \\
    python -m roofline_lib grade LESSON /in --out /out/marks.csv
For a first look without any protection: --unsafe-draft runs the notebooks as you, and says so in
the marks."""


class NoSandbox(RuntimeError):
    """Student code cannot be shut in on this machine."""


class NoNotebook(ValueError):
    """What was handed in is no notebook."""


class Broken(RuntimeError):
    """The sandbox ended before it replied."""


@dataclass(frozen=True)
class Places:
    """Where a sandboxed Python finds what it runs."""

    grader: str  # the folder with `inside`
    library: str  # the folder with roofline_lib
    packages: str  # the folder with numpy and its neighbours


_IN_SANDBOX = Places("/course", "/course/library", "/course/packages")


def serve_notebook(places):
    """The Python program that answers a student's tasks. The grader's folder leaves the path before
    a notebook runs."""
    return (
        f"import sys; sys.path[:0] = [{places.grader!r}]; from inside.serve import main; "
        f"sys.path[:1] = [{places.library!r}]; sys.path += [{places.packages!r}]; main()"
    )


def serve_key(places):
    """The Python program that runs a solution: see draw.py."""
    return (
        f"import sys; sys.path[:0] = [{places.library!r}]; sys.path += [{places.packages!r}]; "
        "from roofline_lib.grading.draw import serve_key; serve_key()"
    )


class Sandbox:
    """A running sandbox that has been handed one notebook; use it in a `with`.

    `library` is the folder of the roofline_lib in it, `program` what it runs: `serve_notebook` or
    `serve_key`. With `draft` it is no sandbox at all, but the same program run as you. It runs on
    one `processor`, where one is given.
    """

    def __init__(
        self, data, library, program, *, draft=False, stderr=subprocess.DEVNULL, processor=None
    ):
        uid = 0 if draft else _USERS + threading.get_native_id() % 100_000
        if draft:
            places = Places(str(_INSIDE.parent), str(library.parent), str(_PACKAGES))
            command = [sys.executable, *_BARE]
        else:
            places = _IN_SANDBOX
            command = [*_FIRST_TO_GO, *wrap(working_mode()(uid), library)]
        self.process = subprocess.Popen(
            [*command, "-c", program(places)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=_environment(draft),
        )
        try:
            self._send(to_line(Start(len(data), uid, processor)) + data)
        except BaseException:
            self.close()
            raise

    def ask(self, message, *kinds, seconds=0):
        """Send a message and give the reply, whose class is one of `kinds`. Broken where none comes
        within `seconds` and some patience."""
        self._send(to_line(message), seconds)
        return self.hear(*kinds, seconds=seconds)

    def hear(self, *kinds, seconds=0):
        """The next message, whose class, and those of its parts, are among `kinds`. Broken where
        none comes within `seconds` and some patience."""
        with self._ended_after(seconds):
            return from_line(self.process.stdout.readline(_LINE), *kinds)

    def _send(self, data, seconds=0):
        with self._ended_after(seconds):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    @contextmanager
    def _ended_after(self, seconds):
        timer = threading.Timer(seconds + PATIENCE, self.process.kill)
        timer.start()
        try:
            yield
        except (OSError, ValueError) as error:
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


def free_processors():
    """The numbers of the processors that this process may use; those that `a_processor` has given
    away among them."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


@contextmanager
def a_processor():
    """The number of a processor that nobody else in this process has meanwhile, so that a
    neighbour's threads take no time from it; None where all are taken."""
    with _LOCK:
        free = [one for one in free_processors() if one not in _TAKEN]
        mine = free[0] if free else None
        _TAKEN.add(mine)
    try:
        yield mine
    finally:
        with _LOCK:
            _TAKEN.discard(mine)


_LOCK = threading.Lock()
_TAKEN: set[int | None] = set()


class StudentSandbox(Sandbox):
    """A sandbox in which a submission's notebook answers tasks, with the names `without` of
    roofline_lib out of reach. NoNotebook where it was handed something else."""

    def __init__(self, data, *, without=(), draft=False, processor=None):
        library = library_copy(tuple(without))
        super().__init__(data, library, serve_notebook, draft=draft, processor=processor)
        try:
            hello = self.hear(Ready, Unreadable)
            if isinstance(hello, Unreadable):
                raise NoNotebook(hello.why)
        except BaseException:
            self.close()
            raise
        self.one_task = hello.one_task

    def answer(self, task):
        """The Reply to a task."""
        factor = WHOLE_NOTEBOOK if task.whole else 1
        return self.ask(task, Reply, seconds=3 * task.seconds * factor)


class KeySandbox(Sandbox):
    """A sandbox in which a solution draws inputs and answers them: see draw.py. The whole library
    is in it, and what goes wrong stands on stderr."""

    def __init__(self, data, *, draft=False):
        super().__init__(data, _OWN, serve_key, draft=draft, stderr=None)


def _environment(draft):
    """The environment of a sandboxed Python: threads few, hashes the same each time, and of our own
    what it cannot start without."""
    kept = ("SYSTEMROOT", "PATH") if draft else ("SYSTEMROOT",)
    return {
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",
        "MPLBACKEND": "agg",
        "LANG": "C.UTF-8",
        **{name: os.environ[name] for name in kept if name in os.environ},
    }


def as_root(uid):
    """bubblewrap's options where root starts it: a real user of its own, taken on inside
    (serve.drop_root)."""
    return ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


def as_user(uid):
    """The same for an ordinary user: a user namespace."""
    return ["--unshare-user", "--uid", str(uid), "--gid", str(uid)]


def wrap(user, library):
    """The bubblewrap command, up to and with Python and its options. `library` is the folder of the
    roofline_lib to show."""
    binds, program = _python_binds()
    binds |= {_IN_SANDBOX.packages: ("--ro-bind", str(_PACKAGES))}
    binds |= _covers(binds)
    binds |= {
        f"{_IN_SANDBOX.library}/roofline_lib": ("--ro-bind", str(library)),
        f"{_IN_SANDBOX.grader}/inside": ("--ro-bind", str(_INSIDE)),
    }
    for device in ("null", "zero", "random", "urandom"):
        binds[f"/dev/{device}"] = ("--dev-bind", f"/dev/{device}")
    parents = {str(parent) for path in binds for parent in Path(path).parents}
    folders = sorted(parents - {"/"} - set(binds))
    return [
        *(shutil.which("bwrap") or "bwrap", "--die-with-parent", "--new-session"),
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "sandbox", *user),
        *(word for folder in folders for word in ("--perms", "0755", "--dir", folder)),
        *(word for path, how in binds.items() for word in (*how, path)),
        *("--perms", "1777", "--size", str(16 << 20), "--tmpfs", "/tmp"),
        # the locks of multiprocessing stand here; a page each
        *("--perms", "1777", "--size", str(1 << 20), "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/", "--chdir", "/tmp"),
        *("--setenv", "LD_LIBRARY_PATH", "/python/lib"),
        *(program, *_BARE),
    ]


def _python_binds():
    """({place inside: bubblewrap's option that puts something there}, Python's own place inside)
    for Python and the shared libraries."""
    prefix = Path(os.path.realpath(sys.base_prefix))
    program = Path(os.path.realpath(sys.executable))
    binds = {path: _shown(path) for path in _SHARED if os.path.exists(path)}
    if prefix == Path("/usr"):
        inside = str(program)
    else:
        inside = str("/python" / program.relative_to(prefix))
        # not all of the prefix: a course may well lie in its src or share
        for name in ("lib", "lib64"):
            if (prefix / name).is_dir():
                binds[f"/python/{name}"] = _shown(str(prefix / name))
    binds[inside] = ("--ro-bind", str(program))
    return binds, inside


def _shown(path):
    """bubblewrap's option that shows a folder as it is: a link stays one."""
    return ("--symlink", os.readlink(path)) if os.path.islink(path) else ("--ro-bind", path)


def _covers(binds):
    """Something empty over each place where a bound folder would show a key, or packages that are
    not those of the course."""
    folders = {
        place: Path(source)
        for place, (how, source) in binds.items()
        if how == "--ro-bind" and os.path.isdir(source)
    }
    covers = {
        f"{place}/{found.relative_to(source)}": _EMPTY_FOLDER
        for place, source in folders.items()
        for pattern in ("site-packages", "dist-packages")
        for found in (*source.glob(pattern), *source.glob(f"python3*/{pattern}"))
        if found.is_dir() and not found.is_symlink()
    }
    secrets = {secret for source in folders.values() for secret in _secrets(source)}
    for secret in sorted(secrets | set(_copy_and_its_key(_OWN))):
        for place, source in folders.items():
            if secret.is_relative_to(source):
                inside = f"{place}/{secret.relative_to(source)}"
                if not any(inside.startswith(f"{cover}/") for cover in covers):
                    covers[inside] = _EMPTY_FOLDER if secret.is_dir() else _EMPTY_FILE
    return covers


@cache
def _secrets(folder):
    """What lies below a folder and has the key in it: copies of this library, unpacked and packed,
    whether or not they are the one that runs here, and what lies beside them in a checkout."""
    found, levels = [], _LEVELS.get(str(folder), math.inf)
    for where, folders, files in os.walk(folder):
        names = [name for name in (*folders, *files) if _is_copy(name)]
        found += [path for name in names for path in _copy_and_its_key(Path(where, name))]
        seen = () if len(Path(where).relative_to(folder).parts) >= levels else folders
        folders[:] = [name for name in seen if name not in (*names, "__pycache__")]
    return tuple(found)


def _is_copy(name):
    """Whether a file or folder of this name holds the library; pip leaves a `~oofline_lib` where it
    was stopped. What an installer writes beside it lists names only."""
    return "oofline_lib" in name and not name.endswith((".dist-info", ".egg-info", ".pth"))


def _copy_and_its_key(path):
    """The real places of a copy of the library, and of the key beside it in a checkout."""
    copy = Path(os.path.realpath(path))
    beside = ("solutions", "tests", ".git") if (copy.parent / "solutions").is_dir() else ()
    return [copy, *(copy.parent / name for name in beside if (copy.parent / name).exists())]


@cache
def working_mode():
    """Which bubblewrap mode works on this machine, `as_root` or `as_user`; NoSandbox, with a way
    out, where neither does."""
    if not sys.platform.startswith("linux") or not shutil.which("bwrap"):
        raise NoSandbox(RECIPE.format(why="bubblewrap (the command bwrap) is not installed"))
    if platform.machine() not in KINDS:
        known = " and ".join(KINDS)
        why = f"its system-call filter knows {known}, not {platform.machine()}"
        raise NoSandbox(RECIPE.format(why=why))
    for mode in (as_root, as_user) if os.geteuid() == 0 else (as_user,):
        ran = subprocess.run(
            [*wrap(mode(_USERS), library_copy(())), "-c", _TRIAL],
            capture_output=True,
            text=True,
            env={},
        )
        if ran.stdout == "shut in\n":
            return mode
    raise NoSandbox(RECIPE.format(why=f"bubblewrap says: {ran.stderr.strip()[-300:] or 'nothing'}"))


def _kept_out(folder, names):
    """What no sandbox sees of the library. Of the questions the topics are kept out, with their
    references; what stays is `rl.check`, which then finds none."""
    if Path(folder) == _OWN / "questions":
        return set(names) - {"__init__.py"}
    return {"course", "grading", "__main__.py", "__pycache__"} & set(names)


def _own_folder():
    """A new folder that goes with this process: at its end or, where it was killed, at the next
    run's beginning. A lock that only a living process holds tells the two apart."""
    folder = tempfile.mkdtemp(prefix=_OWN_PREFIX)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    if fcntl:
        sign = os.open(f"{folder}/{_ALIVE}", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(sign, fcntl.LOCK_EX)
        sweep(Path(tempfile.gettempdir()))
    return folder


def sweep(temporary):
    """Remove what runs that were killed have left in the temporary folder."""
    for left in temporary.glob(f"{_OWN_PREFIX}*/{_ALIVE}"):
        with suppress(OSError):  # somebody else's, or in use
            sign = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(sign, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left.parent, ignore_errors=True)
            finally:
                os.close(sign)


@cache
def library_copy(without):
    """The folder of a roofline_lib that lacks its questions' topics, this grader, and the code of
    the functions, classes, modules and packages that `without` names; ValueError for a name that is
    none."""
    folder = _own_folder()
    package = Path(folder) / "roofline_lib"
    shutil.copytree(_OWN, package, ignore=_kept_out)
    names = set()
    for path in package.rglob("*.py"):
        modules = {path.stem, *path.relative_to(package).parts[:-1]}
        names |= modules | _take_out(without, path, whole=bool(modules & set(without)))
    if left := set(without) - names:
        public = [name for name in names if not name.startswith("_")]
        near = {close for name in left for close in difflib.get_close_matches(name, public)}
        raise ValueError(
            f"without names nothing in roofline_lib: {', '.join(sorted(left))}; "
            f"near it are {', '.join(sorted(near)) or 'no names'}"
        )
    compileall.compile_dir(folder, quiet=2)
    return package


def _take_out(names, path, whole):
    """Put an error in the place of the code of what a module defines: of all of it, or of the
    functions and classes among `names`. Gives the names of its functions and classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = [node for node in tree.body if hasattr(node, "name")]
    taken = [node for node in tree.body if whole or getattr(node, "name", None) in names]
    kept = _helpers_called_on_import(tree)
    for function in (inner for node in taken for inner in ast.walk(node)):
        if isinstance(function, ast.FunctionDef) and not _is_kept(function.name, kept):
            said = f"{function.name} is out of reach in this question"
            function.body = ast.parse(f"raise NotImplementedError({said!r})").body
    if taken:
        path.write_text(ast.unparse(tree), encoding="utf-8")
    return {node.name for node in defined}


def _is_kept(name, helpers):
    return name.startswith("__") or name in helpers


def _helpers_called_on_import(tree):
    """The private functions that a module calls while it is imported, for the fields of a class for
    example: without them it could not be imported."""
    waiting, found = list(tree.body), set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(node.func.id)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return {name for name in found if name.startswith("_")}
