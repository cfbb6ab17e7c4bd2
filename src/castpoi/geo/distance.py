"""Great-circle distance between places, by the haversine formula on a sphere of 6371 km."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

EARTH_RADIUS_KM: Final = 6371.0


def haversine_km(
    lat_a: ArrayLike, lon_a: ArrayLike, lat_b: ArrayLike, lon_b: ArrayLike
) -> NDArray[np.float64]:
    """Distance in km between points given in degrees; broadcasts like numpy."""
    lat_a, lon_a, lat_b, lon_b = (
        np.radians(np.asarray(degrees, dtype=np.float64))
        for degrees in (lat_a, lon_a, lat_b, lon_b)
    )
    half_chord = (
        np.sin((lat_b - lat_a) / 2) ** 2
        + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
    )
    kilometres: NDArray[np.float64] = (
        2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(half_chord, 0.0, 1.0)))
    )
    return kilometres
