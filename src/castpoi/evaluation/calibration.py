"""Calibration: when the softmax is 30 % sure of its first place, is it right 3 times in 10?

Meant for methods whose scores are the logits of a softmax over places, that is the learned ones.
The softmax of visits, kilometres or shares is no probability, and its calibration says nothing of
a counting method; docs/statistics.md tells how to keep them apart.

The expected calibration error is that of Guo et al. (2017): targets are put into bins of equal
width by the softmax of their first place, and the distance between mean softmax and share of right
first places is averaged over the bins, weighted by their targets.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.evaluation.beyond_accuracy import with_top_places
from castpoi.evaluation.result import Result
from castpoi.evaluation.top_table import TARGET_SOFTMAX, TOP_PLACES, TOP_SOFTMAX

BINS: Final = 10


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Targets of which the softmax was about equally sure."""

    low: float
    high: float
    n: int
    sure: float
    """Mean softmax of the first place."""
    right: float
    """Share of targets at their first place."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How far the softmax can be taken at its word."""

    n: int
    """Number of targets."""
    bins: list[ReliabilityBin]
    """The reliability curve, from unsure to sure; bins without a target are left out."""
    expected_error: float
    """Expected calibration error (ECE), 0 to 1."""
    sure: float
    """Mean softmax of the first place; above `right` the method is too sure of itself."""
    right: float
    """Share of right first places (HR@1, but for ties at the top)."""
    log_loss: float | None
    """Mean of -ln softmax of the place visited; None where one of them was held impossible."""


def calibration(result: Result, *, bins: int = BINS) -> Calibration:
    """The reliability curve and calibration error of a result that holds its top places."""
    top = with_top_places(result)
    sure = top[TOP_SOFTMAX].list.first().cast(float).to_numpy()
    right = (top[TOP_PLACES].list.first() == top[record.PLACE]).to_numpy()
    curve = reliability(sure, right, bins=bins)
    of_target = top[TARGET_SOFTMAX].to_numpy()
    return Calibration(
        n=len(sure),
        bins=curve,
        expected_error=sum(one.n * abs(one.sure - one.right) for one in curve) / len(sure),
        sure=float(sure.mean()),
        right=float(right.mean()),
        log_loss=float(-np.log(of_target).mean()) if of_target.all() else None,
    )


def reliability(
    sure: NDArray[np.float64], right: NDArray[np.bool_], *, bins: int = BINS
) -> list[ReliabilityBin]:
    """Bins of equal width over 0 to 1 that hold a target, each with its upper end. [N], [N]"""
    if bins < 1:
        raise BadInput(f"{bins} bins hold no target; ask for at least one")
    # (0, 0.1], (0.1, 0.2], ...; the softmax of a best place is never 0.
    number = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    return [
        ReliabilityBin(
            low=one / bins,
            high=(one + 1) / bins,
            n=int(inside.sum()),
            sure=float(sure[inside].mean()),
            right=float(right[inside].mean()),
        )
        for one in np.unique(number).tolist()
        for inside in [number == one]
    ]
