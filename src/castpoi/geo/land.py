"""The coarse outline of the world's land: Natural Earth, 1:10,000,000, in the public domain.

It shows where a city meets the sea, to about 300 m. Lakes and rivers are not in it.
`tools/coarse_land.py` made `land.npz`. Shapes: R rings, N points of a ring.
"""

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MIN_MARGIN: Final = 0.5  # degrees
_FINEST: Final = 2500  # points across a box; of closer points one is kept


class Window(NamedTuple):
    """A box in degrees; east may be above 180, so that it crosses the date line."""

    south: float
    west: float
    north: float
    east: float


def unwrapped(lon: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Degrees east of the middle, and the middle, for places across 180 degrees too. [P]"""
    turned = np.radians(lon)
    middle = float(np.degrees(np.arctan2(np.sin(turned).mean(), np.cos(turned).mean())))
    return (lon - middle + 180.0) % 360.0 - 180.0, middle


def window_around(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> Window:
    """The window of nearly all places, with a margin of its own size on each side. [P] each"""
    east_of_middle, middle = unwrapped(lon)
    sides = []
    for degrees in (lat, east_of_middle):
        low, high = (float(side) for side in np.quantile(degrees, (0.01, 0.99)))
        margin = max(high - low, _MIN_MARGIN)
        sides.append((low - margin, high + margin))
    (south, north), (west, east) = sides
    return Window(
        max(south, -85.0),
        middle + max(west, -180.0),
        min(north, 85.0),
        middle + min(east, 180.0),
    )


def land_in(window: Window) -> list[NDArray[np.float64]]:
    """The rings of land within a window, clipped at its edges: longitude, latitude. R of [N, 2]"""
    found = []
    step = max(window.east - window.west, window.north - window.south) / _FINEST
    rings, west, south, east, north = _rings()
    is_beside = (north >= window.south) & (south <= window.north)  # [R]
    for turn in (-360.0, 0.0, 360.0):
        is_near = is_beside & (east + turn >= window.west) & (west + turn <= window.east)
        for number in np.flatnonzero(is_near).tolist():
            ring = _clipped(rings[number] + (turn, 0.0), window)  # [N, 2]
            grid = np.floor(ring / step)
            is_new = np.any(np.diff(grid, axis=0, prepend=grid[-1:] + 1) != 0, axis=1)
            if is_new.sum() > 2:
                found.append(ring[is_new])
    return found


class _Rings(NamedTuple):
    """All rings in degrees, and the box of each. [R] each"""

    points: list[NDArray[np.float64]]  # R of [N, 2]
    west: NDArray[np.float64]
    south: NDArray[np.float64]
    east: NDArray[np.float64]
    north: NDArray[np.float64]


@cache
def _rings() -> _Rings:
    with files(__package__).joinpath("land.npz").open("rb") as file, np.load(file) as stored:
        scale, origin, first, size = (stored[n] for n in ("scale", "origin", "first", "size"))
        steps = stored["steps"].T  # [all points, 2]
    starts = np.cumsum(size) - size
    moves = np.insert(steps, starts - np.arange(len(size)), 0, axis=0)  # [all points, 2]
    points = np.cumsum(moves, axis=0)
    points += np.repeat(first - points[starts], size, axis=0)
    points = origin + scale * points
    west, south = np.minimum.reduceat(points, starts).T
    east, north = np.maximum.reduceat(points, starts).T
    return _Rings(np.split(points, starts[1:]), west, south, east, north)


def _clipped(ring: NDArray[np.float64], window: Window) -> NDArray[np.float64]:
    """A ring cut at the four edges of a window, one after another (Sutherland, Hodgman). [N, 2]"""
    south, west, north, east = window
    for axis, edge, sign in ((0, west, 1), (0, east, -1), (1, south, 1), (1, north, -1)):
        if not len(ring):
            break
        former = np.roll(ring, 1, axis=0)
        inside, was_inside = (sign * (each[:, axis] - edge) >= 0 for each in (ring, former))
        crosses = inside != was_inside
        gap = np.where(crosses, ring[:, axis] - former[:, axis], 1.0)
        share = (edge - former[:, axis]) / gap
        crossing = former + share[:, None] * (ring - former)
        both = np.stack([crossing, ring], axis=1)  # [N, 2, 2]
        ring = both[np.stack([crosses, inside], axis=1)]  # [N, 2]
    return ring
