"""What profilers write about your own kernels, as points under a roof.

`read_profile(path)` takes a file of Nsight Compute, of PyTorch's profiler, of JAX's cost analysis,
of perf or likwid, or one that `write_profile` wrote, and gives a Profiled for each kernel.
`held_against(points, machine)` holds a machine's roof against them, and `named(points)` is what
`rl.draw_roofline` takes.
"""

from roofline_lib.measuring.profiles.points import (
    Profiled,
    Verdict,
    held_against,
    named,
    read_profile,
    table,
    write_profile,
)

__all__ = [
    "Profiled",
    "Verdict",
    "held_against",
    "named",
    "read_profile",
    "table",
    "write_profile",
]
