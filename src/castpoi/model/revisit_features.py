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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.model.config import RevisitFeatures
from castpoi.model.habits import HABITS

_PAPER: Final = 3

FEATURES: Final[Mapping[RevisitFeatures, int]] = {"paper": _PAPER, "habits": _PAPER + len(HABITS)}
"""How many there are of each kind."""


def paper_features(
    count: NDArray[np.int64], slot: NDArray[np.int64], window: int
) -> NDArray[np.float32]:
    """The three features of the paper. [E], [E] -> [E, 3]"""
    features = np.ones((len(count), _PAPER), dtype=np.float32)
    features[:, 0] = np.log1p(count)
    features[:, 1] = slot / window
    return features
