"""Sparse matrices, row by row, for counting methods.

Shapes: R rows, P columns, N entries, K chosen rows, V entries of one vector.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import slices
from castpoi.core.arrays import Numbers

Weights = NDArray[Any]


class Rows(NamedTuple):
    """A sparse matrix: the entries of row r are the slice bounds[r]:bounds[r + 1]."""

    bounds: Numbers  # [R + 1]
    column: Numbers  # ascending within a row [N]
    weight: Weights  # [N]

    @classmethod
    def of(cls, row: Numbers, column: Numbers, weight: Weights, *, shape: tuple[int, int]) -> Self:
        """The matrix with these entries; weights of one row and column are summed. [N] each"""
        key, inverse = np.unique(row * shape[1] + column, return_inverse=True)
        bounds = np.searchsorted(key, np.arange(shape[0] + 1) * shape[1])
        return cls(bounds, key % shape[1], np.bincount(inverse, weight, minlength=len(key)))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def transposed(self, columns: int) -> "Rows":
        """The transposed matrix."""
        row = np.repeat(np.arange(len(self)), np.diff(self.bounds))
        return Rows.of(self.column, row, self.weight, shape=(columns, len(self)))

    def entries(self, row: int) -> tuple[Numbers, Weights]:
        """Columns and weights of one row. [V], [V]"""
        own = slice(self.bounds[row], self.bounds[row + 1])
        return self.column[own], self.weight[own]

    def mixed(self, rows: Numbers, weight: Weights, *, columns: int) -> Weights:
        """The weighted sum of some rows. [K], [K] -> [P]"""
        entry, bounds = slices(self.bounds[rows], self.bounds[rows + 1])
        weights = np.repeat(weight, np.diff(bounds)) * self.weight[entry]
        return np.bincount(self.column[entry], weights, minlength=columns)

    def squared_norms(self) -> Weights:
        """The squared length of every row. [R]"""
        row = np.repeat(np.arange(len(self)), np.diff(self.bounds))
        return np.bincount(row, self.weight**2, minlength=len(self))
