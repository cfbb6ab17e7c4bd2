"""The exact best places of a history among very many, without scoring all of them.

The score of a place without the reader is q . e_c + beta_c + one weight per anchor, by the bucket
of its distance; known places add one number each. Places are grouped into regions of neighbours;
each region is sorted by an upper bound of the score and cut into blocks of equal size. The index
stores the mean vector m of every block, the longest distance of a vector from it, the highest
popularity, and a ball around its points. They bound the score of every place of the block:

    q . m + |q| longest + highest popularity + the highest weights of the distances to the ball

A search first scores the known places and the blocks with most of the probability. The k-th best of
these scores is the threshold: blocks, and then places, with a lower bound are dropped, and the rest
is scored. So the result is exact for any weights. The sum of exp(score) over all places, which
probabilities need, is exact in the blocks with most of the probability and estimated elsewhere.

Shapes: P places, N blocks, S places of a block, D width, A anchors, K buckets, E known places, C
places to score, k best places.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.core.arrays import Numbers, k_best
from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM
from castpoi.methods.ranker import Found
from castpoi.model.castpoi import CastPoi
from castpoi.model.distances import squared_chords
from castpoi.model.terms.base import Encoded
from castpoi.model.terms.distance import DistanceGate
from castpoi.model.terms.revisit import RevisitGate

Values = NDArray[np.float32]
Floats = NDArray[np.float64]

BLOCK: Final = 64
"""Places of a block."""
_REGION: Final = 8 * BLOCK  # neighbouring places, sorted by an upper bound of their scores
_HEAD: Final = 64  # blocks that are always scored
_DRAWN: Final = 2048  # places drawn from all other blocks, to estimate their probability
_STRIDE: Final = 37  # coprime to the size of a block, so that all its positions are drawn
_FIRST: Final = 256  # blocks scored next; four times as many in each later round
_DIRECT: Final = 16_384  # up to this many allowed places are all scored
_AT_ONCE: Final = 2**16  # places whose vectors are copied together; bounds the memory
_CHORD_SLACK: Final = 1e-7  # on the unit sphere, 0.6 m: rounding never drops a place
_SCORE_SLACK: Final = 1e-3  # the same for scores


@dataclass(frozen=True, kw_only=True)
class Query:
    """The part of an encoded history on which the scores of places depend."""

    vector: Values  # [D]
    anchors: Numbers  # places from which distances are measured [A]
    weights: Values  # of each bucket of the distance to an anchor [A, K]
    known: Numbers  # known places, each once [E]
    added: Values  # their own terms [E]


def queries_of(model: CastPoi, encoded: Encoded) -> Iterator[Query]:
    """The query of each history, for a model without a reader."""
    known, bounds = encoded.known, np.arange(len(encoded) + 1)
    edges = np.searchsorted(known.owner.numpy(), bounds)  # [B + 1]
    added = np.zeros(len(known.place), dtype=np.float32)
    weights = np.zeros((len(encoded), 0, 0), dtype=np.float32)
    for _, term in model.named_terms():
        if isinstance(term, DistanceGate):
            weights = term.weights(encoded).numpy()  # [B, A, K]
        else:
            assert isinstance(term, RevisitGate)
            added = term.compact(encoded).numpy()  # [E]
    for row, (start, end) in enumerate(pairwise(edges.tolist())):
        yield Query(
            vector=encoded.state[row].numpy(),
            anchors=encoded.anchors[row, : weights.shape[1]].numpy(),
            weights=weights[row],
            known=known.place[start:end].numpy(),
            added=added[start:end],
        )


class PlaceIndex:
    """Finds the best places of a query; built from the weights of a model in seconds."""

    def __init__(self, vectors: Tensor, popularity: Tensor, points: Floats) -> None:
        """Vectors and popularity of places, and their points on the unit sphere.

        [P, D], [P], [P, 3]
        """
        self.vectors, self.points = vectors, points
        self.edges = squared_chords(DISTANCE_GATE_EDGES_KM)  # [K - 1]
        length = vectors.shape[1] ** 0.5  # of a query: layer normalisation fixes it
        beta = popularity.numpy()
        place = np.concatenate(neighbours(points, np.arange(len(points)), _REGION))
        _, far = _means(vectors, _filled(place, _REGION), _REGION)
        height = beta[place] + length * far[: len(place)]
        place = place[np.lexsort((height, np.arange(len(place)) // _REGION))]
        self.position = np.argsort(place)  # in the blocks, of each place [P]
        self.place = _filled(place, BLOCK)  # [N S]
        self.beta = beta[self.place]
        self.beta[len(place) :] = -np.inf  # the padding of the last block is never found
        self.means, self.far = _means(vectors, self.place, BLOCK)  # [N, D], [N S]
        blocks = self.beta.reshape(-1, BLOCK)  # [N, S]
        self.highest = blocks.max(axis=1)  # [N]
        self.longest = self.far.reshape(-1, BLOCK).max(axis=1)  # [N]
        self.log_mass = np.log(np.exp(blocks).sum(axis=1))  # [N]
        self.variance = np.square(self.far.reshape(-1, BLOCK)).mean(axis=1) / vectors.shape[1]
        balls = points[self.place].reshape(-1, BLOCK, 3)  # [N, S, 3]
        self.centres = balls.mean(axis=1)  # [N, 3]
        reach = np.linalg.norm(balls - self.centres[:, None], axis=2).max(axis=1)
        self.reach = reach + _CHORD_SLACK  # [N]

    def best(self, query: Query, k: int, is_allowed: NDArray[np.bool_] | None = None) -> Found:
        """The k best places, or the k best allowed ones. [P]"""
        search = _Search(self, query, k, is_allowed)
        if is_allowed is not None and np.count_nonzero(is_allowed) <= _DIRECT:
            search.add_places(np.flatnonzero(is_allowed))
        else:
            search.add_rest()
        order = np.argsort(search.place)  # equal scores by number
        chosen = order[k_best(search.score[order], k)]
        return Found(place=search.place[chosen], score=search.score[chosen], log_total=search.total)

    def scores(self, query: Query, place: Numbers) -> Values:
        """The scores of places without the terms of known places. [C]"""
        vectors = self.vectors.index_select(0, torch.from_numpy(place))  # [C, D]
        score: Values = torch.mv(vectors, torch.from_numpy(query.vector)).numpy()  # [C]
        score += self.beta[self.position[place]]
        points = self.points[place]  # [C, 3]
        for anchor, weights in zip(query.anchors.tolist(), query.weights, strict=True):
            squared_chord = 2 - 2 * (points @ self.points[anchor])
            score += weights[np.searchsorted(self.edges, squared_chord, side="right")]
        return score


class _Search:
    """One query: the bounds of all blocks, and the best places so far."""

    def __init__(
        self, index: PlaceIndex, query: Query, k: int, is_allowed: NDArray[np.bool_] | None
    ) -> None:
        self.index, self.query, self.k, self.is_allowed = index, query, k, is_allowed
        self.place, self.score = np.empty(0, np.int64), np.empty(0, np.float32)
        self.threshold = -np.inf  # score of the k-th best place so far
        self.length = float(np.linalg.norm(query.vector))
        self.is_scored = np.zeros(len(index.points), dtype=np.bool_)  # [P]
        self.is_scored[query.known] = True
        highest, typical = self._nearness()
        dots = torch.mv(index.means, torch.from_numpy(query.vector)).numpy()  # [N]
        self.level = dots + highest + _SCORE_SLACK  # without a place's own vector and popularity
        self.bound = self.level + self.length * index.longest + index.highest  # [N]
        self.log_mass = dots + typical + index.log_mass + index.variance * (self.length**2 / 2)
        self.of_known = index.scores(query, query.known) + query.added  # [E]
        self._keep(query.known, self.of_known)
        self.total = self._add_head()

    def add_places(self, place: Numbers) -> None:
        """Score places that have no score yet. [C]"""
        place = place[~self.is_scored[place]]
        self._keep(place, self.index.scores(self.query, place))

    def add_rest(self) -> None:
        """Score all places that can be among the k best."""
        index, rest = self.index, np.flatnonzero(self.bound >= self.threshold)
        rest = rest[np.argsort(-self.bound[rest])]
        start, count = 0, _FIRST
        while start < len(rest) and self.bound[rest[start]] >= self.threshold:
            blocks = rest[start : start + count]
            rows = _rows(blocks)  # [C]
            level = np.repeat(self.level[blocks], BLOCK)
            is_near = level + self.length * index.far[rows] + index.beta[rows] >= self.threshold
            self.add_places(index.place[rows[is_near]])
            start, count = start + count, 4 * count

    def _add_head(self) -> float:
        """Score the blocks with most of the probability; returns log sum exp of all scores."""
        index, count = self.index, min(_HEAD, len(self.bound))
        head = np.argpartition(-self.log_mass, count - 1)[:count]
        rows = _rows(head)
        place = index.place[rows[index.beta[rows] > -np.inf]]
        place = place[~self.is_scored[place]]
        score = index.scores(self.query, place)
        self._keep(place, score)
        self.is_scored[place] = True
        self.log_mass[head] = self.bound[head] = -np.inf
        rest = self._log_rest() if count < len(self.bound) else score[:0]
        masses = np.concatenate([score, self.of_known, rest])
        highest = float(masses.max())
        return highest + float(np.log(np.exp(masses - highest).sum()))

    def _log_rest(self) -> Values:
        """Logarithms whose exp sum to that of the other places, estimated from drawn places."""
        index = self.index
        expected = np.exp(self.log_mass - self.log_mass.max())  # [N]
        summed = np.cumsum(expected)
        steps = (np.arange(_DRAWN) + 0.5) * (summed[-1] / _DRAWN)
        block = np.searchsorted(summed, steps)
        row = block * BLOCK + np.arange(_DRAWN) * _STRIDE % BLOCK
        place = index.place[row]
        score = index.scores(self.query, place)
        score[self.is_scored[place] | (index.beta[row] == -np.inf)] = -np.inf
        return score + np.log(summed[-1] / expected[block] * (BLOCK / _DRAWN))

    def _keep(self, place: Numbers, score: Values) -> None:
        """Keep the allowed ones among the k best so far. [C], [C]"""
        if self.is_allowed is not None:
            is_allowed = self.is_allowed[place]
            place, score = place[is_allowed], score[is_allowed]
        place, score = np.append(self.place, place), np.append(self.score, score)
        if len(score) >= self.k:
            self.threshold = np.partition(score, len(score) - self.k)[len(score) - self.k]
            place, score = place[score >= self.threshold], score[score >= self.threshold]
        self.place, self.score = place, score

    def _nearness(self) -> tuple[Values, Values]:
        """The highest and the typical weight of the distances of each block. [N], [N]"""
        index = self.index
        highest = np.zeros(len(index.centres), dtype=np.float32)
        typical = highest.copy()
        for anchor, weights in zip(self.query.anchors.tolist(), self.query.weights, strict=True):
            chord = np.linalg.norm(index.centres - index.points[anchor], axis=1)  # [N]
            low, middle, high = (
                np.searchsorted(index.edges, np.square(each), side="right")
                for each in (np.maximum(chord - index.reach, 0), chord, chord + index.reach)
            )
            highest += _highest_of_ranges(weights)[low, high]
            typical += weights[middle]
        return highest, typical


def _rows(blocks: Numbers) -> Numbers:
    """The rows of blocks. [N] -> [N S]"""
    return (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()


def _highest_of_ranges(weights: Values) -> Values:
    """The highest weight of the buckets from i to j, for all i and j. [K] -> [K, K]"""
    bucket = np.arange(len(weights))
    from_first = np.where(bucket >= bucket[:, None], weights, -np.inf)  # [K, K]
    return np.maximum.accumulate(from_first, axis=1)


def neighbours(points: Floats, place: Numbers, size: int) -> list[Numbers]:
    """Places in groups of `size` near one another; only the last group may be smaller."""
    if len(place) <= size:
        return [place]
    axis = np.ptp(points[place], axis=0).argmax()
    half = -(-len(place) // (2 * size)) * size  # a whole number of groups
    place = place[np.argpartition(points[place, axis], half)]
    return neighbours(points, place[:half], size) + neighbours(points, place[half:], size)


def _filled(place: Numbers, size: int) -> Numbers:
    """Places padded to whole groups: the last place is repeated."""
    return np.append(place, np.repeat(place[-1:], -len(place) % size))


def _means(vectors: Tensor, place: Numbers, size: int) -> tuple[Tensor, Values]:
    """The mean vector of each group of `size` places, and each place's distance from it."""
    means, far = [], []
    for some in torch.from_numpy(place).view(-1, size).split(_AT_ONCE // size + 1):
        own = vectors[some]  # [N, S, D]
        mean = own.mean(dim=1, keepdim=True)
        means.append(mean.squeeze(1))
        far.append((own - mean).norm(dim=2).flatten())
    return torch.cat(means), torch.cat(far).numpy()  # [N, D], [N S]
