"""Sparse scores: a history has been to few places, so only those are named.

Shapes: B histories, P places, C candidates, S named (history, place) pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class SparseScores:
    """Scores of few places for each history; a pair named twice keeps the later score."""

    histories: int
    """Number of histories, B."""
    owner: NDArray[np.int64]
    """Which history each score belongs to. [S]"""
    place: NDArray[np.int64]
    """Which place is scored. [S]"""
    score: NDArray[np.float32]

    def over(
        self, background: NDArray[np.float32], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Scores of all places or of the candidates; places not named take the background. [P]"""
        if candidates is None:
            return self._spread(background, self.owner, self.place, self.score)
        wanted, back = np.unique(candidates, return_inverse=True)  # a candidate may come twice
        column_of = np.full(len(background), -1, dtype=np.int64)
        column_of[wanted] = np.arange(len(wanted))
        column = column_of[self.place]
        kept = column >= 0
        scores = self._spread(background[wanted], self.owner[kept], column[kept], self.score[kept])
        return scores[:, back]

    def _spread(
        self,
        background: NDArray[np.float32],
        owner: NDArray[np.int64],
        column: NDArray[np.int64],
        score: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        scores = np.empty((self.histories, len(background)), dtype=np.float32)
        scores[:] = background
        scores[owner, column] = score
        return scores


def count_pairs(
    owner: NDArray[np.int64], place: NDArray[np.int64], *, places: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Each (history, place) pair once, in order, and how often it came. [S], [S], [S]"""
    pairs, counts = np.unique(owner * places + place, return_counts=True)
    return pairs // places, pairs % places, counts
