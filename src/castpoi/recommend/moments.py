"""Times as users write them: a text or a datetime, with or without an offset from UTC.

A time with an offset is an instant. A time without one is *naive*: the local time of the visited
place.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import polars as pl

from castpoi.checkins.reading.times import EARLIEST_US, LATEST_US, clock_of, formats_in
from castpoi.checkins.record import HOUR_US
from castpoi.core.errors import BadInput

Clock = Callable[[], int]
"""Returns the current time in UTC microseconds."""

MOST_AHEAD_US: Final = 24 * HOUR_US
"""How far a visit may be ahead of our clock: clocks of phones and time zones differ."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_DATE: Final = len("2012-04-03")  # a text of this length has no time of day
_MOST_SHOWN: Final = 40


@dataclass(frozen=True)
class Moment:
    """A time in microseconds since 1970: in UTC, or in an unknown local time if it is naive."""

    clock_us: int
    is_naive: bool


def moment_of(at: datetime | str | Moment, *, what: str) -> Moment:
    """Read a time; `what` names it in an error."""
    if isinstance(at, Moment):
        return at
    moment = _of_datetime(at) if isinstance(at, datetime) else _of_text(at, what=what)
    check_in_range(moment.clock_us, at, what=what)
    return moment


def check_in_range(at_us: int, at: datetime | str, *, what: str) -> None:
    """Reject an instant, written as `at`, outside the years of check-ins.

    A local time is checked again when its instant is known, which may be in another year.
    """
    if not EARLIEST_US <= at_us < LATEST_US:
        raise BadInput(f"{what}: '{_shown(at)}' is not between the years 1980 and 2100 in UTC")


def instant_us(at: datetime | str, *, what: str) -> int:
    """Read a time that must have an offset from UTC. -> UTC microseconds"""
    moment = moment_of(at, what=what)
    if moment.is_naive:
        raise BadInput(
            f"{what}: '{_shown(at)}' has no offset from UTC; write it as "
            "2012-04-03T18:00:09-04:00, or with Z for UTC"
        )
    return moment.clock_us


def machine_clock() -> int:
    """The current time of this machine in UTC microseconds."""
    return time.time_ns() // 1000


def check_not_ahead(at_us: int, now_us: int, *, what: str) -> None:
    """Reject a visit that is more than a day later than now."""
    if at_us > now_us + MOST_AHEAD_US:
        raise BadInput(
            f"{what}: {_in_utc(at_us)} is more than a day after {_in_utc(now_us)}, the current "
            "time of this machine; correct the time of the visit (or that clock)"
        )


def local_datetime(at_us: int, offset_minutes: int) -> datetime:
    """An instant in the local time of a place, with its offset."""
    zone = timezone(timedelta(minutes=offset_minutes))
    return (_EPOCH + at_us * _MICROSECOND).astimezone(zone)


def _of_datetime(at: datetime) -> Moment:
    is_naive = at.tzinfo is None
    aware = at.replace(tzinfo=UTC) if is_naive else at
    return Moment((aware - _EPOCH) // _MICROSECOND, is_naive)


def _of_text(at: object, *, what: str) -> Moment:
    if isinstance(at, str) and len(at.strip()) > _LONGEST_DATE:
        try:
            return _of_datetime(datetime.fromisoformat(at.strip()))
        except (ValueError, OverflowError):
            pass
    texts = pl.Series("text", [at.strip() if isinstance(at, str) else None], dtype=pl.String)
    clock, is_naive = clock_of("text", formats_in(texts))  # all formats of 'data prepare'
    read = texts.to_frame().select(clock.alias("clock"), is_naive.alias("is_naive"))
    if read["clock"][0] is None:
        raise BadInput(
            f"{what}: '{_shown(at)}' is not a time; write it as 2012-04-03T18:00:09-04:00"
        )
    return Moment(int(read["clock"].to_physical()[0]), bool(read["is_naive"][0]))


def _in_utc(at_us: int) -> str:
    return f"{local_datetime(at_us, 0):%Y-%m-%dT%H:%M:%SZ}"


def _shown(at: object) -> str:
    text = str(at)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
