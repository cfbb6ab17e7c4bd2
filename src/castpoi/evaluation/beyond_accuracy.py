"""Beyond accuracy: how far off is the first guess, how many places are ever shown, how popular?

All of it is read from the ten best places of every target; equal scores are listed by place number,
so the lists of a method with many ties say little below its last distinct score.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import BrokenFolder
from castpoi.evaluation.rank_table import PLACE_COUNT_IN_TRAIN
from castpoi.evaluation.result import Result
from castpoi.evaluation.top_table import FIRST_KM_FROM_TARGET, TOP_COUNTS_IN_TRAIN, TOP_PLACES


@dataclass(frozen=True, kw_only=True)
class CountInTrain:
    """How often some places were checked in at in train: their popularity."""

    mean: float
    median: float


@dataclass(frozen=True, kw_only=True)
class BeyondAccuracy:
    """What one result shows people, apart from whether it is right."""

    n: int
    """Number of targets."""
    median_km_off: float
    """From the first place of the list to the place visited; 0 where it is right."""
    mean_km_off: float
    coverage: float
    """Share of the vocabulary that stands in anybody's list of ten."""
    most_coverage: float
    """The share that lists without a place in common would reach."""
    visited_share: float
    """Share of the vocabulary that is visited by a target."""
    first: CountInTrain
    """Popularity of the first place of every list."""
    listed: CountInTrain
    """Popularity of all listed places."""
    visited: CountInTrain
    """Popularity of the places visited."""


def beyond_accuracy(result: Result) -> BeyondAccuracy:
    """Measure what a result shows people; it must hold its top places."""
    top = with_top_places(result)
    places = result.places
    if places is None:
        raise BrokenFolder(
            f"{result.name} does not say how many places its city has; evaluate again with "
            "'castpoi evaluate'"
        )
    counts = top[TOP_COUNTS_IN_TRAIN]
    km_off = top[FIRST_KM_FROM_TARGET].to_numpy()
    listed = top[TOP_PLACES].explode()
    return BeyondAccuracy(
        n=top.height,
        median_km_off=float(np.median(km_off)),
        mean_km_off=float(km_off.mean()),
        coverage=listed.n_unique() / places,
        most_coverage=min(1.0, len(listed) / places),
        visited_share=top[record.PLACE].n_unique() / places,
        first=_count_in_train(counts.list.first().to_numpy()),
        listed=_count_in_train(counts.explode().to_numpy()),
        visited=_count_in_train(top[PLACE_COUNT_IN_TRAIN].to_numpy()),
    )


def with_top_places(result: Result) -> pl.DataFrame:
    """One row a target: its rank table's columns beside its top places, joined by check-in id."""
    if result.top is None:
        raise BrokenFolder(
            f"{result.name} has no top.parquet, as an older castpoi wrote it; evaluate again with "
            "'castpoi evaluate'"
        )
    joined = result.ranks.join(result.top, on=record.CHECKIN, how="inner", validate="1:1")
    if not joined.height == result.ranks.height == result.top.height:
        raise BrokenFolder(
            f"ranks.parquet and top.parquet of {result.name} are of different targets "
            f"({result.ranks.height:,} and {result.top.height:,}, {joined.height:,} in common); "
            "evaluate again with 'castpoi evaluate'"
        )
    return joined.sort(record.CHECKIN)


def _count_in_train(counts: NDArray[np.uint32]) -> CountInTrain:
    return CountInTrain(mean=float(counts.mean()), median=float(np.median(counts)))
