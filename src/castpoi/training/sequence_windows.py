"""Windows in which a sequence model learns from many visits at once.

RecBole makes a row of every prefix: its last 50 visits, the oldest in slot 0. The first 50 prefixes
of a user begin at the same visit, so one window gives all of them exactly. Each later prefix
begins one visit later and would need a window of its own. We let `stride` neighbours share one:

    visits     0 ............. 49  50 ... 74  75 ... 99      window 50, stride 25
    window 0   learn ────────────▶
    window 1         look back     learn ──▶
    window 2                       look back  learn ──▶

So after the first 50 a visit sees at least `window - stride` visits before it, up to all that
RecBole shows it, and stands in one of the last `stride` slots instead of the last. Stride 1 is
RecBole's cut at many times the cost; docs/baselines.md says what is known of the difference.

Shapes: U users, W windows, N visits laid end to end.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins.trajectory import Histories


@dataclass(frozen=True, kw_only=True)
class SequenceWindows:
    """Visits begin:end of the train part; those from `learn` on foretell the visit after them."""

    begin: NDArray[np.int64]
    learn: NDArray[np.int64]
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def targets(self) -> NDArray[np.int64]:
        """How many visits of each window learn. [W]"""
        return self.end - self.learn

    def chosen(self, numbers: NDArray[np.int64]) -> "SequenceWindows":
        """Some of the windows."""
        return SequenceWindows(
            begin=self.begin[numbers], learn=self.learn[numbers], end=self.end[numbers]
        )


def cut_sequences(histories: Histories, *, window: int, stride: int) -> SequenceWindows:
    """Windows in which every visit that has a successor learns exactly once."""
    stride = min(stride, window)
    first, last = histories.bounds[:-1], histories.bounds[1:] - 1  # the last has no successor
    first, last = first[last > first], last[last > first]  # [U]
    shared_end = np.minimum(first + window, last)
    later = -(-(last - shared_end) // stride)  # windows after the first. [U]
    number = np.arange(later.sum()) - np.repeat(np.cumsum(later) - later, later)
    learn = np.repeat(shared_end, later) + stride * number
    end = np.minimum(learn + stride, np.repeat(last, later))
    return SequenceWindows(
        begin=np.r_[first, end - window],
        learn=np.r_[first, learn],
        end=np.r_[shared_end, end],
    )
