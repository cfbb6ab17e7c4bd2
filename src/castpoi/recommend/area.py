"""Areas that limit recommendations: a box or a polygon, in degrees.

Shapes: P points.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import BadInput

Point = tuple[float, float]  # latitude and longitude in degrees
Box = tuple[float, float, float, float]
"""South, west, north, east in degrees; west > east for a box across the date line."""
Polygon = tuple[Point, ...]
"""Corners in order; the last one is joined to the first. Less than 180 degrees wide."""


def is_number(value: object) -> bool:
    """Whether this is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def point_of(point: Iterable[float], *, what: str) -> Point:
    """A checked latitude and longitude; `what` names them in an error."""
    numbers = tuple(point)
    if len(numbers) != 2:
        raise BadInput(f"{what} has {len(numbers)} parts; it must be a latitude and a longitude")
    # a position is personal: the error gives the rule and never the coordinate
    for name, degrees, most in zip(("latitude", "longitude"), numbers, (90, 180), strict=True):
        if not is_number(degrees) or abs(degrees) > most:
            raise BadInput(
                f"{what}: the {name} is not a number from -{most} to {most}; "
                "the order is latitude, longitude"
            )
    return numbers[0], numbers[1]


def box_of(box: Iterable[float], *, what: str = "box") -> Box:
    """A checked box; `what` names it in an error."""
    numbers = tuple(box)
    if len(numbers) != 4 or not all(isinstance(each, int | float) for each in numbers):
        raise BadInput(f"{what}: write four numbers as south,west,north,east")
    south, west, north, east = numbers
    if not (-90 <= south <= north <= 90 and -180 <= west <= 180 and -180 <= east <= 180):
        raise BadInput(
            f"{what}: south,west,north,east must be latitudes from -90 to 90, south below north, "
            "and longitudes from -180 to 180"
        )
    return south, west, north, east


def parse_box(text: str, *, what: str) -> Box:
    """A box written as south,west,north,east."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    return box_of(numbers, what=what)


def polygon_of(corners: Iterable[Iterable[float]]) -> Polygon:
    """A checked polygon."""
    points = tuple(point_of(corner, what="polygon") for corner in corners)
    if len(points) < 3:
        raise BadInput(f"polygon has {len(points)} corners; it must have at least three")
    return points


def is_in_box(box: Box, lat: NDArray[np.float64], lon: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each point is in the box, borders included. [P], [P] -> [P]"""
    south, west, north, east = box
    is_east, is_west = lon >= west, lon <= east
    is_between = is_east & is_west if west <= east else is_east | is_west  # [P]
    inside: NDArray[np.bool_] = is_between & (lat >= south) & (lat <= north)
    return inside


def is_in_polygon(
    polygon: Polygon, lat: NDArray[np.float64], lon: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether a ray from each point to the east crosses an odd number of edges. [P], [P] -> [P]"""
    first = polygon[0][1]
    inside = np.zeros(len(lat), dtype=np.bool_)  # [P]
    east = _degrees_east(lon, first)  # [P]
    corners = [(north, float(_degrees_east(np.float64(west), first))) for north, west in polygon]
    for (lat_1, east_1), (lat_2, east_2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if lat_1 != lat_2:
            crossing = east_1 + (lat - lat_1) / (lat_2 - lat_1) * (east_2 - east_1)  # [P]
            inside ^= ((lat_1 > lat) != (lat_2 > lat)) & (east < crossing)
    return inside


def _degrees_east(lon: NDArray[np.float64] | np.float64, of: float) -> NDArray[np.float64]:
    """Longitudes relative to one of them, from -180 to 180: the date line does not matter."""
    relative: NDArray[np.float64] = (np.asarray(lon) - of + 180) % 360 - 180
    return relative
