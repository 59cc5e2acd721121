"""A Jupyter server of its own and a headless Chromium on it: for the browser tests, the screenshots and the benchmark.

The server listens on a free port with a token, and keeps its configuration, data and runtime files in a folder of its own, so that nothing
of the user's is read or written.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]
HOW = "no Chromium found: on Debian `apt-get install chromium` brings it, elsewhere put its path into the variable CHROMIUM"


def chromium():
    """The path of a Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)


@contextmanager
def jupyter(folder, config=ROOT / "tools" / "jupyter_lab_config.py"):
    """Serve `folder` with JupyterLab (and Notebook 7 where it is installed); yields (address, token)."""
    folder, own, token = Path(folder), Path(folder) / ".own", secrets.token_hex(16)
    places = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "IPYTHONDIR": "ipython",
              "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "MPLCONFIGDIR": "matplotlib"}
    env = os.environ | {name: str(own / place) for name, place in places.items()} | {"PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "0"}
    for place in places.values():
        (own / place).mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "jupyterlab", *([f"--config={config}"] if config else []), f"--ServerApp.root_dir={folder}",
               f"--ServerApp.preferred_dir={folder}", "--ServerApp.port=0", "--ServerApp.ip=127.0.0.1", "--no-browser", "--allow-root",
               f"--IdentityProvider.token={token}", "--expose-app-in-browser", "--JupyterNotebookApp.expose_app_in_browser=True",
               "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    with open(own / "server.log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        yield _address(process, own), token
    finally:
        process.terminate()
        process.wait(20)


def _address(process, own, limit=60):
    for _ in range(limit * 10):
        for record in (own / "runtime").glob("jpserver-*.json"):
            try:
                return json.loads(record.read_text())["url"]
            except ValueError:
                pass  # half written
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError("the Jupyter server did not start:\n" + (own / "server.log").read_text()[-3000:])


@contextmanager
def browser():
    """A headless Chromium, driven by playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield chrome
        finally:
            chrome.close()


class Notebook:
    """A page with one notebook open. `errors` collects what the page's console complains of."""

    def __init__(self, chrome, server, name, classic=False, width=1200, height=1000, scale=1, zoom=1, theme="JupyterLab Light"):
        address, token = server
        viewport = {"width": round(width / zoom), "height": round(height / zoom)}
        context = chrome.new_context(viewport=viewport, device_scale_factor=scale * zoom)
        self.page, self.errors = context.new_page(), []
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{address}{'notebooks' if classic else 'lab/tree'}/{name}?token={token}&reset", wait_until="domcontentloaded")
        self.page.wait_for_function("window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", timeout=60000)
        self.command("apputils:change-theme", {"theme": theme})
        self.page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        self.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']", timeout=60000, state="attached")

    def command(self, name, arguments=None):
        """Run one of JupyterLab's own commands."""
        self.page.evaluate("([name, args]) => { window.jupyterapp.commands.execute(name, args) }", [name, arguments or {}])

    def run_all(self):
        """Run every cell to the end; the cells' error outputs are returned (none is what one wants)."""
        return self.page.evaluate(
            """async () => { const { commands, shell } = window.jupyterapp, widget = shell.currentWidget;
                             await widget.sessionContext.ready;
                             await commands.execute('notebook:run-all-cells');
                             return [...widget.content.model.cells].filter(c => c.type === 'code').flatMap(c =>
                               [...Array(c.outputs.length).keys()].map(i => c.outputs.get(i).toJSON())
                               .filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue)) }""")

    def close(self):
        self.page.context.close()


def write_notebook(path, *cells):
    """A notebook with these code cells."""
    cells = [{"cell_type": "code", "id": f"cell-{i}", "metadata": {}, "execution_count": None, "outputs": [], "source": source}
             for i, source in enumerate(cells)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    Path(path).write_text(json.dumps({"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}))
