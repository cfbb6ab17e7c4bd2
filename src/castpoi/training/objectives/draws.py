"""Places drawn as a sample of all that the reader does not read.

The sum of exp(s + r) over thousands of places is estimated from a few. The reader could raise the
score of a place that is never drawn without a penalty: with draws by probability exp(s) alone it
would raise unlikely places, with even draws those nearby. So a quarter of the draws follows the
probability, a quarter its square root, a quarter the distance from the last visits, and a quarter
is even; the weight of each draw is its probability divided by the probability of drawing it.

Shapes: R targets, P places, W ways of drawing, n draws.
"""

from typing import Final

import numpy as np
import torch
from torch import Tensor

NEAR_WEIGHTS: Final = (16.0, 4.0, 1.0, 0.1)
"""Density of drawing in each bucket of distance; zero in farther ones."""
_WAYS: Final = 4
_TINY: Final = 1e-30  # divisor if nothing is left to draw from


def draw_places(
    probability: Tensor, bucket: Tensor, count: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Draws for each target, and their weights. [R, P], [R, P] -> [R, n], [R, n]

    Probabilities need not sum to 1; the bucket is that of the distance from the last visits.
    """
    even = probability.new_ones(1).expand_as(probability)
    densities = [probability, probability.sqrt(), _nearness(probability, bucket), even]
    summed = [each.cumsum(dim=1) for each in densities[:-1]]  # [R, P] each
    summed.append(even[0].cumsum(dim=0))  # [P], the same for all
    counts = [len(part) for part in np.array_split(np.arange(count), _WAYS)]
    starts = torch.from_numpy(rng.random((_WAYS, len(probability), 1), dtype=np.float32))
    drawn = torch.cat(
        [
            _passed(each, start.to(probability.device), steps)
            for each, start, steps in zip(summed, starts, counts, strict=True)
        ],
        dim=1,
    )  # [R, n]
    # the density of each way at each drawn place, of all ways
    by_way = torch.stack(
        [
            density.gather(1, drawn) / sums[..., -1:].clamp(min=_TINY)
            for density, sums in zip(densities, summed, strict=True)
        ]
    )  # [W, R, n]
    parts = probability.new_tensor(counts) / count  # [W]
    density = torch.einsum("w,wrn->rn", parts, by_way)
    # even if no place has a probability
    weight = (by_way[0] / density.clamp(min=_TINY)).clamp(min=_TINY)
    return drawn, weight / weight.sum(dim=1, keepdim=True)


def _nearness(probability: Tensor, bucket: Tensor) -> Tensor:
    """The density of drawing by distance. [R, P], [R, P] -> [R, P]"""
    weights = probability.new_zeros(256)
    weights[: len(NEAR_WEIGHTS)] = probability.new_tensor(NEAR_WEIGHTS)
    nearness = weights.index_select(0, bucket.flatten().int()).view_as(probability)
    return nearness.mul_(probability.sign())  # places that are read anyway are not drawn


def _passed(summed: Tensor, start: Tensor, steps: int) -> Tensor:
    """Places at which a running sum passes even steps of the whole.

    [R, P] or [P], [R, 1] -> [R, n]
    """
    levels = (start + torch.arange(steps, device=summed.device)) / max(1, steps)
    passed = torch.searchsorted(summed, levels * summed[..., -1:], right=True)
    return passed.clamp(max=summed.shape[-1] - 1)
