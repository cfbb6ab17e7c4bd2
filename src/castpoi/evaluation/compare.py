"""Results of one city and split, compared on the same targets.

Ranks are joined by check-in id, in any order of the tables; a target that one result lacks is an
error. `compare` makes one row per method, several seeds as mean and sample standard deviation. A
`Contender` is one method, or one variant of it, with the results of all its seeds.

Shapes: S seeds, N targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.evaluation.metrics import METRICS, STRATA, Spread
from castpoi.evaluation.result import IS_REVISIT, RANK, Result

_SHOWN: Final = 12  # characters of a fingerprint in an error


@dataclass(frozen=True)
class Contender:
    """A name and one result per seed."""

    name: str
    results: tuple[Result, ...]
    is_counted: bool = False  # whether it is a counting method: no seeds, one result

    def __post_init__(self) -> None:
        if not self.results:
            raise BadInput(f"{self.name} has no result; name at least one result folder for it")
        seen: dict[int, Result] = {}
        for result in self.results:
            twin = seen.setdefault(result.seed, result)
            if twin is not result:  # a copy would narrow the spread
                raise BadInput(
                    f"{twin.name} and {result.name} are both {self.name} with seed {result.seed}; "
                    "leave one out"
                )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of its trainings, ascending; none for a counting method."""
        return () if self.is_counted else tuple(sorted(result.seed for result in self.results))

    def spread(self, metric: str, stratum: str | None = None) -> Spread:
        """Mean of a metric, of all targets or of a stratum, and deviation over the seeds."""
        spread = Spread.of(
            (result.strata[stratum] if stratum else result.metrics)[metric]
            for result in self.results
        )
        return replace(spread, std=None) if self.is_counted else spread


@dataclass(frozen=True, kw_only=True)
class ComparedMethod:
    """One row: a method with all its seeds."""

    method: str
    seeds: list[int]
    results: list[str]  # names of the folders
    seconds: float  # mean time to rank all targets
    metrics: dict[str, Spread]
    strata: dict[str, dict[str, Spread]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Methods in one table, best first."""

    fingerprint: str
    part: str
    known_time: bool  # whether all methods were given the time of each target; otherwise none was
    n: int  # number of targets
    strata_n: dict[str, int]
    rows: list[ComparedMethod]

    def best(self, metric: str, stratum: str | None = None) -> list[str]:
        """The methods with the highest mean of a metric: several where equal, none where all 0."""
        means = {
            row.method: (row.strata[stratum] if stratum else row.metrics)[metric].mean
            for row in self.rows
        }
        highest = max((mean for mean in means.values() if mean is not None), default=None)
        return [name for name, mean in means.items() if mean and mean == highest]


def compare(results: Sequence[Result], *, sort_by: str = "MRR") -> Comparison:
    """One row per method, sorted by the mean of a metric."""
    if sort_by not in METRICS:
        raise BadInput(f"'{sort_by}' is not a metric; sort by one of {', '.join(METRICS)}")
    if not results:
        raise BadInput("there is no result to compare; name at least one result folder")
    ranks = join_ranks(results)  # [results, N]
    strata = results[0].strata
    by_method = sorted(results, key=lambda each: (each.method, each.seed))
    rows = [
        _row(Contender(method, tuple(seeds)))
        for method, seeds in groupby(by_method, key=lambda each: each.method)
    ]
    rows.sort(key=lambda row: -(row.metrics[sort_by].mean or 0.0))
    return Comparison(
        fingerprint=results[0].fingerprint,
        part=results[0].part,
        known_time=results[0].known_time,
        n=ranks.shape[1],
        strata_n={stratum: int(strata[stratum]["n"] or 0) for stratum in STRATA},
        rows=rows,
    )


def join_ranks(results: Sequence[Result]) -> NDArray[np.float64]:
    """The ranks of results on the same targets, in ascending order of check-in. [results, N]"""
    first = results[0]
    for result in results:
        _check_same_split(first, result)
        own, expected = (each.by_checkin[record.CHECKIN] for each in (result, first))
        if not own.equals(expected):
            raise BrokenFolder(
                f"{first.name} and {result.name} rank different targets ({len(expected):,} and "
                f"{len(own):,}, {own.is_in(expected.implode()).sum():,} in common); evaluate both "
                "again"
            )
        if not result.by_checkin[IS_REVISIT].equals(first.by_checkin[IS_REVISIT]):
            raise BrokenFolder(
                f"{first.name} and {result.name} have different revisits among their targets; "
                "evaluate both again"
            )
    return np.stack([result.by_checkin[RANK].to_numpy() for result in results])


def _row(contender: Contender) -> ComparedMethod:
    return ComparedMethod(
        method=contender.name,
        seeds=list(contender.seeds),
        results=[each.name for each in contender.results],
        seconds=fmean(each.seconds for each in contender.results),
        metrics={metric: contender.spread(metric) for metric in METRICS},
        strata={
            stratum: {metric: contender.spread(metric, stratum) for metric in METRICS}
            for stratum in STRATA
        },
    )


def _check_same_split(first: Result, other: Result) -> None:
    if first.fingerprint != other.fingerprint:
        raise BrokenFolder(
            f"{first.name} and {other.name} are of different cities or splits (fingerprints "
            f"{first.fingerprint[:_SHOWN]} and {other.fingerprint[:_SHOWN]}); evaluate both on "
            "one city"
        )
    if first.part != other.part:
        raise BrokenFolder(
            f"{first.name} predicts the {first.part} split and {other.name} the {other.part} "
            "split; evaluate both with the same --split"
        )
    if first.known_time != other.known_time:
        timed, untimed = (first, other) if first.known_time else (other, first)
        raise BadInput(
            f"{timed.name} was given the time of each target and {untimed.name} was not, so their "
            "metrics cannot be compared; compare results of known time separately"
        )


def with_equal_seeds(one: Contender, other: Contender) -> tuple[Contender, Contender]:
    """Both with the same number of seeds: those they share first, then the lowest.

    A mean over more seeds is less extreme, which a signed-rank test favours (docs/statistics.md).
    A counting baseline has no seeds to match.
    """
    if one.is_counted or other.is_counted:
        return one, other
    number = min(len(one.seeds), len(other.seeds))
    shared = set(one.seeds) & set(other.seeds)

    def cut(side: Contender) -> Contender:
        kept = sorted(side.seeds, key=lambda seed: (seed not in shared, seed))[:number]
        return replace(side, results=tuple(each for each in side.results if each.seed in kept))

    return cut(one), cut(other)


def ranks_side_by_side(contenders: Sequence[Contender]) -> dict[str, NDArray[np.float64]]:
    """The ranks of each contender by name, targets in ascending order of check-in. [S, N]"""
    if not contenders:
        raise BadInput("there is no contender; name at least one result folder")
    names = [contender.name for contender in contenders]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"two contenders are named {twice}; give each its own name")
    joined = join_ranks([result for contender in contenders for result in contender.results])
    ends = np.cumsum([len(contender.results) for contender in contenders])
    return dict(zip(names, np.split(joined, ends[:-1]), strict=True))  # [S, N] each
