"""ChainExplorer: ties are marked and said, and the panels' tick labels keep apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roofline_lib as rl
from roofline_lib.explorers.chain import ChainExplorer
from roofline_lib.explorers.marks import Point, lay_out
from roofline_lib.explorers.shapes import Words
from roofline_lib.explorers.stage import WIDTH, blank
from roofline_lib.labels import text_size


def filled(explorer, panel):
    """The rows whose point in a panel is filled."""
    return [
        int(point.y)
        for point in explorer.now.marks
        if isinstance(point, Point) and point.panel == panel and not point.hollow
    ]


@pytest.mark.parametrize("matrices", [3, 4, 5, 6])
def test_where_all_orders_cost_the_same_it_says_so_and_fills_all(matrices):
    explorer = rl.ChainExplorer((64,) * (matrices + 1))
    orders = len(rl.chain_orders(matrices))
    assert [filled(explorer, panel) for panel in range(3)] == [list(range(orders))] * 3
    assert (
        explorer.readout.count("All orders cost the same in") == 3
        and "worst" not in explorer.readout
    )
    assert (
        "the same in FLOP: " + rl.quantity(2 * 64**3 * (matrices - 1), "FLOP") in explorer.readout
    )


def test_all_orders_that_tie_for_the_least_are_filled_and_counted():
    explorer = rl.ChainExplorer((1, 64, 64, 64, 1))
    costs = [rl.chain_cost((1, 64, 64, 64, 1), order) for order in rl.chain_orders(4)]
    least = sum(cost.flops == min(cost.flops for cost in costs) for cost in costs)
    assert (
        len(filled(explorer, 0)) == least == 3
        and "and 2 others, 16.5 kFLOP; the worst order needs 32.3 times that." in explorer.readout
    )


@given(
    matrices=st.integers(3, 6),
    sizes=st.lists(st.integers(1, 16384), min_size=7, max_size=7),
    precision=st.sampled_from(["fp64", "fp8"]),
)
def test_numbers_cover_neither_the_brackets_nor_one_another(matrices, sizes, precision):
    now = ChainExplorer.scene(
        matrices, "flops", precision, **{f"d{i}": size for i, size in enumerate(sizes)}
    )
    rows = {}
    for words in lay_out(now.axes, now.height, now.marks):
        if isinstance(words, Words):
            width = text_size(words.text, words.size)[0]
            start = words.x - (width if words.anchor == "end" else 0)
            rows.setdefault(words.y, []).append((start, start + width))
    for spans in map(sorted, rows.values()):
        assert (
            all(end < start for (_, end), (start, _) in zip(spans[:-1], spans[1:], strict=True))
            and spans[-1][1] < WIDTH
        ), spans


@pytest.mark.parametrize(
    "dims",
    [
        (64, 64, 64, 64),
        (16384, 16384, 16384, 1, 16384),
        (4096, 64, 4096, 1),
        (16384, 3, 16384, 1, 700, 1, 9),
    ],
)
def test_tick_labels_of_neighbours_keep_apart(dims):
    explorer = rl.ChainExplorer(dims)
    figure = blank(explorer.now.axes, explorer.now.height)
    figure.canvas.draw()
    boxes = [
        [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        for ax in figure.axes
    ]
    for left, right in zip(boxes[:-1], boxes[1:], strict=True):
        assert max(box.x1 for box in left) + 6 < min(box.x0 for box in right)
    assert max(box.x1 for box in boxes[-1]) < figure.bbox.x1
