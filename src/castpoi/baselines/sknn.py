"""Session kNN (V-SKNN, Ludewig and Jannach 2018): the sessions that share the latest places.

A session is a run of visits of one user with less than `gap_hours` between neighbours. The last
`window` visits of a history weigh `decay` ** the number of later visits. A session is as similar as
the sum of weights of the visits whose places it has, divided by the root of its number of places;
the most similar `neighbours` sessions add their similarity to each of their places.

Shapes: S sessions, P places, V visits of one history.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from castpoi.baselines.learned_counts import LearnedCounts
from castpoi.baselines.sparse import Rows
from castpoi.checkins.record import HOUR_US
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats, Numbers, k_best
from castpoi.core.config import Config, Count, NotNegative, Positive


@dataclass(frozen=True, kw_only=True)
class SessionKnnConfig(Config):
    """The settings of session kNN."""

    gap_hours: Positive = 24.0
    """Time without a visit after which a new session begins."""
    window: Count = 20
    """Number of last visits that are compared with sessions."""
    decay: NotNegative = 0.8
    """Factor of a visit's weight for each later visit."""
    neighbours: Count = 300
    """Sessions whose places are scored."""


@dataclass(frozen=True, kw_only=True)
class Sknn(LearnedCounts):
    """Ranks places by the sessions that share the latest places."""

    config_class: ClassVar = SessionKnnConfig

    bounds: Numbers  # the distinct places of sessions as sparse rows [S + 1]
    place: Numbers

    @classmethod
    def learn(cls, visits: Histories, *, places: int, config: SessionKnnConfig) -> Self:
        """The sessions of all train users."""
        is_late = np.diff(visits.at_us, prepend=0) >= config.gap_hours * HOUR_US
        begins = is_late | (np.diff(visits.owner, prepend=-1) != 0)
        session = np.cumsum(begins) - 1
        shape = int(begins.sum()), places
        rows = Rows.of(session, visits.place, np.ones(len(session)), shape=shape)
        return cls(places=places, settings=asdict(config), bounds=rows.bounds, place=rows.column)

    def scores_of(self, history: Histories) -> Floats:
        """The score of every place after one history. [P]"""
        config = self._config
        recent = history.place[-config.window :]
        later = np.arange(len(recent))[::-1]
        weight = np.bincount(recent, config.decay**later, minlength=self.places)
        visited = np.flatnonzero(weight)
        shared = self._by_place.mixed(visited, weight[visited], columns=len(self._sessions))
        similarity = shared / np.sqrt(np.diff(self.bounds))
        nearest = k_best(similarity, config.neighbours)
        return self._sessions.mixed(nearest, similarity[nearest], columns=self.places)

    @cached_property
    def _config(self) -> SessionKnnConfig:
        return SessionKnnConfig.from_dict(self.settings)

    @cached_property
    def _sessions(self) -> Rows:
        return Rows(self.bounds, self.place, np.ones(len(self.place)))

    @cached_property
    def _by_place(self) -> Rows:
        return self._sessions.transposed(self.places)
