"""Counting methods with settings: one pass over the train split; settings chosen on validation.

Shapes: B histories, P places, C candidates.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.counting import CountedRanker
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Floats
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
