"""Metrics of ranks, as fractions between 0 and 1, and the two strata they are split by.

    HR@k    share of targets with rank <= k
    NDCG@k  mean of 1 / log2(1 + rank) where rank <= k, else 0 (one target a list: the ideal is 1)
    MRR     mean of 1 / rank

Ranks are mid-ranks and enter as they are: 10.5 is no hit at 10, and its discount is 1 / log2(11.5).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import BadInput

METRICS: Final = ("HR@1", "HR@5", "HR@10", "HR@20", "NDCG@5", "NDCG@10", "NDCG@20", "MRR")
STRATA: Final = ("revisit", "new")
"""Targets at a place of the user's previous 512 visits, and all others."""

Metrics = dict[str, float | None]


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over seeds; None where there is no value."""

    mean: float | None
    std: float | None = None  # None with one value

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Self:
        """The spread of the values that are not None."""
        known = [value for value in values if value is not None]
        if not known:
            return cls(mean=None)
        return cls(mean=fmean(known), std=stdev(known) if len(known) > 1 else None)


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Agreement of two orders of the same things, -1 to 1 (Kendall's tau-b; 0 if all are tied)."""
    signs = np.stack([np.sign(np.subtract.outer(each, each)) for each in (one, other)])  # [2, M, M]
    untied = np.abs(signs).sum(axis=(1, 2))  # [2]
    return float((signs[0] * signs[1]).sum() / np.sqrt(untied.prod())) if untied.all() else 0.0


def metrics_of(ranks: NDArray[np.float64]) -> Metrics:
    """All metrics of some ranks; None without ranks."""
    if not len(ranks):
        return dict.fromkeys(METRICS)
    return {name: float(np.mean(per_target(name, ranks))) for name in METRICS}


def strata_of(
    ranks: NDArray[np.float64], is_revisit: NDArray[np.bool_]
) -> dict[str, dict[str, float | int | None]]:
    """All metrics and the number of targets `n`, for revisits and for new places."""
    parts = dict(zip(STRATA, (ranks[is_revisit], ranks[~is_revisit]), strict=True))
    return {name: {**metrics_of(part), "n": len(part)} for name, part in parts.items()}


def per_target(metric: str, ranks: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of each target, whose mean is the metric; of the shape of the ranks."""
    if metric not in METRICS:
        raise BadInput(f"'{metric}' is not a metric; choose one of {', '.join(METRICS)}")
    kind, _, cutoff = metric.partition("@")
    if kind == "MRR":
        return 1 / ranks
    gain = 1 / np.log2(1 + ranks) if kind == "NDCG" else np.ones_like(ranks)
    return np.where(ranks <= int(cutoff), gain, 0.0)
