"""A step in parts: the gradient of the whole batch, whatever the number of threads."""

from typing import Any

import pytest
import torch

from castpoi.checkins.city import City
from castpoi.model.config import ModelConfig
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives.fast import FastObjective
from castpoi.training.parts import StepParts
from tests.training.small import gradients, tiny_model, tiny_model_config

OURS: dict[str, Any] = {
    "candidate_conditioning": False,
    "distance_gate": True,
    "revisit_features": "habits",
    "deep_revisits": True,
    "shared_vectors": True,
}


def gradients_in_parts(
    town: City, config: ModelConfig, *, parts: int, threads: int
) -> tuple[float, dict[str, torch.Tensor]]:
    objective = FastObjective(
        town, model=config, config=CastPoiTraining(windows_per_step=9), seed=0
    )
    model = tiny_model(town, config, noise=0.3).train()
    with StepParts.of(objective, parts, threads=threads) as step:
        loss = step.backward(model, objective.batches(0)[0], (0, 0))
    return loss, gradients(model)


def test_the_gradient_of_the_parts_is_that_of_the_batch(town: City) -> None:
    config = tiny_model_config(**OURS)
    whole, expected = gradients_in_parts(town, config, parts=1, threads=1)
    loss, found = gradients_in_parts(town, config, parts=3, threads=1)
    assert loss == pytest.approx(whole, rel=1e-5)
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-3, atol=1e-6)


def test_the_number_of_threads_changes_no_bit_of_loss_and_gradients(town: City) -> None:
    config = tiny_model_config(**OURS, dropout=0.4)
    one, expected = gradients_in_parts(town, config, parts=2, threads=1)
    for _ in range(3):  # threads would draw their random numbers in another order each time
        two, found = gradients_in_parts(town, config, parts=2, threads=2)
        assert two == one
        assert all(torch.equal(found[name], grad) for name, grad in expected.items())


def test_parts_without_a_target_add_nothing(town: City) -> None:
    config = tiny_model_config(**OURS)
    whole, expected = gradients_in_parts(town, config, parts=9, threads=1)
    loss, found = gradients_in_parts(town, config, parts=20, threads=2)
    assert loss == pytest.approx(whole, rel=1e-5)
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-3, atol=1e-6)
