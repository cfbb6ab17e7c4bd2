"""Explanations: the terms of a score, the visits that contribute to it, and counterfactuals.

The *counterfactual* of a visit is the score of a place after the same history without the visit,
encoded and scored again. Without attention, the weight of a visit is its share of what the score
would lose without each of the last visits. So every method can be explained: a counterfactual
needs only `encode` and `score`. With attention, the weight of a visit is its share of the
attention, mean over heads and layers.

The counterfactuals of a history are one batch, whose scores differ from those of each history
alone by float rounding.

Shapes: B histories, C candidates, T slots of the attention window, V visits left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.methods.ranker import Explains, Ranker, abilities_of
from castpoi.recommend.recommendation import WeighedBy

VISITS_SHOWN: Final = 5
"""The maximal number of visits that explain one recommendation."""
LAST_VISITS: Final = 50
"""Counterfactuals are computed for this many last visits; bounds the cost of a long history."""

_ROUNDING: Final = 1e-4  # smaller losses may come from the order of float32 sums


@dataclass(frozen=True, kw_only=True)
class VisitContribution:
    """A visit that contributes to the score of a candidate."""

    visit: int
    """Index in the history, oldest 0."""
    weight: float
    score_without: float


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a candidate has its score."""

    terms: dict[str, float] | None
    """They sum to the score; None for methods whose scores have no terms."""
    visits: tuple[VisitContribution, ...]
    """Highest weight first."""


def weighed_by(ranker: Ranker[Any]) -> WeighedBy:
    """The meaning of the weights of visits."""
    return "attention" if abilities_of(ranker).has_reader else "counterfactual"


def terms_of_popularity(ranker: Ranker[Any], score: float) -> dict[str, float]:
    """The terms after an empty history, where the score is the popularity of the place."""
    names = ranker.terms if isinstance(ranker, Explains) else ()
    return dict.fromkeys(names, 0.0) | {"popularity": score}


def explain(
    ranker: Ranker[Any],
    state: Any,
    histories: Sequence[Histories],
    chosen: Sequence[NDArray[np.int64]],
    scores: Sequence[NDArray[np.float32]],
    log_popularity: NDArray[np.float32],
) -> list[list[Explanation]]:
    """Explain the scores of the chosen places of each history. B, B of [C], B of [C]

    `state` is the encoding of all histories, none of which is empty.
    """
    values, attention = _terms_and_attention(ranker, state, chosen)
    explained = []
    for row, (history, places, score) in enumerate(zip(histories, chosen, scores, strict=True)):
        without = _Counterfactuals(ranker, history, places, log_popularity)
        if attention is None:
            visits = _most_missed(score, without)
        else:
            visits = _most_attended(attention[row, : len(places)], without)
        terms = _terms(values, row, score)
        explained.append(
            [Explanation(terms=own, visits=named) for own, named in zip(terms, visits, strict=True)]
        )
    return explained


def _terms_and_attention(
    ranker: Ranker[Any], state: Any, chosen: Sequence[NDArray[np.int64]]
) -> tuple[Mapping[str, NDArray[np.float32]] | None, NDArray[np.float32] | None]:
    """The terms [B, C] and the attention [B, C, T] of the chosen places, where there are any."""
    if not isinstance(ranker, Explains):
        return None, None
    longest = max(map(len, chosen))
    padded = [np.append(own, np.repeat(own[:1], longest - len(own))) for own in chosen]
    candidates = np.stack(padded)  # [B, C]
    return ranker.term_values(state, candidates), ranker.attention(state, candidates)


def _terms(
    values: Mapping[str, NDArray[np.float32]] | None, row: int, scores: NDArray[np.float32]
) -> list[dict[str, float] | None]:
    """The terms of each score of a history; the first term takes the rounding of the sum."""
    if values is None:
        return [None] * len(scores)
    found: list[dict[str, float] | None] = []
    first, *others = values
    for column, score in enumerate(scores.tolist()):
        own = {name: float(values[name][row, column]) for name in others}
        found.append({first: score - sum(own.values())} | own)
    return found


class _Counterfactuals:
    """Scores of the chosen places of one history without some of its visits."""

    def __init__(
        self,
        ranker: Ranker[Any],
        history: Histories,
        places: NDArray[np.int64],
        log_popularity: NDArray[np.float32],
    ) -> None:
        self.ranker = ranker
        self.history = history
        self.places = places
        self.log_popularity = log_popularity

    def scores(self, visits: NDArray[np.int64]) -> NDArray[np.float64]:
        """The scores of all places without each of the visits, as one batch. [V] -> [V, C]"""
        if len(self.history.place) == 1:  # as for every empty history, popularity is left
            return self.log_popularity[None, self.places].astype(np.float64)
        fewer = Histories.concat([self.history.without(visit) for visit in visits.tolist()])
        scores = self.ranker.score(self.ranker.encode(fewer), self.places)  # [V, C]
        return scores.astype(np.float64)


def _most_missed(
    scores: NDArray[np.float32], without: _Counterfactuals
) -> list[tuple[VisitContribution, ...]]:
    """The visits without which each score falls most; a visit that raises a score is not one."""
    count = len(without.history.place)
    visits = np.arange(max(0, count - LAST_VISITS), count)
    lower = without.scores(visits)  # [V, C]
    losses = scores - lower  # [V, C]
    losses[losses <= _ROUNDING] = 0.0
    totals = losses.sum(axis=0)  # [C]
    found = []
    for loss, total, score in zip(losses.T, totals.tolist(), lower.T, strict=True):
        order = np.lexsort((-visits, -loss))[:VISITS_SHOWN]  # of equal losses the later visit
        found.append(
            tuple(
                VisitContribution(
                    visit=int(visits[each]),
                    weight=float(loss[each]) / total,
                    score_without=float(score[each]),
                )
                for each in order.tolist()
                if loss[each] > 0.0
            )
        )
    return found


def _most_attended(
    attention: NDArray[np.float32], without: _Counterfactuals
) -> list[tuple[VisitContribution, ...]]:
    """The visits with the most attention of each candidate. [C, T]"""
    count = len(without.history.place)
    slots = min(count, attention.shape[1])
    weights = attention[:, attention.shape[1] - slots :]  # [C, slots]
    given = weights.sum(axis=1, keepdims=True)  # below 1 if a candidate uses null attention
    weights = weights / np.maximum(given, np.finfo(weights.dtype).tiny)
    order = [np.lexsort((-np.arange(slots), -own))[:VISITS_SHOWN] for own in weights]
    used = np.unique(np.concatenate(order))  # [V]
    lower = without.scores(count - slots + used)  # [V, C]
    return [
        tuple(
            VisitContribution(
                visit=count - slots + slot,
                weight=float(weights[column, slot]),
                score_without=float(lower[np.searchsorted(used, slot), column]),
            )
            for slot in own.tolist()
        )
        for column, own in enumerate(order)
    ]
