"""The full-vocabulary loss and its gradient in one pass over the scores.

For a target y among V places with scores s (paper, section "Optimization"):

    CE_eps  = (sum q) logsumexp(s) - (1 - eps) s_y - eps/(V-1) sum s
    margin  = lambda/k sum over the k best others of [m - (s_y - s_c)]+

A training step has some hundred targets and thousands of places. Autograd would write and read the
matrix of scores about ten times; here it is written once, turned in place into its own gradient,
and multiplied back onto states, places and gate while it is warm.

The reader is too dear for every place. Of each target it reads the target itself and the hardest
others, whose scores are then exact, and some drawn from the rest. What it says of those, r, each
weighed by w (they sum to 1), stands for what it would say of any place of the rest:

    s + r                                       where it reads
    s + m,  m = log sum over draws w exp(r)     where it does not

so that the sum of exp over the rest is estimated without bias. As the loss does not change when
all scores of a target are raised alike, r - m is added where the reader reads, and all else stays.
The rest counts in the smoothing and among the margin's rivals too: were it left out, the reader
would push down, as one, the few places that it reads.

The closer s is to the whole score, the better the hardest are chosen and the less is left to the
draws. So a forecast of the reader (`model/forecast.py`) may stand in s for every place; r is then
what the reader says beyond its forecast, and nothing else changes.

Shapes: R targets, V places, D width, E known places, C candidates read, M cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castpoi.model.distance_gate import sum_by_cell


@dataclass(frozen=True, kw_only=True)
class LossConstants:
    """The constants of the paper's loss."""

    label_smoothing: float = 0.02
    margin: float = 1.0
    margin_weight: float
    hard_negatives: int = 10


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Candidates that the reader reads for every target."""

    candidates: Tensor
    """Places: first the target, then the hardest others, then the draws. [R, C]"""
    weight: Tensor
    """How much each draw stands for; sums to 1 over the draws of a target. [R, draws]"""

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
    """Which places each target's history knows: row * V + place. [E]"""
    constants: LossConstants
    reading: Reading | None = None
    """None where nothing is read."""
    cell: Tensor | None = None
    """Cell of the distance gate in which each place lies. [R, V]"""


def quick_scores(
    state: Tensor,
    place: Tensor,
    popularity: Tensor,
    known: Tensor,
    gain: Tensor | None,
    cell: Tensor | None = None,
    by_cell: Tensor | None = None,
) -> Tensor:
    """Every term but the reader's, of every place. [R, D], [V, D], [V], ... -> [R, V]

    Gains of known places [E], E of them; cells of the distance gate [R, V], their gains [R, M].
    """
    kind = place.dtype
    with torch.no_grad(), _full_precision(place):
        scores = torch.addmm(popularity, state.to(kind), place.mT)
        if gain is not None:
            scores.view(-1).index_add_(0, known, gain.to(kind))
        if cell is not None and by_cell is not None:
            scores.add_(by_cell.gather(1, cell))
    return scores


def fused_loss(
    state: Tensor,
    place: Tensor,
    popularity: Tensor,
    gain: Tensor | None,
    refinement: Tensor | None,
    lesson: Lesson,
    by_cell: Tensor | None = None,
) -> Tensor:
    """Weighted sum of the loss over targets; gradients flow to all tensors but the lesson.

    state [R, D], place [V, D], popularity [V], gain of known places [E], refinement [R, C],
    gain in every cell of the distance gate [R, M].
    """
    apply: Callable[..., Tensor] = _FusedLoss.apply
    others = (
        None if each is None else each.to(place.dtype) for each in (gain, refinement, by_cell)
    )
    with _full_precision(place):
        return apply(state.to(place.dtype), place, popularity, *others, lesson)


def _full_precision(place: Tensor) -> torch.autocast:
    """No half numbers while the block runs: they lose too much of a sum over all places."""
    return torch.autocast(place.device.type, enabled=False)


class _FusedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        state: Tensor,
        place: Tensor,
        popularity: Tensor,
        gain: Tensor | None,
        refinement: Tensor | None,
        by_cell: Tensor | None,
        lesson: Lesson,
    ) -> Tensor:
        loss, slope, refinement_slope = _loss_and_slope(refinement, lesson)
        ctx.save_for_backward(
            slope @ place,
            slope.mT @ state,
            slope.sum(dim=0),
            None if gain is None else slope.view(-1)[lesson.known],
            refinement_slope,
            _slope_by_cell(slope, by_cell, lesson.cell),
        )
        return loss

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = slopes
        by_outer = (None if saved is None else saved * outer for saved in ctx.saved_tensors)
        return (*by_outer, None)


def _slope_by_cell(slope: Tensor, by_cell: Tensor | None, cell: Tensor | None) -> Tensor | None:
    """The slope by what places gain in every cell of the distance gate. [R, V] -> [R, M]"""
    if by_cell is None or cell is None:
        return None
    return sum_by_cell(slope, cell, by_cell.shape[1])


def _loss_and_slope(
    refinement: Tensor | None, lesson: Lesson
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(loss, its slope by every score [R, V], its slope by every refinement [R, C])."""
    scores, constants, reading = lesson.scores, lesson.constants, lesson.reading
    places = scores.shape[1]
    smooth = constants.label_smoothing / max(1, places - 1)
    mass = 1 - constants.label_smoothing + places * smooth  # of the smoothed target
    target = lesson.target.unsqueeze(1)  # [R, 1]
    if refinement is not None and reading is not None:
        _refine(scores, refinement, reading)
    target_score = scores.gather(1, target)
    rivals = scores.scatter(1, target, -torch.inf).topk(constants.hard_negatives, dim=1)  # [R, k]
    short = constants.margin - target_score + rivals.values
    top = torch.maximum(target_score, rivals.values[:, :1])
    summed = scores.sum(dim=1, keepdim=True)
    chance = scores.sub_(top).exp_()  # [R, V], in place
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
    slope.scatter_add_(1, rivals.indices, pushed)
    pull = (1 - constants.label_smoothing) * weight + pushed.sum(dim=1, keepdim=True)
    slope.scatter_add_(1, target, -pull)
    return (loss * weight).sum(), slope, _refinement_slope(slope, refinement, reading)


def _refine(scores: Tensor, refinement: Tensor, reading: Reading) -> None:
    """Add what the reader says where it reads, less what it says elsewhere. [R, V], [R, C]"""
    exact, drawn = refinement.split([reading.exact.shape[1], reading.draws], dim=1)
    elsewhere = (drawn + reading.weight.log()).logsumexp(dim=1, keepdim=True)  # m [R, 1]
    scores.scatter_add_(1, reading.exact, exact - elsewhere)


def _refinement_slope(
    slope: Tensor, refinement: Tensor | None, reading: Reading | None
) -> Tensor | None:
    """The slope by what the reader says, from that by every score. [R, V] -> [R, C]"""
    if refinement is None or reading is None:
        return None
    exact = slope.gather(1, reading.exact)  # [R, C - draws]
    drawn = refinement[:, -reading.draws :] + reading.weight.log()
    # all slopes of a target sum to zero: what the exact do not have, the rest has
    rest = -exact.sum(dim=1, keepdim=True) * drawn.softmax(dim=1)  # [R, draws]
    return torch.cat([exact, rest], dim=1)
