import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.sasrec import SasRec, SasRecConfig
from castpoi.training.sequence_loss import cross_entropy, next_place_loss


def lesson(
    *, with_bias: bool, strength: float = 1.0
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    torch.manual_seed(2)
    state = (strength * torch.randn(7, 4)).requires_grad_()
    vectors = torch.randn(9, 4, requires_grad=True)
    bias = torch.randn(9, requires_grad=True) if with_bias else None
    return state, vectors, bias, torch.tensor([0, 8, 3, 3, 1, 5, 0])


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("block_scores", [1, 18, 27, 10_000])
@pytest.mark.parametrize("strength", [1.0, 20.0])  # small scores, and some above 60
def test_loss_and_gradient_are_those_of_autograd(
    with_bias: bool, block_scores: int, strength: float
) -> None:
    found: list[Tensor | None] = []
    expected: list[Tensor | None] = []
    for results in (found, expected):
        state, vectors, bias, target = lesson(with_bias=with_bias, strength=strength)
        if results is found:
            loss = cross_entropy(state, vectors, bias, target, block_scores=block_scores)
        else:
            loss = functional.cross_entropy(functional.linear(state, vectors, bias), target)
        (3 * loss).backward()
        learned = [state, vectors] if bias is None else [state, vectors, bias]
        results += [loss.detach(), *(each.grad for each in learned)]
    torch.testing.assert_close(found, expected)


def test_scores_too_large_for_exp_still_have_a_loss() -> None:
    state, vectors = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0]])
    assert float(cross_entropy(state, vectors, None, torch.tensor([1]))) == 2000.0


@pytest.mark.parametrize("score", [59.0, -59.0, 61.0, -61.0])
def test_classes_that_all_score_high_or_low_are_equally_likely(score: float) -> None:
    state = torch.tensor([[score]], requires_grad=True)
    vectors = torch.ones(1000, 1, requires_grad=True)
    loss = cross_entropy(state, vectors, None, torch.tensor([7]))
    (slope,) = torch.autograd.grad(loss, vectors)
    assert loss.item() == pytest.approx(math.log(1000), rel=1e-5)
    expected = torch.full((1000, 1), score / 1000)
    expected[7] -= score
    torch.testing.assert_close(slope, expected)


@pytest.mark.parametrize("padding_class", [True, False])
def test_padding_is_a_class_only_when_asked_for(padding_class: bool) -> None:
    torch.manual_seed(3)
    config = SasRecConfig(width=4, padding_class=padding_class)
    model = SasRec(config=config, places=5)
    state, target = torch.randn(3, 4), torch.tensor([1, 5, 2])
    loss = next_place_loss(model, state, target)
    scores = model.scores(state)
    if not padding_class:
        scores, target = scores[:, 1:], target - 1
    torch.testing.assert_close(loss, functional.cross_entropy(scores, target))
    loss.backward()
    assert model.place.weight.grad is not None
    assert bool(model.place.weight.grad[0].any()) is padding_class


def test_a_penalty_is_added_to_the_loss() -> None:
    class Fined(SasRec):
        def penalty(self) -> Tensor:
            return torch.tensor(0.25)

    state, target = torch.randn(3, 4), torch.tensor([1, 5, 2])
    torch.manual_seed(3)
    fined = next_place_loss(Fined(config=SasRecConfig(width=4), places=5), state, target)
    torch.manual_seed(3)
    free = next_place_loss(SasRec(config=SasRecConfig(width=4), places=5), state, target)
    torch.testing.assert_close(fined, free + 0.25)


def test_a_bias_counts_in_the_loss_as_it_does_in_the_scores() -> None:
    class Biased(SasRec):
        def candidate_bias(self) -> Tensor:
            return torch.arange(6.0)

    model = Biased(config=SasRecConfig(width=4), places=5)
    state, target = torch.randn(3, 4), torch.tensor([1, 5, 2])
    expected = functional.cross_entropy(model.scores(state)[:, 1:], target - 1)
    torch.testing.assert_close(next_place_loss(model, state, target), expected)
