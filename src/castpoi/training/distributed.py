"""Several processes that train one model: each learns from a share of every batch.

After each step the gradients are averaged by the number of targets behind them, so all processes
take the same step, and it is the step one process would take from the whole batch. All of them
see one file system (checkpoints are read by all and written by the first).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.training.objective import Batch, Objective
from castpoi.training.world import World


@dataclass(frozen=True, kw_only=True)
class Team:
    """The processes that train together; one alone is a team too."""

    world: World = field(default_factory=World)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_alone(self) -> bool:
        """Whether there is nobody to share with."""
        return self.world.ranks == 1

    def share(self, objective: Objective[Batch], batch: Batch) -> Batch:
        """This process's part of a batch."""
        if self.is_alone:
            return batch
        return objective.share(batch, self.world.rank, self.world.ranks)

    def average_gradients(self, model: nn.Module, loss: float, targets: int) -> tuple[float, int]:
        """Average gradients over all targets of the team; its mean loss and number of targets."""
        if self.is_alone:
            return loss, targets
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        has_slope = torch.tensor([float(weight.grad is not None) for weight in weights])
        slopes = [_slope(weight).flatten() * targets for weight in weights]
        tally = torch.tensor([loss * targets if targets else 0.0, float(targets)])
        summed = self._sum(torch.cat([*slopes, torch.cat([tally, has_slope]).to(slopes[0])]))
        sizes = [*(weight.numel() for weight in weights), 2, len(weights)]
        *slopes, tally, has_slope = summed.split(sizes)
        total = float(tally[1])
        for weight, slope, anybody in zip(weights, slopes, has_slope.tolist(), strict=True):
            # a weight that no process used must stay without a gradient, or it would decay
            weight.grad = (slope / total).view_as(weight) if anybody else None
        return float(tally[0]) / total, round(total)

    def gather(self, share: NDArray[np.float64], count: int) -> NDArray[np.float64]:
        """The whole of what process r has computed for the numbers r, r + ranks, ... [count]"""
        if self.is_alone:
            return share
        whole = torch.zeros(count, dtype=torch.float64, device=self.device)
        whole[self.world.rank :: self.world.ranks] = torch.from_numpy(share).to(self.device)
        gathered: NDArray[np.float64] = self._sum(whole).cpu().numpy()
        return gathered

    def wait(self) -> None:
        """Go on when all have come this far."""
        if not self.is_alone:
            self._sum(torch.zeros(1, device=self.device))

    def _sum(self, numbers: Tensor) -> Tensor:
        dist.all_reduce(numbers)
        return numbers


@contextmanager
def team(device: torch.device) -> Iterator[Team]:
    """The team that torchrun has called together, while the block runs; or one alone."""
    world = World.from_environment()
    if world.ranks == 1:
        yield Team(device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(world=world, device=device)
    finally:
        dist.destroy_process_group()


def _slope(weight: nn.Parameter) -> Tensor:
    return torch.zeros_like(weight) if weight.grad is None else weight.grad
