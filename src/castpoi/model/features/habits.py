"""Visit-pattern features ("habits"): when, from where and after what a history visits a place.

*Here* is the place of the last visit, *there* is a known place. A past visit counts by how similar
its situation was to the present one. The situation of a visit is the place and the hour of the
visit before it; the present one is here and now. The time of the next visit is not known, so *now*
is the time of the last visit. If it is known, *now* is the time of the next visit on the clock of
the last one, and the hour of a situation is that of the visit itself.

    similar hour    exp(4 (cos of the angle between the two clocks - 1)); 1 at the same time of day
    nearby          exp(- distance from here / 0.5 km)
    recent          exp(- age / 20 days), or 3 days

So nearly every feature is a transformed sum of weights over the visits there. All prefixes of a
segment of a history are summed at once: a matrix of weights [positions, visits] times a matrix of
which visit is to which place [visits, places]. Short segments of many histories are padded and
computed together.

Shapes: N visits laid end to end, E (position, known place) pairs, S segments; of each segment: n
positions, v visits, p places.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import HOUR_US
from castpoi.checkins.trajectory import Histories, hour_of, is_weekend, local_us
from castpoi.core.arrays import Numbers
from castpoi.geo.distance import EARTH_RADIUS_KM

Values = NDArray[np.float32]

_RECENT_HOURS: Final = (20 * 24.0, 3 * 24.0)
_NEARBY_KM: Final = 0.5
_SHARPNESS: Final = 4.0  # of the similarity of hours: 1/e at 2 h 46 min
_LOG_YEAR: Final = float(np.log1p(365 * 24))  # in hours
_LOG_100_KM: Final = float(np.log1p(100.0))
_SHARE: Final = 20.0  # a share of a twentieth is log 2
_TINY: Final = 1e-9


class Sum(NamedTuple):
    """A quantity of pairs, summed over the visits there and over all visits."""

    there: NDArray[Any]  # [E]
    total: NDArray[Any]  # [E]


Sums = Mapping[str, Sum]


def _share(sums: Sums, name: str) -> NDArray[Any]:
    there, total = sums[name]
    return np.log1p(_SHARE * there / np.maximum(total, _TINY))  # small shares differ too


def _log(sums: Sums, name: str) -> NDArray[Any]:
    return np.log1p(sums[name].there)


def _per_visit(sums: Sums, name: str) -> NDArray[Any]:
    return sums[name].there / sums["visits"].there


def _per_move(sums: Sums, name: str) -> NDArray[Any]:
    return sums[name].there / np.maximum(sums["moves"].there, 1)


def _plain(sums: Sums, name: str) -> NDArray[Any]:
    return sums[name].there


class Habit(NamedTuple):
    """One feature: a transformed sum, divided by a unit."""

    name: str
    sum: str  # its name in `_Segments`
    transform: Callable[[Sums, str], NDArray[Any]]
    unit: float = 1.0


HABITS: Final = (
    Habit("share of all visits", "visits", _share),
    Habit("recent visits, 20 days", "recent, 20 days", _log),
    Habit("recent visits, 3 days", "recent, 3 days", _log),
    Habit("time since the last visit there", "hours since the last visit", _log, _LOG_YEAR),
    Habit("hour of day", "hour", _per_visit),
    Habit("kind of day", "kind of day", _per_visit),
    Habit("moves from here", "from here", _log),
    Habit("share of the moves from here", "from here", _share),
    Habit("recent moves from here", "from here, recent", _log),
    Habit("moves from here at a similar hour", "from here, hour", _log),
    Habit("moves from here after the same place before", "from here, same way", _log),
    Habit("two visits after the place before here", "two after", _log),
    Habit("after a similar hour", "after hour", _log),
    Habit("share of all after a similar hour", "after hour", _share),
    Habit("after a similar hour and kind of day", "after hour and day", _log),
    Habit("share of all after a similar hour and kind of day", "after hour and day", _share),
    Habit("after a place nearby", "nearby", _log),
    Habit("after a place nearby at a similar hour", "nearby, hour", _log),
    Habit("distance from here", "km", _log, _LOG_100_KM),
    Habit("time of the move there", "time before", _per_move),
    Habit("is here", "is here", _plain),
    # the last four depend on the history alone
    Habit("number of visits", "number of visits", _log),
    Habit("places per visit", "places per visit", _plain),
    Habit("time since the visit before", "hours since the visit before", _log, _LOG_YEAR),
    Habit("share of visits here", "visits here", _share),
)
"""The features in their order."""


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The columns of the visits of some histories that habits need. [N] each"""

    place: Numbers
    begin: Numbers  # first visit of the history
    hours: NDArray[np.float64]  # since the first visit of all
    angle: Values  # of the hand of a 24-hour clock
    is_weekend: NDArray[np.bool_]
    now_hours: NDArray[np.float64]  # the same three for now, if the history ends with this visit
    now_angle: Values
    now_is_weekend: NDArray[np.bool_]
    known_time: bool  # whether now is the time of the next visit
    points: NDArray[np.float64]  # all places of the city on the unit sphere [P, 3]

    @classmethod
    def of(cls, histories: Histories, points: NDArray[np.float64]) -> "Visits":
        """The columns of histories of a city. [P, 3]"""
        known_time = histories.next_at_us is not None
        now_us = histories.following_us if known_time else histories.at_us
        local, local_now = local_us(histories), local_us(histories, now_us)
        first_us = histories.at_us.min(initial=np.iinfo(np.int64).max)
        return cls(
            place=histories.place,
            begin=histories.starts,
            hours=(histories.at_us - first_us) / HOUR_US,
            angle=_angle(local),
            is_weekend=is_weekend(local),
            now_hours=(now_us - first_us) / HOUR_US,
            now_angle=_angle(local_now),
            now_is_weekend=is_weekend(local_now),
            known_time=known_time,
            points=points,
        )


def habits_of(
    visits: Visits, first: Numbers, end: Numbers, pairs: "PairsOfSegments", *, window: int
) -> Values:
    """Habits of pairs of segments of positions first:end, each of one history. [S] -> [E, habits]

    Every segment is padded to the longest.
    """
    sums = _Segments(visits, first, end, window).sums(pairs)
    habits = np.empty((len(pairs.segment), len(HABITS)), dtype=np.float32)
    for column, habit in enumerate(HABITS):
        habits[:, column] = habit.transform(sums, habit.sum) / habit.unit
    return habits


class PairsOfSegments(NamedTuple):
    """Pairs of a position and a known place, by the last visit there up to the position."""

    segment: Numbers  # number of the segment [E]
    position: Numbers  # a visit [E]
    last: Numbers  # a visit [E]


class _Segments:
    """Positions first:end of histories, and the visits that any of them counts.

    Rows are padded at the end with copies of the last visit; a padded visit is later than all
    positions, so it has no weight.
    """

    def __init__(self, visits: Visits, first: Numbers, end: Numbers, window: int) -> None:
        self.first, self.known_time = first, visits.known_time
        self.start = np.maximum(visits.begin[first], first - window + 1)  # [S]
        start, last = self.start[:, None], end[:, None] - 1
        visit = np.minimum(start + np.arange((end - self.start).max()), last)  # [S, v]
        position = np.minimum(first[:, None] + np.arange((end - first).max()), last)  # [S, n]
        self.now = position - start  # numbers of visits count from `start` [S, n]
        self.places, self.of_visit = _numbered(visits.place[visit])  # [S, p], [S, v]
        self.is_there = np.zeros((*visit.shape, self.places.shape[1]), dtype=np.float32)
        np.put_along_axis(self.is_there, self.of_visit[..., None], 1.0, axis=2)  # [S, v, p]
        ago = self.now[..., None] - np.arange(visit.shape[1])  # [S, n, v]
        self.counts = ((ago >= 0) & (ago < window)).astype(np.float32)  # [S, n, v]
        # whether the visit before it is counted too
        self.follows = self.counts * (ago < window - 1)  # [S, n, v]
        self.follows[..., 0] = 0.0
        self.hours = visits.hours[visit]  # [S, v]
        hours = visits.now_hours[position][..., None] - self.hours[:, None]
        self.age = np.maximum(hours, 0).astype(np.float32)  # [S, n, v]
        self.clock = visits.now_angle[position][..., None] - visits.angle[visit][:, None]
        is_weekend = visits.now_is_weekend[position], visits.is_weekend[visit]
        self.same_day = is_weekend[0][..., None] == is_weekend[1][:, None]  # [S, n, v]
        self.here = np.take_along_axis(self.of_visit, self.now, axis=1)  # [S, n]
        here = np.take_along_axis(self.places, self.here, axis=1)
        self.km = _kilometres(visits.points[here], visits.points[self.places])  # [S, n, p]

    def sums(self, pairs: PairsOfSegments) -> dict[str, Sum]:
        """All sums of pairs by name."""
        row = pairs.segment
        at, latest = pairs.position - self.first[row], pairs.last - self.start[row]
        there = self.of_visit[row, latest]
        sums = {
            name: Sum((weight @ self.is_there)[row, at, there], weight.sum(axis=2)[row, at])
            for name, weight in self._weights()
        }
        own = {
            "hours since the last visit": self.age[row, at, latest],
            "km": self.km[row, at, there],
            "is here": there == self.here[row, at],
        }
        of_history = {name: values[row, at] for name, values in self._of_history()}
        number = of_history["number of visits"]
        return sums | {name: Sum(each, number) for name, each in (own | of_history).items()}

    def _weights(self) -> Iterator[tuple[str, Values]]:
        """The weight of each visit at each position, by the name of the sum. [S, n, v] each"""
        before = _shifted(self.of_visit, 1)[:, None]  # [S, 1, v]
        recent = np.exp(-self.age / _RECENT_HOURS[0])
        nearness = np.exp(-self.km / _NEARBY_KM)  # [S, n, p]
        cos = np.cos(self.clock)
        yield "visits", self.counts
        yield "recent, 20 days", self.counts * recent
        yield "recent, 3 days", self.counts * np.exp(-self.age / _RECENT_HOURS[1])
        yield "hour", self.counts * cos
        yield "kind of day", self.counts * self.same_day
        # from here on the weight of a visit depends on the situation that it followed
        followed = 0 if self.known_time else 1
        hour = self.follows * _shifted(np.exp(_SHARPNESS * (cos - 1)), followed)
        from_here = self.follows * (before == self.here[..., None])
        nearby = self.follows * np.take_along_axis(nearness, before, axis=2)
        yield "moves", self.follows
        yield "from here", from_here
        yield "from here, recent", from_here * _shifted(recent, 1)
        yield "from here, hour", from_here * hour
        yield "after hour", hour
        yield "after hour and day", hour * _shifted(self.same_day, followed)
        yield "nearby", nearby
        yield "nearby, hour", nearby * hour
        hours_before = np.maximum(np.diff(self.hours, prepend=self.hours[:, :1]), 0)  # [S, v]
        time_before = (np.log1p(hours_before) / _LOG_YEAR).astype(np.float32)
        yield "time before", self.follows * time_before[:, None]
        two_after = self._two_after()
        yield "two after", two_after
        yield "from here, same way", two_after * from_here

    def _two_after(self) -> Values:
        """Whether a visit came two after one to the place before here. [S, n, v]"""
        two_before = _shifted(self.of_visit, 2)
        place_before = np.take_along_axis(self.of_visit, self.now - 1, axis=1)
        way = np.where(self.now > 0, place_before, -1)[..., None]  # [S, n, 1]
        is_way = (two_before[:, None] == way) & (np.arange(two_before.shape[1]) >= 2)
        return self.follows * _shifted(self.follows, 1) * is_way

    def _of_history(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Quantities of each position alone, by name. [S, n] each"""
        visits, now = self.counts.sum(axis=2), self.now[..., None]  # [S, n], [S, n, 1]
        of_place = self.counts @ self.is_there  # [S, n, p]
        yield "number of visits", visits
        yield "places per visit", (of_place > 0).sum(axis=2) / visits
        # zero, unless the time of the next visit is known
        waited = np.take_along_axis(self.age, now, axis=2)
        if not self.known_time:
            follows = np.take_along_axis(self.follows, now, axis=2)
            waited = np.take_along_axis(self.age, now - 1, axis=2) * follows
        yield "hours since the visit before", waited[..., 0]
        yield "visits here", np.take_along_axis(of_place, self.here[..., None], axis=2)[..., 0]


def _numbered(place: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct places of each row, sorted, and the number of each visit's. -> [S, p], [S, v]"""
    order = np.argsort(place, axis=1, kind="stable")
    ordered = np.take_along_axis(place, order, axis=1)
    is_next = np.diff(ordered, prepend=ordered[:, :1]) > 0  # [S, v]
    number = np.cumsum(is_next, axis=1, dtype=np.int64)  # [S, v]
    places = np.zeros((len(place), number.max() + 1), dtype=place.dtype)  # padded with place 0
    np.put_along_axis(places, number, ordered, axis=1)
    of_visit = np.empty_like(number)
    np.put_along_axis(of_visit, order, number, axis=1)
    return places, of_visit


def _angle(local: Numbers) -> Values:
    """The angle of the hand of a 24-hour clock. [N]"""
    return (hour_of(local) * (2 * np.pi / 24)).astype(np.float32)


def _shifted(values: NDArray[Any], by: int) -> NDArray[Any]:
    """The value of an earlier visit at each visit; those of the first ones are never used."""
    return np.roll(values, by, axis=-1)


def _kilometres(left: NDArray[np.float64], right: NDArray[np.float64]) -> Values:
    """Great-circle distance on the unit sphere. [S, n, 3], [S, p, 3] -> [S, n, p]"""
    half_chord = np.linalg.norm(left[:, :, None] - right[:, None], axis=3) / 2  # [S, n, p]
    return (2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(half_chord, 1))).astype(np.float32)
