"""Great-circle distances: by hand, against a slow version, and their symmetries."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.geo.distance import EARTH_RADIUS_KM, haversine_km

lats = st.floats(-90, 90)
lons = st.floats(-180, 180)
HALF_ROUND_KM = math.pi * EARTH_RADIUS_KM


def slow_km(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """The angle between two unit vectors (Vincenty's form for the sphere), in plain math."""
    a, b, turn = math.radians(lat_a), math.radians(lat_b), math.radians(lon_b - lon_a)
    across = math.hypot(
        math.cos(b) * math.sin(turn),
        math.cos(a) * math.sin(b) - math.sin(a) * math.cos(b) * math.cos(turn),
    )
    along = math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b) * math.cos(turn)
    return EARTH_RADIUS_KM * math.atan2(across, along)


def test_one_degree_along_a_meridian_is_111_km() -> None:
    assert haversine_km(40.0, -74.0, 41.0, -74.0) == pytest.approx(6371 * math.pi / 180)


def test_new_york_and_london_are_5570_km_apart() -> None:
    # published great-circle distance of the two city halls, on this sphere
    assert haversine_km(40.7128, -74.006, 51.5074, -0.1278) == pytest.approx(5570, abs=1)


@given(lats, lons, lats, lons)
def test_the_vectorised_distance_agrees_with_a_slow_one(
    lat_a: float, lon_a: float, lat_b: float, lon_b: float
) -> None:
    # near antipodes the haversine loses digits: half a kilometre on 20,015 is known and harmless
    found = float(haversine_km(lat_a, lon_a, lat_b, lon_b))
    assert found == pytest.approx(slow_km(lat_a, lon_a, lat_b, lon_b), rel=1e-6, abs=1e-6) or (
        found > HALF_ROUND_KM - 1 and abs(found - slow_km(lat_a, lon_a, lat_b, lon_b)) < 0.5
    )


@given(lats, lons, lats, lons)
def test_distances_are_symmetric_and_at_most_half_a_circumference(
    lat_a: float, lon_a: float, lat_b: float, lon_b: float
) -> None:
    there = haversine_km(lat_a, lon_a, lat_b, lon_b)
    assert there == pytest.approx(
        float(haversine_km(lat_b, lon_b, lat_a, lon_a)), rel=1e-9, abs=1e-9
    )
    assert 0 <= there <= HALF_ROUND_KM * (1 + 1e-12)


@given(lats, lons)
def test_the_distance_of_a_place_to_itself_is_zero(lat: float, lon: float) -> None:
    assert haversine_km(lat, lon, lat, lon) == 0


@given(lats, st.floats(-180, 0))
def test_antipodes_are_half_a_circumference_apart(lat: float, lon: float) -> None:
    assert haversine_km(lat, lon, -lat, lon + 180) == pytest.approx(HALF_ROUND_KM, abs=0.5)


def test_distances_cross_the_date_line() -> None:
    assert haversine_km(0, 179.9, 0, -179.9) == pytest.approx(0.2 * 6371 * math.pi / 180)


def test_distances_broadcast_from_many_places_to_many() -> None:
    lat, lon = np.array([40.7, 35.7, 37.8]), np.array([-74.0, 139.7, -122.4])
    table = haversine_km(lat[:, None], lon[:, None], lat, lon)
    assert table.shape == (3, 3)
    assert table[0, 1] == haversine_km(40.7, -74.0, 35.7, 139.7)
