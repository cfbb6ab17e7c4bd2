"""TIFU-KNN (Hu et al., SIGIR 2020): decayed frequencies of a user and of the most similar users.

The visits of a history are cut into groups of equal size, the last visit in the newest group.
A visit has the weight `visit_decay` ** (number of later visits in its group), and a group the
weight `group_decay` ** (number of later groups). The vector of a user, one number for each place,
is the mean of the groups, each the mean of its visits. The score is the user's own vector times
`own_share`, plus the mean vector of the `neighbours` nearest train users times 1 - `own_share`.

Shapes: U users of the train split, P places, V visits of one history.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from castpoi.baselines.learned_counts import LearnedCounts, Rows
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.config import Config, Count, NotNegative


@dataclass(frozen=True, kw_only=True)
class TifuKnnConfig(Config):
    """The settings of TIFU-KNN."""

    group: Count = 15
    """Visits of a group."""
    visit_decay: NotNegative = 0.97
    """Factor of a visit's weight for each later visit of its group."""
    group_decay: NotNegative = 0.8
    """Factor of a group's weight for each later group."""
    neighbours: Count = 300
    """Number of nearest users whose mean vector is added."""
    own_share: NotNegative = 0.7
    """Share of the user's own vector in the score."""


@dataclass(frozen=True, kw_only=True)
class TifuKnn(LearnedCounts):
    """Ranks places by decayed visits of the user and of similar users."""

    config_class: ClassVar = TifuKnnConfig

    bounds: Numbers  # the vectors of train users as sparse rows [U + 1]
    place: Numbers
    weight: Floats

    @classmethod
    def learn(cls, visits: Histories, *, places: int, config: TifuKnnConfig) -> Self:
        """The vectors of all train users."""
        rows = Rows.of(
            visits.owner, visits.place, _weights(visits, config), shape=(len(visits), places)
        )
        return cls(
            places=places,
            settings=asdict(config),
            bounds=rows.bounds,
            place=rows.column,
            weight=rows.weight,
        )

    def scores_of(self, history: Histories) -> Floats:
        """The score of every place after one history. [P]"""
        config = self._config
        own = np.bincount(history.place, _weights(history, config), minlength=self.places)
        visited = np.flatnonzero(own)
        products = self._by_place.mixed(visited, own[visited], columns=len(self._users))
        # squared distance, without the user's own norm
        distance = self._users.squared_norms() - 2 * products
        count = min(config.neighbours, len(distance))
        nearest = np.argsort(distance, kind="stable")[:count]
        mean = self._users.mixed(nearest, np.full(count, 1 / count), columns=self.places)
        return config.own_share * own + (1 - config.own_share) * mean

    @cached_property
    def _users(self) -> Rows:
        return Rows(self.bounds, self.place, self.weight)

    @cached_property
    def _by_place(self) -> Rows:
        return self._users.transposed(self.places)


def _weights(visits: Histories, config: TifuKnnConfig) -> Floats:
    """The weight of every visit in the vector of its history. [T]"""
    owner = visits.owner
    later = visits.bounds[1:][owner] - 1 - np.arange(len(owner))  # visits after it
    group, within = later // config.group, later % config.group
    groups = -(-visits.lengths // config.group)[owner]
    size = np.minimum(visits.lengths[owner] - group * config.group, config.group)
    decays = config.visit_decay**within * config.group_decay**group
    return decays / (size * groups)
