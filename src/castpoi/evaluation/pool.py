"""Pool size: the hit rate had the target been ranked among few places drawn at random.

Much of the literature ranks a target among 99 places drawn uniformly. The rank r among all P places
gives the expected outcome: of the r - 1 better places, a hypergeometric number is drawn into a pool
of N (the target and N - 1 others). So HR@k in a pool is the probability that at most k - 1 better
places are drawn; no model runs again, and nothing is drawn.

A mid-rank counts half of the tied places as better. It is rounded up, so that the whole vocabulary
as pool gives the metric itself: 10.5 is no hit at 10.

Shapes: S seeds, N targets, U distinct ranks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castpoi.core.errors import BadInput
from castpoi.evaluation.compare import Contender, ranks_side_by_side

POOLS: Final = (100, 200, 500, 1000, 2000, 5000)
"""Pool sizes that are evaluated, besides the whole vocabulary."""

_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, kw_only=True)
class PoolCurve:
    """HR@k of every contender by size of the pool."""

    pools: list[int]  # ascending; the last is the whole vocabulary
    values: dict[str, list[float]]  # by contender, one per pool: the mean over targets and seeds
    flips: list[tuple[str, str]]
    """Pairs whose order in the smallest pool is reversed in the whole vocabulary, the better one
    in the whole vocabulary first."""


def pool_curve(contenders: Sequence[Contender], cutoff: int) -> PoolCurve:
    """HR@cutoff for every pool size below the vocabulary, and in the whole vocabulary."""
    ranks = ranks_side_by_side(contenders)
    places = contenders[0].results[0].places
    sizes = [*(pool for pool in POOLS if pool < places), places]
    values = {
        name: [float(hits_in_pool(own, cutoff, pool=pool, places=places).mean()) for pool in sizes]
        for name, own in ranks.items()
    }
    return PoolCurve(pools=sizes, values=values, flips=_flips(values))


def hits_in_pool(
    ranks: NDArray[np.float64], cutoff: int, *, pool: int, places: int
) -> NDArray[np.float64]:
    """Probability of each target to be a hit at `cutoff` in a pool; of the shape of the ranks."""
    if not 1 <= pool <= places:
        raise BadInput(f"a pool of {pool:,} places is not possible; choose 1 to {places:,}")
    distinct, back = np.unique(ranks, return_inverse=True)  # [U]
    return _hits(np.ceil(distinct), cutoff, pool, places)[back].reshape(ranks.shape)


def _hits(ranks: NDArray[np.float64], cutoff: int, pool: int, places: int) -> NDArray[np.float64]:
    """Probability that at most cutoff - 1 better places are drawn. [U]"""
    if pool == places:
        return (ranks <= cutoff).astype(np.float64)  # every place is drawn
    others, better, drawn = places - 1, ranks - 1, pool - 1
    came = np.arange(min(cutoff, pool))[:, None]  # [k, 1]
    # log-gamma has an error of about 1e-7 at ten million places, as a share of the probability
    log_probability = (
        _log_choose(better, came)
        + _log_choose(others - better, drawn - came)
        - _log_choose(others, drawn)
    )  # [k, U]
    probability: NDArray[np.float64] = np.exp(log_probability).sum(axis=0)  # [U]
    return np.minimum(probability, 1.0)


def _log_choose(of: ArrayLike, some: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of the binomial coefficient; -inf where it is 0."""
    total, chosen = np.broadcast_arrays(np.asarray(of, float), np.asarray(some, float))
    possible = (chosen >= 0) & (chosen <= total)
    total, chosen = np.where(possible, total, 0), np.where(possible, chosen, 0)
    ways = _log_gamma(total + 1) - _log_gamma(chosen + 1) - _log_gamma(total - chosen + 1)
    return np.where(possible, ways, -np.inf)


def _flips(values: dict[str, list[float]]) -> list[tuple[str, str]]:
    flips = []
    for one, other in combinations(values, 2):
        small, whole = (values[one][at] - values[other][at] for at in (0, -1))
        if small * whole < 0:
            flips.append((one, other) if whole > 0 else (other, one))
    return flips
