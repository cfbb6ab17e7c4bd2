"""Row-sparse AdamW: for weights with one row per place, where a step uses few of the rows.

AdamW decays and moves every row in every step, also rows without a gradient, and updates the
running mean of all of them. For a million places that costs more than the rest of the step. Here a
row is brought up to date when it is next used, and all rows at the end of an epoch. The decay, the
moments, the running mean and the moves by the first moment over the skipped steps have closed
forms. They equal AdamW's except for changes of the learning rate within the few steps in which the
first moment fades.

Shapes: P rows, U rows of a step.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import torch
from torch import Tensor, nn

ROWS_AT_ONCE: Final = 2**16
"""Rows brought up to date together; bounds the memory."""
_BETA, _BETA_2, _EPSILON = 0.9, 0.999, 1e-8  # the defaults of torch's AdamW
_FADING: Final = _BETA / math.sqrt(_BETA_2)  # of the move by the first moment, per step


class SparseRows:
    """AdamW and the running mean of some weights of a model, row by row."""

    def __init__(self, decays: Mapping[str, float]) -> None:
        """`decays` has the weight decay of each weight, by its name."""
        self.decays = decays
        self.leaves: dict[str, Tensor] = {}  # the rows of a step, which receive gradients
        self.tensors: dict[str, list[Tensor]] = {}  # weight, moments, mean [P, ...] each
        self.used: dict[str, list[Tensor]] = {}  # their rows in this step [U, ...] each
        self.rows = torch.empty(0, dtype=torch.int64)  # [U]
        self.now = torch.zeros(3, dtype=torch.float64)  # steps, sum of rates, log of the mean kept
        self.clock = torch.zeros(0, 3, dtype=torch.float64)  # `now` at the last use of a row [P, 3]
        self.steps, self.rate = 0, 0.0

    def bind(
        self,
        weights: Mapping[str, nn.Parameter],
        states: Mapping[str, Mapping[str, Tensor]],
        means: Mapping[str, Tensor],
        steps: int,
    ) -> None:
        """Use these weights, moments and means, which are changed in place, after `steps` steps."""
        for name in self.decays:
            moments = [states[name][each] for each in ("exp_avg", "exp_avg_sq")]
            mean = [means[name]] if name in means else []
            self.tensors[name] = [weights[name].detach(), *moments, *mean]
            self.clock = self.now.repeat(len(weights[name]), 1)
        self.steps = steps

    @torch.no_grad()
    def take(self, rows: Tensor) -> dict[str, Tensor]:
        """Rows of each weight, brought up to date, as tensors for gradients. [U] -> [U, ...]"""
        self.rows = rows
        gaps = (self.now - self.clock[rows]).float().unbind(dim=1)  # [U] each
        for name, tensors in self.tensors.items():
            columns = [each.view(-1, *[1] * (tensors[0].ndim - 1)) for each in gaps]
            self.used[name] = [each[rows] for each in tensors]
            self._catch_up(self.used[name], self.decays[name], *columns)
            self.leaves[name] = self.used[name][0].clone().requires_grad_()
        return self.leaves

    @torch.no_grad()
    def step(self, rate: float, kept: float) -> None:
        """One step of AdamW for the rows taken; the running mean keeps a share of itself."""
        self.steps, self.rate = self.steps + 1, rate
        self.now += torch.tensor([1.0, rate, math.log(kept)], dtype=torch.float64)
        for name, (weight, first, second, *mean) in self.used.items():
            grad = self.leaves[name].grad
            assert grad is not None
            weight.mul_(1 - rate * self.decays[name])
            first.lerp_(grad, 1 - _BETA)
            second.mul_(_BETA_2).addcmul_(grad, grad, value=1 - _BETA_2)
            weight.sub_(self._move(first, second))
            for each in mean:
                each.lerp_(weight, 1 - kept)
        self._write()

    @torch.no_grad()
    def catch_up(self) -> None:
        """Bring all rows up to date."""
        for rows in torch.arange(len(self.clock)).split(ROWS_AT_ONCE):
            self.take(rows)
            self._write()
        self.leaves, self.used = {}, {}

    def _write(self) -> None:
        for name, values in self.used.items():
            for whole, value in zip(self.tensors[name], values, strict=True):
                whole[self.rows] = value
        self.clock[self.rows] = self.now

    def _catch_up(
        self, used: Iterable[Tensor], decay: float, steps: Tensor, rates: Tensor, log_kept: Tensor
    ) -> None:
        """Apply the skipped steps, which had no gradient, in place. [U, ...], [U, 1, ...] each"""
        weight, first, second, *mean = used
        moves = _FADING * (1 - _FADING**steps) / (1 - _FADING)
        weight.mul_((-decay * rates).exp()).sub_(self._move(first, second) * moves)
        first.mul_(_BETA**steps)
        second.mul_(_BETA_2**steps)
        for each in mean:
            each.sub_(weight).mul_(log_kept.exp()).add_(weight)

    def _move(self, first: Tensor, second: Tensor) -> Tensor:
        """How far a step with these moments moves the weights."""
        steps = max(1, self.steps)
        root = second.sqrt().div_(math.sqrt(1 - _BETA_2**steps)).add_(_EPSILON)
        return first.div(root).mul_(self.rate / (1 - _BETA**steps))
