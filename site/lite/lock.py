"""Write `packages.json`, the packages that the browser edition has, from a release of Pyodide. For
who moves the course to another release:

    npm pack pyodide@VERSION && tar xzf pyodide-VERSION.tgz
    python site/lite/lock.py package/pyodide-lock.json

Compiled packages come from the release itself, under its own checksums. Pure ones are served with
the site; `wheels.lock`, which this writes too, pins them for pip.
"""

import json
import re
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
# what a lesson imports, and what the kernel does before it
ROOTS = ["micropip", "ipython", "jedi", "packaging", "six"]
ROOTS += ["numpy", "matplotlib", "pillow", "tqdm", "jsonschema"]
# pure packages that the release does not have: version, what they need, what they are imported as
OURS = {
    "comm": ("0.2.3", ["traitlets"], ["comm"]),
    "ipywidgets": (
        "8.1.9",
        ["comm", "ipython", "traitlets", "jupyterlab-widgets"],
        ["ipywidgets"],
    ),
    "jupyterlab-widgets": ("3.0.17", [], ["jupyterlab_widgets"]),
}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(packages: dict) -> dict:
    """The release's own entries of the roots and of all that these need."""
    found, waiting = {}, list(map(plain, ROOTS))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = packages[name]
            waiting += map(plain, packages[name]["depends"])
    return found


def pinned(name: str, version: str) -> str:
    """The line of a lock that has pip fetch this pure wheel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--only-binary=:all:", "--platform", "any", "--python-version", "3.14"]
        subprocess.run([*command, *options, "-d", folder, f"{name}=={version}"], check=True)
        (wheel,) = Path(folder).iterdir()
        return f"{name}=={version} \\\n    --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n"


def main(release_lock: Path) -> None:
    lock = json.loads(release_lock.read_text(encoding="utf-8"))
    entries = needed({plain(name): entry for name, entry in lock["packages"].items()})
    compiled = {n: e for n, e in entries.items() if not e["file_name"].endswith("none-any.whl")}
    pure = {
        name: {key: entry[key] for key in ("version", "depends", "imports")}
        for name, entry in entries.items()
        if name not in compiled
    }
    for name, (version, depends, imports) in OURS.items():
        pure[name] = {"version": version, "depends": depends, "imports": imports}
    told = {"info": lock["info"], "compiled": compiled, "pure": dict(sorted(pure.items()))}
    text = json.dumps(told, indent=1)
    (HERE / "packages.json").write_text(text + "\n", encoding="utf-8")
    lines = [pinned(name, one["version"]) for name, one in sorted(pure.items())]
    head = "# Pure wheels of the browser edition; written by site/lite/lock.py\n"
    (HERE / "wheels.lock").write_text(head + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
