"""Lengths of time in microseconds, the unit of every instant inside castpoi."""

from typing import Final

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
