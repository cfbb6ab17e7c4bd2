"""Significance: is one contender better than another on the same targets?

The metric of every target is averaged over equally many seeds of each side, and the differences are
tested three times: by the Wilcoxon signed-rank test of the users' means (are they symmetric about
zero?), by a paired bootstrap over users (is the mean zero?), and by a bootstrap over users and
seeds (would other trainings give the same?). A user with several targets is drawn with all of them.
The p-values of a family of tests are corrected together. A difference is significant only if all
three tests reject.
docs/statistics.md states every choice.

Shapes: N targets, U users, S seeds, B samples.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.core.errors import BadInput
from castpoi.evaluation.compare import Contender, ranks_side_by_side, with_equal_seeds
from castpoi.evaluation.metrics import per_target

ALPHA: Final = 0.05
_STARS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
DRAWS: Final = 20_000  # the paper's number of draws
BLOCK: Final = 2**19  # users times samples that are averaged at a time: a few megabytes
MAX_KEPT: Final = 2**28  # users times samples that are kept for the next test, in bytes

_ROUNDING: Final = 1e-12  # equal means may differ by this much in float64
MAX_EXACT: Final = 50
"""Differences up to which p is exact; the number of sign patterns, 2^50, is whole in float64."""
DECIMALS: Final = 12
"""Rounding of differences, so that the order in which seeds are summed breaks no tie."""


@dataclass(frozen=True, kw_only=True)
class SignedRank:
    """Outcome of the Wilcoxon signed-rank test."""

    wins: int  # differences above zero
    ties: int  # differences of zero, which the test leaves out
    losses: int  # differences below zero
    rank_sum_for: float  # sum of the ranks of the wins
    rank_sum_against: float  # sum of the ranks of the losses
    p: float  # two-sided; 1 where all differences are zero
    is_exact: bool

    @property
    def rank_biserial(self) -> float:
        """Effect size from -1 (always worse) to 1 (always better); 0 where all are tied.

        The matched-pairs rank-biserial correlation (Kerby 2014): the share of the rank sum of
        the wins minus that of the losses.
        """
        total = self.rank_sum_for + self.rank_sum_against
        return (self.rank_sum_for - self.rank_sum_against) / total if total else 0.0


def signed_rank(differences: NDArray[np.float64]) -> SignedRank:
    """Test paired differences, one per user, for symmetry about zero. [U]

    The two-sided Wilcoxon signed-rank test. Differences of zero are left out (Wilcoxon 1945);
    equal sizes share their mean rank. Up to 50 differences of different sizes have an exact p;
    otherwise it is that of the normal approximation, its variance corrected for equal sizes,
    without a correction for continuity.
    """
    rounded = np.round(differences, DECIMALS)
    moved = rounded[rounded != 0]
    sizes, which, shared = np.unique(np.abs(moved), return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(shared) - (shared - 1) / 2  # of each size
    ranks = mean_rank[which]
    sum_for, sum_against = float(ranks[moved > 0].sum()), float(ranks[moved < 0].sum())
    is_exact = len(sizes) == len(moved) <= MAX_EXACT
    smaller = min(sum_for, sum_against)
    p = _exact_p(smaller, len(moved)) if is_exact else _normal_p(smaller, shared)
    return SignedRank(
        wins=int((moved > 0).sum()),
        ties=len(rounded) - len(moved),
        losses=int((moved < 0).sum()),
        rank_sum_for=sum_for,
        rank_sum_against=sum_against,
        p=p,
        is_exact=is_exact,
    )


def _exact_p(smaller: float, moved: int) -> float:
    """Twice the share of sign patterns whose rank sum is no larger, at most 1."""
    patterns = np.ones(1)  # how many patterns of the first ranks have each sum
    for rank in range(1, moved + 1):
        grown = np.zeros(len(patterns) + rank)
        grown[: len(patterns)] = patterns
        grown[rank:] += patterns
        patterns = grown
    as_small = float(patterns[: int(smaller) + 1].sum())
    return min(1.0, 2 * as_small / float(2**moved))


def _normal_p(smaller: float, shared: NDArray[np.int64]) -> float:
    moved = int(shared.sum())
    mean = moved * (moved + 1) / 4
    variance = moved * (moved + 1) * (2 * moved + 1) / 24
    variance -= float((shared.astype(np.float64) ** 3 - shared).sum()) / 48
    p = math.erfc((mean - smaller) / math.sqrt(2 * variance))
    return max(p, sys.float_info.min)  # never 0: the sample is finite


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """A mean difference, and the means of the samples that were drawn."""

    mean: float
    p: float  # two-sided; at least 1 / (draws + 1)
    samples: NDArray[np.float64] = field(repr=False, compare=False)  # [B]

    @classmethod
    def of(cls, mean: float, samples: NDArray[np.float64]) -> Self:
        """The test of a mean of zero.

        p is the share of samples whose mean is as far from the observed mean as that is from zero.
        The observation itself counts as a sample, so p is never 0 (Davison & Hinkley 1997, 4.2).
        """
        as_far = int((np.abs(samples - mean) >= abs(mean) - _ROUNDING).sum())
        return cls(mean=mean, p=(1 + as_far) / (len(samples) + 1), samples=samples)

    def interval(self, tests: int = 1) -> tuple[float, float]:
        """Percentiles of the samples; those of `tests` tests together cover 95 %."""
        outside = ALPHA / tests / 2
        low, high = np.quantile(self.samples, [outside, 1 - outside]).tolist()
        return low, high


@dataclass(frozen=True, kw_only=True)
class Users:
    """The users of targets, who are sampled with all their targets."""

    number: NDArray[np.int64]  # of the user of each target, 0 to U - 1. [N]

    @classmethod
    def of(cls, ids: NDArray[Any]) -> Self:
        """The users with these ids, one for each target. [N]"""
        return cls(number=np.unique(ids, return_inverse=True)[1])

    @property
    def targets(self) -> NDArray[np.int64]:
        """Number of targets of each user. [U]"""
        return np.bincount(self.number)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the targets of each user. [S, N] -> [S, U]"""
        return np.stack([np.bincount(self.number, weights=own) for own in values])

    def sampled_means(
        self, values: NDArray[np.float64], *, seed: int, draws: int
    ) -> NDArray[np.float64]:
        """Means over the targets of users that are drawn with replacement. [S, N] -> [S, B]"""
        sums, targets = self.sums(values).T, self.targets  # [U, S], [U]
        blocks = _kept if draws * len(targets) <= MAX_KEPT else _times_drawn
        means = [
            (times @ sums) / (times @ targets)[:, None]  # [b, S]
            for times in (each.astype(np.float64) for each in blocks(len(targets), seed, draws))
        ]
        return np.concatenate(means).T  # [S, B]


def _times_drawn(users: int, seed: int, draws: int) -> Iterator[NDArray[np.uint8]]:
    """How often each user is in each sample, block by block. [b, U]"""
    rng = np.random.default_rng(seed)
    step = max(1, BLOCK // users)
    for start in range(0, draws, step):
        times = np.empty((min(step, draws - start), users), dtype=np.uint8)
        for sample in times:
            sample[:] = np.bincount(rng.integers(users, size=users), minlength=users)
        yield times


@lru_cache(maxsize=1)
def _kept(users: int, seed: int, draws: int) -> tuple[NDArray[np.uint8], ...]:
    """The same, kept in memory: the tests of a city share it."""
    return tuple(_times_drawn(users, seed, draws))


def _with_other_seeds(
    sampled: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The mean over seeds that are drawn with replacement, in every sample. [S, B] -> [B]

    S seeds drawn from S vary too little around their mean, by the factor sqrt((S - 1) / S).
    """
    seeds = len(sampled)
    centre = sampled.mean(axis=0)  # [B]
    drawn = np.take_along_axis(sampled, rng.integers(seeds, size=sampled.shape), axis=0)  # [S, B]
    stretch = math.sqrt(seeds / (seeds - 1))
    varied: NDArray[np.float64] = centre + stretch * (drawn.mean(axis=0) - centre)
    return varied


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of one family, corrected for their number (Holm 1979), in the given order.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none is smaller than one
    before it, none above 1. Rejecting where the corrected p is below alpha makes an error anywhere
    in the family with a probability of at most alpha.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if np.isnan(p).any() or (p < 0).any() or (p > 1).any():
        raise BadInput(f"{list(p_values)} are not all p-values; each must lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected.tolist()


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """One contender against another by one metric, before any correction."""

    contender: str
    against: str
    metric: str
    seeds: tuple[int, ...]  # seeds of the contender that were used; none for a counting method
    against_seeds: tuple[int, ...]
    mean: float  # over targets and these seeds
    against_mean: float
    wilcoxon: SignedRank  # of the users' mean differences
    users: Bootstrap
    users_and_seeds: Bootstrap | None  # None if a learned side has one seed

    @property
    def most_careful(self) -> Bootstrap:
        """The bootstrap over users and seeds; over users where a side has one seed."""
        return self.users_and_seeds or self.users


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A test with the p-values of its family corrected by Holm's method."""

    test: PairedTest
    family: str  # description of what was tested together
    family_size: int
    wilcoxon_p: float
    users_p: float
    seeds_p: float | None  # of users and seeds; None if a learned side has one seed

    @property
    def p(self) -> float | None:
        """The largest of the three; None if a learned side has one seed."""
        return None if self.seeds_p is None else max(self.wilcoxon_p, self.users_p, self.seeds_p)

    @property
    def is_significant(self) -> bool:
        """Whether all three tests reject, in favour of the same side."""
        is_opposed = self.test.users.mean * self.test.wilcoxon.rank_biserial < 0
        return self.p is not None and self.p < ALPHA and not is_opposed

    @property
    def stars(self) -> str:
        """One for p < 0.05, two for p < 0.01, three for p < 0.001, if it is significant."""
        p = 1.0 if self.p is None or not self.is_significant else self.p
        return next((stars for below, stars in _STARS if p < below), "")

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the difference; those of the family together cover 95 %."""
        return self.test.most_careful.interval(self.family_size)


def paired_test(
    contender: Contender, against: Contender, metric: str, *, seed: int, draws: int = DRAWS
) -> PairedTest:
    """Test two contenders by one metric."""
    (test,) = paired_tests(contender, against, [metric], seed=seed, draws=draws)
    return test


def paired_tests(
    contender: Contender,
    against: Contender,
    metrics: Sequence[str],
    *,
    seed: int,
    draws: int = DRAWS,
) -> list[PairedTest]:
    """Test two contenders on the same targets; `seed` is that of the bootstraps.

    Both sides use equally many seeds.
    """
    pair = with_equal_seeds(contender, against)
    ranks = list(ranks_side_by_side(pair).values())  # [S, N] each
    users = Users.of(pair[0].results[0].by_checkin[record.USER].to_numpy())
    values = [per_target(metric, side) for metric in metrics for side in ranks]  # [S, N] each
    sampled = users.sampled_means(np.concatenate(values), seed=seed, draws=draws)
    ends = np.cumsum([len(side) for side in values])[:-1]
    sides = np.split(sampled, ends)  # [S, B] each
    return [
        _paired_test(pair, metric, users, values[at : at + 2], sides[at : at + 2], seed=seed)
        for at, metric in zip(range(0, len(values), 2), metrics, strict=True)
    ]


def _paired_test(
    pair: tuple[Contender, Contender],
    metric: str,
    users: Users,
    values: Sequence[NDArray[np.float64]],
    sampled: Sequence[NDArray[np.float64]],
    *,
    seed: int,
) -> PairedTest:
    """The test of two sides, from values by target and means by sample. [S, N], [S, B] each"""
    means = np.stack([side.mean(axis=0) for side in values])  # [2, N]
    mean, against_mean = means.mean(axis=1).tolist()
    by_user, other_by_user = users.sums(means) / users.targets  # [U]
    centres = [side.mean(axis=0) for side in sampled]  # [B] each
    rng = np.random.default_rng(seed)
    varied = [
        centre if own.is_counted else _with_other_seeds(side, rng=rng)
        for own, side, centre in zip(pair, sampled, centres, strict=True)
        if own.is_counted or len(own.seeds) > 1
    ]
    has_seeds = len(varied) == len(pair)
    return PairedTest(
        contender=pair[0].name,
        against=pair[1].name,
        metric=metric,
        seeds=pair[0].seeds,
        against_seeds=pair[1].seeds,
        mean=mean,
        against_mean=against_mean,
        wilcoxon=signed_rank(by_user - other_by_user),
        users=Bootstrap.of(mean - against_mean, centres[0] - centres[1]),
        users_and_seeds=Bootstrap.of(mean - against_mean, varied[0] - varied[1])
        if has_seeds
        else None,
    )


def judge(tests: Sequence[PairedTest], *, family: str) -> list[Verdict]:
    """Correct the tests of one family together, also of several cities and metrics.

    The paper's families: the main table's 15 tests (5 metrics x 3 cities, against the strongest
    baseline of each column), and the ablation's 5 variants within one city and metric.
    """
    corrected = zip(
        holm([test.wilcoxon.p for test in tests]),
        holm([test.users.p for test in tests]),
        holm([1.0 if not test.users_and_seeds else test.users_and_seeds.p for test in tests]),
        strict=True,
    )
    return [
        Verdict(
            test=test,
            family=family,
            family_size=len(tests),
            wilcoxon_p=wilcoxon_p,
            users_p=users_p,
            seeds_p=seeds_p if test.users_and_seeds else None,
        )
        for test, (wilcoxon_p, users_p, seeds_p) in zip(tests, corrected, strict=True)
    ]
