"""The revisit gate: how much past visits to a candidate count for this user, now.

    rho_u(c) = w(h_u) . [ log(1 + visits), recency, visited ]        and six more if they are rich

The features (`revisit_features.py`) are counted, not learned; they are zero for places the
history does not know, so only the known ones are kept.

Shapes: B histories (or any positions), E (history, place) pairs, F features, P places, D width.
"""

import torch
from torch import Tensor, nn

from castpoi.model.config import RevisitFeatures
from castpoi.model.gate_layers import gate_layers
from castpoi.model.revisit_features import FEATURES
from castpoi.model.revisits import Revisits


class RevisitGate(nn.Module):
    """Weighs return against discovery by the state of the user."""

    def __init__(
        self, *, width: int, inner_width: int, features: RevisitFeatures = "paper"
    ) -> None:
        super().__init__()
        self.weigh = gate_layers(width=width, inner_width=inner_width, weights=FEATURES[features])

    def forward(self, state: Tensor, revisits: Revisits) -> Tensor:
        """What each known place gains. [B, D], E pairs -> [E]"""
        weights: Tensor = self.weigh(state)  # [B, F]
        return (weights[revisits.owner] * revisits.features).sum(dim=-1)

    def spread(self, state: Tensor, revisits: Revisits, places: int) -> Tensor:
        """The same laid out over all rows, zero where nothing is known. [B, D] -> [B, P + 1]"""
        gain = torch.zeros(len(state), places + 1, dtype=state.dtype, device=state.device)
        return gain.index_put((revisits.owner, revisits.row), self(state, revisits))
