"""From the state of a user to the weights of a gate.

Shapes: B histories (or any positions), D width, W weights.
"""

from typing import Final

from torch import nn

_INNER_WIDTH: Final = 32
_LAST_LAYER_STD: Final = 0.01


def gate_layers(*, width: int, weights: int) -> nn.Sequential:
    """Two layers whose weights start near zero, so that a gate begins almost closed. D -> W"""
    last = nn.Linear(_INNER_WIDTH, weights)
    nn.init.normal_(last.weight, std=_LAST_LAYER_STD)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(width, _INNER_WIDTH), nn.ReLU(), last)
