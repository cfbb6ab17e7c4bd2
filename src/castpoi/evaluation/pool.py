"""Pool size: what would a method score if the target stood among few places drawn at random?

Much of the literature ranks a target among 99 places drawn uniformly. The rank among all places
tells what would come out on average: of the r - 1 better places, a hypergeometric number comes into
a pool of N (the target and N - 1 others). So no model is run again, and nothing is drawn.

    HR@k   chance that at most k - 1 better places come into the pool
    MRR    mean of 1 / (1 + better places in the pool)  =  P / (r N) x (1 - C(P - r, N) / C(P, N))

Ties leave mid-ranks: r - 1 counts half of the tied places as better. A half-rank is read so that
the whole vocabulary as pool gives the metric itself: for HR@k as the next whole rank (10.5 is no
hit at 10), for MRR as the harmonic mean of the values of its two neighbours.

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
from castpoi.evaluation.contender import Contender, ranks_side_by_side

POOLS: Final = (100, 200, 500, 1000, 2000, 5000)
"""Pool sizes that are looked at, besides the whole vocabulary."""

_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, kw_only=True)
class PoolCurve:
    """A metric of every contender against the size of the pool."""

    metric: str
    pools: list[int]
    """Ascending; the last is the whole vocabulary."""
    values: dict[str, list[float]]
    """By contender, one a pool: the mean over targets and seeds."""
    flips: list[tuple[str, str]]
    """Pairs whose order in the smallest pool is not that in the whole vocabulary, the better one
    in the whole vocabulary first."""


def pool_curve(
    contenders: Sequence[Contender],
    metric: str,
    *,
    pools: Sequence[int] = POOLS,
) -> PoolCurve:
    """A metric at every pool size below the vocabulary, and in the whole vocabulary."""
    ranks = ranks_side_by_side(contenders)
    places = contenders[0].results[0].places
    sizes = [*sorted(pool for pool in set(pools) if pool < places), places]
    values = {
        name: [float(in_pool(metric, own, pool=pool, places=places).mean()) for pool in sizes]
        for name, own in ranks.items()
    }
    return PoolCurve(metric=metric, pools=sizes, values=values, flips=_flips(values))


def in_pool(
    metric: str, ranks: NDArray[np.float64], *, pool: int, places: int
) -> NDArray[np.float64]:
    """What each target is expected to add to HR@k or MRR in a pool; of the shape of the ranks."""
    if not 1 <= pool <= places:
        raise BadInput(f"a pool of {pool:,} is impossible: it holds 1 to all {places:,} places")
    if ranks.size and not 1 <= ranks.min() <= ranks.max() <= places:
        raise BadInput(
            f"ranks from {ranks.min():,} to {ranks.max():,} do not fit {places:,} places; name "
            "the number of places of the city they are from"
        )
    distinct, back = np.unique(ranks, return_inverse=True)  # [U]
    kind, _, cutoff = metric.partition("@")
    if kind == "HR" and cutoff.isdecimal():
        value = _hits(np.ceil(distinct), int(cutoff), pool, places)
    elif metric == "MRR":
        below = _reciprocal(np.floor(distinct), pool, places)
        above = _reciprocal(np.ceil(distinct), pool, places)
        value = 2 / (1 / below + 1 / above)
    else:
        raise BadInput(f"'{metric}' has no closed form in a pool; choose HR@1, HR@5, ... or MRR")
    return value[back].reshape(ranks.shape)


def _hits(ranks: NDArray[np.float64], cutoff: int, pool: int, places: int) -> NDArray[np.float64]:
    """Chance that at most cutoff - 1 better places are drawn. [U]"""
    if pool == places:
        return (ranks <= cutoff).astype(np.float64)  # nothing is left to chance
    others, better, drawn = places - 1, ranks - 1, pool - 1
    came = np.arange(min(cutoff, pool))[:, None]  # [k, 1]
    # Log-gamma is off by about 1e-7 at ten million places, and the chance by that part of itself.
    log_chance = (
        _log_choose(better, came)
        + _log_choose(others - better, drawn - came)
        - _log_choose(others, drawn)
    )  # [k, U]
    chance: NDArray[np.float64] = np.exp(log_chance).sum(axis=0)  # [U]
    return np.minimum(chance, 1.0)


def _log_choose(of: ArrayLike, some: ArrayLike) -> NDArray[np.float64]:
    """Logarithm of the number of ways to choose some of them; -inf where there is none."""
    total, chosen = np.broadcast_arrays(np.asarray(of, float), np.asarray(some, float))
    possible = (chosen >= 0) & (chosen <= total)
    total, chosen = np.where(possible, total, 0), np.where(possible, chosen, 0)
    ways = _log_gamma(total + 1) - _log_gamma(chosen + 1) - _log_gamma(total - chosen + 1)
    return np.where(possible, ways, -np.inf)


def _reciprocal(ranks: NDArray[np.float64], pool: int, places: int) -> NDArray[np.float64]:
    """Mean of one over the rank in the pool. [U]"""
    # C(P - r, N) / C(P, N) is the chance that r given places all stay out of a pool of N. Its
    # logarithm is summed, not taken from log-gamma: near 1 the difference from 1 is what counts.
    longest = min(int(ranks.max(initial=0)), places - pool)
    stays_out = np.log1p(-pool / (places - np.arange(longest)))
    log_all_out = np.full(len(ranks), -np.inf)  # more places than stay out: one must come in
    summed = np.concatenate([[0.0], np.cumsum(stays_out)])
    can_stay = ranks <= longest
    log_all_out[can_stay] = summed[ranks[can_stay].astype(np.int64)]
    some_come: NDArray[np.float64] = -np.expm1(log_all_out)
    return some_come * places / (ranks * pool)


def _flips(values: dict[str, list[float]]) -> list[tuple[str, str]]:
    flips = []
    for one, other in combinations(values, 2):
        small, whole = (values[one][at] - values[other][at] for at in (0, -1))
        if small * whole < 0:
            flips.append((one, other) if whole > 0 else (other, one))
    return flips
