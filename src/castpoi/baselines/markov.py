"""First-order Markov: from the last place, where did this user go before, and where did others?

Stupid back-off (Brants et al. 2007), for each candidate: the share of the history's own moves from
the last place; if there is none to the candidate, 0.4 x the share of the moves of all users; if
there is none either, 0.4 x 0.4 x the candidate's share of all check-ins.
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
    known_rows,
    visits_per_place,
)
from castpoi.baselines.moves import Counts, Moves, moves_leaving
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories

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
        trajectories = city.trajectories
        place, user = trajectories.place[rows], trajectories.user[rows]
        # a move over a check-in that may not be counted is none
        is_first = (np.diff(rows, prepend=-2) > 1) | (np.diff(user, prepend=-1) != 0)
        owner = np.cumsum(is_first) - 1
        moves = Moves.of(owner, place, gap=1, places=city.places.height)
        return cls(
            popularity=visits_per_place(city, rows),
            move_bounds=moves.bounds,
            move_to=moves.to,
            move_count=moves.times,
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
        moves = Moves(self.move_bounds, self.move_to, self.move_count)
        return _shares(moves.leaving(histories.last_place))

    def _own_moves(self, histories: Histories) -> Shares:
        """Moves of each history from its last place."""
        origin = histories.last_place
        return _shares(moves_leaving(histories, origin, gap=1, places=self.places))


def _shares(counts: Counts) -> Shares:
    """Each count as a share of the sum of its history."""
    sums = np.bincount(counts.owner, weights=counts.times)
    return counts.owner, counts.place, counts.times / sums[counts.owner]
