"""How often two seeds of one and the same row differ: what no test between two rows tells."""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from castpoi.evaluation.compare import Contender, ranks_side_by_side
from castpoi.evaluation.metrics import per_target
from castpoi.evaluation.significance import ALPHA, signed_rank
from castpoi.reports.evidence import Evidence

METRIC: Final = "MRR"


@dataclass(frozen=True)
class SeedNoise:
    """Pairs of seeds, and how many of them a signed-rank test tells apart."""

    pairs: int
    differing: int

    @property
    def words(self) -> str:
        """A sentence about it; empty where no row has two seeds."""
        if not self.pairs:
            return ""
        return (
            f"Two seeds of one and the same row differ with p < {ALPHA} by {METRIC} (Wilcoxon, "
            f"uncorrected) in {self.differing} of {self.pairs} pairs here."
        )


def seed_noise(evidence: Evidence) -> SeedNoise:
    """All pairs of seeds of every learned row on every city, tested by MRR."""
    contenders = [own for city in evidence.cities for own in city.contenders.values()]
    p = [p for contender in contenders if not contender.is_counted for p in p_of_pairs(contender)]
    return SeedNoise(pairs=len(p), differing=int(sum(each < ALPHA for each in p)))


def p_of_pairs(contender: Contender) -> list[float]:
    """The p-value of every pair of seeds of one contender, uncorrected."""
    ranks = ranks_side_by_side([contender])[contender.name]  # [S, N]
    values = per_target(METRIC, np.asarray(ranks))  # [S, N]
    return [
        signed_rank(values[one] - values[other]).p
        for one, other in combinations(range(len(values)), 2)
    ]
