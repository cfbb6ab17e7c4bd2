"""The anchors of a history: places of its own from which distances are measured.

    last    the place where the history ends
    home    the place visited most among the last 512 visits; of several, the latest

Shapes: B histories.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.known_pairs import KnownPairs, most_visited

ANCHORS: Final = 2


def anchors_of(histories: Histories, pairs: KnownPairs) -> NDArray[np.int64]:
    """Rows of the last place and of home of every history, 0 where it is empty. [B, 2]"""
    home = np.zeros(len(histories), dtype=np.int64)
    first = np.flatnonzero(np.diff(pairs.owner, prepend=-1))
    home[pairs.owner[first]] = most_visited(first, pairs.place, pairs.count, pairs.slot) + 1
    return np.stack([histories.last_place + 1, home], axis=1)
