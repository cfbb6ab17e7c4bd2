"""Counts of all users' visits, from which the visits of one user can be subtracted.

Counts that include a user's own later visits would leak the target into the features. So a training
example subtracts all visits of its user (*leave one user out*), and a request subtracts its
history: for a user of the train split, this leaves the visits of the other users.

Shapes: B histories, P places, M moves, S counted (history, place) pairs.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from castpoi.baselines.counting import count_pairs
from castpoi.baselines.moves import Counts, Moves, moves_leaving
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Numbers

GAPS: Final = (1, 2)
"""Visits between the ends of a move: 1 from the last place, 2 from the place before it."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Visits and moves of all users of a city's train split."""

    visits: Numbers  # at each place [P]
    people: Numbers  # who were at each place [P]
    move_bounds: Numbers  # of the two gaps [2, P + 1]
    move_to: Numbers  # moves of the first gap, then of the second [M]
    move_count: Numbers  # [M]

    @classmethod
    def of(cls, visits: Histories, *, places: int) -> Self:
        """Count the visits of all users, one history each."""
        moves = [Moves.of(visits.owner, visits.place, gap=gap, places=places) for gap in GAPS]
        first = len(moves[0].to)
        place = count_pairs(visits.owner, visits.place, places=places)[1]
        return cls(
            visits=np.bincount(visits.place, minlength=places),
            people=np.bincount(place, minlength=places),
            move_bounds=np.stack([moves[0].bounds, moves[1].bounds + first]),  # [2, P + 1]
            move_to=np.concatenate([each.to for each in moves]),
            move_count=np.concatenate([each.times for each in moves]),
        )

    @property
    def places(self) -> int:
        """Number of places, P."""
        return len(self.visits)

    def moves_without(self, own: Histories, origin: Numbers, *, gap: int) -> Counts:
        """Moves of the other users from a place of each history. [B] -> [S]"""
        moves = Moves(self.move_bounds[gap - 1], self.move_to, self.move_count)
        own_moves = moves_leaving(own, origin, gap=gap, places=self.places)
        return moves.leaving(origin).minus(own_moves)


def own_visits(own: Histories, *, places: int) -> Counts:
    """The visits of each history to each of its places."""
    return Counts(*count_pairs(own.owner, own.place, places=places), places)
