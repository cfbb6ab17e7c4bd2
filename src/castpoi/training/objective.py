"""What a training step needs to know of a loss: its batches, and its value for one batch.

The objectives of CaST-POI (`full` and `fast`) and those of the learned baselines share everything
else: the loop, the schedule, the selection of the best epoch, checkpoints and logs.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from torch import Tensor, nn

Batch = TypeVar("Batch")


class Objective(Protocol[Batch]):
    """One way to learn from the train part of a city."""

    def batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, the first epoch being 0; a seed and an epoch fix them all."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean loss over the targets of a batch, a scalar to go down."""

    def targets(self, batch: Batch) -> int:
        """Number of targets in a batch, for rates and means."""

    def share(self, batch: Batch, rank: int, ranks: int) -> Batch:
        """What one of several processes learns from a batch; together they learn from all of it."""
