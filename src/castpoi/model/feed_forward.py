"""The feed-forward part of every block of backbone and reader.

Shapes: ... any, D width, F inner width.
"""

from torch import Tensor, nn

from castpoi.model.dropout import Dropout


class FeedForward(nn.Module):
    """x + W2 ReLU(W1 x), each vector for itself."""

    def __init__(self, *, width: int, inner_width: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner_width)
        self.narrow = nn.Linear(inner_width, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Add to each vector what it says about itself. [..., D] -> [..., D]"""
        inner = self.dropout(self.widen(x).relu())  # [..., F]
        added: Tensor = x + self.narrow(inner)  # [..., D]
        return added
