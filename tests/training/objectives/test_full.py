"""The full objective and its plain loss."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from castpoi.checkins.city import City
from castpoi.model.castpoi import CastPoi
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives.full import FullObjective, mean_loss
from castpoi.training.objectives.fused_loss import LossConstants
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city
from tests.training.small import full_objective, gradients, tiny_model, tiny_model_config

ABSOLUTE = {"positions": "absolute", "gamma_start": "zero"}


def dense_loss(objective: FullObjective, model: CastPoi, batch: NDArray[np.int64]) -> torch.Tensor:
    """The loss by the model's own forward over all places at once."""
    rows = objective.target_rows[batch]
    histories = objective.builder.build(objective.trajectories.histories_before(rows))
    scores = model(histories, torch.arange(model.place_count))
    target = torch.from_numpy(objective.trajectories.place[rows])
    return mean_loss(scores, target, torch.from_numpy(objective.is_new[batch]), objective.config)


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize("preset", [{}, ABSOLUTE])
def test_loss_and_gradient_are_those_of_all_places_at_once(
    town: City, at_once: int, preset: dict[str, str]
) -> None:
    config = tiny_model_config(reader_layers=2, **preset)
    objective = full_objective(town, config, at_once=at_once)
    whole, parts = (tiny_model(town, config, noise=0.3) for _ in range(2))
    batch = objective.batches(0)[0][:5]
    expected = dense_loss(objective, whole, batch)
    expected.backward()
    found = objective.loss(parts, batch)
    found.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    names = {name for name, _ in parts.named_parameters() if not name.startswith("forecast.")}
    assert gradients(parts).keys() == names
    for name, grad in gradients(whole).items():
        torch.testing.assert_close(gradients(parts)[name], grad, rtol=1e-3, atol=1e-5)


def test_a_part_that_is_computed_again_drops_the_same_activations(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_model_config(dropout=0.4)
    recomputed, kept = (tiny_model(town, config, noise=0.3).train() for _ in range(2))
    objective = full_objective(town, config, at_once=16)
    batch = objective.batches(0)[0]
    torch.manual_seed(3)
    objective.loss(recomputed, batch).backward()
    monkeypatch.setattr(
        "castpoi.training.objectives.full.checkpoint",
        lambda read, *given, use_reentrant: read(*given),
    )
    torch.manual_seed(3)
    objective.loss(kept, batch).backward()
    for name, grad in gradients(kept).items():
        torch.testing.assert_close(gradients(recomputed)[name], grad)


def test_without_a_reader_the_loss_is_that_of_the_other_terms(town: City) -> None:
    config = tiny_model_config(candidate_conditioning=False)
    model = tiny_model(town, config, noise=0.3)
    objective = full_objective(town, config, at_once=1)
    batch = objective.batches(0)[0]
    found = objective.loss(model, batch)
    assert found.item() == pytest.approx(dense_loss(objective, model, batch).item(), rel=1e-5)


def test_every_prefix_of_the_train_part_is_one_instance_an_epoch() -> None:
    city = small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, OFFICE, "2012-04-02 13:00"),
            (0, CAFE, "2012-04-03 12:00"),
            (0, PARK, "2012-04-03 13:00"),
            (0, CAFE, "2012-04-03 21:00"),
            (1, STATION, "2012-04-02 12:00"),
            (2, PARK, "2012-04-02 12:00"),
            (2, PARK, "2012-04-02 13:00"),
        ],
        ["train", "train", "train", "train", "test", "train", "train", "train"],
    )
    objective = full_objective(city, tiny_model_config(), batch=3)
    assert objective.target_rows.tolist() == [1, 2, 3, 6]  # rows of the train part alone
    assert objective.is_new.tolist() == [True, False, True, False]
    for epoch in range(3):
        batches = objective.batches(epoch)
        assert [objective.targets(batch) for batch in batches] == [3, 1]
        assert sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3]


def test_a_train_history_has_no_visit_of_a_later_split() -> None:
    city = small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, STATION, "2012-04-02 13:00"),
            (0, OFFICE, "2012-04-03 12:00"),
        ],
        ["train", "test", "train"],  # no split of ours does so, but a published one might
    )
    trajectories = city.train_trajectories
    histories = trajectories.histories_before(city.train.rows_with_history)
    assert histories.place.tolist() == [CAFE]


def test_seed_and_epoch_fix_the_order(town: City) -> None:
    one, same = (full_objective(town, tiny_model_config()) for _ in range(2))
    orders = [np.concatenate(one.batches(epoch)).tolist() for epoch in (0, 1)]
    assert orders[0] == np.concatenate(same.batches(0)).tolist()
    assert orders[0] != orders[1]


def test_shares_of_a_batch_are_the_batch(town: City) -> None:
    objective = full_objective(town, tiny_model_config())
    batch = objective.batches(0)[0]
    shares = [objective.share(batch, rank, 3) for rank in range(3)]
    assert sorted(np.concatenate(shares).tolist()) == sorted(batch.tolist())


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
