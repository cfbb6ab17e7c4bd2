"""Ranks of targets among all places, and the ten best places of each history.

Ties share their rank (mid-rank): rank = 1 + places strictly better + places tied / 2, where the
target is not tied with itself. So no order of the vocabulary favours a method, and a method that
scores all places alike gets the middle rank. Mid-ranks may end in .5. Among the best places equal
scores are listed by place number, lowest first.

Shapes: B histories, P places, K best places.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Trajectories
from castpoi.core.arrays import k_best
from castpoi.core.errors import BadScores
from castpoi.core.progress import Progress, Silence
from castpoi.methods.ranker import Ranker, abilities_of

BLOCK_BYTES: Final = 16 * 2**20
"""Size of a block of scores; blocks near the size of the processor's cache are the fastest."""
TOP: Final = 10  # places listed for every target; a smaller city lists all it has


def rank_targets(
    ranker: Ranker[Any],
    trajectories: Trajectories,
    rows: NDArray[np.int64],
    *,
    method: str,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """The rank of each target among all places, given the visits before it. [len(rows)]"""
    blocks = scored_blocks(ranker, trajectories, rows, method=method, progress=progress)
    ranks = [mid_ranks(scores, targets, method=method) for scores, targets in blocks]
    return np.concatenate(ranks) if ranks else np.empty(0)


def scored_blocks(
    ranker: Ranker[Any],
    trajectories: Trajectories,
    rows: NDArray[np.int64],
    *,
    method: str,
    progress: Progress | None = None,
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Scores of all places and the target places, block by block. [B, P], [B]

    Blocks keep memory independent of the number of targets. Only a ranker that needs the time of
    the next visit receives it.
    """
    abilities = abilities_of(ranker)
    step = max(1, BLOCK_BYTES // (np.dtype(np.float32).itemsize * ranker.places))
    with (progress or Silence()).task(f"ranking with {method}", total=len(rows)) as task:
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            histories = trajectories.histories_before(
                block, known_time=abilities.needs_next_time, most=abilities.max_visits
            )
            scores = ranker.score(ranker.encode(histories))
            if scores.shape != (len(block), ranker.places):
                raise BadScores(
                    f"{method} gave scores of shape {scores.shape}, but {len(block):,} histories x "
                    f"{ranker.places:,} places need {(len(block), ranker.places)}; fix its `score`"
                )
            yield scores, trajectories.place[block]
            task.advance(len(block))


def mid_ranks(
    scores: NDArray[np.float32], targets: NDArray[np.int64], *, method: str = "the ranker"
) -> NDArray[np.float64]:
    """The mid-rank of the target of each row. [B, P], [B] -> [B]"""
    finite = np.isfinite(scores)
    if not finite.all():
        raise BadScores(
            f"{method} gave {finite.size - int(finite.sum()):,} scores that are not finite (of "
            f"{finite.size:,} for {len(scores):,} histories), which cannot be ranked; train it "
            "again, and check the log of its run for a loss that diverged"
        )
    own = np.take_along_axis(scores, targets[:, None], axis=1)  # [B, 1]
    better = np.count_nonzero(scores > own, axis=1)  # [B]
    tied = np.count_nonzero(scores == own, axis=1) - 1  # [B]
    ranks: NDArray[np.float64] = 1.0 + better + tied / 2
    return ranks


@dataclass(frozen=True, kw_only=True)
class TopPlaces:
    """The best places of each history."""

    place: NDArray[np.int64]  # best first. [B, K]
    softmax: NDArray[np.float64]  # softmax of their scores over all places. [B, K]


def top_places(scores: NDArray[np.float32]) -> TopPlaces:
    """The `TOP` best places of each history, and their softmax. [B, P] -> [B, K]"""
    best = np.stack([k_best(own, TOP) for own in scores])  # [B, K]
    highest = scores.max(axis=1, keepdims=True)  # [B, 1]
    total = np.exp(scores - highest).sum(axis=1, keepdims=True, dtype=np.float64)  # [B, 1]
    above = np.take_along_axis(scores, best, axis=1) - highest.astype(np.float64)  # [B, K]
    return TopPlaces(place=best, softmax=np.exp(above) / total)
