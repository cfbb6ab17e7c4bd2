"""The refinement head: from the user as a candidate sees them to one number.

    r(u, c) = MLP [ z ; e_c ; z * e_c ]

Shapes: B histories, C candidates, D width.
"""

import torch
from torch import Tensor, nn

from castpoi.model.dropout import Dropout


class RefinementHead(nn.Module):
    """Two layers over the reading, the candidate, and their product."""

    def __init__(self, *, width: int, dropout: float) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * width, width)
        self.activation = nn.GELU()
        self.dropout = Dropout(dropout)
        self.last = nn.Linear(width, 1)

    def forward(self, reading: Tensor, candidates: Tensor) -> Tensor:
        """The refinement of each candidate. [B, C, D], [B, C, D] -> [B, C]"""
        signals = torch.cat([reading, candidates, reading * candidates], dim=-1)  # [B, C, 3 D]
        refined: Tensor = self.last(self.dropout(self.activation(self.mix(signals))))
        return refined.squeeze(-1)
