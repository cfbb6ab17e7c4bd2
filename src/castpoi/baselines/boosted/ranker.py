"""Boosted trees as a ranking method: LightGBM scores the candidates, popularity orders the rest.

The rest are just below the lowest candidate of the history.

A run stores the counts of all users, the places, and the trees in LightGBM's text format.

Shapes: B histories, P places, C candidates, E (history, candidate) pairs, F features.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.baselines.boosted.pairs import (
    FEATURES,
    TERMS,
    Crowd,
    Features,
    Pairs,
    Places,
    pairs_of,
)
from castpoi.baselines.counting import CountedRanker, SparseScores
from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import Numbers
from castpoi.core.errors import extra_for
from castpoi.geo.distance import unit_vectors
from castpoi.methods.ranker import check_candidates

if TYPE_CHECKING:
    from lightgbm import Booster

_TERM_NAMES: Final = list(TERMS)


def lightgbm() -> ModuleType:
    """The package LightGBM, which is an extra.

    Raises:
        BadInput: it is not installed.
    """
    with extra_for("boosted", "boosted"):
        import lightgbm
    return lightgbm


@dataclass(frozen=True, kw_only=True)
class ScoredPairs(SparseScores):
    """The scores of the candidates of each history, with their features."""

    features: Features  # [E, F]


@dataclass(frozen=True, kw_only=True)
class BoostedRanker(CountedRanker):
    """Ranks the candidates of a history by boosted trees."""

    lat: NDArray[np.float64]  # of each place in degrees [P]
    lon: NDArray[np.float64]  # [P]
    near: Numbers  # the nearest other places of each [P, N]
    category: Numbers  # number of the category; -1 for none [P]
    visits: Numbers  # the counts of `Crowd`
    people: Numbers
    move_bounds: Numbers
    move_to: Numbers
    move_count: Numbers
    trees: NDArray[np.uint8]  # LightGBM's text format
    window: int
    training: dict[str, Any] = field(default_factory=dict)  # summary, for the record

    @property
    def places(self) -> int:
        """Number of places in the vocabulary, P."""
        return len(self.lat)

    @property
    def terms(self) -> Mapping[str, str]:
        """The terms of the score by name, each with its description."""
        return TERMS

    def pairs(self, histories: Histories, own: Histories) -> Pairs:
        """The candidates of histories; counts of other users are those without `own`."""
        return pairs_of(histories, own, self._crowd, self._places, window=self.window)

    def encode(self, histories: Histories) -> ScoredPairs:
        """Score the candidates of each history."""
        pairs = self.pairs(histories, histories)
        score = np.asarray(self._booster.predict(pairs.features, raw_score=True))
        return ScoredPairs(
            histories=pairs.histories,
            owner=pairs.owner,
            place=pairs.place,
            score=score.astype(np.float32),
            features=pairs.features,
        )

    def score(
        self, encoded: ScoredPairs, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place, or candidates shared or each history's own. [B, P] or [B, C]"""
        scores = self._background + self._lowest(encoded)[:, None]  # [B, P]
        scores[encoded.owner, encoded.place] = encoded.score
        if candidates is None:
            return scores
        check_candidates(candidates, places=self.places)
        return np.take_along_axis(scores, np.atleast_2d(candidates), axis=1)  # [B, C]

    def term_values(
        self, encoded: ScoredPairs, candidates: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float32]]:
        """The terms of the score of each candidate, by TreeSHAP. [C] or [B, C] -> [B, C] each"""
        check_candidates(candidates, places=self.places)
        wanted = np.broadcast_to(candidates, (encoded.histories, candidates.shape[-1]))  # [B, C]
        values = np.zeros((len(TERMS), *wanted.shape), dtype=np.float64)  # [terms, B, C]
        values[0] = self._background[wanted] + self._lowest(encoded)[:, None]
        key = encoded.owner * self.places + encoded.place
        wanted_key = np.arange(encoded.histories)[:, None] * self.places + wanted  # [B, C]
        at = np.minimum(np.searchsorted(key, wanted_key), len(key) - 1)
        is_scored = key[at] == wanted_key
        if is_scored.any():
            features = encoded.features[at[is_scored]]
            shares = np.asarray(self._booster.predict(features, pred_contrib=True))  # [S, F + 1]
            values[:, is_scored] = _summed(shares)
        return {name: values[row].astype(np.float32) for row, name in enumerate(TERMS)}

    def attention(self, encoded: ScoredPairs, candidates: NDArray[np.int64]) -> None:
        """None: trees have no attention to visits."""

    @property
    def _crowd(self) -> Crowd:
        names = ("visits", "people", "move_bounds", "move_to", "move_count")
        return Crowd(**{name: getattr(self, name) for name in names})

    @cached_property
    def _places(self) -> Places:
        points = unit_vectors(self.lat, self.lon)
        return Places(points=points, near=self.near, category=self.category)

    @cached_property
    def _booster(self) -> "Booster":
        booster: Booster = lightgbm().Booster(model_str=self.trees.tobytes().decode())
        return booster

    @cached_property
    def _background(self) -> NDArray[np.float32]:
        """Scores of places that are no candidates, less the lowest candidate's: -1 to 0. [P]"""
        return (self.visits / (1 + self.visits.max()) - 1).astype(np.float32)

    @staticmethod
    def _lowest(encoded: ScoredPairs) -> NDArray[np.float32]:
        """The lowest score of a candidate of each history. [B]"""
        lowest = np.full(encoded.histories, np.inf, dtype=np.float32)
        np.minimum.at(lowest, encoded.owner, encoded.score)
        return lowest


def _summed(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Contributions of the features and of the mean, summed by term. [S, F + 1] -> [terms, S]"""
    of_features = [_TERM_NAMES.index(feature.term) for feature in FEATURES]
    sums = np.zeros((len(TERMS), len(shares)))
    np.add.at(sums, [*of_features, 0], shares.T)
    return sums
