"""Shared vectors: what a place is, also by its category and its neighbourhoods.

    e_c    = own_c    + sum over the traits of c of shared_t
    beta_c = own_c    + sum over the traits of c of shared_t          one number each

So places learn from their likes, and a *cold place*, one without a visit, has what it shares. In
training some places are without their own part in every step, so that the shared part alone means
something. Shared parts start at zero, where training starts as it would without them.

Shapes: P places, L traits of a place, R rows of shared vectors, D width.
"""

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from castpoi.model.batch import PADDING
from castpoi.model.traits import NO_TRAIT, PlaceTraits

FORGOTTEN_PLACES: Final = 0.1
"""Share of places that have only their shared vectors in a training step."""


@dataclass(frozen=True, kw_only=True)
class PlaceTable:
    """The vector and the popularity of every place, as they count in one step."""

    vectors: Tensor
    """[P + 1, D]"""
    popularity: Tensor
    """[P + 1]"""

    def of(self, rows: Tensor) -> Tensor:
        """The vectors of some rows. [...] -> [..., D]"""
        return F.embedding(rows, self.vectors, padding_idx=PADDING)

    def detach(self) -> "PlaceTable":
        """The same for scoring, without a way back for gradients."""
        return PlaceTable(vectors=self.vectors.detach(), popularity=self.popularity.detach())


class SharedVectors(nn.Module):
    """Adds to what places have of their own what they have in common."""

    rows: Tensor

    def __init__(self, *, places: PlaceTraits, width: int, forgotten: float) -> None:
        super().__init__()
        self.traits = places.traits
        self.forgotten = forgotten
        self.vectors = nn.Parameter(torch.zeros(places.traits.rows, width))
        self.popularity = nn.Parameter(torch.zeros(places.traits.rows))
        rows = F.pad(torch.from_numpy(places.rows), (0, 0, 1, 0), value=NO_TRAIT)  # [P + 1, L]
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, own: PlaceTable) -> PlaceTable:
        """Own and shared parts together; in training some places have only the latter."""
        if self.training and self.forgotten:
            own = self._without_some(own)
        shared = F.embedding_bag(self.rows, self.vectors, mode="sum", padding_idx=NO_TRAIT)
        popularity = F.embedding(self.rows, self.popularity.unsqueeze(1), padding_idx=NO_TRAIT)
        return PlaceTable(
            vectors=own.vectors + shared,  # [P + 1, D]
            popularity=own.popularity + popularity.sum(dim=(1, 2)),  # [P + 1]
        )

    def _without_some(self, own: PlaceTable) -> PlaceTable:
        """The same without the own part of places drawn anew for every step."""
        is_kept = torch.rand(len(own.popularity), device=own.popularity.device) >= self.forgotten
        return PlaceTable(
            vectors=own.vectors * is_kept.unsqueeze(1), popularity=own.popularity * is_kept
        )
