"""Requests: a history or a user, the number of places, and the filters.

Input is checked and times are read here, once; everything after this module works with UTC
microseconds. A time with an offset from UTC is an instant. A time without one is *naive*: the local
time of the visited place.

Shapes: T visits.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any, Final, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins.reading.layouts import needed_column
from castpoi.checkins.reading.times import (
    EARLIEST_US,
    LATEST_US,
    clock_of,
    clock_of_dates,
    epoch_us,
    formats_in,
)
from castpoi.checkins.record import HOUR_US
from castpoi.core.errors import BadInput
from castpoi.core.frames import as_frame, is_frame, texts
from castpoi.recommend.area import Box, Point, Polygon, box_of, is_number, point_of, polygon_of

Clock = Callable[[], int]  # returns the current time in UTC microseconds

DEFAULT_K: Final = 10
MAX_AHEAD_US: Final = 24 * HOUR_US
"""How far a visit may be ahead of our clock: clocks of phones and time zones differ."""

_HOW: Final = "name them place and time, or in one of the usual ways"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LONGEST_DATE: Final = len("2012-04-03")  # a text of this length has no time of day
_MAX_SHOWN: Final = 40


@dataclass(frozen=True)
class Moment:
    """A time in microseconds since 1970: in UTC, or in an unknown local time if it is naive."""

    clock_us: int
    is_naive: bool


def moment_of(at: "AnyTime", *, what: str) -> Moment:
    """Read a datetime, a text, or an epoch; `what` names it in an error."""
    if isinstance(at, Moment):
        return at
    if isinstance(at, np.datetime64):
        at = cast("datetime", at.astype("datetime64[us]").item())
    if not isinstance(at, datetime):
        at = "" if isinstance(at, bool) else str(at).strip()
    moment = _of_datetime(at) if isinstance(at, datetime) else _of_text(at, what=what)
    check_in_range(moment.clock_us, at, what=what)
    return moment


def check_in_range(at_us: int, at: datetime | str, *, what: str) -> None:
    """Reject an instant, written as `at`, outside the years of check-ins.

    A local time is checked again when its instant is known, which may be in another year.
    """
    if not EARLIEST_US <= at_us < LATEST_US:
        raise BadInput(f"{what}: '{_shown(at)}' is not between the years 1980 and 2100 in UTC")


def instant_us(at: "AnyTime", *, what: str) -> int:
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


def local_datetime(at_us: int, offset_minutes: int) -> datetime:
    """An instant in the local time of a place, with its offset."""
    zone = timezone(timedelta(minutes=offset_minutes))
    return (_EPOCH + at_us * _MICROSECOND).astimezone(zone)


def _of_datetime(at: datetime) -> Moment:
    is_naive = at.tzinfo is None
    aware = at.replace(tzinfo=UTC) if is_naive else at
    return Moment((aware - _EPOCH) // _MICROSECOND, is_naive)


def _of_text(at: str, *, what: str) -> Moment:
    if at.replace(".", "", 1).isdecimal():  # first: some epochs have the digits of a date
        epoch = epoch_us(float(at))
        if epoch is not None:
            return Moment(epoch, is_naive=False)
    if len(at) > _LONGEST_DATE:
        with suppress(ValueError, OverflowError):
            return _of_datetime(datetime.fromisoformat(at))
    texts = pl.Series("text", [at])
    clock, is_naive = clock_of("text", formats_in(texts))  # all formats of 'data prepare'
    read = texts.to_frame().select(clock.to_physical(), is_naive.alias("is_naive")).row(0)
    if read[0] is None:
        raise BadInput(
            f"{what}: '{_shown(at)}' is not a time; write it as 2012-04-03T18:00:09-04:00"
        )
    return Moment(*read)


def _shown(at: object) -> str:
    text = str(at)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"


AnyTime = datetime | np.datetime64 | str | int | float | Moment
"""The ways to write a time; a number is an epoch in seconds, milliseconds or microseconds."""


@dataclass(frozen=True)
class Visit:
    """A place, by its id in the city, and the time of the visit.

    A time without an offset from UTC is the local time of the place.
    """

    place: str
    at: AnyTime

    @classmethod
    def of(cls, visit: "AnyVisit") -> "Visit":
        """A visit from a `Visit`, from `{"place": ..., "at": ...}` or from a pair."""
        if isinstance(visit, cls):
            return visit
        if isinstance(visit, Mapping):
            visit = {("at" if name == "time" else name): visit[name] for name in visit}
            if not {"place", "at"} <= visit.keys():
                raise BadInput(
                    f"a visit of the history has {', '.join(map(str, visit)) or 'nothing'}; "
                    'it must have "place" and "at"'
                )
            return cls(str(visit["place"]), visit["at"])
        if isinstance(visit, tuple | list) and len(visit) == 2:
            return cls(str(visit[0]), visit[1])
        raise BadInput(
            f"a visit of the history is a {type(visit).__name__}; it must be a Visit, a pair of "
            'place and time, or an object with "place" and "at"'
        )


AnyVisit = Visit | Mapping[str, Any] | tuple[str | int, AnyTime]  # the ways to write a visit


@dataclass(frozen=True, kw_only=True, eq=False)
class Visits:
    """Visits in any order, as columns."""

    places: Sequence[str] | pl.Series  # ids; some may be unknown to the run [T]
    clock_us: NDArray[np.int64]  # UTC, or the local time of the place where `is_naive` [T]
    is_naive: NDArray[np.bool_]  # whether the time had no offset from UTC [T]

    @classmethod
    def of(cls, visits: "AnyHistory") -> "Visits":
        """Read the places and times of visits: a list of them, or a table of any library."""
        if isinstance(visits, Visits):
            return visits
        if is_frame(visits):
            table = as_frame(visits, what="the history")
            place, at = (needed_column(table.columns, word, where="the history", how_to_fix=_HOW)
                         for word in ("place", "time"))  # fmt: skip
            return cls.of_columns(table[place], table[at])
        each_visit = [Visit.of(visit) for visit in visits]
        moments = [moment_of(each.at, what=name_of(n)) for n, each in enumerate(each_visit)]
        return cls.at_moments([each.place for each in each_visit], moments)

    @classmethod
    def at_moments(cls, places: Sequence[str], moments: Sequence[Moment]) -> "Visits":
        """Visits whose times have been read."""
        return cls(
            places=places,
            clock_us=np.array([moment.clock_us for moment in moments], dtype=np.int64),
            is_naive=np.array([moment.is_naive for moment in moments], dtype=np.bool_),
        )

    @classmethod
    def of_columns(cls, place: pl.Series, at: pl.Series) -> "Visits":
        """Visits from two columns of a table: ids, and datetimes, epochs or texts.

        Raises:
            BadInput: a place is missing, or a time cannot be read.
        """
        table = pl.DataFrame({"place": texts(place), "at": at})
        if isinstance(at.dtype, pl.Datetime):
            clock, is_naive = clock_of_dates("at", at.dtype)
        else:
            table = table.with_columns(pl.col("at").cast(pl.String).str.strip_chars())
            clock, is_naive = clock_of("at", formats_in(table["at"]))
        read = table.select("place", clock.to_physical().alias("at"), is_naive.alias("is_naive"))
        unread = read["place"].is_null() | read["at"].is_null()
        unread |= ~read["at"].is_between(EARLIEST_US, LATEST_US, closed="left")
        if unread.any():
            row = unread.arg_max() or 0
            shown = repr(_shown(at[row])) if at[row] else "no time"
            shown = shown if read["place"][row] else "no place"
            raise BadInput(
                f"row {row + 1} of the visits has {shown}; each row needs the id of a place and a "
                "time such as 2012-04-03T18:00:09-04:00"
            )
        return cls(
            places=read["place"],
            clock_us=read["at"].to_numpy(),
            is_naive=read["is_naive"].to_numpy(),
        )

    def part(self, first: int, end: int) -> "Visits":
        """Some of the visits, without a copy."""
        own = slice(first, end)
        return Visits(
            places=self.places[own], clock_us=self.clock_us[own], is_naive=self.is_naive[own]
        )

    @classmethod
    def at_instants(cls, places: Sequence[str], at_us: NDArray[np.int64]) -> "Visits":
        """Visits at instants in UTC microseconds."""
        return cls(places=places, clock_us=at_us, is_naive=np.zeros(len(at_us), dtype=np.bool_))


AnyHistory = Iterable[AnyVisit] | Visits | Any
"""Visits in any order: a list of them, or a table with the columns place and time."""


def name_of(visit: int) -> str:
    """The name of a visit in an error."""
    return f"visit {visit + 1} of the history"


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to a recommender, already checked; `Request.of` reads and checks one.

    Exactly one of `history` and `user` is given; an empty history is a history.
    """

    history: Visits | None = None
    user: str | None = None  # a user of the run's city
    k: int = DEFAULT_K
    """Number of places."""
    explain: bool = False
    """Show the terms and visits behind each score."""
    at_us: int | None = None
    """Time of the request; later visits are left out. None: the last visit, or now for a model
    that needs the time of the next visit. UTC microseconds."""
    near: Point | None = None
    """Position of the person, in degrees."""
    within_km: float | None = None
    """Only places within this distance of the given position, or else of the last visit."""
    box: Box | None = None
    """Only places in this box, in degrees; west above east crosses the date line."""
    polygon: Polygon | None = None
    """Only places in this polygon, by its corners in order."""
    exclude: Sequence[str] | None = None
    """Leave out this place; may be given several times."""
    candidates: Sequence[str] | None = None  # only these places, by id
    max_per_category: int | None = None
    """At most this many places of one category."""
    categories: Sequence[str] | None = None
    """Only places of this category; may be given several times."""
    exclude_visited: bool = False
    """Only places that the history never visits."""
    new_only: bool = False
    """Only places not among the last 512 visits."""

    @classmethod
    def of(cls, **given: Any) -> "Request":
        """A request from the arguments of `Recommender.recommend`; raises BadInput."""
        found = {name: value for name, value in given.items() if value is not None}
        if ("history" in found) == ("user" in found):
            raise BadInput("give either a history (which may be empty) or a user, and not both")
        for name, read in _READERS.items():
            if name in found:
                found[name] = read(found[name])
        if "at" in found:
            found["at_us"] = found.pop("at")
        return cls(**found)


def _count_of(count: Any, *, what: str) -> int:
    if type(count) is not int or count < 1:  # neither True nor 2.5
        raise BadInput(f"{what}={count} is not valid; it must be a whole number of at least 1")
    return count


def _distance_of(km: Any) -> float:
    if not (is_number(km) and km > 0):
        raise BadInput(f"within_km={km} is not valid; it must be above 0")
    return float(km)


def _texts_of(given: Iterable[str | int] | str) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "k": partial(_count_of, what="k"),
    "max_per_category": partial(_count_of, what="max_per_category"),
    "within_km": _distance_of,
    "history": Visits.of,
    "user": str,
    "at": partial(instant_us, what="at"),
    "near": partial(point_of, what="near"),
    "box": box_of,
    "polygon": polygon_of,
    **dict.fromkeys(("categories", "candidates", "exclude"), _texts_of),
}
