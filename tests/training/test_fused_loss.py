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
CONSTANTS = LossConstants(hard_negatives=4, label_smoothing=0.1)


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
    nothing = torch.zeros(0, 0, dtype=torch.float64)
    loss = fused_loss(*fused, nothing, lesson_of(fused, parts, None))
    scores = dense(plain, parts)
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for ours, theirs in zip(fused, plain, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def all_places_read(parts: dict[str, Tensor], rows: list[int]) -> Reading:
    """Every place of some targets is a candidate: target, then others, the last ten even draws."""
    candidates = []
    for row in rows:
        target = int(parts["target"][row])
        candidates.append([target, *(place for place in range(PLACES) if place != target)])
    chosen = torch.tensor(candidates)
    return Reading(
        rows=torch.tensor(rows),
        candidates=chosen,
        even=10,
        is_first=torch.ones_like(chosen, dtype=torch.bool),
    )


def test_if_the_reader_reads_every_place_the_loss_is_exact(parts: dict[str, Tensor]) -> None:
    rows = [1, 3, 4]
    reading = all_places_read(parts, rows)
    draw = torch.Generator().manual_seed(8)
    said = torch.randn(reading.candidates.shape, generator=draw, dtype=torch.float64)
    ours, theirs = said.clone().requires_grad_(), said.clone().requires_grad_()
    fused, plain = learned(parts), learned(parts)
    loss = fused_loss(*fused, ours, lesson_of(fused, parts, reading))
    read = torch.zeros(len(rows), PLACES, dtype=torch.float64).scatter(
        1, reading.candidates, theirs
    )
    scores = dense(plain, parts).index_add(0, reading.rows, read)
    expected = plain_loss(scores, parts["target"], parts["weight"], scores.logsumexp(dim=1))
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
    for mine, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_the_even_draws_answer_for_every_place_that_is_not_read(parts: dict[str, Tensor]) -> None:
    """A reader that says the same of all places: the rest's chance is shared among the draws."""
    candidates = torch.tensor([[5, 1, 2, 8, 9]])
    reading = Reading(
        rows=torch.tensor([1]),
        candidates=candidates,
        even=2,
        is_first=torch.ones_like(candidates, dtype=torch.bool),
    )
    inputs = learned(parts)
    said = torch.full(candidates.shape, 0.7, dtype=torch.float64, requires_grad=True)
    lesson = replace(
        lesson_of(inputs, parts, reading), constants=replace(CONSTANTS, margin_weight=0.0)
    )
    fused_loss(*inputs, said, lesson).backward()
    chance = dense(inputs, parts).detach().softmax(dim=1)[1]  # saying the same changes no chance
    draws = chance[candidates[0, -2:]]
    rest = 1 - chance[candidates[0]].sum()
    smooth = CONSTANTS.label_smoothing / (PLACES - 1)
    mass = 1 - CONSTANTS.label_smoothing + PLACES * smooth
    expected = parts["weight"][1] * (mass * (draws + rest * draws / draws.sum()) - smooth)
    assert said.grad is not None
    torch.testing.assert_close(said.grad[0, -2:], expected)


def test_a_candidate_that_stands_twice_counts_once(parts: dict[str, Tensor]) -> None:
    inputs = learned(parts)

    def loss_of(candidates: list[int], first: list[bool], said: list[float]) -> Tensor:
        reading = Reading(
            rows=torch.tensor([0]),
            candidates=torch.tensor([candidates]),
            even=2,
            is_first=torch.tensor([first]),
        )
        words = torch.tensor([said], dtype=torch.float64)
        return fused_loss(*inputs, words, lesson_of(inputs, parts, reading))

    once = loss_of([0, 3, 8, 9], [True] * 4, [0.1, 0.2, 0.3, 0.4])
    twice = loss_of([0, 3, 3, 8, 9], [True, True, False, True, True], [0.1, 0.2, 5.0, 0.3, 0.4])
    torch.testing.assert_close(once, twice)
