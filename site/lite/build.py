"""Build the browser edition: JupyterLite with Python as WebAssembly (Pyodide), our wheel, the pure
wheels that it needs, and the course's notebooks.

    python site/lite/build.py OUT                      Pyodide comes from its release's own address
    python site/lite/build.py OUT --pyodide FOLDER     or from this folder, which is copied

`packages.json` says what a plain `import roofline_lib` brings; lock.py writes it.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path

from content import ROOT, write_content

HERE = Path(__file__).resolve().parent
RELEASE = "https://cdn.jsdelivr.net/pyodide/v314.0.6/full/"
WHEELS = Path(sys.prefix) / "browser-wheels"  # kept, as pip's packages are
BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
OWN_NEEDS = ["numpy", "matplotlib", "pillow", "ipywidgets", "tqdm", "jsonschema"]
SETTINGS = {
    "appName": "The roofline course",
    "exposeAppInBrowser": True,
    "disabledExtensions": ["@jupyterlab/apputils-extension:announcements"],
}
KERNEL = "@jupyterlite/pyodide-kernel-extension:kernel"


def build(out: Path, pyodide: Path | None = None) -> None:
    """Write the browser edition into the folder `out`, which is emptied before."""
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_content(work / "content")
        (work / "jupyter-lite.json").write_text(json.dumps(settings(pyodide)))
        options = {
            "contents": ["content"],
            "apps": ["lab", "notebooks", "tree"],
            "output_dir": str(out),
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
        }
        config = json.dumps({"LiteBuildConfig": options})
        (work / "jupyter_lite_config.json").write_text(config)
        run([sys.executable, "-m", "jupyterlite_core", "build", "--log-level=ERROR"], cwd=work)
        own = own_wheel(work)
        lay_out(out / "static" / "packages", own, "../pyodide/" if pyodide else RELEASE)
    if pyodide:
        copy_pyodide(pyodide, out / "static" / "pyodide")
    else:
        say_what_is_blocked(out)


def settings(pyodide: Path | None) -> dict:
    kernel: dict = {
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"lockFileURL": "./static/packages/pyodide-lock.json"},
    }
    kernel["pyodideUrl"] = "./static/pyodide/pyodide.mjs" if pyodide else f"{RELEASE}pyodide.mjs"
    data = SETTINGS | {"litePluginSettings": {KERNEL: kernel}}
    return {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}


def run(command: list, **options) -> None:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, **options
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-3000:]}")


def own_wheel(work: Path) -> Path:
    """The wheel of this checkout without the lessons, which the edition has beside it."""
    tree = work / "tree"
    tree.mkdir()
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, tree)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "roofline_lib", tree / "roofline_lib", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    # the same bytes from the same checkout
    run([*pip, "--wheel-dir", work, tree], env=os.environ | {"SOURCE_DATE_EPOCH": "1750000000"})
    return next(work.glob("roofline_lib-*.whl"))


def lay_out(folder: Path, own: Path, release: str) -> None:
    """The wheels that the site serves, and the lock that names them and those of the release."""
    told = json.loads((HERE / "packages.json").read_text(encoding="utf-8"))
    folder.mkdir(parents=True)
    wheels = fetched(len(told["pure"]))
    packages = {
        name: entry | {"file_name": release + entry["file_name"]}
        for name, entry in told["compiled"].items()
    }
    for name, one in told["pure"].items():
        packages[name] = entry_of(wheels[name], one["depends"], one["imports"])
        shutil.copy(wheels[name], folder)
    packages["roofline-lib"] = entry_of(own, OWN_NEEDS, ["roofline_lib"])
    shutil.copy(own, folder)
    lock = json.dumps({"info": told["info"], "packages": packages}, indent=1)
    (folder / "pyodide-lock.json").write_text(lock + "\n", encoding="utf-8")


def fetched(count: int) -> dict[str, Path]:
    """The pure wheels of wheels.lock by their names, fetched where they are not there yet."""
    if len(list(WHEELS.glob("*.whl"))) != count:
        shutil.rmtree(WHEELS, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        options = ["--only-binary=:all:", "--platform", "any", "--python-version", "3.14"]
        run([*pip, *options, "-r", HERE / "wheels.lock", "-d", WHEELS])
    return {metadata(path)["Name"].replace("_", "-").lower(): path for path in WHEELS.glob("*.whl")}


def metadata(wheel: Path):
    with zipfile.ZipFile(wheel) as file:
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(file.read(name).decode())


def entry_of(wheel: Path, depends: list[str], imports: list[str]) -> dict:
    """A wheel as Pyodide's lock has it."""
    told = metadata(wheel)
    return {
        "name": told["Name"],
        "version": told["Version"],
        "file_name": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "install_dir": "site",
        "package_type": "package",
        "imports": imports,
        "depends": depends,
        "unvendored_tests": False,
    }


def copy_pyodide(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip"):
        shutil.copy(source / name, folder)
    for wheel in source.glob("*.whl"):
        shutil.copy(wheel, folder)


def say_what_is_blocked(out: Path) -> None:
    """Give each app a script that says so where the release cannot be reached: Python's core, or
    the wheels, which a network may block by their kind."""
    shutil.copy(HERE / "reach.js", out / "static")
    packages = json.loads((HERE / "packages.json").read_text(encoding="utf-8"))
    wheel = RELEASE + packages["compiled"]["numpy"]["file_name"]
    needs = f'data-core="{RELEASE}pyodide.mjs" data-wheel="{wheel}"'
    for page in out.glob("*/index.html"):
        text = page.read_text(encoding="utf-8")
        tag = f'<script defer src="../static/reach.js" {needs}></script></head>'
        page.write_text(text.replace("</head>", tag, 1), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--pyodide", type=Path, metavar="FOLDER", help="an unpacked release")
    args = parser.parse_args()
    build(args.out.resolve(), args.pyodide)
