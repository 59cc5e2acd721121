"""`python -m roofline_lib course`: copy the lessons into a folder of the learner's, and open
JupyterLab on the first."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roofline_lib.extras import extra
from roofline_lib.surroundings import in_browser

from .copies import bring_copies
from .lessons import Lesson, lessons

CHECKOUT = Path(__file__).resolve().parents[2]
INSTALLED = Path(__file__).with_name("files")  # setup.py puts the lessons there in a wheel
CONFIG = Path(__file__).with_name("jupyter_lab_config.py")


@dataclass(frozen=True)
class Places:
    """Where the originals are, where the copies go, and the folder that JupyterLab serves."""

    originals: Path
    copies: Path
    served: Path


def main(argv: Sequence[str]) -> int:
    """Run the command with these arguments; gives its exit code."""
    parser = _parser()
    args, for_jupyter = parser.parse_known_args(argv)
    opens = not args.no_open and args.fresh is None
    if for_jupyter and not opens:
        why = "--no-open" if args.no_open else "--fresh"
        parser.error(f"{why} opens nothing, so it has no use for {' '.join(for_jupyter)}")
    try:
        renew = _asked_for(args.fresh)
    except ValueError as error:
        parser.error(str(error))
    if in_browser():
        print("course: the lessons are in the list of files beside this page", file=sys.stderr)
        return 1
    places = find_places(args.folder)
    if not (places.originals / "notebooks").is_dir():
        print(
            f"course: no lessons in {places.originals}. The library is installed without them: "
            "clone the repository and run the command there",
            file=sys.stderr,
        )
        return 1
    try:
        written = bring_copies(places.originals, places.copies, renew)
    except OSError as error:
        print(
            f"course: {error.filename or places.copies} cannot be written ({error.strerror}). "
            "The course keeps your copies there: choose a folder of your own with --folder",
            file=sys.stderr,
        )
        return 1
    for copy in written:
        print("new:", copy.relative_to(places.served))
    if opens:
        open_lab(places, for_jupyter)
    elif args.no_open:
        print(f"the course is in {places.copies}; its first lesson is {lessons()[0].file}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m roofline_lib course",
        allow_abbrev=False,  # --ip is JupyterLab's
        description="Copy the lessons and exercises into a folder, where a copy that is there "
        "already stays as it is, and open JupyterLab on the first lesson. Other options, such as "
        "--no-browser, --ip=0.0.0.0 or --port=8899, are handed to JupyterLab.",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        help="where the copies go (work/ in a clone, else ./roofline-course)",
    )
    parser.add_argument(
        "--fresh",
        nargs="*",
        metavar="LESSON",
        help="only bring clean copies, of all lessons or of those named (a number or a name), "
        "with their exercises; those that were changed are kept beside them as old-1_...",
    )
    parser.add_argument("--no-open", action="store_true", help="only copy")
    return parser


def find_places(folder: Path | None) -> Places:
    """A clone keeps the copies in work/ and serves all of itself, so that links into docs/ work;
    elsewhere the folder holds all there is."""
    if (CHECKOUT / "notebooks").is_dir():
        copies = folder.resolve() if folder else CHECKOUT / "work"
        return Places(CHECKOUT, copies, CHECKOUT if copies.is_relative_to(CHECKOUT) else copies)
    copies = (folder or Path("roofline-course")).resolve()
    return Places(INSTALLED, copies, copies)


def _asked_for(names: Sequence[str] | None) -> set[str]:
    """The stems of the lessons that --fresh names: none without it, all where it names none."""
    listed = lessons()
    if names is None:
        return set()
    return {_lesson(name, listed).stem for name in names} or {lesson.stem for lesson in listed}


def _lesson(name: str, listed: Sequence[Lesson]) -> Lesson:
    for lesson in listed:
        if name in (str(lesson.number), f"{lesson.number:02}", lesson.name, lesson.stem):
            return lesson
    known = ", ".join(f"{lesson.number} {lesson.name}" for lesson in listed)
    raise ValueError(f"--fresh: no lesson {name!r}; a number or a name of {known}")


def open_lab(places: Places, options: Sequence[str] = ()) -> None:
    """Run JupyterLab on the copies until it is stopped; its file browser opens in their folder.
    `options` are JupyterLab's own and come last, so that they prevail."""
    start = places.copies.relative_to(places.served).as_posix().removeprefix(".")
    first = f"{start}/{lessons()[0].file}".lstrip("/")
    extra("jupyterlab.labapp").LabApp.launch_instance(
        [
            f"--config={CONFIG}",
            f"--ServerApp.root_dir={places.served}",
            f"--ContentsManager.preferred_dir={start}",
            # what opens, and the address that is printed where nothing can open it
            f"--LabApp.default_url=/lab/tree/{first}",
            *options,
        ]
    )
