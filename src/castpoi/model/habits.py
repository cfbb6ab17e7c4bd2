"""Habits: what the visits of a history say of each place that it knows.

*Here* is the place of the last visit. Each visit *followed* the one before it, and speaks for its
place by how like that situation was to here and now. The moment of the next visit is not known, so
*now* is the moment of the last visit, and a situation has the hour of the visit that was followed.
Where it is known (`ModelConfig.known_time`), it is now, on the clock of the last visit, and a
situation has the hour of the visit itself.

    alike in hour    exp(4 (cos of the angle between the two clocks - 1)); 1 at the same time of day
    nearby           exp(- distance from here / 0.5 km)
    fresh            exp(- age / 20 days), or 3 days

So every habit is a sum of weights over the visits to a place. All visits of a history, or all of
its prefixes, are summed at once: a table of weights [positions, visits] meets a table that tells
which visit is to which place [visits, places].

Shapes: N visits laid end to end, E (position, known place) pairs; of one stretch of a history: n
positions, v visits, p places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import HOUR_US
from castpoi.checkins.trajectory import Histories, hour_of, is_weekend, local_us
from castpoi.geo.distance import EARTH_RADIUS_KM

Numbers = NDArray[np.int64]
Values = NDArray[np.float32]

HABITS: Final = (
    "share of all visits",
    "fresh visits, 20 days",
    "fresh visits, 3 days",
    "time since the last visit there",
    "hour of day",
    "kind of day",
    "moves from here",
    "share of the moves from here",
    "fresh moves from here",
    "moves from here at a like hour",
    "moves from here, by the same way here",
    "two visits after the place before here",
    "after a like hour",
    "share of all after a like hour",
    "after a like hour of a like day",
    "share of all after a like hour of a like day",
    "after a place nearby",
    "after a place nearby at a like hour",
    "distance from here",
    "time that leads there",
    "is here",
    "visits of all",
    "share of places among visits",
    "time since the visit before",
    "share of visits here",
)
"""What is told of a known place, in this order; the last four are of the history alone."""

_FRESH_HOURS: Final = (20 * 24.0, 3 * 24.0)
_NEARBY_KM: Final = 0.5
_SHARPNESS: Final = 4.0  # of an hour's likeness: 1/e at 2 h 46 min
_LONG_HOURS: Final = float(np.log1p(365 * 24))  # a year is 1
_FAR_KM: Final = float(np.log1p(100.0))  # 100 km is 1
_SHARE: Final = 20.0  # a share of a twentieth is log 2
_LEAST: Final = 1e-9

POSITIONS_AT_ONCE: Final = 64
"""Positions of one history whose features are computed together; bounds the memory."""


@dataclass(frozen=True, kw_only=True)
class Visits:
    """The visits of some histories, as far as habits look at them. [N] each"""

    place: Numbers
    begin: Numbers
    """First visit of each visit's history."""
    hours: NDArray[np.float64]
    """Moment, in hours since the first of all."""
    angle: Values
    """Of the clock's hand, once around a day."""
    is_weekend: NDArray[np.bool_]
    now_hours: NDArray[np.float64]
    """The same three, of the moment that is now for the history that ends with the visit."""
    now_angle: Values
    now_is_weekend: NDArray[np.bool_]
    known_time: bool
    points: NDArray[np.float64]
    """All places of the city on the unit sphere. [P, 3]"""

    def part(self, some: slice) -> "Visits":
        """Some of the visits."""
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        rest = {name: columns.pop(name) for name in ("known_time", "points")}
        return Visits(**{name: column[some] for name, column in columns.items()}, **rest)

    @classmethod
    def of(cls, histories: Histories, points: NDArray[np.float64], *, known_time: bool) -> "Visits":
        """What habits look at in some histories, and whether they know when the next visit is."""
        now_us = histories.following_us if known_time else histories.at_us
        local, local_now = local_us(histories), local_us(histories, now_us)
        first_us = histories.at_us.min(initial=np.iinfo(np.int64).max)
        return cls(
            place=histories.place,
            begin=histories.bounds[:-1][histories.owner],
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
    visits: Visits, position: Numbers, last: Numbers, *, window: int
) -> Iterator[tuple[slice, Values]]:
    """Habits of the history that ends with each position, for a place that it knows.

    [E] visits in order, [E] the last visit to the place -> some pairs at a time, and their habits
    [some, habits]
    """
    for pairs in _stretches(position, visits.begin):
        stretch = _Stretch(visits, position[pairs], window)
        yield pairs, stretch.habits(position[pairs], last[pairs])


def _stretches(position: Numbers, begin: Numbers) -> list[slice]:
    """Pairs whose positions are near each other in one history."""
    start = begin[position]
    number = (position - start) // POSITIONS_AT_ONCE
    is_other = (np.diff(start) != 0) | (np.diff(number) != 0)
    edges = [0, *(np.flatnonzero(is_other) + 1).tolist(), len(position)]
    return [slice(first, end) for first, end in pairwise(edges) if end > first]


class _Stretch:
    """Some positions of one history, and the visits that any of them counts."""

    def __init__(self, visits: Visits, position: Numbers, window: int) -> None:
        first, end = int(position[0]), int(position[-1]) + 1
        start = max(int(visits.begin[first]), first - window + 1)
        self.first, self.start = first, start
        self.visits = visits.part(slice(start, end))
        self.here = np.arange(first - start, end - start)  # numbers of visits count from `start`
        self.places, self.of_visit = np.unique(self.visits.place, return_inverse=True)
        self.is_there = np.zeros((end - start, len(self.places)), dtype=np.float32)  # [v, p]
        self.is_there[np.arange(end - start), self.of_visit] = 1.0
        ago = self.here[:, None] - np.arange(end - start)  # [n, v]
        self.counts = ((ago >= 0) & (ago < window)).astype(np.float32)  # [n, v]
        # whether the visit before it is counted too
        self.follows = self.counts * (ago < window - 1)  # [n, v]
        self.follows[:, 0] = 0.0
        now = self.visits.now_hours[self.here, None]
        self.age = np.maximum(now - self.visits.hours, 0).astype(np.float32)  # [n, v]
        here = self.places[self.of_visit[self.here]]
        self.km = _kilometres(visits.points[here], visits.points[self.places])  # [n, p]

    def habits(self, position: Numbers, last: Numbers) -> Values:
        """What is told of pairs. [E], [E] -> [E, habits]"""
        at, latest = position - self.first, last - self.start
        there = self.of_visit[latest]
        sums, of_all = {}, {}
        for name, weight in self._weights():
            sums[name] = (weight @ self.is_there)[at, there]  # [n, v] -> [n, p] -> [E]
            of_all[name] = weight.sum(axis=1)[at]
        visits, moves = sums["visits"], np.maximum(sums["arrivals"], 1)
        told = [
            _share(sums["visits"], of_all["visits"]),
            np.log1p(sums["fresh"]),
            np.log1p(sums["fresher"]),
            np.log1p(self.age[at, latest]) / _LONG_HOURS,
            sums["hour"] / visits,
            sums["day"] / visits,
            np.log1p(sums["from here"]),
            _share(sums["from here"], of_all["from here"]),
            np.log1p(sums["from here, fresh"]),
            np.log1p(sums["from here, hour"]),
            np.log1p(sums["from here, same way"]),
            np.log1p(sums["two after"]),
            np.log1p(sums["after hour"]),
            _share(sums["after hour"], of_all["after hour"]),
            np.log1p(sums["after hour and day"]),
            _share(sums["after hour and day"], of_all["after hour and day"]),
            np.log1p(sums["nearby"]),
            np.log1p(sums["nearby, hour"]),
            np.log1p(self.km[at, there]) / _FAR_KM,
            sums["time that leads there"] / moves,
            there == self.of_visit[self.here][at],
            *self._of_history(at),
        ]
        habits = np.empty((len(at), len(HABITS)), dtype=np.float32)
        for column, values in enumerate(told):
            habits[:, column] = values
        return habits

    def _weights(self) -> Iterator[tuple[str, Values]]:
        """What each visit counts for each position, in many ways. [n, v] each"""
        before = _shifted(self.of_visit, 1)
        visits, now = self.visits, self.here[:, None]
        clock = visits.now_angle[now] - visits.angle  # [n, v]
        same_day = visits.now_is_weekend[now] == visits.is_weekend
        yield "visits", self.counts
        yield "fresh", self.counts * np.exp(-self.age / _FRESH_HOURS[0])
        yield "fresher", self.counts * np.exp(-self.age / _FRESH_HOURS[1])
        yield "hour", self.counts * np.cos(clock)
        yield "day", self.counts * same_day
        # from here on each visit is judged by the situation that it followed
        followed = 0 if visits.known_time else 1
        hour = self.follows * _shifted(np.exp(_SHARPNESS * (np.cos(clock) - 1)), followed)
        from_here = self.follows * (before == self.of_visit[self.here, None])
        nearby = self.follows * np.exp(-self.km / _NEARBY_KM)[:, before]
        yield "arrivals", self.follows
        yield "from here", from_here
        yield "from here, fresh", from_here * _shifted(np.exp(-self.age / _FRESH_HOURS[0]), 1)
        yield "from here, hour", from_here * hour
        yield "after hour", hour
        yield "after hour and day", hour * _shifted(same_day, followed)
        yield "nearby", nearby
        yield "nearby, hour", nearby * hour
        yield "time that leads there", self.follows * self._leading()
        two_after = self._two_after()
        yield "two after", two_after
        yield "from here, same way", two_after * from_here

    def _two_after(self) -> Values:
        """Whether a visit came two after one to the place before here. [n, v]"""
        two_before = _shifted(self.of_visit, 2)
        way = np.where(self.here > 0, self.of_visit[self.here - 1], -1)
        is_way = (two_before == way[:, None]) & (np.arange(len(self.of_visit)) >= 2)
        two_after: Values = self.follows * _shifted(self.follows, 1) * is_way
        return two_after

    def _leading(self) -> Values:
        """Time from the visit before to each visit, a year is 1. [v]"""
        hours = np.maximum(np.diff(self.visits.hours, prepend=self.visits.hours[0]), 0)
        leading: Values = (np.log1p(hours) / _LONG_HOURS).astype(np.float32)
        return leading

    def _of_history(self, at: Numbers) -> list[NDArray[np.floating]]:
        """What is told of a position alone. [E] -> [E] each"""
        visits = self.counts.sum(axis=1)  # [n]
        now = np.arange(len(self.here))
        waited = self.age[now, self.here]  # none, where the time of the next visit is not known
        if not self.visits.known_time:
            waited = self.age[now, self.here - 1] * self.follows[now, self.here]
        of_place = self.counts @ self.is_there  # [n, p]
        here = of_place[now, self.of_visit[self.here]]
        told = (
            np.log1p(visits),
            (of_place > 0).sum(axis=1) / visits,
            np.log1p(waited) / _LONG_HOURS,
            _share(here, visits),
        )
        return [each[at] for each in told]


def _angle(local: Numbers) -> Values:
    """Of the hand of a clock that goes around once a day. [N]"""
    return (hour_of(local) * (2 * np.pi / 24)).astype(np.float32)


def _share(part: Values, whole: Values) -> Values:
    """How large a part is, so that small parts differ too. [E], [E] -> [E]"""
    share: Values = np.log1p(_SHARE * part / np.maximum(whole, _LEAST))
    return share


def _shifted(values: NDArray[Any], by: int) -> NDArray[Any]:
    """To every visit what an earlier one has; what the first ones get is never asked for."""
    return np.roll(values, by, axis=-1)


def _kilometres(left: NDArray[np.float64], right: NDArray[np.float64]) -> Values:
    """Great-circle distance of all pairs of points on the unit sphere. [n, 3], [p, 3] -> [n, p]"""
    half_chord = np.linalg.norm(left[:, None] - right, axis=2) / 2  # [n, p, 3] -> [n, p]
    kilometres: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(half_chord, 1))
    return kilometres.astype(np.float32)
