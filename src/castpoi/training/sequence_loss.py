"""The cross-entropy of all places, with its gradient in one pass over blocks of scores.

    loss of a target y = logsumexp(s) - s_y,  slope by s = softmax(s) - [place is y]

Scores of 2,048 targets against a large city would fill hundreds of megabytes, and autograd would
keep several such matrices. Here a block of rows is scored, turned in place into its own slope,
multiplied back onto states and places while it is warm, and forgotten. The three products take
most of the time; what else passes over the scores is little: the softmax is divided by its sum in
the states, which are far narrower.

Shapes: R targets, C classes (places, perhaps padding), D width.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from castpoi.baselines.sequence import SequenceModel

BLOCK_ROWS: Final = 128
"""Targets scored at a time: for some thousand places, near the processor's inner cache."""
BLOCK_SCORES: Final = 2**23
"""Most scores held at a time, 32 MB; a vast city has fewer targets scored at a time."""
_TAME: Final = 60.0
"""Scores below this need no care: neither exp(60) nor the sum of millions of it overflows."""


def next_place_loss(model: SequenceModel, state: Tensor, target: Tensor) -> Tensor:
    """Mean loss of states whose next place has the given row. [R, D], [R] -> scalar"""
    vectors, bias = model.candidate_vectors(), model.candidate_bias()
    if not model.config.padding_class:
        vectors, target = vectors[1:], target - 1
        bias = None if bias is None else bias[1:]
    loss = cross_entropy(state, vectors, bias, target)
    penalty = model.penalty()
    return loss if penalty is None else loss + penalty


def cross_entropy(
    state: Tensor,
    vectors: Tensor,
    bias: Tensor | None,
    target: Tensor,
    *,
    block_scores: int = BLOCK_SCORES,
) -> Tensor:
    """Mean cross-entropy of targets among all classes. [R, D], [C, D], [C], [R] -> scalar"""
    apply: Callable[..., Tensor] = _CrossEntropy.apply
    rows = max(1, min(BLOCK_ROWS, block_scores // len(vectors)))
    with torch.autocast(state.device.type, enabled=False):  # half numbers lose too much of a sum
        return apply(state.float(), vectors.float(), bias, target, rows)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, state: Tensor, vectors: Tensor, bias: Tensor | None, target: Tensor, rows: int
    ) -> Tensor:
        loss = state.new_zeros(())
        state_slope = torch.empty_like(state)
        columns = vectors.mT.contiguous()  # [D, C], which products with a wide outcome prefer
        column_slope = torch.zeros_like(columns)
        bias_slope = None if bias is None else torch.zeros_like(bias)
        room = state.new_empty(min(rows, len(state)), len(vectors))
        are_tame = _bound(state, vectors, bias) < _TAME
        for start in range(0, len(state), rows):
            some, right = state[start : start + rows], target[start : start + rows].unsqueeze(1)
            scores = torch.mm(some, columns, out=room[: len(some)])  # [r, C]
            if bias is not None:
                scores += bias
            added, partition = _turn_into_slope(scores, right, are_tame=are_tame)
            loss += added
            torch.mm(scores, vectors, out=state_slope[start : start + rows]).div_(partition)
            column_slope.addmm_((some / partition).mT, scores)
            if bias_slope is not None:
                bias_slope.addmv_(scores.mT, partition.squeeze(1).reciprocal())
        found = (state_slope, column_slope.mT.contiguous(), bias_slope)
        ctx.save_for_backward(*(slope for slope in found if slope is not None))
        ctx.targets = len(target)
        return loss / len(target)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = slopes
        scaled = [saved * (outer / ctx.targets) for saved in ctx.saved_tensors]
        return (*scaled, *[None] * (5 - len(scaled)))


def _bound(state: Tensor, vectors: Tensor, bias: Tensor | None) -> float:
    """What no score exceeds, above or below zero."""
    product = state.norm(dim=1).max() * vectors.norm(dim=1).max()
    return float(product if bias is None else product + bias.abs().max())


def _turn_into_slope(scores: Tensor, target: Tensor, *, are_tame: bool) -> tuple[Tensor, Tensor]:
    """Put `partition` times the slope in the place of the scores. [r, C], [r, 1] -> scalar, [r, 1]

    Returns the summed loss and the partition, the sum of exp(score) over all classes.
    """
    if not are_tame:
        scores -= scores.amax(dim=1, keepdim=True)  # which changes neither loss nor slope
    own = scores.gather(1, target)  # [r, 1]
    if not are_tame:
        scores.clamp_(min=-_TAME)  # exp of less makes denormal numbers, and products slow
    partition = scores.exp_().sum(dim=1, keepdim=True)  # [r, 1]
    scores.scatter_add_(1, target, -partition)
    return (partition.log() - own).sum(), partition
