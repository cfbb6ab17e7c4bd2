"""The fused loss agrees with autograd on the plain formula, values and gradients."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from castpoi.training.fused_loss import (
    Lesson,
    LossConstants,
    Reading,
    fused_loss,
    quick_scores,
)

TARGETS, PLACES, WIDTH = 6, 23, 8
CONSTANTS = LossConstants(hard_negatives=4, label_smoothing=0.1, margin_weight=0.5)


def plain_loss(scores: Tensor, target: Tensor, weight: Tensor, partition: Tensor) -> Tensor:
    """The paper's loss, written down; `partition` is log Z of every target."""
    smooth = CONSTANTS.label_smoothing / (PLACES - 1)
    wanted = torch.full_like(scores, smooth)
    wanted[torch.arange(len(target)), target] += 1 - CONSTANTS.label_smoothing
    entropy = (wanted * (partition.unsqueeze(1) - scores)).sum(dim=1)
    own = scores.gather(1, target.unsqueeze(1))
    others = scores.masked_fill(F.one_hot(target, PLACES).bool(), -torch.inf)
    hardest = others.topk(CONSTANTS.hard_negatives, dim=1).values
    push = (CONSTANTS.margin - own + hardest).clamp(min=0).mean(dim=1)
    return (weight * (entropy + CONSTANTS.margin_weight * push)).sum()


@pytest.fixture
def parts() -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(7)
    known = torch.tensor([2, 23 + 5, 2 * 23 + 5, 3 * 23 + 1, 3 * 23 + 9])
    return {
        "state": torch.randn(TARGETS, WIDTH, generator=draw, dtype=torch.float64),
        "place": torch.randn(PLACES, WIDTH, generator=draw, dtype=torch.float64),
        "popularity": torch.randn(PLACES, generator=draw, dtype=torch.float64),
        "gain": torch.randn(len(known), generator=draw, dtype=torch.float64),
        "known": known,
        "target": torch.tensor([0, 5, 5, 22, 1, 7]),
        "weight": torch.tensor([1.0, 1.5, 1.0, 1.0, 1.5, 1.0], dtype=torch.float64) / TARGETS,
    }


Inputs = tuple[Tensor, Tensor, Tensor, Tensor]


def learned(parts: dict[str, Tensor]) -> Inputs:
    names = ("state", "place", "popularity", "gain")
    state, place, popularity, gain = (parts[name].clone().requires_grad_() for name in names)
    return state, place, popularity, gain


def dense(inputs: Inputs, parts: dict[str, Tensor]) -> Tensor:
    state, place, popularity, gain = inputs
    scores = state @ place.mT + popularity
    return scores.view(-1).index_add(0, parts["known"], gain).view(TARGETS, PLACES)


def lesson_of(inputs: Inputs, parts: dict[str, Tensor], reading: Reading | None) -> Lesson:
    state, place, popularity, gain = inputs
    return Lesson(
        scores=quick_scores(state, place, popularity, parts["known"], gain),
        target=parts["target"],
        weight=parts["weight"],
        known=parts["known"],
        reading=reading,
        constants=CONSTANTS,
    )


def test_quick_scores_are_base_popularity_and_gate(parts: dict[str, Tensor]) -> None:
    inputs = learned(parts)
    quick = quick_scores(*inputs[:3], parts["known"], inputs[3])
    torch.testing.assert_close(quick, dense(inputs, parts).detach())


def test_without_a_reader_value_and_gradients_are_those_of_autograd(
    parts: dict[str, Tensor],
) -> None:
    fused, plain = learned(parts), learned(parts)
    loss = fused_loss(*fused, None, lesson_of(fused, parts, None))
    scores = dense(plain, parts)
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for ours, theirs in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_gains_by_distance_have_the_value_and_gradients_of_autograd(
    parts: dict[str, Tensor],
) -> None:
    draw = torch.Generator().manual_seed(9)
    cell = torch.randint(0, 5, (TARGETS, PLACES), generator=draw)
    gains = torch.randn(TARGETS, 5, generator=draw, dtype=torch.float64)
    ours, theirs = gains.clone().requires_grad_(), gains.clone().requires_grad_()
    fused, plain = learned(parts), learned(parts)
    state, place, popularity, gain = fused
    quick = quick_scores(state, place, popularity, parts["known"], gain, cell, ours)
    scores = dense(plain, parts) + theirs.gather(1, cell)
    torch.testing.assert_close(quick, scores.detach())
    lesson = replace(lesson_of(fused, parts, None), scores=quick, cell=cell)
    loss = fused_loss(*fused, None, lesson, ours)
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for mine, other in zip((*fused, ours), (*plain, theirs), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def all_places_read(parts: dict[str, Tensor]) -> Reading:
    """Every place is an exact candidate: the target, then the others; no rest is left."""
    candidates = []
    for target in parts["target"].tolist():
        others = [place for place in range(PLACES) if place != target]
        candidates.append([target, *others, target])
    alone = torch.ones(TARGETS, 1, dtype=torch.float64)
    return Reading(candidates=torch.tensor(candidates), weight=alone)


def test_if_the_reader_reads_every_place_the_loss_is_exact(parts: dict[str, Tensor]) -> None:
    reading = all_places_read(parts)
    draw = torch.Generator().manual_seed(8)
    said = torch.randn(reading.candidates.shape, generator=draw, dtype=torch.float64)
    ours, theirs = said.clone().requires_grad_(), said.clone().requires_grad_()
    fused, plain = learned(parts), learned(parts)
    loss = fused_loss(*fused, ours, lesson_of(fused, parts, reading))
    read = torch.zeros(TARGETS, PLACES, dtype=torch.float64).scatter(
        1, reading.exact, theirs[:, :-1]
    )
    scores = dense(plain, parts) + read
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    torch.testing.assert_close(ours.grad[:, :-1], theirs.grad[:, :-1])
    assert float(ours.grad[:, -1].abs().max()) < 1e-12
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def three_draws(parts: dict[str, Tensor]) -> Reading:
    """The target and two others are exact; three draws stand for the rest."""
    others = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 2], [5, 2], [1, 2]])
    drawn = torch.tensor([[8, 9, 9]]).expand(TARGETS, -1)
    return Reading(
        candidates=torch.cat([parts["target"].unsqueeze(1), others, drawn], dim=1),
        weight=torch.tensor([[0.2, 0.5, 0.3]], dtype=torch.float64).expand(TARGETS, -1),
    )


def test_what_the_reader_says_of_all_places_alike_changes_nothing(
    parts: dict[str, Tensor],
) -> None:
    reading, inputs = three_draws(parts), learned(parts)
    said = torch.randn(
        reading.candidates.shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64
    ).requires_grad_()
    loss = fused_loss(*inputs, said, lesson_of(inputs, parts, reading))
    raised = fused_loss(*inputs, said + 7.0, lesson_of(inputs, parts, reading))
    torch.testing.assert_close(raised, loss)
    loss.backward()
    assert said.grad is not None
    assert float(said.grad.abs().max()) > 0.01
    torch.testing.assert_close(said.grad.sum(dim=1), torch.zeros(TARGETS, dtype=torch.float64))


def test_the_draws_answer_for_every_place_that_is_not_read(parts: dict[str, Tensor]) -> None:
    """Value and gradient are those of autograd on the formula of the module's text."""
    reading = three_draws(parts)
    draw = torch.Generator().manual_seed(8)
    said = torch.randn(reading.candidates.shape, generator=draw, dtype=torch.float64)
    ours, theirs = said.clone().requires_grad_(), said.clone().requires_grad_()
    fused, plain = learned(parts), learned(parts)
    loss = fused_loss(*fused, ours, lesson_of(fused, parts, reading))
    of_rest = (reading.weight * theirs[:, 3:].exp()).sum(dim=1, keepdim=True).log()
    before = dense(plain, parts)
    scores = (before + of_rest).scatter(
        1, reading.exact, before.gather(1, reading.exact) + theirs[:, :3]
    )
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_rivals_of_the_margin_are_sought_after_the_reader_has_spoken(
    parts: dict[str, Tensor],
) -> None:
    reading = all_places_read(parts)
    inputs = learned(parts)
    said = torch.zeros(reading.candidates.shape, dtype=torch.float64)
    said[:, 5] = 50.0  # raises one place above all others
    said.requires_grad_()
    fused_loss(*inputs, said, lesson_of(inputs, parts, reading)).backward()
    assert said.grad is not None
    push = CONSTANTS.margin_weight / CONSTANTS.hard_negatives
    assert bool((said.grad[:, 5] > push * parts["weight"]).all())
