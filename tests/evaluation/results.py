"""Results with the ranks a test wants, on one made-up split."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from castpoi.evaluation.beyond import BeyondAccuracy, calibration
from castpoi.evaluation.compare import Contender
from castpoi.evaluation.result import RANK_SCHEMA, Result

BEYOND = BeyondAccuracy(
    median_km_off=2.0,
    mean_km_off=1.9,
    coverage=1.0,
    popularity_of_first=2.0,
    popularity_of_listed=1.6,
    popularity_of_target=1.75,
    calibration=calibration(np.array([0.2, 0.9]), np.array([False, True])),
)


def result_of(
    ranks: Sequence[float],
    *,
    method: str = "street",
    seed: int = 0,
    places: int = 1000,
    manifest: Mapping[str, Any] | None = None,
    **columns: Sequence[Any],
) -> Result:
    """A result with these ranks; other columns and entries of the manifest as given, or plain."""
    count = len(ranks)
    plain: dict[str, Sequence[Any]] = {
        "checkin": range(count),
        "user": range(count),
        "place": [0] * count,
        "rank": ranks,
        "is_revisit": [True] * count,
        "history_length": [10] * count,
        "place_count_in_train": [1] * count,
        "km_from_last_visit": [1.0] * count,
        "hours_since_last_visit": [1.0] * count,
        "overlap_with_train": [1] * count,
    }
    entries = {
        "kind": "result",
        "method": method,
        "seed": seed,
        "fingerprint": "f" * 64,
        "row": {"method": method, "preset": None, "settings": {}},
        "part": "test",
        "known_time": False,
        "seconds": 1.0,
        "places": places,
        "users": count,
        "checkins": 3 * count,
        **(manifest or {}),
    }
    table = pl.DataFrame({**plain, **columns}, schema=RANK_SCHEMA)
    name = f"{method}-{seed}"
    return Result(ranks=table, beyond=BEYOND, seconds=1.0, manifest=entries, name=name)


def contenders_of(results: Sequence[Result]) -> list[Contender]:
    """One contender a method, in the order in which the methods first appear."""
    by_method: dict[str, list[Result]] = {}
    for result in results:
        by_method.setdefault(result.method, []).append(result)
    return [Contender(method, tuple(seeds)) for method, seeds in by_method.items()]
