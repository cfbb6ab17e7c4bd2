"""What the revisit gate is told of a history and a place that it knows.

    paper   log(1 + visits)
            recency: slot of the last visit there in the left-padded window, 1 to `window`, divided
            by `window`; 1 is the place where the history ends
            1
    rich    these three, and what they cannot tell:
            log(1 + own moves there from the place where the history ends)
            their share among all own moves from that place
            log(1 + hours since the last visit there), 1 after a year
            hour of day: mean cosine between the clock at the visits there and at the last visit
            kind of day: share of the visits there on the last visit's kind, working day or weekend
            log(1 + visits there, each worth less by a factor e every 20 days)

All is counted over the last `window` visits. The moment of the next visit is not known, so "now"
is the moment of the last one.

Shapes: E (history, place) pairs, F features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.model.config import RevisitFeatures
from castpoi.model.local_clock import DAY_US, HOUR_US

FEATURES: Final[Mapping[RevisitFeatures, int]] = {"paper": 3, "rich": 9}
"""How many there are of each kind."""

FADING_US: Final = 20 * DAY_US
"""Time in which a visit loses all but 1/e of its worth."""

_YEAR_HOURS: Final = 365 * 24


@dataclass(frozen=True, kw_only=True)
class Habits:
    """When, and from where, histories go to the places they know."""

    moves: NDArray[np.int64]
    """Moves there from the place where the history ends. [E]"""
    moves_from_here: NDArray[np.int64]
    """Moves from that place to anywhere. [E]"""
    since_us: NDArray[np.int64]
    """From the last visit there to the last visit of all. [E]"""
    same_hour: NDArray[np.float64]
    """Mean cosine between the clock at the visits there and at the last visit of all. [E]"""
    same_kind_of_day: NDArray[np.float64]
    """Share of the visits there on a day of the last visit's kind. [E]"""
    fresh_visits: NDArray[np.float64]
    """Visits there, each worth exp(-age / 20 days). [E]"""


def paper_features(
    count: NDArray[np.int64], slot: NDArray[np.int64], window: int
) -> NDArray[np.float32]:
    """The three features of the paper. [E], [E] -> [E, 3]"""
    features = np.ones((len(count), FEATURES["paper"]), dtype=np.float32)
    features[:, 0] = np.log1p(count)
    features[:, 1] = slot / window
    return features


def rich_features(
    count: NDArray[np.int64], slot: NDArray[np.int64], window: int, habits: Habits
) -> NDArray[np.float32]:
    """The three of the paper and six more. [E], [E], E habits -> [E, 9]"""
    features = np.empty((len(count), FEATURES["rich"]), dtype=np.float32)
    features[:, :3] = paper_features(count, slot, window)
    features[:, 3] = np.log1p(habits.moves)
    features[:, 4] = habits.moves / np.maximum(habits.moves_from_here, 1)
    features[:, 5] = np.log1p(habits.since_us / HOUR_US) / np.log1p(_YEAR_HOURS)
    features[:, 6] = habits.same_hour
    features[:, 7] = habits.same_kind_of_day
    features[:, 8] = np.log1p(habits.fresh_visits)
    return features
