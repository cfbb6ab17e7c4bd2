"""Counting methods with settings, and the sparse matrices that they count in.

One pass over the train split; settings are chosen on validation.

Shapes: B histories, P places, C candidates, R rows, N entries, K chosen rows, V entries of one
vector.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.counting import CountedRanker
from castpoi.checkins.trajectory import Histories, slices
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.config import Config


@dataclass(frozen=True, kw_only=True)
class LearnedCounts(CountedRanker):
    """A method that scores all places of one history at a time."""

    config_class: ClassVar[type[Config]]
    """Class of its settings, whose defaults were found on validation (docs/baselines.md)."""

    places: int  # P
    settings: Mapping[str, Any]
    training: Mapping[str, Any] = field(default_factory=dict)  # summary, for the record

    @classmethod
    @abstractmethod
    def learn(cls, visits: Histories, *, places: int, config: Any) -> Self:
        """Count the train visits of every user, one history each."""

    @abstractmethod
    def scores_of(self, history: Histories) -> Floats:
        """The score of every place after one history, which has visits. [P]"""

    @cached_property
    def _config(self) -> Any:
        return self.config_class.from_dict(self.settings)

    def encode(self, histories: Histories) -> NDArray[np.float32]:
        """The scores of all places; equal ones after an empty history. [B, P]"""
        scores = np.zeros((len(histories), self.places), dtype=np.float32)
        for number in np.flatnonzero(histories.lengths > 0).tolist():
            visits = slice(histories.bounds[number], histories.bounds[number + 1])
            history = Histories.of_one(
                place=histories.place[visits],
                at_us=histories.at_us[visits],
                offset_minutes=histories.offset_minutes[visits],
            )
            scores[number] = self.scores_of(history)
        return scores

    def score(
        self, encoded: NDArray[np.float32], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        return encoded if candidates is None else encoded[:, candidates]


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
