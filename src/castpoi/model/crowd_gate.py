"""The crowd gate: what the crowd counts where the user has no visits of their own.

    kappa_u(c) = w(h_u) . [ likeness of c to the last places, people who went to c ]

for places that the history does not know, and zero for those it does, which are the revisit
gate's. The features are counted (`crowd.py`). The paper has no such gate.

Shapes: B histories (or any positions), P places, D width.
"""

from typing import Final

import torch
from torch import Tensor, nn

from castpoi.model.config import ModelConfig
from castpoi.model.crowd import LAST_VISITS, Crowd
from castpoi.model.gate_layers import gate_layers

_FEATURES: Final = 2


class CrowdGate(nn.Module):
    """Weighs what the crowd does by the state of the user."""

    def __init__(self, *, config: ModelConfig, places: int) -> None:
        super().__init__()
        self.crowd = Crowd(places=places, likest=config.likest_places)
        self.weigh = gate_layers(
            width=config.width, inner_width=config.gate_width, weights=_FEATURES
        )

    def forward(
        self, state: Tensor, visited: Tensor, known: Tensor, own: Tensor | None = None
    ) -> Tensor:
        """What every place gains.

        [B, D]; rows of visits, the last one last [B, T]; where a place is known: history * P +
        place [E]; places to take this person out of [B, P + 1] or none -> [B, P]
        """
        with torch.no_grad():
            last = visited[:, -LAST_VISITS:].flip(1)
            alike = self.crowd.alike(last, own)  # [B, P]
            told = torch.stack([alike, self.crowd.breadth(own).expand(alike.shape)], dim=1)
            is_new = torch.ones_like(alike)
            is_new.view(-1)[known] = 0.0
            told *= is_new.unsqueeze(1)  # [B, 2, P]
        gain: Tensor = torch.bmm(self.weigh(state).unsqueeze(1), told).squeeze(1)
        return gain
