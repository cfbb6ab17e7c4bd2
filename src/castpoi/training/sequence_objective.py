"""What a sequence model learns: the next place, among all places.

    WindowObjective   all positions of a window at once, for models with `all_positions`
    PrefixObjective   one row a prefix, for all others, and where the stride is 1

Shapes: B windows or prefixes, T slots, R targets, D width.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.baselines.sequence import SequenceModel, padded_rows
from castpoi.checkins.city import City
from castpoi.training.config import SequenceTraining
from castpoi.training.sequence_loss import next_place_loss
from castpoi.training.sequence_windows import cut_sequences

Numbers = NDArray[np.int64]
"""A batch: windows or prefixes by their number. [B]"""

PREFIXES_AT_ONCE: Final = 256
"""Prefixes of like length that are read together, so that what is written is still in a cache when
it is read."""


class WindowObjective:
    """Every visit of a window foretells the one after it."""

    def __init__(self, city: City, *, window: int, config: SequenceTraining, seed: int) -> None:
        self.config = config
        self.seed = seed
        histories = city.train
        self.place = histories.place
        self.windows = cut_sequences(histories, window=window, stride=config.stride)

    def batches(self, epoch: int) -> Sequence[Numbers]:
        """All windows once, in an order that seed and epoch fix, `batch` targets a step."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.windows))
        before = np.cumsum(self.windows.targets[order]) - self.windows.targets[order]
        begins = np.flatnonzero(np.diff(before // self.config.batch, prepend=-1))
        return np.split(order, begins[1:])

    def targets(self, batch: Numbers) -> int:
        """Number of targets in a batch."""
        return int(self.windows.targets[batch].sum())

    def share(self, batch: Numbers, rank: int, ranks: int) -> Numbers:
        """The windows of a batch that one of several processes learns from."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Numbers) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, SequenceModel)
        windows = self.windows.chosen(batch)
        lengths = windows.end - windows.begin
        rows = padded_rows(self.place, windows.begin, lengths)  # [B, T]
        visits = windows.begin[:, None] + np.arange(rows.shape[1])  # [B, T]
        learns = (visits < windows.end[:, None]) & (visits >= windows.learn[:, None])
        target = self.place[visits[learns] + 1] + 1  # [R]
        states = model.states(
            torch.from_numpy(rows).to(model.device), torch.from_numpy(lengths).to(model.device)
        )  # [B, T, D]
        state = states[torch.from_numpy(learns).to(model.device)]  # [R, D]
        return next_place_loss(model, state, torch.from_numpy(target).to(model.device))


class PrefixObjective:
    """Every prefix of a trajectory foretells the visit after it, from its last visits alone."""

    def __init__(self, city: City, *, window: int, config: SequenceTraining, seed: int) -> None:
        self.window = window
        self.config = config
        self.seed = seed
        histories = city.train
        self.place = histories.place
        self.begin = histories.starts  # [N]
        self.target = histories.rows_with_history

    def batches(self, epoch: int) -> Sequence[Numbers]:
        """The targets, by their visit, in an order that seed and epoch fix."""
        order = np.random.default_rng((self.seed, epoch)).permutation(self.target)
        return np.split(order, range(self.config.batch, len(order), self.config.batch))

    def targets(self, batch: Numbers) -> int:
        """Number of targets in a batch."""
        return len(batch)

    def share(self, batch: Numbers, rank: int, ranks: int) -> Numbers:
        """The targets of a batch that one of several processes learns from."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Numbers) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, SequenceModel)
        lengths = np.minimum(batch - self.begin[batch], self.window)  # [B]
        by_length = np.argsort(lengths, kind="stable")
        parts = np.split(by_length, range(PREFIXES_AT_ONCE, len(batch), PREFIXES_AT_ONCE))
        states = [self._state(model, batch[some], lengths[some]) for some in parts]
        target = torch.from_numpy(self.place[batch[by_length]] + 1).to(model.device)  # [B]
        return next_place_loss(model, torch.cat(states), target)

    def _state(self, model: SequenceModel, batch: Numbers, lengths: NDArray[np.int64]) -> Tensor:
        """The states before some targets, in windows as long as needed. [B], [B] -> [B, D]"""
        rows = padded_rows(self.place, batch - lengths, lengths)  # [B, T]
        return model.state(
            torch.from_numpy(rows).to(model.device), torch.from_numpy(lengths).to(model.device)
        )
