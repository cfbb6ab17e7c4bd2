"""First-order Markov: from the last place, where did this user go before, and where did others?

Stupid back-off (Brants et al. 2007), for each candidate: the share of the history's own moves from
the last place; if there is none to the candidate, 0.4 x the share of the moves of all users; if
there is none either, 0.4 x 0.4 x the candidate's share of all check-ins. Moves of all users are
stored as compressed sparse rows, since a table of all pairs of places would not fit a large city.

Shapes: B histories, P places, M distinct moves of all users.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.counting import (
    PopularityRanker,
    SparseRanker,
    SparseScores,
    count_pairs,
    known_rows,
    visits_per_place,
)
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories, slices

BACK_OFF: Final = 0.4
"""Weight of each step back; the value of Brants et al. (2007)."""

Shares = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Histories, places and shares of moves."""


@dataclass(frozen=True, kw_only=True)
class Markov(SparseRanker, PopularityRanker):
    """Ranks places by moves from the last place."""

    move_bounds: NDArray[np.int64]  # moves from place p are move_bounds[p]:move_bounds[p + 1]
    move_to: NDArray[np.int64]  # destination of each move [M]
    move_count: NDArray[np.int64]  # number of times it was made [M]
    back_off: float = BACK_OFF

    @classmethod
    def count(cls, city: City, *, part: str) -> Self:
        """Count the check-ins and moves before `part`."""
        rows = known_rows(city, part)
        places = city.places.height
        trajectories = city.trajectories
        here, there = rows[:-1], rows[1:]
        is_move = (there == here + 1) & (trajectories.user[here] == trajectories.user[there])
        origin, target, moves = count_pairs(
            trajectories.place[here[is_move]], trajectories.place[there[is_move]], places=places
        )
        return cls(
            popularity=visits_per_place(city, rows),
            move_bounds=np.searchsorted(origin, np.arange(places + 1)).astype(np.int64),
            move_to=target,
            move_count=moves.astype(np.int64),
        )

    def encode(self, histories: Histories) -> SparseScores:
        """Scores of the moves from the last place: those of all users, overridden by its own."""
        crowd_owner, crowd_place, crowd_share = self._crowd_moves(histories)
        own_owner, own_place, own_share = self._own_moves(histories)
        return SparseScores(
            histories=len(histories),
            owner=np.concatenate([crowd_owner, own_owner]),
            place=np.concatenate([crowd_place, own_place]),
            score=np.concatenate([self.back_off * crowd_share, own_share]).astype(np.float32),
        )

    @property
    def background(self) -> NDArray[np.float32]:
        """The score of a place to which no move leads: its share of all check-ins. [P]"""
        share = self.popularity / max(int(self.popularity.sum()), 1)
        return (self.back_off**2 * share).astype(np.float32)

    def _crowd_moves(self, histories: Histories) -> Shares:
        """Moves of all users from the last place of each history."""
        moved = np.flatnonzero(histories.lengths > 0)
        last = histories.last_place[moved]
        moves, bounds = slices(self.move_bounds[last], self.move_bounds[last + 1])
        within = np.repeat(np.arange(len(moved)), np.diff(bounds))
        return moved[within], self.move_to[moves], _shares(within, self.move_count[moves])

    def _own_moves(self, histories: Histories) -> Shares:
        """Moves of each history from its last place."""
        owner, place = histories.owner, histories.place
        stays_inside = owner[1:] == owner[:-1]
        from_last = np.flatnonzero(stays_inside & (place[:-1] == histories.last_place[owner[:-1]]))
        owner, target, moves = count_pairs(
            owner[from_last], place[from_last + 1], places=self.places
        )
        return owner, target, _shares(owner, moves)


def _shares(group: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Each count as a share of the sum of its group."""
    sums = np.bincount(group, weights=counts)
    shares: NDArray[np.float64] = counts / sums[group]
    return shares
