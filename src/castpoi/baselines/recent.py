"""Most recent: people go back to where they have just been.

A place scores the position of its last visit in the history, counted from 1 at the oldest visit;
a place never visited scores 0. Nothing is counted over the city.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.sparse_scores import SparseScores
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories


@dataclass(frozen=True, kw_only=True)
class Recent:
    """Ranks places by how recently they were visited."""

    places: int
    """Number of places in the vocabulary, P."""

    @classmethod
    def count(cls, city: City, *, part: str) -> Self:
        """Only the vocabulary is known, whatever `part` is foretold."""
        return cls(places=city.places.height)

    def encode(self, histories: Histories) -> SparseScores:
        """Where in its history each place was visited last."""
        owner = histories.owner
        position = np.arange(len(owner)) - histories.bounds[owner] + 1
        # Positions grow along a history, so the later of two visits is the one that is kept.
        return SparseScores(
            histories=len(histories),
            owner=owner,
            place=histories.place,
            score=position.astype(np.float32),
        )

    def score(
        self, encoded: SparseScores, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        return encoded.over(np.zeros(self.places, dtype=np.float32), candidates)

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, as JSON can hold them."""
        return {"places": self.places}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """It has counted nothing."""
        return {}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these settings."""
        return cls(places=int(config["places"]))
