"""The best places after a batch of histories: exact, or with a shortlist in large cities.

With a shortlist, the reader scores only the most promising places: the best allowed places by all
other terms and the forecast of the reader. The reader's term of the other places is estimated from
places spread evenly over the vocabulary; the estimate only enters the sum under the softmax.

Shapes: B histories, P places, S places of the shortlist, E evenly spread places, K best places.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from castpoi.core.arrays import k_best, log_sum_exp
from castpoi.core.errors import BadInput, BadScores
from castpoi.methods.ranker import Found, Ranker, Shortlists

Shortlist = int | Literal["all"]  # number of places that the reader scores, or all of them
SHORTLIST: Final = 384
"""Shortlist of large cities; it finds 99.7 % of the exact ten best in New York."""
EXACT_UP_TO: Final = 2_000  # smaller vocabularies are scored exactly by default

_EVENLY_SPREAD: Final = 64


def best_places(
    score: NDArray[np.float32], is_eligible: NDArray[np.bool_], counts: Sequence[int]
) -> list[Found]:
    """The best eligible places of each history, a count each; equal scores by place number.

    [B, P], [B, P], B of k
    """
    check_finite(score)
    totals = log_sum_exp(score).tolist()
    found = []
    for own, eligible, count, total in zip(score, is_eligible, counts, totals, strict=True):
        numbers = np.flatnonzero(eligible)
        best = numbers[k_best(own[numbers], count)]  # [K]
        found.append(Found(place=best, score=own[best], log_total=total))
    return found


def with_few_of_a_group(found: Found, k: int, *, group: NDArray[np.int64], most: int) -> Found:
    """The k best with at most this many places of one group; -1 is no group. [P]"""
    groups = group[found.place]
    order = np.argsort(groups, kind="stable")  # by group, then by rank
    in_order = groups[order]
    place_in_group = np.arange(len(order)) - np.searchsorted(in_order, in_order)
    is_kept = np.empty(len(order), dtype=np.bool_)
    is_kept[order] = (place_in_group < most) | (in_order < 0)
    return replace(found, place=found.place[is_kept][:k], score=found.score[is_kept][:k])


def with_ranks(
    found: Found, score: NDArray[np.float32], is_rival: NDArray[np.bool_] | None
) -> Found:
    """The same with the rank of each place among its rivals; 0 if it is none of them. [P], [P]"""
    if is_rival is None:
        return found
    rivals = np.flatnonzero(is_rival)
    rank = np.zeros(len(score), dtype=np.int64)  # [P]
    rank[rivals[np.argsort(-score[rivals], kind="stable")]] = np.arange(1, len(rivals) + 1)
    return replace(found, rank=rank[found.place])


def check_finite(values: NDArray[Any]) -> None:
    """Raise BadScores if any score is NaN or infinite."""
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
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Exact scores of a shortlist for each history, estimated elsewhere, and which are exact.

    [B, P] -> [B, P], [B, P]
    """
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
    return score, is_allowed & is_exact
