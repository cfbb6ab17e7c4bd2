"""Vectors and popularity of places; optionally shared by category and neighbourhood.

    e_c    = own_c    + sum over the traits of c of shared_t
    beta_c = own_c    + sum over the traits of c of shared_t          one number each

A *trait* is something that a place has in common with others: its category, or its neighbourhood of
each size. With shared vectors places learn from similar ones, and a *cold place*, one without a
visit, has the vectors of its traits. In each training step some places are used without their own
part, so that the shared part alone becomes meaningful. Shared parts start at zero.

Each trait has a row in the table of shared vectors:

    row 0                   no trait: a neighbourhood in which the city has no place
    then, if the city has categories:
        1 row               places without a category, or with one that the city does not have
        1 row a category    by name
    1 row a neighbourhood   squares of the first size, then of the next

A place is its number, 0 to P - 1; an empty slot is NO_PLACE. Only the table of vectors has a row
for it, the first one: the row of a place is its number plus one.

Shapes: P places, L traits of a place, R rows of shared vectors, M neighbourhoods, D width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.geo.distance import squares_of
from castpoi.model.layers import dropout_generator

NO_PLACE: Final = -1
"""Place number of an empty slot."""

NEIGHBOURHOODS_KM: Final = (1.0, 5.0)
"""Sizes of the squares that are neighbourhoods."""

SHARED_ONLY: Final = 0.1
"""Share of places that have only their shared vectors in a training step."""

NO_TRAIT: Final = 0
"""Row of the table of shared vectors that means no trait."""

_UNKNOWN_CATEGORY: Final = 1

Degrees = NDArray[np.float64]
Rows = NDArray[np.int64]


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


class SharedVectors(nn.Module):
    """Adds the vectors of their traits to the own vectors of places."""

    rows: Tensor

    def __init__(self, *, traits: "PlaceTraits", width: int) -> None:
        super().__init__()
        self.traits = traits
        self.forgotten = SHARED_ONLY
        self.vectors = nn.Parameter(torch.zeros(traits.row_count, width))
        self.popularity = nn.Parameter(torch.zeros(traits.row_count))
        rows = F.pad(torch.from_numpy(traits.rows), (0, 0, 1, 0), value=NO_TRAIT)  # [P + 1, L]
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, own: PlaceTable) -> PlaceTable:
        """Own and shared parts summed; in training some places have only the latter."""
        if self.training and self.forgotten:
            device = own.popularity.device
            draws = torch.rand(len(own.popularity), device=device, generator=dropout_generator())
            is_kept = draws >= self.forgotten
            own = PlaceTable(
                vectors=own.vectors * is_kept.unsqueeze(1), popularity=own.popularity * is_kept
            )
        shared = F.embedding_bag(self.rows, self.vectors, mode="sum", padding_idx=NO_TRAIT)
        popularity = F.embedding(self.rows, self.popularity.unsqueeze(1), padding_idx=NO_TRAIT)
        return PlaceTable(
            vectors=own.vectors + shared,  # [P + 1, D]
            popularity=own.popularity + popularity.sum(dim=(1, 2)),  # [P + 1]
        )


@dataclass(frozen=True, kw_only=True)
class PlaceTraits:
    """The categories and neighbourhoods of a city, and the rows of each place."""

    categories: tuple[str, ...]  # empty if the city has no categories
    squares: Rows  # the neighbourhoods: which size, band, column [M, 3]
    rows: Rows  # of the traits of each place [P, L]

    @classmethod
    def of(cls, lat: Degrees, lon: Degrees, categories: Sequence[str | None]) -> Self:
        """The traits that at least one place of the city has."""
        squares = [
            np.insert(np.unique(each, axis=0), 0, size, axis=1)  # [M of this size, 3]
            for size, each in enumerate(_squares(lat, lon))
        ]
        # one spelling of each category, in order
        by_folded = {_folded(name): name for name in sorted(filter(None, categories), reverse=True)}
        traits = cls(
            categories=tuple(sorted(name for folded, name in by_folded.items() if folded)),
            squares=np.concatenate(squares),  # [M, 3]
            rows=np.empty((0, 0), dtype=np.int64),
        )
        return replace(traits, rows=traits.rows_of(lat, lon, categories))

    @property
    def row_count(self) -> int:
        """Number of rows of the table of shared vectors."""
        return self._first_square + len(self.squares)

    def names(self) -> list[object]:
        """The trait of each row of the table of shared vectors; the same trait in every city."""
        unknown = [_UNKNOWN_CATEGORY] if self.categories else []
        return [NO_TRAIT, *unknown, *self.categories, *map(tuple, self.squares.tolist())]

    def rows_of(self, lat: Degrees, lon: Degrees, categories: Sequence[str | None]) -> Rows:
        """The rows of the traits of places, of the city or new ones. -> [P, L]"""
        columns = []
        if self.categories:
            names = enumerate(self.categories, start=_UNKNOWN_CATEGORY + 1)
            row_of = {_folded(name): row for row, name in names}
            rows = [row_of.get(_folded(name), _UNKNOWN_CATEGORY) for name in categories]
            columns.append(np.array(rows, dtype=np.int64))
        for size, squares in enumerate(_squares(lat, lon)):
            known = (self._row_of_square.get((size, *square), NO_TRAIT) for square in squares)
            columns.append(np.fromiter(known, dtype=np.int64, count=len(lat)))
        return np.stack(columns, axis=1)  # [P, L]

    @property
    def _first_square(self) -> int:
        with_categories = _UNKNOWN_CATEGORY + 1 + len(self.categories)
        return with_categories if self.categories else NO_TRAIT + 1

    @cached_property
    def _row_of_square(self) -> dict[tuple[int, ...], int]:
        squares = map(tuple, self.squares.tolist())
        return {square: row for row, square in enumerate(squares, start=self._first_square)}


def _squares(lat: Degrees, lon: Degrees) -> list[Rows]:
    """The squares of every size that contain the places. -> [P, 2] a size"""
    return [squares_of(lat, lon, size) for size in NEIGHBOURHOODS_KM]


def _folded(category: str | None) -> str:
    """A category without case and surrounding blanks."""
    return (category or "").strip().casefold()
