"""What BERT4Rec learns: visits that were masked, from those around them.

A window holds up to 50 visits and ends where some target of the train part stands, the target
included. In half of the steps only that last visit is masked, which is what a ranking asks; in
the others every visit is masked with chance 0.2, and a window in which none was drawn masks its
last one, so that every window teaches.

Where this is not RecBole's cloze:

    windows   RecBole masks within the history before each target, never the target itself; so
              it never learns the newest train visit of a user
    epochs    RecBole takes a window at every visit, which shows each visit some 50 times; here an
              epoch takes every `window_step`-th, and the next epoch the windows after those
    steps     RecBole takes 2,048 windows per step, with some 2,048 or 16,000 targets by turns; here
              a step has `batch` targets in the mean, as for all other models
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
from castpoi.training.sequence_loss import next_place_loss

_WINDOWS_AT_ONCE: Final = 128
"""Windows of like length that are read together, no longer than the longest of them."""


@dataclass(frozen=True)
class ClozeBatch:
    """Some windows of an epoch, and the seed of what is masked in them."""

    ends: NDArray[np.int64]
    """Last visit of each window. [B]"""
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
        """The windows of an epoch once, in an order that seed and epoch fix."""
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
        """The windows of a batch that one of several processes learns from."""
        return ClozeBatch(batch.ends[rank::ranks], (*batch.seed, rank))

    def masks(self, batch: ClozeBatch) -> NDArray[np.bool_]:
        """Which slots of each window are masked; the batch's seed fixes it. [B, T]"""
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
            rows = self._rows(batch.ends[some], lengths[some])  # [b, t]
            is_masked = masks[some, : rows.shape[1]]
            targets.append(rows[is_masked])
            given = (torch.from_numpy(each) for each in (rows, lengths[some], is_masked))
            states.append(model.masked_states(*(each.to(model.device) for each in given)))
        target = torch.from_numpy(np.concatenate(targets)).to(model.device)  # [M]
        return next_place_loss(model, torch.cat(states), target)

    def _lengths(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Visits in the window that ends with each of these visits. [B]"""
        lengths: NDArray[np.int64] = np.minimum(ends + 1 - self.begin[ends], self.model.window)
        return lengths

    def _rows(self, ends: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """The windows' rows of the place table, right-padded. [B, T]"""
        return padded_rows(self.place, ends + 1 - lengths, lengths)
