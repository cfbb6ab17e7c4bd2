"""Ranks: at which position does a ranker put the place that was visited next?

Ties share their rank (mid-rank): rank = 1 + places strictly better + places tied / 2, where the
target is not tied with itself. So no order of the vocabulary can flatter a method, and a method
that scores all places alike gets the middle rank. Mid-ranks may end in .5.

Shapes: B histories, P places.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Trajectories
from castpoi.core.errors import BadScores
from castpoi.core.progress import Progress, Silence
from castpoi.methods.ranker import Ranker, abilities_of

BLOCK_BYTES: Final = 16 * 2**20
"""Scores held at a time. Blocks that stay near the processor's cache are also the quickest."""


def rank_targets(
    ranker: Ranker[Any],
    trajectories: Trajectories,
    rows: NDArray[np.int64],
    *,
    method: str,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """The rank of each target among all places, given what its user did before. [len(rows)]"""
    ranks = np.empty(len(rows), dtype=np.float64)
    start = 0
    for scores, targets in scored_blocks(
        ranker, trajectories, rows, method=method, block_bytes=block_bytes, progress=progress
    ):
        ranks[start : start + len(targets)] = mid_ranks(scores, targets, method=method)
        start += len(targets)
    return ranks


def scored_blocks(
    ranker: Ranker[Any],
    trajectories: Trajectories,
    rows: NDArray[np.int64],
    *,
    method: str,
    block_bytes: int = BLOCK_BYTES,
    progress: Progress | None = None,
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Scores of all places and the place visited next, some targets at a time. [B, P], [B]

    Histories are scored in blocks, so that memory does not grow with their number. When a target
    was is told to no ranker but one that says it knows the time.
    """
    abilities = abilities_of(ranker)
    step = max(1, block_bytes // (np.dtype(np.float32).itemsize * ranker.places))
    with (progress or Silence()).task(f"ranking with {method}", total=len(rows)) as task:
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            histories = trajectories.histories_before(
                block, known_time=abilities.needs_next_time, most=abilities.most_visits
            )
            scores = ranker.score(ranker.encode(histories))
            _check_shape(scores, (len(block), ranker.places), method)
            yield scores, trajectories.place[block]
            task.advance(len(block))


def mid_ranks(
    scores: NDArray[np.float32], targets: NDArray[np.int64], *, method: str = "the ranker"
) -> NDArray[np.float64]:
    """The mid-rank of one target a row. [B, P], [B] -> [B]"""
    finite = np.isfinite(scores)
    if not finite.all():
        raise BadScores(
            f"{method} gave {finite.size - int(finite.sum()):,} scores that are not finite numbers "
            f"(of {finite.size:,} for {len(scores):,} histories), and these cannot be ranked; "
            "train it again and look into the log of its run for a loss that diverged"
        )
    own = np.take_along_axis(scores, targets[:, None], axis=1)  # [B, 1]
    better = np.count_nonzero(scores > own, axis=1)  # [B]
    tied = np.count_nonzero(scores == own, axis=1) - 1  # [B]
    ranks: NDArray[np.float64] = 1.0 + better + tied / 2
    return ranks


def _check_shape(scores: NDArray[np.float32], expected: tuple[int, int], method: str) -> None:
    if scores.shape != expected:
        raise BadScores(
            f"{method} gave scores of shape {scores.shape}, but {expected[0]:,} histories x "
            f"{expected[1]:,} places need {expected}; mend its `score`"
        )
