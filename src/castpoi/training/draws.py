"""Places drawn to stand for all that the reader does not read.

The sum of exp(s + r) over thousands of places is to be known from a few. Drawn by their chance
exp(s), unlikely places would never be seen, and a reader could raise them at will; drawn evenly,
the likely ones hardly ever would. So a third of the draws follows the chance, a third its square
root, and a third is even; each draw is weighed by its chance over the chance to be drawn.

Shapes: R targets, V places, n draws.
"""

from typing import Final

import numpy as np
import torch
from torch import Tensor

_WAYS: Final = 3
_LEAST: Final = 1e-30  # where nothing is left to draw from, nothing is divided by zero


def draw_places(chance: Tensor, count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Places of each row and what they stand for; chances need not sum to 1. -> [R, n], [R, n]"""
    rows, places = chance.shape
    counts = [len(part) for part in np.array_split(np.arange(count), _WAYS)]
    starts = torch.from_numpy(rng.random((_WAYS, rows, 1), dtype=np.float32)).to(chance.device)
    levels = [
        (start + torch.arange(each, device=chance.device)) / max(1, each)
        for start, each in zip(starts, counts, strict=True)
    ]  # even steps from a random start: each place as likely as it should be, the draws apart
    root = chance.sqrt()
    summed, summed_root = chance.cumsum(dim=1), root.cumsum(dim=1)
    drawn = torch.cat(
        [
            _passed(summed, levels[0]),
            _passed(summed_root, levels[1]),
            (levels[2] * places).long().clamp(max=places - 1),
        ],
        dim=1,
    )  # [R, n]
    likely = chance.gather(1, drawn) / summed[:, -1:].clamp(min=_LEAST)
    rooted = root.gather(1, drawn) / summed_root[:, -1:].clamp(min=_LEAST)
    evenly = torch.full_like(likely, 1 / places)
    parts = likely.new_tensor(counts) / count
    density = parts[0] * likely + parts[1] * rooted + parts[2] * evenly
    # even where no place has a chance
    weight = (likely / density.clamp(min=_LEAST)).clamp(min=_LEAST)
    return drawn, weight / weight.sum(dim=1, keepdim=True)


def _passed(summed: Tensor, levels: Tensor) -> Tensor:
    """Places at which a running sum passes each level of the whole. [R, V], [R, n] -> [R, n]"""
    passed = torch.searchsorted(summed, levels * summed[:, -1:], right=True)
    return passed.clamp(max=summed.shape[1] - 1)
