"""Copy lessons and exercises into work/, where a learner edits them; what is there already is left
alone.

A copy has no stored outputs, so that a guess can be made before its answer shows, and its links
lead where those of the tracked notebook lead, to the copies where there are some. With --fresh
every copy that was changed is brought anew, and the old one is kept beside it as old-1_...,
old-2_... With --lab JupyterLab opens on lesson 0 afterwards.
"""

import argparse
import json
import os
import re
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# the file that a link of the text leads to; addresses of the web are left out
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)\s#]+)")


def copies(root):
    """Each tracked notebook with the place of its copy."""
    places = {
        source: root / "work" / source.name for source in sorted(root.glob("notebooks/*.ipynb"))
    }
    return places | {
        source: root / "work" / source.relative_to(root)
        for source in sorted(root.glob("exercises/*/*.ipynb"))
    }


def learners(source, places):
    """The text of the copy of `source`: without outputs, with its links led anew."""

    def led(match):
        target = Path(os.path.normpath(source.parent / match[0]))
        return Path(os.path.relpath(places.get(target, target), places[source].parent)).as_posix()

    book = json.loads(source.read_text(encoding="utf-8"))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell.update(execution_count=None, outputs=[])
        else:
            cell["source"] = LINK.sub(led, "".join(cell["source"])).splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def bring(root, fresh=False):
    """Write the copies that are missing, with fresh also those that differ; return the places
    written to."""
    written, places = [], copies(root)
    for source, copy in places.items():
        text = learners(source, places)
        if copy.exists():
            if not fresh or copy.read_text(encoding="utf-8") == text:
                continue
            kept = (copy.with_name(f"old-{i}_{copy.name}") for i in count(1))
            copy.rename(next(place for place in kept if not place.exists()))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8", newline="\n")
        written.append(copy)
    return written


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fresh", action="store_true", help="bring clean copies, keep the old ones beside them"
    )
    parser.add_argument("--lab", action="store_true", help="then open JupyterLab on lesson 0")
    args = parser.parse_args()
    for copy in bring(ROOT, args.fresh):
        print("new:", copy.relative_to(ROOT))
    if args.lab:
        from jupyterlab.labapp import LabApp

        LabApp.launch_instance([f"--config={ROOT / 'tools' / 'jupyter_lab_config.py'}"])


if __name__ == "__main__":
    main()
