"""Every explorer in real JupyterLab: moved by mouse and keyboard, in place, whole, readable, and
the same after 300 steps."""

import io
import json
import re
from functools import partial

import browser as driver
import numpy as np
import pytest
from PIL import Image

import roofline_lib as rl
from roofline_lib.explorers import EXPLORERS
from roofline_lib.explorers.controls import Number

pytestmark = pytest.mark.browser
NAMES = sorted(EXPLORERS)
COMMON = """
import json, gc, numpy as np, roofline_lib as rl
made = {}
def say(name):
    e = made[name]
    print(json.dumps({"readout": e.now.readout, "afresh": type(e).scene(**{k: c.chosen for k, c in e.controls.items()}).readout,
                      "values": {k: c.value for k, c in e.controls.items()}, "hidden": e.now.hidden}))"""


@pytest.fixture(scope="module")
def open_all(chrome, server, folder):
    """Opens a notebook of its own (hence a kernel of its own) with every explorer in it."""

    def opened(name, **look):
        driver.write_notebook(
            folder / name, COMMON, *(f"e = made['{name}'] = rl.{name}()\ne" for name in NAMES)
        )
        book = driver.Notebook(chrome, server, name, **look)
        assert book.run_all() == []
        return book

    return opened


@pytest.fixture(scope="module")
def book(open_all):
    book = open_all("explorers.ipynb", width=1280, height=1300)
    yield book
    book.close()


class Live:
    """One explorer on the page and in the kernel."""

    def __init__(self, book, name):
        self.book, self.name, self.page = book, name, book.page
        self.root = self.page.locator(f".{name}").first
        self.root.scroll_into_view_if_needed()
        self.root.locator("svg").wait_for()

    def say(self):
        return json.loads(self.book.python(f"say({self.name!r})"))

    def agree(self):
        """The kernel's state, once the page, the explorer and a scene made afresh from the
        controls' values all say the same."""

        def agreed():
            said = self.say()
            shown = self.root.locator(".roofline-picture svg + div").inner_text()
            return said if shown == said["readout"] == said["afresh"] else None

        return driver.until(agreed, f"{self.name}: page, explorer and scene say the same")

    def changes(self, control, act):
        """Do `act` and see that it changes this control's value, on the page as in the kernel."""
        before = self.agree()["values"][control]
        act()

        def changed():
            now = self.agree()["values"][control]
            return (now,) if now != before else None

        (now,) = driver.until(changed, f"{self.name}: {control} is no longer {before!r}")
        return now


def controls(name):
    """{name: control} of each control that shows at first."""
    explorer = getattr(rl, name)()
    return {
        key: control for key, control in explorer.controls.items() if key not in explorer.now.hidden
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_control_by_mouse_and_by_keyboard(book, name):
    live, press = Live(book, name), book.page.keyboard.press
    for key, control in controls(name).items():
        if key in live.say()["hidden"]:
            continue
        place = live.root.locator(f".control-{key}")
        if isinstance(control, Number):
            handle, box = place.locator(".noUi-handle"), place.locator("input")
            handle.focus()
            at_low = live.say()["values"][key] == control.low
            live.changes(key, partial(press, "End" if at_low else "Home"))
            live.changes(key, partial(press, "ArrowLeft" if at_low else "ArrowRight"))
            track = place.locator(".noUi-base").bounding_box()
            live.changes(
                key,
                partial(
                    book.page.mouse.click,
                    track["x"] + 0.7 * track["width"],
                    track["y"] + track["height"] / 2,
                ),
            )
            low, high = control.low / control.scale, control.high / control.scale  # as typed
            typed = round(low + (high - low) / 3, None if control.whole else 2)
            box.fill(str(typed))
            assert live.changes(key, partial(box.press, "Enter")) == typed * control.scale
            if control.whole:
                assert live.changes(key, partial(box.press, "ArrowUp")) == typed + 1
            refused(live, control, place, box)
        elif place.locator("select").count():
            choose = place.locator("select")
            other = 1 if choose.input_value() != choose.locator("option").nth(1).inner_text() else 2
            live.changes(key, partial(choose.select_option, index=other))
        elif place.locator("button").count():
            buttons = place.locator("button")
            free = [
                i
                for i in range(buttons.count())
                if "mod-active" not in buttons.nth(i).get_attribute("class")
            ]
            live.changes(key, buttons.nth(free[0]).click)
            buttons.nth(free[-1] if len(free) > 1 else 1 - free[0]).focus()
            live.changes(key, partial(press, "Space"))
        else:
            live.changes(key, place.locator("input").click)
            live.changes(key, partial(place.locator("input").press, "Space"))
    assert book.errors == []


def refused(live, control, place, box):
    """A number that is too large: the old one comes back, and a message names argument and
    range."""
    key, before = control.name, live.agree()["values"][control.name]
    box.fill(str(round(10 * control.high / control.scale) + 1))
    box.press("Enter")
    place.locator("[role=alert]").wait_for()
    said = place.locator("[role=alert]").inner_text()
    high = rl.quantity(control.high, control.unit, 4) if control.prefix else str(control.high)
    assert re.search(rf"Not used: {key} must be a (whole )?number from", said) and high in said
    assert live.agree()["values"][key] == before
    assert float(box.input_value()) * control.scale == pytest.approx(before)


def test_a_list_that_drops_down_by_keyboard(book):
    live = Live(book, "GemmExplorer")
    choose, cells = (
        live.root.locator(".control-machine select"),
        book.page.locator(".jp-Cell").count(),
    )
    choose.focus()

    def keys():
        book.page.keyboard.press("Alt+ArrowDown")
        driver.until(lambda: choose.evaluate("list => list.matches(':open')"), "the list is open")
        book.page.keyboard.press("ArrowDown")
        book.page.keyboard.press("Enter")

    live.changes("machine", keys)
    assert book.page.locator(".jp-Cell").count() == cells


@pytest.mark.parametrize("name", NAMES)
def test_overlay_lies_on_the_axes(book, name):
    live = Live(book, name)
    live.agree()
    dots = json.loads(
        book.python(
            f"print(json.dumps([(s.x, s.y) for s in made[{name!r}].shapes if getattr(s, 'kind', '') == 'o']))"
        )
    )
    found = live.root.evaluate("""root => {
      const image = root.querySelector('img').getBoundingClientRect(), scale = 640 / image.width;
      return [...root.querySelectorAll('svg circle')].map(c => c.getBoundingClientRect()).map(
        box => [((box.left + box.right) / 2 - image.left) * scale, ((box.top + box.bottom) / 2 - image.top) * scale]) }""")
    assert len(found) == len(dots) and np.allclose(found, dots, atol=0.05)


@pytest.mark.parametrize("scale", [1, 2])
def test_point_is_painted_where_the_ticks_say(chrome, server, folder, scale):
    """A point at 100 FLOP/byte and 10 TFLOP/s: its pixels against those of the two tick marks,
    which matplotlib drew."""
    driver.write_notebook(
        folder / "pixels.ipynb",
        "import roofline_lib as rl\n"
        "rl.GemmExplorer(rl.Machine(name='mine', peaks={'fp32': 1e13}, bandwidths={'DRAM': 1e12}), 600, 600, 600)",
    )
    book = driver.Notebook(chrome, server, "pixels.ipynb", width=1100, height=1000, scale=scale)
    assert book.run_all() == []
    image = book.page.locator(".roofline-picture img")
    image.evaluate("image => image.decode()")
    book.painted()
    box = image.bounding_box()
    gray = np.asarray(Image.open(io.BytesIO(book.page.screenshot(clip=box))).convert("L"), float)
    per = gray.shape[1] / 640
    left, top, width, height = 70 * per, 14 * per, 554 * per, 318 * per
    # 100 is the middle of 0.1 to 1e5; 10 T the middle of 10 G to 10 P
    x, y = left + width / 2, top + height / 2
    near = int(12 * per)
    tick_x = center(
        255
        - gray[
            int(top + height + 2 * per) : int(top + height + 4 * per), int(x) - near : int(x) + near
        ].mean(axis=0)
    )
    tick_y = center(
        255
        - gray[int(y) - near : int(y) + near, int(left - 4 * per) : int(left - 2 * per)].mean(
            axis=1
        )
    )
    ink = gray[int(y) - near : int(y) + near, int(x) - near : int(x) + near] < 60
    assert abs(center(ink.sum(axis=0)) - tick_x) <= 1 and abs(center(ink.sum(axis=1)) - tick_y) <= 1
    assert ink.sum() > 60 * scale**2
    book.close()


def center(weights):
    weights = np.where(weights > weights.max() / 3, weights, 0)
    return (weights * np.arange(len(weights))).sum() / weights.sum()


WHOLE = """root => {
  const faults = [], inside = (inner, outer, slack) => inner.left >= outer.left - slack && inner.right <= outer.right + slack
      && inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
  const picture = root.querySelector('.roofline-picture'), card = picture.querySelector('img').getBoundingClientRect();
  const seen = picture.getBoundingClientRect(), said = picture.querySelector('svg + div').getBoundingClientRect();
  const output = root.closest('.jp-OutputArea-output'), page = output.getBoundingClientRect();
  if (output.scrollWidth > output.clientWidth + 1) faults.push('the output scrolls sideways');
  if (!inside(seen, page, 1)) faults.push('the picture leaves the output');
  const scrolls = getComputedStyle(picture).overflowX === 'auto' && picture.scrollWidth > card.width - 1;
  if (!inside(card, seen, 1) && !scrolls) faults.push('the picture is cut off');
  if (!inside(said, seen, 1)) faults.push('the sentences are cut off');
  const quads = [...root.querySelectorAll('svg text')].filter(t => t.textContent.trim()).map(text => {
    const b = text.getBBox(), m = text.getScreenCTM(), dy = 0.18 * b.height;
    const corners = [[b.x, b.y + dy], [b.x + b.width, b.y + dy], [b.x + b.width, b.y + b.height - dy], [b.x, b.y + b.height - dy]].map(
      ([x, y]) => [m.a * x + m.c * y + m.e, m.b * x + m.d * y + m.f]);
    const at = new DOMRect(Math.min(...corners.map(c => c[0])), Math.min(...corners.map(c => c[1])), 0, 0);
    at.width = Math.max(...corners.map(c => c[0])) - at.x; at.height = Math.max(...corners.map(c => c[1])) - at.y;
    if (!inside(at, card, 1)) faults.push(`"${text.textContent}" leaves the card`);
    return { text: text.textContent, corners } });
  const apart = (p, q) => [p, q].some(shape => shape.some((corner, i) => {
    const next = shape[(i + 1) % 4], nx = next[1] - corner[1], ny = corner[0] - next[0], length = Math.hypot(nx, ny) || 1;
    const range = s => s.map(c => (c[0] * nx + c[1] * ny) / length), a = range(p), b = range(q);
    return Math.max(...a) < Math.min(...b) + 1 || Math.max(...b) < Math.min(...a) + 1 }));
  quads.forEach((one, i) => quads.slice(i + 1).forEach(other => {
    if (!apart(one.corners, other.corners)) faults.push(`"${one.text}" lies over "${other.text}"`) }));
  for (const label of root.querySelectorAll('.widget-label, .widget-label-basic, button'))
    if (label.offsetParent && label.scrollWidth > label.clientWidth + 1) faults.push(`"${label.textContent}" is cut off`);
  const parts = [...root.querySelectorAll('.widget-label, input, select, button, .noUi-target')].filter(part => part.offsetParent);
  const boxes = parts.map(part => part.getBoundingClientRect()), name = part => part.textContent || part.value || part.className;
  boxes.forEach((one, i) => { if (!inside(one, page, 1)) faults.push(`control "${name(parts[i])}" leaves the output`);
    boxes.slice(i + 1).forEach((other, j) => {
      if (one.left < other.right - 1 && other.left < one.right - 1 && one.top < other.bottom - 1 && other.top < one.bottom - 1)
        faults.push(`controls "${name(parts[i])}" and "${name(parts[i + 1 + j])}" overlap`) }) });
  return faults }"""


LETTERS = """root => {
  const picture = root.querySelector('.roofline-picture'), scale = picture.querySelector('img').getBoundingClientRect().width / 640;
  const drawn = [...picture.querySelectorAll('svg text')].map(text => scale * text.getAttribute('font-size'));
  const words = [...root.querySelectorAll('.widget-label, input, select, button, svg + div')].filter(node => node.offsetParent);
  return Math.min(...drawn, ...words.map(node => parseFloat(getComputedStyle(node).fontSize))) }"""

# of each slider that is seen: the pixels of its track, and the steps between its two ends
TRACKS = """root => [...root.querySelectorAll('.noUi-base')].filter(track => track.offsetParent).map(
  track => [track.getBoundingClientRect().width, parseFloat(track.querySelector('.noUi-handle').ariaValueMax)])"""

# how many times as bright one of two buttons is: the chosen one, and another
CONTRAST = """root => {
  const light = node => {
    const part = text => { const c = parseFloat(text) / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4 };
    const [r, g, b] = getComputedStyle(node).backgroundColor.match(/[0-9.]+/g).map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 };
  const of = kind => light(root.querySelector(`button.widget-toggle-button${kind}`));
  const [one, other] = [of('.mod-active'), of(':not(.mod-active)')];
  return Math.max(one / other, other / one) }"""


@pytest.mark.parametrize(
    "width, height, zoom, theme, classic",
    [
        (1366, 768, 1, "JupyterLab Light", False),
        (1600, 2400, 2, "JupyterLab Dark", False),
        (390, 1400, 1, "JupyterLab Dark", True),
    ],
)
def test_on_every_screen(open_all, width, height, zoom, theme, classic):
    """A laptop with the file browser open, half a page at twice the size, a telephone: nothing is
    cut off or overlaps, letters can be read, a mouse finds each step of a slider and the chosen
    button is seen. On the laptop controls, picture and sentences are seen at once."""
    book = open_all(
        f"whole-{width}.ipynb",
        width=width,
        height=height,
        zoom=zoom,
        theme=theme,
        classic=classic,
    )
    room = book.page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]
    for name in NAMES:
        root = Live(book, name).root
        assert root.evaluate(WHOLE) == [], name
        assert root.evaluate(LETTERS) >= 11, name
        assert all(steps < track for track, steps in root.evaluate(TRACKS)), name
        if width == 1366:
            assert root.bounding_box()["height"] < room, name
        if root.locator("button").count():
            assert root.evaluate(CONTRAST) > 3, name
    card, words = (
        book.page.locator(".roofline-picture").first.evaluate(
            f"picture => getComputedStyle({node}).color"
        )
        for node in ("picture.querySelector('svg')", "picture.querySelector('svg + div')")
    )
    light = book.page.evaluate(
        "getComputedStyle(document.body).getPropertyValue('--jp-ui-font-color1')"
    )
    assert card and words and light  # the sentence takes the theme's colour, the card keeps its own
    book.close()


def test_axe_finds_no_serious_fault(book):
    from axe_playwright_python.sync_playwright import Axe

    for name in NAMES:
        Live(book, name)
    # The handle of an ipywidgets slider has no accessible name and no way to give it one; the typed
    # box beside it has, and does the same.
    found = Axe().run(
        book.page, context={"include": [[".roofline-explorer"]], "exclude": [[".noUi-handle"]]}
    )
    serious = [
        (fault["id"], [node["html"][:120] for node in fault["nodes"][:2]])
        for fault in found.response["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("name", NAMES)
def test_focus_goes_down_the_screen_as_the_eye_does(book, name):
    live = Live(book, name)
    first = live.root.locator("input:visible, select:visible, button:visible").first
    first.focus()
    where = []
    while live.root.evaluate("root => root.contains(document.activeElement)") and len(where) < 80:
        where.append(
            book.page.evaluate("""() => { const node = document.activeElement, box = node.getBoundingClientRect();
          const row = node.closest('.roofline-explorer > .widget-gridbox > *').getBoundingClientRect();
          return [Math.round(row.top + scrollY), Math.round(row.left), Math.round(box.top - row.top), Math.round(box.left)] }""")
        )
        book.page.keyboard.press("Tab")
    top = where[0][0]
    assert len(where) > 3 and where == sorted(where, key=lambda at: (at[0] - top, at[1]))


def test_every_picture_says_what_it_shows(book):
    for name in NAMES:
        live = Live(book, name)
        said = live.agree()["readout"]
        svg = live.root.locator(".roofline-picture svg")
        assert svg.get_attribute("role") == "img" and said in svg.get_attribute("aria-label")
        for label in live.root.locator("input:visible, select:visible").all():
            assert label.evaluate(
                "node => node.labels.length && node.labels[0].textContent.trim().length > 0"
            )


@pytest.mark.parametrize("steps", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_growth_over_many_steps(book, steps):
    live = Live(book, "GemmExplorer")
    session = book.page.context.new_cdp_session(book.page)
    session.send("Performance.enable")
    live.root.locator(".control-m .noUi-handle").focus()

    def walk(steps):
        for step in range(steps):
            book.page.keyboard.press("ArrowRight" if step // 25 % 2 == 0 else "ArrowLeft")
            if step % 25 == 24:
                live.agree()

    def weigh():
        session.send("HeapProfiler.collectGarbage")
        metrics = {
            metric["name"]: metric["value"]
            for metric in session.send("Performance.getMetrics")["metrics"]
        }
        weights = book.python(
            "gc.collect(); print(len(gc.get_objects()), open('/proc/self/statm').read().split()[1])"
        )
        objects, pages = map(int, weights.split())
        return metrics["Nodes"], metrics["JSHeapUsedSize"] / 1e6, objects, pages * 4096 / 1e6

    walk(50)
    before = weigh()
    walk(steps)
    nodes, heap, objects, resident = (now - then for now, then in zip(weigh(), before, strict=True))
    assert nodes < 300 and heap < 5 and objects < 3000 and resident < 15


def test_notebook_7(open_all):
    """Notebook 7 handles keys while they are still on their way down to the focused element, and
    takes arrows for its own headings; JupyterLab does so on their way up (lumino pull request 635,
    bubblingKeydown). So there even a plain slider does not hear its arrow keys. Mouse, typed
    numbers and the box's own arrows work; the day that a plain slider moves, ours must too."""
    cell = "import ipywidgets\nplain = ipywidgets.IntSlider(5)\nplain.add_class('plain')\nplain"
    book = open_all("notebook-7.ipynb", classic=True, width=1200, height=1200)
    live = Live(book, "GemmExplorer")
    box, handle = (
        live.root.locator(".control-m input"),
        live.root.locator(".control-m .noUi-handle"),
    )
    box.fill("75")
    assert live.changes("m", lambda: box.press("Enter")) == 75
    assert live.changes("m", lambda: box.press("ArrowUp")) == 76
    track = live.root.locator(".control-m .noUi-base").bounding_box()
    live.changes(
        "m", lambda: book.page.mouse.click(track["x"] + 0.8 * track["width"], track["y"] + 2)
    )
    live.changes("precision", live.root.locator(".control-precision button").nth(3).click)
    before = live.agree()["values"]["m"]
    handle.focus()
    book.page.keyboard.press("ArrowRight")
    book.painted()  # a key that moved the slider has sent its message by then; kernels answer in turn
    moved = live.agree()["values"]["m"] != before
    book.command("notebook:insert-cell-below")
    book.page.evaluate(
        "code => { window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.setSource(code) }",
        cell,
    )
    book.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    plain = book.page.locator(".plain .noUi-handle")
    plain.wait_for()
    plain.focus()
    book.page.keyboard.press("ArrowRight")
    book.painted()
    assert moved == (book.python("print(plain.value)").strip() == "6")
    book.close()
