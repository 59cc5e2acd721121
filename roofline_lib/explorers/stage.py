"""The two layers of an explorer's picture: axes drawn once by matplotlib, and over them a small SVG
of all that moves.

Both are HTML widgets in one grid cell, so a step of a slider sends one short text and redraws no
figure. The same shapes make the SVG and the still PNG.
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import ipywidgets as widgets
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Transform
from PIL import Image

from roofline_lib.explorers.shapes import FONT, Frame, Shape
from roofline_lib.style import CARD, log_axes, settings

WIDTH = 640  # of the picture in its own pixels; on the page it takes up to 700
# In pixels of the page: the picture's smallest letters, 12 of its own, are 11 there. On a narrower
# page it scrolls sideways.
NARROWEST = 588
_FONTS = f"{FONT}, Verdana, sans-serif"  # the first of these that the browser has
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "roofline",
    "font.family": FONT,
    "font.size": 9.4,
    "axes.labelsize": 9.4,
}


@dataclass(frozen=True)
class Axes:
    """A set of axes at a fixed place: `rect` is (left, top, width, height) in pixels. It is all
    that the background depends on."""

    xlim: tuple
    ylim: tuple
    xlabel: str
    ylabel: str
    rect: tuple = (70, 14, 554, 318)
    xlog: bool = True
    ylog: bool = True

    @property
    def frame(self) -> Frame:
        """(x0, y0, x1, y1) in pixels."""
        left, top, width, height = self.rect
        return left, top, left + width, top + height


@dataclass(frozen=True)
class View:
    """Axes as they stand in a picture: the frame (x0, y0, x1, y1) in pixels, and a straight line
    through two of its corners, from data (or their logarithms) to pixels."""

    frame: Frame
    log: tuple[bool, bool]
    start: np.ndarray
    slope: np.ndarray
    origin: np.ndarray

    def pixels(self, x: float | Sequence, y: float | Sequence) -> np.ndarray:
        """Where data x, y, single numbers or of shape (n,), are in the picture: pixels (n, 2)."""
        return ((_scaled(self.log, x, y) - self.start) * self.slope + self.origin).T


def _scaled(log: tuple[bool, bool], x: float | Sequence, y: float | Sequence) -> np.ndarray:
    """Data as (2, n), in logarithms where the axis has them."""
    values = np.array([x, y], float).reshape(2, -1)
    tens = np.array(log)
    values[tens] = np.log10(np.maximum(values[tens], 1e-300))
    return values


@lru_cache(maxsize=64)
def views(axes: tuple[Axes, ...], height: int) -> tuple[View, ...]:
    """A View of each of the Axes. The corners come from the axes' own transform; to ask that for
    every point would cost five times as much."""
    drawn = blank(axes, height).axes
    return tuple(_view(one, ax.transData, height) for one, ax in zip(axes, drawn, strict=True))


def _view(axes: Axes, transform: Transform, height: int) -> View:
    log = axes.xlog, axes.ylog
    ends = _scaled(log, axes.xlim, axes.ylim)
    corners = transform.transform(np.transpose([axes.xlim, axes.ylim])).T
    corners[1] = height - corners[1]
    start, origin = ends[:, :1], corners[:, :1]
    return View(axes.frame, log, start, (corners[:, 1:] - origin) / (ends[:, 1:] - start), origin)


def svg(shapes: Sequence[Shape], height: int, alt: str) -> str:
    """The shapes as one SVG element without ids; `alt` says in words what it shows. Every text is
    escaped."""
    head = (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{escape(alt)}" '
        f'font-family="{_FONTS}" style="display:block;height:auto">'
    )
    return head + "".join([shape.svg() for shape in shapes]) + "</svg>"


def _new_figure(axes: tuple[Axes, ...], height: int) -> Figure:
    """A Figure that pyplot never sees, with the axes drawn at their fixed rectangles; its display
    pixels are the picture's, y up."""
    fig = Figure(figsize=(WIDTH / 100, height / 100), dpi=100, facecolor=CARD)
    for one in axes:
        left, top, width, high = one.rect
        ax = fig.add_axes(
            (left / WIDTH, 1 - (top + high) / height, width / WIDTH, high / height),
            facecolor="none",
        )
        log_axes(ax, one.xlim, one.ylim, one.xlabel, one.ylabel, one.xlog, one.ylog)
    return fig


@lru_cache(maxsize=64)
def blank(axes: tuple[Axes, ...], height: int) -> Figure:
    """The figure of a tuple of Axes with nothing on it, made once for each. It is shared: draw
    nothing on it."""
    with settings(_STYLE):
        return _new_figure(axes, height)


@lru_cache(maxsize=64)
def background(axes: tuple[Axes, ...], height: int) -> str:
    """The data address of the SVG of a tuple of Axes, drawn once for each."""
    file = io.StringIO()
    with settings(_STYLE):
        blank(axes, height).savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue().replace(f"'{FONT}'", _FONTS)
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def png(axes: tuple[Axes, ...], height: int, shapes: Sequence[Shape]) -> bytes:
    """The picture as PNG bytes, for readers without a kernel."""
    with settings(_STYLE):
        fig = _new_figure(axes, height)
        for order, shape in enumerate(shapes):
            artist = shape.artist(height)
            artist.set(transform=None, zorder=10 + order, clip_on=False)
            fig.add_artist(artist)
        canvas = FigureCanvasAgg(fig)
        canvas.draw()
    # a stored notebook stays small: 15 KB, not 50
    few = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).quantize(64)
    file = io.BytesIO()
    few.save(file, format="png", optimize=True)
    return file.getvalue()


class Stage(widgets.GridBox):
    """Both layers in one grid cell that shrinks with the page; the sentences under the picture come
    with the moving layer."""

    def __init__(self) -> None:
        cell = {"grid_area": "1 / 1", "margin": "0", "width": "100%", "height": "auto"}
        self.behind = widgets.HTML(layout=widgets.Layout(**cell))
        self.moving = widgets.HTML(layout=widgets.Layout(**cell))
        super().__init__(
            [self.behind, self.moving],
            layout=widgets.Layout(
                grid_template_columns=f"minmax({NARROWEST}px, 700px)",
                align_items="flex-start",
                overflow="auto hidden",
                margin="0",
                flex=f"1 1 {NARROWEST}px",
                max_width="700px",
                min_width="0",
            ),
        )

    def show(
        self,
        axes: tuple[Axes, ...],
        height: int,
        shapes: Sequence[Shape],
        alt: str,
        sentences: str,
        spoken: str = "",
    ) -> None:
        """Put a picture on the stage. What has not changed is not sent. `spoken` is for screen
        readers, and not seen."""
        look = "display:block;width:100%;height:auto;max-width:none;border-radius:6px"
        self.behind.value = f'<img alt="" src="{background(axes, height)}" style="{look}">'
        # as wide as what is seen of the picture, and not scrolled with it
        below = (
            "position:sticky;left:0;max-width:100cqi;box-sizing:border-box;"
            "min-height:4.2em;line-height:1.4;padding:6px 2px;white-space:normal"
        )
        unseen = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
        said = f'<span role="status" style="{unseen}">{escape(spoken)}</span>' if spoken else ""
        self.moving.value = (
            f'{svg(shapes, height, alt)}<div style="{below}">{escape(sentences)}</div>{said}'
        )
