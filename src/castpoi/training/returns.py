"""Returns: the visits of one user to one place, side by side and in time order.

Shapes: N visits laid end to end.
"""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


class Returns:
    """All visits of some users: one user's to one place, then those to the next."""

    def __init__(self, histories: Histories) -> None:
        owner, place = histories.owner, histories.place
        self.order: NDArray[np.int64] = np.lexsort((place, owner))
        """The visits in that order. [N]"""
        self.slot = np.empty(len(owner), dtype=np.int64)
        """Where each visit stands in the order. [N]"""
        self.slot[self.order] = np.arange(len(owner))
        begins = np.ones(len(owner), dtype=np.bool_)
        begins[1:] = (np.diff(owner[self.order]) != 0) | (np.diff(place[self.order]) != 0)
        self.id = (np.cumsum(begins) - 1)[self.slot]
        """Number of the user and place of each visit. [N]"""
        self.number = self.slot - np.flatnonzero(begins)[self.id]
        """How many visits of its user to its place came before each visit. [N]"""

    def following(self, otherwise: NDArray[np.int64]) -> NDArray[np.int64]:
        """When the user returned to the place; after the last visit, something else. [N] -> [N]"""
        following = otherwise.copy()
        earlier, later = self.order[:-1], self.order[1:]
        same = self.id[earlier] == self.id[later]
        following[earlier[same]] = later[same]
        return following
