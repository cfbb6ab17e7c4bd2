"""Vectors and popularity of places.

A place is its number, 0 to P - 1; an empty slot is NO_PLACE. Only the table of vectors has a row
for it, the first one: the row of a place is its number plus one.

Shapes: P places, D width.
"""

from dataclasses import dataclass
from typing import Final

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

NO_PLACE: Final = -1
"""Place number of an empty slot."""

WEIGHTS_OF_PLACES: Final = frozenset({"place.weight", "popularity", "forecast.popularity"})
"""Weights of a model whose last rows are those of its places; a row before is of NO_PLACE."""


@dataclass(frozen=True, kw_only=True)
class PlaceTable:
    """The vector and the popularity of every place in one step; the first row is padding."""

    vectors: Tensor  # [P + 1, D]
    popularity: Tensor  # [P + 1]

    def __len__(self) -> int:
        return len(self.popularity) - 1

    def of(self, places: Tensor) -> Tensor:
        """The vectors of places, zero for NO_PLACE. [...] -> [..., D]"""
        return F.embedding(places + 1, self.vectors, padding_idx=0)

    def detach(self) -> "PlaceTable":
        """The same without gradients."""
        return PlaceTable(vectors=self.vectors.detach(), popularity=self.popularity.detach())
