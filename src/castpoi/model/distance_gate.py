"""The distance gate: how much nearness counts for this user, now. The revisit gate's twin in space.

    delta_u(c) = sum over anchors a of w_a(h_u) [ bucket of the distance from a to c ]

An anchor is a place of the history (`anchors.py`). An anchor that a history does not have weighs
nothing. The paper has no such gate.

A candidate lies in one bucket of each anchor; together they are its *cell*. All weights of a cell
are summed once for a history, so that a place costs one look however many anchors there are.

Shapes: B histories (or any positions), A anchors, K buckets, M = K^A cells, C candidates, P
places, D width.
"""

import torch
from torch import Tensor, nn

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM
from castpoi.model.anchors import ANCHORS
from castpoi.model.batch import PADDING
from castpoi.model.config import ModelConfig
from castpoi.model.distance_buckets import DistanceBuckets
from castpoi.model.gate_layers import gate_layers


class DistanceGate(nn.Module):
    """Weighs distances from the user's anchors by the state of the user."""

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets) -> None:
        super().__init__()
        self.distances = distances
        self.anchors = ANCHORS
        self.buckets = len(DISTANCE_GATE_EDGES_KM) + 1
        self.weigh = gate_layers(width=config.width, weights=self.anchors * self.buckets)

    def forward(self, state: Tensor, anchors: Tensor, candidates: Tensor | None = None) -> Tensor:
        """What each candidate gains, or every place. [B, D], [B, A], [C] or [B, C] -> [B, C]"""
        return self.by_cell(state, anchors).gather(1, self.cells(anchors, candidates))

    def weights(self, state: Tensor, anchors: Tensor) -> Tensor:
        """The weight of every bucket of every anchor. [B, D], [B, A] -> [B, A, K]"""
        weights: Tensor = self.weigh(state).unflatten(1, (self.anchors, self.buckets))
        return weights * (anchors != PADDING).unsqueeze(2)

    def by_cell(self, state: Tensor, anchors: Tensor) -> Tensor:
        """What a candidate gains in every cell. [B, D], [B, A] -> [B, M]"""
        first, *others = self.weights(state, anchors).unbind(dim=1)
        for weights in others:
            first = (first.unsqueeze(2) + weights.unsqueeze(1)).flatten(1)  # K times as many
        return first

    def cells(self, anchors: Tensor, candidates: Tensor | None = None) -> Tensor:
        """The cell of each candidate, or of every place. [B, A], [C] or [B, C] -> [B, C]"""
        first, *others = anchors.unbind(dim=1)
        cell = self._buckets(first, candidates).short()  # a fourth of the bytes to pass over
        for anchor in others:
            cell.mul_(self.buckets).add_(self._buckets(anchor, candidates))
        return cell.long()

    def _buckets(self, anchor: Tensor, candidates: Tensor | None) -> Tensor:
        """Buckets of one anchor of every history. [B], [C] or [B, C] -> [B, C] bytes"""
        if candidates is None:
            return self.distances.to_every(anchor)
        if candidates.ndim == 1:
            return self.distances.between(anchor, candidates)
        found: Tensor = self.distances(anchor.unsqueeze(1), candidates)  # [B, C, 1]
        return found.squeeze(2)


def sum_by_cell(values: Tensor, cell: Tensor, cells: int) -> Tensor:
    """Values of places summed in their cells: the way back. [B, P], [B, P] -> [B, M]"""
    sums = torch.zeros(len(values), cells, dtype=values.dtype, device=values.device)
    return sums.scatter_add_(1, cell, values)
