"""Neighbourhoods: the squares of about so many km into which the map is cut.

Latitude is cut into bands, and each band into columns that are as wide as it is high, measured in
its middle. A square is known by its band and its column; no list of squares is needed to find it.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.geo.distance import EARTH_RADIUS_KM

_KM_A_DEGREE: Final = EARTH_RADIUS_KM * math.pi / 180
_LEAST_COSINE: Final = 0.01  # beside the poles squares become narrow instead of wide without end


def squares_of(
    lat: NDArray[np.float64], lon: NDArray[np.float64], size_km: float
) -> NDArray[np.int64]:
    """Band and column of the square in which each point lies. [P], [P] -> [P, 2]"""
    height = size_km / _KM_A_DEGREE
    band = np.floor(lat / height)
    cosine = np.cos(np.radians((band + 0.5) * height))
    width = height / np.maximum(cosine, _LEAST_COSINE)
    return np.stack([band, np.floor(lon / width)], axis=-1).astype(np.int64)  # [P, 2]
