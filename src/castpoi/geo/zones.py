"""The IANA time zone of a point on Earth, looked up without a network.

`tzfpy` holds the boundaries; docs/decisions/0003-zones-from-coordinates.md says why.
"""

import numpy as np
import tzfpy
from numpy.typing import NDArray


def zones_of(lat: NDArray[np.float64], lon: NDArray[np.float64]) -> list[str]:
    """The IANA zone of each point; points at sea get the nautical `Etc/GMT` zone."""
    return [tzfpy.get_tz(x, y) for y, x in zip(lat.tolist(), lon.tolist(), strict=True)]


def boundaries_version() -> str:
    """Version of the zone boundaries, for manifests."""
    return str(tzfpy.data_version())


def is_land(zone: str) -> bool:
    """Whether people live in the zone: not the open sea, not Antarctica."""
    return not zone.startswith(("Etc/", "Antarctica/"))
