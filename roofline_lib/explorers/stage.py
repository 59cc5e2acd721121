"""The two layers of an explorer's picture: axes drawn once by matplotlib, and over them a small SVG
of all that moves.

Both are HTML widgets in one grid cell, so a step of a slider sends one short text and redraws no
figure. All shapes are in pixels of the picture, x to the right and y down; the same shapes make the
SVG and the still PNG.
"""

import base64
import io
from dataclasses import dataclass
from functools import lru_cache
from html import escape

import ipywidgets as widgets
import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke
from PIL import Image

from roofline_lib.drawing import CARD, INK, log_axes

WIDTH = 640  # of the picture in its own pixels; on the page it takes up to 700
FONT = "DejaVu Sans, Verdana, sans-serif"
_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "roofline",
    "font.family": "DejaVu Sans",
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
    def frame(self):
        """(x0, y0, x1, y1) in pixels."""
        left, top, width, height = self.rect
        return left, top, left + width, top + height


@dataclass(frozen=True)
class Path:
    """A line through `points` (n, 2), or a filled area where `fill` is given."""

    points: np.ndarray
    stroke: str = ""
    width: float = 1.0
    dash: tuple = ()
    fill: str = ""
    opacity: float = 1.0


@dataclass(frozen=True)
class Words:
    """A line of text whose baseline starts (or centres, or ends) at (x, y), turned by `angle`
    degrees clockwise."""

    x: float
    y: float
    text: str
    color: str = INK
    size: float = 13.0
    anchor: str = "start"
    angle: float = 0.0
    bold: bool = False


@dataclass(frozen=True)
class Dot:
    """A marker at (x, y): `kind` is "o", "s", "D" or "^", so that colour never stands alone."""

    x: float
    y: float
    color: str = INK
    kind: str = "o"
    radius: float = 6.5
    hollow: bool = False


_CORNERS = {
    "s": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "^": ((0, -1.15), (1.1, 0.8), (-1.1, 0.8)),
}


def svg(shapes, height, alt):
    """The shapes as one SVG element without ids; `alt` says in words what it shows. Every text is
    escaped."""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" width="100%" role="img" aria-label="{escape(alt)}" font-family="{FONT}" '
        'style="display:block;height:auto">'
    ]
    for shape in shapes:
        if isinstance(shape, Path):
            line = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in shape.points)
            dash = f' stroke-dasharray="{" ".join(map(str, shape.dash))}"' if shape.dash else ""
            stroke = (
                f' stroke="{shape.stroke}" stroke-width="{shape.width:g}"{dash}'
                if shape.stroke
                else ""
            )
            opacity = f' opacity="{shape.opacity:g}"' if shape.opacity != 1 else ""
            parts.append(
                f'<path d="{line}{"Z" if shape.fill else ""}" fill="{shape.fill or "none"}"{stroke}{opacity}/>'
            )
        elif isinstance(shape, Dot):
            paint = f'fill="{CARD if shape.hollow else shape.color}" stroke="{shape.color if shape.hollow else CARD}" stroke-width="2"'
            if shape.kind == "o":
                parts.append(
                    f'<circle cx="{shape.x:.2f}" cy="{shape.y:.2f}" r="{shape.radius:g}" {paint}/>'
                )
            else:
                corners = "L".join(
                    f"{shape.x + shape.radius * dx:.2f} {shape.y + shape.radius * dy:.2f}"
                    for dx, dy in _CORNERS[shape.kind]
                )
                parts.append(f'<path d="M{corners}Z" {paint}/>')
        else:
            turn = (
                f' transform="rotate({shape.angle:.2f} {shape.x:.2f} {shape.y:.2f})"'
                if shape.angle
                else ""
            )
            bold = ' font-weight="bold"' if shape.bold else ""
            parts.append(
                f'<text x="{shape.x:.2f}" y="{shape.y:.2f}" fill="{shape.color}" font-size="{shape.size:g}" stroke="{CARD}" '
                f'stroke-width="3" paint-order="stroke" text-anchor="{shape.anchor}"{bold}{turn}>{escape(shape.text)}</text>'
            )
    return "".join(parts) + "</svg>"


def figure(axes, height):
    """A Figure that pyplot never sees, with the axes drawn at their fixed rectangles; its display
    pixels are the picture's, y up."""
    with matplotlib.rc_context(_STYLE):
        fig = Figure(figsize=(WIDTH / 100, height / 100), dpi=100, facecolor=CARD)
        FigureCanvasAgg(fig)
        for one in axes:
            left, top, width, high = one.rect
            ax = fig.add_axes(
                (left / WIDTH, 1 - (top + high) / height, width / WIDTH, high / height),
                facecolor="none",
            )
            log_axes(ax, one.xlim, one.ylim, one.xlabel, one.ylabel, one.xlog, one.ylog)
    return fig


@lru_cache(maxsize=64)
def background(axes, height):
    """(figure, data address of its SVG) for a tuple of Axes: drawn once for each."""
    fig, file = figure(axes, height), io.StringIO()
    with matplotlib.rc_context(_STYLE):
        fig.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue().replace("'DejaVu Sans'", FONT)
    return fig, "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


@lru_cache(maxsize=64)
def to_pixels(axes, height):
    """One function for each of the Axes, from data (x, y) of shape (n,) to pixels (n, 2): straight
    between two corners, in the value or in its logarithm, and the corners from the axes' own
    transform; to ask that for every point would cost five times as much."""
    return [
        _through(one, ax.transData, height)
        for one, ax in zip(axes, background(axes, height)[0].axes, strict=True)
    ]


def _through(one, transform, height):
    log = np.array([one.xlog, one.ylog])

    def scaled(x, y):
        values = np.array([x, y], float).reshape(2, -1)
        values[log] = np.log10(np.maximum(values[log], 1e-300))
        return values

    ends, pixels = (
        scaled(one.xlim, one.ylim),
        transform.transform(np.transpose([one.xlim, one.ylim])).T,
    )
    pixels[1] = height - pixels[1]
    start, origin = ends[:, :1], pixels[:, :1]
    slope = (pixels[:, 1:] - origin) / (ends[:, 1:] - start)
    return lambda x, y: ((scaled(x, y) - start) * slope + origin).T


def still(axes, height, shapes):
    """The picture as PNG bytes, for readers without a kernel."""
    fig, file = figure(axes, height), io.BytesIO()
    for order, shape in enumerate(shapes):
        common = {"transform": None, "zorder": 10 + order, "clip_on": False}
        if isinstance(shape, Path):
            points = np.column_stack([shape.points[:, 0], height - shape.points[:, 1]])
            width = shape.width * 0.72
            dash = (0, tuple(d / shape.width for d in shape.dash)) if shape.dash else "-"
            if shape.fill:
                fig.add_artist(
                    Polygon(
                        points,
                        fc=shape.fill,
                        ec=shape.stroke or "none",
                        lw=width,
                        alpha=shape.opacity,
                        **common,
                    )
                )
            else:
                fig.add_artist(
                    Line2D(
                        *points.T,
                        color=shape.stroke,
                        lw=width,
                        ls=dash,
                        alpha=shape.opacity,
                        **common,
                    )
                )
        elif isinstance(shape, Dot):
            inside, edge = (CARD, shape.color) if shape.hollow else (shape.color, CARD)
            fig.add_artist(
                Line2D(
                    [shape.x],
                    [height - shape.y],
                    marker=shape.kind,
                    ms=1.44 * shape.radius,
                    mfc=inside,
                    mec=edge,
                    mew=1.4,
                    **common,
                )
            )
        else:
            align = {"start": "left", "middle": "center", "end": "right"}[shape.anchor]
            fig.text(
                shape.x,
                height - shape.y,
                shape.text.replace("$", r"\$"),
                color=shape.color,
                fontsize=shape.size * 0.72,
                ha=align,
                va="baseline",
                rotation=-shape.angle,
                rotation_mode="anchor",
                weight="bold" if shape.bold else "normal",
                family="DejaVu Sans",
                path_effects=[withStroke(linewidth=2, foreground=CARD)],
                **common,
            )
    fig.canvas.draw()
    # a stored notebook stays small: 15 KB, not 50
    few = Image.fromarray(np.asarray(fig.canvas.buffer_rgba())[..., :3]).quantize(64)
    few.save(file, format="png", optimize=True)
    return file.getvalue()


class Stage(widgets.GridBox):
    """Both layers in one grid cell that shrinks with the page; the sentence under the picture comes
    with the moving layer."""

    def __init__(self):
        cell = {"grid_area": "1 / 1", "margin": "0", "width": "100%", "height": "auto"}
        self.behind = widgets.HTML(layout=widgets.Layout(**cell))
        self.moving = widgets.HTML(layout=widgets.Layout(**cell))
        super().__init__(
            [self.behind, self.moving],
            layout=widgets.Layout(
                grid_template_columns="minmax(0, 700px)",
                align_items="flex-start",
                overflow="hidden",
                margin="0",
                width="100%",
            ),
        )

    def show(self, axes, height, shapes, alt, sentence):
        """Put a picture on the stage. What has not changed is not sent."""
        self.behind.value = (
            f'<img alt="" src="{background(axes, height)[1]}" style="display:block;width:100%;height:auto;max-width:none;'
            'border-radius:6px">'
        )
        self.moving.value = (
            f'{svg(shapes, height, alt)}<div style="min-height:4.2em;line-height:1.4;padding:6px 2px;white-space:normal">'
            f"{escape(sentence)}</div>"
        )
