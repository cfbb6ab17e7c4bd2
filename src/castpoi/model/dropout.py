"""Dropout at a fraction of the usual price on a CPU.

Drawing random numbers one by one costs more than the products around it. Here one random number of
64 bits decides the fate of eight values, so the rate is kept to the nearest 256th.
"""

from typing import Final

import torch
from torch import Tensor, nn

_LEVELS: Final = 256


class Dropout(nn.Module):
    """Forgets each value with the same chance while training and scales up the others."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.forgotten = min(round(rate * _LEVELS), _LEVELS - 1)

    def forward(self, x: Tensor) -> Tensor:
        """The same values, some of them forgotten. [...] -> [...]"""
        if not self.training or not self.forgotten:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.forgotten / _LEVELS)
        draws = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(-(2**63), None)
        fate = draws.view(torch.uint8)[: x.numel()].view(x.shape)  # even over 0..255
        # bytes to 0 or 1 by a clamp, as torch is slow to multiply by truth values
        is_kept = fate.clamp_(self.forgotten - 1, self.forgotten).sub_(self.forgotten - 1)
        return x * (is_kept * (_LEVELS / (_LEVELS - self.forgotten)))
