"""What the revisit gate is told of a history and a place that it knows.

    paper   log(1 + visits), recency of the last one in (0, 1], and 1

Recency is the slot of the last visit to the place in the left-padded window, from 1 to `window`,
divided by `window`: 1 is the place where the history ends.

Shapes: E (history, place) pairs.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

PAPER_FEATURES: Final = 3


def paper_features(
    count: NDArray[np.int64], slot: NDArray[np.int64], window: int
) -> NDArray[np.float32]:
    """The three features of the paper. [E], [E] -> [E, 3]"""
    features = np.ones((len(count), PAPER_FEATURES), dtype=np.float32)
    features[:, 0] = np.log1p(count)
    features[:, 1] = slot / window
    return features
