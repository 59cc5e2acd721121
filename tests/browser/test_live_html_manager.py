"""Explorers as html-manager shows them: the program with which VS Code, Colab, Kaggle and exported
pages draw widgets. It is not JupyterLab's, and has neither its styles nor its font of icons.

Its pages have no Python behind them, no network, and nothing but html-manager's own `embed.js`;
there it marks each widget as disconnected, and for how it looks otherwise the mark is taken off. A
page of ours has a kernel behind it, of ipywidgets 8, and of 7 as Colab has it.
"""

import base64
import hashlib
import json
import shutil
import sys
import tarfile
from pathlib import Path

import browser as driver
import pytest
from harness.environments import lent_environment
from harness.repository import run
from ipywidgets.embed import embed_minimal_html

import roofline_lib as rl
from roofline_lib.explorers import EXPLORERS
from roofline_lib.explorers.controls import TRACK, Choice, Number

pytestmark = [pytest.mark.browser, pytest.mark.slow]  # npm brings html-manager
NAMES = sorted(EXPLORERS)
HTML_MANAGER = "@jupyter-widgets/html-manager@1.0.15"
SHA512 = "5thBIV6ymNgmPVOHvzx+gGy8ZSKmSazhtGw4/c4xJDVzRhG9PTeQsRjF3FUTopvFi//SABeNz1yp47bCrJ3CQA=="
OF_COLAB = ("ipywidgets==7.7.1", "ipython_genutils==0.2.0")
LACKING = "V100 SXM2"  # it multiplies in few precisions
HERE = Path(__file__).parent
LIVE_PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>live</title><body>
<script src="html_manager.js"></script><script src="libembed-amd.js"></script>"""
CONNECT = """document.querySelectorAll(".jupyter-widgets-disconnected")
    .forEach(widget => widget.classList.remove("jupyter-widgets-disconnected"))"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """{name: content} of html-manager's scripts as npm has them, under the checksum above."""
    folder = tmp_path_factory.mktemp("html-manager")
    packed = run("npm", "pack", "--silent", HTML_MANAGER, cwd=folder)
    assert packed.returncode == 0, packed.stdout + packed.stderr
    (package,) = folder.glob("*.tgz")
    found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    assert found == SHA512
    with tarfile.open(package) as files:
        return {
            name: files.extractfile(f"package/dist/{name}").read()
            for name in ("embed.js", "libembed-amd.js")
        }


@pytest.fixture(scope="module")
def made():
    """{name: explorer}: each explorer as its sample, and one on a chip that lacks precisions."""
    return {name: EXPLORERS[name].load()(**EXPLORERS[name].load().sample) for name in NAMES} | {
        "lacking": rl.GemmExplorer(LACKING, precision="fp16")
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory, scripts, made):
    """The address of a folder with a page for each explorer, as `ipywidgets.embed` writes it."""
    folder = tmp_path_factory.mktemp("embedded")
    (folder / "embed.js").write_bytes(scripts["embed.js"])
    for name, explorer in made.items():
        page = folder / f"{name}.html"
        embed_minimal_html(
            page, views=[explorer], title=name, embed_url="embed.js", requirejs=False
        )
    with driver.served(folder) as address:
        yield address


@pytest.fixture(scope="module")
def alone():
    """A Chromium that knows no other host."""
    with driver.browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as chrome:
        yield chrome


@pytest.fixture
def opened(alone, pages):
    """Opens the page of an explorer; what it asked of others and complained of is empty."""
    context = alone.new_context(viewport={"width": 1000, "height": 1000})
    asked, faults = [], []

    def opened(name, as_if_connected=True):
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{pages}/{name}.html")
        page.locator(".roofline-picture svg").wait_for()
        if as_if_connected:
            page.evaluate(CONNECT)
            page.locator(".roofline-controls").wait_for()
        return page

    yield opened
    outside = [url for url in asked if not url.startswith((pages.rpartition("/")[0], "data:"))]
    context.close()
    assert (outside, faults) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_html_manager_draws_every_explorer(opened, made, name):
    page, explorer = opened(name), made[name]
    image = page.locator(".roofline-picture img")
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    under, over = image.bounding_box(), page.locator(".roofline-picture svg").bounding_box()
    assert under == pytest.approx(over, abs=0.5) and under["width"] >= 588
    below = page.locator(".roofline-picture svg + div")
    assert below.inner_text() == explorer.now.readout
    for key, control in explorer.controls.items():
        place = page.locator(f".control-{key}")
        if key in explorer.now.hidden:
            assert not place.is_visible()
        elif isinstance(control, Number):
            usable_number(page, place, control)
        elif isinstance(control, Choice) and place.locator("button").count():
            pressed = place.locator("button.mod-active").all_inner_texts()
            assert [text.split(" ×")[0] for text in pressed] == [control.shown[control.value]]
    # all that can be clicked is seen whole
    edge = page.evaluate("document.documentElement.clientWidth")
    for box in page.locator(".roofline-controls :is(button, input, select)").all():
        if box.is_visible():
            place = box.bounding_box()
            assert place["x"] >= 0 and place["x"] + place["width"] <= edge


def usable_number(page, place, control):
    """Its box shows the value, and the keyboard moves its slider, which a mouse can hit."""
    assert float(place.locator("input").input_value()) == control.box.value
    assert place.locator(".noUi-base").bounding_box()["width"] >= TRACK
    handle = place.locator(".noUi-handle")
    before = handle.get_attribute("aria-valuenow")
    handle.focus()
    page.keyboard.press("ArrowLeft" if control.value == control.high else "ArrowRight")
    assert handle.get_attribute("aria-valuenow") != before


def test_html_manager_shows_what_a_chip_lacks_without_a_font(opened, made):
    page = opened("lacking")
    buttons = page.locator(".control-precision button")
    lacking = set(made["lacking"].controls["precision"].options) - set(
        rl.machine(LACKING).precisions
    )
    marked = [text.removesuffix(" ×") for text in buttons.all_inner_texts() if "×" in text]
    assert set(marked) == lacking != set()
    assert page.locator(".roofline-explorer [class*='fa-']").count() == 0
    assert buttons.nth(3).get_attribute("title").endswith(": not on this machine")


def test_a_page_without_python_says_so_and_keeps_the_picture(opened, made):
    page = opened("GemmExplorer", as_if_connected=False)
    assert page.locator(".roofline-picture svg").is_visible()
    assert not page.locator(".roofline-controls").is_visible()
    said = page.locator(".GemmExplorer").evaluate("e => getComputedStyle(e, '::before').content")
    assert said.startswith('"No Python is behind this picture')


@pytest.fixture(scope="module", params=["ipywidgets 8", "ipywidgets 7"])
def live(request, alone, scripts, tmp_path_factory):
    """A page with every explorer, drawn by html-manager, and a kernel that answers it."""
    folder = tmp_path_factory.mktemp("live")
    python = sys.executable
    if request.param == "ipywidgets 7":
        python = lent_environment(folder / "seven")
        seven = ("-m", "pip", "install", "--quiet", "--no-deps", *OF_COLAB)
        installed = run(python, *seven)
        assert installed.returncode == 0, installed.stderr
    spec = folder / ".own" / "data" / "kernels" / "asked" / "kernel.json"
    spec.parent.mkdir(parents=True)
    start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": start, "display_name": "asked", "language": "python"}))
    server = [sys.executable, "-m", "jupyterlab", "--allow-root", "--ServerApp.allow_origin=*"]
    (folder / "libembed-amd.js").write_bytes(scripts["libembed-amd.js"])
    shutil.copy(HERE / "html_manager.js", folder)
    (folder / "page.html").write_text(LIVE_PAGE)
    with driver.serving(server, folder) as (address, token), driver.served(folder) as place:
        kernel = driver.asked(f"{address}api/kernels", token, b'{"name": "asked"}')["id"]
        page = alone.new_page(viewport={"width": 1000, "height": 1000})
        page.goto(f"{place}/page.html")
        socket = address.replace("http", "ws", 1)
        page.evaluate("kernel", f"{socket}api/kernels/{kernel}/channels?token={token}")
        for name in NAMES:
            code = f"import roofline_lib as rl; e_{name} = {EXPLORERS[name].call()}; e_{name}"
            assert page.evaluate("run", code) == ""
        version = page.evaluate("run", "import ipywidgets; print(ipywidgets.__version__)")
        assert version.startswith(request.param.removeprefix("ipywidgets "))
        yield page
        page.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_answers_html_manager(live, made, name):
    """Every control that shows is moved once: the page says then what the kernel says."""
    for key, control in made[name].controls.items():
        if live.locator(f".{name} .control-{key}").is_visible():
            is_answered(live, name, control)


def is_answered(live, name, control):
    """This control's value changes in the kernel with a move on the page, and so do the sentences
    on the page."""

    key = control.name

    def said():
        """The value and the explorer's sentences in the kernel."""
        made = f"e_{name}"
        values = f"[repr({made}.controls[{key!r}].value), {made}.now.readout]"
        return json.loads(live.evaluate("run", f"import json; print(json.dumps({values}))"))

    before, _ = said()
    move(live, live.locator(f".{name} .control-{key}"), control)
    driver.until(lambda: said()[0] != before, f"{name}: {key} is no longer {before}")
    sentence = live.locator(f".{name} .roofline-picture svg + div")
    driver.until(lambda: sentence.inner_text() == said()[1], f"{name}: the page follows {key}")


def move(live, place, control):
    """One step of a slider, another button, another of a list, or a switch."""
    if isinstance(control, Number):
        at_end = float(place.locator("input").input_value()) * control.scale >= control.high
        place.locator(".noUi-handle, .ui-slider-handle").focus()  # of ipywidgets 8, and of 7
        live.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
    elif place.locator("button").count():
        place.locator("button:not(.mod-active)").first.click()
    elif place.locator("select").count():
        chosen = place.locator("select").evaluate("list => list.selectedIndex")
        place.locator("select").select_option(index=0 if chosen else 1)
    else:
        place.locator("input").click()
