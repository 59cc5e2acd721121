"""What can stand in a picture, in data coordinates, and how it becomes shapes in pixels.

A mark says what is where; `lay_out` turns it into shapes and finds each label a place where nothing
else is. Marks are painted in the order given. `panel` is the number of the Axes that a mark belongs
to.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roofline_lib.explorers.shapes import Dot, Path, Shape, Words, clip
from roofline_lib.explorers.stage import Axes, View, views
from roofline_lib.labels import Covered, sample, spot_along, spot_beside, text_size, turned
from roofline_lib.style import FAINT, GRID, INK, OVER, ROOM


class Taken:
    """The shapes placed so far. They keep labels off: the pixels that they cover are worked out
    only when a label asks."""

    def __init__(self, shapes: list[Shape]):
        self.shapes = shapes
        self._lines: list[np.ndarray] = []
        self._solid: list[np.ndarray] = []
        self._seen = 0

    def covered(self) -> Covered:
        """All pixels covered so far."""
        for shape in self.shapes[self._seen :]:
            (self._lines if isinstance(shape, Path) else self._solid).append(shape.covered())
        self._seen = len(self.shapes)
        return Covered.of(self._lines, self._solid)

    def is_crossed_by(self, line: np.ndarray) -> bool:
        """Whether a line (n, 2) touches a marker or a label."""
        self.covered()
        solid = np.concatenate([np.empty((0, 2)), *self._solid])
        away = sample(line)[:, None] - solid
        return bool(np.any(np.hypot(away[..., 0], away[..., 1]) < 4))

    def first_free(self, places: Sequence[Words]) -> list[Words]:
        """The first of these words that covers no marker and no other label; none where each
        does."""
        self.covered()
        solid = np.concatenate([np.empty((0, 2)), *self._solid])

        def hits(words: Words) -> int:
            away = turned(solid - (words.x, words.y), -words.angle)
            left, right = words.reach()
            inside = (left - 3 < away[:, 0]) & (away[:, 0] < right + 3)
            level = (-0.8 * words.size - 2 < away[:, 1]) & (away[:, 1] < 0.25 * words.size)
            return int(np.count_nonzero(inside & level))

        return [words for words in places if not hits(words)][:1]


@dataclass(frozen=True)
class Mark:
    """Something in the picture. `view` says where the axes that it belongs to stand."""

    panel = 0
    rank = 1  # labels of a lower rank are placed first

    def shapes(self, view: View) -> list[Shape]:
        """What is drawn, labels apart."""
        return []

    def captions(self, view: View, taken: Taken) -> Sequence[Shape]:
        """The labels, which keep off what is taken, and lines that lead to them."""
        return []


def _label_beside(
    point: np.ndarray,
    label: str,
    color: str,
    taken: Taken,
    view: View,
    bold: bool = False,
    size: float = 13.0,
) -> list[Words]:
    """A label near a point (in pixels), where it covers least; none where it would cover a marker
    or another label. A bold one is always there."""
    width, height = text_size(label, size)
    wide = width * (1.1 if bold else 1)
    x, y, clashes = spot_beside(point, (wide, height), taken.covered(), view.frame)
    if clashes and not bold:
        return []
    return [Words(x, y + 0.97 * size, label, color, size, bold=bold)]


_LONELY = 26  # pixels from a marker at which its label needs a line that leads to it


def _leaders(point: np.ndarray, labels: list[Words], taken: Taken) -> list[Path]:
    """A thin line from a marker (in pixels) to its label, where that stands far off and no other
    label or marker is in the way."""
    found = []
    for words in labels:
        width, height = text_size(words.text, words.size)
        corner = np.array([words.x, words.y - 0.97 * words.size])
        nearest = np.clip(point, corner, corner + (width, height))
        way = nearest - point
        far = np.hypot(*way)
        if far > _LONELY:
            line = np.array([point + way * 12 / far, nearest - way * 2 / far])
            if not taken.is_crossed_by(line):
                found.append(Path(line, FAINT, 1))
    return found


def _label_along(
    points: np.ndarray, label: str, color: str, taken: Taken, view: View
) -> list[Words]:
    """A label along a polyline (in pixels), where it covers least; none where it would cover a
    marker or another label."""
    size = 12.5
    width, _ = text_size(label, size)
    x, y, angle, clashes = spot_along(points, width, size, taken.covered(), view.frame)
    return [] if clashes else [Words(x, y, label, color, size, "middle", angle)]


@dataclass(frozen=True)
class Line(Mark):
    """A line through x, y, cut at the frame, with its label written along it: a roof, a curve, a
    reference."""

    x: tuple
    y: tuple
    color: str = INK
    label: str = ""
    width: float = 2.5
    dash: tuple = ()
    panel: int = 0
    rank = 0

    def shapes(self, view):
        return [
            Path(piece, self.color, self.width, self.dash)
            for piece in clip(view.pixels(self.x, self.y), view.frame)
        ]

    def captions(self, view, taken):
        pieces = clip(view.pixels(self.x, self.y), view.frame) if self.label else []
        if not pieces:
            return []
        return _label_along(max(pieces, key=len), self.label, self.color, taken, view)


@dataclass(frozen=True)
class Point(Mark):
    """A marker with a short label that keeps clear of lines, edges and other labels.

    A `rank` below 0 finds its label a place before the lines do: where there is little room, the
    name of a point stands close to it, and that of a roof further off.
    """

    x: float
    y: float
    label: str = ""
    color: str = INK
    kind: str = "o"
    hollow: bool = False
    radius: float = 6.5
    bold: bool = False
    panel: int = 0
    rank: int = 1

    def shapes(self, view):
        ((x, y),) = view.pixels(self.x, self.y)
        return [Dot(x, y, self.color, self.kind, self.radius, self.hollow)]

    def captions(self, view, taken):
        if not self.label:
            return []
        (point,) = view.pixels(self.x, self.y)
        found = _label_beside(point, self.label, self.color, taken, view, self.bold)
        return [*_leaders(point, found, taken), *found]


@dataclass(frozen=True)
class Drop(Mark):
    """A thin dotted line from (x, y) down to the axis, with the number it meets there."""

    x: float
    y: float
    label: str
    color: str = FAINT
    panel: int = 0
    rank = 0

    def _foot(self, view):
        ((x, y),) = view.pixels(self.x, self.y)
        return x, max(y, view.frame[1]), view.frame[3]

    def shapes(self, view):
        x, top, foot = self._foot(view)
        return [
            Path(np.array([(x, top), (x, foot)]), self.color, 1.3, (2, 3)),
            Path(np.array([(x, foot - 5), (x, foot + 5)]), self.color, 2),
        ]

    def captions(self, view, taken):
        x, _, foot = self._foot(view)
        if not self.label:
            return []
        left, right = view.frame[0], view.frame[2]
        width = text_size(self.label, 12)[0]
        beside = [(x + 6, "start")] if x + 6 + width < right else []
        beside += [(x - 6, "end")] if x - 6 - width > left else []
        return taken.first_free(
            [
                Words(at, foot - 7 - up, self.label, self.color, 12, anchor)
                for up in range(0, 108, 18)
                for at, anchor in beside
            ]
        )


@dataclass(frozen=True)
class Gap(Mark):
    """The distance from (x, low) up to (x, high), which is what the eye should find, with its size
    in words."""

    x: float
    low: float
    high: float
    label: str
    color: str = INK
    panel: int = 0
    rank = 1

    def shapes(self, view):
        (x, y0), (_, y1) = view.pixels((self.x, self.x), (self.low, self.high))
        if abs(y0 - y1) < 14:
            return []
        bars = [((x, y0), (x, y1)), ((x - 5, y1), (x + 5, y1))]
        return [Path(np.array(bar), self.color, 1.3, ()) for bar in bars]

    def captions(self, view, taken):
        (x, y0), (_, y1) = view.pixels((self.x, self.x), (self.low, self.high))
        if abs(y0 - y1) < 26:
            return []
        middle = x, (y0 + y1) / 2
        return _label_beside(middle, self.label, self.color, taken, view, size=12)


@dataclass(frozen=True)
class Side(Mark):
    """A faint tint from x0 to x1 over the whole height, with the region's name at the top."""

    x0: float
    x1: float
    label: str
    color: str
    panel: int = 0
    rank = 0

    def _box(self, view):
        left, right = np.clip(
            view.pixels((self.x0, self.x1), (1, 1))[:, 0], view.frame[0], view.frame[2]
        )
        return left, right

    def shapes(self, view):
        left, right = self._box(view)
        top, foot = view.frame[1], view.frame[3]
        if right - left < 1:
            return []
        return [
            Path(
                np.array([(left, top), (right, top), (right, foot), (left, foot)]),
                fill=self.color,
                opacity=0.07,
            )
        ]

    def captions(self, view, taken):
        left, right = self._box(view)
        if right - left < text_size(self.label, 13)[0] + 12:
            return []
        middle, (_, top, _, foot) = (left + right) / 2, view.frame
        return taken.first_free(
            [
                Words(middle, y, self.label, self.color, 13, "middle")
                for y in (top + 15, top + 34, foot - 28)
            ]
        )


@dataclass(frozen=True)
class Text(Mark):
    """Words at a place in the data."""

    x: float
    y: float
    label: str
    color: str = INK
    anchor: str = "start"
    size: float = 13.0
    panel: int = 0
    rank = 0

    def captions(self, view, taken):
        ((x, y),) = view.pixels(self.x, self.y)
        return [Words(x, y, self.label, self.color, self.size, self.anchor)]


def _filled(
    box: tuple[float, float, float],
    sizes: Sequence[float],
    colors: Sequence[str],
    room: float,
) -> list[Shape]:
    """A track that holds `room`, filled by parts one after the other. Where they are more than it
    holds, the track is drawn to their scale: a line stands where it ends, and what lies past it has
    a second, thin bar above it."""
    left, top, width = box
    total = sum(sizes)
    scale = width / max(total, room)
    full = scale * room
    shapes: list[Shape] = [_rectangle(left, top + 20, full, 12, GRID)]
    start = left
    for size, color in zip(sizes, colors, strict=True):
        shapes.append(_rectangle(start, top + 20, scale * size, 12, color))
        start += scale * size
    if total > room:
        shapes.append(_rectangle(left + full, top + 17, width - full, 3, OVER))
        shapes.append(_rectangle(left + full - 1, top + 16, 2, 20, INK))
    return shapes


@dataclass(frozen=True)
class Bar(Mark):
    """A bar that fills: `parts` are fractions of the track, laid one after the other.

    `box` is (left, top, width) in pixels of the picture; name and value stand above the track.
    """

    name: str
    parts: tuple
    value: str
    box: tuple
    colors: tuple = (ROOM,)
    rank = 0

    @property
    def runs_over(self) -> bool:
        return sum(self.parts) > 1

    def shapes(self, view):
        return _filled(self.box, self.parts, self.colors, 1.0)

    def captions(self, view, taken):
        left, top, width = self.box
        color = OVER if self.runs_over else INK
        return [
            Words(left, top + 13, self.name, INK, 12),
            Words(left + width, top + 13, self.value, color, 12, "end", bold=self.runs_over),
        ]


@dataclass(frozen=True)
class Part:
    """A part of a Stack: its name, its size, and the size in words."""

    name: str
    size: float
    said: str
    color: str


@dataclass(frozen=True)
class Stack(Mark):
    """A bar of parts that keep their colours, with the name and size of each below it, in their
    order. `room` is in the same unit as the parts.

    `box` is (left, top, width) in pixels of the picture, as a Bar's is; name and value stand above.
    """

    name: str
    parts: tuple[Part, ...]
    room: float
    value: str
    box: tuple[float, float, float]
    rank = 0

    @property
    def total(self) -> float:
        return sum(part.size for part in self.parts)

    @property
    def runs_over(self) -> bool:
        return self.total > self.room

    def shapes(self, view):
        sizes, colors = zip(*((part.size, part.color) for part in self.parts), strict=True)
        swatches = [_rectangle(x, self.box[1] + 43, 8, 8, part.color) for x, part in self._key()]
        return _filled(self.box, sizes, colors, self.room) + swatches

    def captions(self, view, taken):
        left, top, width = self.box
        color = OVER if self.runs_over else INK
        above = [
            Words(left, top + 13, self.name, INK, 12),
            Words(left + width, top + 13, self.value, color, 12, "end", bold=self.runs_over),
        ]
        below = [Words(x + 11, top + 51, self._said(part), INK, 12) for x, part in self._key()]
        return above + below

    @property
    def gap_between_names(self) -> float:
        """Pixels between the name of one part and the swatch of the next."""
        return (self.box[2] - sum(self._widths())) / max(1, len(self.parts) - 1)

    def _widths(self) -> list[float]:
        """Pixels that each part's swatch and words take."""
        return [11 + text_size(self._said(part), 12)[0] for part in self.parts]

    def _key(self) -> list[tuple[float, Part]]:
        """Where each part's swatch stands, and the part."""
        steps = [width + self.gap_between_names for width in self._widths()]
        starts = self.box[0] + np.cumsum([0.0, *steps[:-1]])
        return list(zip(starts.tolist(), self.parts, strict=True))

    @staticmethod
    def _said(part: Part) -> str:
        return f"{part.name} {part.said}"


def lay_out(axes: tuple[Axes, ...], height: int, marks: Iterable[Mark]) -> list[Shape]:
    """The shapes of `marks` on a tuple of Axes in a picture `height` pixels high, labels placed."""
    seen = views(axes, height)
    taken = Taken([shape for mark in marks for shape in mark.shapes(seen[mark.panel])])
    for mark in sorted(marks, key=lambda mark: mark.rank):
        taken.shapes.extend(mark.captions(seen[mark.panel], taken))
    return taken.shapes


def _rectangle(left: float, top: float, width: float, height: float, color: str) -> Path:
    right, foot = left + width, top + height
    return Path(np.array([(left, top), (right, top), (right, foot), (left, foot)]), fill=color)
