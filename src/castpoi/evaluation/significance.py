"""Significance: is one contender better than another on the same targets, or was it luck?

The metric of every target is averaged over equally many seeds of each side, and the differences are
tested twice: by the Wilcoxon signed-rank test (are they symmetric about zero?) and by a paired
bootstrap (is their mean zero?). The p-values of a family of tests are corrected together. Stars
follow the Wilcoxon test, as in the paper; where the bootstrap says otherwise the verdict tells.
docs/statistics.md states every choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from castpoi.evaluation.bootstrap import DRAWS, Bootstrap, paired_bootstrap
from castpoi.evaluation.contender import Contender, ranks_side_by_side, with_equal_seeds
from castpoi.evaluation.holm import holm
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.wilcoxon import SignedRank, signed_rank

ALPHA: Final = 0.05
_STARS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """One contender against another by one metric, before any correction."""

    contender: str
    against: str
    metric: str
    fingerprint: str
    """Of the split both were evaluated on."""
    n: int
    """Number of targets."""
    seeds: tuple[int, ...]
    """Seeds of the contender that went in; none where it only counts."""
    against_seeds: tuple[int, ...]
    mean: float
    """Over targets and the seeds that went in."""
    against_mean: float
    wilcoxon: SignedRank
    bootstrap: Bootstrap


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A test judged as one of its family."""

    test: PairedTest
    family: str
    """What was tested together, in words."""
    family_size: int
    alpha: float
    wilcoxon_p: float
    """Corrected by Holm's method."""
    bootstrap_p: float
    """Corrected by Holm's method."""

    @property
    def is_significant(self) -> bool:
        """Whether the Wilcoxon test rejects."""
        return self.wilcoxon_p < self.alpha

    @property
    def tests_disagree(self) -> bool:
        """Whether only one of the two tests rejects, or they favour different sides."""
        bootstrap_rejects = self.bootstrap_p < self.alpha
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

    Seeds that would make the sides unequal in number are left out.
    """
    contender, against = with_equal_seeds(contender, against)
    sides = ranks_side_by_side([contender, against]).values()  # each [S, N]
    ours, theirs = (per_target(metric, ranks).mean(axis=0) for ranks in sides)  # each [N]
    differences = ours - theirs
    return PairedTest(
        contender=contender.name,
        against=against.name,
        metric=metric,
        fingerprint=contender.results[0].fingerprint,
        n=len(differences),
        seeds=contender.seeds,
        against_seeds=against.seeds,
        mean=float(ours.mean()),
        against_mean=float(theirs.mean()),
        wilcoxon=signed_rank(differences),
        bootstrap=paired_bootstrap(differences, rng=np.random.default_rng(seed), draws=draws),
    )


def judge(tests: Sequence[PairedTest], *, family: str, alpha: float = ALPHA) -> list[Verdict]:
    """Correct the tests of one family together; they may be of several cities and metrics.

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
            alpha=alpha,
            wilcoxon_p=wilcoxon_p,
            bootstrap_p=bootstrap_p,
        )
        for test, wilcoxon_p, bootstrap_p in zip(tests, by_wilcoxon, by_bootstrap, strict=True)
    ]
