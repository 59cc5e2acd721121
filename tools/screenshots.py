"""Take the pictures in docs/: each explorer as it stands in a real JupyterLab page.

python tools/screenshots.py [--width 1100] [--dark] [--folder docs] [GemmExplorer ...]
"""

import argparse
import io
import tempfile
from pathlib import Path

import browser as driver
from PIL import Image

from roofline_lib.explorers import EXPLORERS


def take(names, folder, width, themes=("JupyterLab Light",), scale=1.5):
    """Write folder/<name>_explorer.png, for the dark theme <name>_explorer_dark.png, and return
    their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory() as served, driver.browser() as chrome:
        driver.write_notebook(
            f"{served}/pictures.ipynb",
            "import roofline_lib as rl",
            *(EXPLORERS[name].call() for name in names),
        )
        with driver.jupyter(served) as server:
            for theme in themes:
                book = driver.Notebook(
                    chrome,
                    server,
                    "pictures.ipynb",
                    width=width,
                    height=1400,
                    scale=scale,
                    theme=theme,
                )
                errors = book.run_all()
                if errors:
                    raise SystemExit("\n".join(errors))
                for name in names:
                    shown = book.page.locator(f".{name}")
                    shown.locator("svg").scroll_into_view_if_needed()
                    book.page.wait_for_timeout(400)
                    dark = "_dark" if theme.endswith("Dark") else ""
                    written.append(
                        folder / f"{name.removesuffix('Explorer').lower()}_explorer{dark}.png"
                    )
                    picture = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
                    picture.quantize(96).save(written[-1], optimize=True)
                book.close()
    return written


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPLORERS)}; none: all"
    )
    parser.add_argument("--folder", type=Path, default=driver.ROOT / "docs")
    parser.add_argument("--dark", action="store_true", help="in the dark theme too")
    parser.add_argument("--width", type=int, default=1100, help="of the browser window, in pixels")
    arguments = parser.parse_args()
    themes = ["JupyterLab Light"] + ["JupyterLab Dark"] * arguments.dark
    for path in take(arguments.names or list(EXPLORERS), arguments.folder, arguments.width, themes):
        print(path)
