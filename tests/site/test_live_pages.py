"""Explorers on the pages, without Python: they show what the explorer itself would, a step at a
time."""

import gzip
import io
import json

import browser as driver
import nbformat
import numpy as np
import pytest
import scenes as exporter
from axe_playwright_python.sync_playwright import Axe
from harness.repository import ROOT
from PIL import Image

from roofline_lib.course.lessons import lessons
from roofline_lib.explorers.marks import lay_out
from roofline_lib.explorers.stage import background, svg

MOST = 150_000  # bytes of an explorer on their way, packed


@pytest.fixture(scope="module")
def live(alone, scenes):
    """opened(page): a page with its explorers alive, and what it asked for."""
    contexts = []

    def opened(name, **options):
        context = alone.new_context(**{"viewport": {"width": 1366, "height": 768}, **options})
        contexts.append(context)
        page, asked, wrong = context.new_page(), [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{address}/{name}.html")
        page.wait_for_selector("figure.explorer.live")
        return page, asked, wrong

    with driver.served(scenes.parents[1]) as address:
        yield opened
    for context in contexts:
        context.close()


def shown_in_lessons():
    """(lesson, cell id) of every explorer that a lesson stores."""
    for lesson in lessons():
        book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
        for cell in book.cells:
            for output in cell.get("outputs", ()):
                if "Explorer: " in output.get("data", {}).get("text/plain", "")[:30]:
                    yield pytest.param(lesson, cell.id, id=f"{lesson.number:02}-{cell.id}")


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("lesson", "cell"), list(shown_in_lessons()))
def test_a_page_has_what_the_explorer_shows(scenes, lesson, cell):
    """First, and at both ends of each control: the picture, its axes and its sentence."""
    name = f"{lesson.number:02}-{cell}"
    explorer = dict(exporter.explorers(ROOT / "notebooks" / lesson.file))[cell]
    told = read(scenes, name)
    at_first = {control: one.value for control, one in explorer.controls.items()}

    def expected():
        chosen = {control: one.chosen for control, one in explorer.controls.items()}
        now = explorer.scene(**chosen)
        shapes = lay_out(now.axes, now.height, now.marks)
        picture = svg(shapes, now.height, f"{now.alt} {now.readout}")
        return picture, now.readout, background(now.axes, now.height)

    def kept(scene):
        return scene["picture"], scene["said"], told["backs"][scene["back"]]

    assert kept(told["first"]) == expected()
    packed = gzip.compress((scenes / f"{name}.json").read_bytes())
    own = told["controls"][: len(explorer.controls)]
    for control, one in zip(own, explorer.controls.values(), strict=True):
        path = scenes / f"{name}.{control['name']}.json"
        steps = json.loads(path.read_text(encoding="utf-8"))
        assert len(steps) == len(control["steps"]) > 1
        assert kept(steps[control["at"]]) == kept(told["first"])
        for end in (0, -1):
            one.value = exporter.steps_of(one)[end]
            assert kept(steps[end]) == expected(), (control["name"], end)
            for other, value in at_first.items():
                explorer.controls[other].value = value
        packed += gzip.compress(path.read_bytes())
    for control, together in zip(
        told["controls"][len(own) :], exporter.TOGETHER.get((lesson.name, cell), []), strict=True
    ):
        steps = read(scenes, f"{name}.{control['name']}")
        assert len(steps) + control["skips"] == len(control["steps"])
        for place, setting in enumerate(together.settings):
            for moved, value in setting.items():
                explorer.controls[moved].value = value
            assert kept(steps[place]) == expected()
            for other, value in at_first.items():
                explorer.controls[other].value = value
        packed += gzip.compress((scenes / f"{name}.{control['name']}.json").read_bytes())
    assert len(packed) < MOST


def test_a_slider_moves_picture_and_sentence_and_asks_nobody_else(live):
    page, asked, wrong = live(f"notebooks/{lessons()[3].stem}")
    figure = page.locator("figure.explorer.live").first
    said, picture = figure.locator(".said"), figure.locator(".layers svg")
    before = said.inner_text(), picture.inner_html()
    few = len(asked)
    slider = figure.get_by_label("tile_m (rows)")
    slider.focus()
    page.wait_for_function("count => performance.getEntriesByType('resource').length > 0", arg=few)
    slider.press("ArrowRight")
    page.wait_for_function(
        "before => document.querySelector('figure.explorer .said').innerText !== before",
        arg=before[0],
    )
    assert picture.inner_html() != before[1]
    assert slider.get_attribute("aria-valuetext") == figure.locator(".value").nth(2).inner_text()
    # another control: the first goes back to where the lesson sets it
    moved = slider.input_value()
    figure.get_by_role("button", name="bf16").click()
    page.wait_for_function("document.querySelector('figure.explorer .said').innerText")
    assert slider.input_value() != moved
    figure.get_by_role("button", name="As the lesson sets it").click()
    assert (said.inner_text(), picture.inner_html()) == before
    assert {url.split("/")[2].split(":")[0] for url in asked} == {"127.0.0.1"} and wrong == []


def apart(one, other):
    """How far two pictures are apart, in steps of 256 per pixel and colour. The edge of a line may
    fall a hair beside, as a browser paints layers."""
    one, other = (
        np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), int) for shot in (one, other)
    )
    return np.abs(one - other).mean()


def test_the_pixels_are_those_of_the_live_explorer(live):
    """The page's two layers, and in their place what the explorer itself sends to a notebook."""
    lesson = lessons()[2]
    page, _, _ = live(f"notebooks/{lesson.stem}")
    layers = page.locator("figure.explorer.live .layers").first
    on_the_page = layers.screenshot()
    ((cell, explorer),) = list(exporter.explorers(ROOT / "notebooks" / lesson.file))[:1]
    layers.evaluate(
        "(box, [behind, moving]) => { box.innerHTML = `<div>${behind}</div><div>${moving}</div>` }",
        [
            explorer.stage.behind.value,
            explorer.stage.moving.value.partition("</svg>")[0] + "</svg>",
        ],
    )
    page.wait_for_function("document.querySelector('.layers img').complete")
    assert apart(layers.screenshot(), on_the_page) < 0.01
    explorer.controls["m"].value = 1
    moved = explorer.stage.moving.value.partition("</svg>")[0] + "</svg>"
    layers.evaluate("(box, moved) => { box.lastChild.innerHTML = moved }", moved)
    assert apart(layers.screenshot(), on_the_page) > 0.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_a_live_explorer(live, theme):
    page, _, _ = live(f"notebooks/{lessons()[7].stem}", color_scheme=theme)
    found = Axe().run(page, "figure.explorer").response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []


def test_a_narrow_page_does_not_scroll_and_letters_can_be_read(live):
    page, _, _ = live("index", viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    smallest = page.evaluate("""() => Math.min(...[...document.querySelectorAll(
        'figure.explorer.live svg text')].map(text => text.getBoundingClientRect().height))""")
    assert smallest >= 11
    picture, hint = page.locator(".live .picture").first, page.locator(".live .hint").first
    assert hint.is_visible() and "sideways" in hint.inner_text()
    assert picture.evaluate("box => getComputedStyle(box).maskImage") != "none"
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.live .picture').scrollLeft > 10")
    picture.evaluate("box => { box.scrollLeft = box.scrollWidth }")
    page.wait_for_selector(".live .picture.at-end")
    assert picture.evaluate("box => getComputedStyle(box).maskImage") == "none"


def test_a_picture_that_fits_has_no_hint(live):
    page, _, _ = live("index")
    assert not page.locator(".live .hint").first.is_visible()
    assert page.locator(".live .picture").first.get_attribute("tabindex") is None


def test_without_scenes_the_still_picture_stays(alone, scenes):
    context = alone.new_context(java_script_enabled=False)
    page = context.new_page()
    with driver.served(scenes.parents[1]) as address:
        page.goto(f"{address}/notebooks/{lessons()[3].stem}.html")
        still = page.locator("figure.explorer img.card").first
        assert still.is_visible() and still.get_attribute("alt")
    context.close()
