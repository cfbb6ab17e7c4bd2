"""Results with the ranks a test wants, on one made-up split."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from castpoi.evaluation.contender import Contender
from castpoi.evaluation.rank_table import RANK_SCHEMA
from castpoi.evaluation.result import Result


def result_of(
    ranks: Sequence[float],
    *,
    method: str = "street",
    seed: int = 0,
    places: int | None = 1000,
    **columns: Sequence[Any],
) -> Result:
    """A result with these ranks; other columns of the rank table as given, or plain."""
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
    }
    manifest = {
        "kind": "result",
        "method": method,
        "seed": seed,
        "fingerprint": "f" * 64,
        "part": "test",
        "seconds": 1.0,
        **({} if places is None else {"places": places}),
    }
    table = pl.DataFrame({**plain, **columns}, schema=RANK_SCHEMA)
    return Result(ranks=table, seconds=1.0, manifest=manifest, name=f"{method}-{seed}")


def contenders_of(results: Sequence[Result]) -> list[Contender]:
    """One contender a method, in the order in which the methods first appear."""
    by_method: dict[str, list[Result]] = {}
    for result in results:
        by_method.setdefault(result.method, []).append(result)
    return [Contender(method, tuple(seeds)) for method, seeds in by_method.items()]
