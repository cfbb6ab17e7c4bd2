"""A running mean of the weights: steadier than the weights of any single step.

After step n the mean keeps a share min(decay, (n + 1) / (n + 10)) of itself, so that the random
weights of the start are soon forgotten, and long runs keep the full memory.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """The mean of a model's weights over its steps."""

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.mean = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    @torch.no_grad()
    def add(self, model: nn.Module, step: int) -> None:
        """Take in the weights after a step, the first being 1."""
        kept = min(self.decay, (step + 1) / (step + 10))
        for name, weight in model.named_parameters():
            self.mean[name].lerp_(weight, 1 - kept)

    @torch.no_grad()
    def restore(self, mean: Mapping[str, Tensor]) -> None:
        """Continue from a mean that was saved."""
        for name, weight in self.mean.items():
            weight.copy_(mean[name])

    @contextmanager
    def applied(self, model: nn.Module) -> Iterator[None]:
        """The mean in place of the model's weights while the block runs."""
        own = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        set_weights(model, self.mean)
        try:
            yield
        finally:
            set_weights(model, own)


@torch.no_grad()
def set_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a model, by name."""
    for name, weight in model.named_parameters():
        weight.copy_(weights[name])
