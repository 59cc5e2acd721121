"""The two drawings, read back from their artists: nothing crosses a text, and what is written is
what the catalogue says."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import rc_context, style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import roofline_lib as rl
from roofline_lib import labels

SM_MACHINES = [name for name in rl.machines() if rl.machine(name).details.get("unit_name") == "SM"]
SM_MACHINES.remove("house chip")
LAYERS = [name for name in rl.transformers() if not rl.transformer(name).kv_lora_rank]
DRAWINGS = [(rl.draw_sm, name) for name in SM_MACHINES]
DRAWINGS += [(rl.draw_transformer_layer, name) for name in LAYERS]


def axes(width=6.4, height=6.0):
    figure = Figure(figsize=(width, height), dpi=100)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def written(drawn):
    return [text.get_text() for text in drawn.texts]


def outline(artist):
    """The pixels along a line, a pipe or the edge of a box, one a pixel."""
    path = artist.get_path().transformed(artist.get_transform())
    return labels.sample(np.vstack(path.to_polygons(closed_only=False)), 1)


@pytest.mark.parametrize(("draw", "name"), DRAWINGS)
def test_nothing_crosses_a_text_and_all_is_on_the_card(draw, name):
    ax = axes()
    drawn = draw(ax, name)
    boxes = [text.get_window_extent() for text in drawn.texts]
    strokes = [outline(artist) for artist in (*drawn.boxes.values(), *drawn.lines)]
    for place, box in enumerate(boxes):
        text = drawn.texts[place].get_text()
        assert box.x0 > ax.bbox.x0 + 4 and box.x1 < ax.bbox.x1 - 4, text
        assert box.y0 > ax.bbox.y0 and box.y1 < ax.bbox.y1, text
        assert not any(box.overlaps(other) for other in boxes[place + 1 :]), text
        assert not any(box.count_contains(stroke) for stroke in strokes), text


@pytest.mark.parametrize("draw", [rl.draw_sm, rl.draw_transformer_layer])
@pytest.mark.parametrize("width", [3.7, 6.4, 7.0])
def test_texts_grow_with_the_figure_and_are_11_pixels_at_640(draw, width):
    drawn = draw(axes(width, width))
    pixels = [text.get_fontsize() * 100 / 72 for text in drawn.texts]
    assert min(pixels) >= 11 * width / 6.4
    ends = [text.get_window_extent().x1 for text in drawn.texts]
    assert max(ends) < 100 * width


def test_a_drawing_beside_another_axes_leaves_it_its_place():
    figure = Figure(figsize=(10, 5), dpi=100)
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    before = right.get_position().bounds
    drawn = rl.draw_sm(left)
    assert right.get_position().bounds == before
    assert all(left.bbox.x0 < text.get_window_extent().x1 < right.bbox.x0 for text in drawn.texts)


HAIR = 0.75  # pixels at 640: the thinnest pipe that is still seen


def pipe_widths(drawn):
    """Widths in pixels of the pipes, by how many there are: registers 4, the others 1."""
    return [pipe.get_window_extent().width for pipe in drawn.lines]


@pytest.mark.parametrize("name", SM_MACHINES)
def test_pipes_are_as_wide_as_the_bytes_of_a_clock(name):
    machine = rl.machine(name)
    drawn = rl.draw_sm(axes(6.4, 4.6), name)
    *registers, shared, l2, dram = pipe_widths(drawn)
    clock, lanes = machine.details["clock"], machine.peaks["fp32"][0].flop_per_clock_per_unit / 2
    of_dram = machine.bandwidth() / clock / machine.units
    pixels = sum(registers) / (12 * lanes)  # of a byte a clock
    assert np.isclose(dram, max(of_dram * pixels, HAIR))
    assert np.isclose(sum(registers) / shared, 12 * lanes / shared_rate(machine))
    assert "bandwidth not printed" in written(drawn)


@pytest.mark.parametrize("width", [3.7, 6.4])
@pytest.mark.parametrize("name", ["RTX 5060 Ti", "A100 40GB SXM"])
def test_the_thinnest_pipe_is_seen(name, width):
    ax = axes(width, width)
    pipe = rl.draw_sm(ax, name).lines[-1].get_window_extent()
    ax.figure.canvas.draw()
    middle = width * 100 - (pipe.y0 + pipe.y1) / 2
    row = np.asarray(ax.figure.canvas.buffer_rgba())[int(middle), :, :3].astype(int)
    around = row[int(pipe.x0) - 2 : int(pipe.x1) + 3]
    assert np.any(around[:, 2] - around[:, 0] > 40)  # blue


def shared_rate(machine):
    (row,) = (row for row in machine.details["memory"] if row["level"] == "shared memory")
    return row["bytes_per_clock"]


def test_the_sm_of_an_h100_says_what_its_vendor_prints():
    drawn = rl.draw_sm(axes(), "h100-sxm")
    texts = {"One of the 132 SMs of the H100 SXM", "128 for fp32", "256 KiB", "228 KiB", "50 MiB"}
    assert texts | {"1,536 B a clock", "128 B a clock", "12.8 B a clock"} <= set(written(drawn))
    assert written(drawn).count("1 warp") == 4 and written(drawn).count("64 KiB") == 4
    for words in ("132 SMs", "4 schedulers", "32 fp32 lanes", "228 KiB", "12.8 B a clock"):
        assert words in drawn.alt


def test_a_bandwidth_of_l2_is_drawn_where_the_machine_has_one():
    h200 = rl.machine("H200 SXM")
    measured = replace(h200, bandwidths={**h200.bandwidths, "L2": 5.9e12})
    drawn = rl.draw_sm(axes(), measured)
    *_, l2, dram = pipe_widths(drawn)
    assert (
        dram > 2 * HAIR and np.isclose(l2 / dram, 5.9 / 4.8) and "22.6 B a clock" in written(drawn)
    )
    assert "bandwidth not printed" not in written(drawn) and "22.6 B a clock" in drawn.alt


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MI300X", r"MI300X has units of another kind \(CU\); choose one of V100 SXM2"),
        ("house chip", r"house chip has no clock \(Hz\)"),
        ("H1000", "machine 'H1000' is not known"),
        (rl.Machine("mine", {"fp32": 1e12}, {"DRAM": 1e12}), "mine has units of another kind"),
    ],
)
def test_an_sm_that_cannot_be_drawn_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        rl.draw_sm(axes(), name)


def test_the_layer_of_llama_2_7b_has_its_shapes():
    drawn = rl.draw_transformer_layer(axes())
    texts = written(drawn)
    assert {"one of its 32 layers", "in 32 heads of 128", "31 more layers like this one; then"} <= {
        *texts
    }
    assert texts.count("[tokens, 4096]") == 2 and texts.count("[context, 32 × 128]") == 2
    assert texts.count("[tokens, 11008]") == 3 and "logits [tokens, 32000]" in texts
    assert "32 heads of 128" in drawn.alt and "11008" in drawn.alt


@pytest.mark.parametrize("name", LAYERS)
def test_the_weights_in_the_boxes_are_the_models_own(name):
    """What stands in the boxes of one layer, multiplied out, is what the model counts."""
    model, drawn = rl.transformer(name), rl.draw_transformer_layer(axes(), name)
    shapes = [text.split("  ")[1] for text in written(drawn) if "  " in text]
    sizes = [int(a) * int(b) for a, b in (shape.split(" × ") for shape in shapes)]
    groups = model.parameters_by_group
    assert model.layers * sum(sizes[:4]) == groups["attention"]
    ffn = groups.get("experts", groups.get("ffn"))
    assert model.layers * model.experts * sum(sizes[4:]) == ffn


def test_kinds_of_layers_look_as_they_are():
    mixtral = rl.draw_transformer_layer(axes(), "mixtral-8x7b")
    assert "a router, 4096 × 8, picks 2 of 8 experts a token" in written(mixtral)
    assert "2 of 8 experts" in mixtral.alt
    assert "in 32 heads of 128; each 4 share one K and V" in written(mixtral)
    gpt = rl.draw_transformer_layer(axes(), "gpt-3")
    assert "gate" not in gpt.boxes and "gate" in mixtral.boxes
    gemma = rl.draw_transformer_layer(axes(), "gemma-2-9b")
    assert sum(text == "norm" for text in written(gemma)) == 5
    assert any(text.startswith("21 of the 42 layers keep") for text in written(gemma))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("deepseek-v3", "deepseek-v3 keeps a latent of kv_lora_rank 512"),
        (replace(rl.transformer("gpt-3"), norms_per_layer=1), "gpt-3 has 1; llama-2-7b"),
        ("llama", "transformer 'llama' is not known"),
        (7, "model must be a Transformer or the name of one; got 7"),
    ],
)
def test_a_layer_that_cannot_be_drawn_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        rl.draw_transformer_layer(axes(), model)


def test_what_a_drawing_cannot_show_it_says():
    shared = replace(
        rl.transformer("mixtral-8x7b"), shared_experts=2, dense_layers=1, dense_d_ff=9000
    )
    drawn = rl.draw_transformer_layer(axes(), shared)
    for sentence in (
        "1 layer at the start: one network, 9000 wide.",
        "Experts that serve every token: 2, each 14336 wide.",
    ):
        assert sentence in written(drawn) and sentence in drawn.alt
    assert "The logits' matrix is the embedding once more." in written(
        rl.draw_transformer_layer(axes(), "gemma-2b")
    )


@pytest.mark.parametrize("sheet", ["dark_background", "grayscale", "Solarize_Light2"])
@pytest.mark.parametrize("draw", [rl.draw_sm, rl.draw_transformer_layer])
def test_a_drawing_looks_the_same_under_any_style_sheet(draw, sheet):
    def pixels():
        ax = axes()
        draw(ax)
        ax.figure.canvas.draw()
        # above and below the card, the figure's own colour may show
        return np.asarray(ax.figure.canvas.buffer_rgba())[80:-80]

    plain = pixels()
    with style.context(sheet), rc_context({"text.usetex": True, "lines.linewidth": 9}):
        assert np.array_equal(plain, pixels())


@pytest.mark.parametrize("draw", [rl.draw_sm, rl.draw_transformer_layer])
def test_an_ax_that_is_none_is_named(draw):
    with pytest.raises(ValueError, match=r"ax must be the Axes of a figure.*got None"):
        draw(None)
