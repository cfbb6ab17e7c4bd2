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
"""

from dataclasses import dataclass

from castpoi.checkins.trajectory import Histories


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
