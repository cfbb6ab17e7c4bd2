"""Training windows: all positions of a stretch of a trajectory learn at once.

With relative positions the state after a visit is the same wherever its window begins, if it begins
early enough, so one pass of the backbone over a window of 100 visits gives the states of all of
them. A trajectory is cut into strides of 50 visits (`ModelConfig.window`); a window holds one
stride, whose visits learn, and the stride before it, which they only look back at. So every target
after the first 50 has the 50 visits before it in its window.

With more than one layer that is not early enough: a state looks back 50 visits in each, 99 in two,
and the reader reads the states of 50 visits. A target here has states that reach back to the
beginning of its window, 50 to 99 visits; in evaluation, which reads 148
(`ModelConfig.visits_read`), all of them are whole.

    visits    0 ........ 49 50 ....... 99 100 ...... 149
    window 0  learn ──────▶
    window 1  look back     learn ──────▶
    window 2                look back     learn ───────▶

Shapes: N visits laid end to end, E (visit, known place) pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.known_pairs import most_visited
from castpoi.model.revisit_features import Pairs, revisit_features
from castpoi.training.returns import Returns
from castpoi.training.train_part import user_begin


@dataclass(frozen=True, kw_only=True)
class TrainWindow:
    """Visits begin:end of the train part; those from `learn` on foretell the visit after them."""

    begin: int
    learn: int
    end: int


def cut_windows(histories: Histories, stride: int) -> list[TrainWindow]:
    """Windows in which every visit that has a successor learns exactly once."""
    windows = []
    for first, last in zip(histories.bounds[:-1], histories.bounds[1:] - 1, strict=True):
        # the last train visit has no successor in train
        for learn in range(int(first), int(last), stride):
            begin = max(int(first), learn - stride)
            end = min(learn + stride, int(last))
            windows.append(TrainWindow(begin=begin, learn=learn, end=end))
    return windows


@dataclass(frozen=True, kw_only=True)
class KnownPlaces:
    """Which places each visit's history knows, itself included, and how often and recently.

    The features of the revisit gate for all positions at once: pairs of position p are the slice
    bounds[p]:bounds[p + 1].
    """

    bounds: NDArray[np.int64]
    """[N + 1]"""
    place: NDArray[np.int32]
    """[E]"""
    features: NDArray[np.float32]
    """What the revisit gate is told of the pair, see `model/revisit_features.py`. [E, F]"""
    home: NDArray[np.int64]
    """The most visited place of every position; of several, the latest. [N]"""


def known_places(
    histories: Histories,
    window: int,
    points: NDArray[np.float64] | None = None,
    *,
    known_time: bool = False,
) -> KnownPlaces:
    """Count the known places of every position.

    With habits, where `points` are given: all places on the unit sphere. [P, 3] If the time is
    known, habits are asked for the moment of the visit that follows.

    A visit is the last one to its place from its own position to the one before the next visit
    there (or until it leaves the window), so each visit is laid out over that stretch once.
    """
    user_end = np.repeat(histories.bounds[1:], histories.lengths)  # [N]
    returns = Returns(histories)
    visit = np.arange(len(histories.place))
    stretch = np.minimum(returns.following(user_end), visit + window) - visit
    last_visit = np.repeat(visit, stretch)  # [E]
    within = np.arange(len(last_visit)) - np.repeat(np.cumsum(stretch) - stretch, stretch)
    position = last_visit + within
    order = np.argsort(position, kind="stable")
    position, last_visit = position[order], last_visit[order]
    left_behind = _left_behind(histories, returns, position, last_visit, window)
    count = returns.number[last_visit] + 1 - left_behind
    bounds = np.searchsorted(position, np.arange(len(visit) + 1))
    place = histories.place[last_visit]
    slot = window - (position - last_visit)
    pairs = Pairs(position=position, place=place, count=count, slot=slot)
    return KnownPlaces(
        bounds=bounds,
        place=place.astype(np.int32),
        features=revisit_features(histories, pairs, window, points, known_time=known_time),
        home=most_visited(bounds[:-1], place, count, slot),
    )


def _left_behind(
    histories: Histories,
    returns: Returns,
    position: NDArray[np.int64],
    last_visit: NDArray[np.int64],
    window: int,
) -> NDArray[np.int64]:
    """Visits to the pair's place that lie before the window of its position. [E]"""
    gone = np.zeros(len(position), dtype=np.int64)
    long = np.flatnonzero(position - user_begin(histories)[position] >= window)
    if not len(long):
        return gone
    ids, wanted = returns.id[returns.order], returns.id[last_visit[long]]
    # visits of one user to one place stand together in time order: count those before the window
    span = np.int64(len(ids) + 1)
    before = np.searchsorted(
        ids * span + returns.order, wanted * span + position[long] - window + 1
    )
    gone[long] = before - np.searchsorted(ids, wanted)
    return gone
