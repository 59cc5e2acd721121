"""The system-call filter under which student code runs: seccomp, written out by hand for the two
kinds of Linux machine that we know.

Used inside the sandbox, stands alone. Namespaces (sandbox.py) hide the host; this keeps a
question's process from its neighbours.
"""

import ctypes
import platform
import struct
from typing import NamedTuple


class Call(NamedTuple):
    """A system call and its number on each kind of machine; None where there is none."""

    name: str
    x86_64: int | None
    aarch64: int | None


AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
KINDS = tuple(AUDIT_ARCHITECTURES)

# Allowed with a look at the arguments, each in its own way (see `program`).
CLONE = Call("clone", 56, 220)
CLONE3 = Call("clone3", 435, 435)
FCNTL = Call("fcntl", 72, 25)
KILL = Call("kill", 62, 129)
TGKILL = Call("tgkill", 234, 131)
PRLIMIT = Call("prlimit64", 302, 261)

# Refused whatever the arguments are.
DENIED = (
    # new processes and programs
    Call("fork", 57, None),
    Call("vfork", 58, None),
    Call("execve", 59, 221),
    Call("execveat", 322, 281),
    # signals to other processes
    Call("tkill", 200, 130),
    Call("rt_sigqueueinfo", 129, 138),
    Call("rt_tgsigqueueinfo", 297, 240),
    Call("pidfd_send_signal", 424, 424),
    Call("pidfd_open", 434, 434),
    Call("pidfd_getfd", 438, 438),
    # looks into other processes
    Call("ptrace", 101, 117),
    Call("process_vm_readv", 310, 270),
    Call("process_vm_writev", 311, 271),
    Call("process_madvise", 440, 440),
    Call("kcmp", 312, 272),
    # the network, and namespaces
    Call("socket", 41, 198),
    Call("unshare", 272, 97),
    Call("setns", 308, 268),
    # mounts, and files by handle
    Call("mount", 165, 40),
    Call("umount2", 166, 39),
    Call("pivot_root", 155, 41),
    Call("chroot", 161, 51),
    Call("open_by_handle_at", 304, 265),
    Call("open_tree", 428, 428),
    Call("move_mount", 429, 429),
    Call("fsopen", 430, 430),
    Call("fsmount", 432, 432),
    Call("mount_setattr", 442, 442),
    # memory that no limit counts
    Call("shmget", 29, 194),
    Call("msgget", 68, 186),
    Call("semget", 64, 190),
    Call("mq_open", 240, 180),
    Call("memfd_create", 319, 279),
    Call("memfd_secret", 447, 447),
    # extended attributes of files in /tmp, which stay there for the next question
    Call("setxattr", 188, 5),
    Call("lsetxattr", 189, 6),
    Call("fsetxattr", 190, 7),
    Call("setxattrat", 463, 463),
    # system calls that the kernel makes in our place
    Call("io_uring_setup", 425, 425),
    # keys
    Call("keyctl", 250, 219),
    Call("add_key", 248, 217),
    Call("request_key", 249, 218),
    # tracing, and odd ways of execution
    Call("bpf", 321, 280),
    Call("perf_event_open", 298, 241),
    Call("userfaultfd", 323, 282),
    Call("personality", 135, 92),
    # scheduling, and where memory lies
    Call("setpriority", 141, 140),
    Call("sched_setaffinity", 203, 122),
    Call("sched_setscheduler", 144, 119),
    Call("sched_setattr", 314, 274),
    Call("sched_setparam", 142, 118),
    Call("ioprio_set", 251, 30),
    Call("migrate_pages", 256, 238),
    Call("move_pages", 279, 239),
    Call("process_mrelease", 448, 448),
)

# One instruction of the filter is (code, steps on if true, steps on if false, value).
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _GIVE = 0x20, 0x15, 0x45, 0x35, 0x06
# Where struct seccomp_data has the call's number, the architecture and the first two arguments.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_EPERM, _ENOSYS = 1, 38
_ALLOW = (_GIVE, 0, 0, 0x7FFF0000)
_KILL_PROCESS = (_GIVE, 0, 0, 0x80000000)
_REFUSE = (_GIVE, 0, 0, 0x00050000 | _EPERM)
_NOT_THERE = (_GIVE, 0, 0, 0x00050000 | _ENOSYS)

_CLONE_THREAD = 0x10000
_X32_CALLS = 1 << 30  # the numbers from here on are of the x32 kind
# What may be done to an open file: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK,
# F_SETLKW, F_DUPFD_CLOEXEC. Of the others some send signals, and some keep a host's file from being
# opened (leases) or use memory that no limit counts.
_FILE_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 1030)

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2


def numbers(call, kind):
    """The numbers that a call has on a kind of machine: one or none."""
    number = getattr(call, kind)
    return () if number is None else (number,)


def program(pid, kind):
    """The filter for the process `pid`, as the kernel takes it: threads yes, processes no; signals
    and limits for itself only."""

    def rule(call, *then):
        return [
            step
            for number in numbers(call, kind)
            for step in ((_EQUAL, 0, len(then), number), *then)
        ]

    def own_process_only(call, *also):
        allowed = (pid, *also)
        equal = [(_EQUAL, len(allowed) - i, 0, one) for i, one in enumerate(allowed)]
        return rule(call, (_LOAD, 0, 0, _FIRST_ARGUMENT), *equal, _REFUSE, _ALLOW)

    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCHITECTURES[kind]),
        _KILL_PROCESS,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_CALLS),
        _REFUSE,
    ]
    for call in DENIED:
        steps += rule(call, _REFUSE)
    # the C library then takes clone, whose flags a filter can read
    steps += rule(CLONE3, _NOT_THERE)
    steps += rule(
        CLONE, (_LOAD, 0, 0, _FIRST_ARGUMENT), (_ANY_BIT, 0, 1, _CLONE_THREAD), _ALLOW, _REFUSE
    )
    commands = [(_EQUAL, len(_FILE_COMMANDS) - i, 0, one) for i, one in enumerate(_FILE_COMMANDS)]
    steps += rule(FCNTL, (_LOAD, 0, 0, _SECOND_ARGUMENT), *commands, _REFUSE, _ALLOW)
    steps += own_process_only(KILL) + own_process_only(TGKILL) + own_process_only(PRLIMIT, 0)
    return b"".join(struct.pack("<HBBI", *step) for step in (*steps, _ALLOW))


def hide_from_own_user():
    """No other process of the same user may look into this one."""
    _prctl(_PR_SET_DUMPABLE, 0)


def deny_system_calls(pid):
    """Put this process, whose id is `pid`, under the filter for good. OSError where the kernel
    refuses."""
    code = program(pid, platform.machine())
    steps = ctypes.create_string_buffer(code)
    # struct sock_fprog: how many steps, and where they are
    filter_ = struct.pack("@HP", len(code) // 8, ctypes.addressof(steps))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(filter_))


def _prctl(option, *values):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *values, *[0] * (4 - len(values))):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")
