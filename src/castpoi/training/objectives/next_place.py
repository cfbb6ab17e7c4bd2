"""The objectives of sequence models that predict the next place, among all places.

    WindowObjective   all positions of a window at once, for models with `all_positions`
    PrefixObjective   one row per prefix, for all others, and if the stride is 1

The loss of a target y is logsumexp(s) - s_y, its gradient by the scores softmax(s) - [place is y].
Scores of 2,048 targets in a large city would take hundreds of megabytes, and autograd would keep
several such matrices. So a block of rows is scored, replaced by its own gradient, multiplied with
states and places while it is in the cache, and dropped. The three products take most of the time;
the softmax is divided by its sum in the states, which are far narrower than the scores.

Shapes: B windows or prefixes, T slots, R targets, C classes (places, perhaps padding), D width.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from castpoi.baselines.sequence import SequenceModel, padded_rows, visit_columns
from castpoi.checkins.city import City
from castpoi.core.arrays import Numbers
from castpoi.training.config import SequenceTraining
from castpoi.training.windows import cut_windows

"""A batch: windows or prefixes by their number. [B]"""

PREFIXES_AT_ONCE: Final = 256
"""Prefixes of similar length that are read together, so that their values stay in a cache."""
BLOCK_ROWS: Final = 128
"""Targets scored at a time: for some thousand places, near the processor's inner cache."""
BLOCK_SCORES: Final = 2**23
"""Largest number of scores held at a time, 32 MB; a huge city has fewer targets in a block."""
_SAFE_SCORE: Final = 60.0
"""Below it neither exp(60) nor the sum of millions of it overflows."""


class WindowObjective:
    """Every visit of a window predicts the next one."""

    def __init__(
        self, city: City, *, window: int, config: SequenceTraining, seed: int, times: bool = False
    ) -> None:
        self.config = config
        self.seed = seed
        self.place = city.train.place
        self.visits = visit_columns(city.train, times=times)
        windows = cut_windows(city.train, first=window, stride=min(config.stride, window))
        self.windows = windows.at_most(window)

    def batches(self, epoch: int) -> Sequence[Numbers]:
        """All windows once, shuffled by seed and epoch, with about `batch` targets per step."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.windows))
        before = np.cumsum(self.windows.targets[order]) - self.windows.targets[order]
        begins = np.flatnonzero(np.diff(before // self.config.batch, prepend=-1))
        return np.split(order, begins[1:])

    def targets(self, batch: Numbers) -> int:
        """Number of targets in a batch."""
        return int(self.windows.targets[batch].sum())

    def share(self, batch: Numbers, rank: int, ranks: int) -> Numbers:
        """The windows of a batch for one of several processes."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Numbers) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, SequenceModel)
        windows = self.windows.chosen(batch)
        lengths = windows.end - windows.begin
        rows = padded_rows(self.visits, windows.begin, lengths)  # [B, T] or [B, T, 2]
        visits = windows.begin[:, None] + np.arange(rows.shape[1])  # [B, T]
        learns = (visits < windows.end[:, None]) & (visits >= windows.learn[:, None])
        target = self.place[visits[learns] + 1] + 1  # [R]
        states = model.states(*_tensors(model, rows, lengths))  # [B, T, D]
        learns_here, right = _tensors(model, learns, target)
        return next_place_loss(model, states[learns_here], right)


class PrefixObjective:
    """Every prefix of a trajectory predicts the next visit, from its last visits alone."""

    def __init__(
        self, city: City, *, window: int, config: SequenceTraining, seed: int, times: bool = False
    ) -> None:
        self.window = window
        self.config = config
        self.seed = seed
        self.place = city.train.place
        self.visits = visit_columns(city.train, times=times)
        self.begin = city.train.starts  # [N]
        self.target = city.train.rows_with_history

    def batches(self, epoch: int) -> Sequence[Numbers]:
        """All targets once, as numbers of visits, shuffled by seed and epoch."""
        order = np.random.default_rng((self.seed, epoch)).permutation(self.target)
        return np.split(order, range(self.config.batch, len(order), self.config.batch))

    def targets(self, batch: Numbers) -> int:
        """Number of targets in a batch."""
        return len(batch)

    def share(self, batch: Numbers, rank: int, ranks: int) -> Numbers:
        """The targets of a batch for one of several processes."""
        return batch[rank::ranks]

    def loss(self, model: nn.Module, batch: Numbers) -> Tensor:
        """Mean loss over the targets of a batch."""
        assert isinstance(model, SequenceModel)
        lengths = np.minimum(batch - self.begin[batch], self.window)  # [B]
        by_length = np.argsort(lengths, kind="stable")
        states = []
        for start in range(0, len(batch), PREFIXES_AT_ONCE):
            some = by_length[start : start + PREFIXES_AT_ONCE]
            begin = batch[some] - lengths[some]
            rows = padded_rows(self.visits, begin, lengths[some])  # [b, T] or [b, T, 2]
            states.append(model.state(*_tensors(model, rows, lengths[some])))  # [b, D]
        target = self.place[batch[by_length]] + 1  # [B]
        return next_place_loss(model, torch.cat(states), *_tensors(model, target))


def _tensors(model: SequenceModel, *arrays: NDArray[Any]) -> tuple[Tensor, ...]:
    """Arrays as tensors on the device of the model."""
    return tuple(torch.from_numpy(each).to(model.device) for each in arrays)


def next_place_loss(model: SequenceModel, state: Tensor, target: Tensor) -> Tensor:
    """Mean loss of states whose next place has the given row. [R, D], [R] -> scalar"""
    vectors, bias = model.candidate_vectors(), model.candidate_bias()
    if not model.config.padding_class:
        vectors, target = vectors[1:], target - 1
        bias = None if bias is None else bias[1:]
    loss = cross_entropy(state, vectors, bias, target)
    penalty = model.penalty()
    return loss if penalty is None else loss + penalty


def cross_entropy(state: Tensor, vectors: Tensor, bias: Tensor | None, target: Tensor) -> Tensor:
    """Mean cross-entropy of targets among all classes. [R, D], [C, D], [C], [R] -> scalar"""
    apply: Callable[..., Tensor] = _CrossEntropy.apply
    rows = max(1, min(BLOCK_ROWS, BLOCK_SCORES // len(vectors)))
    with torch.autocast(state.device.type, enabled=False):  # bfloat16 sums are too inexact
        return apply(state.float(), vectors.float(), bias, target, rows)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, state: Tensor, vectors: Tensor, bias: Tensor | None, target: Tensor, rows: int
    ) -> Tensor:
        loss = state.new_zeros(())
        state_grad = torch.empty_like(state)
        columns = vectors.mT.contiguous()  # [D, C], faster in products with many columns
        column_grad = torch.zeros_like(columns)
        bias_grad = None if bias is None else torch.zeros_like(bias)
        room = state.new_empty(min(rows, len(state)), len(vectors))
        largest = state.norm(dim=1).max() * vectors.norm(dim=1).max()
        is_safe = float(largest if bias is None else largest + bias.abs().max()) < _SAFE_SCORE
        for start in range(0, len(state), rows):
            some, right = state[start : start + rows], target[start : start + rows].unsqueeze(1)
            scores = torch.mm(some, columns, out=room[: len(some)])  # [r, C]
            if bias is not None:
                scores += bias
            added, partition = _replace_by_gradient(scores, right, is_safe=is_safe)
            loss += added
            torch.mm(scores, vectors, out=state_grad[start : start + rows]).div_(partition)
            column_grad.addmm_((some / partition).mT, scores)
            if bias_grad is not None:
                bias_grad.addmv_(scores.mT, partition.squeeze(1).reciprocal())
        found = (state_grad, column_grad.mT.contiguous(), bias_grad)
        context.save_for_backward(*(grad for grad in found if grad is not None))
        context.targets = len(target)
        return loss / len(target)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = grads
        scaled = [saved * (outer / context.targets) for saved in context.saved_tensors]
        return (*scaled, *[None] * (5 - len(scaled)))


def _replace_by_gradient(scores: Tensor, target: Tensor, *, is_safe: bool) -> tuple[Tensor, Tensor]:
    """Replace the scores by `partition` times their gradient. [r, C], [r, 1] -> scalar, [r, 1]

    Returns the summed loss and the partition, the sum of exp(score) over all classes.
    """
    if not is_safe:
        scores -= scores.amax(dim=1, keepdim=True)  # changes neither loss nor gradient
    own = scores.gather(1, target)  # [r, 1]
    if not is_safe:
        scores.clamp_(min=-_SAFE_SCORE)  # exp of less is denormal, which slows products down
    partition = scores.exp_().sum(dim=1, keepdim=True)  # [r, 1]
    scores.scatter_add_(1, target, -partition)
    return (partition.log() - own).sum(), partition
