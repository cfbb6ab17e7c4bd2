"""Windows of train visits, in which many visits are trained at once.

Each visit of a user, except the last, learns to predict the next one, in exactly one window: the
first `first` of them in the user's first window, each further `stride` of them in one more. A
window also holds earlier visits, which only give context; the objective decides how many.

Baselines, for which a window holds at most 50 visits (`at_most`), here with a stride of 25:

    visits     0 ............. 49  50 ... 74  75 ... 99
    window 0   learn ────────────▶
    window 1         context       learn ──▶
    window 2                       context    learn ──▶

RecBole makes a row of every prefix: its last 50 visits, the oldest in slot 0. The first 50 prefixes
of a user begin at the same visit, so the first window equals all of them. Each later prefix begins
one visit later and would need a window of its own; here `stride` of them share one. So a later
visit has at least `window - stride` visits before it, at most as many as in RecBole, and is in one
of the last `stride` slots instead of the last. Stride 1 is RecBole's cut at many times the cost;
docs/baselines.md shows the effect.

CaST-POI, for which a window holds the visits that learn and the 50 before these (`looking_back`):
with relative positions a state does not depend on the slot, so every target after the first 50 has
the 50 visits before it. Two layers, and the reader, depend on earlier visits too. Here a state
depends on 50 to 99 visits, in evaluation on 148 (`ModelConfig.visits_read`).

Shapes: U users, W windows.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories
from castpoi.core.arrays import ranges


@dataclass(frozen=True, kw_only=True)
class TrainWindows:
    """Visits begin:end of the train split; those from `learn` on predict the visit after them."""

    begin: NDArray[np.int64]  # [W]
    learn: NDArray[np.int64]  # [W]
    end: NDArray[np.int64]  # [W]

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def targets(self) -> NDArray[np.int64]:
        """Number of visits of each window that learn. [W]"""
        return self.end - self.learn

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of visits of each window. [W]"""
        return self.end - self.begin

    def chosen(self, numbers: NDArray[np.int64]) -> Self:
        """Some of the windows."""
        begin, learn, end = (each[numbers] for each in (self.begin, self.learn, self.end))
        return replace(self, begin=begin, learn=learn, end=end)

    def without(self, is_old: NDArray[np.bool_]) -> Self:
        """The windows that have targets besides the old ones, which come first in each. [N]"""
        before = np.r_[0, np.cumsum(is_old)]  # old targets before each visit [N + 1]
        learn = self.learn + before[self.end] - before[self.learn]
        return replace(self, learn=learn).chosen(np.flatnonzero(learn < self.end))

    def at_most(self, visits: int) -> Self:
        """The same windows with no more than their last visits."""
        return replace(self, begin=np.maximum(self.begin, self.end - visits))

    def looking_back(self, visits: int) -> Self:
        """The same windows with no more than this number of visits before those that learn."""
        return replace(self, begin=np.maximum(self.begin, self.learn - visits))


def cut_windows(histories: Histories, *, first: int, stride: int) -> TrainWindows:
    """First windows of all users, then the others; each begins with the user's first visit."""
    begin, last = histories.bounds[:-1], histories.bounds[1:] - 1  # the last has no successor
    begin, last = begin[last > begin], last[last > begin]  # [U]
    first_end = np.minimum(begin + first, last)
    later = -(-(last - first_end) // stride)  # number of windows after the first. [U]
    learn = np.repeat(first_end, later) + stride * ranges(later)
    return TrainWindows(
        begin=np.r_[begin, np.repeat(begin, later)],
        learn=np.r_[begin, learn],
        end=np.r_[first_end, np.minimum(learn + stride, np.repeat(last, later))],
    )
