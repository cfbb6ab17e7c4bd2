"""Beyond accuracy: distance of the first place, coverage, popularity, calibration of the softmax.

All of it is measured on the ten best places of every target, equal scores listed by place number,
so the lists of a method with many ties mean little below its last distinct score.

Calibration is meant for methods whose scores are the logits of a softmax over places: the learned
ones. The expected calibration error (ECE) is that of Guo et al. (2017): targets are put into bins
of equal width by the softmax of their first place (its confidence), and the distance between mean
confidence and accuracy is averaged over the bins, weighted by their targets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.evaluation.ranking import TopPlaces
from castpoi.geo.distance import haversine_km

BINS: Final = 10


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Targets whose first place has a softmax in one tenth of 0 to 1, its upper end included."""

    low: float
    n: int
    confidence: float  # mean softmax of the first place
    accuracy: float  # share of targets that are the first place


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How far the softmax of the first place can be read as its probability."""

    n: int  # number of targets
    bins: list[ReliabilityBin]  # the reliability curve, by ascending confidence, without empty bins
    expected_error: float  # expected calibration error (ECE), 0 to 1
    confidence: float
    """Mean softmax of the first place; above `accuracy` the method is overconfident."""
    accuracy: float  # share of targets that are the first place (HR@1, except for ties at the top)


@dataclass(frozen=True, kw_only=True)
class BeyondAccuracy:
    """Properties of the ten best places of all targets."""

    median_km_off: float  # from the first place to the target; 0 where they are the same
    mean_km_off: float
    coverage: float  # share of the city's places that are in any list
    popularity_of_first: float  # mean check-ins in train of first places
    popularity_of_listed: float  # the same of all listed places
    popularity_of_target: float
    calibration: Calibration

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "BeyondAccuracy":
        """The inverse of `dataclasses.asdict`."""
        own = dict(content["calibration"])
        own["bins"] = [ReliabilityBin(**each) for each in own["bins"]]
        return cls(**{**content, "calibration": Calibration(**own)})


def beyond_accuracy(city: City, rows: NDArray[np.int64], best: TopPlaces) -> BeyondAccuracy:
    """Measure the best places of targets, which are rows of `city.trajectories`."""
    by_checkin = np.argsort(city.trajectories.checkin[rows], kind="stable")
    rows, listed = rows[by_checkin], best.place[by_checkin]  # [N], [N, K]
    target, first = city.trajectories.place[rows], listed[:, 0]
    lat, lon = city.lat, city.lon
    km_off = haversine_km(lat[first], lon[first], lat[target], lon[target])
    counts = counts_in_train(city)
    confidence = best.softmax[by_checkin, 0].astype(np.float32)
    return BeyondAccuracy(
        median_km_off=float(np.median(km_off)),
        mean_km_off=float(km_off.mean()),
        coverage=len(np.unique(listed)) / city.places.height,
        popularity_of_first=float(counts[first].mean()),
        popularity_of_listed=float(counts[listed].mean()),
        popularity_of_target=float(counts[target].mean()),
        calibration=calibration(confidence.astype(np.float64), first == target),
    )


def calibration(confidence: NDArray[np.float64], is_right: NDArray[np.bool_]) -> Calibration:
    """The reliability curve and the calibration error of first places. [N], [N]"""
    # (0, 0.1], (0.1, 0.2], ...; the softmax of a best place is never 0
    number = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    bins = [
        ReliabilityBin(
            low=each / BINS,
            n=int(inside.sum()),
            confidence=float(confidence[inside].mean()),
            accuracy=float(is_right[inside].mean()),
        )
        for each in np.unique(number).tolist()
        for inside in [number == each]
    ]
    errors = (each.n * abs(each.confidence - each.accuracy) for each in bins)
    return Calibration(
        n=len(confidence),
        bins=bins,
        expected_error=sum(errors) / len(confidence),
        confidence=float(confidence.mean()),
        accuracy=float(is_right.mean()),
    )


def counts_in_train(city: City) -> NDArray[np.int64]:
    """Check-ins of each place in the train split. [P]"""
    trajectories = city.trajectories
    in_train = trajectories.part == record.PARTS.index(record.TRAIN)
    return np.bincount(trajectories.place[in_train], minlength=city.places.height)
