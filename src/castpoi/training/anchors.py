"""The anchors of every position of the train part at once; see `model/anchors.py`.

Shapes: N visits laid end to end, A anchors.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.config import Anchor
from castpoi.training.windows import KnownPlaces


def anchors_after(
    histories: Histories, known: KnownPlaces, anchors: Sequence[Anchor]
) -> NDArray[np.int64]:
    """Rows of the anchors of the history that ends with each visit, 0 for none. [N, A]"""
    last = histories.place + 1
    before_last = np.roll(last, 1)
    before_last[histories.bounds[:-1][histories.lengths > 0]] = 0
    rows: dict[Anchor, NDArray[np.int64]] = {
        "last": last,
        "before_last": before_last,
        "home": known.home + 1,
    }
    chosen = np.zeros((len(last), len(anchors)), dtype=np.int64)
    for column, anchor in enumerate(anchors):
        chosen[:, column] = rows[anchor]
    return chosen
