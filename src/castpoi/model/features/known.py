"""Known places: the places that a history has visited, with the features of the revisit gate.

The features of a pair of a history and a known place, over the last `window` visits:

    paper    log(1 + visits)
             recency: slot of the last visit there in the left-padded window, 1 to `window`, divided
             by `window`; 1 is the place where the history ends
             1
    habits   these three, and those of `habits.py`

A *position* is a visit with which a history or a prefix of one ends. Serving needs the pairs of the
last position of every history, training those of all positions; both are computed by `PairCounter`.

Shapes: N visits laid end to end, S segments of positions, R positions, v visits that any position
counts, E (position, known place) pairs, F features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.trajectory import Histories, slices
from castpoi.core.arrays import Numbers
from castpoi.model.config import REVISIT_WINDOW, RevisitFeatures
from castpoi.model.features.habits import HABITS, PairsOfSegments, Visits, habits_of
from castpoi.model.layers import Tensors
from castpoi.model.places import NO_PLACE

_PAPER: Final = 3
FEATURES: Final[Mapping[RevisitFeatures, int]] = {"paper": _PAPER, "habits": _PAPER + len(HABITS)}
"""Number of features of each kind."""

POSITIONS_AT_ONCE: Final = 64
"""Positions of one history whose habits are computed together; bounds the memory."""
SEGMENTS_AT_ONCE: Final = 32
"""Segments of positions whose habits are computed together; bounds the memory."""


@dataclass(frozen=True, kw_only=True)
class KnownPlaces(Tensors):
    """The known places of a batch of histories, as the revisit gate reads them."""

    owner: Tensor  # the history of each pair [E]
    place: Tensor  # [E]
    features: Tensor  # [E, F]


@dataclass(frozen=True, kw_only=True)
class KnownPairs:
    """The known places of some positions; the pairs of one position are adjacent."""

    bounds: Numbers  # pairs of position r are the slice bounds[r]:bounds[r + 1] [R + 1]
    place: NDArray[np.int32]  # [E]
    features: NDArray[np.float32]  # [E, F]
    home: Numbers  # the most visited place; if several, the one visited last; or NO_PLACE [R]

    @property
    def owner(self) -> Numbers:
        """Number of the position of each pair. [E]"""
        return np.repeat(np.arange(len(self.home)), np.diff(self.bounds))

    @property
    def size_bytes(self) -> int:
        """Memory of the arrays."""
        return sum(getattr(self, each.name).nbytes for each in fields(self))

    def part(self, first: int, end: int) -> "KnownPairs":
        """Some of the positions, without a copy."""
        pairs = slice(self.bounds[first], self.bounds[end])
        return KnownPairs(
            bounds=self.bounds[first : end + 1] - self.bounds[first],
            place=self.place[pairs],
            features=self.features[pairs],
            home=self.home[first:end],
        )

    def tensors(self) -> KnownPlaces:
        """The pairs as the revisit gate reads them."""
        return KnownPlaces(
            owner=torch.from_numpy(self.owner),
            place=torch.from_numpy(self.place.astype(np.int64)),
            features=torch.from_numpy(self.features),
        )


class PairCounter:
    """Computes the known places of any positions of some histories."""

    def __init__(
        self,
        histories: Histories,
        points: NDArray[np.float64] | None = None,
        *,
        window: int = REVISIT_WINDOW,
    ) -> None:
        """With habits if `points` are given: all places of the city on the unit sphere. [P, 3]"""
        self.window = window
        self.place = histories.place
        self.begin = histories.starts  # first visit of the history of each visit [N]
        self.visits = None if points is None else Visits.of(histories, points)

    def pairs(self, first: Numbers, end: Numbers) -> KnownPairs:
        """The pairs of all positions of segments first:end, in order, each of one history. [S]

        A visit is the last one to its place from its own position to the one before the next visit
        there (or until it leaves the window), so it makes one pair for each of these positions.
        """
        start = np.maximum(self.begin[first], first - self.window + 1)  # [S]
        visit, edges = slices(start, end)  # [v], [S + 1]
        segment = np.repeat(np.arange(len(first)), np.diff(edges))  # [v]
        visited = self.place[visit]  # [v]
        order = np.lexsort((visited, segment))  # visits to one place are adjacent, in time order
        is_again = (np.diff(visited[order]) == 0) & (np.diff(segment[order]) == 0)
        following = end[segment]  # next visit to the same place, or the end of the segment [v]
        following[order[:-1][is_again]] = visit[order[1:][is_again]]

        since = np.maximum(visit, first[segment])
        until = np.maximum(np.minimum(following, visit + self.window), since)
        position, _ = slices(since, until)  # [E]
        last = np.repeat(np.arange(len(visit)), until - since)  # last visit there, of v [E]
        by_position = np.argsort(position, kind="stable")
        position, last = position[by_position], last[by_position]

        of_segment = segment[last]
        oldest = np.maximum(position - self.window + 1 - start[of_segment], 0) + edges[of_segment]
        count = _visits_since(order, is_again, last, oldest)
        slot = self.window - (position - visit[last])
        positions, _ = slices(first, end)  # [R]
        bounds = np.append(np.searchsorted(position, positions), len(position))
        place = visited[last]
        return KnownPairs(
            bounds=bounds,
            place=place.astype(np.int32),
            features=self._features(count, slot, position, visit[last], first, end),
            home=_most_visited(bounds, place, count * (self.window + 1) + slot),
        )

    def _features(
        self,
        count: Numbers,
        slot: Numbers,
        position: Numbers,
        last: Numbers,
        first: Numbers,
        end: Numbers,
    ) -> NDArray[np.float32]:
        """Features of pairs of segments first:end. [E] four times, [S], [S] -> [E, F]"""
        kind: RevisitFeatures = "paper" if self.visits is None else "habits"
        features = np.ones((len(count), FEATURES[kind]), dtype=np.float32)
        features[:, 0] = np.log1p(count)
        features[:, 1] = slot / self.window
        if self.visits is None:
            return features
        edges = np.searchsorted(position, np.append(first, end[-1:]))  # [S + 1]
        by_length = np.argsort(end - np.maximum(self.begin[first], first - self.window + 1))
        for start in range(0, len(first), SEGMENTS_AT_ONCE):
            some = by_length[start : start + SEGMENTS_AT_ONCE]
            pair, bounds = slices(edges[some], edges[some + 1])
            segment = np.repeat(np.arange(len(some)), np.diff(bounds))
            pairs = PairsOfSegments(segment, position[pair], last[pair])
            features[pair, _PAPER:] = habits_of(
                self.visits, first[some], end[some], pairs, window=self.window
            )
        return features


def known_at_the_end(
    histories: Histories,
    points: NDArray[np.float64] | None = None,
    *,
    window: int = REVISIT_WINDOW,
) -> KnownPairs:
    """The known places of every history, each history's in order of place; `points` as above."""
    has_visits = histories.lengths > 0
    end = histories.bounds[1:][has_visits]
    pairs = PairCounter(histories, points, window=window).pairs(end - 1, end)
    sizes = np.zeros(len(histories), dtype=np.int64)
    sizes[has_visits] = np.diff(pairs.bounds)
    home = np.full(len(histories), NO_PLACE)
    home[has_visits] = pairs.home
    order = np.lexsort((pairs.place, pairs.owner))
    return KnownPairs(
        bounds=np.append(0, np.cumsum(sizes)),
        place=pairs.place[order],
        features=pairs.features[order],
        home=home,
    )


def _visits_since(
    order: Numbers, is_again: NDArray[np.bool_], last: Numbers, oldest: Numbers
) -> Numbers:
    """Number of visits to the place of `last`, from visit `oldest` to `last`. [v], ..., [E] -> [E]

    `order` lists the visits by place; `is_again` marks neighbours of the same place. [v], [v - 1]
    """
    number = np.cumsum(np.append(0, ~is_again))[: len(order)]  # of the place, in this order [v]
    rank, group = np.empty_like(order), np.empty_like(order)
    rank[order], group[order] = np.arange(len(order)), number
    keys = number * len(order) + order  # sorted by place, then by time
    return rank[last] + 1 - np.searchsorted(keys, group[last] * len(order) + oldest)


def _most_visited(bounds: Numbers, place: Numbers, score: Numbers) -> Numbers:
    """The place with the highest score of each position; no two scores are equal. [E] -> [R]"""
    if len(bounds) == 1:
        return place
    best = np.maximum.reduceat(score, bounds[:-1])  # [R]
    return place[score == np.repeat(best, np.diff(bounds))]
