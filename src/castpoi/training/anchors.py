"""The anchors of training positions; see `model/anchors.py`.

Shapes: N visits laid end to end, R positions, A anchors.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from castpoi.model.config import Anchor

Numbers = NDArray[np.int64]


def anchors_after(
    position: Numbers,
    *,
    place: Numbers,
    user_begin: Numbers,
    home: Numbers,
    anchors: Sequence[Anchor],
) -> Numbers:
    """Rows of the anchors of the history that ends with each position, 0 for none. [R, A]

    `place` and `user_begin` are those of all visits [N], `home` is that of each position [R].
    """
    has_before = position > user_begin[position]
    rows: dict[Anchor, Numbers] = {
        "last": place[position] + 1,
        "before_last": np.where(has_before, place[position - 1] + 1, 0),
        "home": home + 1,
    }
    chosen = np.zeros((len(position), len(anchors)), dtype=np.int64)
    for column, anchor in enumerate(anchors):
        chosen[:, column] = rows[anchor]
    return chosen
