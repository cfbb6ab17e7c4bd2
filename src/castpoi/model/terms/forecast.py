"""The forecast: a cheap estimate of the reader's term for places that the reader does not read.

    f_u(c) = A h_u . e_c  +  b_c  +  distance from c to the anchors  +  whether u has visited c

It is trained together with the reader, by least squares, on the reader's term of the places that
are read, and it is not part of the score. It selects the candidates worth reading: in training,
where a few represent all places, and in a shortlist. It is defined up to a constant for each
history. An untrained forecast is close to zero.

Shapes: B histories (or any positions), C candidates, P places, D width.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.layers import gate_layers
from castpoi.model.terms.base import ScoreInputs
from castpoi.model.terms.distance import DistanceGate


class ReaderForecast(nn.Module):
    """Predicts the reader's term; no gradient reaches the places."""

    def __init__(self, *, config: ModelConfig, distances: DistanceBuckets) -> None:
        super().__init__()
        self.project = nn.Linear(config.width, config.width)
        nn.init.zeros_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        self.popularity = nn.Parameter(torch.zeros(distances.places))
        self.distance = DistanceGate(config=config, distances=distances)
        self.known = gate_layers(width=config.width, weights=1)

    def forward(
        self, inputs: ScoreInputs, is_known: Tensor, candidates: Tensor | None = None
    ) -> Tensor:
        """The forecast for all places, or for each history's candidates.

        `is_known` is that of the inputs. [B, P], [B, C] -> [B, P] or [B, C]
        """
        vectors = inputs.table.vectors[1:].detach()  # [P, D]
        projected, known = self.project(inputs.state), self.known(inputs.state)  # [B, D], [B, 1]
        if candidates is None:
            scores = torch.addmm(self.popularity, projected, vectors.mT)  # [B, P]
            self.distance.add_to_(
                scores, self.distance.compact(inputs), self.distance.index(inputs)
            )
            return scores.addcmul_(known, is_known)
        own = F.embedding(candidates, vectors)  # [B, C, D]
        scores = (own @ projected.unsqueeze(2)).squeeze(2) + self.popularity[candidates]  # [B, C]
        nearness = self.distance.at(inputs, candidates)
        return scores + nearness + known * is_known.gather(1, candidates)
