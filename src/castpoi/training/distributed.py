"""Distributed training: several processes train one model, each on a share of every batch.

After each step the gradients are averaged, weighted by their numbers of targets, so all processes
take the same step, which is the step of a single process on the whole batch. All processes share
one file system: checkpoints are written by the first and read by all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.training.objectives import Batch, Objective
from castpoi.training.world import World


@dataclass(frozen=True, kw_only=True)
class Team:
    """The processes that train together; a single one too."""

    world: World = field(default_factory=World)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_alone(self) -> bool:
        """Whether there is one process only."""
        return self.world.ranks == 1

    def share(self, objective: Objective[Batch], batch: Batch) -> Batch:
        """The share of a batch of this process."""
        if self.is_alone:
            return batch
        return objective.share(batch, self.world.rank, self.world.ranks)

    def average_gradients(self, model: nn.Module, loss: float, targets: int) -> tuple[float, int]:
        """Average gradients over all targets; the mean loss and number of targets of all."""
        if self.is_alone:
            return loss, targets
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        has_grad = torch.tensor([float(weight.grad is not None) for weight in weights])
        grads = [_grad(weight).flatten() * targets for weight in weights]
        tally = torch.tensor([loss * targets if targets else 0.0, float(targets)])
        summed = self._sum(torch.cat([*grads, torch.cat([tally, has_grad]).to(grads[0])]))
        sizes = [*(weight.numel() for weight in weights), 2, len(weights)]
        *grads, tally, has_grad = summed.split(sizes)
        total = float(tally[1])
        for weight, grad, is_used in zip(weights, grads, has_grad.tolist(), strict=True):
            # a weight that no process used must remain without a gradient, or it would decay
            weight.grad = (grad / total).view_as(weight) if is_used else None
        return float(tally[0]) / total, round(total)

    def gather(self, share: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """All values, of which process r has computed numbers r, r + ranks, ... [count]"""
        if self.is_alone:
            return share
        whole = torch.zeros(count, dtype=torch.float64, device=self.device)
        whole[self.world.rank :: self.world.ranks] = torch.from_numpy(share).to(self.device)
        gathered: NDArray[np.float64] = self._sum(whole).cpu().numpy()
        return gathered

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if not self.is_alone:
            self._sum(torch.zeros(1, device=self.device))

    def _sum(self, numbers: Tensor) -> Tensor:
        dist.all_reduce(numbers)
        return numbers


@contextmanager
def team(device: torch.device) -> Iterator[Team]:
    """The processes started by torchrun, or this one alone, while the block runs."""
    world = World.from_environment()
    if world.ranks == 1:
        yield Team(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(world=world, device=device)
    finally:
        dist.destroy_process_group()


def _grad(weight: nn.Parameter) -> Tensor:
    return torch.zeros_like(weight) if weight.grad is None else weight.grad
