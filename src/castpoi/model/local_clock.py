"""What a clock and a calendar on the wall show at a visit."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.microseconds import HOUR_US, MINUTE_US
from castpoi.checkins.trajectory import Histories

DAY_US: Final = 24 * HOUR_US
_THURSDAY: Final = 3  # 1970-01-01, with Monday 0
_SATURDAY: Final = 5


def local_us(visits: Histories, at_us: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Local time where each visit was, at it or at another moment; microseconds since 1970."""
    return (visits.at_us if at_us is None else at_us) + visits.offset_minutes * MINUTE_US


def hour_of(local: NDArray[np.int64]) -> NDArray[np.float64]:
    """Time of day in hours, from 0 to below 24."""
    return local % DAY_US / HOUR_US


def weekday_of(local: NDArray[np.int64]) -> NDArray[np.int64]:
    """Day of the week, Monday 0."""
    return (local // DAY_US + _THURSDAY) % 7


def is_weekend(local: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether it was Saturday or Sunday."""
    return weekday_of(local) >= _SATURDAY
