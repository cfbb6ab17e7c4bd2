"""Significance: is one contender better than another on the same targets?

The metric of every target is averaged over equally many seeds of each side, and the differences are
tested twice: by the Wilcoxon signed-rank test (are they symmetric about zero?) and by a paired
bootstrap (is their mean zero?). The p-values of a family of tests are corrected together. Stars
follow the Wilcoxon test, as in the paper; the verdict says where the bootstrap disagrees.
docs/statistics.md states every choice.

Shapes: N targets, B draws held at a time.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import BadInput
from castpoi.evaluation.compare import Contender, ranks_side_by_side, with_equal_seeds
from castpoi.evaluation.metrics import per_target

ALPHA: Final = 0.05
_STARS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
DRAWS: Final = 20_000
"""The paper's number of draws."""
LEVEL: Final = 0.95
"""Share of the drawn means between `low` and `high`."""
BLOCK: Final = 2**19
"""Targets drawn at a time: a few megabytes."""

_ROUNDING: Final = 1e-12  # means that are equal on paper may differ by this much
MOST_EXACT: Final = 50
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
    """Test paired differences, one a target, for symmetry about zero. [N]

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
    is_exact = len(sizes) == len(moved) <= MOST_EXACT
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
    return max(p, sys.float_info.min)  # a finite sample never proves it


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """A mean difference with its interval and p, from a paired bootstrap."""

    mean: float
    low: float
    high: float
    p: float  # two-sided; at least 1 / (draws + 1)
    draws: int


def paired_bootstrap(
    differences: NDArray[np.float64], *, rng: np.random.Generator, draws: int = DRAWS
) -> Bootstrap:
    """Test paired differences, one a target, for a mean of zero. [N]

    Targets are drawn with replacement, both sides of a target together. The interval is that of
    the percentiles of the drawn means. p is two-sided under the null hypothesis that the mean is
    zero: the share of draws whose mean is as far from the observed mean as that is from zero. The
    observation itself counts as a draw, so p is never 0 (Davison & Hinkley 1997, section 4.2).
    """
    if not len(differences):
        raise BadInput("there is no target to draw from; a bootstrap needs at least one difference")
    if draws < 1:
        raise BadInput(f"{draws} draws are too few; a bootstrap needs at least one")
    mean = float(differences.mean())
    means = _drawn_means(differences, rng=rng, draws=draws)
    as_far = int((np.abs(means - mean) >= abs(mean) - _ROUNDING).sum())
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    p = (1 + as_far) / (draws + 1)
    return Bootstrap(mean=mean, low=float(low), high=float(high), p=p, draws=draws)


def _drawn_means(
    differences: NDArray[np.float64], *, rng: np.random.Generator, draws: int
) -> NDArray[np.float64]:
    targets = len(differences)
    means = np.empty(draws)
    step = max(1, BLOCK // targets)
    for start in range(0, draws, step):
        size = (min(step, draws - start), targets)
        drawn = rng.integers(targets, size=size)  # [B, N]
        means[start : start + step] = differences[drawn].mean(axis=1)  # [B]
    return means


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
    wilcoxon: SignedRank
    bootstrap: Bootstrap


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A test with the p-values of its family corrected."""

    test: PairedTest
    family: str  # description of what was tested together
    family_size: int
    wilcoxon_p: float  # corrected by Holm's method
    bootstrap_p: float  # corrected by Holm's method

    @property
    def is_significant(self) -> bool:
        """Whether the Wilcoxon test rejects."""
        return self.wilcoxon_p < ALPHA

    @property
    def tests_disagree(self) -> bool:
        """Whether only one of the two tests rejects, or they favour different sides."""
        bootstrap_rejects = self.bootstrap_p < ALPHA
        opposed = self.test.bootstrap.mean * self.test.wilcoxon.rank_biserial < 0
        return self.is_significant != bootstrap_rejects or (self.is_significant and opposed)

    @property
    def stars(self) -> str:
        """One for p < 0.05, two for p < 0.01, three for p < 0.001 (Wilcoxon, corrected)."""
        return next((stars for below, stars in _STARS if self.wilcoxon_p < below), "")


def paired_test(
    contender: Contender, against: Contender, metric: str, *, seed: int, draws: int = DRAWS
) -> PairedTest:
    """Test two contenders on the same targets; `seed` is that of the bootstrap.

    Both sides use equally many seeds.
    """
    contender, against = with_equal_seeds(contender, against)
    sides = ranks_side_by_side([contender, against]).values()  # each [S, N]
    ours, theirs = (per_target(metric, ranks).mean(axis=0) for ranks in sides)  # each [N]
    differences = ours - theirs
    return PairedTest(
        contender=contender.name,
        against=against.name,
        metric=metric,
        seeds=contender.seeds,
        against_seeds=against.seeds,
        mean=float(ours.mean()),
        against_mean=float(theirs.mean()),
        wilcoxon=signed_rank(differences),
        bootstrap=paired_bootstrap(differences, rng=np.random.default_rng(seed), draws=draws),
    )


def judge(tests: Sequence[PairedTest], *, family: str) -> list[Verdict]:
    """Correct the tests of one family together, also of several cities and metrics.

    The paper's families: the main table's 15 tests (5 metrics x 3 cities, against the strongest
    baseline of each column), and the ablation's 5 variants within one city and metric.
    """
    by_wilcoxon = holm([test.wilcoxon.p for test in tests])
    by_bootstrap = holm([test.bootstrap.p for test in tests])
    return [
        Verdict(
            test=test,
            family=family,
            family_size=len(tests),
            wilcoxon_p=wilcoxon_p,
            bootstrap_p=bootstrap_p,
        )
        for test, wilcoxon_p, bootstrap_p in zip(tests, by_wilcoxon, by_bootstrap, strict=True)
    ]
