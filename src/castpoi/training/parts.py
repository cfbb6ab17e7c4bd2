"""Computes a training step in parts, one thread each, so that threads synchronise once per step.

By default torch divides every operation among its threads and waits for the slowest one. If another
process occupies a core, each of these thousands of waits lasts a time slice. Here one thread
computes the whole gradient of one part of the batch.

The gradient does not depend on the number of threads: a setting fixes the number of parts, every
part has its own random numbers, and gradients are summed in the order of the parts.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from castpoi.model.layers import dropout_seed
from castpoi.training.objectives import Objective

_Gradients = tuple[float, list[Tensor | None]]


@dataclass(frozen=True)
class StepParts:
    """Computes the gradients of a batch in a number of parts."""

    objective: Objective[Any]
    parts: int
    pool: ThreadPoolExecutor | None  # None: one part after the other

    @classmethod
    @contextmanager
    def of(cls, objective: Objective[Any], parts: int, *, threads: int) -> Iterator["StepParts"]:
        """Use one thread per part, but at most `threads`, until the block ends."""
        workers = min(parts, threads)
        if workers == 1:
            yield cls(objective, parts, None)
            return
        with ThreadPoolExecutor(workers, initializer=partial(torch.set_num_threads, 1)) as pool:
            yield cls(objective, parts, pool)

    def backward(self, model: nn.Module, batch: Any, seed: tuple[int, ...]) -> float:
        """Set the gradients of the weights for a batch; returns its mean loss."""
        total = self.objective.targets(batch)
        shares = [self.objective.share(batch, part, self.parts) for part in range(self.parts)]
        weights = list(model.parameters())

        def gradients(part: int) -> _Gradients:
            share = self.objective.targets(shares[part]) / total
            if not share:
                return 0.0, [None] * len(weights)
            with dropout_seed((*seed, part)):
                loss = self.objective.loss(model, shares[part]) * share
            return float(loss.detach()), list(torch.autograd.grad(loss, weights, allow_unused=True))

        each = map if self.pool is None else self.pool.map
        found = list(each(gradients, range(self.parts)))
        for number, weight in enumerate(weights):
            parts = [grads[number] for _, grads in found]
            present = [grad for grad in parts if grad is not None]
            weight.grad = sum(present[1:], start=present[0]) if present else None
        return sum(loss for loss, _ in found)
