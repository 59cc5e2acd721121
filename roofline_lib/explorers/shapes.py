"""What is drawn in the end: lines, markers and words, in pixels of the picture, x to the right and
y down.

Each shape gives its SVG, its matplotlib artist for the still picture, and the pixels that it
covers, which labels keep off.
"""

from dataclasses import dataclass
from html import escape

import numpy as np
from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon
from matplotlib.patheffects import withStroke
from matplotlib.text import Text as Letters

from roofline_lib.labels import sample, sample_box, text_size, turned
from roofline_lib.style import CARD, INK

FONT = "DejaVu Sans"
_POINTS = 0.72  # of a picture pixel, in matplotlib's points at 100 dpi

Frame = tuple[float, float, float, float]


@dataclass(frozen=True)
class Path:
    """A line through `points` (n, 2), or a filled area where `fill` is given."""

    points: np.ndarray
    stroke: str = ""
    width: float = 1.0
    dash: tuple = ()
    fill: str = ""
    opacity: float = 1.0

    def svg(self) -> str:
        line = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in self.points)
        close = "Z" if self.fill else ""
        stroke = ""
        if self.stroke:
            dash = f' stroke-dasharray="{" ".join(map(str, self.dash))}"' if self.dash else ""
            stroke = f' stroke="{self.stroke}" stroke-width="{self.width:g}"{dash}'
        opacity = f' opacity="{self.opacity:g}"' if self.opacity != 1 else ""
        return f'<path d="{line}{close}" fill="{self.fill or "none"}"{stroke}{opacity}/>'

    def artist(self, height: float) -> Artist:
        points = np.column_stack([self.points[:, 0], height - self.points[:, 1]])
        thick, edge = self.width * _POINTS, self.stroke or "none"
        if self.fill:
            return Polygon(points, fc=self.fill, ec=edge, lw=thick, alpha=self.opacity)
        line = Line2D(points[:, 0], points[:, 1], color=edge, lw=thick, alpha=self.opacity)
        if self.dash:
            line.set_linestyle((0, tuple(length / self.width for length in self.dash)))
        return line

    def covered(self) -> np.ndarray:
        """Pixels (n, 2) for labels to keep off; a tint without an outline covers none."""
        return sample(self.points) if self.stroke else np.empty((0, 2))


_CORNERS = {
    "s": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "^": ((0, -1.15), (1.1, 0.8), (-1.1, 0.8)),
}


@dataclass(frozen=True)
class Dot:
    """A marker at (x, y): `kind` is "o", "s", "D" or "^", so that colour never stands alone."""

    x: float
    y: float
    color: str = INK
    kind: str = "o"
    radius: float = 6.5
    hollow: bool = False

    def _inside_and_edge(self) -> tuple[str, str]:
        return (CARD, self.color) if self.hollow else (self.color, CARD)

    def svg(self) -> str:
        inside, edge = self._inside_and_edge()
        paint = f'fill="{inside}" stroke="{edge}" stroke-width="2"'
        if self.kind == "o":
            return f'<circle cx="{self.x:.2f}" cy="{self.y:.2f}" r="{self.radius:g}" {paint}/>'
        corners = "L".join(
            f"{self.x + self.radius * dx:.2f} {self.y + self.radius * dy:.2f}"
            for dx, dy in _CORNERS[self.kind]
        )
        return f'<path d="M{corners}Z" {paint}/>'

    def artist(self, height: float) -> Artist:
        inside, edge = self._inside_and_edge()
        return Line2D(
            [self.x],
            [height - self.y],
            marker=self.kind,
            ms=2 * _POINTS * self.radius,
            mfc=inside,
            mec=edge,
            mew=1.4,
        )

    def covered(self) -> np.ndarray:
        """Pixels (n, 2) for labels to keep off."""
        side = 2 * self.radius
        return sample_box(self.x - self.radius, self.y - self.radius, side, side)


_ALIGNED = {"start": "left", "middle": "center", "end": "right"}
_BEFORE = {"start": 0, "middle": 0.5, "end": 1}  # the share of a text that lies left of its anchor


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

    def svg(self) -> str:
        place = f'x="{self.x:.2f}" y="{self.y:.2f}"'
        look = f'fill="{self.color}" font-size="{self.size:g}"'
        # a rim in the card's colour keeps words readable over a line
        rim = f'stroke="{CARD}" stroke-width="3" paint-order="stroke"'
        bold = ' font-weight="bold"' if self.bold else ""
        turn = ""
        if self.angle:
            turn = f' transform="rotate({self.angle:.2f} {self.x:.2f} {self.y:.2f})"'
        return (
            f'<text {place} {look} {rim} text-anchor="{self.anchor}"{bold}{turn}>'
            f"{escape(self.text)}</text>"
        )

    def artist(self, height: float) -> Artist:
        return Letters(
            self.x,
            height - self.y,
            self.text.replace("$", r"\$"),
            color=self.color,
            fontsize=self.size * _POINTS,
            ha=_ALIGNED[self.anchor],
            va="baseline",
            rotation=-self.angle,
            rotation_mode="anchor",
            weight="bold" if self.bold else "normal",
            family=FONT,
            path_effects=[withStroke(linewidth=2, foreground=CARD)],
        )

    def reach(self) -> tuple[float, float]:
        """Where the text starts and ends, in pixels from its anchor along its baseline."""
        width = text_size(self.text, self.size)[0] * (1.1 if self.bold else 1)
        start = -width * _BEFORE[self.anchor]
        return start, start + width

    def covered(self) -> np.ndarray:
        """Pixels (n, 2) for labels to keep off."""
        start, end = self.reach()
        box = sample_box(start, -0.8 * self.size, end - start, self.size)
        return turned(box, self.angle) + (self.x, self.y)


Shape = Path | Dot | Words


def clip(points: np.ndarray, frame: Frame) -> list[np.ndarray]:
    """The pieces of a polyline (n, 2) inside a frame (x0, y0, x1, y1), each an array (m, 2).

    Each straight part is cut as Liang and Barsky do it.
    """
    pieces, last = [], None
    for start, end in zip(points[:-1], points[1:], strict=True):
        inside = _part_inside(start, end, frame)
        if inside is None:
            last = None
            continue
        first, second = inside
        if last is not None and abs(first - last).max() < 1e-6:
            pieces[-1].append(second)
        else:
            pieces.append([first, second])
        last = second
    return [np.array(piece) for piece in pieces]


def _part_inside(
    start: np.ndarray, end: np.ndarray, frame: Frame
) -> tuple[np.ndarray, np.ndarray] | None:
    """Where a straight line is inside the frame: its two ends there, or None."""
    step, enter, leave = end - start, 0.0, 1.0
    for axis in (0, 1):
        for low, sign in ((frame[axis], 1), (-frame[axis + 2], -1)):
            slope, room = sign * step[axis], low - sign * start[axis]
            if abs(slope) < 1e-9:  # along this edge, as near as pixels go
                leave = leave if room <= 0 else -1.0
            elif slope > 0:
                enter = max(enter, room / slope)
            else:
                leave = min(leave, room / slope)
    return None if enter > leave else (start + enter * step, start + leave * step)
