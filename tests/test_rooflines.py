"""draw_roofline, read back from its artists; and the colours, for those who see fewer of them."""

import io
from itertools import combinations

import matplotlib
import matplotlib.pyplot as plt
import matplotlib.style
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

import roofline_lib as rl
from roofline_lib import labels, style

WORKS = {"gemm": rl.gemm(1024, 1024, 1024), "gemv": rl.gemv(4096, 4096), "axpy": rl.axpy(10**6)}


def axes():
    figure = Figure(figsize=(6.4, 4), dpi=100)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def test_the_roof_of_another_accumulate_precision_is_drawn():
    card = rl.machine("RTX 4090")
    drawn = rl.draw_roofline(axes(), card, ["fp16", "fp8"], accumulate="fp16")
    for precision, roof in drawn.roofs.items():
        assert roof.get_ydata()[-1] == card.peak(precision, "fp16") > card.peak(precision)
    with pytest.raises(KeyError, match="a bf16 peak of RTX 4090: accumulate"):
        rl.draw_roofline(axes(), card, "bf16", accumulate="fp16")


@pytest.mark.parametrize("name", rl.machines())
def test_roofs_are_the_attainable_performance_and_bend_at_the_ridge(name):
    machine, ax = rl.machine(name), axes()
    precisions = [p for p in machine.precisions]
    drawn = rl.draw_roofline(ax, name, precisions)
    assert set(drawn.roofs) == set(drawn.ridge_marks) == set(precisions)
    for precision in precisions:
        x, y = drawn.roofs[precision].get_data()
        ridge = machine.ridge_point(precision)
        assert np.allclose(
            y, rl.attainable_performance(x, machine.peak(precision), machine.bandwidth())
        )
        assert (
            np.isclose(x[1], ridge)
            and np.isclose(y[1], machine.peak(precision))
            and np.isclose(y[-1], y[1])
        )
        assert np.allclose(drawn.ridge_marks[precision].get_xdata(), ridge)
    x, y = drawn.memory.get_data()
    assert np.allclose(y, machine.bandwidth() * x)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    assert left < x[0] * 1.001 and x[1] < right and low <= y[0] * 1.001 and y[1] < high
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert (
        ax.get_xlabel() == "arithmetic intensity (FLOP/byte)"
        and ax.get_ylabel() == "performance (FLOP/s)"
    )


def test_named_points_stand_under_the_first_roof_and_measured_ones_where_they_were_measured():
    ax, measured = axes(), (rl.gemm(512, 512, 512), 9e12)
    drawn = rl.draw_roofline(ax, "A100 40GB SXM", ["fp32", "bf16"], WORKS | {"measured": measured})
    assert list(drawn.points) == [*WORKS, "measured"]
    for name, work in WORKS.items():
        (x,), (y,) = drawn.points[name].get_data()
        assert (x, y) == (
            work.intensity,
            rl.bound(work, "A100 40GB SXM", "fp32").attainable_performance,
        )
    assert drawn.points["measured"].get_data() == ([measured[0].intensity], [9e12])
    texts = [text.get_text() for text in drawn.labels]
    assert {
        "fp32 19.5 TFLOP/s",
        "bf16 312 TFLOP/s",
        "DRAM 1.555 TB/s",
        "gemm",
        "gemv",
        "axpy",
        "measured",
    } <= set(texts)
    assert {" 12.5", " 201"} <= set(texts)


def test_one_precision_by_name_and_one_label_for_equal_peaks():
    drawn = rl.draw_roofline(
        axes(),
        rl.Machine(name="mine", peaks={"fp32": 20e12, "tf32": 20e12}, bandwidths={"DRAM": 2e12}),
        "fp32",
    )
    assert set(drawn.roofs) == {"fp32"}
    drawn = rl.draw_roofline(
        axes(),
        rl.Machine(name="mine", peaks={"bf16": 2e13, "fp16": 2e13}, bandwidths={"L2": 2e12}),
        ["bf16", "fp16"],
        level="L2",
    )
    assert drawn.roofs["bf16"] is drawn.roofs["fp16"] and "bf16, fp16 20 TFLOP/s" in [
        text.get_text() for text in drawn.labels
    ]


def test_names_cover_neither_roofs_nor_one_another():
    ax = axes()
    drawn = rl.draw_roofline(
        ax, "A100 40GB SXM", ["fp32"], WORKS | {"softmax": rl.softmax(1024, 1024, "fp32")}
    )
    renderer = ax.figure.canvas.get_renderer()
    boxes = [
        text.get_window_extent(renderer) for text in drawn.labels if text.get_text() in drawn.points
    ]
    x, y = drawn.roofs["fp32"].get_data()
    roof = labels.sample(ax.transData.transform(np.column_stack([x, y])), 1)
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        assert not box.count_contains(roof)


CLOSE = {"fp32": 60e12, "tf32": 75e12, "bf16": 90e12, "fp16": 95e12, "fp8": 100e12}


def of_letters(text, renderer):
    """The box of a text from foot to capitals, without the leader of an annotation."""
    text.get_window_extent(renderer)
    return Text.get_window_extent(text, renderer).padded(-1.5)


@pytest.mark.parametrize("size", [(6.4, 4), (4.6, 3.2)])
@pytest.mark.parametrize("name", [*rl.machines(), "close peaks"])
def test_labels_of_roofs_and_ridges_touch_no_other_label_and_no_roof(name, size):
    machine = (
        rl.Machine(name=name, peaks=CLOSE, bandwidths={"DRAM": 2e12})
        if name == "close peaks"
        else rl.machine(name)
    )
    figure = Figure(figsize=size, dpi=100)
    ax, renderer = figure.add_subplot(), FigureCanvasAgg(figure).get_renderer()
    drawn = rl.draw_roofline(ax, machine, machine.precisions)
    upright = [text for text in drawn.labels if not text.get_rotation()]
    boxes = {text.get_text(): of_letters(text, renderer) for text in upright}
    for one, other in combinations(boxes, 2):
        assert not boxes[one].overlaps(boxes[other]), (one, other)
    for line in (drawn.memory, *drawn.roofs.values()):
        pixels = labels.sample(ax.transData.transform(line.get_xydata()), 1)
        for text, box in boxes.items():
            assert "FLOP" not in text or not box.count_contains(pixels), text
    for text, box in boxes.items():
        assert ax.get_window_extent().padded(2).containsx(box.x0), text
        assert ax.get_window_extent().padded(8).containsy(box.y1), text  # the margin above


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"machine": "H1000"}, "machine 'H1000' is not known"),
        ({"precisions": []}, "precisions must name at least one"),
        ({"precisions": ["fp12"]}, "'fp12'"),
        ({"works": {"mine": 3.0}}, r"works\['mine'\] must be a Work"),
        ({"works": {"mine": rl.gemm(np.array([1, 2]), 2, 2)}}, "one number each"),
        ({"level": "L9"}, "level 'L9'"),
        (
            {"works": rl.gemm(2, 2, 2)},
            r"works must be a dict name -> Work, such as \{'my job': work\}; got Work\(",
        ),
        ({"works": {1: rl.gemm(2, 2, 2)}}, "works must be a dict name -> Work"),
        ({"works": []}, "works must be a dict"),
        (
            {"works": {"mine": (rl.gemm(2, 2, 2), 0)}},
            r"works\['mine'\]\[1\] must be one number above 0 \(FLOP/s\); got 0",
        ),
        ({"ax": None}, "ax must be the Axes of a figure.*got None"),
        ({"ax": plt}, "ax must be the Axes .*got <module 'matplotlib.pyplot'"),
    ],
)
def test_bad_arguments_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        rl.draw_roofline(**({"ax": axes(), "machine": "house chip", "precisions": "fp32"} | bad))


CROWD = st.lists(
    st.tuples(st.floats(0.02, 2e4), st.floats(0.001, 1) | st.just(1.0)), min_size=1, max_size=5
)


@given(CROWD, st.sampled_from(["house chip", "A100 40GB SXM", "T4"]))
def test_labels_of_roofs_keep_off_points_and_names_keep_off_labels(jobs, machine):
    chip = rl.machine(machine)
    works = {
        f"job {i}": (
            rl.Work(x * 1e6, 1e6),
            share * rl.attainable_performance(x, chip.peak("fp16"), chip.bandwidth()),
        )
        for i, (x, share) in enumerate(jobs)
    }
    ax = axes()
    drawn = rl.draw_roofline(ax, machine, ["fp16"], works)
    (roof,) = (text for text in drawn.labels if text.get_text().startswith("fp16"))
    box = roof.get_window_extent()
    for point in drawn.points.values():
        x, y = ax.transData.transform(point.get_xydata()[0])
        apart = np.hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1))
        assert apart > 4
    names = [text.get_window_extent() for text in drawn.labels if text.get_text() in works]
    assert not any(name.overlaps(box) for name in names)


@pytest.mark.parametrize("precisions", [["fp32", "bf16"], ["bf16", "fp32"]])
@pytest.mark.parametrize("width", [5, 6.4, 9])
def test_the_foot_of_a_higher_roof_crosses_no_label_of_a_lower_one(precisions, width):
    ax = axes()
    ax.figure.set_size_inches(width, 4)
    # without the line the label would end left of the point, on the line
    works = {"a point": (rl.Work(3e9, 1e6), 20e12)}
    drawn = rl.draw_roofline(ax, "house chip", precisions, works)
    ((x, _), _) = ax.transData.transform(drawn.ridge_marks["bf16"].get_xydata())
    (lower,) = (text for text in drawn.labels if text.get_text().startswith("fp32"))
    box = lower.get_window_extent()
    assert not box.x0 - 2 < x < box.x1 + 2


@pytest.mark.parametrize("intensity", np.geomspace(0.02, 9, 20))
def test_the_slopes_label_keeps_off_a_point_on_it(intensity):
    ax = axes()
    drawn = rl.draw_roofline(ax, "house chip", "fp32", {"a point": rl.Work(intensity * 1e6, 1e6)})
    (slope,) = (text for text in drawn.labels if text.get_text().startswith("DRAM"))
    box = slope.get_window_extent()
    middle = (box.p0 + box.p1) / 2
    half = np.hypot(box.width, box.height) / 2 - 12
    for point in drawn.points.values():
        assert np.hypot(*(ax.transData.transform(point.get_xydata()[0]) - middle)) > half


def test_a_name_prints_over_no_label_of_a_roof():
    """Two jobs just under the second roof, at its right end, where its label stands; one beside the
    slope's label, one on a ridge's."""
    machine, ax = rl.machine("H100 SXM"), axes()
    works = {
        name: (rl.Work(x * 1e6, 1e6), y)
        for name, x, y in (
            ("a job with a long name", 2000, 8e14),
            ("another job", 7000, 7e14),
            ("on the slope", 2, 5e12),
            ("at the foot", 250, 1.5e11),
        )
    }
    drawn = rl.draw_roofline(ax, machine, ["bf16", "fp32"], works)
    names = [text.get_window_extent() for text in drawn.labels if text.get_text() in works]
    for text in drawn.labels:
        if text.get_text() not in works and not text.get_rotation():
            assert not any(name.overlaps(text.get_window_extent()) for name in names), (
                text.get_text()
            )


def test_no_marker_is_cut_at_an_edge():
    ax = axes()
    works = {"edge": rl.Work(1e4, 1), "left": rl.Work(0.1, 1), "low": (rl.Work(10, 1), 1e11)}
    for point in rl.draw_roofline(ax, "H100 SXM", "bf16", works).points.values():
        x, y = ax.transData.transform(point.get_xydata()[0])
        assert ax.bbox.x0 + 5 < x < ax.bbox.x1 - 5 and ax.bbox.y0 + 5 < y < ax.bbox.y1 - 5


def test_intensities_have_plain_numbers():
    ax = axes()
    rl.draw_roofline(ax, "H100 SXM", "bf16", {"tiny": rl.Work(1e-3, 1), "huge": rl.Work(5e7, 1)})
    ticks = [label.get_text() for label in ax.get_xticklabels()]
    assert {"0.01", "1", "100", "10\u2074"} <= set(ticks) or {"0.001", "0.1", "10", "1000"} <= set(
        ticks
    ), ticks
    assert [style.tick_text(10.0**e) for e in (-5, -3, -1, 0, 3, 4)] == [
        "10\u207b\u2075",
        "0.001",
        "0.1",
        "1",
        "1000",
        "10\u2074",
    ]


@given(st.lists(st.floats(1e-9, 1e18), min_size=1, max_size=5))
def test_decades_hold_all_values_and_are_whole(values):
    low, high = style.decades(values)
    assert low <= min(values) * (1 + 1e-9) and high >= max(values) * (1 - 1e-6) and high > low
    assert np.isclose(np.log10([low, high]), np.round(np.log10([low, high]))).all()
    assert style.decades(values, (1e-12, 1e20)) == (1e-12, 1e20)


def _linear(color):
    c = np.array(to_rgb(color))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(rgb):
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ rgb
        / (0.9505, 1.0, 1.089)
    )
    f = np.where(xyz > 0.008856, np.cbrt(np.maximum(xyz, 0)), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira, Fernandes, IEEE TVCG 15(6), 2009, severity 1.0, on linear RGB.
SIGHT = {
    "all": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_every_sight(sight):
    names = ("INK", "MEMORY", "COMPUTE", "ROOM", "OVER")
    colors = {
        name: _lab(np.clip(SIGHT[sight] @ _linear(getattr(style, name)), 0, 1)) for name in names
    }
    for one in colors:
        for other in colors:
            assert one == other or np.linalg.norm(colors[one] - colors[other]) > 20, (one, other)


@pytest.mark.parametrize("name", ["INK", "MEMORY", "COMPUTE", "ROOM", "OVER", "FAINT"])
def test_words_are_readable_on_the_card_and_on_its_tints(name):
    card = _linear(style.CARD)
    for tint in (
        card,
        *(0.07 * _linear(getattr(style, side)) + 0.93 * card for side in ("MEMORY", "COMPUTE")),
    ):
        light, dark = (
            0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]
            for c in (tint, _linear(getattr(style, name)))
        )
        assert (light + 0.05) / (dark + 0.05) >= 4.5


SETTINGS = [
    *sorted(matplotlib.style.available),
    {"text.usetex": True},
    {"lines.marker": "x", "lines.markeredgewidth": 5, "lines.solid_capstyle": "butt"},
    {"text.color": "red", "axes.labelcolor": "red", "xtick.major.size": 20, "grid.linestyle": ":"},
]


def drawn_under(look):
    """The picture of a roofline on axes made by default, drawn while `look` is set."""
    figure = axes().figure
    with matplotlib.style.context(look):
        # what is the reader's stays the reader's: here all have the same fonts
        fonts = {k: v for k, v in matplotlib.rcParamsDefault.items() if k.startswith("font.")}
        matplotlib.rcParams.update(fonts)
        rl.draw_roofline(figure.axes[0], "H100 SXM", ["bf16", "fp32"], WORKS)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


@pytest.mark.parametrize("look", SETTINGS, ids=str)
def test_lines_and_labels_are_the_same_whatever_the_readers_settings_say(look):
    assert drawn_under(look) == drawn_under("default")


def test_labels_have_the_readers_own_font_size():
    with matplotlib.rc_context({"font.size": 17}):
        drawn = rl.draw_roofline(axes(), "H100 SXM", "bf16", WORKS)
    assert {text.get_fontsize() for text in drawn.labels} == {17}
