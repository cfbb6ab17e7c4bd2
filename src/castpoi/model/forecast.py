"""The forecast: a cheap guess at what the reader would say of a place that it does not read.

    f_u(c) = A h_u . e_c  +  b_c  +  distance of c from the user's anchors  +  whether u knows c

It is learned beside the reader, by least squares, from what the reader does say, and it is no part
of the score. It tells which candidates are worth reading: in training, where a few must stand for
all places, and in a shortlist. An untrained forecast says next to nothing.

Shapes: B histories (or any positions), A anchors, C candidates, P places, D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.distance_buckets import DistanceBuckets
from castpoi.model.distance_gate import DistanceGate
from castpoi.model.gate_layers import gate_layers


class ReaderForecast(nn.Module):
    """Foretells the reader's term, up to a constant for each history."""

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets) -> None:
        super().__init__()
        self.lean = nn.Linear(config.width, config.width)
        nn.init.zeros_(self.lean.weight)
        nn.init.zeros_(self.lean.bias)
        self.popularity = nn.Parameter(torch.zeros(distances.places))
        self.distance = DistanceGate(config=config, distances=distances)
        self.known = gate_layers(width=config.width, weights=1)

    def forward(
        self,
        state: Tensor,
        anchors: Tensor,
        is_known: Tensor,
        place: Tensor,
        candidates: Tensor | None = None,
    ) -> Tensor:
        """The guess for places by their numbers, each history's own, or for all of them.

        state [B, D], anchors [B, A], is_known [B, P], place [P, D], [B, C] -> [B, C] or [B, P]
        """
        lean: Tensor = self.lean(state)  # [B, D]
        known: Tensor = self.known(state)  # [B, 1]
        if candidates is None:
            guess = torch.addmm(self.popularity, lean, place.mT)  # [B, P]
            nearness: Tensor = self.distance(state, anchors)  # [B, P]
            return guess.add_(nearness).addcmul_(known, is_known)
        vectors = F.embedding(candidates, place)  # [B, C, D]
        guess = (vectors @ lean.unsqueeze(2)).squeeze(2) + self.popularity[candidates]  # [B, C]
        nearness = self.distance(state, anchors, candidates + 1)  # rows
        return guess + nearness + known * is_known.gather(1, candidates)
