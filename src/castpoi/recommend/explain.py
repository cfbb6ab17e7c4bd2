"""Explanations: the terms of a score, the visits that contribute to it, and counterfactuals.

The *counterfactual* of a visit is the score of a place after the same history without the visit,
encoded and scored again. It needs only `encode` and `score`, so every method can be explained. The
*loss* of a visit is how much the score falls without it. Without attention, the weight of a visit
is its share of the losses of a few visits: the last ones, and the latest to each candidate. On
Gowalla California 12 of the last 50 visits have 80 % of all losses, and 93 % of the largest ones.
With attention, the weight of a visit is its share of the attention, mean over heads and layers.

The counterfactuals of a history are one batch, whose scores differ from those of each history
alone by float rounding.

Shapes: B histories, C candidates, T slots of the attention window, V visits left out.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.methods.ranker import Explains, Ranker

VISITS_SHOWN: Final = 5  # maximum number of visits that explain one recommendation
LAST_VISITS: Final = 50  # only these last visits have counterfactuals
COUNTERFACTUALS: Final = 12
"""Maximum number of counterfactuals of a history; bounds the cost of an explanation."""

_ALWAYS: Final = 2  # last visits with a counterfactual, whatever their places
_ROUNDING: Final = 1e-4  # smaller losses may come from the order of float32 sums
_TINY: Final = np.finfo(np.float32).tiny

ScoresWithout = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Scores of the chosen places of one history without each of some visits. [V] -> [V, C]"""


class VisitContribution(NamedTuple):
    """A visit that contributes to the score of a candidate."""

    visit: int  # index in the history, oldest 0
    weight: float
    score_without: float


class Explanation(NamedTuple):
    """Why a candidate has its score."""

    terms: dict[str, float] | None  # they sum to the score; None: the scores have no terms
    visits: tuple[VisitContribution, ...]  # highest weight first


def explain(
    ranker: Ranker[Any],
    state: Any,
    histories: Sequence[Histories],
    chosen: Sequence[NDArray[np.int64]],
    scores: Sequence[NDArray[np.float32]],
    log_popularity: NDArray[np.float32],
) -> list[list[Explanation]]:
    """Explain the scores of the chosen places of each history. B, B of [C], B of [C]

    `state` is the encoding of all histories; None if all are empty, where the score is the
    popularity of the place.
    """
    if state is None:
        names = ranker.terms if isinstance(ranker, Explains) else ()
        none = dict.fromkeys(names, 0.0)
        return [
            [Explanation(none | {"popularity": score}, ()) for score in row.tolist()]
            for row in scores
        ]
    values, attention = _terms_and_attention(ranker, state, chosen)
    explained = []
    for row, (history, places, score) in enumerate(zip(histories, chosen, scores, strict=True)):
        count = len(history.place)
        without = partial(_scores_without, ranker, history, places, log_popularity)
        if attention is None:
            visits = _most_missed(score, _visits_to_leave_out(history.place, places), without)
        else:
            visits = _most_attended(attention[row, : len(places)], count, without)
        terms = _terms(values, row, score)
        explained.append([Explanation(*pair) for pair in zip(terms, visits, strict=True)])
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


def _scores_without(
    ranker: Ranker[Any],
    history: Histories,
    places: NDArray[np.int64],
    log_popularity: NDArray[np.float32],
    visits: NDArray[np.int64],
) -> NDArray[np.float64]:
    """The scores of places after a history without each of the visits, as one batch. [V, C]"""
    if len(history.place) == 1:  # what is left is an empty history, scored by popularity
        return log_popularity[None, places].astype(np.float64)
    fewer = Histories.concat([history.without(visit) for visit in visits.tolist()])
    return ranker.score(ranker.encode(fewer), places).astype(np.float64)


def _visits_to_leave_out(
    visited: NDArray[np.int64], candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The last visits, then the latest to each candidate in turn, then others. [T], [C] -> [V]"""
    recent = np.arange(len(visited))[-LAST_VISITS:][::-1]  # the latest first
    turn = np.full(len(recent), len(visited))  # how many later visits there are to the same place
    for candidate in candidates.tolist():
        there = np.flatnonzero(visited[recent] == candidate)
        turn[there] = np.arange(len(there))
    turn[:_ALWAYS] = -1
    return np.sort(recent[np.argsort(turn, kind="stable")[:COUNTERFACTUALS]])


def _most_missed(
    scores: NDArray[np.float32], visits: NDArray[np.int64], scores_without: ScoresWithout
) -> list[tuple[VisitContribution, ...]]:
    """The visits without which each score falls most; visits that lower it are left out."""
    lower = scores_without(visits)  # [V, C]
    losses = (scores - lower).T  # [C, V]
    losses[losses <= _ROUNDING] = 0.0
    weights = losses / np.maximum(losses.sum(axis=1, keepdims=True), _TINY)
    return [_highest(own, visits, each) for own, each in zip(weights, lower.T, strict=True)]


def _most_attended(
    attention: NDArray[np.float32], count: int, scores_without: ScoresWithout
) -> list[tuple[VisitContribution, ...]]:
    """The visits with the most attention of each candidate. [C, T]"""
    slots = min(count, attention.shape[1])
    weights = attention[:, attention.shape[1] - slots :]  # [C, slots]
    # the sum is below 1 if a candidate uses null attention
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), _TINY)
    best = np.argsort(-weights[:, ::-1], axis=1, kind="stable")  # of equal weights the later
    used = np.unique(slots - 1 - best[:, :VISITS_SHOWN])  # [V]
    visits = count - slots + used
    lower = scores_without(visits)  # [V, C]
    own_weights = weights[:, used]  # [C, V]
    return [_highest(own, visits, each) for own, each in zip(own_weights, lower.T, strict=True)]


def _highest(
    weights: NDArray[Any], visits: NDArray[np.int64], scores_without: NDArray[np.float64]
) -> tuple[VisitContribution, ...]:
    """The visits of a candidate with the highest weights; of equal ones the later. [V] each"""
    order = np.lexsort((-visits, -weights))[:VISITS_SHOWN]
    return tuple(
        VisitContribution(int(visits[each]), float(weights[each]), float(scores_without[each]))
        for each in order
        if weights[each] > 0.0
    )
