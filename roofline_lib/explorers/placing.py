"""Where shapes may go, all in pixels: which pixels a shape covers, what of a line is inside its
frame, and where a label finds room."""

import numpy as np

from roofline_lib.drawing import free_spot, sample, sample_box, text_size
from roofline_lib.explorers.stage import Dot, Path, Words


class Taken:
    """The shapes placed so far, and the pixels (n, 2) that they cover, worked out only when a label
    asks."""

    def __init__(self, shapes):
        self.shapes, self._covered = shapes, []

    def pixels(self):
        self._covered += [cover(shape) for shape in self.shapes[len(self._covered) :]]
        return np.concatenate(self._covered)


def cover(shape):
    """Pixels (n, 2) that a shape covers, for labels to keep off; tints cover none."""
    if isinstance(shape, Path):
        return sample(shape.points) if shape.stroke else np.empty((0, 2))
    if isinstance(shape, Dot):
        return sample_box(
            shape.x - shape.radius, shape.y - shape.radius, 2 * shape.radius, 2 * shape.radius
        )
    width, _ = text_size(shape.text, shape.size)
    box = sample_box(
        -width * {"start": 0, "middle": 0.5, "end": 1}[shape.anchor],
        -0.8 * shape.size,
        width,
        shape.size,
    )
    turn = np.radians(shape.angle)
    return box @ np.array([(np.cos(turn), np.sin(turn)), (-np.sin(turn), np.cos(turn))]) + (
        shape.x,
        shape.y,
    )


def clip(points, frame):
    """The pieces of a polyline (n, 2) inside a frame (Liang and Barsky), each an array (m, 2)."""
    pieces, last = [], None
    for start, end in zip(points[:-1], points[1:], strict=True):
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
        if enter > leave:
            last = None
            continue
        first, second = start + enter * step, start + leave * step
        if last is not None and abs(first - last).max() < 1e-6:
            pieces[-1].append(second)
        else:
            pieces.append([first, second])
        last = second
    return [np.array(piece) for piece in pieces]


def near(point, label, color, taken, frame, bold=False, size=13.0):
    """A label beside a point, where it covers least."""
    width, height = text_size(label, size)
    x, y = free_spot(point, (width * (1.1 if bold else 1), height), taken.pixels(), frame)
    return Words(x, y + 0.97 * size, label, color, size, bold=bold)


def along_line(points, label, color, taken, frame, size=12.5):
    """A label along a polyline, above or below it, where it covers least; higher up where points
    leave it no other place."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    half, length = text_size(label, size)[0] / 2, along[-1]
    at = np.clip(_SHARES * length, min(half + 4, length / 2), max(length - half - 4, length / 2))[
        :, None
    ] + np.array([-half, 0, half])
    # each (shares, 2)
    start, middle, end = np.stack(
        [np.interp(at, along, points[:, i]) for i in (0, 1)], axis=-1
    ).swapaxes(0, 1)
    direction = (
        (end - start)
        / np.maximum(np.hypot(*(end - start).T), 1e-9)[:, None]
        * np.where(end[:, :1] >= start[:, :1], 1, -1)
    )
    normal = direction[:, ::-1] * (-1, 1)  # downwards
    # above, below, above the points that sit on the line: how far down the baseline moves, and what
    # that costs
    shift, price = np.array([(-6, 0), (6 + 0.75 * size, 0.5), (-15, 0.9)]).T
    pixels, reach = taken.pixels(), abs(direction) * (half + 4) + abs(normal) * 2.3 * size
    # worth a look
    pixels = pixels[
        ((pixels > (middle - reach).min(axis=0)) & (pixels < (middle + reach).max(axis=0))).all(
            axis=1
        )
    ]
    # (pixels, shares)
    u, v = (pixels @ axis.T - np.sum(middle * axis, axis=1) for axis in (direction, normal))
    v = v[..., None]
    # (shares, shifts)
    hits = (
        (abs(u) < half + 4)[..., None] & (v > shift - 0.8 * size - 2) & (v < shift + 0.25 * size)
    ).sum(axis=0)
    corners = (middle + np.array([-half, half])[:, None, None] * direction)[:, :, None] + (
        shift - 0.4 * size
    )[:, None] * normal[:, None]
    outside = np.any((corners < frame[:2]) | (corners > frame[2:]), axis=(0, 3))
    # the first of the cheapest
    share, way = np.unravel_index(np.argmin(hits + 50 * outside + price), hits.shape)
    x, y = middle[share] + shift[way] * normal[share]
    return Words(
        x, y, label, color, size, "middle", float(np.degrees(np.arctan2(*direction[share, ::-1])))
    )


_SHARES = np.array([0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82, 0.1, 0.9])
