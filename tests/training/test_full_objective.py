from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from castpoi.checkins.city import City
from castpoi.model.castpoi import CastPoi
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.full_objective import FullObjective
from castpoi.training.fused_loss import LossConstants
from castpoi.training.loss import mean_loss
from castpoi.training.objectives import Objective
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city
from tests.training.small import full_objective, slopes, tiny_model, tiny_model_config

ABSOLUTE = {"positions": "absolute", "gamma_start": "zero"}


def dense_loss(objective: FullObjective, model: CastPoi, batch: NDArray[np.int64]) -> torch.Tensor:
    """The loss by the model's own forward over all places at once."""
    rows = objective.target_rows[batch]
    histories = objective.builder.build(objective.trajectories.histories_before(rows))
    scores = model(histories, torch.arange(1, model.place_count + 1))
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
    assert slopes(parts).keys() == names
    for name, slope in slopes(whole).items():
        torch.testing.assert_close(slopes(parts)[name], slope, rtol=1e-3, atol=1e-5)


def test_a_part_that_is_computed_again_drops_the_same_activations(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_model_config(dropout=0.4)
    forgetful, patient = (tiny_model(town, config, noise=0.3).train() for _ in range(2))
    objective = full_objective(town, config, at_once=16)
    batch = objective.batches(0)[0]
    torch.manual_seed(3)
    objective.loss(forgetful, batch).backward()
    monkeypatch.setattr(
        "castpoi.training.full_objective.checkpoint",
        lambda read, *given, use_reentrant: read(*given),
    )
    torch.manual_seed(3)
    objective.loss(patient, batch).backward()
    for name, slope in slopes(patient).items():
        torch.testing.assert_close(slopes(forgetful)[name], slope)


def test_without_a_reader_nothing_is_read(town: City) -> None:
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


def test_a_later_part_never_stands_in_a_train_history() -> None:
    city = small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, STATION, "2012-04-02 13:00"),
            (0, OFFICE, "2012-04-03 12:00"),
        ],
        ["train", "test", "train"],  # no split of ours does so, but a published one might
    )
    trajectories = city.train_trajectories
    histories = trajectories.histories_before(trajectories.rows_with_history)
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


def test_both_objectives_have_one_loss_and_gradient_where_there_is_no_reader(town: City) -> None:
    """One layer looks back no further than a window, so both see the same states."""
    config = tiny_model_config(candidate_conditioning=False, window=4)
    full = full_objective(town, config, batch=10_000)
    fast = FastObjective(
        town,
        model=config,
        config=FastConfig(windows_per_step=10_000, explore_weight=1.5),
        constants=LossConstants(margin_weight=0.5),
        seed=0,
    )
    objectives: list[Objective[Any]] = [full, fast]
    models = [tiny_model(town, config, noise=0.3) for _ in objectives]
    losses = []
    for objective, model in zip(objectives, models, strict=True):
        (batch,) = objective.batches(0)
        loss = objective.loss(model, batch)
        loss.backward()
        losses.append(loss.item())
        assert objective.targets(batch) == len(full.target_rows)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, slope in slopes(models[0]).items():
        torch.testing.assert_close(slopes(models[1])[name], slope, rtol=1e-3, atol=1e-6)
