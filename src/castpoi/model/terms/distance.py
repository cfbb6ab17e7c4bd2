"""The distance gate: weighs nearness by the state of the user. Not in the paper.

    delta_u(c) = sum over anchors a of w_a(h_u) [ bucket of the distance from a to c ]

The anchors of a history are its last place and its home, the place visited most (the latest, if
several) among its last 512 visits. A missing anchor has no weight.

A candidate is in one bucket of each anchor; together they are its *cell*. All weights of a cell are
summed once for a history, so a place costs one lookup, however many anchors there are.

Shapes: B histories (or any positions), A anchors, K buckets, M = K^A cells, C candidates, P places,
D width.
"""

from typing import ClassVar, Final

import torch
from torch import Tensor

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM
from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.layers import gate_layers
from castpoi.model.places import NO_PLACE
from castpoi.model.terms.base import ScoreInputs, Term

ANCHORS: Final = 2


class DistanceGate(Term):
    """Weighs distances from the user's anchors; one value for each cell."""

    meaning: ClassVar[str] = "How near the place is to the last visit and to the most visited place"

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets | None = None) -> None:
        super().__init__(config=config)
        assert distances is not None
        self.distances = distances
        self.buckets = len(DISTANCE_GATE_EDGES_KM) + 1
        self.weigh = gate_layers(width=config.width, weights=ANCHORS * self.buckets)

    def weights(self, inputs: ScoreInputs) -> Tensor:
        """The weight of every bucket of every anchor. -> [B, A, K]"""
        weights: Tensor = self.weigh(inputs.state).unflatten(1, (ANCHORS, self.buckets))
        return weights * (inputs.anchors != NO_PLACE).unsqueeze(2)

    def compact(self, inputs: ScoreInputs) -> Tensor:
        """The term of every cell. -> [B, M]"""
        first, *others = self.weights(inputs).unbind(dim=1)
        for weights in others:
            first = (first.unsqueeze(2) + weights.unsqueeze(1)).flatten(1)  # K times as many
        return first

    def index(self, inputs: ScoreInputs, candidates: Tensor | None = None) -> Tensor:
        """The cell of every place, or of candidates that all share. -> [B, P] or [B, C]"""
        anchors = inputs.anchors.unbind(1)
        return self._cells(*(self.distances.between(each, candidates) for each in anchors))

    def add_to_(self, scores: Tensor, compact: Tensor, index: Tensor) -> None:
        """See `Term`. [B, P], [B, M], [B, P]"""
        scores.add_(compact.gather(1, index.long()))

    def reduce(self, grad: Tensor, compact: Tensor, index: Tensor) -> Tensor:
        """See `Term`. [B, P], [B, M], [B, P] -> [B, M]"""
        return torch.zeros_like(compact).scatter_add_(1, index.long(), grad)

    def at(self, inputs: ScoreInputs, candidates: Tensor) -> Tensor:
        """The term of candidates, shared or each history's own. [C] or [B, C] -> [B, C]"""
        own = candidates.expand(len(inputs.state), -1)  # [B, C]
        return self.compact(inputs).gather(1, self.cells(inputs.anchors, own))

    def cells(self, anchors: Tensor, candidates: Tensor) -> Tensor:
        """The cell of each history's own candidates. [B, A], [B, C] -> [B, C]"""
        return self._cells(*self.distances(anchors, candidates).unbind(dim=2)).long()

    def _cells(self, first: Tensor, *others: Tensor) -> Tensor:
        """Cells from the buckets of each anchor. [B, C] bytes each -> [B, C], two bytes each"""
        cell = first.short()
        for bucket in others:
            cell.mul_(self.buckets).add_(bucket)
        return cell
