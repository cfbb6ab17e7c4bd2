"""Scores of all places after a batch of histories, and the best of those that are allowed.

A learned method knows nothing about people without a past (CaST-POI never learned from an empty
history): there the scores are the log of the known check-ins, whatever the method.

Shapes: B histories, P places.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import k_best, log_sum_exp
from castpoi.core.errors import BadScores
from castpoi.methods.ranker import Ranker
from castpoi.recommend.history import History, end_to_end
from castpoi.recommend.place_book import PlaceBook


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What a batch of histories makes of all places."""

    score: NDArray[np.float32]
    """[B, P]"""
    is_eligible: NDArray[np.bool_]
    """Which places are allowed and exactly scored. [B, P]"""
    log_total: NDArray[np.float64]
    """Logarithm of the sum of exp(score) over all places. [B]"""

    def best(self, history: int, k: int) -> NDArray[np.int64]:
        """The best eligible places, best first; equal scores by place number."""
        numbers = np.flatnonzero(self.is_eligible[history])
        return numbers[k_best(self.score[history, numbers], k)]

    def probability(self, history: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Softmax over all places of the vocabulary, for some of them."""
        score = self.score[history, places].astype(np.float64)
        share: NDArray[np.float64] = np.exp(score - self.log_total[history])
        return np.minimum(share, 1.0)


class PlaceScorer:
    """Scores every place exactly, with any ranker."""

    def __init__(self, ranker: Ranker[Any], places: PlaceBook) -> None:
        self.ranker = ranker
        self.places = places

    def score(
        self,
        histories: Sequence[History],
        is_allowed: Sequence[NDArray[np.bool_]],
        k: Sequence[int],
    ) -> Scores:
        """Score all places after each history, of which the k best are asked for. B, B of [P], B

        Only allowed places are eligible, and k of them whenever there are so many.
        """
        eligible = np.stack(list(is_allowed))  # [B, P]
        score = np.tile(self.places.log_popularity, (len(histories), 1))  # [B, P]
        log_total = log_sum_exp(score)
        read = np.flatnonzero([len(history) > 0 for history in histories])
        if len(read):
            found = self.read(
                [histories[each] for each in read.tolist()], eligible[read], np.array(k)[read]
            )
            if not np.isfinite(found.score).all():
                raise BadScores(
                    "the model of this run gives scores that are no finite numbers; train it again"
                )
            score[read], log_total[read] = found.score, found.log_total
            eligible[read] = found.is_eligible
        return Scores(score=score, is_eligible=eligible, log_total=log_total)

    def read(
        self, histories: Sequence[History], is_allowed: NDArray[np.bool_], k: NDArray[np.int64]
    ) -> Scores:
        """The same for histories none of which is empty. B, [B, P], [B]"""
        score = self.ranker.score(self.ranker.encode(end_to_end(histories)))  # [B, P]
        return Scores(score=score, is_eligible=is_allowed, log_total=log_sum_exp(score))
