"""What a sandbox shows, allows and hides, and questions of a folder of one's own."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.grading import FIRST, ROOT, grade, ran, read, rows, source, write

import roofline_lib as rl
from roofline_lib.grading import sandbox
from roofline_lib.grading.draw import run_key
from roofline_lib.grading.inside import syscalls
from roofline_lib.grading.inside.protocol import (
    Ended,
    Task,
)
from roofline_lib.grading.judging import grade_one
from roofline_lib.grading.solutions import solution, solution_folders
from roofline_lib.grading.submissions import Submission

# The sandbox


@pytest.fixture(
    params=[sandbox.as_root, sandbox.as_user] if os.geteuid() == 0 else [sandbox.as_user]
)
def user(request, monkeypatch):
    """Both modes of bubblewrap, where there are two."""
    monkeypatch.setattr(sandbox, "working_mode", lambda: request.param)


def reply_inside(body, **options):
    """What the sandbox replies when it has called a function of this body with 3."""
    book = {
        "cells": [
            {
                "cell_type": "code",
                "source": "def f(n):\n" + "\n".join(f"    {line}" for line in body.splitlines()),
            }
        ]
    }
    with sandbox.StudentSandbox(json.dumps(book).encode(), **options) as box:
        prelude = "import roofline_lib as rl"
        return box.answer(Task("f", ["[3]"], whole=False, seconds=2, wall=7, prelude=prelude))


def values_inside(body, **options):
    """([the function's value or error], how it ended)."""
    reply = reply_inside(body, **options)
    return [json.loads(line) for line in reply.lines[1:]], reply.ended


def test_a_plain_call(user):
    assert values_inside("return n + 1") == ([{"value": 4}], "done")


def test_the_same_each_time(user):
    """Hashes of texts, and what is drawn without a seed: equal runs give equal marks."""
    body = (
        "import random, numpy\n"
        "order = list({f'{i}' for i in range(99)})\n"
        "return [order, random.random(), numpy.random.rand()]"
    )
    first, second = (values_inside(body) for _ in range(2))
    assert first == second and "value" in first[0][0]


def test_what_is_to_be_seen(user):
    body = (
        "import os\nreturn [sorted(os.listdir('/')), sorted(os.environ), os.listdir('/tmp'), "
        "os.getuid() > 1e9, os.getpid() < 9]"
    )
    (listed, environment, home, is_nobody, own_processes) = values_inside(body)[0][0]["value"]
    assert set(listed) <= {
        "course",
        "dev",
        "python",
        "tmp",
        "usr",
        "lib",
        "lib32",
        "lib64",
        "libx32",
    }
    assert set(environment) <= {
        "OPENBLAS_NUM_THREADS",
        "MALLOC_ARENA_MAX",
        "PYTHONHASHSEED",
        "HOME",
        "MPLBACKEND",
        "LANG",
        "PWD",
        "LD_LIBRARY_PATH",
    }
    assert home == [] and is_nobody and own_processes


@pytest.mark.parametrize(
    "call",
    [
        "os.fork()",
        "os.kill(1, 9)",
        "os.kill(-1, 9)",
        "os.kill(os.getppid(), 9)",
        "socket.socket()",
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
        "os.execv('/usr/bin/true', ['true'])",
        "os.posix_spawn(sys.executable, ['python'], {})",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), {0})",
        "os.memfd_create('x')",
        "os.pidfd_open(os.getppid())",
        "socket.socket(socket.AF_UNIX)",
        "os.chroot('/tmp')",
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "fcntl.fcntl(0, 10, 9)",
        "os.setxattr('/tmp', 'system.posix_acl_default', b'1')",
        "os.setxattr('/tmp', 'user.x', b'1', follow_symlinks=False)",
        "os.setxattr(os.open('/tmp', 0), 'system.posix_acl_default', b'1')",
        "fcntl.fcntl(open(fcntl.__file__), fcntl.F_SETLEASE, fcntl.F_RDLCK)",
        "fcntl.fcntl(os.open('/tmp', 0), fcntl.F_NOTIFY, fcntl.DN_CREATE)",
        "fcntl.fcntl(open(os.__file__), 1036, (2).to_bytes(8, 'little'))",
        "fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
    ],
)
def test_system_calls_that_are_refused(user, call):
    (value,), ended = values_inside(
        f"import fcntl, os, socket, resource, sys\n{call}\nreturn 'done'"
    )
    assert ended == "done" and value["error"].startswith("PermissionError"), value


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/course/x",
        "/course/library/x",
        "/course/inside/serve.py",
        "/course/packages/x",
        "/dev/x",
        "/usr/lib/x",
    ],
)
def test_nothing_but_tmp_can_be_written(user, path):
    assert "error" in values_inside(f"open({path!r}, 'a')\nreturn 1")[0][0]
    assert values_inside("open('/tmp/x', 'w').write('abc')\nreturn open('/tmp/x').read()")[0] == [
        {"value": "abc"}
    ]


def test_threads_of_one_notebook_take_no_time_of_another(user):
    """62 threads that hash: on a processor of their own they slow down nobody else."""
    body = "import os\nreturn sorted(os.sched_getaffinity(0))"
    with sandbox.a_processor() as mine:
        assert values_inside(body, processor=mine)[0] == [{"value": [mine]}]
        with sandbox.a_processor() as another:
            assert mine != another


def test_threads_of_multiprocessing(user):
    (value,), _ = values_inside(
        "from multiprocessing.dummy import Pool\n"
        "with Pool(2) as pool:\n"
        "    return pool.map(abs, [1, -n])"
    )
    assert value == {"value": [1, 3]}


def test_shared_memory_is_small(user):
    (value,), _ = values_inside("open('/dev/shm/x', 'wb').write(bytes(2 << 20))")
    assert "No space left" in value["error"]


def test_limits(user):
    assert values_inside("return len(bytearray(2 << 30))")[0][0]["error"].startswith("MemoryError")
    assert (
        "File too large" in values_inside("open('/tmp/x', 'wb').truncate(1 << 30)")[0][0]["error"]
    )
    names = "CPU", "AS", "NPROC", "NOFILE", "FSIZE", "CORE"
    limits = values_inside(
        "import resource\n"
        f"return [resource.getrlimit(getattr(resource, 'RLIMIT_' + name)) for name in {names}]"
    )[0]
    others = [[most, most] for most in (1 << 30, 64, 64, 16 << 20, 0)]
    assert limits == [{"value": [[2, 3], *others]}]
    assert values_inside("while True: pass") == ([], "out of time")
    # the kernel's word counts, whatever is measured afterwards
    by_signal = "import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)"
    assert values_inside(by_signal) == ([], "out of time")
    deaf = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    assert values_inside(deaf) == ([], "out of time")
    assert reply_inside("return list(range(10 ** 6))").ended == Ended.TOO_MUCH_OUTPUT
    assert values_inside("import os\nos._exit(3)") == ([], "stopped")
    threads = (
        "import threading\ndone = []\nt = threading.Thread(target=done.append, args=(n,))\n"
        "t.start()\nt.join()\nreturn done"
    )
    assert values_inside(threads)[0] == [{"value": [3]}]


def test_own_namespaces_and_nothing_left_running(user):
    with sandbox.StudentSandbox(b'{"cells": []}') as box:
        inner = Path(f"/proc/{box.process.pid}/task/{box.process.pid}/children").read_text().split()
        for kind in ("net", "pid", "ipc", "uts", "mnt"):
            assert os.readlink(f"/proc/{inner[0]}/ns/{kind}") != os.readlink(
                f"/proc/self/ns/{kind}"
            )
        assert Path(f"/proc/{inner[0]}/oom_score_adj").read_text() == "1000\n"
    end = time.monotonic() + 5
    while any(Path(f"/proc/{pid}/cwd").exists() for pid in inner) and time.monotonic() < end:
        time.sleep(0.01)
    assert not [pid for pid in inner if Path(f"/proc/{pid}/cwd").exists()]


def test_a_sandbox_that_breaks_costs_the_question_that_broke_it(monkeypatch):
    class Breaks(sandbox.StudentSandbox):
        def answer(self, task):
            if task.name == "layer_intensity":
                self.process.kill()
                self.process.wait()  # else it may answer before it dies
            return super().answer(task)

    data = json.dumps(solution(FIRST, solution_folders())).encode()
    asked, tables = run_key(data, ["ada"], "")
    monkeypatch.setattr("roofline_lib.grading.judging.StudentSandbox", Breaks)
    got = grade_one(Submission("ada", data), asked, tables["ada"], 5)
    assert {name: outcome.word for name, outcome in got.outcomes.items()} == {
        name: "stopped" if name == "layer_intensity" else "right" for name in tables["ada"]
    }
    assert got.note == "layer_intensity: stopped"


def test_what_a_question_asks_for_is_out_of_reach(user):
    calls = {
        "gemm": "return rl.gemm(n, n, n).flops",
        "operators": "return rl.critical_size('house chip', 'fp32')",
        "Transformer": "return rl.transformer('llama-2-7b').parameters",
    }
    for name, body in calls.items():
        assert "value" in values_inside(body)[0][0]
        assert "out of reach" in values_inside(body, without=(name,))[0][0]["error"]
    assert (
        "error" in values_inside("import roofline_lib.questions.intensity")[0][0]
        and "error" in values_inside("import roofline_lib.grading")[0][0]
    )
    assert values_inside(
        "return rl.machine('house chip').ridge_point('fp32')", without=("operators", "tiling")
    )[0] == [{"value": 10.0}]
    with pytest.raises(ValueError, match="nothing_of_the_kind"):
        sandbox.library_copy(("nothing_of_the_kind",))


def test_a_package_is_out_of_reach_as_a_whole():
    copy = sandbox.library_copy(("checks",))
    left = (copy / "checks/judging.py").read_text(encoding="utf-8")
    assert "def within" in left and "within is out of reach" in left


def test_no_copy_of_the_library_has_what_was_taken_out():
    """No line of a function that is out of reach is left, not even of those that it is made of."""
    copy = sandbox.library_copy(("operators",))
    left = (copy / "operators.py").read_text(encoding="utf-8")
    tree = ast.parse((ROOT / "roofline_lib/operators.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "gemm" in {function.name for function in functions}
    for function in functions:
        for line in function.body[1:]:
            assert ast.unparse(line) not in left
    copy = sandbox.library_copy(())
    assert [path.name for path in (copy / "questions").glob("*.py")] == ["__init__.py"]
    assert not (copy / "grading").exists()


def run_filter(program, number, arguments=(0, 0), arch=None, kind="x86_64"):
    """A reading of the filter by hand: what the kernel would do with a system call."""
    arch = syscalls.AUDIT_ARCHITECTURES[kind] if arch is None else arch
    steps = [program[i : i + 8] for i in range(0, len(program), 8)]
    at, value = 0, None
    while True:
        step = steps[at]
        code, yes, no, k = (
            int.from_bytes(step[:2], "little"),
            step[2],
            step[3],
            int.from_bytes(step[4:], "little"),
        )
        at += 1
        if code == 0x20:
            value = {0: number, 4: arch, 16: arguments[0], 24: arguments[1]}[k]
        elif code == 0x06:
            return {
                0x7FFF0000: "allow",
                0x80000000: "kill",
                0x50001: "refuse",
                0x50026: "not there",
            }[k]
        else:
            at += yes if {0x15: value == k, 0x45: bool(value & k), 0x35: value >= k}[code] else no


@pytest.mark.parametrize("kind", syscalls.KINDS)
def test_filter(kind):
    calls = syscalls.program(77, kind)

    def verdict(call, *arguments, **rest):
        number = call if isinstance(call, int) else getattr(call, kind)
        return run_filter(calls, number, (*arguments, 0, 0)[:2], kind=kind, **rest)

    assert verdict(syscalls.CLONE, 0x11) == "refuse"
    assert verdict(syscalls.CLONE, 0x3D0F00) == "allow"
    assert verdict(syscalls.CLONE3) == "not there"
    for call in (syscalls.KILL, syscalls.TGKILL):
        assert verdict(call, 77) == "allow"
        assert {verdict(call, pid) for pid in (1, 78, 0, 2**32 - 1)} == {"refuse"}
    assert [verdict(syscalls.PRLIMIT, pid) for pid in (0, 77)] == ["allow", "allow"]
    assert [verdict(syscalls.PRLIMIT, pid) for pid in (1, 78)] == ["refuse", "refuse"]
    ordinary = (0, 1, 2, 3, 4, 5, 6, 7, 1030)  # copies, flags and locks
    assert {verdict(syscalls.FCNTL, 4, command) for command in ordinary} == {"allow"}
    others = {*range(100), *range(1024, 1100), 2**31} - set(ordinary)
    assert {verdict(syscalls.FCNTL, 4, command) for command in others} == {"refuse"}
    denied = [number for call in syscalls.DENIED for number in syscalls.numbers(call, kind)]
    assert {verdict(number) for number in denied} == {"refuse"}
    assert len(set(denied)) == len(denied)
    assert verdict(1 << 30) == "refuse" and verdict(0, arch=3) == "kill"
    assert verdict({"x86_64": 0, "aarch64": 63}[kind]) == "allow"  # read


def test_no_call_has_dropped_out_of_the_filter():
    """Written out once more: a line lost from the table would be noticed by nothing else."""
    names = """
    fork vfork execve execveat
    tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open pidfd_getfd
    ptrace process_vm_readv process_vm_writev process_madvise kcmp
    socket unshare setns
    mount umount2 pivot_root chroot open_by_handle_at
    open_tree move_mount fsopen fsmount mount_setattr
    shmget msgget semget mq_open memfd_create memfd_secret
    setxattr lsetxattr fsetxattr setxattrat
    io_uring_setup keyctl add_key request_key
    bpf perf_event_open userfaultfd personality
    setpriority sched_setaffinity sched_setscheduler sched_setattr sched_setparam ioprio_set
    migrate_pages move_pages process_mrelease
    """
    assert [call.name for call in syscalls.DENIED] == names.split()


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("kind", syscalls.KINDS)
def test_the_kernel_has_the_same_numbers_for_these_calls(kind):
    """Held against the headers that the kernel's own sources make, where they are installed."""
    header = Path(HEADERS[kind])
    if not header.exists():
        pytest.skip(f"no {header} here")
    text = header.read_text(encoding="utf-8")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    official = {name: int(number) for name, number in found}
    looked_at = ("CLONE", "CLONE3", "FCNTL", "KILL", "TGKILL", "PRLIMIT")
    for call in (*syscalls.DENIED, *(getattr(syscalls, name) for name in looked_at)):
        number = getattr(call, kind)
        is_newer = number is not None and number > max(official.values())
        assert is_newer or number == official.get(call.name), call


def test_checks_know_no_answer_in_the_sandbox():
    (value,), _ = values_inside(
        "verdict = rl.check('intensity.gemm-flops', 2.147)\nreturn [verdict.right, verdict.message]"
    )
    assert value["value"][0] is False and "no reference" in value["value"][1]
    assert rl.check("intensity.gemm-flops", 2.147).right


# A folder of one's own


def own_cells():
    """The cells of the worked example in docs/teaching.md."""
    section = (
        (ROOT / "docs/teaching.md").read_text(encoding="utf-8").split("## Your own questions")[1]
    )
    texts = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return [
        {
            "cell_type": "code",
            "id": name,
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": text,
        }
        for name, text in zip(("5e0f1c2a", "b7d39e40"), texts, strict=True)
    ]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    write(
        folder / "mine" / FIRST,
        energy={"cells": own_cells(), "metadata": {}, "nbformat": 4, "nbformat_minor": 5},
    )
    subprocess.run(
        [
            sys.executable,
            ROOT / "tools/make_exercises.py",
            "--solutions",
            "mine",
            "--out",
            "handout",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    handout = json.loads(
        (folder / "handout" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8")
    )
    right, wrong = json.loads(json.dumps(handout)), json.loads(json.dumps(handout))
    for book, factor in ((right, "1e-12"), (wrong, "1e-9")):
        cell = next(cell for cell in book["cells"] if cell["id"] == "5e0f1c2a")
        cell["source"] = source(cell).replace(
            "...", f"{factor} * (flops * picojoules_per_flop + bytes_moved * picojoules_per_byte)"
        )
    write(folder / "in", right=right, wrong=wrong)
    return folder


def test_a_folder_of_ones_own_adds_questions(own):
    handout = json.loads((own / "handout" / FIRST / f"{FIRST}.ipynb").read_text(encoding="utf-8"))
    added = [source(cell) for cell in handout["cells"][len(read("exercises", FIRST)["cells"]) :]]
    assert added[0].startswith("def joules(flops, bytes_moved,") and added[0].endswith(
        "    return ...  # your answer"
    )
    assert added[1:] == ["print(joules(1e12, 1e9, 0.5, 60))"]
    ran(handout)
    done = grade("01", own / "in", "--out", own / "m.csv", "--solutions", own / "mine")
    assert done.returncode == 0, done.stderr
    found = rows(own / "m.csv")
    assert {
        student: (row["joules"], row["score"], row["max_score"]) for student, row in found.items()
    } == {"right": ("1", "1", "6"), "wrong": ("0", "0", "6")}


def test_a_folder_of_ones_own_replaces_a_lesson(own, tmp_path):
    only = json.loads((own / "mine" / FIRST / "energy.ipynb").read_text(encoding="utf-8"))
    write(tmp_path / "mine" / FIRST, **{FIRST: only})
    assert solution(FIRST, solution_folders(tmp_path / "mine"))["cells"] == only["cells"]
    write(tmp_path / "mine" / "99_a_lesson_of_mine", **{"99_a_lesson_of_mine": only})
    done = grade("99", own / "in", "--out", tmp_path / "m.csv", "--solutions", tmp_path / "mine")
    assert done.returncode == 0 and rows(tmp_path / "m.csv")["right"]["score"] == "1"


@pytest.fixture(scope="module")
def packages_with_copies(tmp_path_factory):
    """A folder of packages in which copies of the library lie that are not the one that runs."""
    packages = tmp_path_factory.mktemp("installed")
    packages.chmod(0o755)  # to be read by the sandbox's own user
    hidden = shutil.ignore_patterns("__pycache__", "tests")
    for found in sandbox._PACKAGES.glob("numpy*"):
        shutil.copytree(found, packages / found.name, ignore=hidden)
    installed = ("roofline_lib", "~oofline_lib", "other/vendor/roofline_lib", "course/roofline_lib")
    for name in installed:
        shutil.copytree(sandbox._OWN, packages / name, ignore=hidden)
    shutil.copytree(sandbox._OWN, packages / "hidden_place", ignore=hidden)
    (packages / "linked").mkdir()
    (packages / "linked/roofline_lib").symlink_to(packages / "hidden_place")
    (packages / "course/solutions").mkdir()
    (packages / "course/solutions/answers.ipynb").write_text("the key")
    (packages / "roofline_lib-0.1.0-py3-none-any.whl").write_bytes(b"the key")
    return packages


def test_no_copy_of_the_library_shows_a_key_inside(user, packages_with_copies, monkeypatch):
    """Whichever copy is imported, and wherever others are installed."""
    monkeypatch.setattr(sandbox, "_PACKAGES", packages_with_copies)
    look = (
        "import os\nfound = []\nfor folder, _, files in os.walk('/'):\n"
        "    if '/questions' in folder or folder.endswith('/solutions'):\n"
        "        found += [folder + '/' + name for name in files]\n"
        "    found += [folder + '/' + name for name in files if name.endswith('.whl') and "
        "'roofline' in name and os.path.getsize(folder + '/' + name)]\n"
        "return [name for name in found if '/questions/__' not in name]"
    )
    assert values_inside(look) == ([{"value": []}], "done")


def test_an_installed_copy_answers_no_question(user, packages_with_copies, monkeypatch):
    monkeypatch.setattr(sandbox, "_PACKAGES", packages_with_copies)
    attack = (
        "import sys\nsys.path.insert(0, '/course/packages')\n"
        "for name in [name for name in sys.modules if name.startswith('roofline_lib')]:\n"
        "    del sys.modules[name]\n"
        "from roofline_lib.questions import find_question\n"
        "return find_question('intensity.gemm-flops').reference()"
    )
    (value,), _ = values_inside(attack)
    assert "error" in value, value


def test_of_python_only_its_libraries_are_bound(user):
    """A course may lie in the prefix: /usr/local/src, /opt/conda/share."""
    (value,), _ = values_inside("import os\nreturn sorted(os.listdir('/python'))")
    assert set(value["value"]) <= {"bin", "lib", "lib64"}
    packages = "import glob\nreturn [glob.glob('/*/lib/python3*/*-packages/*')]"
    assert values_inside(packages)[0] == [{"value": [[]]}]
