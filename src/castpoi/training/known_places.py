"""The places that each training position knows, computed for a few positions at a time.

A position whose window holds a few hundred places has as many pairs, of a hundred bytes each: all
pairs of one user's million visits would take tens of gigabytes. So the pairs of a block, 64
positions of one user, are computed when a batch needs them. Blocks are kept until they fill
`KEPT_BYTES`, which holds those of ordinary cities; later ones are computed again when they are
needed again. That changes the time of an epoch, and no bit of any feature.

Shapes: N visits laid end to end, E (position, known place) pairs; of a batch: R positions; of a
block: n positions, v visits that any of them counts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories, slices
from castpoi.model.habits import POSITIONS_AT_ONCE, Visits
from castpoi.model.known_pairs import most_visited
from castpoi.model.revisit_features import Pairs, revisit_features
from castpoi.training.device import release_memory

KEPT_BYTES: Final = 3 * 2**29
"""Memory for the pairs of all blocks that are kept."""

_GIVE_BACK_BYTES: Final = 2**27  # arrays of many sizes leave gaps between them, gigabytes of them

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Known:
    """The places that some positions know, themselves included; pairs of one stand together."""

    bounds: Numbers
    """Pairs of position r are the slice bounds[r]:bounds[r + 1]. [R + 1]"""
    place: NDArray[np.int32]
    """[E]"""
    features: NDArray[np.float32]
    """Input of the revisit gate, see `model/revisit_features.py`. [E, F]"""
    home: Numbers
    """The most visited place of every position; of several, the latest. [R]"""

    @property
    def owner(self) -> Numbers:
        """Which position each pair belongs to. [E]"""
        return np.repeat(np.arange(len(self.home)), np.diff(self.bounds))

    @property
    def size_bytes(self) -> int:
        """Memory of the arrays."""
        arrays = (self.bounds, self.place, self.features, self.home)
        return sum(each.nbytes for each in arrays)

    def part(self, first: int, end: int) -> "Known":
        """Some of the positions, without a copy."""
        pairs = slice(self.bounds[first], self.bounds[end])
        return Known(
            bounds=self.bounds[first : end + 1] - self.bounds[first],
            place=self.place[pairs],
            features=self.features[pairs],
            home=self.home[first:end],
        )


class KnownPlaces:
    """The known places of any training positions, with features over the last `window` visits."""

    def __init__(
        self,
        histories: Histories,
        window: int,
        points: NDArray[np.float64] | None = None,
        *,
        known_time: bool = False,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        """With habits, where `points` are given: all places on the unit sphere. [P, 3]

        If the time is known, habits are computed for the moment of the visit that follows.
        """
        self.window = window
        self.place = histories.place
        self.user_begin = histories.starts  # [N]
        self.user_end = np.repeat(histories.bounds[1:], histories.lengths)  # [N]
        self.visits = (
            None if points is None else Visits.of(histories, points, known_time=known_time)
        )
        self.free_bytes = kept_bytes
        self.kept: dict[int, Known] = {}
        """Blocks, by their first position."""
        self._computed_bytes = 0  # since memory was last given back

    def of(self, position: Numbers) -> Known:
        """The known places of some positions; quickest where neighbours stand together. [R]"""
        begin = self.user_begin[position]
        block = begin + (position - begin) // POSITIONS_AT_ONCE * POSITIONS_AT_ONCE
        is_edge = (np.diff(position, prepend=-2) != 1) | (np.diff(block, prepend=-1) != 0)
        edges = np.flatnonzero(is_edge)
        parts = [
            self._block(first).part(start - first, start - first + length)
            for first, start, length in zip(
                block[edges].tolist(),
                position[edges].tolist(),
                np.diff(edges, append=len(position)).tolist(),
                strict=True,
            )
        ]
        lengths = np.concatenate([np.diff(part.bounds) for part in parts])
        return Known(
            bounds=np.r_[0, np.cumsum(lengths)],
            place=np.concatenate([part.place for part in parts]),
            features=np.concatenate([part.features for part in parts]),
            home=np.concatenate([part.home for part in parts]),
        )

    def _block(self, first: int) -> Known:
        """A block, kept if there is room."""
        if first in self.kept:
            return self.kept[first]
        block = self._computed(first)
        self._computed_bytes += block.size_bytes
        if self._computed_bytes > _GIVE_BACK_BYTES:
            release_memory()
            self._computed_bytes = 0
        if block.size_bytes <= self.free_bytes:
            self.free_bytes -= block.size_bytes
            self.kept[first] = block
        return block

    def _computed(self, first: int) -> Known:
        """The known places of the positions of a block.

        A visit is the last one to its place from its own position to the one before the next visit
        there (or until it leaves the window), so each visit is laid out over that stretch once.
        """
        end = min(first + POSITIONS_AT_ONCE, int(self.user_end[first]))
        start = max(int(self.user_begin[first]), first - self.window + 1)
        visit, visited = np.arange(start, end), self.place[start:end]  # [v]
        order, following = _by_place(visited)
        until = np.minimum(start + following, visit + self.window)
        since = np.maximum(visit, first)
        position, edges = slices(since, np.maximum(since, until))  # [E]
        last_visit = np.repeat(visit, np.diff(edges))
        by_position = np.argsort(position, kind="stable")
        position, last_visit = position[by_position], last_visit[by_position]
        bounds = np.searchsorted(position, np.arange(first, end + 1))
        place = self.place[last_visit]
        pairs = Pairs(
            position=position,
            place=place,
            count=_counted(visited, order, last_visit - start, position - start - self.window + 1),
            slot=self.window - (position - last_visit),
        )
        return Known(
            bounds=bounds,
            place=place.astype(np.int32),
            features=revisit_features(pairs, self.window, self.visits),
            home=most_visited(bounds[:-1], place, pairs.count, pairs.slot),
        )


def _by_place(place: Numbers) -> tuple[Numbers, Numbers]:
    """Visits to one place side by side in time order, and the next visit there, or v. [v], [v]"""
    order = np.argsort(place, kind="stable")
    following = np.full(len(place), len(place))
    same = np.diff(place[order]) == 0
    following[order[:-1][same]] = order[1:][same]
    return order, following


def _counted(place: Numbers, order: Numbers, last: Numbers, oldest: Numbers) -> Numbers:
    """Visits to the place of `last`, up to it and not before `oldest`. [v], [v], [E], [E] -> [E]"""
    rank = np.empty(len(place), dtype=np.int64)
    rank[order] = np.arange(len(place))
    keys = place * len(place) + np.arange(len(place))  # sorted by place, then by time
    first = np.searchsorted(keys[order], place[last] * len(place) + np.maximum(oldest, 0))
    counted: Numbers = rank[last] + 1 - first
    return counted
