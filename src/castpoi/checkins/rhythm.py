"""The rhythm check: whether the local hours of check-ins are plausible for people.

People sleep. In true local time the quietest hours are deep in the night, and days are busier than
nights. A clock that is wrong by hours moves the quietest hours by the same number of hours. In
four real cities (New York twice, California, Tokyo) they are at 03:00 or 04:00.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import HOUR_US

TROUGH_HOURS: Final = range(1, 7)  # the quietest hour is one of these
USUAL_TROUGH: Final = 3
MIN_DAY_NIGHT_RATIO: Final = 1.5
SILENT_NIGHT_RATIO: Final = 999.0  # represents a city without any check-in at night
MIN_CHECKINS: Final = 500  # with fewer check-ins the share of an hour is mostly random
MAX_HOURS_OF_DATES: Final = 6
"""Dates at midnight UTC are at few local hours: one for each zone, and one for its summer time."""


@dataclass(frozen=True, kw_only=True)
class Rhythm:
    """The share of check-ins in each local hour, and whether it is plausible."""

    hour_share: tuple[float, ...]  # share of check-ins in each local hour, 0 to 23
    trough_hour: int  # middle of the three quietest hours
    day_night_ratio: float
    """Check-ins per hour from 08:00 to 22:00, divided by those from 01:00 to 06:00."""
    checkins: int

    @property
    def is_judged(self) -> bool:
        """Whether there are enough check-ins for a finding."""
        return self.checkins >= MIN_CHECKINS

    @property
    def are_dates(self) -> bool:
        """Whether the times seem to be dates without a time of day."""
        return sum(share > 0 for share in self.hour_share) <= MAX_HOURS_OF_DATES

    @property
    def is_human(self) -> bool:
        """Whether the hours are plausible for people in their own time zone."""
        has_nights = self.day_night_ratio >= MIN_DAY_NIGHT_RATIO
        return self.trough_hour in TROUGH_HOURS and has_nights and not self.are_dates

    @property
    def correction_hours(self) -> int:
        """Hours to add to every time to move the quietest hour to 03:00, from -11 to 12."""
        return 0 if self.are_dates else (USUAL_TROUGH - self.trough_hour + 11) % 24 - 11

    @property
    def sentence(self) -> str:
        """The finding in words."""
        if not self.is_judged:
            return f"{self.checkins} check-ins are too few to check the clock"
        if self.are_dates:
            hours = ", ".join(f"{hour:02d}:00" for hour in np.flatnonzero(self.hour_share))
            return (
                f"all check-ins are within the hours that begin at {hours} local time, as if the "
                "times were dates without a time of day"
            )
        busy = f"days are {self.day_night_ratio:.1f} times as busy as nights"
        if self.day_night_ratio >= SILENT_NIGHT_RATIO:
            busy = "nights have no check-ins"
        found = f"the quietest local hour is {self.trough_hour:02d}:00 and {busy}"
        if self.is_human:
            return found
        if not self.correction_hours:
            return f"{found}; shifting the clock would not fix that"
        return f"{found}; a shift of {self.correction_hours:+d} hours would fix it"


def rhythm_of(local_us: NDArray[np.int64]) -> Rhythm:
    """The rhythm of local times in microseconds."""
    return rhythm_of_hours(hours_of(local_us))


def hours_of(local_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of local times in each hour of the day."""
    return np.bincount((local_us // HOUR_US) % 24, minlength=24)


def rhythm_of_hours(counts: NDArray[np.int64]) -> Rhythm:
    """The rhythm of the numbers of check-ins in the hours 0 to 23."""
    share = counts / max(int(counts.sum()), 1)
    night, day = float(share[1:6].mean()), float(share[8:22].mean())
    return Rhythm(
        hour_share=tuple(share.tolist()),
        trough_hour=_trough(share),
        day_night_ratio=day / night if night > 0 else (SILENT_NIGHT_RATIO if day > 0 else 0.0),
        checkins=int(counts.sum()),
    )


def _trough(share: NDArray[np.float64]) -> int:
    """Middle of the three quietest hours; ties are broken by the hours further around.

    So in a night without any check-in it is the middle of the night, not its first hour.
    """

    def quiet(hour: int) -> list[float]:
        reaches = range(1, 6)
        return [float(share[np.arange(hour - r, hour + r + 1) % 24].sum()) for r in reaches]

    return min(range(24), key=quiet)
