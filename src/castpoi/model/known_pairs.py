"""Which places each history knows, how often it went there, and when last.

Shapes: B histories, T visits over all histories, E (history, place) pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


@dataclass(frozen=True, kw_only=True)
class KnownPairs:
    """The places that histories know, one history after the other."""

    owner: NDArray[np.int64]
    """Which history the pair belongs to. [E]"""
    place: NDArray[np.int64]
    """[E]"""
    count: NDArray[np.int64]
    """Visits among the last `window` of the history. [E]"""
    slot: NDArray[np.int64]
    """Slot of the last of them in the left-padded window, from 1 to `window`. [E]"""
    of_visit: NDArray[np.int64]
    """The pair that each visit belongs to. [T]"""


def known_pairs(recent: Histories, window: int) -> KnownPairs:
    """Count the visits to each place; histories must have no more than `window` visits."""
    owner = recent.owner
    slot = window - (recent.bounds[1:][owner] - 1 - np.arange(len(owner)))
    order = np.lexsort((slot, recent.place, owner))
    owner, place, slot = owner[order], recent.place[order], slot[order]
    is_last = np.ones(len(order), dtype=np.bool_)  # of its (history, place) pair
    is_last[:-1] = (np.diff(owner) != 0) | (np.diff(place) != 0)
    ends = np.flatnonzero(is_last)
    of_visit = np.empty(len(order), dtype=np.int64)
    of_visit[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
    return KnownPairs(
        owner=owner[ends],
        place=place[ends],
        count=np.diff(ends, prepend=-1),
        slot=slot[ends],
        of_visit=of_visit,
    )


def most_visited(
    first: NDArray[np.int64],
    place: NDArray[np.int64],
    count: NDArray[np.int64],
    slot: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The most visited place of every history; of several, the one visited last.

    Pairs of one history stand together, and begin at `first`; none is without pairs.
    """
    if not len(first):
        return place
    standing = count * (slot.max() + 1) + slot  # no two places of a history have the same slot
    best = np.maximum.reduceat(standing, first)
    sizes = np.diff(first, append=len(place))
    found: NDArray[np.int64] = place[standing == np.repeat(best, sizes)]
    return found
