"""The two-sided Wilcoxon signed-rank test: are paired differences symmetric about zero?

Differences of zero are left out (Wilcoxon 1945); equal sizes share their mean rank. Up to 50
differences without equal sizes have an exact p; otherwise it is that of the normal approximation,
its variance corrected for equal sizes, without a correction for continuity.

Effect size: the matched-pairs rank-biserial correlation (Kerby 2014), the share of the rank sum
that is for the first side minus the share that is against it; -1 to 1.
"""

import math
import sys
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MOST_EXACT: Final = 50
"""Differences up to which p is exact; the number of sign patterns, 2^50, is whole in float64."""
DECIMALS: Final = 12
"""Differences are rounded so far: the order in which seeds are summed must not break a tie."""


@dataclass(frozen=True, kw_only=True)
class SignedRank:
    """Outcome of the test, and how often each side was ahead."""

    wins: int
    """Differences above zero."""
    ties: int
    """Differences of zero, which the test leaves out."""
    losses: int
    """Differences below zero."""
    rank_sum_for: float
    """Sum of the ranks of the wins."""
    rank_sum_against: float
    """Sum of the ranks of the losses."""
    p: float
    """Two-sided; 1 where all differences are zero."""
    is_exact: bool

    @property
    def rank_biserial(self) -> float:
        """Effect size from -1 (always behind) to 1 (always ahead); 0 where all are tied."""
        total = self.rank_sum_for + self.rank_sum_against
        return (self.rank_sum_for - self.rank_sum_against) / total if total else 0.0


def signed_rank(differences: NDArray[np.float64]) -> SignedRank:
    """Test paired differences, one a target, for symmetry about zero. [N]"""
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
    return max(p, sys.float_info.min)  # no finite sample is proof
