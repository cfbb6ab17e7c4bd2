"""Moments as people write them: a text or a datetime, with or without an offset from UTC.

A time that says its offset is an instant. A *naive* one is a clock on a wall: it means nothing
until somebody says where the wall is. For a visit that is the visited place.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import polars as pl

from castpoi.checkins.reading.times import (
    EARLIEST_US,
    LATEST_US,
    clock_of,
    formats_in,
)
from castpoi.checkins.record import HOUR_US
from castpoi.core.errors import BadInput

Clock = Callable[[], int]
"""Returns the present in UTC microseconds."""

MOST_AHEAD_US: Final = 24 * HOUR_US
"""How far a visit may be ahead of our clock: clocks of phones differ, and so do time zones."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_DATE: Final = len("2012-04-03")  # a text no longer than that tells no time of day
_MOST_SHOWN: Final = 40


@dataclass(frozen=True)
class Moment:
    """A time in microseconds since 1970: UTC, or of an unknown wall if it is naive."""

    clock_us: int
    is_naive: bool


def moment_of(at: datetime | str, *, what: str) -> Moment:
    """Read a time; `what` names it in an error."""
    found = _of_datetime(at) if isinstance(at, datetime) else _of_text(at, what=what)
    check_in_range(found.clock_us, at, what=what)
    return found


def is_in_range(at_us: int) -> bool:
    """Whether a check-in may be of this instant."""
    return EARLIEST_US <= at_us < LATEST_US


def check_in_range(at_us: int, at: datetime | str, *, what: str) -> None:
    """Refuse an instant out of range that was written as `at`.

    A wall clock is to be checked again when its instant is known, which may lie in another year.
    """
    if not is_in_range(at_us):
        raise BadInput(f"{what}: '{_shown(at)}' is not between the years 1980 and 2100 in UTC")


def instant_us(at: datetime | str, *, what: str) -> int:
    """Read a time that must say its offset from UTC. -> UTC microseconds"""
    found = moment_of(at, what=what)
    if found.is_naive:
        raise BadInput(
            f"{what}: '{_shown(at)}' does not say its offset from UTC; write it as "
            "2012-04-03T18:00:09-04:00, or with Z for UTC"
        )
    return found.clock_us


def machine_clock() -> int:
    """The present on the clock of this machine, in UTC microseconds."""
    return time.time_ns() // 1000


def check_not_ahead(at_us: int, now_us: int, *, what: str) -> None:
    """Refuse the instant of a visit that is more than a day later than now."""
    if at_us > now_us + MOST_AHEAD_US:
        raise BadInput(
            f"{what}: {_in_utc(at_us)} is more than a day after {_in_utc(now_us)}, which is now on "
            "the clock of this machine; correct the time of the visit (or that clock)"
        )


def local_datetime(at_us: int, offset_minutes: int) -> datetime:
    """An instant as the clock showed it where it was, with its offset."""
    there = timezone(timedelta(minutes=offset_minutes))
    return (_EPOCH + at_us * _MICROSECOND).astimezone(there)


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
    clock, is_naive = clock_of(
        "text", formats_in(texts)
    )  # every way of writing 'data prepare' reads
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
