"""Strata: metrics of contenders on groups of targets.

    history    visits before the target               < 50, 50-100, 100-200, >= 200
    frequency  check-ins of the target's place in train        tail, torso, head
    return     is the place among the previous 512 visits?       revisit, new
    distance   km from the last visit                 < 0.5, 0.5-2, 2-5, 5-20, >= 20
    gap        time since the last visit              < 1 h, 1-6 h, 6-24 h, 1-7 d, >= 7 d
    overlap    visits of the longest sequence up to the target that train has too    1, 2, 3, >= 4

A range includes its lower end and not its upper one. Tail, torso and head are cut at the 60th and
80th percentile (linear) of the counts of the targets themselves; a count equal to a percentile
falls below it. Targets without a last visit are in no stratum of distance and gap.
`result.overlap_with_train` defines the overlap.

Shapes: S seeds, N targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.evaluation.compare import Contender, ranks_side_by_side
from castpoi.evaluation.metrics import METRICS, Spread, per_target
from castpoi.evaluation.metrics import STRATA as RETURN
from castpoi.evaluation.result import (
    HISTORY_LENGTH,
    HOURS_SINCE_LAST_VISIT,
    IS_REVISIT,
    KM_FROM_LAST_VISIT,
    OVERLAP,
    PLACE_COUNT_IN_TRAIN,
)

TOO_SMALL: Final = 100  # targets below which a hit rate may be off by 10 points and more (95 %)

_HISTORY: Final = {"< 50": 50, "50-100": 100, "100-200": 200, ">= 200": np.inf}
_KM: Final = {"< 0.5 km": 0.5, "0.5-2 km": 2, "2-5 km": 5, "5-20 km": 20, ">= 20 km": np.inf}
_HOURS: Final = {"< 1 h": 1, "1-6 h": 6, "6-24 h": 24, "1-7 d": 168, ">= 7 d": np.inf}
_OVERLAP: Final = {"1 visit": 2, "2 visits": 3, "3 visits": 4, ">= 4 visits": np.inf}
"""Strata of an axis and their upper ends."""
_FREQUENCY: Final = ("tail", "torso", "head")
_FREQUENCY_CUTS: Final = (60, 80)


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """One group of targets, with the metrics of every contender."""

    axis: str
    name: str
    n: int  # number of targets
    metrics: dict[str, dict[str, Spread]]
    """By contender, then by metric: mean and deviation over the seeds; None without a target."""

    @property
    def is_too_small(self) -> bool:
        """Whether it has too few targets to compare contenders."""
        return self.n < TOO_SMALL


def strata(contenders: Sequence[Contender], metrics: Sequence[str] = METRICS) -> list[Stratum]:
    """Every stratum of every axis, with the metrics of all contenders."""
    ranks = ranks_side_by_side(contenders)
    tables = [result.by_checkin for own in contenders for result in own.results]
    # in the order of the ranks; the overlap is the same in all results that have it
    targets = next((each for each in tables if not each[OVERLAP].null_count()), tables[0])
    values = {
        name: {metric: per_target(metric, own) for metric in metrics} for name, own in ranks.items()
    }  # each [S, N]
    return [
        Stratum(
            axis=axis,
            name=name,
            n=int(inside.sum()),
            metrics={
                contender: {metric: _spread(each[:, inside]) for metric, each in own.items()}
                for contender, own in values.items()
            },
        )
        for axis, parts in masks(targets).items()
        for name, inside in parts.items()
    ]


def masks(targets: pl.DataFrame) -> dict[str, dict[str, NDArray[np.bool_]]]:
    """By axis and stratum, which targets of a rank table are in it. [N]"""
    is_revisit = targets[IS_REVISIT].to_numpy()
    overlap = _by_range(targets[OVERLAP], _OVERLAP)
    return {
        "history": _by_range(targets[HISTORY_LENGTH], _HISTORY),
        "frequency": _by_frequency(targets[PLACE_COUNT_IN_TRAIN]),
        "return": dict(zip(RETURN, (is_revisit, ~is_revisit), strict=True)),
        "distance": _by_range(targets[KM_FROM_LAST_VISIT], _KM),
        "gap": _by_range(targets[HOURS_SINCE_LAST_VISIT], _HOURS),
        **({} if targets[OVERLAP].null_count() else {"overlap": overlap}),
    }


def _by_range(column: pl.Series, ends: dict[str, float]) -> dict[str, NDArray[np.bool_]]:
    values = column.cast(pl.Float64).to_numpy()  # NaN where there is no last visit
    starts = [-np.inf, *ends.values()]
    return {
        name: (values >= start) & (values < end)
        for (name, end), start in zip(ends.items(), starts, strict=False)
    }


def _by_frequency(column: pl.Series) -> dict[str, NDArray[np.bool_]]:
    counts = column.to_numpy()
    # A count equal to a percentile falls below it: this gives the paper's NYC head of 206.
    level = np.searchsorted(np.percentile(counts, _FREQUENCY_CUTS), counts, side="left")
    return {name: level == number for number, name in enumerate(_FREQUENCY)}


def _spread(values: NDArray[np.float64]) -> Spread:
    """Spread over the seeds of the mean over targets. [S, N]"""
    return Spread.of(values.mean(axis=1).tolist() if values.shape[1] else [])
