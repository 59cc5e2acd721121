"""`python -m roofline_lib profile FILE --machine NAME`: your own kernels under a machine's roof."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from roofline_lib.arguments import UnknownName
from roofline_lib.measuring.profiles.points import held_against, read_profile, table


def main(argv: Sequence[str]) -> int:
    """Run the command with these arguments; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib profile",
        description="Read what a profiler wrote (Nsight Compute's CSV, PyTorch's trace, JAX's cost "
        "analysis, perf stat, likwid, or write_profile's JSON) and print for each kernel the share "
        "of what is attainable that it reached, what binds it, and what to suspect.",
    )
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--machine", required=True, metavar="NAME", help='whose roof, such as "H200 SXM"'
    )
    args = parser.parse_args(argv)
    try:
        print(table(held_against(read_profile(args.file), args.machine)))
    except OSError as error:
        return _fail(f"{args.file}: {error.strerror}")
    except UnknownName as error:
        return _fail(str(error.args[0]))
    except ValueError as error:
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"profile: {message}", file=sys.stderr)
    return 2
