"""The fused loss agrees with autograd on the plain formula, values and gradients."""

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from castpoi.geo.distance import DISTANCE_GATE_EDGES_KM
from castpoi.model.config import ModelConfig
from castpoi.model.distances import DistanceBuckets
from castpoi.model.terms.base import Spread, Term
from castpoi.model.terms.distance import DistanceGate
from castpoi.model.terms.revisit import RevisitGate
from castpoi.training.objectives.fused_loss import (
    LossConstants,
    LossInputs,
    ReaderSample,
    fused_loss,
    scores_for_loss,
)
from tests.model.small import LAT, LON

TARGETS, PLACES, WIDTH, CELLS = 6, 23, 8, 5
CONSTANTS = LossConstants(hard_negatives=4, label_smoothing=0.1, margin_weight=0.5)
TARGET = torch.tensor([0, 5, 5, 22, 1, 7])
WEIGHT = torch.tensor([1.0, 1.5, 1.0, 1.0, 1.5, 1.0], dtype=torch.float64) / TARGETS
KNOWN = torch.tensor([2, 23 + 5, 2 * 23 + 5, 3 * 23 + 1, 3 * 23 + 9])
CELL = torch.randint(0, CELLS, (TARGETS, PLACES), generator=torch.Generator().manual_seed(9))
TERMS: list[tuple[Term, Tensor]] = [
    (RevisitGate(config=ModelConfig()), KNOWN),
    (
        DistanceGate(
            config=ModelConfig(),
            distances=DistanceBuckets(lat=LAT, lon=LON, edges_km=DISTANCE_GATE_EDGES_KM),
        ),
        CELL,
    ),
]
"""The cheap terms, each with its index."""


@dataclass
class Learned:
    """What has a gradient."""

    state: Tensor
    vectors: Tensor
    popularity: Tensor
    compacts: list[Tensor]

    @property
    def spreads(self) -> list[Spread]:
        return [
            Spread(term, compact, index)
            for (term, index), compact in zip(TERMS, self.compacts, strict=True)
        ]

    def grads(self) -> list[Tensor]:
        every = [self.state, self.vectors, self.popularity, *self.compacts]
        return [each.grad for each in every if each.grad is not None]

    def dense(self) -> Tensor:
        """The score of every place, by autograd."""
        scores = self.state @ self.vectors.mT + self.popularity
        gains, by_cell = self.compacts
        scores = scores.view(-1).index_add(0, KNOWN, gains).view(TARGETS, PLACES)
        return scores + by_cell.gather(1, CELL)

    def loss(self, refinement: Tensor | None = None, sample: ReaderSample | None = None) -> Tensor:
        inputs = LossInputs(
            scores=scores_for_loss(self.state, self.vectors, self.popularity, self.spreads),
            target=TARGET,
            weight=WEIGHT,
            sample=sample,
            constants=CONSTANTS,
        )
        return fused_loss(
            self.state, self.vectors, self.popularity, self.spreads, refinement, inputs
        )


def learned() -> Learned:
    draw = torch.Generator().manual_seed(7)
    shapes = [(TARGETS, WIDTH), (PLACES, WIDTH), (PLACES,), (len(KNOWN),), (TARGETS, CELLS)]
    state, vectors, popularity, *compacts = (
        torch.randn(shape, generator=draw, dtype=torch.float64).requires_grad_() for shape in shapes
    )
    return Learned(state, vectors, popularity, compacts)


def terms_of_reader(sample: ReaderSample) -> Tensor:
    draw = torch.Generator().manual_seed(8)
    shape = sample.candidates.shape
    return torch.randn(shape, generator=draw, dtype=torch.float64).requires_grad_()


def plain_loss(scores: Tensor) -> Tensor:
    """The paper's loss, written down."""
    smooth = CONSTANTS.label_smoothing / (PLACES - 1)
    wanted = torch.full_like(scores, smooth)
    wanted[torch.arange(TARGETS), TARGET] += 1 - CONSTANTS.label_smoothing
    entropy = (wanted * (scores.logsumexp(dim=1, keepdim=True) - scores)).sum(dim=1)
    own = scores.gather(1, TARGET.unsqueeze(1))
    others = scores.masked_fill(F.one_hot(TARGET, PLACES).bool(), -torch.inf)
    hardest = others.topk(CONSTANTS.hard_negatives, dim=1).values
    push = (CONSTANTS.margin - own + hardest).clamp(min=0).mean(dim=1)
    return (WEIGHT * (entropy + CONSTANTS.margin_weight * push)).sum()


def assert_same(fused: Learned, loss: Tensor, plain: Learned, expected: Tensor) -> None:
    """Compare values, and after a step back all gradients."""
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    assert len(fused.grads()) == 5
    for ours, theirs in zip(fused.grads(), plain.grads(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_scores_are_the_sum_of_the_cheap_terms() -> None:
    parts = learned()
    scores = scores_for_loss(parts.state, parts.vectors, parts.popularity, parts.spreads)
    torch.testing.assert_close(scores, parts.dense().detach())


@pytest.mark.parametrize("rows", [64, 4, 1])
def test_without_a_reader_value_and_gradients_are_those_of_autograd(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many targets are computed together; the last ones are fewer."""
    monkeypatch.setattr("castpoi.training.objectives.fused_loss.ROWS_AT_ONCE", rows)
    fused, plain = learned(), learned()
    assert_same(fused, fused.loss(), plain, plain_loss(plain.dense()))


def all_places() -> ReaderSample:
    """Every place is an exact candidate: the target, then the others; none is left."""
    rows = [
        [target, *(place for place in range(PLACES) if place != target), target]
        for target in TARGET.tolist()
    ]
    alone = torch.ones(TARGETS, 1, dtype=torch.float64)
    return ReaderSample(candidates=torch.tensor(rows), weight=alone)


def test_if_the_reader_reads_every_place_the_loss_is_exact() -> None:
    sample = all_places()
    ours, theirs = terms_of_reader(sample), terms_of_reader(sample)
    fused, plain = learned(), learned()
    read = torch.zeros(TARGETS, PLACES, dtype=torch.float64)
    scores = plain.dense() + read.scatter(1, sample.exact, theirs[:, :-1])
    assert_same(fused, fused.loss(ours, sample), plain, plain_loss(scores))
    assert ours.grad is not None
    assert theirs.grad is not None
    torch.testing.assert_close(ours.grad[:, :-1], theirs.grad[:, :-1])
    assert float(ours.grad[:, -1].abs().max()) < 1e-12


def three_draws() -> ReaderSample:
    """The target and two others are exact; three draws represent the rest."""
    others = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 2], [5, 2], [1, 2]])
    drawn = torch.tensor([[8, 9, 9]]).expand(TARGETS, -1)
    return ReaderSample(
        candidates=torch.cat([TARGET.unsqueeze(1), others, drawn], dim=1),
        weight=torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64).expand(TARGETS, -1),
    )


def test_a_constant_added_by_the_reader_to_all_places_changes_nothing() -> None:
    sample, parts = three_draws(), learned()
    terms = terms_of_reader(sample)
    loss, raised = parts.loss(terms, sample), parts.loss(terms + 7.0, sample)
    torch.testing.assert_close(raised, loss)
    loss.backward()
    assert terms.grad is not None
    assert float(terms.grad.abs().max()) > 0.01
    torch.testing.assert_close(terms.grad.sum(dim=1), torch.zeros(TARGETS, dtype=torch.float64))


@pytest.mark.parametrize("rows", [64, 4])
def test_the_draws_represent_every_place_that_is_not_read(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Value and gradient are those of autograd on the formula of the module's text."""
    monkeypatch.setattr("castpoi.training.objectives.fused_loss.ROWS_AT_ONCE", rows)
    sample = three_draws()
    ours, theirs = terms_of_reader(sample), terms_of_reader(sample)
    fused, plain = learned(), learned()
    of_rest = (sample.weight * theirs[:, 3:].exp()).sum(dim=1, keepdim=True).log()
    before = plain.dense()
    exact = before.gather(1, sample.exact) + theirs[:, :3]
    scores = (before + of_rest).scatter(1, sample.exact, exact)
    assert_same(fused, fused.loss(ours, sample), plain, plain_loss(scores))
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_rivals_of_the_margin_are_selected_by_scores_with_the_reader() -> None:
    sample, parts = all_places(), learned()
    terms = torch.zeros(sample.candidates.shape, dtype=torch.float64)
    terms[:, 5] = 50.0  # raises one place above all others
    parts.loss(terms.requires_grad_(), sample).backward()
    assert terms.grad is not None
    push = CONSTANTS.margin_weight / CONSTANTS.hard_negatives
    assert bool((terms.grad[:, 5] > push * WEIGHT).all())
