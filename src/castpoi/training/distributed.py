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
from castpoi.training.rows import SparseRows


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

    def average_rows(self, rows: SparseRows, share: float) -> None:
        """Average the gradients of rows; all processes then have the rows that any of them used.

        `share` is the part of the targets of the step that this process had. Only rows in use are
        sent, as a table of a million places would take longer to send than to train.
        """
        if self.is_single:
            return
        counts = self._gather(torch.tensor([len(rows.rows)]))
        numbers = self._gather(rows.rows, counts)
        grads = {}
        for name, leaf in rows.leaves.items():
            grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad * share
            grads[name] = self._gather(grad, counts)
        used, place = numbers.unique(return_inverse=True)  # sorted
        for name, leaf in rows.take(used).items():
            leaf.grad = torch.zeros_like(leaf).index_add_(0, place, grads[name])

    def _gather(self, own: Tensor, counts: Tensor | None = None) -> Tensor:
        """The rows of all processes, which have `counts` rows, else 1 each."""
        sizes = [1] * self.world.ranks if counts is None else counts.tolist()
        padded = own.new_zeros(max(sizes), *own.shape[1:])  # processes send equally many rows
        padded[: len(own)] = own.detach()
        every = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(every, padded)
        return torch.cat([each[:size] for each, size in zip(every, sizes, strict=True)])

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
    """While the block runs, the processes started by torchrun or Ray, or this one alone."""
    world = World.from_environment()
    if world.ranks == 1:
        yield ProcessGroup(device=device)
        return
    if dist.is_initialized():  # by Ray
        yield ProcessGroup(world=world, device=device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield ProcessGroup(world=world, device=device)
    finally:
        dist.destroy_process_group()
