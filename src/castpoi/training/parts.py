"""A step in parts, each computed by one thread alone, so that threads wait once per step.

With several threads torch divides every operation among them, and all wait for the slowest after
each. If another process has one of the cores, each of thousands of waits takes its time slice. Here
a thread has a part of the batch from the first operation to the gradient.

The gradient does not depend on the number of threads: a setting fixes the parts, every part has its
own random numbers, and gradients are summed in the order of the parts.
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
        """While the block runs, as many threads as there are parts, or `threads` if fewer."""
        workers = min(parts, threads)
        if workers == 1:
            yield cls(objective, parts, None)
            return
        with ThreadPoolExecutor(workers, initializer=partial(torch.set_num_threads, 1)) as pool:
            yield cls(objective, parts, pool)

    def backward(self, model: nn.Module, batch: Any, seed: tuple[int, ...]) -> float:
        """Add the gradients of a batch to the weights; its mean loss."""
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
