"""Places drawn to stand for all that the reader does not read.

The sum of exp(s + r) over thousands of places is to be known from a few. What is never drawn, the
reader could raise at will: were places drawn by their chance exp(s) alone, it would raise unlikely
ones; were they drawn evenly, those nearby. So a quarter of the draws follows the chance, a quarter
its square root, a quarter the distance from the last visits, and a quarter is even; each draw is
weighed by its chance over the chance to be drawn.

Shapes: R targets, V places, W ways of drawing, n draws.
"""

from typing import Final

import numpy as np
import torch
from torch import Tensor

NEAR_WEIGHTS: Final = (16.0, 4.0, 1.0, 0.1)
"""How much likelier a place is to be drawn in each bucket of distance; farther ones never are."""
_WAYS: Final = 4
_LEAST: Final = 1e-30  # where nothing is left to draw from, nothing is divided by zero


def draw_places(
    chance: Tensor, bucket: Tensor, count: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Places of each target, and how much each stands for. [R, V], [R, V] -> [R, n], [R, n]

    Chances need not sum to 1; the bucket is that of the distance from the last visits.
    """
    even = chance.new_ones(1).expand_as(chance)
    densities = [chance, chance.sqrt(), _nearness(chance, bucket), even]
    summed = [each.cumsum(dim=1) for each in densities[:-1]]  # [R, V] each
    summed.append(even[0].cumsum(dim=0))  # [V], the same for all
    counts = [len(part) for part in np.array_split(np.arange(count), _WAYS)]
    starts = torch.from_numpy(rng.random((_WAYS, len(chance), 1), dtype=np.float32))
    drawn = torch.cat(
        [
            _passed(each, start.to(chance.device), steps)
            for each, start, steps in zip(summed, starts, counts, strict=True)
        ],
        dim=1,
    )  # [R, n]
    # how likely each way was to draw each place, whichever way drew it
    by_way = torch.stack(
        [
            density.gather(1, drawn) / sums[..., -1:].clamp(min=_LEAST)
            for density, sums in zip(densities, summed, strict=True)
        ]
    )  # [W, R, n]
    parts = chance.new_tensor(counts) / count  # [W]
    density = torch.einsum("w,wrn->rn", parts, by_way)
    # even where no place has a chance
    weight = (by_way[0] / density.clamp(min=_LEAST)).clamp(min=_LEAST)
    return drawn, weight / weight.sum(dim=1, keepdim=True)


def _nearness(chance: Tensor, bucket: Tensor) -> Tensor:
    """How likely each place is to be drawn for its distance. [R, V], [R, V] -> [R, V]"""
    weights = chance.new_zeros(256)
    weights[: len(NEAR_WEIGHTS)] = chance.new_tensor(NEAR_WEIGHTS)
    nearness = weights.index_select(0, bucket.flatten().int()).view_as(chance)
    return nearness.mul_(chance.sign())  # what is read anyway is not drawn


def _passed(summed: Tensor, start: Tensor, steps: int) -> Tensor:
    """Places at which a running sum passes even steps of the whole.

    [R, V] or [V], [R, 1] -> [R, n]
    """
    levels = (start + torch.arange(steps, device=summed.device)) / max(1, steps)
    passed = torch.searchsorted(summed, levels * summed[..., -1:], right=True)
    return passed.clamp(max=summed.shape[-1] - 1)
