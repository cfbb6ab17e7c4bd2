"""Popularity: everybody is sent where most check-ins are, whatever their history."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.known import known_rows, visits_per_place
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories


@dataclass(frozen=True, kw_only=True)
class Popularity:
    """Ranks places by the check-ins of everybody."""

    popularity: NDArray[np.int64]
    """Known check-ins of each place. [P]"""

    @classmethod
    def count(cls, city: City, *, part: str) -> Self:
        """Count what may be known before `part` is foretold."""
        return cls(popularity=visits_per_place(city, known_rows(city, part)))

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return len(self.popularity)

    def encode(self, histories: Histories) -> Histories:
        """Nothing to read: only the number of histories matters."""
        return histories

    def score(
        self, encoded: Histories, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        counts = self.popularity if candidates is None else self.popularity[candidates]
        return np.tile(counts.astype(np.float32), (len(encoded), 1))

    @property
    def config(self) -> dict[str, Any]:
        """It has no settings."""
        return {}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What it has counted, by name."""
        return {"popularity": self.popularity}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these arrays."""
        return cls(popularity=arrays["popularity"])
