"""Baselines that are counted, not trained: what they may count, and how they are saved.

Shapes: B histories, P places, C candidates, S scored (history, place) pairs.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins

_SPLITS: Final = (record.TRAIN, record.VALIDATION, record.TEST)


def parts_before(part: str | None) -> tuple[str, ...]:
    """The splits that may be counted to predict `part`; all if none is held out."""
    if part is None:
        return _SPLITS
    if part not in _SPLITS[1:]:
        raise BadInput(f"split '{part}' cannot be predicted; choose test or validation")
    return _SPLITS[: _SPLITS.index(part)]


def known_rows(city: City, part: str) -> NDArray[np.int64]:
    """Rows of the city's trajectories that may be counted to predict `part`."""
    known = parts_before(part)
    rows = np.flatnonzero(
        np.isin(city.trajectories.part, [record.PARTS.index(name) for name in known])
    )
    if not len(rows):
        raise TooFewCheckins(
            f"the city has no check-ins in {' or '.join(known)}, so there is nothing to count; "
            "prepare it again from more check-ins"
        )
    return rows


def visits_per_place(city: City, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of these check-ins at each place. [P]"""
    counts = np.bincount(city.trajectories.place[rows], minlength=city.places.height)
    return counts.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class CountedRanker:
    """A ranker as a dataclass: fields that are arrays are its arrays, all others its config."""

    @property
    def config(self) -> dict[str, Any]:
        """Its settings, for JSON."""
        return {name: each for name, each in self._fields if not isinstance(each, np.ndarray)}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its counts, by name."""
        return {name: each for name, each in self._fields if isinstance(each, np.ndarray)}

    @property
    def _fields(self) -> list[tuple[str, Any]]:
        return [(each.name, getattr(self, each.name)) for each in fields(self)]

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker with this config and these arrays."""
        values = {**config, **arrays}
        return cls(**{each.name: values[each.name] for each in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class PopularityRanker(CountedRanker):
    """A counting baseline that stores the check-ins of every place."""

    popularity: NDArray[np.int64]  # known check-ins of each place [P]

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return len(self.popularity)


@dataclass(frozen=True, kw_only=True)
class SparseScores:
    """Scores of a few places for each history; of a pair that appears twice the later counts."""

    histories: int  # B
    owner: NDArray[np.int64]  # history of each score [S]
    place: NDArray[np.int64]  # [S]
    score: NDArray[np.float32]  # [S]


class SparseRanker(ABC):
    """Scores a few places of each history; all other places have the score of the background."""

    @property
    @abstractmethod
    def background(self) -> NDArray[np.float32]:
        """The score of each place for a history without a score of it. [P]"""

    def score(
        self, encoded: SparseScores, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or the candidates, for each history. [B, P] or [B, C]"""
        scores = np.tile(self.background, (encoded.histories, 1))  # [B, P]
        scores[encoded.owner, encoded.place] = encoded.score
        return scores if candidates is None else scores[:, candidates]


def count_pairs(
    owner: NDArray[np.int64], place: NDArray[np.int64], *, places: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Each distinct (history, place) pair in ascending order, and its count. [S], [S], [S]"""
    pairs, counts = np.unique(owner * places + place, return_counts=True)
    return pairs // places, pairs % places, counts
