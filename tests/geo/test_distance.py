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
    squares_of,
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


@pytest.mark.parametrize("edges", ALL_EDGES)
def test_zero_is_in_the_first_bucket_and_infinity_in_the_last(
    edges: tuple[float, ...],
) -> None:
    assert bucket_of([0.0, 1e9, np.inf], edges).tolist() == [0, len(edges), len(edges)]


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=30), st.sampled_from(ALL_EDGES))
def test_a_bucket_is_the_number_of_edges_reached(
    values: list[float], edges: tuple[float, ...]
) -> None:
    slow = [sum(value >= edge for edge in edges) for value in values]
    assert bucket_of(values, edges).tolist() == slow


# Squares


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
