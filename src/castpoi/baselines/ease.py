"""EASE (Steck 2019): the ridge regression of every place on all others, in closed form.

The score of a place is the sum, over the places of a history, of their weight to it, and `own`
times its own visits, where visits count as log(1 + visits). The weight of a place to itself is
zero, so without `own` EASE would rank the places that a user returns to far down.

Shapes: U users, P places, N entries of the weights.
"""

from dataclasses import asdict, dataclass
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.learned_counts import LearnedCounts, Rows
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.config import Config, NotNegative, Positive
from castpoi.core.errors import BadInput

_MAX_PLACES: Final = 20_000
"""A larger city does not fit: each table of all pairs of places would take more than 3 GB."""
_KEPT: Final = 100
"""Weights of each place that are kept: the largest, by their absolute value."""


@dataclass(frozen=True, kw_only=True)
class EaseConfig(Config):
    """The settings of EASE."""

    ridge: Positive = 500.0
    """Penalty of large weights."""
    own: NotNegative = 1.0
    """Weight of the visits to the place itself."""


@dataclass(frozen=True, kw_only=True)
class Ease(LearnedCounts):
    """Ranks places by a regression on the places of a history."""

    config_class: ClassVar = EaseConfig

    bounds: Numbers  # the weights from each place as sparse rows [P + 1]
    to: Numbers  # [N]
    weight: NDArray[np.float32]  # [N]

    @classmethod
    def learn(cls, visits: Histories, *, places: int, config: EaseConfig) -> Self:
        """Compute the weights between all places from the places that each user visited."""
        if places > _MAX_PLACES:
            raise BadInput(
                f"the city has {places:,} places, but EASE learns the weights between at most "
                f"{_MAX_PLACES:,}; prepare the city with fewer places (--min-place-checkins)"
            )
        visited = np.zeros((len(visits), places), dtype=np.float32)  # [U, P]
        visited[visits.owner, visits.place] = 1.0
        in_common = (visited.T @ visited).astype(np.float64)  # [P, P]
        in_common[np.diag_indices(places)] += config.ridge
        inverse = np.linalg.inv(in_common)
        weights = inverse / -inverse.diagonal()  # [P, P]
        np.fill_diagonal(weights, 0.0)
        count = min(_KEPT, places)
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
        return score + self._config.own * visits
