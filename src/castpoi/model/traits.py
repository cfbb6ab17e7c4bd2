"""Traits: what a place has in common with others, its category and its neighbourhoods.

Each trait has a row in a table of shared vectors (`shared_vectors.py`):

    row 0                   no trait: a neighbourhood where the city has no place
    then, if the city has categories:
        1 row               places without a category, or with one that the city does not have
        1 row a category    by name
    1 row a neighbourhood   squares of the first size, then of the next

A place added later finds its rows by its point and the name of its category: it needs no visit.

Shapes: P places, L traits of a place, M neighbourhoods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.geo.distance import squares_of

Degrees = NDArray[np.float64]
Rows = NDArray[np.int64]

NEIGHBOURHOODS_KM: Final = (1.0, 5.0)
"""Sizes of the squares that are neighbourhoods."""

NO_TRAIT: Final = 0
"""Row of the table that stands for nothing in common with anybody."""

_UNKNOWN_CATEGORY: Final = 1


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The categories and neighbourhoods of a city, and their rows."""

    categories: tuple[str, ...]
    """Names; none if the city has no categories."""
    squares: Rows
    """The neighbourhoods: which size, band, column. [M, 3]"""
    sizes_km: tuple[float, ...]

    @property
    def rows(self) -> int:
        """Rows of the table of shared vectors."""
        return self._first_square + len(self.squares)

    def rows_of(self, lat: Degrees, lon: Degrees, categories: Sequence[str | None]) -> Rows:
        """The rows of the traits of places, known to the city or not. -> [P, L]"""
        columns = [self._category_rows(categories)] if self.categories else []
        for size, squares in enumerate(_squares(lat, lon, self.sizes_km)):
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

    def _category_rows(self, categories: Sequence[str | None]) -> Rows:
        first = _UNKNOWN_CATEGORY + 1
        row_of = {_folded(name): row for row, name in enumerate(self.categories, start=first)}
        rows = [row_of.get(_folded(name), _UNKNOWN_CATEGORY) for name in categories]
        return np.array(rows, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class PlaceTraits:
    """The traits of a city, and which of them each place has."""

    traits: Traits
    rows: Rows
    """[P, L]"""

    @classmethod
    def of(
        cls,
        lat: Degrees,
        lon: Degrees,
        categories: Sequence[str | None],
        sizes_km: tuple[float, ...],
    ) -> "PlaceTraits":
        """The traits that some place of the city has."""
        squares = [
            np.insert(np.unique(each, axis=0), 0, size, axis=1)  # [M of this size, 3]
            for size, each in enumerate(_squares(lat, lon, sizes_km))
        ]
        traits = Traits(
            categories=_names(categories),
            squares=np.concatenate(squares),  # [M, 3]
            sizes_km=sizes_km,
        )
        return cls(traits=traits, rows=traits.rows_of(lat, lon, categories))


def _squares(lat: Degrees, lon: Degrees, sizes_km: tuple[float, ...]) -> list[Rows]:
    """Squares of every size in which places lie. -> [P, 2] a size"""
    return [squares_of(lat, lon, size) for size in sizes_km]


def _names(categories: Sequence[str | None]) -> tuple[str, ...]:
    """The categories there are, one spelling each, in order."""
    by_folded = {_folded(name): name for name in sorted(filter(None, categories), reverse=True)}
    return tuple(sorted(name for folded, name in by_folded.items() if folded))


def _folded(category: str | None) -> str:
    """A category whatever the case of its letters."""
    return (category or "").strip().casefold()
