"""Rankers that give the scores a test wants."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


@dataclass(frozen=True)
class Fixed:
    """Gives the same scores to every history, whatever they are."""

    scores: NDArray[np.float32]
    """[P]"""
    seen: int | None = None
    """Columns that are really given, where a test wants a wrong shape."""

    @property
    def places(self) -> int:
        return len(self.scores)

    def encode(self, histories: Histories) -> int:
        return len(histories)

    def score(
        self, encoded: int, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        columns = np.arange(self.places) if candidates is None else candidates
        return np.tile(self.scores[columns][: self.seen], (encoded, 1))


def fixed(*scores: float, seen: int | None = None) -> Fixed:
    """A ranker with these scores."""
    return Fixed(np.array(scores, dtype=np.float32), seen)
