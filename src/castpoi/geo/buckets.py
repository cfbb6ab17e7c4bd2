"""Buckets of distance and of time: the edges of the CaST-POI paper, and those of our gate.

An edge belongs to the bucket above it: with edges (0.5, 2) the buckets are [0, 0.5), [0.5, 2)
and [2, inf).
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
"""Distance between a place that matters to the user and a candidate: next door to another state."""


def bucket_of(value: ArrayLike, edges: tuple[float, ...]) -> NDArray[np.uint8]:
    """The bucket of each value, 0 to len(edges)."""
    return np.searchsorted(np.asarray(edges), np.asarray(value), side="right").astype(np.uint8)
