"""The coarse outline of land: known points, clipping, the date line."""

import numpy as np
import pytest
from numpy.typing import NDArray

from castpoi.geo.land import Window, land_in, window_around

NEW_YORK = Window(40.4, -74.4, 41.0, -73.6)


def is_land(lat: float, lon: float, window: Window) -> bool:
    """Whether an odd number of edges is east of a point."""
    return sum(crossings(lat, lon, ring) for ring in land_in(window)) % 2 == 1


def crossings(lat: float, lon: float, ring: NDArray[np.float64]) -> int:
    (x, y), (to_x, to_y) = ring.T, np.roll(ring, -1, axis=0).T
    meets = (y > lat) != (to_y > lat)
    gap = np.where(meets, to_y - y, 1.0)
    return int((meets & (x + (lat - y) / gap * (to_x - x) > lon)).sum())


@pytest.mark.parametrize(
    ("name", "lat", "lon", "is_dry"),
    [
        ("Central Park", 40.78, -73.966, True),
        ("Jersey City", 40.73, -74.07, True),
        ("Upper Bay", 40.66, -74.045, False),
        ("off Coney Island", 40.5, -73.95, False),
    ],
)
def test_the_coast_of_new_york_is_where_it_is(
    name: str, lat: float, lon: float, is_dry: bool
) -> None:
    assert is_land(lat, lon, NEW_YORK) == is_dry, name


def test_rings_stay_within_the_window() -> None:
    rings = np.concatenate(land_in(NEW_YORK))
    assert rings.min(axis=0) == pytest.approx([-74.4, 40.4], abs=1e-9)
    assert (rings <= [-73.6, 41.0]).all()


def test_a_window_inland_is_all_land_and_one_at_sea_has_none() -> None:
    (paris,) = land_in(Window(48.0, 2.0, 49.0, 3.0))
    assert {tuple(corner) for corner in paris} == {(2, 48), (3, 48), (3, 49), (2, 49)}
    assert land_in(Window(35.0, -40.0, 36.0, -39.0)) == []


def test_a_window_across_the_date_line_has_land_on_both_sides() -> None:
    fiji = window_around(np.array([-17.8, -16.8]), np.array([177.4, -179.9]))
    assert fiji.west < 177.4 < 180 < fiji.east
    east = np.concatenate(land_in(fiji))[:, 0]
    assert east.min() < 179
    assert east.max() > 180.05
