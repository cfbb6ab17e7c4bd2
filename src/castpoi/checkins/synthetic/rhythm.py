"""When people check in: the rhythm of day and week on the local clock, as instants in UTC.

The curves below were drawn after the check-ins of New York (Foursquare, 2012): workdays have
peaks at 8, 13 and 18 o'clock, weekends one broad afternoon and a long night.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.synthetic.config import ZONE, SynthesisConfig

HOUR: Final = 3600

_WORKDAY: Final = (
    2.2, 1.5, 1.1, 0.9, 0.9, 1.7, 3.5, 6.8, 9.4, 7.8, 4.9, 4.0,
    4.9, 5.5, 4.6, 4.2, 4.0, 5.2, 6.1, 5.7, 5.0, 3.8, 3.2, 3.0,
)  # fmt: skip
_WEEKEND_DAY: Final = (
    4.4, 3.5, 2.7, 1.9, 1.2, 1.4, 1.9, 2.5, 3.8, 4.2, 4.6, 4.9,
    5.2, 5.9, 6.1, 5.9, 5.5, 5.8, 5.6, 5.5, 4.8, 4.3, 4.1, 3.9,
)  # fmt: skip
_DAY_OF_WEEK: Final = (1.06, 1.06, 1.02, 1.00, 1.12, 0.93, 0.82)
"""Monday to Sunday."""

_FOLLOWING_SHARE: Final = 0.3
"""Share of check-ins made on the way, soon after another one."""
_FOLLOWING_GAP_S: Final = 45 * 60.0


class Calendar:
    """The asked local days, hour by hour, on the local clock and on the UTC clock."""

    def __init__(self, config: SynthesisConfig) -> None:
        zone = ZoneInfo(ZONE)
        midnight = datetime.combine(config.first_day, time())
        hours = [midnight + timedelta(hours=hour) for hour in range(24 * config.days + 1)]
        utc = [int(hour.replace(tzinfo=zone).timestamp()) for hour in hours]
        self.begin_s, self.end_s = utc[0], utc[-1]
        self._utc_of_local_hour = np.array(utc)
        weekday = np.array([hour.weekday() for hour in hours[:-1]])
        of_day = np.tile(np.arange(24), config.days)
        curve = np.where(weekday < 5, np.array(_WORKDAY)[of_day], np.array(_WEEKEND_DAY)[of_day])
        self._reached = np.cumsum(curve * np.array(_DAY_OF_WEEK)[weekday])
        self._slot = self._slots_of_utc_hours(zone)

    def draw(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Independent instants after the rhythm, as seconds of the UTC epoch. [count]"""
        drawn = rng.random(count) * self._reached[-1]
        hour = np.searchsorted(self._reached[:-1], drawn, side="right")
        instants: NDArray[np.int64] = self._utc_of_local_hour[hour] + rng.integers(HOUR, size=count)
        return instants

    def slot_of(self, utc_s: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Moment of the week on the local clock: hour of a workday, or 24 + hour of a weekend."""
        return self._slot[(utc_s - self.begin_s) // HOUR]

    def _slots_of_utc_hours(self, zone: ZoneInfo) -> NDArray[np.uint8]:
        begins = range(self.begin_s, self.end_s, HOUR)  # the zone changes at whole hours only
        local = [datetime.fromtimestamp(begin, UTC).astimezone(zone) for begin in begins]
        return np.array([24 * (at.weekday() >= 5) + at.hour for at in local], dtype=np.uint8)


def draw_instants(
    checkins: NDArray[np.int64], calendar: Calendar, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Instants of every person's check-ins, end to end; each person's strictly rise. [N]"""
    owner = np.repeat(np.arange(len(checkins)), checkins)
    begin = (np.cumsum(checkins) - checkins)[owner]
    own = calendar.draw(len(owner), rng)
    led_by = begin + (rng.random(len(owner)) * checkins[owner]).astype(np.int64)
    gap_s = rng.exponential(_FOLLOWING_GAP_S, len(owner)).astype(np.int64)
    follows = rng.random(len(owner)) < _FOLLOWING_SHARE
    utc_s = np.where(follows, own[led_by] + gap_s, own)
    utc_s = np.where(utc_s < calendar.end_s, utc_s, own)
    span = calendar.end_s - calendar.begin_s
    ordered = np.sort(owner * span + (utc_s - calendar.begin_s)) - owner * span
    rank = np.arange(len(owner)) - begin
    return calendar.begin_s + _apart(ordered, owner, rank, checkins[owner], span)


def _apart(
    offset_s: NDArray[np.int64],
    owner: NDArray[np.int64],
    rank: NDArray[np.int64],
    count: NDArray[np.int64],
    span: int,
) -> NDArray[np.int64]:
    """The same ordered seconds, those that coincide moved on by a second or a few. [N]"""
    lead = 2 * span * owner  # keeps the running maximum inside each person
    later = np.maximum.accumulate(offset_s - rank + lead) - lead + rank
    apart: NDArray[np.int64] = np.minimum(later, span - count + rank)
    return apart
