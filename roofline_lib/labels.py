"""Where a label goes: how large a text is, which pixels lines and boxes cover, and which place is
free. All places are in pixels; unless a function says otherwise, either direction of y will do."""

from functools import lru_cache

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
_REACH = np.array([(reach, *around) for reach in (1, 2, 3.5, 5.5) for around in _AROUND])


def spot_beside(
    point: np.ndarray,
    size: tuple[float, float],
    taken: np.ndarray,
    frame: Box,
    clear: float = 9.0,
) -> tuple[float, float]:
    """Lowest corner (x, y) of a box of `size` (width, height) near `point` that covers the fewest
    of the `taken` points (n, 2), within `frame` (x0, y0, x1, y1).

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
    taken = taken[(abs(taken - point) < (width + 7 * clear, height + 7 * clear)).all(axis=1)]
    across = _within(taken[:, 0], x - 3, width + 6)
    upright = _within(taken[:, 1], y - 1, height + 2)
    hits = np.count_nonzero(across & upright, axis=0)
    best = np.argmin(40 * (outside > 0) + outside + hits)  # the first of the cheapest
    return x[best], y[best]


def _within(values: np.ndarray, low: np.ndarray, width: float) -> np.ndarray:
    """Which of the values (n,) lie inside each of the intervals (m,): shape (n, m)."""
    values = values[:, None]
    return (low < values) & (values < low + width)


_SHARES = np.array([0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82, 0.1, 0.9])


def spot_along(
    points: np.ndarray,
    width: float,
    size: float,
    taken: np.ndarray,
    frame: Box,
) -> tuple[float, float, float]:
    """(x, y, angle in degrees) of the middle of a label's baseline along a polyline (n, 2), y down:
    above or below the line, where the label covers least of the `taken` points (n, 2).

    The label is `width` pixels wide in letters of `size`. It goes higher up where points on the
    line leave it no other place.
    """
    half = width / 2
    middle, direction = _places_along(points, half)
    normal = direction[:, ::-1] * (-1, 1)  # downwards
    # above, below, above the points that sit on the line: how far down the baseline moves, and what
    # that costs
    shift, price = np.array([(-6, 0), (6 + 0.75 * size, 0.5), (-15, 0.9)]).T
    reach = abs(direction) * (half + 4) + abs(normal) * 2.3 * size
    near = (taken > (middle - reach).min(axis=0)) & (taken < (middle + reach).max(axis=0))
    taken = taken[near.all(axis=1)]
    # how far each taken point lies along and across each place: (taken, places)
    along, across = (taken @ axis.T - np.sum(middle * axis, axis=1) for axis in (direction, normal))
    across = across[..., None]
    # (places, shifts)
    hits = (
        (abs(along) < half + 4)[..., None]
        & (across > shift - 0.8 * size - 2)
        & (across < shift + 0.25 * size)
    ).sum(axis=0)
    corners = (middle + np.array([-half, half])[:, None, None] * direction)[:, :, None] + (
        shift - 0.4 * size
    )[:, None] * normal[:, None]
    outside = np.any((corners < frame[:2]) | (corners > frame[2:]), axis=(0, 3))
    # the first of the cheapest
    place, way = np.unravel_index(np.argmin(hits + 50 * outside + price), hits.shape)
    x, y = middle[place] + shift[way] * normal[place]
    return x, y, float(np.degrees(np.arctan2(*direction[place, ::-1])))


def _places_along(points: np.ndarray, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the middle of a label may stand on a polyline, and the line's direction there, always
    to the right: two arrays of shape (places, 2)."""
    along = _lengths(points)
    length = along[-1]
    first, last = min(half + 4, length / 2), max(length - half - 4, length / 2)
    at = np.clip(_SHARES * length, first, last)[:, None] + np.array([-half, 0, half])
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
