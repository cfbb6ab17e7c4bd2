"""Scores of all places after a batch of histories: exact, or with a shortlist in large cities.

A model of very many places without a reader finds the best ones with an index (`FoundScores`).

With a shortlist, the reader scores only the most promising places: the best allowed places by all
other terms and the forecast of the reader. The reader's term of the other places is estimated from
places spread evenly over the vocabulary; the estimate only enters the sum under the softmax.

Shapes: B histories, P places, S places of the shortlist, E evenly spread places, N (history, place)
pairs, K best places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import k_best, log_sum_exp
from castpoi.core.errors import BadInput, BadScores
from castpoi.methods.ranker import Found, Ranker, Shortlists

Shortlist = int | Literal["all"]
"""Number of places that the reader scores, or all of them."""
SHORTLIST: Final = 384
"""Shortlist of large cities; it finds 99.7 % of the exact ten best in New York."""
EXACT_UP_TO: Final = 2_000
"""Smaller vocabularies are scored exactly by default."""

_EVENLY_SPREAD: Final = 64


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of all places after each history of a batch."""

    score: NDArray[np.float32]  # [B, P]
    is_eligible: NDArray[np.bool_]  # which places are allowed and scored exactly [B, P]

    def check_finite(self) -> None:
        """Raise BadScores if any score is NaN or infinite."""
        _check_finite(self.score)

    def of(self, history: int | NDArray[np.int64], places: NDArray[np.int64]) -> Any:
        """The scores of some places of one or many histories. [N]"""
        return self.score[history, places]

    def best(self, history: int, k: int) -> NDArray[np.int64]:
        """The k best eligible places, best first; equal scores by place number."""
        numbers = np.flatnonzero(self.is_eligible[history])
        return numbers[k_best(self.score[history, numbers], k)]

    def best_by_group(
        self, history: int, k: int, *, group: NDArray[np.int64], most: int
    ) -> NDArray[np.int64]:
        """The same with at most this many places of one group; -1 is no group. [P] -> [K]"""
        ranked = self.best(history, len(group))
        groups = group[ranked]
        order = np.argsort(groups, kind="stable")  # by group, then by rank
        in_order = groups[order]
        place_in_group = np.arange(len(order)) - np.searchsorted(in_order, in_order)
        is_kept = np.empty(len(order), dtype=np.bool_)
        is_kept[order] = (place_in_group < most) | (in_order < 0)
        return ranked[is_kept][:k]

    def probability(
        self, history: int | NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Softmax over all places of the vocabulary, for some places of one or many histories."""
        score = self.score[history, places].astype(np.float64)
        share: NDArray[np.float64] = np.exp(score - self._log_total[history])
        return np.minimum(share, 1.0)

    @cached_property
    def _log_total(self) -> NDArray[np.float64]:
        return log_sum_exp(self.score)


@dataclass(frozen=True)
class FoundScores:
    """Scores of the best places only, found with an index."""

    found: Sequence[Found]  # of each history

    def check_finite(self) -> None:
        """Raise BadScores if any score is NaN or infinite."""
        _check_finite(np.array([each.log_total for each in self.found]))

    def best(self, history: int, k: int) -> NDArray[np.int64]:
        """The k best places, best first."""
        return self.found[history].place[:k]

    def of(self, history: int | NDArray[np.int64], places: NDArray[np.int64]) -> Any:
        """The scores of some places that were found. [N]"""
        rows = np.broadcast_to(history, places.shape).tolist()
        pairs = zip(rows, places.tolist(), strict=True)
        return np.array([self._score_of[pair] for pair in pairs], dtype=np.float32)

    def probability(
        self, history: int | NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Softmax over all places of the vocabulary, for some places that were found. [N]"""
        log_total = np.array([each.log_total for each in self.found])[history]
        share: NDArray[np.float64] = np.exp(self.of(history, places).astype(np.float64) - log_total)
        return np.minimum(share, 1.0)

    @cached_property
    def _score_of(self) -> dict[tuple[int, int], float]:
        return {
            (row, place): score
            for row, each in enumerate(self.found)
            for place, score in zip(each.place.tolist(), each.score.tolist(), strict=True)
        }


def _check_finite(values: NDArray[Any]) -> None:
    if not np.isfinite(values).all():
        raise BadScores(
            "the model of this run computes scores that are NaN or infinite; train it again"
        )


def shortlist_size(setting: Shortlist | None, *, places: int) -> int | None:
    """The size of the shortlist; None to score all places exactly."""
    if isinstance(setting, int) and setting < 1:
        raise BadInput(
            f"a shortlist of {setting} places is empty; give at least 1, or 'all' to score every "
            "place exactly"
        )
    if setting is None:
        setting = SHORTLIST if places > EXACT_UP_TO else "all"
    return None if setting == "all" or setting >= places else setting


def shortlist_scores(
    ranker: Ranker[Any], state: Any, is_allowed: NDArray[np.bool_], size: int
) -> Scores:
    """Exact scores of a shortlist for each history, and estimated scores elsewhere. [B, P]"""
    assert isinstance(ranker, Shortlists)
    cheap = ranker.forecast(state)  # [B, P]
    cost = np.where(is_allowed, -cheap, np.inf)
    shortlist = np.argpartition(cost, size - 1, axis=1)[:, :size]  # [B, S]
    spread = np.linspace(0, ranker.places - 1, min(_EVENLY_SPREAD, ranker.places))
    evenly = np.tile(np.unique(spread.astype(np.int64)), (len(cheap), 1))  # [B, E]
    exact = ranker.score(state, np.concatenate([shortlist, evenly], axis=1))  # [B, S + E]
    added = exact[:, size:] - np.take_along_axis(cheap, evenly, axis=1)  # [B, E]
    mean = log_sum_exp(added)[:, None] - np.log(evenly.shape[1])  # [B, 1]
    score = (cheap + mean).astype(np.float32)  # [B, P]
    np.put_along_axis(score, shortlist, exact[:, :size], axis=1)
    is_exact = np.zeros_like(is_allowed)
    np.put_along_axis(is_exact, shortlist, True, axis=1)
    return Scores(score=score, is_eligible=is_allowed & is_exact)
