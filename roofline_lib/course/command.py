"""`python -m roofline_lib course`: copy the lessons into work/ and open JupyterLab on the first."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .copies import bring_copies
from .lessons import lessons

CHECKOUT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("jupyter_lab_config.py")


def main(argv: Sequence[str]) -> int:
    """Run the command with these arguments; gives its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib course",
        description="Copy the lessons and exercises into work/, where a copy that is there already "
        "stays as it is, and open JupyterLab on the first lesson. Other options, such as "
        "--no-browser or --port=8899, are handed to JupyterLab.",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="only bring clean copies; those that were changed are kept beside them as old-1_...",
    )
    args, for_jupyter = parser.parse_known_args(argv)
    if args.fresh and for_jupyter:
        parser.error(f"--fresh opens nothing, so it has no use for {' '.join(for_jupyter)}")
    root = CHECKOUT
    if not (root / "notebooks").is_dir():
        print(
            f"course: no lessons in {root}. The library is installed without them: "
            "clone the repository and run the command there",
            file=sys.stderr,
        )
        return 1
    try:
        written = bring_copies(root, args.fresh)
    except OSError as error:
        print(
            f"course: {error.filename or root / 'work'} cannot be written ({error.strerror}). "
            "The course keeps your copies there: put it into a folder of your own",
            file=sys.stderr,
        )
        return 1
    for copy in written:
        print("new:", copy.relative_to(root))
    if not args.fresh:
        open_lab(root, for_jupyter)
    return 0


def open_lab(root: Path, options: Sequence[str] = ()) -> None:
    """Run JupyterLab on the copies in `root/work` until it is stopped.

    The whole of `root` is served, so that a lesson's links into docs/ work; the file browser opens
    in `root/work`. `options` are JupyterLab's own and come last, so that they prevail.
    """
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(
        [
            f"--config={CONFIG}",
            f"--ServerApp.root_dir={root}",
            f"--ServerApp.preferred_dir={root / 'work'}",
            # what opens, and the address that is printed where nothing can open it
            f"--LabApp.default_url=/lab/tree/work/{lessons()[0].file}",
            *options,
        ]
    )
