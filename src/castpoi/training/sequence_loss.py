"""The cross-entropy of all places, with its gradient in one pass over blocks of scores.

    loss of a target y = logsumexp(s) - s_y,  slope by s = softmax(s) - [place is y]

Scores of 2,048 targets against a large city would fill hundreds of megabytes, and autograd would
keep several such matrices. Here a block of rows is scored, turned in place into its own slope,
multiplied back onto states and places while it is warm, and forgotten.

Shapes: R targets, C classes (places, perhaps padding), D width.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from castpoi.baselines.sequence import SequenceModel

BLOCK_SCORES: Final = 2**21
"""Scores held at a time: 8 MB, near the processor's cache."""


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
    rows = max(1, block_scores // len(vectors))
    with torch.autocast(state.device.type, enabled=False):  # half numbers lose too much of a sum
        return apply(state.float(), vectors.float(), bias, target, rows)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, state: Tensor, vectors: Tensor, bias: Tensor | None, target: Tensor, rows: int
    ) -> Tensor:
        loss = state.new_zeros(())
        state_slope = torch.empty_like(state)
        vector_slope = torch.zeros_like(vectors)
        bias_slope = None if bias is None else torch.zeros_like(bias)
        for start in range(0, len(state), rows):
            part = slice(start, start + rows)
            scores = state[part] @ vectors.mT  # [r, C]
            if bias is not None:
                scores += bias
            added, slope = _loss_and_slope(scores, target[part].unsqueeze(1))
            loss += added
            torch.mm(slope, vectors, out=state_slope[part])
            vector_slope.addmm_(slope.mT, state[part])
            if bias_slope is not None:
                bias_slope += slope.sum(dim=0)
        found = (state_slope, vector_slope, bias_slope)
        ctx.save_for_backward(*(slope for slope in found if slope is not None))
        ctx.targets = len(target)
        return loss / len(target)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = slopes
        scaled = [saved * (outer / ctx.targets) for saved in ctx.saved_tensors]
        return (*scaled, *[None] * (5 - len(scaled)))


def _loss_and_slope(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Summed loss, and its slope by every score, in place. [r, C], [r, 1] -> scalar, [r, C]"""
    top = scores.amax(dim=1, keepdim=True)  # [r, 1]
    own = scores.gather(1, target)
    chance = scores.sub_(top).exp_()
    partition = chance.sum(dim=1, keepdim=True)  # [r, 1]
    slope = chance.div_(partition)
    slope.scatter_add_(1, target, slope.new_full(target.shape, -1.0))
    return (top + partition.log() - own).sum(), slope
