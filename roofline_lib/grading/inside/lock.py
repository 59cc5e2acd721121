"""The system-call filter under which student code runs: seccomp, written out by hand for the two
kinds of Linux machine that we know.

Used inside the sandbox, stands alone. Namespaces (sandbox.py) hide the host; this keeps a
question's process from its neighbours.
"""

import ctypes
import platform
import struct

# kind: audit number; clone, clone3; kill and tgkill; prlimit64; fcntl; all that is denied outright,
# in this order: new programs and
# processes, signals and looks into other processes, sockets and namespaces, mounts, memory that no
# limit counts, keys, tracing, scheduling.
_CALLS = {
    "x86_64": (
        0xC000003E,
        56,
        435,
        (62, 234),
        302,
        72,
        (
            57,
            58,
            59,
            322,
            200,
            129,
            297,
            424,
            434,
            438,
            101,
            310,
            311,
            440,
            312,
            41,
            272,
            308,
            165,
            166,
            155,
            161,
            304,
            428,
            429,
            430,
            432,
            442,
            29,
            68,
            64,
            240,
            319,
            447,
            425,
            250,
            248,
            249,
            321,
            298,
            323,
            135,
            141,
            203,
            144,
            314,
            142,
            251,
            256,
            279,
            448,
        ),
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        (129, 131),
        261,
        25,
        (
            221,
            281,
            130,
            138,
            240,
            424,
            434,
            438,
            117,
            270,
            271,
            440,
            272,
            198,
            97,
            268,
            40,
            39,
            41,
            51,
            265,
            428,
            429,
            430,
            432,
            442,
            194,
            186,
            190,
            180,
            279,
            447,
            425,
            219,
            217,
            218,
            280,
            241,
            282,
            92,
            140,
            122,
            119,
            274,
            118,
            30,
            238,
            239,
            448,
        ),
    ),
}
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _GIVE = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _REFUSE, _NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
KINDS = tuple(_CALLS)


def program(pid, kind):
    """The filter for the process `pid`: threads yes, processes no; signals and limits for itself
    only."""
    arch, clone, clone3, kills, prlimit, fcntl, denied = _CALLS[kind]

    def rule(number, *then):
        return [(_EQUAL, 0, len(then), number), *then]

    code = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, arch),
        (_GIVE, 0, 0, _KILL),
        # no calls of the x32 kind
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 1 << 30),
        (_GIVE, 0, 0, _REFUSE),
    ]
    for number in denied:
        code += rule(number, (_GIVE, 0, 0, _REFUSE))
    # the C library then takes clone, whose flags a filter can read
    code += rule(clone3, (_GIVE, 0, 0, _NOT_THERE))
    code += rule(
        clone,
        (_LOAD, 0, 0, 16),
        (_ANY_BIT, 0, 1, 0x10000),
        (_GIVE, 0, 0, _ALLOW),
        (_GIVE, 0, 0, _REFUSE),
    )
    # F_SETOWN, F_SETSIG, ..._EX
    sends = [
        step
        for command in (8, 10, 15)
        for step in ((_EQUAL, 0, 1, command), (_GIVE, 0, 0, _REFUSE))
    ]
    # a file could be told to send signals to others
    code += rule(fcntl, (_LOAD, 0, 0, 24), *sends, (_GIVE, 0, 0, _ALLOW))
    for number, also in (*((number, pid) for number in kills), (prlimit, 0)):
        code += rule(
            number,
            (_LOAD, 0, 0, 16),
            (_EQUAL, 1, 0, pid),
            (_EQUAL, 0, 1, also),
            (_GIVE, 0, 0, _ALLOW),
            (_GIVE, 0, 0, _REFUSE),
        )
    return b"".join(
        struct.pack("<HBBI", *instruction) for instruction in [*code, (_GIVE, 0, 0, _ALLOW)]
    )


def hide():
    """No other process of the same user may look into this one (PR_SET_DUMPABLE)."""
    _prctl(4, 0)


def lock(pid):
    """Put this process, whose id is `pid`, under the filter for good. OSError where the kernel
    refuses."""
    code = program(pid, platform.machine())
    text = ctypes.create_string_buffer(code)
    _prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    # PR_SET_SECCOMP
    _prctl(
        22,
        2,
        ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(text))),
    )


def _prctl(option, *values):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, *values, *[0] * (4 - len(values))):
        raise OSError(ctypes.get_errno(), f"prctl {option} was refused")
