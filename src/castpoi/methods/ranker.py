"""The protocols of ranking methods, counted or learned: numpy arrays in, numpy arrays out.

Every method implements `Ranker`: evaluation and recommendation encode a batch of histories once and
then score places against it. Methods rank without the id of the user, so they work for people they
were not trained on. A history may be empty. The other protocols are optional.

Shapes: B histories, P places of the city, C candidates, T visits of a window.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.core.errors import BadInput

State = TypeVar("State")
StateRead = TypeVar("StateRead", contravariant=True)


class Abilities(NamedTuple):
    """Optional needs and abilities of a ranker, as its attribute `abilities`."""

    needs_next_time: bool = False
    """Histories must contain the time of the next visit (`Histories.next_at_us`)."""
    max_visits: int | None = None
    """Number of last visits of a history that can change its scores; None: all."""
    has_reader: bool = False
    """Scores contain an expensive term, so `Shortlists.forecast` saves time."""
    takes_new_places: bool = False  # `TakesNewPlaces.with_places` adds places that have no visit
    has_index: bool = False  # `FindsBest.best` is faster than scoring every place


class Ranker(Protocol[State]):
    """Scores places as the next visit after a history; a higher score is more likely."""

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""

    def encode(self, histories: Histories) -> State:
        """Read a batch of histories once, before any place is scored."""

    def score(
        self, state: State, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the given candidates, for each history. [B, P] or [B, C]

        The candidates are the same for all histories. [C] All scores are finite; equal scores
        are ties and share their rank.
        """


def check_candidates(candidates: NDArray[np.int64], *, places: int) -> None:
    """Refuse candidates that are not among this number of places."""
    outside = (candidates < 0) | (candidates >= places)
    if outside.any():
        raise BadInput(
            f"candidate {candidates[outside][0]} is not a place of the city; "
            f"its places are 0 to {places - 1}"
        )


def abilities_of(ranker: Ranker[Any]) -> Abilities:
    """The abilities of a ranker; the default of each where it has no `abilities`."""
    found: Abilities = getattr(ranker, "abilities", Abilities())
    return found


class SavableRanker(Ranker[State], Protocol[State]):
    """A ranker that is saved as JSON and arrays, so that loading it runs no code."""

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, for JSON."""

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its counts or weights, by name."""

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The saved ranker; its scores are those before it was saved."""


@runtime_checkable
class Explains(Protocol[StateRead]):
    """A ranker whose score is a sum of named terms."""

    @property
    def terms(self) -> Mapping[str, str]:
        """The meaning of each term, by name, in the order of the sum."""

    def term_values(
        self, state: StateRead, candidates: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float32]]:
        """Each term of the score of each candidate. [B, C] each; their sum is the score

        The candidates are the same for all histories [C], or each history has its own. [B, C]
        """

    def attention(self, state: State, candidates: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """Attention of each candidate to each of the last visits. [B, C, T]; None: no attention

        Left-padded: the last visit of a history is at T - 1.
        """


@runtime_checkable
class Shortlists(Protocol[StateRead]):
    """A ranker with a cheap forecast of its scores, from which a shortlist can be taken."""

    def forecast(self, state: StateRead) -> NDArray[np.float32]:
        """A forecast of the score of every place. [B, P]"""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The best places of a history, best first."""

    place: NDArray[np.int64]  # [k]
    score: NDArray[np.float32]  # [k]
    log_total: float  # logarithm of the sum of exp(score) over all places, or nearly
    rank: NDArray[np.int64] | None = None  # among other places than these; None: unknown [k]

    @property
    def probability(self) -> NDArray[np.float64]:
        """Softmax over all places of the vocabulary. [k]"""
        return np.minimum(np.exp(self.score.astype(np.float64) - self.log_total), 1.0)


@runtime_checkable
class FindsBest(Protocol[StateRead]):
    """A ranker that finds the best of very many places without scoring all of them."""

    def build_index(self) -> None:
        """Build what `best` needs, so that the first call does not wait for it."""

    def best(self, state: StateRead, is_allowed: NDArray[np.bool_], k: int) -> list[Found]:
        """The k best allowed places of each history; fewer if fewer are allowed. [B, P]"""


@runtime_checkable
class HasPlaceVectors(Protocol):
    """A ranker with a learned vector for each place."""

    def place_vectors(self) -> NDArray[np.float32]:
        """The vectors that are compared with a history. [P, D]"""


@runtime_checkable
class TakesNewPlaces(Protocol):
    """A ranker that can rank places without visits."""

    def with_places(
        self, lat: NDArray[np.float64], lon: NDArray[np.float64], like: NDArray[np.int64]
    ) -> Self:
        """The same ranker with places after its own, each ranked like a known one there."""
