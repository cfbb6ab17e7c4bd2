"""An objective: the batches of an epoch, and the loss of a batch.

Those of CaST-POI (`full`, `fast`, `sampled`) and of the learned baselines (`next_place`, `cloze`)
share all else: the loop, the schedule, the selection of the best epoch, checkpoints and logs.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from castpoi.training.rows import SparseRows

Batch = TypeVar("Batch")


class Objective(Protocol[Batch]):
    """One way to learn from the train split of a city."""

    def batches(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, of which the first is 0; fixed by the seed and the epoch."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean loss over the targets of a batch. -> scalar"""

    def targets(self, batch: Batch) -> int:
        """Number of targets in a batch, for rates and means."""

    def share(self, batch: Batch, rank: int, ranks: int) -> Batch:
        """The part of a batch for one of several processes; their parts make up the batch."""


@runtime_checkable
class HasRows(Protocol):
    """An objective that uses few rows of some weights in a step, and takes them from `rows`."""

    rows: SparseRows
