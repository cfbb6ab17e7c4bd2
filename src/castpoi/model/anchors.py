"""The anchors of a history: places of its own from which distances are measured.

    last         where the history ends
    before_last  the visit before that
    home         the place visited most, as far as the revisit gate counts; of several, the latest

Shapes: B histories, A anchors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.config import Anchor
from castpoi.model.known_pairs import KnownPairs, most_visited

Rows = NDArray[np.int64]


def anchors_of(histories: Histories, pairs: KnownPairs, anchors: Sequence[Anchor]) -> Rows:
    """Rows of the anchors of every history, 0 where it has none. [B, A]"""
    rows = np.zeros((len(histories), len(anchors)), dtype=np.int64)
    for column, anchor in enumerate(anchors):
        rows[:, column] = _FIND[anchor](histories, pairs)
    return rows


def _last(histories: Histories, pairs: KnownPairs) -> Rows:
    return histories.last_place + 1


def _before_last(histories: Histories, pairs: KnownPairs) -> Rows:
    rows = np.zeros(len(histories), dtype=np.int64)
    long = histories.lengths >= 2
    rows[long] = histories.place[histories.bounds[1:][long] - 2] + 1
    return rows


def _home(histories: Histories, pairs: KnownPairs) -> Rows:
    rows = np.zeros(len(histories), dtype=np.int64)
    first = np.flatnonzero(np.diff(pairs.owner, prepend=-1))
    rows[pairs.owner[first]] = most_visited(first, pairs.place, pairs.count, pairs.slot) + 1
    return rows


_FIND: Final[Mapping[Anchor, Callable[[Histories, KnownPairs], Rows]]] = {
    "last": _last,
    "before_last": _before_last,
    "home": _home,
}
