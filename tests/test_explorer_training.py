"""TrainingExplorer: its bar holds what lies in memory at the worst moment, and labels stay near
what they name."""

import pytest

import roofline_lib as rl
from roofline_lib.explorers.marks import Stack, lay_out
from roofline_lib.explorers.shapes import Words
from roofline_lib.explorers.stage import views
from roofline_lib.training import KEEP


def stack(explorer):
    (bar,) = [mark for mark in explorer.now.marks if isinstance(mark, Stack)]
    return bar


def words(explorer):
    scene = explorer.now
    shapes = lay_out(scene.axes, scene.height, scene.marks)
    return [shape for shape in shapes if isinstance(shape, Words)]


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("micro_batch", [1, 4, 16, 128])
def test_the_bar_is_the_memory_at_the_worst_moment(keep, micro_batch):
    bar = stack(rl.TrainingExplorer(micro_batch=micro_batch, keep=keep))
    held = rl.training_memory("gemma-2b", micro_batch, 2048, keep)
    assert bar.total == pytest.approx(held.total)
    assert bar.runs_over == (held.total > rl.machine("A100 80GB SXM").capacity())


def test_what_comes_and_goes_is_named_by_the_larger_of_the_two():
    small = rl.Transformer(2, 1024, 16, 16, 64, 65536, 1000)
    for model, name in (("gemma-2b", "logits"), (small, "live layer")):
        assert stack(rl.TrainingExplorer(model, keep="layer inputs")).parts[-1].name == name


@pytest.mark.parametrize("model", ["gemma-2b", "deepseek-v3", "tinyllama-1.1b"])
@pytest.mark.parametrize("tokens", [32, 2048, 131072])
def test_the_products_label_stays_at_its_point(model, tokens):
    """It used to jump a decade up and 100 pixels to the left from micro-batch 16 on."""
    for micro_batch in (1, 2, 4, 8, 16, 32, 64, 128):
        explorer = rl.TrainingExplorer(model, micro_batch=micro_batch, tokens=tokens)
        point = next(m for m in explorer.now.marks if getattr(m, "label", "") == "products")
        view = views(explorer.now.axes, explorer.now.height)[0]
        ((x, y),) = view.pixels(point.x, point.y)
        (label,) = [one for one in words(explorer) if one.text == "products"]
        assert abs(label.x - x) < 90 and abs(label.y - y) < 60


@pytest.mark.parametrize("keep", KEEP)
def test_names_of_the_parts_do_not_overlap(keep):
    for model in ("gemma-2b", "deepseek-v3", rl.Transformer(2, 1024, 16, 16, 64, 65536, 1000)):
        bar = stack(rl.TrainingExplorer(model, micro_batch=16, keep=keep))
        assert bar.gap_between_names > 3
