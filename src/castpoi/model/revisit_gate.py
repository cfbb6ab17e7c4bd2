"""The revisit gate: how much past visits to a candidate count for this user, now.

    rho_u(c) = w(h_u) . f                             f = [ log(1 + visits), recency, visited ]
             + MLP( A f + B h_u + C e_c )             if it is deep (ours), f with all habits

The features (`revisit_features.py`) are counted, not learned; they are zero for places the
history does not know, so only the known ones are kept. The paper's gate weighs each of them alone:
many visits long ago and few visits lately cannot mean more together than one by one, and mean the
same at any place. Its deep part sees them together, and the place.

Shapes: B histories (or any positions), E (history, place) pairs, F features, P places, D width,
W inner width.
"""

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from castpoi.model.config import ModelConfig
from castpoi.model.gate_layers import gate_layers
from castpoi.model.revisit_features import FEATURES
from castpoi.model.revisits import Revisits

_DEEP_WIDTH: Final = 64


class RevisitGate(nn.Module):
    """Weighs return against discovery by the state of the user."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        features = FEATURES[config.revisit_features]
        self.weigh = gate_layers(width=config.width, weights=features)
        self.deep = _DeepLayers(config=config) if config.deep_revisits else None

    def forward(self, state: Tensor, revisits: Revisits, places: Tensor) -> Tensor:
        """What each known place gains. [B, D], E pairs, vectors of rows [P + 1, D] -> [E]"""
        weights: Tensor = self.weigh(state)  # [B, F]
        gain = (weights[revisits.owner] * revisits.features).sum(dim=-1)  # [E]
        return gain if self.deep is None else gain + self.deep(state, revisits, places)

    def spread(self, state: Tensor, revisits: Revisits, places: Tensor) -> Tensor:
        """The same laid out over all rows, zero where nothing is known. [B, D] -> [B, P + 1]"""
        known: Tensor = self(state, revisits, places)
        gain = torch.zeros(len(state), len(places), dtype=known.dtype, device=state.device)
        return gain.index_put((revisits.owner, revisits.row), known)


class _DeepLayers(nn.Module):
    """See what is told of a pair, the user and the place together."""

    def __init__(self, *, config: ModelConfig) -> None:
        super().__init__()
        self.told = nn.Linear(FEATURES[config.revisit_features], _DEEP_WIDTH)
        self.user = nn.Linear(config.width, _DEEP_WIDTH, bias=False)
        self.place = nn.Linear(config.width, _DEEP_WIDTH, bias=False)
        self.mix = nn.Linear(_DEEP_WIDTH, _DEEP_WIDTH)
        self.last = nn.Linear(_DEEP_WIDTH, 1, bias=False)
        nn.init.zeros_(self.last.weight)  # begins as the paper's gate

    def forward(self, state: Tensor, revisits: Revisits, places: Tensor) -> Tensor:
        """What each known place gains. [B, D], E pairs, [P + 1, D] -> [E]"""
        seen = self.told(revisits.features) + self.user(state)[revisits.owner]  # [E, W]
        seen = functional.gelu(seen + self.place(places[revisits.row]))
        mixed = functional.gelu(self.mix(seen))  # [E, W]
        gain: Tensor = self.last(mixed).squeeze(1)
        return gain
