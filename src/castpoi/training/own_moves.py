"""Own moves: how often users went from one place straight to another, up to any visit.

Shapes: N visits laid end to end, E (position, known place) pairs.
"""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.training.runs import Runs

Numbers = NDArray[np.int64]


class OwnMoves:
    """How often users moved from one place to another, up to any moment."""

    def __init__(self, histories: Histories, run: Runs, window: int) -> None:
        self.run = run
        self.window = window
        self.place = histories.place
        self.places = int(histories.place.max(initial=0)) + 1
        self.span = np.int64(len(histories.place) + 1)
        leaves = np.ones(len(histories.place), dtype=np.bool_)
        leaves[histories.bounds[1:][histories.lengths > 0] - 1] = False
        source = np.flatnonzero(leaves)
        kinds, kind = np.unique(self._kind(source, source + 1), return_inverse=True)
        self.kinds = kinds
        self.times = np.sort(kind * self.span + source)

    def there(self, position: Numbers, last_visit: Numbers) -> Numbers:
        """Moves from the place of a position to that of another visit. [E], [E] -> [E]"""
        moves = np.zeros(len(position), dtype=np.int64)
        if not len(self.kinds):
            return moves
        wanted = self._kind(position, last_visit)
        found = np.minimum(np.searchsorted(self.kinds, wanted), len(self.kinds) - 1)
        some = np.flatnonzero(self.kinds[found] == wanted)
        kind, now = found[some] * self.span, position[some]
        first = np.maximum(now - self.window + 1, 0)
        begin, end = (np.searchsorted(self.times, kind + each) for each in (first, now))
        moves[some] = end - begin
        return moves

    def _kind(self, source: Numbers, goal: Numbers) -> Numbers:
        """One number a (user, place left, place reached). [E], [E] -> [E]"""
        return self.run.id[source] * self.places + self.place[goal]
