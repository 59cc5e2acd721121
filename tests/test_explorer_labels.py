"""Labels of explorers touch no marker and no other label, whatever the controls say."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from roofline_lib.explorers import EXPLORERS
from roofline_lib.explorers.controls import Choice, Control, Number
from roofline_lib.explorers.decode import DecodeExplorer
from roofline_lib.explorers.marks import Bar, Part, Stack, lay_out
from roofline_lib.explorers.shapes import Dot, Path, Shape, Words
from roofline_lib.labels import text_size
from roofline_lib.style import FAINT, MEMORY, OVER, ROOM

_STARTS = {"start": 0.0, "middle": 0.5, "end": 1.0}


def corners(words: Words) -> np.ndarray:
    """The corners (4, 2) of a text, from its baseline to the top of its capitals."""
    width = text_size(words.text, words.size)[0]
    left = -width * _STARTS[words.anchor]
    top = -0.73 * words.size
    box = np.array([(left, top), (left + width, top), (left + width, 0), (left, 0)])
    angle = np.radians(words.angle)
    turn = np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
    return box @ turn + (words.x, words.y)


def apart(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether a line parallel to a side of one of two rectangles (4, 2) parts them."""
    sides = [np.roll(one, -1, axis=0) - one, np.roll(other, -1, axis=0) - other]
    for side in np.concatenate(sides):
        normal = side[::-1] * (1, -1)
        here, there = one @ normal, other @ normal
        if here.max() <= there.min() or there.max() <= here.min():
            return True
    return False


def distance(box: np.ndarray, point: tuple[float, float]) -> float:
    """Pixels from a point to a rectangle (4, 2); 0 inside it."""
    across, down = box[1] - box[0], box[3] - box[0]
    away = point - box[0]
    beyond = []
    for side in (across, down):
        length = np.hypot(*side)
        along = away @ side / length
        beyond.append(max(0.0, -along, along - length))
    return float(np.hypot(*beyond))


def touching(shapes: list[Shape]) -> Iterator[tuple[str, object]]:
    """Each label with another one, or with a marker, that it touches."""
    words = [shape for shape in shapes if isinstance(shape, Words) and shape.text.strip()]
    boxes = [(one.text, corners(one)) for one in words]
    for (text, box), (other, there) in combinations(boxes, 2):
        if not apart(box, there):
            yield text, other
    for dot in (shape for shape in shapes if isinstance(shape, Dot)):
        for text, box in boxes:
            if distance(box, (dot.x, dot.y)) < dot.radius:
                yield text, dot


def drawn(control: Control, rng: np.random.Generator) -> object:
    """One of the values that the control can be set to, as the scene gets it."""
    if isinstance(control, Number):
        return control.ladder[rng.integers(len(control.ladder))]
    if isinstance(control, Choice):
        return list(control.options.values())[rng.integers(len(control.options))]
    return bool(rng.integers(2))


@pytest.mark.parametrize("name", sorted(EXPLORERS))
@pytest.mark.parametrize("states", [30, pytest.param(1500, marks=pytest.mark.slow)])
def test_labels_touch_nothing(name, states):
    explorer, rng = EXPLORERS[name].load()(), np.random.default_rng(0)
    faults = []
    for _ in range(states):
        values = {key: drawn(control, rng) for key, control in explorer.controls.items()}
        scene = explorer.scene(**values)
        found = list(touching(lay_out(scene.axes, scene.height, scene.marks)))
        if found:
            faults.append((values, found))
    assert faults == []


def test_the_geometry_by_hand():
    """A text of known place, turned or not, and markers beside and on it."""
    text = Words(100, 100, "a label", size=10)
    assert list(touching([text, Words(100, 104, "other", size=10)]))
    assert not list(touching([text, Words(100, 112, "other", size=10)]))
    assert list(touching([text, Dot(97, 97, radius=4)]))
    assert not list(touching([text, Dot(95, 97, radius=4)]))
    upright = Words(100, 100, "a label", size=10, angle=90)
    assert list(touching([upright, Dot(103, 120, radius=4)]))
    assert not list(touching([upright, Dot(120, 97, radius=4)]))


def test_a_bar_and_a_stack_run_over_in_the_same_way():
    """Parts keep their colours, the room's end is a line, and what lies past it has a thin bar."""
    box = (100.0, 50.0, 300.0)
    parts = (Part("one", 3.0, "3", MEMORY), Part("two", 1.0, "1", ROOM))
    stack = Stack("memory", parts, 2.0, "4 of 2", box).shapes(None)
    bar = Bar("memory", (1.5, 0.5), "4 of 2", box, (MEMORY, ROOM)).shapes(None)
    assert [str(shape) for shape in bar] == [str(shape) for shape in stack[: len(bar)]]
    fills = [(shape.fill, shape.points[0, 0], shape.points[1, 0]) for shape in bar]
    assert (MEMORY, 100, 325) in fills and (ROOM, 325, 400) in fills and (OVER, 250, 400) in fills


def test_a_label_that_stands_far_off_is_led_to():
    """By a thin line from the marker to the text, which touches no other label and no marker."""
    explorer = DecodeExplorer("llama-2-7b", "A100 80GB SXM", batch=8, context=4096)
    (square,) = (dot for dot in explorer.shapes if isinstance(dot, Dot) and dot.kind == "s")
    (label,) = (
        words
        for words in explorer.shapes
        if isinstance(words, Words) and words.text == "products with weights"
    )
    assert distance(corners(label), (square.x, square.y)) > 26
    leaders = [
        path.points
        for path in explorer.shapes
        if isinstance(path, Path) and len(path.points) == 2 and path.stroke == FAINT
    ]
    assert any(
        np.hypot(*(start - (square.x, square.y))) < 15 and distance(corners(label), end) < 8
        for start, end in leaders
    )
