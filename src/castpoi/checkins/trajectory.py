"""Trajectories and histories: the visits of many users, end to end in flat arrays.

A *target* is a check-in whose place is to be predicted; its *history* is everything its user did
before it. Rows are in canonical order, so a history is a slice of its trajectory.

Shapes: N check-ins, B histories, T visits over all histories of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.record import DAY_US, HOUR_US, MINUTE_US
from castpoi.core.arrays import Numbers, ranges

_THURSDAY: Final = 3  # 1970-01-01 was a Thursday, with Monday 0
_SATURDAY: Final = 5


@dataclass(frozen=True, kw_only=True)
class Histories:
    """A batch of histories of any length, end to end; the oldest visit of each comes first."""

    place: Numbers  # place of each visit. [T]
    at_us: Numbers  # instant of each visit, UTC microseconds. [T]
    offset_minutes: Numbers  # local time minus UTC at each visit, in minutes. [T]
    bounds: Numbers  # history b is the slice bounds[b]:bounds[b + 1]. [B + 1]
    next_at_us: Numbers | None = None
    """Instant of the next visit of each history, UTC microseconds; None if not known. [B]"""
    user: Numbers | None = None
    """User of each history, for research models that learn users; None when serving. [B]"""

    @classmethod
    def of_one(cls, *, place: Numbers, at_us: Numbers, offset_minutes: Numbers) -> "Histories":
        """The history of one person, as a batch of one."""
        bounds = np.array([0, len(place)])
        return cls(place=place, at_us=at_us, offset_minutes=offset_minutes, bounds=bounds)

    @classmethod
    def concat(cls, many: Sequence["Histories"]) -> "Histories":
        """One batch of many; it has next visits, and users, if all of them have."""
        nothing = np.empty(0, dtype=np.int64)
        lengths = np.concatenate([nothing, *(each.lengths for each in many)])
        moments = [each.next_at_us for each in many if each.next_at_us is not None]
        users = [each.user for each in many if each.user is not None]
        return cls(
            place=np.concatenate([nothing, *(each.place for each in many)]),
            at_us=np.concatenate([nothing, *(each.at_us for each in many)]),
            offset_minutes=np.concatenate([nothing, *(each.offset_minutes for each in many)]),
            bounds=np.concatenate([[0], np.cumsum(lengths)]),
            next_at_us=np.concatenate([nothing, *moments]) if len(moments) == len(many) else None,
            user=np.concatenate([nothing, *users]) if len(users) == len(many) else None,
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> Numbers:
        """Number of visits of each history. [B]"""
        return np.diff(self.bounds)

    @property
    def owner(self) -> Numbers:
        """The history of each visit. [T]"""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def starts(self) -> Numbers:
        """The first visit of the history of each visit. [T]"""
        return np.repeat(self.bounds[:-1], self.lengths)

    @property
    def rows_with_history(self) -> Numbers:
        """Visits that have an earlier visit in their history."""
        return np.flatnonzero(np.arange(len(self.place)) > self.starts)

    @property
    def last_place(self) -> Numbers:
        """Place of the last visit of each history, -1 if the history is empty. [B]"""
        if not len(self.place):
            return np.full(len(self), -1, dtype=np.int64)
        return np.where(self.lengths > 0, self.place[np.maximum(self.bounds[1:] - 1, 0)], -1)

    @property
    def following_us(self) -> Numbers:
        """Instant of the visit after each visit; after the last one, of the next visit. [T]

        If the next visit is not known, the last visit has its own instant.
        """
        following = np.roll(self.at_us, -1)
        has_visits = self.lengths > 0
        last = self.bounds[1:][has_visits] - 1
        following[last] = (
            self.at_us[last] if self.next_at_us is None else self.next_at_us[has_visits]
        )
        return following

    def tail(self, most: int) -> "Histories":
        """The last `most` visits of every history."""
        if not len(self) or self.lengths.max() <= most:
            return self
        starts = np.maximum(self.bounds[:-1], self.bounds[1:] - most)
        visits, bounds = slices(starts, self.bounds[1:])
        return self._with(visits, bounds)

    def until(self, at_us: int) -> "Histories":
        """The visits that are not later than an instant."""
        return self._where(self.at_us <= at_us)

    def without(self, visit: int) -> "Histories":
        """All visits but one, given by its position in the flat arrays."""
        return self._where(np.arange(len(self.place)) != visit)

    def _where(self, kept: NDArray[np.bool_]) -> "Histories":
        bounds = np.concatenate([[0], np.cumsum(kept)])[self.bounds]  # [B + 1]
        return self._with(kept, bounds)

    def _with(self, visits: Numbers | NDArray[np.bool_], bounds: Numbers) -> "Histories":
        return replace(
            self,
            place=self.place[visits],
            at_us=self.at_us[visits],
            offset_minutes=self.offset_minutes[visits],
            bounds=bounds,
        )


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """Check-ins of a split in canonical order; none of them is left out."""

    checkin: Numbers  # id of each check-in; results are joined by it. [N]
    user: Numbers
    place: Numbers
    at_us: Numbers
    offset_minutes: Numbers
    part: NDArray[np.uint8]  # index into `record.PARTS`. [N]

    def __len__(self) -> int:
        return len(self.checkin)

    @property
    def starts(self) -> Numbers:
        """First row of the trajectory of each row's user. [N]"""
        return np.searchsorted(self.user, self.user, side="left")

    def of_part(self, part: int) -> "Trajectories":
        """The rows of one part of the split, given by its index."""
        kept = self.part == part
        return Trajectories(**{name: array[kept] for name, array in vars(self).items()})

    def as_histories(self) -> Histories:
        """All visits of every user, as one history each."""
        starts = np.flatnonzero(np.diff(self.user, prepend=-1))
        return Histories(
            place=self.place,
            at_us=self.at_us,
            offset_minutes=self.offset_minutes,
            bounds=np.r_[starts, len(self)],
            user=self.user[starts],
        )

    def histories_before(
        self, rows: Numbers, *, known_time: bool = False, most: int | None = None
    ) -> Histories:
        """The history of each row, at most its last `most` visits.

        With `known_time` the instants of the rows are the instants of the next visits.
        """
        starts = np.searchsorted(self.user, self.user[rows], side="left")
        if most is not None:
            starts = np.maximum(starts, rows - most)
        visits, bounds = slices(starts, rows)
        return Histories(
            place=self.place[visits],
            at_us=self.at_us[visits],
            offset_minutes=self.offset_minutes[visits],
            bounds=bounds,
            next_at_us=self.at_us[rows] if known_time else None,
            user=self.user[rows],
        )

    def is_revisit(self, rows: Numbers, *, window: int) -> NDArray[np.bool_]:
        """Whether the place of each row is among its user's `window` visits before it. [B]"""
        if len(np.unique(self.user[rows])) == len(rows):
            previous = self._previous_visits_of_distinct_users(rows)
        else:
            previous = self._previous_visits()[rows]
        return (previous >= 0) & (rows - previous <= window)

    def _previous_visits_of_distinct_users(self, rows: Numbers) -> Numbers:
        """Row of the last visit to the same place before each row, by one pass over N. [B]"""
        most = int(self.user.max(initial=0)) + 1
        target, target_place = np.full(most, -1), np.full(most, -1)
        target[self.user[rows]] = rows
        target_place[self.user[rows]] = self.place[rows]
        same_place = np.flatnonzero(self.place == target_place[self.user])
        same_place = same_place[same_place < target[self.user[same_place]]]
        previous = np.full(most, -1)
        previous[self.user[same_place]] = same_place  # rows ascend, so the last one remains
        return previous[self.user[rows]]

    def _previous_visits(self) -> Numbers:
        """Row of the user's previous visit to the same place, -1 if there is none. [N]"""
        order = np.lexsort((self.place, self.user))
        same = (np.diff(self.user[order]) == 0) & (np.diff(self.place[order]) == 0)
        previous = np.full(len(self), -1, dtype=np.int64)
        previous[order[1:][same]] = order[:-1][same]
        return previous


def slices(starts: Numbers, ends: Numbers) -> tuple[Numbers, Numbers]:
    """Indices of all slices starts[b]:ends[b] end to end, and the bounds between them."""
    lengths = ends - starts
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return np.repeat(starts, lengths) + ranges(lengths), bounds


def local_us(visits: Histories, at_us: Numbers | None = None) -> Numbers:
    """Local time at the place of each visit, at its instant or at another one. [T]

    Microseconds since 1970-01-01 00:00 on the local clock.
    """
    return (visits.at_us if at_us is None else at_us) + visits.offset_minutes * MINUTE_US


def hour_of(local: Numbers) -> NDArray[np.float64]:
    """Time of day in hours, from 0 to below 24."""
    return local % DAY_US / HOUR_US


def weekday_of(local: Numbers) -> Numbers:
    """Day of the week; Monday is 0."""
    return (local // DAY_US + _THURSDAY) % 7


def is_weekend(local: Numbers) -> NDArray[np.bool_]:
    """Whether the day is a Saturday or a Sunday."""
    return weekday_of(local) >= _SATURDAY
