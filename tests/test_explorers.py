"""Explorers without a browser: every control at its ends and at random, the overlay against the
axes, what is sent, what is refused."""

import base64
import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import ipywidgets as widgets
import matplotlib.style
import nbformat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbconvert import HTMLExporter
from PIL import Image

import roofline_lib as rl
from roofline_lib import explorers
from roofline_lib.explorers import EXPLORERS
from roofline_lib.explorers.base import Explorer
from roofline_lib.explorers.controls import ABSENT, Choice, Number, Switch, log_ladder
from roofline_lib.explorers.marks import Point
from roofline_lib.explorers.shapes import Dot, Words, clip
from roofline_lib.explorers.shapes import Path as Outline
from roofline_lib.explorers.stage import WIDTH, Axes, background, blank, png, svg, views
from roofline_lib.labels import text_size

WITH_FP32 = [name for name in rl.machines() if "fp32" in rl.machine(name).precisions]
HOSTILE = '<img src=x onerror=alert(1)> & "quotes" $\\frac{1}{0}$ \'</svg>'


@pytest.fixture(scope="module", params=sorted(EXPLORERS))
def explorer(request):
    return EXPLORERS[request.param].load()()


def overlay(explorer):
    """The moving layer as a tree: that it parses at all shows that every text is escaped."""
    return ElementTree.fromstring(f"<div>{explorer.stage.moving.value}</div>")


def ends(control):
    """Values of a control that reach its ends: the smallest and largest number, every choice."""
    if isinstance(control, Number):
        return [control.low, control.high]
    return [True, False] if isinstance(control, Switch) else list(control.options)


def anything(control):
    """A strategy for the values of a control."""
    if isinstance(control, Number):
        number = (
            st.integers(control.low, control.high)
            if control.whole
            else st.floats(control.low, control.high)
        )
        return number | st.sampled_from(control.ladder)
    return st.booleans() if isinstance(control, Switch) else st.sampled_from(list(control.options))


def sound(explorer):
    """What holds for every picture: it says something, it is all on the card, it parses, and it is
    what the controls say."""
    assert (
        explorer.readout
        and explorer.readout in repr(explorer)
        and "nan" not in explorer.readout.lower()
    )
    tree = overlay(explorer)
    assert tree.find("div").text == explorer.now.readout
    assert (
        explorer.now.readout in tree.find("svg").attrib["aria-label"]
        and explorer.now.alt in tree.find("svg").attrib["aria-label"]
    )
    assert not [node for node in tree.iter() if "id" in node.attrib]
    for shape in explorer.shapes:
        covered = shape.covered() if not isinstance(shape, Outline) else shape.points
        assert np.isfinite(covered).all(), shape
        assert (covered >= (-1, -1)).all() and (
            covered <= (WIDTH + 1, explorer.now.height + 1)
        ).all(), shape


def test_every_control_at_its_ends(explorer):
    before = {name: control.value for name, control in explorer.controls.items()}
    for name, control in explorer.controls.items():
        for value in ends(control):
            control.value = value
            assert control.value == value
            sound(explorer)
        control.value = before[name]


@given(data=st.data())
def test_any_order_of_any_values_ends_in_the_same_picture(explorer, data):
    for name in data.draw(
        st.lists(st.sampled_from(sorted(explorer.controls)), min_size=1, max_size=6)
    ):
        explorer.controls[name].value = data.draw(anything(explorer.controls[name]), label=name)
    sound(explorer)
    afresh = type(explorer).scene(
        **{name: control.chosen for name, control in explorer.controls.items()}
    )
    assert (explorer.now.readout, explorer.now.alt, explorer.now.axes) == (
        afresh.readout,
        afresh.alt,
        afresh.axes,
    )


def test_nothing_is_sent_when_nothing_changed(explorer, monkeypatch):
    sent = []
    monkeypatch.setattr(
        widgets.Widget, "send_state", lambda self, key=None: sent.append((self, key))
    )
    for control in explorer.controls.values():
        control.value = control.value
    monkeypatch.setattr(type(explorer), "scene", None)  # not even asked for
    explorer._show()
    assert not sent


def test_one_step_sends_the_moving_layer_once_and_no_background(monkeypatch):
    explorer, sent = rl.GemmExplorer(), []
    monkeypatch.setattr(widgets.Widget, "send_state", lambda self, key=None: sent.append(self))
    explorer.controls["m"].slider.value += 1
    assert sent.count(explorer.stage.moving) == 1 and explorer.stage.behind not in sent
    assert len(sent) <= 3  # the slider's own value, the typed box, the moving layer
    # where the picture is new the box is too, and what is typed next is not written over
    assert sent[-1] is explorer.stage.moving


def test_stored_picture(explorer):
    bundle = explorer._repr_mimebundle_()
    picture = Image.open(io.BytesIO(base64.b64decode(bundle["image/png"])))
    # matplotlib 3.9 rounds down
    assert picture.width == WIDTH and abs(picture.height - explorer.now.height) <= 1
    assert len(bundle["image/png"]) < 45_000 and len(picture.getcolors()) > 8
    assert (
        bundle["text/plain"] == repr(explorer)
        and "application/vnd.jupyter.widget-view+json" in bundle
    )


@given(
    m=st.integers(1, 65536),
    n=st.integers(1, 65536),
    k=st.integers(1, 65536),
    precision=st.sampled_from(["fp32", "bf16"]),
    machine=st.sampled_from(["house chip", "A100 40GB SXM", "T4", "MI300X"]),
)
def test_point_and_roofs_lie_where_the_axes_say(m, n, k, precision, machine):
    explorer = rl.GemmExplorer(machine, m, n, k, precision)
    if precision not in rl.machine(machine).precisions:
        return
    now, ax = explorer.now, blank(explorer.now.axes, explorer.now.height).axes[0]
    limit = rl.bound(rl.gemm(m, n, k, precision), machine, precision)
    to_picture = np.array([1, -1]), np.array([0, now.height])
    spot = (
        ax.transData.transform((limit.work.intensity, limit.attainable_performance)) * to_picture[0]
        + to_picture[1]
    )
    (circle,) = overlay(explorer).iter("circle")
    assert np.allclose((float(circle.attrib["cx"]), float(circle.attrib["cy"])), spot, atol=0.01)
    ridge = (
        ax.transData.transform((rl.machine(machine).ridge_point(precision), limit.peak_flops))
        * to_picture[0]
        + to_picture[1]
    )
    slope, flat = [
        shape.points for shape in explorer.shapes if isinstance(shape, Outline) and shape.width == 3
    ]
    assert np.allclose(slope[-1], ridge, atol=1e-6) and np.allclose(flat[0], ridge, atol=1e-6)
    assert (
        limit.bound_by == ("compute" if spot[0] >= ridge[0] - 1e-6 else "memory")
        and f"{limit.bound_by}-bound" in explorer.readout
    )


def test_pixels_are_those_of_the_axes_own_transform(explorer):
    """Inside the frame and well outside, log axes and linear ones."""
    now = explorer.now
    for one, ax, view in zip(
        now.axes,
        blank(now.axes, now.height).axes,
        views(now.axes, now.height),
        strict=True,
    ):
        ends = ax.transAxes + ax.transData.inverted()
        x, y = ends.transform(np.random.default_rng(1).uniform(-1, 2, (50, 2))).T
        assert np.allclose(
            view.pixels(x, y) * (1, -1) + (0, now.height),
            ax.transData.transform(np.column_stack([x, y])),
            atol=1e-6,
        )
        assert np.allclose(view.pixels(one.xlim[0], one.ylim[1]), one.frame[:2], atol=1e-6)


@given(
    m=st.integers(1, 65536),
    n=st.integers(1, 65536),
    k=st.integers(1, 65536),
    machine=st.sampled_from(WITH_FP32),
)
def test_labels_keep_clear_of_each_other_and_of_the_point(m, n, k, machine):
    shapes = rl.GemmExplorer(machine, m, n, k, "fp32").shapes
    words, dot = (
        [shape for shape in shapes if isinstance(shape, Words)],
        next(shape for shape in shapes if isinstance(shape, Dot)),
    )
    for i, one in enumerate(words):
        covered = one.covered()
        assert np.hypot(*(covered - (dot.x, dot.y)).T).min() > 0.8 * dot.radius, one
        for other in words[i + 1 :]:
            assert (
                np.hypot(*(covered[:, None] - other.covered()[None]).transpose(2, 0, 1)).min() > 1
            ), (one, other)


@pytest.mark.parametrize("name", ["A100 40GB SXM", "house chip", "H100 SXM"])
def test_labels_of_roofs_touch_no_point(name):
    """Lessons 3 and 9 have up to eight points on their roofs, and both labels find a place."""
    tiling, operators = rl.TilingExplorer(name), rl.OperatorExplorer(name, fused=True, flash=True)
    for explorer, control in ((tiling, "tile_m"), (tiling, "k"), (operators, "tokens")):
        before = explorer.controls[control].value
        for value in 2 ** np.arange(0, 13):
            explorer.controls[control].value = value
            dots = [shape for shape in explorer.shapes if isinstance(shape, Dot)]
            roofs = [
                shape
                for shape in explorer.shapes
                if isinstance(shape, Words) and shape.anchor == "middle" and "/s" in shape.text
            ]
            for words in roofs:
                for dot in dots:
                    assert np.hypot(*(words.covered() - (dot.x, dot.y)).T).min() > dot.radius + 1, (
                        control,
                        value,
                        words.text,
                    )
        explorer.controls[control].value = before


def test_hostile_names_are_escaped_everywhere():
    machine = rl.Machine(name=HOSTILE, peaks={"fp32": 1e12}, bandwidths={"DRAM": 1e11})
    explorer = rl.GemmExplorer(machine)
    sound(explorer)
    assert "<img" not in explorer.stage.moving.value and HOSTILE in explorer.readout
    assert explorer._repr_mimebundle_()["image/png"]
    tree = ElementTree.fromstring(svg([Words(0, 0, HOSTILE)], 100, HOSTILE))
    assert tree.find("text").text == tree.attrib["aria-label"] == HOSTILE
    explorer.controls["machine"].take(HOSTILE + "?")
    assert "<img" not in explorer.controls["machine"].message.value


def test_two_explorers_live_side_by_side():
    one, other = rl.GemmExplorer(m=8), rl.GemmExplorer(m=8)
    other.controls["m"].value = 4096
    assert one.controls["m"].value == 8 and one.readout != other.readout
    assert one.stage.behind.value == other.stage.behind.value  # the same axes: drawn once


@pytest.mark.parametrize("came", [0, -3, 65537, 1.5, "many", None, True, float("nan")])
def test_a_refused_number_names_argument_unit_and_range_and_leaves_all_as_it_was(came):
    explorer = rl.GemmExplorer(m=75)
    readout = explorer.readout
    with pytest.raises(
        ValueError, match=r"m must be a whole number from 1 to 65536 \(rows of A\); got"
    ):
        explorer.controls["m"].value = came
    with pytest.raises(
        ValueError, match=r"m must be a whole number from 1 to 65536 \(rows of A\); got"
    ):
        rl.GemmExplorer(m=came)
    assert explorer.controls["m"].value == 75 and explorer.readout == readout


def test_a_typed_number_is_kept_or_refused_with_a_message():
    control = rl.GemmExplorer(m=75).controls["m"]
    control.box.value = -3.0
    assert (control.value, control.box.value) == (75, 75)
    assert "m must be a whole number from 1 to 65536 (rows of A); got -3" in control.message.value
    assert control.message.layout.display != "none"
    control.box.value = 76.0
    assert (
        control.value == 76
        and control.message.value == ""
        and control.message.layout.display == "none"
    )
    changes = []
    control.observe(lambda change: changes.append(change.new), "value")
    for typed in (1000, 65536, 1, 75):
        control.box.value = float(typed)
        assert control.value == typed == control.box.value
    # and nothing in between, such as the slider's nearest step
    assert changes == [1000, 65536, 1, 75]


def test_why_a_number_was_not_used_stands_until_anything_else_is():
    explorer = rl.GemmExplorer(m=75)
    control, other = explorer.controls["m"], explorer.controls["k"]
    for cure in (
        lambda: setattr(other, "value", other.value + 1),
        lambda: setattr(explorer.controls["precision"].picker, "value", "bf16"),
        lambda: setattr(control, "value", 76),
    ):
        control.box.value = 99999999.0
        assert "got 99999999" in control.message.value and control.message.layout.display != "none"
        cure()
        assert control.message.value == "" and control.message.layout.display == "none"


def test_the_slider_walks_round_numbers_and_only_follows_a_typed_one():
    control = rl.GemmExplorer(m=1000).controls["m"]
    assert control.ladder[control.slider.value] == 1024 and control.value == 1000
    control.slider.value += 1
    assert control.value == control.box.value == 1280
    assert log_ladder(1, 20) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20] and log_ladder(
        100, 100
    ) == [100]
    ladder = np.array(log_ladder(4, 65536))
    assert (ladder[1:] <= 1.25 * ladder[:-1]).all()


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_a_slider_walks_its_whole_range(name):
    """No step more than doubles a value; it would if a ladder knew whole numbers of SI only."""
    for control in getattr(rl, name)().controls.values():
        if isinstance(control, Number):
            ladder = np.array([step for step in control.ladder if step])
            assert (ladder[1:] <= 2 * ladder[:-1]).all(), control.name
            assert (control.ladder[0], control.ladder[-1]) == (control.low, control.high)


def test_a_screen_reader_hears_a_sliders_new_value_and_its_unit():
    """The slider itself says the number of its step only."""

    def heard(explorer):
        said = overlay(explorer).find("span")
        return None if said is None else (said.attrib["role"], said.text)

    explorer = rl.GemmExplorer(m=1000)
    assert heard(explorer) is None
    explorer.controls["m"].slider.value += 1
    assert heard(explorer) == ("status", "m (rows of A): 1280")
    explorer.controls["precision"].picker.value = "bf16"  # a button says its own name
    assert heard(explorer) is None
    peak = rl.PeakExplorer()
    peak.controls["clock"].value = 1.5e9
    assert heard(peak) == ("status", "clock (GHz): 1.5 GHz")


def test_choices_take_names_and_refuse_others():
    explorer = rl.GemmExplorer()
    explorer.controls["machine"].value = "h100-sxm"
    assert explorer.controls["machine"].value == "H100 SXM" and "H100 SXM" in explorer.readout
    for name, came in (("machine", "H1000"), ("machine", 3), ("precision", "fp12")):
        with pytest.raises(ValueError, match=f"{name} .* is not known"):
            explorer.controls[name].value = came
    explorer.controls["precision"].picker.value = "bf16"
    assert explorer.controls["precision"].value == "bf16" and "bf16" in explorer.readout


def test_a_precision_that_the_machine_lacks_is_said_and_not_replaced():
    explorer = rl.GemmExplorer("V100 SXM2", precision="bf16")
    assert "V100 SXM2 has no bf16 peak" in explorer.readout and "fp16" in explorer.readout
    explorer.controls["precision"].value = "fp16"
    assert "-bound" in explorer.readout


def test_what_would_do_instead_is_a_control_that_the_explorer_has():
    assert (
        "Set activations to fp16, or choose another machine."
        in rl.DecodeExplorer(machine="V100 SXM2").readout
    )
    said = rl.GemmExplorer("V100 SXM2", precision="bf16").readout
    assert said.endswith("Set precision to fp64 or fp32 or fp16, or choose another machine.")
    for without in (
        rl.DecodeExplorer(machine="EPYC 9654"),
        rl.TrainingExplorer(machine="V100 SXM2"),
    ):
        assert without.readout.endswith("Choose another machine.") and "Set " not in without.readout


def test_precisions_that_the_machine_lacks_are_marked_and_stay():
    explorer = rl.GemmExplorer("house chip", precision="fp8")
    control = explorer.controls["precision"]

    def marked():
        return [one for words, one in control.picker.options if words.endswith(f" {ABSENT}")]

    assert (
        marked() == ["fp64", "tf32", "fp8", "int8", "fp4"]
        and control.value == control.picker.value == "fp8"
    )
    assert (
        control.picker.tooltips[0] == "precision fp64: not on this machine"
        and control.picker.tooltips[1] == "precision fp32"
    )
    explorer.controls["machine"].value = "H100 SXM"
    assert marked() == ["fp4"] and control.value == "fp8" and "-bound" in explorer.readout
    activations = rl.DecodeExplorer(machine="V100 SXM2").controls["activations"].picker
    assert [ABSENT in words for words, _ in activations.options] == [True, False, True]
    assert not any(activations.icons)  # a page of widgets need not have a font of icons


def test_ipywidgets_7_shows_an_explorer_too(monkeypatch):
    """Colab has it, and its page belongs to it. It gives no bundle of its own."""
    explorer = rl.GemmExplorer()
    now = explorer._repr_mimebundle_()
    monkeypatch.delattr(widgets.Widget, "_repr_mimebundle_")
    then = explorer._repr_mimebundle_()
    view = "application/vnd.jupyter.widget-view+json"
    assert then[view] == now[view] and then.keys() == now.keys()


@pytest.mark.parametrize("model", ["llama-2-7b", "llama-3-8b", "mixtral-8x7b", "deepseek-v3"])
@pytest.mark.parametrize("batch", [1, 16, 1024])
def test_groups_that_lie_on_one_another_share_a_label(model, batch):
    explorer = rl.DecodeExplorer(model, batch=batch)
    points = {
        mark.label: mark.x
        for mark in explorer.now.marks
        if isinstance(mark, Point) and mark.panel == 0
    }
    groups = set(re.findall(r"([a-z]+) [\d.,]+ FLOP/byte", explorer.now.alt))
    together = {"all operators": groups, "products with weights": groups - {"attention"}}
    said = [name for label in points for name in together.get(label, label.split(", "))]
    assert sorted(said) == sorted(groups) and "attention" in groups
    assert np.all(np.diff(sorted(map(np.log10, points.values()))) > 0.1)


@pytest.mark.parametrize(("model", "batch"), [("llama-3.1-405b", 1), ("llama-3-70b", 128)])
def test_a_model_that_does_not_fit_says_how_many_chips_hold_it(model, batch):
    room, held = rl.machine("H200 SXM").capacity(), rl.transformer(model)
    needed = held.weight_bytes("bf16") + held.kv_bytes(batch, 4096, "bf16")
    chips = next(n for n in range(1, 100) if n * room >= needed)
    readout = rl.DecodeExplorer(model, "H200 SXM", batch=batch).readout
    assert chips > 1 and readout.endswith(f"150 GB; {chips} chips for the memory alone.")


def test_many_names_or_long_ones_are_a_list_and_few_are_buttons():
    explorer = rl.MeasuredExplorer()
    pickers = {
        name: type(control.picker)
        for name, control in explorer.controls.items()
        if isinstance(control, Choice)
    }
    assert pickers == {
        "record": widgets.Dropdown,
        "beside": widgets.Dropdown,
        "precision": widgets.ToggleButtons,
        "family": widgets.ToggleButtons,
    }


def test_a_machine_made_by_hand_joins_the_list():
    mine = rl.Machine(name="A100 40GB SXM", peaks={"fp32": 1e12}, bandwidths={"DRAM": 1e12})
    explorer = rl.GemmExplorer(mine)
    assert explorer.controls["machine"].chosen is mine  # not the catalogue's of the same name
    laptop = rl.Machine(name="laptop", peaks={"fp32": 1e8}, bandwidths={"DRAM": 1e6})
    explorer = rl.GemmExplorer(laptop)
    assert explorer.now.axes[0].ylim[0] < 1e8  # further decades where the usual ones do not reach
    sound(explorer)


def test_controls_of_other_kinds():
    flash = Switch("flash", True)
    with pytest.raises(ValueError, match="flash must be True or False"):
        flash.value = 1
    flash.tick.value = False
    assert flash.value is False
    clock = Number("clock", 1.4, 0.5, 3.0, "GHz", whole=False, ladder=np.linspace(0.5, 3, 26))
    clock.slider.value = 25
    assert clock.value == 3.0 and Choice("x", "a", {"a": 1, "b": 2}).chosen == 1


def test_a_subclass_without_a_scene_says_so():
    with pytest.raises(NotImplementedError):
        Explorer(Switch("flash", True))


@given(points=st.lists(st.tuples(st.floats(-50, 150), st.floats(-50, 150)), min_size=2, max_size=6))
def test_clipped_lines_stay_inside_and_keep_what_is_inside(points):
    points, frame = np.array(points), (0.0, 0.0, 100.0, 100.0)
    pieces = clip(points, frame)
    for piece in pieces:
        assert (piece >= -1e-6).all() and (piece <= 100 + 1e-6).all()
    share = np.linspace(0, 1, 11)[:, None]
    for start, end in zip(points[:-1], points[1:], strict=True):
        inside = [
            p for p in start + share * (end - start) if (p > 1e-3).all() and (p < 100 - 1e-3).all()
        ]
        for p in inside:
            assert any(
                _distance(p, a, b) < 1e-6
                for piece in pieces
                for a, b in zip(piece[:-1], piece[1:], strict=True)
            )


def test_lines_of_any_slope_are_clipped_without_overflow():
    with np.errstate(all="raise"):
        (piece,) = clip(np.array([(-50.0, 0.0), (150.0, 1e-307)]), (0.0, -100.0, 100.0, 100.0))
        assert np.allclose(piece, [(0, 0), (100, 0)])
        assert clip(np.array([(-50.0, 0.0), (150.0, 1e-307)]), (0.0, 50.0, 100.0, 100.0)) == []


def _distance(point, start, end):
    step = end - start
    along = np.clip(np.dot(point - start, step) / max(np.dot(step, step), 1e-300), 0, 1)
    return np.hypot(*(start + along * step - point))


def test_text_size_is_on_the_safe_side():
    width, height = text_size("312 TFLOP/s", 13)
    assert 60 < width < 100 and height > 13


@pytest.mark.parametrize(
    "path",
    sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb")),
    ids=lambda path: path.stem,
)
def test_stored_lessons_show_a_picture_for_each_explorer_also_as_html(path):
    notebook = nbformat.read(path, as_version=4)
    shown = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "Explorer: " in output.get("data", {}).get("text/plain", "")
    ]
    pictures = [output.data.get("image/png", "").replace("\n", "") for output in shown]
    assert all(pictures)
    html = HTMLExporter().from_notebook_node(notebook)[0].replace("\n", "")
    assert all(picture in html for picture in pictures)


def test_every_explorer_is_listed_and_its_sample_runs():
    folder = Path(explorers.__file__).parent
    classes = {
        line.removeprefix("class ").partition("(")[0]
        for path in folder.glob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("class ") and line.endswith("(Explorer):")
    }
    assert classes == set(EXPLORERS)
    for name, listing in EXPLORERS.items():
        made = eval(listing.call(), {"rl": rl})
        assert type(made) is listing.load() and type(made).__name__ == name
        for argument, value in listing.load().sample.items():
            if argument in made.controls:
                assert made.controls[argument].value == value


def test_the_list_of_explorers_costs_no_pictures():
    code = (
        "import sys; from roofline_lib.explorers import EXPLORERS; "
        "print([m for m in ('matplotlib', 'ipywidgets') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout == "[]\n"


def test_a_control_takes_what_the_argument_takes():
    explorer = rl.OperatorExplorer(kv_heads=8)
    explorer.controls["kv_heads"].value = 4
    assert explorer.controls["kv_heads"].value == 4
    explorer.controls["kv_heads"].value = np.int64(2)
    assert explorer.controls["kv_heads"].value == 2
    for came in (True, "4", 3, 4.5, None):
        with pytest.raises(ValueError, match="kv_heads .* is not known.*; choose one of 32, 16, 8"):
            explorer.controls["kv_heads"].value = came
    chain = rl.ChainExplorer()
    chain.controls["matrices"].value = 5
    assert chain.readout.startswith("A[4096, 64] B[64, 4096] C[4096, 1] D[1, 64] E[64, 64]")


def test_a_number_with_a_prefix_is_typed_in_it_and_kept_in_its_unit():
    clock = Number("clock", 1.4e9, 0.5e9, 3e9, "Hz", whole=False, ladder=[1e9, 2e9], prefix="G")
    assert clock.box.value == 1.4 and clock.box.description == "clock (GHz)"
    clock.box.value = 2.5
    assert clock.value == 2.5e9
    clock.box.value = 30.0
    assert clock.value == 2.5e9 and clock.box.value == 2.5
    assert "clock must be a number from 500 MHz to 3 GHz (Hz); got 30 GHz" in clock.message.value
    clock.slider.value = 0
    assert clock.value == 1e9 and clock.box.value == 1.0


def test_a_machine_chosen_brings_its_own_in_one_picture(monkeypatch):
    drawn = []
    scene = rl.TilingExplorer.scene
    explorer = rl.TilingExplorer("house chip", units=7)
    monkeypatch.setattr(
        rl.TilingExplorer,
        "scene",
        staticmethod(lambda **values: drawn.append(values) or scene(**values)),
    )
    explorer.controls["machine"].value = "A100 40GB SXM"
    assert len(drawn) == 1 and drawn[0]["units"] == explorer.controls["units"].value == 108


def test_a_new_precision_with_a_roof_is_offered_where_a_machine_has_it():
    mine = rl.Machine(name="mine", peaks={"int4": 1e15, "fp32": 1e13}, bandwidths={"DRAM": 1e12})
    explorer = rl.GemmExplorer(mine, precision="int4")
    assert "int4" in explorer.controls["precision"].options
    assert "int4 on mine" in explorer.readout
    assert "int4" not in rl.GemmExplorer().controls["precision"].options


STYLES = ["default", *sorted(matplotlib.style.available)]
SETTINGS = [{"savefig.bbox": "tight"}, {"text.usetex": True}, {"savefig.dpi": 300}]
AXES = (Axes((0.1, 1e4), (1e9, 1e15), "arithmetic intensity (FLOP/byte)", "performance (FLOP/s)"),)


@pytest.fixture(scope="module")
def drawn_by_default():
    shapes = [Dot(100, 100), Words(200, 100, "a $label$"), Outline(np.eye(2) * 90, "#000000")]
    return shapes, background.__wrapped__(AXES, 386), png(AXES, 386, shapes)


@pytest.mark.parametrize("look", [*STYLES, *SETTINGS], ids=str)
def test_a_picture_is_the_same_whatever_the_readers_settings_say(look, drawn_by_default):
    shapes, behind, still = drawn_by_default
    with matplotlib.style.context(look):
        blank.cache_clear()
        assert background.__wrapped__(AXES, 386) == behind
        assert png(AXES, 386, shapes) == still
