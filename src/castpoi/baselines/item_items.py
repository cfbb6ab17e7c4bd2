"""ItemKNN and EASE: weights between places that the same people visit.

The score of a place is the sum, over the places of a history, of their weight to it, and `own`
times its own visits; a place counts log(1 + visits). The weight of a place to itself is zero in
both methods, so without `own` they would hardly rank the places that a user returns to.

    ItemKNN   cosine of two places over users, for the `neighbours` most similar of each place
    EASE      the ridge regression of every place on all others, in closed form (Steck 2019)

Shapes: U users, P places, N entries of the weights.
"""

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.learned_counts import LearnedCounts
from castpoi.baselines.sparse import Rows
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.config import Config, Count, NotNegative, Positive
from castpoi.core.errors import BadInput

_MOST_PLACES: Final = 20_000
"""A larger city does not fit: the table of all pairs of places would take more than 3 GB."""


@dataclass(frozen=True, kw_only=True)
class ItemItemConfig(Config):
    """The settings of a method with weights between places."""

    neighbours: Count = 100
    """Weights of each place that are kept: the largest."""
    own: NotNegative = 1.0
    """Weight of the visits to the place itself."""


@dataclass(frozen=True, kw_only=True)
class ItemKnnConfig(ItemItemConfig):
    """The settings of ItemKNN."""

    shrink: NotNegative = 10.0
    """Added to the denominator of the cosine: fewer people in common count less."""


@dataclass(frozen=True, kw_only=True)
class EaseConfig(ItemItemConfig):
    """The settings of EASE."""

    ridge: Positive = 100.0
    """Penalty of large weights."""


@dataclass(frozen=True, kw_only=True)
class ItemItems(LearnedCounts):
    """Ranks places by their weights from the places of a history."""

    bounds: Numbers  # the weights from each place as sparse rows [P + 1]
    to: Numbers  # [N]
    weight: NDArray[np.float32]  # [N]

    @staticmethod
    @abstractmethod
    def weights(users_in_common: Floats, config: ItemItemConfig) -> Floats:
        """The weights between all places, from the number of people of each pair. [P, P]"""

    @classmethod
    def learn(cls, visits: Histories, *, places: int, config: ItemItemConfig) -> Self:
        """The weights between all places, from who visited them."""
        if places > _MOST_PLACES:
            raise BadInput(
                f"the city has {places:,} places, but weights between all of them are learned for "
                f"at most {_MOST_PLACES:,}; prepare the city with fewer places "
                "(--min-place-checkins)"
            )
        visited = np.zeros((len(visits), places), dtype=np.float32)  # [U, P]
        visited[visits.owner, visits.place] = 1.0
        weights = cls.weights((visited.T @ visited).astype(np.float64), config)  # [P, P]
        np.fill_diagonal(weights, 0.0)
        count = min(config.neighbours, places)
        to = np.sort(np.argpartition(-np.abs(weights), count - 1, axis=1)[:, :count], axis=1)
        return cls(
            places=places,
            settings=asdict(config),
            bounds=np.arange(places + 1) * count,
            to=to.ravel(),
            weight=np.take_along_axis(weights, to, axis=1).ravel().astype(np.float32),
        )

    def scores_of(self, history: Histories) -> Floats:
        """The score of every place after one history. [P]"""
        visits = np.log1p(np.bincount(history.place, minlength=self.places))
        visited = np.flatnonzero(visits)
        weights = Rows(self.bounds, self.to, self.weight)
        score = weights.mixed(visited, visits[visited], columns=self.places)
        return score + self.settings["own"] * visits


@dataclass(frozen=True, kw_only=True)
class ItemKnn(ItemItems):
    """Ranks places by their similarity to the places of a history."""

    config_class: ClassVar = ItemKnnConfig

    @staticmethod
    def weights(users_in_common: Floats, config: ItemKnnConfig) -> Floats:  # type: ignore[override]
        """The cosine of all pairs of places, shrunk. [P, P]"""
        root = np.sqrt(users_in_common.diagonal())
        return users_in_common / (root[:, None] * root + config.shrink + 1e-9)


@dataclass(frozen=True, kw_only=True)
class Ease(ItemItems):
    """Ranks places by a regression on the places of a history."""

    config_class: ClassVar = EaseConfig

    @staticmethod
    def weights(users_in_common: Floats, config: EaseConfig) -> Floats:  # type: ignore[override]
        """The regression weights of all places, in closed form. [P, P]"""
        inverse = np.linalg.inv(users_in_common + config.ridge * np.eye(len(users_in_common)))
        return inverse / -inverse.diagonal()
