"""Copy lessons and exercises into work/, where a learner edits them; what is there already is left alone.

With --fresh every copy that was changed is brought anew, and the old one is kept beside it with its date in the name.
"""

import argparse
import shutil
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copies(root):
    """Each tracked notebook with the place of its copy."""
    for source in sorted(root.glob("notebooks/*.ipynb")):
        yield source, root / "work" / source.name
    for source in sorted(root.glob("exercises/*/*.ipynb")):
        yield source, root / "work" / source.relative_to(root)


def bring(root, fresh=False, now=None):
    """Copy what is missing, with fresh also what differs; return the places written to."""
    written = []
    stamp = (now or datetime.now()).strftime("%Y-%m-%d-%H%M%S")
    for source, copy in copies(root):
        if copy.exists():
            if not fresh or copy.read_bytes() == source.read_bytes():
                continue
            copy.rename(copy.with_name(f"{copy.stem}.{stamp}.ipynb"))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        written.append(copy)
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fresh", action="store_true", help="bring clean copies, keep the old ones beside them")
    for copy in bring(ROOT, parser.parse_args().fresh):
        print("new:", copy.relative_to(ROOT))
