"""The full-vocabulary loss and its gradient in one pass over the scores.

For a target y among V places with scores s (paper, section "Optimization"):

    CE_eps  = (sum q) logsumexp(s) - (1 - eps) s_y - eps/(V-1) sum s
    margin  = lambda/k sum over the k best others of [m - (s_y - s_c)]+

A training step has some 400 targets and thousands of places. Autograd would write and read the
matrix of scores about ten times; here it is written once, turned in place into its own gradient,
and multiplied back onto states, places and gate while it is warm.

The reader is too dear for every place. Of each target it reads the target itself and the hardest
others, whose scores are then exact, and some drawn from the rest. What it says of those, r, each
weighed by w (they sum to 1), stands for what it would say of all the rest:

    Z = sum over read candidates exp(s + r) + (sum over draws w exp(r)) * sum over the rest exp(s)

The sum of all scores in the smoothing is completed by the mean of r over draws in the same way.
Left out, it would pull r of all places down together, without end. The margin's rivals are sought
among the hardest.

Shapes: R targets, V places, D width, E known places, C candidates read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class LossConstants:
    """The constants of the paper's loss."""

    label_smoothing: float = 0.02
    margin: float = 1.0
    margin_weight: float = 0.5
    hard_negatives: int = 10


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Candidates that the reader reads for every target."""

    candidates: Tensor
    """Places: first the target, then the hardest others, then the draws. [R, C]"""
    weight: Tensor
    """Part of the chance left that each draw stands for; sums to 1. [R, draws]"""
    share: Tensor
    """Part of the places left that each draw stands for; sums to 1. [R, draws]"""

    @property
    def draws(self) -> int:
        """How many of the last candidates are drawn; at least 1."""
        return self.weight.shape[1]

    @property
    def exact(self) -> Tensor:
        """The candidates whose scores are exact, no two alike: the target and the hardest."""
        return self.candidates[:, : -self.draws]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a step learns from: scores to be used up, targets and their weights."""

    scores: Tensor
    """Score of every place without the reader; overwritten. [R, V]"""
    target: Tensor
    """[R]"""
    weight: Tensor
    """Weight of each target in the sum. [R]"""
    known: Tensor
    """Where the revisit gate raised a score: row * V + place. [E]"""
    reading: Reading | None
    constants: LossConstants


def quick_scores(
    state: Tensor, place: Tensor, popularity: Tensor, known: Tensor, gain: Tensor
) -> Tensor:
    """Base, popularity and revisit term of every place. [R, D], [V, D], [V] -> [R, V]"""
    with torch.no_grad():
        scores = torch.addmm(popularity, state, place.mT)
        scores.view(-1).index_add_(0, known, gain)
    return scores


def fused_loss(
    state: Tensor,
    place: Tensor,
    popularity: Tensor,
    gain: Tensor,
    refinement: Tensor,
    lesson: Lesson,
) -> Tensor:
    """Weighted sum of the loss over targets; gradients flow to all tensors but the lesson.

    state [R, D], place [V, D], popularity [V], gain of known places [E], refinement [R, C].
    """
    apply: Callable[..., Tensor] = _FusedLoss.apply
    return apply(state, place, popularity, gain, refinement, lesson)


class _FusedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        state: Tensor,
        place: Tensor,
        popularity: Tensor,
        gain: Tensor,
        refinement: Tensor,
        lesson: Lesson,
    ) -> Tensor:
        loss, slope, refinement_slope = _loss_and_slope(refinement, lesson)
        ctx.save_for_backward(
            slope @ place,
            slope.mT @ state,
            slope.sum(dim=0),
            slope.view(-1)[lesson.known],
            refinement_slope,
        )
        return loss

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = slopes
        return (*(saved * outer for saved in ctx.saved_tensors), None)


def _loss_and_slope(refinement: Tensor, lesson: Lesson) -> tuple[Tensor, Tensor, Tensor]:
    """(loss, its slope by every score [R, V], its slope by every refinement [R, C])."""
    scores, constants, reading = lesson.scores, lesson.constants, lesson.reading
    places = scores.shape[1]
    smooth = constants.label_smoothing / (places - 1)
    mass = 1 - constants.label_smoothing + places * smooth  # of the smoothed target
    target = lesson.target.unsqueeze(1)  # [R, 1]
    top = _refine(scores, refinement, reading)
    target_score = scores.gather(1, target)
    rival, rival_score = _rivals(scores, target, reading, constants.hard_negatives)  # [R, k] each
    short = constants.margin - target_score + rival_score
    top = torch.maximum(top, torch.maximum(target_score, rival_score[:, :1]))
    summed = scores.sum(dim=1, keepdim=True)
    if reading is not None:
        summed = summed + _said_of_rest(refinement, reading, places)
    chance = scores.sub_(top).exp_()  # [R, V], in place
    rest = None if reading is None else _scale_rest(chance, refinement, reading)
    partition = chance.sum(dim=1, keepdim=True)  # [R, 1]
    weight = lesson.weight.unsqueeze(1)
    push = constants.margin_weight / constants.hard_negatives
    loss = (
        mass * (top + partition.log())
        - (1 - constants.label_smoothing) * target_score
        - smooth * summed
        + push * short.clamp(min=0).sum(dim=1, keepdim=True)
    )
    slope = chance.mul_(mass * weight / partition).sub_(smooth * weight)  # [R, V], in place
    pushed = (short > 0) * (push * weight)  # [R, k]
    slope.scatter_add_(1, rival, pushed)
    pull = (1 - constants.label_smoothing) * weight + pushed.sum(dim=1, keepdim=True)
    slope.scatter_add_(1, target, -pull)
    total = (loss * weight).sum()
    if reading is None or rest is None:
        return total, slope, refinement.new_zeros(refinement.shape)
    share = refinement[:, -reading.draws :].exp() * reading.weight  # [R, draws]
    of_draws = mass * weight / partition * rest * share / share.sum(dim=1, keepdim=True)
    of_draws -= smooth * weight * (places - reading.exact.shape[1]) * reading.share
    return total, slope, torch.cat([slope.gather(1, reading.exact), of_draws], dim=1)


def _refine(scores: Tensor, refinement: Tensor, reading: Reading | None) -> Tensor:
    """Add what the reader said where scores are exact; return the highest before. [R, 1]"""
    if reading is None:
        return scores.new_full((), -torch.inf)
    before = scores.gather(1, reading.exact)
    scores.scatter_add_(1, reading.exact, refinement[:, : -reading.draws])
    return before.amax(dim=1, keepdim=True)


def _said_of_rest(refinement: Tensor, reading: Reading, places: int) -> Tensor:
    """The sum of what the reader would say of all places that it does not read. [R, 1]"""
    mean = (refinement[:, -reading.draws :] * reading.share).sum(dim=1, keepdim=True)
    return (places - reading.exact.shape[1]) * mean


def _rivals(
    scores: Tensor, target: Tensor, reading: Reading | None, count: int
) -> tuple[Tensor, Tensor]:
    """The best places but the target, and their scores, best first. -> [R, k], [R, k]"""
    if reading is None:
        best = scores.scatter(1, target, -torch.inf).topk(count, dim=1)
        return best.indices, best.values
    others = reading.exact[:, 1:]
    best = scores.gather(1, others).topk(min(count, others.shape[1]), dim=1)
    return others.gather(1, best.indices), best.values


def _scale_rest(chance: Tensor, refinement: Tensor, reading: Reading) -> Tensor:
    """Scale what was not read by what was said of the draws; return its mass. [R, V] -> [R, 1]"""
    exact = chance.gather(1, reading.exact)
    said = refinement[:, -reading.draws :]
    ratio = (said.exp() * reading.weight).sum(dim=1, keepdim=True)  # [R, 1]
    chance.mul_(ratio).scatter_(1, reading.exact, 0.0)
    rest = chance.sum(dim=1, keepdim=True)
    chance.scatter_(1, reading.exact, exact)
    return rest
