"""Trajectories: every user's check-ins in time order, end to end in flat arrays.

A *target* is a check-in to be foretold; its *history* is all that its user did before it. Since
rows stand in canonical order, a history is a slice, and no copy of the past can be out of step.

Shapes: N check-ins, B histories, T visits over all histories of a batch.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Histories:
    """A batch of histories of any length, laid end to end; oldest visit first."""

    place: NDArray[np.int64]
    """Place of each visit. [T]"""
    at_us: NDArray[np.int64]
    """Instant of each visit, UTC microseconds. [T]"""
    offset_minutes: NDArray[np.int64]
    """Local time minus UTC at each visit, in minutes. [T]"""
    bounds: NDArray[np.int64]
    """History b is the slice bounds[b]:bounds[b + 1]. [B + 1]"""
    next_at_us: NDArray[np.int64] | None = None
    """Moment of the visit to come, UTC microseconds; None where it is not known. [B]"""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of visits in each history. [B]"""
        return np.diff(self.bounds)

    @property
    def owner(self) -> NDArray[np.int64]:
        """Which history each visit belongs to. [T]"""
        return np.repeat(np.arange(len(self)), self.lengths)

    @property
    def last_place(self) -> NDArray[np.int64]:
        """Place of the last visit of each history, -1 where the history is empty. [B]"""
        if not len(self.place):
            return np.full(len(self), -1, dtype=np.int64)
        return np.where(self.lengths > 0, self.place[np.maximum(self.bounds[1:] - 1, 0)], -1)

    @property
    def following_us(self) -> NDArray[np.int64]:
        """Moment of the visit that follows each visit; the last is followed by the one to come. [T]

        Where that is not known, the last visit has its own moment.
        """
        following = np.roll(self.at_us, -1)
        has_visits = self.lengths > 0
        last = self.bounds[1:][has_visits] - 1
        to_come = self.at_us[last] if self.next_at_us is None else self.next_at_us[has_visits]
        following[last] = to_come
        return following

    def tail(self, most: int) -> "Histories":
        """The last `most` visits of every history."""
        if not len(self) or self.lengths.max() <= most:
            return self
        starts = np.maximum(self.bounds[:-1], self.bounds[1:] - most)
        visits, bounds = slices(starts, self.bounds[1:])
        return replace(
            self,
            place=self.place[visits],
            at_us=self.at_us[visits],
            offset_minutes=self.offset_minutes[visits],
            bounds=bounds,
        )


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """The check-ins of a split (none left out), in canonical order."""

    checkin: NDArray[np.int64]
    """Id of each check-in, by which results are joined. [N]"""
    user: NDArray[np.int64]
    place: NDArray[np.int64]
    at_us: NDArray[np.int64]
    offset_minutes: NDArray[np.int64]
    part: NDArray[np.uint8]
    """Index into `record.PARTS`. [N]"""

    def __len__(self) -> int:
        return len(self.checkin)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Row at which the trajectory of each row's user begins. [N]"""
        return np.searchsorted(self.user, self.user, side="left")

    def histories_before(
        self, rows: NDArray[np.int64], *, known_time: bool = False, most: int | None = None
    ) -> Histories:
        """What the user of each row did before it, and if its time is known, when it was.

        Where `most` is given, only the last visits of each history, at most that many.
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
        )

    def is_revisit(self, rows: NDArray[np.int64], *, window: int) -> NDArray[np.bool_]:
        """Whether the place of each row stands among its user's `window` visits before it. [B]"""
        if len(np.unique(self.user[rows])) == len(rows):
            previous = self._previous_visits_of_distinct_users(rows)
        else:
            previous = self._previous_visits()[rows]
        return (previous >= 0) & (rows - previous <= window)

    def _previous_visits_of_distinct_users(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of the visit before to the same place, by one look at every check-in. [B]"""
        most = int(self.user.max(initial=0)) + 1
        target, target_place = np.full(most, -1), np.full(most, -1)
        target[self.user[rows]] = rows
        target_place[self.user[rows]] = self.place[rows]
        same_place = np.flatnonzero(self.place == target_place[self.user])
        same_place = same_place[same_place < target[self.user[same_place]]]
        previous = np.full(most, -1)
        previous[self.user[same_place]] = same_place  # rows ascend, so the last one stays
        return previous[self.user[rows]]

    def _previous_visits(self) -> NDArray[np.int64]:
        """Row of the user's visit before to the same place, -1 where there is none. [N]"""
        order = np.lexsort((self.place, self.user))
        same = (np.diff(self.user[order]) == 0) & (np.diff(self.place[order]) == 0)
        previous = np.full(len(self), -1, dtype=np.int64)
        previous[order[1:][same]] = order[:-1][same]
        return previous


def slices(
    starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of all slices starts[b]:ends[b] end to end, and the bounds between them."""
    lengths = ends - starts
    bounds = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
    return np.repeat(starts, lengths) + within, bounds
