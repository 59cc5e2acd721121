"""Where a label goes: how large a text is, which pixels lines and boxes cover, and which place is
free. All places are in pixels; unless a function says otherwise, either direction of y will do."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from matplotlib.font_manager import findfont, get_font

Box = tuple[float, float, float, float]


@lru_cache(maxsize=4096)
def text_size(text: str, size: float) -> tuple[float, float]:
    """(width, height) of a text in matplotlib's own font at `size` pixels.

    It is close for the fonts of a browser, and on the safe side.
    """
    font = get_font(findfont("DejaVu Sans"))
    font.set_size(size, 72)
    font.set_text(text)
    return font.get_width_height()[0] / 64, 1.25 * size


def sample(points: np.ndarray, step: float = 4.0) -> np.ndarray:
    """Points every `step` pixels along a polyline of shape (n, 2): how lines tell labels that they
    are there."""
    points = np.asarray(points, float)
    along = _lengths(points)
    at = np.append(np.arange(0, along[-1], step), along[-1])
    return np.column_stack([np.interp(at, along, points[:, 0]), np.interp(at, along, points[:, 1])])


def sample_box(x: float, y: float, width: float, height: float, step: float = 4.0) -> np.ndarray:
    """Points (n, 2) all over a box with its lowest corner at (x, y)."""
    columns, rows = int(width / step) + 1, int(height / step) + 1
    grid = np.empty((rows + 1, columns + 1, 2))
    grid[..., 0] = x + width / columns * np.arange(columns + 1)
    grid[..., 1] = y + height / rows * np.arange(rows + 1)[:, None]
    return grid.reshape(-1, 2)


def turned(points: np.ndarray, degrees: float) -> np.ndarray:
    """Points (n, 2) turned about the origin, from the first axis towards the second."""
    angle = np.radians(degrees)
    return points @ np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])


def _lengths(points: np.ndarray) -> np.ndarray:
    """How far along a polyline (n, 2) each of its points lies."""
    return np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])


_SOLID = 12  # so many times as much as a point of a line does a point of a marker or a label count


@dataclass(frozen=True)
class Covered:
    """Pixels (n, 2) that are taken, and what it costs (n,) to cover each: labels may cross a line
    where they must, and should cover no marker and no other label."""

    points: np.ndarray
    cost: np.ndarray

    @staticmethod
    def of(lines: Iterable[np.ndarray], solid: Iterable[np.ndarray]) -> "Covered":
        """All pixels (n, 2) of lines, and of markers and labels."""
        thin, thick = (np.concatenate([np.empty((0, 2)), *some]) for some in (lines, solid))
        return Covered(
            np.concatenate([thin, thick]),
            np.repeat([1.0, _SOLID], [len(thin), len(thick)]),
        )

    def among(self, chosen: np.ndarray) -> "Covered":
        """Those of the pixels that are chosen (n,)."""
        return Covered(self.points[chosen], self.cost[chosen])


class Beside(NamedTuple):
    """Lowest corner of a label beside a point, and whether it covers a marker or another label."""

    x: float
    y: float
    clashes: bool


class Along(NamedTuple):
    """Middle of a label's baseline along a line, its angle in degrees, and whether it covers a
    marker or another label or leaves the frame."""

    x: float
    y: float
    angle: float
    clashes: bool


_AROUND = (
    (1, -1),
    (1, 1),
    (-1, -1),
    (-1, 1),
    (1, 0),
    (-1, 0),
    (0, -1),
    (0, 1),
    (0.4, -1),
    (0.4, 1),
    (-0.4, -1),
    (-0.4, 1),
)
_REACH = np.array([(reach, *around) for reach in (1, 2, 3.5, 5.5, 8, 11) for around in _AROUND])
# what it costs to stand so far off: a label rather crosses a line than leaves its point
_FAR = np.repeat([0.0, 0.5, 1.5, 3, 8, 14], len(_AROUND))


def spot_beside(
    point: np.ndarray,
    size: tuple[float, float],
    taken: Covered,
    frame: Box,
    clear: float = 9.0,
) -> Beside:
    """Where a box of `size` (width, height) near `point` covers least of what is `taken`, within
    `frame` (x0, y0, x1, y1).

    Near spots are tried first, so that a label jumps only where it must.
    """
    (width, height), reach = size, _REACH[:, 0]
    dx, dy = _REACH[:, 1:].T
    sideways = clear * np.where(dy == 0, reach, np.minimum(reach, 1.5))
    x = point[0] + dx * sideways - width * (1 - dx) / 2
    y = point[1] + dy * clear * reach - height * (1 - dy) / 2
    outside = sum(
        np.maximum(0, over)
        for over in (frame[0] - x, x + width - frame[2], frame[1] - y, y + height - frame[3])
    )
    # those that any spot could cover
    within_reach = width + 12 * clear, height + 12 * clear
    near = taken.among((abs(taken.points - point) < within_reach).all(axis=1))
    across = _within(near.points[:, 0], x - 3, width + 6)
    upright = _within(near.points[:, 1], y - 1, height + 2)
    covered = across & upright
    hits = near.cost @ covered
    best = np.argmin(40 * (outside > 0) + outside + hits + _FAR)  # the first of the cheapest
    return Beside(x[best], y[best], bool(np.any(near.cost[covered[:, best]] > 1)))


def _within(values: np.ndarray, low: np.ndarray, width: float) -> np.ndarray:
    """Which of the values (n,) lie inside each of the intervals (m,): shape (n, m)."""
    values = values[:, None]
    return (low < values) & (values < low + width)


_SHARES = np.array([0.5, *(0.5 + way * off / 100 for off in range(4, 46, 4) for way in (-1, 1))])


def spot_along(
    points: np.ndarray,
    width: float,
    size: float,
    taken: Covered,
    frame: Box,
) -> Along:
    """Where a label along a polyline (n, 2), y down, covers least of what is `taken`: above or
    below the line, within `frame` (x0, y0, x1, y1).

    The label is `width` pixels wide in letters of `size`. It goes further off where points on the
    line leave it no other place. Along a line that is shorter than the label it begins or ends
    where the line does.
    """
    half = width / 2
    middle, direction = _places_along(points, half)
    normal = direction[:, ::-1] * (-1, 1)  # downwards
    # above, below, above and below the points that sit on the line: how far down the baseline
    # moves, and what that costs
    shift, price = np.array([(-6, 0), (6 + 0.75 * size, 0.5), (-15, 1.5), (15 + 0.75 * size, 2)]).T
    reach = abs(direction) * (half + 4) + abs(normal) * 2.6 * size
    box = (middle - reach).min(axis=0), (middle + reach).max(axis=0)
    near = taken.among(((taken.points > box[0]) & (taken.points < box[1])).all(axis=1))
    # how far each taken point lies along and across each place: (taken, places)
    along, across = (
        near.points @ axis.T - np.sum(middle * axis, axis=1) for axis in (direction, normal)
    )
    across = across[..., None]
    # (taken, places, shifts)
    covered = (
        (abs(along) < half + 4)[..., None]
        & (across > shift - 0.8 * size - 2)
        & (across < shift + 0.25 * size)
    )
    hits = np.tensordot(near.cost, covered, 1)
    # all four corners: (ends, top and foot, places, shifts, 2)
    ends = (middle + np.array([-half, half])[:, None, None] * direction)[:, None, :, None]
    top_and_foot = (shift + np.array([[-0.8], [0.2]]) * size)[:, None, :, None]
    corners = ends + top_and_foot * normal[:, None]
    outside = np.any((corners < frame[:2]) | (corners > frame[2:]), axis=(0, 1, 4))
    # the first of the cheapest
    place, way = np.unravel_index(np.argmin(hits + 50 * outside + price), hits.shape)
    x, y = middle[place] + shift[way] * normal[place]
    angle = float(np.degrees(np.arctan2(*direction[place, ::-1])))
    clashes = outside[place, way] or np.any(near.cost[covered[:, place, way]] > 1)
    return Along(x, y, angle, bool(clashes))


def _beyond(points: np.ndarray, half: float) -> np.ndarray:
    """The point two halves of a label past the end of a polyline (n, 2), straight on."""
    step = points[-1] - points[-2]
    return points[-1] + step / max(np.hypot(*step), 1e-9) * 2 * half


def _places_along(points: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the middle of a label may stand on a polyline, and the line's direction there, always
    to the right: two arrays of shape (places, 2)."""
    length = _lengths(points)[-1]
    # a label as long as a short line, or longer, stands past its ends
    points = np.vstack([_beyond(points[::-1], half), points, _beyond(points, half)])
    along = _lengths(points) - 2 * half
    first, last = half + 4, length - half - 4
    if first < last:
        at = np.clip(_SHARES * length, first, last)
    else:
        at = np.linspace(last, first, len(_SHARES))
    at = at[:, None] + np.array([-half, 0, half])
    start, middle, end = np.stack(
        [np.interp(at, along, points[:, i]) for i in (0, 1)], axis=-1
    ).swapaxes(0, 1)
    step = end - start
    direction = (
        step
        / np.maximum(np.hypot(*step.T), 1e-9)[:, None]
        * np.where(end[:, :1] >= start[:, :1], 1, -1)
    )
    return middle, direction


def spot_on_roof(
    size: tuple[float, float], ends: tuple[float, float], y: float, points: np.ndarray
) -> tuple[float, float]:
    """(right end, distance above the roof in points) of a label over a flat roof at height y, y up.

    It goes as far right between the roof's `ends` as none of the `points` (n, 2) is in its way;
    where each place has one, at the end and above them.
    """
    (width, height), (left, right) = size, ends
    level = abs(points[:, 1] - y - height / 2) < height / 2 + 8
    x, beside = points[level, 0], width + 8
    places = sorted({right - 4, *(x - 8)}, reverse=True)
    for place in places:
        if place - width > left and not np.any((x > place - beside) & (x < place + 8)):
            return place, 3
    return right - 4, 8
