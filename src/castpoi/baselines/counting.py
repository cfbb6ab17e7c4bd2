"""Baselines that are counted, not trained: what they may count, and how they are saved.

Shapes: B histories, P places, C candidates, S scored (history, place) pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins

_KNOWN_BEFORE: Final = {
    record.TEST: (record.TRAIN, record.VALIDATION),
    record.VALIDATION: (record.TRAIN,),
}


def parts_before(part: str) -> tuple[str, ...]:
    """The splits that may be counted to predict `part`."""
    if part not in _KNOWN_BEFORE:
        raise BadInput(f"part '{part}' cannot be predicted; choose {' or '.join(_KNOWN_BEFORE)}")
    return _KNOWN_BEFORE[part]


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
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if name not in self.arrays}

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Its counts, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    @classmethod
    def restore(cls, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The ranker with this config and these arrays."""
        values = {**config, **arrays}
        return cls(**{each.name: values[each.name] for each in fields(cls)})


@dataclass(frozen=True, kw_only=True)
class PopularityRanker(CountedRanker):
    """A counting baseline that stores the check-ins of every place."""

    popularity: NDArray[np.int64]
    """Known check-ins of each place. [P]"""

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

    def over(
        self, background: NDArray[np.float32], candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Scores of all places or of the candidates; other pairs have the background. [P]"""
        if candidates is None:
            return self._fill(background, self.owner, self.place, self.score)
        distinct, back = np.unique(candidates, return_inverse=True)
        column_of = np.full(len(background), -1, dtype=np.int64)
        column_of[distinct] = np.arange(len(distinct))
        column = column_of[self.place]
        kept = column >= 0
        scores = self._fill(background[distinct], self.owner[kept], column[kept], self.score[kept])
        return scores[:, back]

    def _fill(
        self,
        background: NDArray[np.float32],
        owner: NDArray[np.int64],
        column: NDArray[np.int64],
        score: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        scores = np.empty((self.histories, len(background)), dtype=np.float32)
        scores[:] = background
        scores[owner, column] = score
        return scores


def count_pairs(
    owner: NDArray[np.int64], place: NDArray[np.int64], *, places: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Each distinct (history, place) pair in ascending order, and its count. [S], [S], [S]"""
    pairs, counts = np.unique(owner * places + place, return_counts=True)
    return pairs // places, pairs % places, counts
