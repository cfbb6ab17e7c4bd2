import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from castpoi.training.config import CastPoiTraining
from castpoi.training.fused_loss import (
    Lesson,
    LossConstants,
    fused_loss,
    quick_scores,
)
from castpoi.training.loss import (
    margin_shortfall,
    mean_loss,
    smoothed_cross_entropy,
)

PAPER = CastPoiTraining.preset("paper")
CONSTANTS = LossConstants(margin_weight=PAPER.margin_weight)


def slow_loss(
    scores: list[list[float]], targets: list[int], is_new: list[bool], config: CastPoiTraining
) -> float:
    """The loss in plain Python, one target after the other."""
    total = 0.0
    for row, target, new in zip(scores, targets, is_new, strict=True):
        partition = sum(math.exp(score) for score in row)
        loss = 0.0
        for place, score in enumerate(row):
            mass = CONSTANTS.label_smoothing / (len(row) - 1)
            mass += (1 - CONSTANTS.label_smoothing) * (place == target)
            loss -= mass * (score - math.log(partition))
        rivals = sorted((s for place, s in enumerate(row) if place != target), reverse=True)
        rivals = rivals[: CONSTANTS.hard_negatives]
        short = [max(0.0, CONSTANTS.margin - (row[target] - rival)) for rival in rivals]
        loss += config.margin_weight * sum(short) / len(short)
        total += loss * (config.explore_weight if new else 1.0)
    return total / len(scores)


def some_scores(targets: int = 6, places: int = 14, seed: int = 0) -> Tensor:
    return torch.randn(targets, places, generator=torch.Generator().manual_seed(seed)).double() * 2


@pytest.mark.parametrize("places", [2, 5, 14])
@pytest.mark.parametrize("config", [PAPER, replace(PAPER, margin_weight=0.0, explore_weight=4.0)])
def test_the_loss_is_that_of_a_slow_loop(places: int, config: CastPoiTraining) -> None:
    scores = some_scores(places=places)
    target = torch.tensor([0, 1, 0, 1, 1, places - 1])
    is_new = torch.tensor([True, False, False, True, False, True])
    expected = slow_loss(scores.tolist(), target.tolist(), is_new.tolist(), config)
    assert float(mean_loss(scores, target, is_new, config)) == pytest.approx(expected)


def test_two_places_by_hand() -> None:
    scores = torch.tensor([[0.0, 0.0]])
    target = torch.tensor([0])
    assert smoothed_cross_entropy(scores, target, smoothing=0.0).item() == pytest.approx(
        math.log(2)
    )
    assert margin_shortfall(scores, target, margin=1.0, hardest=10).item() == 1.0


def test_only_the_hardest_rivals_count_for_the_margin() -> None:
    scores = torch.tensor([[3.0, 2.5, 1.0, -9.0]])  # the target lacks 0.5 to the best rival
    short = margin_shortfall(scores, torch.tensor([0]), margin=1.0, hardest=2)
    assert short.tolist() == [0.25]


def test_a_target_at_a_new_place_weighs_half_more() -> None:
    scores, target = some_scores(1), torch.tensor([3])
    known = mean_loss(scores, target, torch.tensor([False]), PAPER)
    new = mean_loss(scores, target, torch.tensor([True]), PAPER)
    assert float(new) == pytest.approx(1.5 * float(known))


def test_a_city_of_one_place_has_no_rivals() -> None:
    loss = mean_loss(torch.zeros(2, 1), torch.tensor([0, 0]), torch.tensor([True, False]), PAPER)
    assert float(loss) == 0.0


def test_the_gradient_is_that_of_finite_differences() -> None:
    target = torch.tensor([0, 1, 2, 3, 4, 5])
    is_new = torch.tensor([True, False] * 3)
    scores = some_scores().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: mean_loss(s, target, is_new, PAPER), scores)


def test_the_fused_loss_is_the_same_loss() -> None:
    generator = torch.Generator().manual_seed(1)
    state, place = (torch.randn(count, 4, generator=generator) for count in (6, 14))
    popularity = torch.randn(14, generator=generator)
    known = torch.tensor([1, 20, 33])  # target * places + place
    gain = torch.tensor([0.5, -1.0, 2.0])
    target = torch.tensor([1, 0, 3, 3, 9, 13])
    is_new = torch.tensor([False, True, True, False, True, True])
    scores = quick_scores(state, place, popularity, known, gain)
    plain = mean_loss(scores, target, is_new, PAPER)
    lesson = Lesson(
        scores=scores.clone(),
        target=target,
        weight=torch.where(is_new, 1.5, 1.0) / len(target),
        known=known,
        constants=LossConstants(margin_weight=0.5),
    )
    fused = fused_loss(state, place, popularity, gain, None, lesson)
    assert float(fused) == pytest.approx(float(plain), rel=1e-5)
