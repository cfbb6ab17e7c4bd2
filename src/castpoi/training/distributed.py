"""Distributed training: several processes train one model, each with a share of every batch.

After each step the gradients are averaged, weighted by their numbers of targets, so all processes
take the step that a single process would take with the whole batch. All processes share one file
system: checkpoints are written by the first and read by all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.training.job import World
from castpoi.training.objectives import Batch, Objective


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """The processes that train together, of which there may be only one."""

    world: World = field(default_factory=World)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_single(self) -> bool:
        """Whether there is only one process."""
        return self.world.ranks == 1

    def share(self, objective: Objective[Batch], batch: Batch) -> Batch:
        """The share of a batch of this process."""
        if self.is_single:
            return batch
        return objective.share(batch, self.world.rank, self.world.ranks)

    def average_gradients(self, model: nn.Module, loss: float, targets: int) -> tuple[float, int]:
        """Average gradients over all targets; the mean loss and number of targets of all."""
        if self.is_single:
            return loss, targets
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        has_grad = torch.tensor([float(weight.grad is not None) for weight in weights])
        grads = [
            (torch.zeros_like(weight) if weight.grad is None else weight.grad).flatten() * targets
            for weight in weights
        ]
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
        """All values; process r has computed those at r, r + ranks, ... [count]"""
        if self.is_single:
            return share
        whole = torch.zeros(count, dtype=torch.float64, device=self.device)
        whole[self.world.rank :: self.world.ranks] = torch.from_numpy(share).to(self.device)
        return self._sum(whole).cpu().numpy()

    def wait(self) -> None:
        """Wait until all processes have reached this point."""
        if not self.is_single:
            self._sum(torch.zeros(1, device=self.device))

    def _sum(self, numbers: Tensor) -> Tensor:
        dist.all_reduce(numbers)
        return numbers


@contextmanager
def process_group(device: torch.device) -> Iterator[ProcessGroup]:
    """While the block runs, the processes started by torchrun, or this one alone."""
    world = World.from_environment()
    if world.ranks == 1:
        yield ProcessGroup(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield ProcessGroup(world=world, device=device)
    finally:
        dist.destroy_process_group()
