"""Build the web pages and the browser edition.

    python site/build.py                        everything, into site/_build/html
    python site/build.py pages --out /tmp/site  the pages alone, somewhere else

Parts: `pages`, the lessons as they are stored, with everything that is read; `lite`, the browser
edition, in OUT/lite; `scenes`, what makes the pages' explorers live, in OUT/_static/scenes. The
folder OUT can be served from anywhere: all its links are relative.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PARTS = ["pages", "lite", "scenes"]


def build(parts: list[str], out: Path) -> None:
    """Build these parts of the site into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    if "pages" in parts:
        build_pages(out)
    if "lite" in parts and (HERE / "lite" / "build.py").exists():
        python(HERE / "lite" / "build.py", out / "lite")
    if "scenes" in parts and (HERE / "scenes.py").exists():
        python(HERE / "scenes.py", out / "_static" / "scenes")


def build_pages(out: Path) -> None:
    from stage import stage

    staged, read = out.with_name(f"{out.name}-sources"), out.with_name(f"{out.name}-read")
    stage(staged)
    # every page anew; a warning stops the build, and so does a link that leads nowhere
    strictly = ["-E", "-W", "--keep-going", "-n"]
    python("-m", "sphinx", *strictly, "-q", "-c", HERE, "-d", read, staged, out)
    for name in (".buildinfo", "objects.inv"):
        (out / name).unlink(missing_ok=True)


def python(*command) -> None:
    """Run Python with these arguments, in which the library is this checkout's."""
    known = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, *map(str, command)], check=True, env=known)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; none: all")
    parser.add_argument("--out", type=Path, default=HERE / "_build" / "html", metavar="FOLDER")
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sys.path[:0] = [str(ROOT), str(HERE / "lite")]
    build(args.parts or PARTS, args.out.resolve())
