"""The habits of some histories, counted visit by visit; `training/habits.py` has all prefixes.

Shapes: T visits over all histories, E (history, place) pairs.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.known_pairs import KnownPairs
from castpoi.model.local_clock import hour_of, is_weekend, local_us
from castpoi.model.revisit_features import FADING_US, Habits


def habits_of(recent: Histories, pairs: KnownPairs, window: int) -> Habits:
    """What the visits that the pairs were counted from say of each pair."""
    end = recent.bounds[1:][recent.owner] - 1  # last visit of each visit's history [T]
    local = local_us(recent)
    angle = hour_of(local) * (2 * np.pi / 24)
    weekend = is_weekend(local)
    age_us = np.maximum(recent.at_us[end] - recent.at_us, 0)

    def sum_of(values: NDArray[Any]) -> NDArray[np.float64]:
        weights = values.astype(np.float64)
        return np.bincount(pairs.of_visit, weights, len(pairs.owner)).astype(np.float64)

    leaves = np.flatnonzero((recent.place == recent.place[end]) & (np.arange(len(end)) < end))
    last = recent.bounds[1:][pairs.owner] - 1  # visit of the pair's history [E]
    return Habits(
        moves=np.bincount(pairs.of_visit[leaves + 1], minlength=len(pairs.owner)),
        moves_from_here=pairs.count[pairs.of_visit[last]] - 1,
        since_us=age_us[last - (window - pairs.slot)],
        same_hour=sum_of(np.cos(angle - angle[end])) / pairs.count,
        same_kind_of_day=sum_of(weekend == weekend[end]) / pairs.count,
        fresh_visits=sum_of(np.exp(-age_us / FADING_US)),
    )
