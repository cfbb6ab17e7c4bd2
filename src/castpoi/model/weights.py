"""Arrays of a file become the weights of a model, all of them and no others."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


@torch.no_grad()
def fill(
    weights: Mapping[str, Tensor],
    arrays: Mapping[str, NDArray[Any]],
    *,
    besides: Collection[str] = (),
) -> None:
    """Copy each array into the weight of its name; those named `besides` are no weights.

    Raises:
        ValueError: an array has no weight, a weight no array, or their shapes differ.
    """
    unknown = sorted(arrays.keys() - weights.keys() - set(besides))
    if unknown:
        raise ValueError(f"the model has no weight {', '.join(unknown)}")
    missing = sorted(weights.keys() - arrays.keys())
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}; is it of an earlier castpoi?")
    for name, weight in weights.items():
        array = arrays[name]
        if weight.shape != array.shape:
            raise ValueError(f"weight {name} has shape {array.shape}, not {tuple(weight.shape)}")
        weight.copy_(torch.tensor(array))
