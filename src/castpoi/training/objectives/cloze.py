"""The objective of BERT4Rec: predict masked visits from those around them.

A window holds up to 50 visits and ends with a target of the train split. In half of the steps only
that last visit is masked, as when places are ranked. In the others every visit is masked with
probability 0.2, and the last one where no other is, so that every window has a target.

Differences from RecBole:

    windows   RecBole masks within the history before each target, never the target itself, so the
              newest train visit of a user is never learned
    epochs    in RecBole a window ends at every visit, so each visit is in some 50 of them; here an
              epoch takes every `window_step`-th window, and the next epoch the windows after those
    steps     RecBole takes 2,048 windows per step, alternately with some 2,048 and 16,000 targets;
              here a step has `batch` targets on average, as for all other models
    masks     RecBole learns from the last ten masks of a window, never from its first visit

Shapes: B windows, T slots, M masked slots, N visits laid end to end, D width.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.baselines.bert4rec import Bert4Rec, Bert4RecConfig
from castpoi.baselines.sequence import SequenceConfig, padded_rows
from castpoi.checkins.city import City
from castpoi.training.config import SequenceTraining
from castpoi.training.objectives.next_place import next_place_loss

_WINDOWS_AT_ONCE: Final = 128
"""Windows of similar length that are read together, as wide as the longest of them."""


@dataclass(frozen=True)
class ClozeBatch:
    """Some windows of an epoch, and the seed of their masks."""

    ends: NDArray[np.int64]  # last visit of each window [B]
    seed: tuple[int, ...]


class ClozeObjective:
    """Masked visits of windows against all places."""

    def __init__(
        self, city: City, *, model: SequenceConfig, config: SequenceTraining, seed: int
    ) -> None:
        assert isinstance(model, Bert4RecConfig)
        self.model = model
        self.seed = seed
        histories = city.train
        self.place = histories.place
        self.begin = histories.starts  # [N]
        self.ends = histories.rows_with_history
        self.step = max(1, min(model.window_step, len(self.ends)))
        masks = np.maximum(1, model.mask_share * self._lengths(self.ends))
        mean = model.last_only_share + (1 - model.last_only_share) * masks.mean()
        self.windows_per_step = max(1, round(config.batch / mean))

    def batches(self, epoch: int) -> Sequence[ClozeBatch]:
        """The windows of an epoch once, shuffled by seed and epoch."""
        ends = self.ends[epoch % self.step :: self.step]
        order = np.random.default_rng((self.seed, epoch)).permutation(ends)
        size = self.windows_per_step
        return [
            ClozeBatch(order[start : start + size], (self.seed, epoch, start))
            for start in range(0, len(order), size)
        ]

    def targets(self, batch: ClozeBatch) -> int:
        """Number of masked visits in a batch."""
        return int(self.masks(batch).sum())

    def share(self, batch: ClozeBatch, rank: int, ranks: int) -> ClozeBatch:
        """The windows of a batch for one of several processes."""
        return ClozeBatch(batch.ends[rank::ranks], (*batch.seed, rank))

    def masks(self, batch: ClozeBatch) -> NDArray[np.bool_]:
        """Whether each slot of each window is masked; fixed by the seed of the batch. [B, T]"""
        rng = np.random.default_rng(batch.seed)
        lengths = self._lengths(batch.ends)
        slots = np.arange(lengths.max(initial=0))
        is_last: NDArray[np.bool_] = slots == lengths[:, None] - 1  # [B, T]
        if rng.random() < self.model.last_only_share:
            return is_last
        is_drawn = rng.random(is_last.shape) < self.model.mask_share
        is_drawn &= slots < lengths[:, None]
        is_last &= ~is_drawn.any(axis=1, keepdims=True)
        return is_drawn | is_last

    def loss(self, model: nn.Module, batch: ClozeBatch) -> Tensor:
        """Mean loss over the masked visits of a batch."""
        assert isinstance(model, Bert4Rec)
        lengths, masks = self._lengths(batch.ends), self.masks(batch)
        by_length = np.argsort(lengths, kind="stable")
        states, targets = [], []
        for start in range(0, len(by_length), _WINDOWS_AT_ONCE):
            some = by_length[start : start + _WINDOWS_AT_ONCE]
            begin = batch.ends[some] + 1 - lengths[some]  # [b]
            rows = padded_rows(self.place, begin, lengths[some])  # [b, t]
            is_masked = masks[some, : rows.shape[1]]
            targets.append(rows[is_masked])
            given = (torch.from_numpy(each) for each in (rows, lengths[some], is_masked))
            states.append(model.masked_states(*(each.to(model.device) for each in given)))
        target = torch.from_numpy(np.concatenate(targets)).to(model.device)  # [M]
        return next_place_loss(model, torch.cat(states), target)

    def _lengths(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of visits in the window that ends with each visit. [B]"""
        lengths: NDArray[np.int64] = np.minimum(ends + 1 - self.begin[ends], self.model.window)
        return lengths
