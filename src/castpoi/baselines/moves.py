"""Moves between places: how often users went from one place to another in 1 or 2 visits.

Moves of all users are stored as compressed sparse rows, since a table of all pairs of places would
not fit a large city.

Shapes: B histories, P places, M distinct moves, S counted (history, place) pairs.
"""

from typing import NamedTuple

import numpy as np

from castpoi.baselines.counting import count_pairs
from castpoi.checkins.trajectory import Histories, slices
from castpoi.core.arrays import Numbers


class Counts(NamedTuple):
    """Counts of distinct (history, place) pairs, ordered by history, then by place."""

    owner: Numbers  # [S]
    place: Numbers  # [S]
    times: Numbers  # [S]
    places: int

    @property
    def key(self) -> Numbers:
        """One ascending number for each pair. [S]"""
        return self.owner * self.places + self.place

    def of(self, key: Numbers) -> Numbers:
        """The counts of other pairs by their key; 0 where there is none. [E] -> [E]"""
        own = self.key
        if not len(own):
            return np.zeros_like(key)
        at = np.minimum(np.searchsorted(own, key), len(own) - 1)
        return np.where(own[at] == key, self.times[at], 0)

    def minus(self, other: "Counts") -> "Counts":
        """Subtract other counts; pairs whose count falls to 0 are dropped."""
        times = self.times - other.of(self.key)
        left = times > 0
        return Counts(self.owner[left], self.place[left], times[left], self.places)


class Moves(NamedTuple):
    """Moves of all users: those from place p are the slice bounds[p]:bounds[p + 1]."""

    bounds: Numbers  # [P + 1]
    to: Numbers  # destination of each move [M]
    times: Numbers  # number of times that each move was made [M]

    @classmethod
    def of(cls, owner: Numbers, place: Numbers, *, gap: int, places: int) -> "Moves":
        """The moves from each visit to the one `gap` visits later in the same history. [T], [T]"""
        here = _with_follower(owner, gap)
        origin, to, times = count_pairs(place[here], place[here + gap], places=places)
        bounds = np.searchsorted(origin, np.arange(places + 1)).astype(np.int64)
        return cls(bounds, to, times.astype(np.int64))

    def leaving(self, origin: Numbers) -> Counts:
        """The moves from one place for each history; none where it is -1. [B] -> [S]"""
        places = len(self.bounds) - 1
        known = np.flatnonzero(origin >= 0)
        moves, edges = slices(self.bounds[origin[known]], self.bounds[origin[known] + 1])
        owner = np.repeat(known, np.diff(edges))
        return Counts(owner, self.to[moves], self.times[moves], places)


def moves_leaving(visits: Histories, origin: Numbers, *, gap: int, places: int) -> Counts:
    """The moves that each history itself has from one place. [B] -> [S]"""
    owner = visits.owner
    here = _with_follower(owner, gap)
    here = here[visits.place[here] == origin[owner[here]]]
    return Counts(*count_pairs(owner[here], visits.place[here + gap], places=places), places)


def _with_follower(owner: Numbers, gap: int) -> Numbers:
    """The visits that have another one `gap` visits later in their history."""
    return np.flatnonzero(owner[gap:] == owner[:-gap])
