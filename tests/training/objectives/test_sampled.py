"""The sampled objective: the loss over all places from some of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.registry import METHODS
from castpoi.model.config import ModelConfig
from castpoi.training import castpoi, trainer
from castpoi.training.config import CastPoiTraining
from castpoi.training.job import TrainingOptions
from castpoi.training.loop import TrainingContext, TrainingLoop
from castpoi.training.objectives import sampled
from castpoi.training.objectives.fast import FastObjective
from castpoi.training.objectives.sampled import PlaceDraws, SampledObjective
from castpoi.training.train import fit
from tests.messages import refused
from tests.training.small import TINY, events_of, tiny_model, tiny_model_config

NEXT = METHODS.named("castpoi-next")


def config_of(**changes: Any) -> ModelConfig:
    parts = {"candidate_conditioning": False, "distance_gate": True, "deep_revisits": True}
    return tiny_model_config(**{**parts, "revisit_features": "habits", **changes})


def training(**changes: Any) -> CastPoiTraining:
    return replace(CastPoiTraining(windows_per_step=10_000), **changes)


def loss_and_grad(
    town: City, kind: type[FastObjective], config: ModelConfig, seed: int = 0, **changes: Any
) -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of all windows at once, and the gradient of every weight."""
    model = tiny_model(town, config, noise=0.3).eval()
    objective = kind(town, model=config, config=training(**changes), seed=seed)
    loop = TrainingLoop(
        model, objective, lambda _: {}, config=objective.config, seed=0, context=TrainingContext()
    )
    loss = objective.loss(model, objective.batches(0)[0])
    loss.backward()
    grads = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    if loop.rows is not None:
        for name, leaf in loop.rows.leaves.items():
            assert leaf.grad is not None
            grads[name] = torch.zeros_like(loop.rows.tensors[name][0])
            grads[name][loop.rows.rows] = leaf.grad
    return loss.item(), grads


@pytest.mark.parametrize("parts", [{}, {"distance_gate": False}, {"revisit_gate": False}])
def test_with_many_draws_loss_and_gradient_are_those_over_all_places(
    town: City, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any]
) -> None:
    monkeypatch.setattr(sampled, "UNIFORM", 100_000)
    config = config_of(**parts)
    expected, expected_grad = loss_and_grad(town, FastObjective, config, margin_weight=0.0)
    found, grad = loss_and_grad(town, SampledObjective, config, margin_weight=0.0)
    assert found == pytest.approx(expected, rel=2e-3)
    assert grad.keys() == expected_grad.keys()
    for name, wanted in expected_grad.items():
        torch.testing.assert_close(grad[name], wanted, rtol=0.05, atol=4e-3)


def test_the_mean_over_seeds_is_the_loss_over_all_places(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in {"POPULAR": 8, "UNIFORM": 4, "NEAR": 2, "REACHES": (4, 12)}.items():
        monkeypatch.setattr(sampled, name, count)
    config = config_of()
    expected, _ = loss_and_grad(town, FastObjective, config, margin_weight=0.0)
    losses = [
        loss_and_grad(town, SampledObjective, config, seed, margin_weight=0.0)[0]
        for seed in range(6)
    ]
    assert np.mean(losses) == pytest.approx(expected, rel=0.02)


def test_a_place_is_drawn_as_often_as_expected() -> None:
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(40, 41, 50), rng.uniform(-74, -73, 50)
    draws = PlaceDraws(lat, lon, rng.integers(50, size=300) // 2)
    draws.reaches = [3, 12]
    anchors = np.array([[7, 30]])
    every = np.arange(50)[None]
    count = np.zeros(50)
    for _ in range(300):
        place, times = draws.shared(rng)
        count[place] += times
        np.add.at(count, draws.near(anchors, rng)[0], 1)
    np.testing.assert_allclose(count / 300, draws.expected(anchors, every)[0], rtol=0.15)


def options(**settings: str) -> TrainingOptions:
    return TrainingOptions(settings={**TINY, "epochs": "2", **settings})


def test_it_trains_a_model_and_is_chosen_for_many_places(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced = fit(town, NEXT, seed=1, options=options(objective="sampled"))
    losses = [each["loss"] for each in events_of(forced.log) if "loss" in each]
    assert losses[1] < losses[0]
    monkeypatch.setattr(castpoi, "SAMPLED_FROM", 10)
    chosen = fit(town, NEXT, seed=1, options=options())
    assert chosen.ranker.config["training"]["settings"]["objective"] == "sampled"
    assert chosen.model_sha256 == forced.model_sha256
    other = fit(town, NEXT, seed=1, options=options(objective="fast", epochs="1"))
    assert other.ranker.config["training"]["settings"]["objective"] == "fast"


def test_a_resumed_training_ends_with_the_same_weights(
    town: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(town, NEXT, seed=1, options=options(objective="sampled"))
    given = replace(options(objective="sampled"), checkpoint_dir=tmp_path)
    train_epoch = TrainingLoop._train_epoch

    def killed(loop: TrainingLoop, epoch: int, task: Any) -> Any:
        if epoch == 1:
            raise KeyboardInterrupt
        return train_epoch(loop, epoch, task)

    monkeypatch.setattr(TrainingLoop, "_train_epoch", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(town, NEXT, seed=1, options=given)
    monkeypatch.undo()
    assert fit(town, NEXT, seed=1, options=given).model_sha256 == whole.model_sha256


def test_a_reader_is_refused(town: City) -> None:
    with refused(BadInput):
        fit(town, METHODS.named("castpoi"), seed=1, options=options(objective="sampled"))


def test_few_targets_validate_many_places(town: City, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[int] = []

    def counted(ranker: Any, trajectories: Any, rows: Any, **rest: Any) -> Any:
        ranked.append(len(rows))
        return rank_targets(ranker, trajectories, rows, **rest)

    monkeypatch.setattr(trainer, "rank_targets", counted)
    monkeypatch.setattr(trainer, "MAX_SCORES", 5 * town.places.height)
    fit(town, NEXT, seed=1, options=options(epochs="1"))
    assert 1 <= ranked[0] <= 5
