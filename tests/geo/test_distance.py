"""Great-circle distances, buckets of distance and age, and squares on the map."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from castpoi.geo.distance import (
    DISPLACEMENT_EDGES_KM,
    EARTH_RADIUS_KM,
    SPATIAL_BIAS_EDGES_KM,
    TEMPORAL_BIAS_EDGES_HOURS,
    bucket_of,
    haversine_km,
)

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


@given(lats, lons, lats, lons)
def test_the_vectorised_distance_agrees_with_a_slow_one(
    lat_a: float, lon_a: float, lat_b: float, lon_b: float
) -> None:
    # near antipodes the haversine loses digits: half a kilometre on 20,015 is known and harmless
    found = float(haversine_km(lat_a, lon_a, lat_b, lon_b))
    assert found == pytest.approx(slow_km(lat_a, lon_a, lat_b, lon_b), rel=1e-6, abs=1e-6) or (
        found > HALF_ROUND_KM - 1 and abs(found - slow_km(lat_a, lon_a, lat_b, lon_b)) < 0.5
    )


def test_distances_broadcast_from_many_places_to_many() -> None:
    lat, lon = np.array([40.7, 35.7, 37.8]), np.array([-74.0, 139.7, -122.4])
    table = haversine_km(lat[:, None], lon[:, None], lat, lon)
    assert table.shape == (3, 3)
    assert table[0, 1] == haversine_km(40.7, -74.0, 35.7, 139.7)


# Buckets


ALL_EDGES = [SPATIAL_BIAS_EDGES_KM, TEMPORAL_BIAS_EDGES_HOURS, DISPLACEMENT_EDGES_KM]


def test_edges_are_those_of_the_paper() -> None:
    assert list(SPATIAL_BIAS_EDGES_KM) == [0.5, 2, 5, 20, 100]
    assert list(TEMPORAL_BIAS_EDGES_HOURS) == [1, 6, 24, 168, 720]
    assert list(DISPLACEMENT_EDGES_KM) == [0.1, 0.5, 1, 2, 5, 10, 50]


@pytest.mark.parametrize("edges", ALL_EDGES)
def test_an_edge_belongs_to_the_bucket_above_it(edges: tuple[float, ...]) -> None:
    at_edges = bucket_of(np.array(edges), edges)
    just_below = bucket_of(np.nextafter(np.array(edges), 0), edges)
    assert at_edges.tolist() == list(range(1, len(edges) + 1))
    assert just_below.tolist() == list(range(len(edges)))
