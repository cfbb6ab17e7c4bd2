"""Distances on a sphere of 6371 km, and their buckets. Shapes: P points."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

EARTH_RADIUS_KM: Final = 6371.0
KM_PER_DEGREE: Final = EARTH_RADIUS_KM * math.pi / 180

SPATIAL_BIAS_EDGES_KM: Final = (0.5, 2.0, 5.0, 20.0, 100.0)
"""Distance between a past visit and a candidate: walk, neighbourhood, district, city, beyond."""

TEMPORAL_BIAS_EDGES_HOURS: Final = (1.0, 6.0, 24.0, 24.0 * 7, 24.0 * 30)
"""Age of a past visit, counted back from the last one."""

DISPLACEMENT_EDGES_KM: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0)
"""Length of the move from one check-in to the next."""

DISTANCE_GATE_EDGES_KM: Final = (
    *(0.05, 0.15, 0.3, 0.6, 1.0, 2.0, 4.0, 8.0),
    *(15.0, 30.0, 60.0, 120.0, 300.0),
)
"""Distance between an anchor place of the user and a candidate: next door to another state."""


def haversine_km(
    lat_a: ArrayLike, lon_a: ArrayLike, lat_b: ArrayLike, lon_b: ArrayLike
) -> NDArray[np.float64]:
    """Great-circle distance in km between points given in degrees; broadcasts like numpy."""
    degrees = (lat_a, lon_a, lat_b, lon_b)
    lat_a, lon_a, lat_b, lon_b = (np.radians(np.asarray(each, np.float64)) for each in degrees)
    of_latitude = np.sin((lat_b - lat_a) / 2) ** 2
    of_longitude = np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    half_chord = np.clip(of_latitude + of_longitude, 0.0, 1.0)
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(half_chord))


def bucket_of(value: ArrayLike, edges: tuple[float, ...]) -> NDArray[np.uint8]:
    """The bucket of each value, from 0 to len(edges); an edge belongs to the bucket above it."""
    return np.searchsorted(np.asarray(edges), np.asarray(value), side="right").astype(np.uint8)


def unit_vectors(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points on the unit sphere from degrees. [P], [P] -> [P, 3]"""
    phi, theta = np.radians(lat), np.radians(lon)
    axes = [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)]
    return np.stack(axes, axis=-1).astype(np.float64)
