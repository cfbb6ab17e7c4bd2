"""Neighbourhoods: squares on the map."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.geo.distance import haversine_km, squares_of

CITY_LATITUDES = st.floats(-65, 65)
LONGITUDES = st.floats(-179, 179)


def square(lat: float, lon: float, size_km: float) -> tuple[int, ...]:
    return tuple(squares_of(np.array([lat]), np.array([lon]), size_km)[0].tolist())


def test_the_squares_around_the_origin_meet_there() -> None:
    points = [(0.001, 0.001), (0.001, -0.001), (-0.001, 0.001), (-0.001, -0.001)]
    assert [square(*point, 1.0) for point in points] == [(0, 0), (0, -1), (-1, 0), (-1, -1)]


def test_a_street_of_five_kilometres_crosses_six_squares_of_one() -> None:
    lat = 40.7 + np.linspace(0, 5 / 111.19, 500)
    assert len(np.unique(squares_of(lat, np.full(500, -74.0), 1.0), axis=0)) == 6


@given(lat=CITY_LATITUDES, lon=LONGITUDES, size_km=st.sampled_from([1.0, 5.0]))
def test_neighbours_of_one_square_are_no_further_apart_than_its_diagonal(
    lat: float, lon: float, size_km: float
) -> None:
    rng = np.random.default_rng(0)
    lats = lat + rng.uniform(-0.05, 0.05, size=200)
    lons = lon + rng.uniform(-0.05, 0.05, size=200)
    here = (squares_of(lats, lons, size_km) == square(lat, lon, size_km)).all(axis=1)
    far = haversine_km(lat, lon, lats[here], lons[here])
    assert (far <= 1.02 * math.sqrt(2) * size_km).all()


@pytest.mark.parametrize("lat", [-90.0, 90.0])
def test_the_poles_have_squares_too(lat: float) -> None:
    assert square(lat, 179.9, 1.0) != square(lat, -179.9, 1.0)
