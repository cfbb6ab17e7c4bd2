"""Results side by side: same split, same part, same targets, one row a method.

Several seeds of one method become one row: the mean and the sample standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import polars as pl

from castpoi.checkins import record
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import is_folder_of
from castpoi.evaluation.metrics import METRICS, STRATA, Metrics, metrics_of, strata_of
from castpoi.evaluation.rank_table import IS_REVISIT, RANK
from castpoi.evaluation.result import Result

_SHOWN: Final = 12  # characters of a fingerprint in a sentence


@dataclass(frozen=True)
class Spread:
    """A metric over the seeds of one method; None where there is nothing to measure."""

    mean: float | None
    std: float | None = None
    """Sample standard deviation; None with one seed."""


@dataclass(frozen=True, kw_only=True)
class ComparedMethod:
    """One row: a method with all its seeds."""

    method: str
    seeds: list[int]
    results: list[str] = field(default_factory=list)
    """Names of the folders."""
    seconds: float
    """Mean time to rank all targets."""
    metrics: dict[str, Spread]
    strata: dict[str, dict[str, Spread]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods side by side, best first."""

    fingerprint: str
    part: str
    known_time: bool
    """Whether all were told when each target was; either all are or none is."""
    n: int
    """Number of targets."""
    strata_n: dict[str, int]
    rows: list[ComparedMethod]

    def best(self, metric: str, stratum: str | None = None) -> list[str]:
        """The methods with the highest mean of a metric; several where they are equal."""
        means = {
            row.method: (row.strata[stratum] if stratum else row.metrics)[metric].mean
            for row in self.rows
        }
        highest = max((mean for mean in means.values() if mean is not None), default=None)
        return [name for name, mean in means.items() if mean is not None and mean == highest]


def find_results(folders: Sequence[Path]) -> list[Path]:
    """The result folders among the given ones and directly inside them, each once."""
    found: dict[Path, Path] = {}
    for folder in folders:
        inside = [] if is_folder_of(folder, "result") else _results_inside(folder)
        for result in inside or [folder]:  # what is no result is refused when it is read
            found.setdefault(result.resolve(), result)
    return list(found.values())


def compare(results: Sequence[Result], *, sort_by: str = "MRR") -> Comparison:
    """One row a method, sorted by the mean of a metric."""
    if sort_by not in METRICS:
        raise BadInput(f"'{sort_by}' is not a metric; sort by one of {', '.join(METRICS)}")
    if not results:
        raise BadInput("there is no result to compare; name at least one result folder")
    ranks = join_ranks(results)
    _check_seeds(results)
    is_revisit = ranks[IS_REVISIT].to_numpy()
    scored = [
        _ScoredResult(result, metrics_of(own), strata_of(own, is_revisit))
        for number, result in enumerate(results)
        for own in [ranks[rank_column(number)].to_numpy()]
    ]
    scored.sort(key=lambda one: (one.result.method, one.result.seed))
    rows = [_row(list(seeds)) for _, seeds in groupby(scored, key=lambda one: one.result.method)]
    rows.sort(key=lambda row: -(row.metrics[sort_by].mean or 0.0))
    return Comparison(
        fingerprint=results[0].fingerprint,
        part=results[0].part,
        known_time=results[0].known_time,
        n=ranks.height,
        strata_n=dict(zip(STRATA, (int(is_revisit.sum()), int((~is_revisit).sum())), strict=True)),
        rows=rows,
    )


def join_ranks(results: Sequence[Result]) -> pl.DataFrame:
    """Check-in, is_revisit and the rank of each result (`rank_column`), joined by check-in id."""
    first = results[0]
    joined = first.ranks.select(record.CHECKIN, IS_REVISIT).sort(record.CHECKIN)
    for number, result in enumerate(results):
        _check_same_split(first, result)
        own = result.ranks.select(record.CHECKIN, pl.col(RANK).alias(rank_column(number)))
        found = joined.join(own, on=record.CHECKIN, how="inner", validate="1:1")
        if not found.height == joined.height == own.height:
            raise BrokenFolder(
                f"{first.name} and {result.name} rank different targets ({joined.height:,} and "
                f"{own.height:,}, {found.height:,} in common); evaluate both again"
            )
        revisits = result.ranks.sort(record.CHECKIN)[IS_REVISIT]
        if not revisits.equals(joined[IS_REVISIT]):
            raise BrokenFolder(
                f"{first.name} and {result.name} do not agree which targets are revisits; evaluate "
                "both again"
            )
        joined = found.sort(record.CHECKIN)
    return joined


def rank_column(number: int) -> str:
    """Name of the column of joined ranks that belongs to the result of this number."""
    return f"{RANK}_{number}"


@dataclass(frozen=True)
class _ScoredResult:
    result: Result
    metrics: Metrics
    strata: dict[str, dict[str, Any]]


def _row(seeds: Sequence[_ScoredResult]) -> ComparedMethod:
    return ComparedMethod(
        method=seeds[0].result.method,
        seeds=[one.result.seed for one in seeds],
        results=[one.result.name for one in seeds],
        seconds=fmean(one.result.seconds for one in seeds),
        metrics={name: _spread([one.metrics[name] for one in seeds]) for name in METRICS},
        strata={
            stratum: {
                name: _spread([one.strata[stratum][name] for one in seeds]) for name in METRICS
            }
            for stratum in STRATA
        },
    )


def _spread(measured: Sequence[float | None]) -> Spread:
    values = [value for value in measured if value is not None]
    if not values:
        return Spread(mean=None)
    return Spread(mean=fmean(values), std=stdev(values) if len(values) > 1 else None)


def _check_same_split(first: Result, other: Result) -> None:
    if first.fingerprint != other.fingerprint:
        raise BrokenFolder(
            f"{first.name} and {other.name} are of different splits (fingerprints "
            f"{first.fingerprint[:_SHOWN]} and {other.fingerprint[:_SHOWN]}); evaluate both on "
            "one city"
        )
    if first.part != other.part:
        raise BrokenFolder(
            f"{first.name} foretells the {first.part} part and {other.name} the {other.part} "
            "part; evaluate both with one --part"
        )
    if first.known_time != other.known_time:
        told, untold = (first, other) if first.known_time else (other, first)
        raise BadInput(
            f"{told.name} was told when each target was and {untold.name} was not, so their "
            "numbers do not stand side by side; compare results of known time apart"
        )


def _check_seeds(results: Sequence[Result]) -> None:
    """One result a seed: a copy would pass for a second seed and narrow the spread."""
    seen: dict[tuple[str, int], Result] = {}
    for result in results:
        twin = seen.setdefault((result.method, result.seed), result)
        if twin is not result:
            raise BadInput(
                f"{twin.name} and {result.name} are both {result.method} with seed {result.seed}; "
                "leave one out"
            )


def _results_inside(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    shown = (inside for inside in folder.iterdir() if not inside.name.startswith("."))
    return sorted(inside for inside in shown if is_folder_of(inside, "result"))
