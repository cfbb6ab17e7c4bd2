"""The habits of every prefix of every train trajectory at once; see `model/revisit_features.py`.

The visits to a place that a position counts are the last few of a run (`runs.py`) up to some
visit, so every sum over them is the difference of two running sums.

Shapes: N visits laid end to end, E (position, known place) pairs.
"""

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.model.local_clock import hour_of, is_weekend, local_us
from castpoi.model.revisit_features import FADING_US, Habits
from castpoi.training.own_moves import OwnMoves
from castpoi.training.runs import Runs

Numbers = NDArray[np.int64]
Values = NDArray[np.float64]


class HabitsAfter:
    """Habits of the histories that end with each visit, over their last `window` visits."""

    def __init__(self, histories: Histories, run: Runs, window: int) -> None:
        self.window = window
        self.at_us = histories.at_us
        self.run = run
        self.moves = OwnMoves(histories, run, window)
        local = local_us(histories)
        self.angle = hour_of(local) * (2 * np.pi / 24)
        self.is_weekend = is_weekend(local)
        self.cosines = self.run.running_sum(np.cos(self.angle))
        self.sines = self.run.running_sum(np.sin(self.angle))
        self.weekends = self.run.running_sum(self.is_weekend)
        self.fresh = fresh_visits(self.run, self.at_us)

    def of(
        self, position: Numbers, last_visit: Numbers, count: Numbers, count_here: Numbers
    ) -> Habits:
        """Habits of some pairs. [E], its last visit there [E], visits [E], visits here [E]"""
        end = self.run.slot[last_visit] + 1
        begin = end - count
        cosine, sine, weekends = (
            sums[end] - sums[begin] for sums in (self.cosines, self.sines, self.weekends)
        )
        now = self.angle[position]
        since_us = np.maximum(self.at_us[position] - self.at_us[last_visit], 0)
        same_kind = np.where(self.is_weekend[position], weekends, count - weekends)
        return Habits(
            moves=self.moves.there(position, last_visit),
            moves_from_here=count_here - 1,
            since_us=since_us,
            same_hour=(np.cos(now) * cosine + np.sin(now) * sine) / count,
            same_kind_of_day=same_kind / count,
            fresh_visits=self._fresh(last_visit, count) * np.exp(-since_us / FADING_US),
        )

    def _fresh(self, last_visit: Numbers, count: Numbers) -> Values:
        """The last `count` visits of a run up to a visit, as fresh as they are then. [E] -> [E]"""
        fresh = self.fresh[last_visit]
        some = np.flatnonzero(self.run.number[last_visit] >= count)  # older ones are forgotten
        newest = last_visit[some]
        forgotten = self.run.order[self.run.slot[newest] - count[some]]
        fresh[some] -= self.fresh[forgotten] * _worth(self.at_us[newest] - self.at_us[forgotten])
        return fresh


def fresh_visits(run: Runs, at_us: Numbers) -> Values:
    """Visits of each visit's run up to it, as fresh as they are at its own moment. [N]"""
    fresh = np.ones(len(at_us))
    by_number = np.argsort(run.number, kind="stable")
    for visits in np.split(by_number, np.cumsum(np.bincount(run.number))[:-1])[1:]:
        before = run.order[run.slot[visits] - 1]
        fresh[visits] += fresh[before] * _worth(at_us[visits] - at_us[before])
    return fresh


def _worth(age_us: Numbers) -> Values:
    """What visits are worth when they are so old."""
    worth: Values = np.exp(-np.maximum(age_us, 0) / FADING_US)
    return worth
