import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from castpoi.baselines.sasrec import SasRec, SasRecConfig
from castpoi.checkins.city import City
from castpoi.training.config import SequenceTraining
from castpoi.training.objectives import next_place
from castpoi.training.objectives.next_place import (
    PrefixObjective,
    WindowObjective,
    cross_entropy,
    next_place_loss,
)

WINDOW = 8


def objectives(town: City, **changes: Any) -> tuple[WindowObjective, PrefixObjective]:
    config = SequenceTraining(**{"batch": 10**9, **changes})
    return (
        WindowObjective(town, window=WINDOW, config=config, seed=1),
        PrefixObjective(town, window=WINDOW, config=config, seed=1),
    )


def model_without_dropout(town: City) -> SasRec:
    torch.manual_seed(1)
    config = SasRecConfig(
        width=8, window=WINDOW, layers=1, feed_forward_width=8, dropout=0.0, attention_dropout=0.0
    )
    model = SasRec(config=config, places=town.places.height)
    with torch.no_grad():
        model.slot.weight.normal_()  # so that the slot of a visit matters
        model.place.weight[1:].normal_()
    return model


def learned(
    town: City, objective: WindowObjective | PrefixObjective
) -> tuple[Tensor, list[Tensor | None]]:
    """Loss and gradients of the one batch of an epoch."""
    model = model_without_dropout(town)
    (batch,) = objective.batches(0)
    loss = objective.loss(model, batch)
    loss.backward()
    return loss.detach(), [weight.grad for weight in model.parameters()]


def test_with_stride_one_windows_and_prefixes_have_the_same_loss_and_gradients(town: City) -> None:
    (loss, grads), (other, others) = (
        learned(town, objective) for objective in objectives(town, stride=1)
    )
    torch.testing.assert_close(loss, other)
    torch.testing.assert_close(grads, others, rtol=1e-4, atol=1e-5)


def test_the_number_of_prefixes_read_together_changes_nothing(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, objective = objectives(town)
    loss, grads = learned(town, objective)
    monkeypatch.setattr(next_place, "PREFIXES_AT_ONCE", 5)
    other, others = learned(town, objective)
    torch.testing.assert_close(loss, other)
    torch.testing.assert_close(grads, others, rtol=1e-4, atol=1e-6)


def test_a_longer_stride_changes_only_the_loss_of_later_visits(town: City) -> None:
    window, prefix = objectives(town, stride=4)
    model = model_without_dropout(town)
    windows = window.windows
    first = np.flatnonzero(windows.begin == windows.learn)
    bounds = zip(windows.begin[first], windows.end[first], strict=True)
    visits = np.concatenate([np.arange(begin + 1, end + 1) for begin, end in bounds])  # targets
    torch.testing.assert_close(window.loss(model, first), prefix.loss(model, visits))
    later = np.setdiff1d(prefix.target, visits)
    rest = np.setdiff1d(np.arange(len(windows)), first)
    assert window.targets(rest) == len(later)
    difference = window.loss(model, rest) - prefix.loss(model, later)
    assert abs(float(difference.detach())) > 1e-4


@pytest.mark.parametrize("which", [0, 1])
def test_an_epoch_has_every_target_once_in_steps_of_about_one_size(town: City, which: int) -> None:
    objective = objectives(town, batch=64)[which]
    batches = objective.batches(0)
    sizes = [objective.targets(batch) for batch in batches]
    whole = objectives(town)[which]
    assert sum(sizes) == whole.targets(whole.batches(0)[0])
    assert all(64 - WINDOW < size < 64 + WINDOW for size in sizes[:-1])
    numbers = np.concatenate(batches)
    assert len(np.unique(numbers)) == len(numbers)


@pytest.mark.parametrize("which", [0, 1])
def test_seed_and_epoch_fix_the_batches(town: City, which: int) -> None:
    objective, again = (objectives(town, batch=64)[which] for _ in range(2))
    same = zip(objective.batches(3), again.batches(3), strict=True)
    assert all(np.array_equal(one, other) for one, other in same)
    assert not np.array_equal(objective.batches(3)[0], objective.batches(4)[0])


@pytest.mark.parametrize("which", [0, 1])
def test_the_shares_of_all_processes_have_the_loss_of_the_batch(town: City, which: int) -> None:
    objective = objectives(town)[which]
    model = model_without_dropout(town)
    (batch,) = objective.batches(0)
    shares = [objective.share(batch, rank, 3) for rank in range(3)]
    counts = [objective.targets(share) for share in shares]
    together = sum(
        float(objective.loss(model, share).detach()) * count
        for share, count in zip(shares, counts, strict=True)
    )
    assert sum(counts) == objective.targets(batch)
    expected = float(objective.loss(model, batch).detach())
    assert together / sum(counts) == pytest.approx(expected, rel=1e-5)


def loss_inputs(
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
def test_the_fused_cross_entropy_has_the_loss_and_gradients_of_autograd(
    monkeypatch: pytest.MonkeyPatch, with_bias: bool, block_scores: int, strength: float
) -> None:
    monkeypatch.setattr(next_place, "BLOCK_SCORES", block_scores)
    found: list[Tensor | None] = []
    expected: list[Tensor | None] = []
    for results in (found, expected):
        state, vectors, bias, target = loss_inputs(with_bias=with_bias, strength=strength)
        if results is found:
            loss = cross_entropy(state, vectors, bias, target)
        else:
            loss = functional.cross_entropy(functional.linear(state, vectors, bias), target)
        (3 * loss).backward()
        inputs = [state, vectors] if bias is None else [state, vectors, bias]
        results += [loss.detach(), *(each.grad for each in inputs)]
    torch.testing.assert_close(found, expected)


def test_scores_too_large_for_exp_still_have_a_loss() -> None:
    state, vectors = torch.tensor([[1000.0]]), torch.tensor([[1.0], [-1.0]])
    assert float(cross_entropy(state, vectors, None, torch.tensor([1]))) == 2000.0


@pytest.mark.parametrize("score", [59.0, -59.0, 61.0, -61.0])
def test_classes_with_equal_scores_are_equally_probable_however_large_these_are(
    score: float,
) -> None:
    state = torch.tensor([[score]], requires_grad=True)
    vectors = torch.ones(1000, 1, requires_grad=True)
    loss = cross_entropy(state, vectors, None, torch.tensor([7]))
    (grad,) = torch.autograd.grad(loss, vectors)
    assert loss.item() == pytest.approx(math.log(1000), rel=1e-5)
    expected = torch.full((1000, 1), score / 1000)
    expected[7] -= score
    torch.testing.assert_close(grad, expected)


STATE, TARGET = torch.linspace(-1, 1, 12).view(3, 4), torch.tensor([1, 5, 2])


def untrained(model: type[SasRec] = SasRec, **changes: Any) -> SasRec:
    torch.manual_seed(3)
    return model(config=SasRecConfig(width=4, **changes), places=5)


@pytest.mark.parametrize("padding_class", [True, False])
def test_padding_is_a_class_of_the_loss_only_by_its_setting(padding_class: bool) -> None:
    model = untrained(padding_class=padding_class)
    loss = next_place_loss(model, STATE, TARGET)
    scores, target = model.scores(STATE), TARGET
    if not padding_class:
        scores, target = scores[:, 1:], target - 1
    torch.testing.assert_close(loss, functional.cross_entropy(scores, target))
    loss.backward()
    assert model.place.weight.grad is not None
    assert bool(model.place.weight.grad[0].any()) is padding_class


def test_the_loss_includes_the_penalty_and_the_bias_of_a_model() -> None:
    class Extended(SasRec):
        def penalty(self) -> Tensor:
            return torch.tensor(0.25)

        def candidate_bias(self) -> Tensor:
            return torch.arange(6.0)

    model = untrained(Extended)
    expected = functional.cross_entropy(model.scores(STATE)[:, 1:], TARGET - 1) + 0.25
    torch.testing.assert_close(next_place_loss(model, STATE, TARGET), expected)
