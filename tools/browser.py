"""A Jupyter server of its own and a headless Chromium on it: for the browser tests, the screenshots
and the benchmarks.

The server listens on a free port with a token, and keeps its configuration, data and runtime files
in a folder of its own, so that nothing of the user's is read or written.
"""

import atexit
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from roofline_lib.course.command import CONFIG

ROOT = Path(__file__).resolve().parents[1]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOW = "no Chromium found: on Debian `apt-get install chromium` brings it, elsewhere put its path into the variable CHROMIUM"


def chromium():
    """The path of a Chromium, or None."""
    named = os.environ.get("CHROMIUM")
    return named or next(
        (
            path
            for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
            if path
        ),
        None,
    )


@contextmanager
def jupyter(folder, config=CONFIG, windowing=None):
    """Serve `folder` with JupyterLab (and Notebook 7 where it is installed); yields (address,
    token).

    `windowing="none"` keeps all cells in the page, also those that are scrolled away.
    """
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        *([f"--config={config}"] if config else []),
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.preferred_dir={folder}",
        "--allow-root",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    with serving(command, Path(folder), windowing) as server:
        yield server


@contextmanager
def serving(command, folder, windowing=None, environment=None):
    """Run a command that starts a Jupyter server, in `folder`, and stop it at the end; yields
    (address, token). What it says stands in `folder/.own/server.log`. `environment` adds to the
    variables of its environment."""
    own, token = folder / ".own", secrets.token_hex(16)
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    env = (
        os.environ
        | {name: str(own / place) for name, place in places.items()}
        | {"PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "0"}
        | (environment or {})
    )
    for place in places.values():
        (own / place).mkdir(parents=True, exist_ok=True)
    settings = {
        "apputils-extension/notification": {"fetchNews": "false"},
        "notebook-extension/tracker": {"windowingMode": windowing} if windowing else {},
    }
    for name, content in settings.items():
        file = own / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
    options = [
        "--ServerApp.port=0",
        "--ServerApp.ip=127.0.0.1",
        "--no-browser",
        f"--IdentityProvider.token={token}",
        "--expose-app-in-browser",
        "--JupyterNotebookApp.expose_app_in_browser=True",
    ]
    with open(own / "server.log", "w") as log:
        process = subprocess.Popen(
            [*command, *options], cwd=folder, env=env, stdout=log, stderr=log
        )
    try:
        yield _address(process, own), token
    finally:
        process.terminate()
        process.wait(60)


def _address(process, own, limit=60):
    for _ in range(limit * 10):
        for record in (own / "runtime").glob("jpserver-*.json"):
            try:
                server = json.loads(record.read_text())
                socket.create_connection(("127.0.0.1", server["port"]), timeout=1).close()
                return server["url"]
            except (ValueError, OSError):
                pass  # half written, or not listening yet
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(
        "the Jupyter server did not start:\n" + (own / "server.log").read_text()[-3000:]
    )


def asked(address, token, data=None):
    """What the server at this address answers, as JSON."""
    request = urllib.request.Request(
        address, data=data, headers={"Authorization": f"token {token}"}
    )
    return json.load(urllib.request.urlopen(request))


@cache
def _playwright():
    """Playwright of this process: it cannot be begun twice."""
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    atexit.register(playwright.stop)
    return playwright


@contextmanager
def browser(*flags):
    """A headless Chromium with these flags beside FLAGS, driven by playwright."""
    launched = _playwright().chromium.launch(executable_path=chromium(), args=[*FLAGS, *flags])
    try:
        yield launched
    finally:
        launched.close()


# What the eye would see of one element, frame by frame: `changed` counts the frames in which it
# differed from the frame before, `at` is
# when the last of them had been painted, `blank` counts frames without any picture. Canvases are
# compared by their pixels, all else by
# its nodes, and an <img> counts when it is decoded. `from` is when the last key or pointer event
# came in.
WATCH = """root => {
  if (window.seen) window.seen.stop = true;
  else for (const kind of ['keydown', 'pointerdown', 'pointermove', 'click', 'change'])
    window.addEventListener(kind, event => { window.seen.from = event.timeStamp }, { capture: true });
  const seen = window.seen = { changed: 0, frames: 0, blank: 0, at: 0, from: 0, dirty: false, stop: false }, after = new MessageChannel();
  after.port1.onmessage = () => { seen.at = performance.now() };
  const all = { subtree: true, childList: true, attributes: true, characterData: true };
  new MutationObserver(() => { seen.dirty = true }).observe(root, all);
  const small = document.createElement('canvas'), pen = small.getContext('2d', { willReadFrequently: true });
  let before = '';
  const look = () => {
    if (seen.stop) return;
    const shown = [...root.querySelectorAll('svg, img, canvas')].filter(node => node.getBoundingClientRect().height > 50);
    const canvases = shown.filter(node => node.tagName === 'CANVAS');
    if (canvases.length && !shown.some(node => node.tagName === 'svg')) {
      small.width = 96; small.height = 60;
      for (const canvas of canvases) pen.drawImage(canvas, 0, 0, 96, 60);
      const pixels = pen.getImageData(0, 0, 96, 60).data.join();
      seen.dirty = before !== '' && pixels !== before;
      before = pixels;
    }
    const pending = shown.some(node => node.tagName === 'IMG' && !(node.complete && node.naturalWidth));
    if (!shown.length && !root.innerText.trim() || pending) seen.blank++;
    if (seen.dirty && !pending) { seen.dirty = false; seen.changed++; after.port2.postMessage(0) }
    seen.frames++;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *parts):
        pass


@contextmanager
def served(folder):
    """Serve a folder of pages from below an address, as a host of many projects does."""
    above = folder.parent
    handler = partial(_Quiet, directory=above)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{folder.name}"
        server.shutdown()


def watch(page, selector):
    """Begin to count the frames in which this element of a page changes."""
    page.evaluate(f"selector => ({WATCH})(document.querySelector(selector))", selector)


def step(page, act, timeout=60):
    """Do `act` (a key, a click) and wait for the watched element to change; milliseconds from the
    event to the painted frame."""
    page.evaluate("seen.before = seen.at")
    act()
    page.wait_for_function("seen.at > seen.before && seen.at > seen.from", timeout=timeout * 1000)
    return page.evaluate("seen.at - seen.from")


class Notebook:
    """A page with one notebook open. `errors` collects what the page's console complains of."""

    def __init__(
        self,
        chrome,
        server,
        name,
        classic=False,
        width=1200,
        height=1000,
        scale=1,
        zoom=1,
        theme="JupyterLab Light",
    ):
        address, token = server
        viewport = {"width": round(width / zoom), "height": round(height / zoom)}
        context = chrome.new_context(viewport=viewport, device_scale_factor=scale * zoom)
        self.page, self.errors = context.new_page(), []
        self.page.set_default_timeout(60000)
        self.page.on(
            "console", lambda message: message.type == "error" and self.errors.append(message.text)
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(
            f"{address}{'notebooks' if classic else 'lab/tree'}/{name}?token={token}&reset",
            wait_until="domcontentloaded",
        )
        self.page.wait_for_function(
            "window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", timeout=60000
        )
        self.command("apputils:change-theme", {"theme": theme})
        self.page.wait_for_selector(f"body[data-jp-theme-name='{theme}']", state="attached")
        self.page.wait_for_selector(
            ".jp-Notebook-ExecutionIndicator[data-status='idle']", timeout=60000, state="attached"
        )

    def command(self, name, arguments=None):
        """Run one of JupyterLab's own commands."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args) }",
            [name, arguments or {}],
        )

    def run_all(self):
        """Run every cell to the end; the cells' error outputs are returned (none is what one
        wants)."""
        return self.page.evaluate(
            """async () => { const { commands, shell } = window.jupyterapp, widget = shell.currentWidget;
                             await widget.sessionContext.ready;
                             await commands.execute('notebook:run-all-cells');
                             return [...widget.content.model.cells].filter(c => c.type === 'code').flatMap(c =>
                               [...Array(c.outputs.length).keys()].map(i => c.outputs.get(i).toJSON())
                               .filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue)) }"""
        )

    def python(self, code):
        """Run code in the notebook's kernel; what it prints, or its traceback."""
        return self.page.evaluate(
            """async code => { const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                 const future = kernel.requestExecute({ code, store_history: false });
                 let printed = '';
                 future.onIOPub = ({ header, content }) => {
                   if (header.msg_type === 'stream') printed += content.text;
                   if (header.msg_type === 'error') printed += content.traceback.join('\\n') };
                 await future.done;
                 return printed }""",
            code,
        )

    def painted(self):
        """Wait until what has been done so far has been painted."""
        self.page.evaluate("""() => new Promise(done =>
            requestAnimationFrame(() => requestAnimationFrame(done)))""")

    def watch(self, selector):
        """Begin to count the frames in which this element changes."""
        watch(self.page, selector)

    def step(self, act, timeout=60):
        """Do `act` and wait for the watched element to change, as the function `step` does."""
        return step(self.page, act, timeout)

    def settle(self, quiet=250):
        """Wait until the watched element has not changed for `quiet` milliseconds, then forget the
        counts."""
        self.page.wait_for_function(
            "quiet => performance.now() - Math.max(seen.at, seen.from) > quiet",
            arg=quiet,
            polling=20,
        )
        self.page.evaluate("Object.assign(seen, { changed: 0, frames: 0, blank: 0 })")

    def drag(self, slider, events=60, seconds=1.0):
        """Drag the handle of an ipywidgets slider from its lowest to its highest value; what the
        watched element did meanwhile: {changed, frames, blank, late}, late being the milliseconds
        from the last event to the last changed frame."""
        handle = self.page.locator(f"{slider} .noUi-handle")
        handle.focus()
        self.page.keyboard.press("Home")
        self.settle()
        box, distance = (
            handle.bounding_box(),
            self.page.locator(f"{slider} .noUi-target").bounding_box()["width"],
        )
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.evaluate("Object.assign(seen, { changed: 0, frames: 0, blank: 0 })")
        begin = time.perf_counter()
        for event in range(1, events + 1):
            time.sleep(max(0, begin + seconds * event / events - time.perf_counter()))
            self.page.mouse.move(x + distance * event / events, y)
        self.page.wait_for_function(
            "performance.now() - Math.max(seen.at, seen.from) > 700", polling=20
        )
        counts = "({ changed, frames, blank, at, from }) => ({ changed, frames, blank, late: Math.max(0, at - from) })"
        result = self.page.evaluate(f"({counts})(seen)")
        self.page.mouse.up()
        return result

    def close(self):
        """Close the page and end its kernel."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.context.close()


def until(condition, what, limit=60):
    """Ask `condition` until it gives something true, and give that; an AssertionError that says
    `what` was waited for after `limit` seconds, which a busy machine does not reach."""
    end = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {limit} s in vain: {what}"
        time.sleep(0.04)
    return found


def write_notebook(path, *cells):
    """A notebook with these code cells."""
    cells = [
        {
            "cell_type": "code",
            "id": f"cell-{i}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    Path(path).write_text(
        json.dumps(
            {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        )
    )
