"""What the revisit gate is told of a history and a place that it knows.

    paper    log(1 + visits)
             recency: slot of the last visit there in the left-padded window, 1 to `window`, divided
             by `window`; 1 is the place where the history ends
             1
    habits   these three, and when, from where and after what the history goes there (`habits.py`)

All is counted over the last `window` visits.

Shapes: E (history, place) pairs, F features.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.model.config import RevisitFeatures
from castpoi.model.habits import HABITS, Visits, habits_of

_PAPER: Final = 3


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Places that histories know; pairs of one history stand together. [E] each"""

    position: NDArray[np.int64]
    """Visit with which the history ends."""
    place: NDArray[np.int64]
    count: NDArray[np.int64]
    """Visits there among the last `window` of the history."""
    slot: NDArray[np.int64]
    """Slot of the last of them in the left-padded window, from 1 to `window`."""


FEATURES: Final[Mapping[RevisitFeatures, int]] = {"paper": _PAPER, "habits": _PAPER + len(HABITS)}
"""How many there are of each kind."""


def revisit_features(
    pairs: Pairs, window: int, visits: Visits | None = None
) -> NDArray[np.float32]:
    """The features of pairs: the paper's, or with habits where `visits` are given. [E, F]"""
    kind: RevisitFeatures = "paper" if visits is None else "habits"
    features = np.ones((len(pairs.place), FEATURES[kind]), dtype=np.float32)
    features[:, 0] = np.log1p(pairs.count)
    features[:, 1] = pairs.slot / window
    if visits is not None:
        last = pairs.position - (window - pairs.slot)  # visit there
        for some, habits in habits_of(visits, pairs.position, last, window=window):
            features[some, _PAPER:] = habits
    return features
