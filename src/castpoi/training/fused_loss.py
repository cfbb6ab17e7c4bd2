"""The full-vocabulary loss and its gradient in one pass over the scores.

For a target y among V places with scores s (paper, section "Optimization"):

    CE_eps  = (sum q) logsumexp(s) - (1 - eps) s_y - eps/(V-1) sum s
    margin  = lambda/k sum over the k best others of [m - (s_y - s_c)]+

A training step has some 400 targets and thousands of places. Autograd would write and read the
matrix of scores about ten times; here it is written once, turned in place into its own gradient,
and multiplied back onto states, places and gate while it is warm.

The reader is too dear for every place. It reads a few candidates of some targets: the target, the
hardest others, and some drawn evenly. Their scores are exact; for all other places the sum of
exp(s) is scaled by the ratio that the even draw shows:

    Z = sum over read candidates exp(s + r) + ratio * sum over the others exp(s)
    ratio = sum over even draws exp(s + r) / sum over even draws exp(s)

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
    """Candidates that the reader reads for some of the targets."""

    rows: Tensor
    """Which targets are read for. [Q]"""
    candidates: Tensor
    """Places: first the target, then the hardest others, then the even draws. [Q, C]"""
    even: int
    """How many of the last candidates are even draws."""
    is_first: Tensor
    """Whether a candidate stands there for the first time; repeats count nothing. [Q, C]"""


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

    state [R, D], place [V, D], popularity [V], gain of known places [E], refinement [Q, C].
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
    """(loss, its slope by every score [R, V], its slope by every refinement [Q, C])."""
    scores, constants, reading = lesson.scores, lesson.constants, lesson.reading
    places = scores.shape[1]
    smooth = constants.label_smoothing / (places - 1)
    mass = 1 - constants.label_smoothing + places * smooth  # of the smoothed target
    ratio = scores.new_ones(0) if reading is None else _add_refinement(scores, refinement, reading)
    target = lesson.target.unsqueeze(1)  # [R, 1]
    target_score = scores.gather(1, target)
    hardest = scores.scatter(1, target, -torch.inf).topk(constants.hard_negatives, dim=1)
    short = constants.margin - target_score + hardest.values  # [R, k]
    top = torch.maximum(target_score, hardest.values[:, :1])
    summed = scores.sum(dim=1, keepdim=True)
    chance = scores.sub_(top).exp_()  # [R, V], in place
    rest = (ratio, ratio) if reading is None else _scale_rest(chance, reading, ratio)
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
    slope.scatter_add_(1, hardest.indices, pushed)
    pull = (1 - constants.label_smoothing) * weight + pushed.sum(dim=1, keepdim=True)
    slope.scatter_add_(1, target, -pull)
    total = (loss * weight).sum()
    if reading is None:
        return total, slope, refinement.new_zeros(refinement.shape)
    return total, slope, _refinement_slope(slope, reading, rest, mass * weight / partition)


def _add_refinement(scores: Tensor, refinement: Tensor, reading: Reading) -> Tensor:
    """Add the reader's term where it is known; return exp(r) weighed over the even draws. [Q, 1]"""
    before = scores[reading.rows.unsqueeze(1), reading.candidates]  # [Q, C]
    counted = refinement * reading.is_first
    scores[reading.rows] = scores[reading.rows].scatter_add(1, reading.candidates, counted)
    even = slice(-reading.even, None)
    absent = ~reading.is_first[:, even]
    base = before[:, even].masked_fill(absent, -torch.inf)
    ratio = ((base + refinement[:, even]).logsumexp(1) - base.logsumexp(1)).exp()
    # in a city of few places all draws may be places that are read anyway: they tell nothing
    return ratio.masked_fill(absent.all(dim=1), 1.0).unsqueeze(1)


def _scale_rest(chance: Tensor, reading: Reading, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Scale what was not read by the ratio; return its mass and the draws' shares of it."""
    read = chance[reading.rows]  # [Q, V]
    exact = read.gather(1, reading.candidates)  # [Q, C]
    mass_read = (exact * reading.is_first).sum(dim=1, keepdim=True)
    rest = (read.sum(dim=1, keepdim=True) - mass_read).clamp(min=0) * ratio  # [Q, 1]
    chance[reading.rows] = (read * ratio).scatter_(1, reading.candidates, exact)
    draws = exact[:, -reading.even :] * reading.is_first[:, -reading.even :]
    share = draws / draws.sum(dim=1, keepdim=True).clamp(min=torch.finfo(draws.dtype).tiny)
    return rest, share


def _refinement_slope(
    slope: Tensor, reading: Reading, rest: tuple[Tensor, Tensor], scale: Tensor
) -> Tensor:
    """Slope by what the reader said: of its own candidates, and of all that the draws stand for."""
    mass, share = rest
    own = slope[reading.rows.unsqueeze(1), reading.candidates]  # [Q, C]
    own[:, -reading.even :] += scale[reading.rows] * mass * share
    return own * reading.is_first
