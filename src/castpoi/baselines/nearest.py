"""Nearest: the next place is close to the last one.

A place scores minus its distance in km from the last visit, so the last place itself comes first,
together with places at the very same point. An empty history has no last visit: popularity.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.known import known_rows, visits_per_place
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.trajectory import Histories
from castpoi.geo.distance import haversine_km


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """Ranks places by distance from the last visit."""

    lat: NDArray[np.float64]
    """Latitude of each place in degrees. [P]"""
    lon: NDArray[np.float64]
    """Longitude of each place in degrees. [P]"""
    popularity: NDArray[np.int64]
    """Known check-ins of each place. [P]"""

    @classmethod
    def count(cls, city: City, *, part: str) -> Self:
        """Note where the places are, and count what may be known before `part` is foretold."""
        return cls(
            lat=city.places[record.LAT].to_numpy(),
            lon=city.places[record.LON].to_numpy(),
            popularity=visits_per_place(city, known_rows(city, part)),
        )

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return len(self.popularity)

    def encode(self, histories: Histories) -> NDArray[np.int64]:
        """The place of the last visit, -1 for an empty history. [B]"""
        return histories.last_place

    def score(
        self, encoded: NDArray[np.int64], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        columns = np.arange(self.places) if candidates is None else candidates
        last_places, row_of = np.unique(encoded, return_inverse=True)
        scores = np.empty((len(last_places), len(columns)), dtype=np.float32)
        for row, last in enumerate(last_places.tolist()):  # one place at a time: little memory
            scores[row] = self.popularity[columns] if last < 0 else -self._km(last, columns)
        return scores[row_of]

    def _km(self, last: int, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        return haversine_km(self.lat[last], self.lon[last], self.lat[columns], self.lon[columns])

    @property
    def config(self) -> dict[str, Any]:
        """It has no settings."""
        return {}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Where the places are and what it has counted, by name."""
        return {"lat": self.lat, "lon": self.lon, "popularity": self.popularity}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these arrays."""
        return cls(lat=arrays["lat"], lon=arrays["lon"], popularity=arrays["popularity"])
