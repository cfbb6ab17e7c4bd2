"""The one protocol that every ranking method follows, counted or learned.

Evaluation sees nothing else of a method: it encodes a batch of histories once and then scores
places against it. Serving asks CaST-POI for more: reasons, a shortlist, places that came later. A
history may be empty; it names no user, so a method works for people it has never met.

Shapes: B histories, P places of the city, C candidates.
"""

from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories

Encoded = TypeVar("Encoded")


class Ranker(Protocol[Encoded]):
    """Scores places as the next visit after a history; higher is likelier."""

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""

    def encode(self, histories: Histories) -> Encoded:
        """Read a batch of histories once, before any place is scored."""

    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the given candidates, for each history. [B, P] or [B, C]

        The candidates are the same for all histories. [C] All scores are finite; equal scores
        are ties and share their rank.
        """


def knows_time(ranker: Ranker[Any]) -> bool:
    """Whether a ranker was made to be told the moment of the visit to come; few are."""
    return bool(getattr(ranker, "known_time", False))


def most_visits(ranker: Ranker[Any]) -> int | None:
    """How many last visits of a history a ranker reads; None: all."""
    most: int | None = getattr(ranker, "most_visits", None)
    return most


class SavableRanker(Ranker[Encoded], Protocol[Encoded]):
    """A ranker that rests on disk as numbers and words, so that loading it runs no code."""

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, as JSON can hold them."""

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """What it has counted or learned, by name."""

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker that once had these settings and arrays; it scores the same."""
