"""The paired bootstrap: how large could the mean difference be by the luck of the targets?

Targets are drawn with replacement, both sides of a target together. The interval is that of the
percentiles of the drawn means. p is two-sided under the null hypothesis that the mean is zero:
the share of draws whose mean lies as far from the observed mean as that lies from zero, counting
the observation itself as a draw, so that p is never 0 (Davison & Hinkley 1997, section 4.2).

Shapes: N targets, B draws held at a time.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from castpoi.core.errors import BadInput

DRAWS: Final = 20_000
"""The paper's number of draws."""
LEVEL: Final = 0.95
BLOCK: Final = 2**19
"""Targets drawn at a time, over all draws of a block: a few megabytes."""

_ROUNDING: Final = 1e-12  # means that are equal on paper may differ by this much


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """A mean difference with its interval and p."""

    mean: float
    low: float
    high: float
    level: float
    """Share of the drawn means between `low` and `high`."""
    p: float
    """Two-sided; at least 1 / (draws + 1)."""
    draws: int


def paired_bootstrap(
    differences: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    draws: int = DRAWS,
    level: float = LEVEL,
    block: int = BLOCK,
) -> Bootstrap:
    """Test paired differences, one a target, for a mean of zero. [N]"""
    if not len(differences):
        raise BadInput("there is no target to draw from; a bootstrap needs at least one difference")
    if draws < 1:
        raise BadInput(f"{draws} draws say nothing; a bootstrap needs at least one")
    mean = float(differences.mean())
    means = _drawn_means(differences, rng=rng, draws=draws, block=block)
    as_far = int((np.abs(means - mean) >= abs(mean) - _ROUNDING).sum())
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Bootstrap(
        mean=mean,
        low=float(low),
        high=float(high),
        level=level,
        p=(1 + as_far) / (draws + 1),
        draws=draws,
    )


def _drawn_means(
    differences: NDArray[np.float64], *, rng: np.random.Generator, draws: int, block: int
) -> NDArray[np.float64]:
    targets = len(differences)
    means = np.empty(draws)
    step = max(1, block // targets)
    for start in range(0, draws, step):
        size = (min(step, draws - start), targets)
        drawn = rng.integers(targets, size=size)  # [B, N]
        means[start : start + step] = differences[drawn].mean(axis=1)  # [B]
    return means
