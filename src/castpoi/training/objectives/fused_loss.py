"""The full-vocabulary loss and its gradient in one pass over the scores.

For a target y among P places with scores s (paper, section "Optimization"):

    CE_eps  = (sum q) logsumexp(s) - (1 - eps) s_y - eps/(P-1) sum s
    margin  = lambda/k sum over the k best others of [m - (s_y - s_c)]+

A training step has some hundred targets and thousands of places. Autograd would write and read the
matrix of scores about ten times; here it is written once, overwritten by its own gradient, and
multiplied back onto states, places and terms, for a few targets at a time, while in the cache.

The reader is too expensive for every place. For each target it reads the target itself and the
hardest others, whose scores are then exact, and a sample of the rest. Its terms r of that sample,
with weights w (they sum to 1), represent its term of any place of the rest:

    s + r                                       for the places that are read
    s + m,  m = log sum over draws w exp(r)     for all others

so the sum of exp over the rest is estimated without bias. The loss does not change if all scores of
a target are raised by the same amount, so r - m is added where the reader reads, and all else
stays. The rest counts in the smoothing and among the hard negatives of the margin too: otherwise
the reader would lower all the places that it reads.

The closer s is to the whole score, the better the hardest are chosen and the less depends on the
draws. So s may include a forecast of the reader for every place; r is then the difference of the
reader and its forecast, and nothing else changes.

Shapes: R targets, P places, D width, k hard negatives, C candidates read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from castpoi.model.terms.base import Spread, cheap_scores

ROWS_AT_ONCE: Final = 64
"""Targets whose scores are computed together on a CPU: they stay in its cache."""


@dataclass(frozen=True, kw_only=True)
class LossConstants:
    """The constants of the paper's loss."""

    label_smoothing: float = 0.02
    margin: float = 1.0
    margin_weight: float
    hard_negatives: int = 10


@dataclass(frozen=True, kw_only=True)
class ReaderSample:
    """The candidates that the reader reads for every target."""

    candidates: Tensor  # first the target, then the hardest others, then the draws [R, C]
    weight: Tensor  # of each draw; sums to 1 over the draws of a target [R, draws]

    @property
    def draws(self) -> int:
        """Number of candidates that are drawn, the last ones; at least 1."""
        return self.weight.shape[1]

    @property
    def exact(self) -> Tensor:
        """The candidates whose scores are exact, all different: the target and the hardest."""
        return self.candidates[:, : -self.draws]


@dataclass(frozen=True, kw_only=True)
class LossInputs:
    """The inputs of the loss without gradient."""

    target: Tensor  # [R]
    weight: Tensor  # of each target in the sum [R]
    constants: LossConstants
    scores: Tensor | None = None  # of every place without the reader, if known; overwritten [R, P]
    sample: ReaderSample | None = None  # None without a reader

    def rows(self, rows: slice) -> "LossInputs":
        """The inputs of some targets."""
        sample = self.sample
        if sample is not None:
            sample = ReaderSample(candidates=sample.candidates[rows], weight=sample.weight[rows])
        return replace(
            self,
            target=self.target[rows],
            weight=self.weight[rows],
            scores=None if self.scores is None else self.scores[rows],
            sample=sample,
        )


def scores_for_loss(
    state: Tensor, vectors: Tensor, popularity: Tensor, spreads: Sequence[Spread]
) -> Tensor:
    """The score of every place without the reader, without gradient. [R, D], [P, D], [P]"""
    with torch.no_grad(), _full_precision(vectors):
        return cheap_scores(state.to(vectors.dtype), vectors, popularity, spreads)


def fused_loss(
    state: Tensor,
    vectors: Tensor,
    popularity: Tensor,
    spreads: Sequence[Spread],
    refinement: Tensor | None,
    inputs: LossInputs,
) -> Tensor:
    """Weighted sum of the loss over targets; gradients flow to all tensors but `inputs`.

    States, places, cheap terms, the reader's term of the sample. [R, D], [P, D], [P], ..., [R, C]
    """
    apply: Callable[..., Tensor] = _FusedLoss.apply
    dtype = vectors.dtype
    compacts = (spread.compact.to(dtype) for spread in spreads)
    reader = None if refinement is None else refinement.to(dtype)
    with _full_precision(vectors):
        return apply(
            state.to(dtype), vectors, popularity, reader, inputs, tuple(spreads), *compacts
        )


def _full_precision(vectors: Tensor) -> torch.autocast:
    """Without half precision, which rounds a sum over all places too much."""
    return torch.autocast(vectors.device.type, enabled=False)


class _FusedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        state: Tensor,
        vectors: Tensor,
        popularity: Tensor,
        refinement: Tensor | None,
        inputs: LossInputs,
        spreads: tuple[Spread, ...],
        *compacts: Tensor,
    ) -> Tensor:
        shape = torch.Size((len(state), len(vectors)))
        size = ROWS_AT_ONCE if state.device.type == "cpu" else max(1, len(state))
        blocks = [
            Spread(each.term, compact, each.index).split(size, shape)
            for each, compact in zip(spreads, compacts, strict=True)
        ]
        total = state.new_zeros(())
        by_vector, by_popularity = torch.zeros_like(vectors), torch.zeros_like(popularity)
        by_row: list[tuple[Tensor | None, ...]] = []
        for number, start in enumerate(range(0, len(state), size)):
            terms, rows = [each[number] for each in blocks], slice(start, start + size)
            part, states = inputs.rows(rows), state[rows]
            scores = part.scores
            if scores is None:
                scores = cheap_scores(states, vectors, popularity, terms)  # [R, P]
            read = None if refinement is None else refinement[rows]
            loss, grad, by_refinement = _loss_and_grad(scores, read, part)
            total += loss
            torch.addmm(by_vector, grad.mT, states, out=by_vector)
            by_popularity += grad.sum(dim=0)
            by_compact = (each.term.reduce(grad, each.compact, each.index) for each in terms)
            by_row.append((grad @ vectors, by_refinement, *by_compact))
        by_state, by_read, *by_compacts = (
            None if parts[0] is None else torch.cat(parts) for parts in zip(*by_row, strict=True)
        )
        ctx.save_for_backward(by_state, by_vector, by_popularity, by_read, *by_compacts)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (outer,) = grads
        inner = [None if saved is None else saved * outer for saved in ctx.saved_tensors]
        return (*inner[:4], None, None, *inner[4:])


def _loss_and_grad(
    scores: Tensor, refinement: Tensor | None, inputs: LossInputs
) -> tuple[Tensor, Tensor, Tensor | None]:
    """(loss, its gradient by every score [R, P], its gradient by every refinement [R, C]).

    Overwrites the scores. [R, P], [R, C]
    """
    constants, sample = inputs.constants, inputs.sample
    places = scores.shape[1]
    smooth = constants.label_smoothing / max(1, places - 1)
    mass = 1 - constants.label_smoothing + places * smooth  # of the smoothed target
    target = inputs.target.unsqueeze(1)  # [R, 1]
    if refinement is not None and sample is not None:
        _add_refinement_(scores, refinement, sample)
    target_score = scores.gather(1, target)
    summed = scores.sum(dim=1, keepdim=True)
    hardest = scores.scatter_(1, target, -torch.inf).topk(constants.hard_negatives, dim=1)  # [R, k]
    scores.scatter_(1, target, target_score)
    short = constants.margin - target_score + hardest.values
    top = torch.maximum(target_score, hardest.values[:, :1])
    probability = scores.sub_(top).exp_()  # [R, P], in place, unnormalised
    partition = probability.sum(dim=1, keepdim=True)  # [R, 1]
    weight = inputs.weight.unsqueeze(1)
    push = constants.margin_weight / constants.hard_negatives
    loss = (
        mass * (top + partition.log())
        - (1 - constants.label_smoothing) * target_score
        - smooth * summed
        + push * short.clamp(min=0).sum(dim=1, keepdim=True)
    )
    grad = probability.mul_(mass * weight / partition).sub_(smooth * weight)  # [R, P], in place
    pushed = (short > 0) * (push * weight)  # [R, k]
    grad.scatter_add_(1, hardest.indices, pushed)
    pull = (1 - constants.label_smoothing) * weight + pushed.sum(dim=1, keepdim=True)
    grad.scatter_add_(1, target, -pull)
    return (loss * weight).sum(), grad, _refinement_grad(grad, refinement, sample)


def _add_refinement_(scores: Tensor, refinement: Tensor, sample: ReaderSample) -> None:
    """Add r - m to the places whose scores are exact. [R, P], [R, C]"""
    exact, drawn = refinement.split([sample.exact.shape[1], sample.draws], dim=1)
    elsewhere = (drawn + sample.weight.log()).logsumexp(dim=1, keepdim=True)  # m [R, 1]
    scores.scatter_add_(1, sample.exact, exact - elsewhere)


def _refinement_grad(
    grad: Tensor, refinement: Tensor | None, sample: ReaderSample | None
) -> Tensor | None:
    """The gradient by the reader's terms, from that by every score. [R, P] -> [R, C]"""
    if refinement is None or sample is None:
        return None
    exact = grad.gather(1, sample.exact)  # [R, C - draws]
    drawn = refinement[:, -sample.draws :] + sample.weight.log()
    # all gradients of a target sum to zero: the rest has what the exact places lack
    rest = -exact.sum(dim=1, keepdim=True) * drawn.softmax(dim=1)  # [R, draws]
    return torch.cat([exact, rest], dim=1)
