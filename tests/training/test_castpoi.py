from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, BrokenFolder, TooFewCheckins
from castpoi.core.files import read_json, write_json
from castpoi.methods.ranker import abilities_of
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from castpoi.model.ranker import CastPoiRanker
from castpoi.training import castpoi
from castpoi.training.config import CastPoiTraining
from castpoi.training.job import TrainingOptions
from castpoi.training.loop import _optimizer
from castpoi.training.objectives.fused_loss import ROWS_AT_ONCE
from castpoi.training.train import fit, train
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.messages import refused
from tests.training.small import TINY, events_of, full_objective, tiny_model, tiny_model_config

CASTPOI = METHODS.named("castpoi")


def options(**settings: str) -> TrainingOptions:
    return TrainingOptions(settings={**TINY, "epochs": "2", **settings})


def fitted(town: City, **settings: str) -> CastPoiRanker:
    ranker = fit(town, CASTPOI, seed=1, options=options(**settings)).ranker
    assert isinstance(ranker, CastPoiRanker)
    return ranker


def scores(ranker: Any, town: City) -> np.ndarray[Any, Any]:
    histories = town.trajectories.histories_before(town.targets("test"))
    found: np.ndarray[Any, Any] = ranker.score(ranker.encode(histories))
    return found


@pytest.mark.parametrize("preset", ["fast", "paper"])
def test_the_full_objective_trains_both_presets(town: City, preset: str) -> None:
    given = TrainingOptions(preset=preset, settings=options(objective="full").settings)
    trained = fit(town, CASTPOI, seed=1, options=given)
    losses = [each["loss"] for each in events_of(trained.log) if "loss" in each]
    assert losses[1] < losses[0]
    assert trained.ranker.config["training"]["settings"]["objective"] == "full"
    assert trained.ranker.config["training"]["best_epoch"] in (1, 2)


def test_the_fast_objective_is_the_default_and_its_loss_falls(town: City) -> None:
    trained = fit(town, CASTPOI, seed=1, options=options())
    losses = [each["loss"] for each in events_of(trained.log) if "loss" in each]
    assert losses[1] < losses[0]
    assert trained.ranker.config["training"]["settings"]["objective"] == "fast"


def test_checkpoints_of_another_training_are_removed_with_a_warning(
    town: City, tmp_path: Path
) -> None:
    warnings: list[str] = []

    def fit_here(*, resume: bool = True, **settings: str) -> None:
        given = TrainingOptions(
            settings=options(epochs="1", **settings).settings,
            checkpoint_dir=tmp_path,
            resume=resume,
            warn=warnings.append,
        )
        fit(town, CASTPOI, seed=1, options=given)

    fit_here()
    fit_here(clip="4")
    (warning,) = warnings
    assert "cannot be continued, it is of another training (training.clip 5.0, not 4.0)" in warning
    assert "training starts over" in warning
    fit_here(clip="4", resume=False)
    assert len(warnings) == 1


def test_place_vectors_have_a_decay_of_their_own(town: City) -> None:
    model = tiny_model(town, tiny_model_config())
    training = CastPoiTraining(place_weight_decay=0.5, weight_decay=0.1)
    by_decay = {
        group["weight_decay"]: {id(weight) for weight in group["params"]}
        for group in _optimizer(model, training).param_groups
    }
    assert by_decay[0.5] == {id(model.place.weight)}
    assert len(by_decay[0.1]) == len(list(model.parameters())) - 1


def test_a_city_without_validation_keeps_its_last_epoch() -> None:
    city = small_city(
        [
            (0, CAFE, "2012-04-02 12:00"),
            (0, OFFICE, "2012-04-02 13:00"),
            (0, CAFE, "2012-04-03 12:00"),
        ],
        ["train"] * 3,
    )
    assert fitted(city).training["best_epoch"] == 2
    assert fitted(city).training["validation"] == {}


def test_a_city_without_a_second_visit_of_a_user_is_refused() -> None:
    city = small_city([(0, CAFE, "2012-04-02 12:00")], ["train"])
    with refused(TooFewCheckins):
        fitted(city)


@pytest.mark.parametrize("objective", ["fast", "full"])
def test_a_model_of_known_time_depends_on_the_time_of_the_next_visit(
    town: City, objective: str
) -> None:
    ranker = fitted(town, known_time="true", objective=objective)
    assert abilities_of(ranker).needs_next_time
    for name in ("tokens.next_time.hour", "tokens.next_time.wait"):
        assert ranker.arrays[name].any()
    assert ranker.training["validation"]["MRR"] > 0  # with known time too
    trajectories, rows = town.trajectories, town.targets("test")
    now = trajectories.histories_before(rows, known_time=True)
    assert now.next_at_us is not None
    tonight = replace(now, next_at_us=now.next_at_us + 9 * 3_600_000_000)
    assert (ranker.score(ranker.encode(now)) != ranker.score(ranker.encode(tonight))).any()


def test_test_targets_do_not_change_a_model_of_known_time() -> None:
    cities = [odd_city(), odd_city(test_place=PARK), odd_city(test_place=STATION)]
    plain, *others = (fitted(city, known_time="true", revisit_features="habits") for city in cities)
    for ranker in others:
        for name, weights in plain.arrays.items():
            np.testing.assert_array_equal(ranker.arrays[name], weights)


def test_known_time_is_refused_for_other_methods(town: City) -> None:
    given = TrainingOptions(settings={"known_time": "true"})
    with refused(BadInput):
        fit(town, METHODS.named("sasrec"), options=given)


def test_a_run_with_unknown_settings_is_refused_with_the_fix(
    town_folder: Path, tmp_path: Path
) -> None:
    train(town_folder, tmp_path / "run", method="castpoi", options=options(epochs="1"))
    config = read_json(tmp_path / "run" / "config.json")
    config["model"]["revisit_features"] = "rich"
    write_json(tmp_path / "run" / "config.json", config)
    accept_changes(tmp_path / "run")
    with refused(BrokenFolder):
        load_run(tmp_path / "run")


def test_missing_added_and_misshapen_weights_are_refused(town: City) -> None:
    ranker = fitted(town, epochs="1")
    arrays = ranker.arrays
    with pytest.raises(ValueError, match="the model has no weight extra"):
        CastPoiRanker.restore(ranker.config, {**arrays, "extra": np.zeros(1)})
    with pytest.raises(ValueError, match=r"weight popularity has shape \(3,\), not"):
        CastPoiRanker.restore(ranker.config, {**arrays, "popularity": np.zeros(3)})
    with pytest.raises(ValueError, match=r"it lacks popularity; is it of an earlier castpoi\?"):
        CastPoiRanker.restore(
            ranker.config, {name: each for name, each in arrays.items() if name != "popularity"}
        )


def test_a_shortlist_of_all_places_is_the_exact_ranker(town: City) -> None:
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    cheap = CastPoiRanker(model, builder, shortlist=town.places.height)
    exact = CastPoiRanker(model, builder)
    histories = town.trajectories.histories_before(town.targets("validation"))
    np.testing.assert_allclose(
        cheap.score(cheap.encode(histories)), exact.score(exact.encode(histories)), atol=1e-5
    )


def test_no_constant_of_the_reader_moves_a_rank_of_a_shortlist(town: City) -> None:
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    histories = town.trajectories.histories_before(town.targets("validation"))
    orders = []
    for shift in (0.0, 100.0):
        assert model.reader is not None
        with torch.no_grad():
            model.reader.head.last.bias.sub_(shift)
        ranker = CastPoiRanker(model, builder, shortlist=3)
        orders.append(np.argsort(-ranker.score(ranker.encode(histories)), axis=1))
    np.testing.assert_array_equal(orders[0], orders[1])


@pytest.mark.parametrize(
    ("settings", "shortlist"),
    [({"objective": "full"}, None), ({}, 256), ({"candidate_conditioning": "false"}, None)],
)
def test_only_the_fast_objective_with_a_reader_selects_its_epoch_by_a_shortlist(
    settings: dict[str, str], shortlist: int | None
) -> None:
    model, training = castpoi.configs("castpoi", "fast", settings)
    plan = castpoi.plan_of(odd_city(), model, training, seed=0)
    ranker = plan.ranker(plan.new_model())
    assert isinstance(ranker, CastPoiRanker)
    assert ranker.shortlist == shortlist


@pytest.mark.parametrize("preset", ["next", "fast"])
def test_a_million_visits_fit_a_machine_with_four_gigabytes(preset: str) -> None:
    configs = castpoi.configs("castpoi", preset, {})
    needed = castpoi.bytes_of_training(*configs, visits=10**6, places=5_000)
    castpoi.check_memory(needed, free=4 * 2**30)


def test_a_training_that_does_not_fit_the_memory_is_refused() -> None:
    configs = castpoi.configs("castpoi-next", "next", {})
    needed = castpoi.bytes_of_training(*configs, visits=10**6, places=10**6)
    with refused(BadInput):
        castpoi.check_memory(needed, free=4 * 2**30)


def test_a_model_without_reader_needs_no_memory_for_it() -> None:
    model, training = castpoi.configs("castpoi", "fast", {"candidate_conditioning": "false"})
    targets = training.windows_per_step * training.window_targets
    needed = castpoi.bytes_of_training(model, training, visits=0, places=100)
    assert needed == 100 * 4 * (12 * ROWS_AT_ONCE + targets + 7 * model.width)
