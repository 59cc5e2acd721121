"""`python -m roofline_lib COMMAND`: each command is the `main(argv)` of a module of its own."""

import sys
from collections.abc import Sequence
from importlib import import_module

from roofline_lib.extras import MissingExtra

COMMANDS = {
    "course": ("roofline_lib.course.command", "open the lessons in JupyterLab, on your own copies"),
    "measure": ("roofline_lib.own_curve", "time this machine and write a record"),
    "grade": ("roofline_lib.grading.command", "mark a class's notebooks"),
    "profile": (
        "roofline_lib.measuring.profiles.command",
        "hold a profiler's kernels against a chip's roof",
    ),
    "model": ("roofline_lib.pricing", "price a model on a chip, from its name or config.json"),
    "machines": ("roofline_lib.catalogue_text", "print the catalogue of chips, with sources"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Hand the rest of the command line to the command's own module; gives its exit code. A package
    that the command needs and does not find is one line with what brings it."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in COMMANDS:
        try:
            return import_module(COMMANDS[name][0]).main(rest)
        except MissingExtra as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    is_help = name in ("-h", "--help")
    print(
        ("" if is_help else f"no command {name!r}\n\n")
        + "usage: python -m roofline_lib COMMAND ...\n\n"
        + "\n".join(f"  {key:9} {text}" for key, (_, text) in COMMANDS.items()),
        file=sys.stdout if is_help else sys.stderr,
    )
    return 0 if is_help else 2


if __name__ == "__main__":
    sys.exit(main())
