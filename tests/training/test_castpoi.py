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
from castpoi.methods.run import RunLog, load_run
from castpoi.model.ranker import CastPoiRanker
from castpoi.training import castpoi
from castpoi.training.castpoi import ShortlistRanker
from castpoi.training.config import CastPoiTraining
from castpoi.training.loop import _optimizer
from castpoi.training.train import TrainingOptions, checkpoint_dir_of, fit, train
from tests.cities import CAFE, OFFICE, PARK, STATION, small_city
from tests.contract import odd_city
from tests.manifests import accept_changes
from tests.messages import refused
from tests.training.small import TINY, full_objective, tiny_model, tiny_model_config
from tests.training.test_loop import Heard

CASTPOI = METHODS.named("castpoi")


def options(**settings: str) -> TrainingOptions:
    return TrainingOptions(settings={**TINY, "epochs": "2", **settings})


def fitted(town: City, **settings: str) -> CastPoiRanker:
    ranker = fit(CASTPOI, town, seed=1, options=options(**settings))
    assert isinstance(ranker, CastPoiRanker)
    return ranker


def scores(ranker: Any, town: City) -> np.ndarray[Any, Any]:
    histories = town.trajectories.histories_before(town.targets("test"))
    found: np.ndarray[Any, Any] = ranker.score(ranker.encode(histories))
    return found


@pytest.mark.parametrize("preset", ["fast", "paper"])
def test_the_full_objective_trains_both_presets(town: City, preset: str) -> None:
    heard = Heard()
    asked = TrainingOptions(preset=preset, settings={**options(objective="full").settings})
    ranker = fit(CASTPOI, town, seed=1, log=heard, options=asked)
    losses = [event["loss"] for event in heard.events if event["event"] == "epoch finished"]
    assert losses[1] < losses[0]
    assert ranker.config["training"]["settings"]["objective"] == "full"
    assert ranker.config["training"]["best_epoch"] in (1, 2)


def test_the_fast_objective_is_the_default_and_its_loss_falls(town: City) -> None:
    heard = Heard()
    ranker = fit(CASTPOI, town, seed=1, log=heard, options=options())
    losses = [event["loss"] for event in heard.events if event["event"] == "epoch finished"]
    assert losses[1] < losses[0]
    assert ranker.config["training"]["settings"]["objective"] == "fast"


def test_the_same_seed_gives_the_same_bytes(town_folder: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        train(town_folder, tmp_path / name, method="castpoi", seed=5, options=options())
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "other"))
    assert one == other


def test_a_run_needs_no_city_to_rank(town_folder: Path, town: City, tmp_path: Path) -> None:
    made = train(town_folder, tmp_path / "run", method="castpoi", seed=1, options=options())
    loaded = load_run(tmp_path / "run").ranker
    np.testing.assert_array_equal(scores(loaded, town), scores(fitted(town), town))
    assert made.ranker.config == loaded.config
    assert read_json(tmp_path / "run" / "config.json")["model"]["width"] == int(TINY["width"])


def test_an_interrupted_training_goes_on(
    town_folder: Path, town: City, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PulledPlug(BaseException):
        pass

    heard: list[str] = []

    def cut_off(self: RunLog, event: str, **fields: object) -> None:
        if event == "epoch finished":
            raise PulledPlug

    with monkeypatch.context() as broken:
        broken.setattr(RunLog, "event", cut_off)
        with pytest.raises(PulledPlug):
            train(town_folder, tmp_path / "run", method="castpoi", seed=1, options=options())
    assert (checkpoint_dir_of(tmp_path / "run") / "checkpoint.json").is_file()
    asked = TrainingOptions(settings=options().settings, warn=heard.append)
    run = train(town_folder, tmp_path / "run", method="castpoi", seed=1, options=asked)
    assert heard == []
    log = (tmp_path / "run" / "log.jsonl").read_text()
    assert '"event": "training resumed", "epochs": 1' in log
    assert log.count("epoch finished") == 2
    assert not checkpoint_dir_of(tmp_path / "run").exists()
    np.testing.assert_array_equal(scores(run.ranker, town), scores(fitted(town), town))


def test_another_training_in_the_folder_is_started_over_and_said(
    town: City, tmp_path: Path
) -> None:
    def into(folder: Path, heard: list[str], *, resume: bool = True, **settings: str) -> None:
        asked = TrainingOptions(
            settings=options(**settings).settings,
            checkpoint_dir=folder,
            resume=resume,
            warn=heard.append,
        )
        fit(CASTPOI, town, seed=1, options=asked)

    heard: list[str] = []
    into(tmp_path, heard)
    into(tmp_path, heard, clip="4")
    assert len(heard) == 1
    assert "cannot be continued, it is of another training (training.clip 5.0, not 4.0)" in heard[0]
    assert "training starts over" in heard[0]
    into(tmp_path, heard, clip="4", resume=False)
    assert len(heard) == 1


def test_ablations_are_settings(town: City) -> None:
    ranker = fitted(town, spatial_bias="false", revisit_gate="false", epochs="1")
    assert not any("spatial_bias" in name or "gate" in name for name in ranker.arrays)


def test_what_places_share_is_learned_and_ranks_a_place_nobody_has_visited(town: City) -> None:
    ranker = fitted(town, shared_vectors="true", epochs="1")
    vectors, squares = (ranker.arrays[name] for name in ("shared.vectors", "traits.squares"))
    assert set(squares[:, 0].tolist()) == {0, 1}
    assert vectors[2:].any(axis=1).all()  # row 1 is for places without a category: there are none
    assert not vectors[0].any()
    lat, lon = (town.places[name].to_numpy()[:1] for name in ("lat", "lon"))
    more = ranker.with_places(lat, lon, town.places["category"].to_list()[:1])
    found = scores(more, town)
    assert found.shape[1] == town.places.height + 1
    np.testing.assert_allclose(found[:, :-1], scores(ranker, town), atol=1e-5)
    assert np.std(found[:, -1]) > 0


def test_shared_vectors_decay_as_the_vectors_of_places_do(town: City) -> None:
    model = tiny_model(town, tiny_model_config(shared_vectors=True))
    plan = CastPoiTraining(place_weight_decay=0.5, weight_decay=0.1)
    by_decay = {
        group["weight_decay"]: {id(weight) for weight in group["params"]}
        for group in _optimizer(model, plan).param_groups
    }
    assert model.shared is not None
    assert by_decay[0.5] == {id(model.place.weight), id(model.shared.vectors)}
    assert len(by_decay[0.1]) == len(list(model.parameters())) - 2


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


def test_a_city_without_prefixes_has_nothing_to_learn_from() -> None:
    city = small_city([(0, CAFE, "2012-04-02 12:00")], ["train"])
    with refused(TooFewCheckins):
        fitted(city)


def test_the_fast_objective_needs_relative_positions(town: City) -> None:
    with refused(BadInput):
        fitted(town, positions="absolute")


@pytest.mark.parametrize("objective", ["fast", "full"])
def test_a_model_of_known_time_learns_when_people_go_where(town: City, objective: str) -> None:
    ranker = fitted(town, known_time="true", objective=objective)
    assert abilities_of(ranker).needs_next_time
    for name in ("tokens.next_time.hour", "tokens.next_time.wait"):
        assert ranker.arrays[name].any()
    assert ranker.training["validation"]["MRR"] > 0  # it was told the time there too
    trajectories, rows = town.trajectories, town.targets("test")
    now = trajectories.histories_before(rows, known_time=True)
    assert now.next_at_us is not None
    tonight = replace(now, next_at_us=now.next_at_us + 9 * 3_600_000_000)
    assert (ranker.score(ranker.encode(now)) != ranker.score(ranker.encode(tonight))).any()


def test_where_the_test_targets_are_changes_nothing_of_a_model_of_known_time() -> None:
    cities = [odd_city(), odd_city(test_place=PARK), odd_city(test_place=STATION)]
    plain, *others = (fitted(city, known_time="true", revisit_features="habits") for city in cities)
    for ranker in others:
        for name, weights in plain.arrays.items():
            np.testing.assert_array_equal(ranker.arrays[name], weights)


def test_a_method_that_cannot_know_the_time_says_so(town: City) -> None:
    asked = TrainingOptions(settings={"known_time": "true"})
    with refused(BadInput):
        fit(METHODS.named("sasrec"), town, options=asked)


def test_a_run_with_settings_of_an_earlier_castpoi_is_to_be_trained_again(
    town_folder: Path, tmp_path: Path
) -> None:
    train(town_folder, tmp_path / "run", method="castpoi", options=options(epochs="1"))
    config = read_json(tmp_path / "run" / "config.json")
    config["model"]["revisit_features"] = "rich"
    write_json(tmp_path / "run" / "config.json", config)
    accept_changes(tmp_path / "run")
    with refused(BrokenFolder):
        load_run(tmp_path / "run")


def test_damaged_weights_are_refused(town: City) -> None:
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


def test_training_leaves_the_callers_random_numbers_alone(town: City) -> None:
    torch.manual_seed(9)
    expected = torch.rand(1)
    torch.manual_seed(9)
    fitted(town, epochs="1")
    assert torch.equal(torch.rand(1), expected)


def test_a_shortlist_of_all_places_is_the_exact_ranker(town: City) -> None:
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    cheap, exact = ShortlistRanker(model, builder), CastPoiRanker(model, builder)
    histories = town.trajectories.histories_before(town.targets("validation"))
    np.testing.assert_allclose(
        cheap.score(cheap.encode(histories)), exact.score(exact.encode(histories)), atol=1e-5
    )


def test_places_off_the_shortlist_stand_below_it_in_their_own_order(
    town: City, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever constant the reader adds to all that it reads, the ranks must not change."""
    config = tiny_model_config()
    model, builder = tiny_model(town, config, noise=0.3), full_objective(town, config).builder
    assert model.refinement is not None
    with torch.no_grad():
        model.refinement.head.last.bias.sub_(100.0)
    monkeypatch.setattr(castpoi, "SHORTLIST", 3)
    ranker = ShortlistRanker(model, builder)
    encoded = ranker.encode(town.trajectories.histories_before(town.targets("validation")))
    found = ranker.score(encoded)
    foretold, exact = ranker.scorer.foretold(encoded).numpy(), ranker.scorer.score(encoded).numpy()
    order = np.argsort(-foretold, axis=1)
    best, others = order[:, :3], order[:, 3:]
    np.testing.assert_allclose(
        np.take_along_axis(found, best, axis=1), np.take_along_axis(exact, best, axis=1), atol=1e-5
    )
    below = np.take_along_axis(found, others, axis=1)  # in the order of the scores foretold
    assert (np.diff(below, axis=1) <= 0).all()
    assert (below[:, 0] < np.take_along_axis(found, best, axis=1).min(axis=1)).all()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"objective": "full"}, CastPoiRanker),
        ({}, ShortlistRanker),
        ({"candidate_conditioning": "false"}, CastPoiRanker),
    ],
)
def test_only_the_fast_objective_with_a_reader_selects_its_epoch_by_a_shortlist(
    settings: dict[str, str], kind: type
) -> None:
    model, training = castpoi.configs("castpoi", "fast", settings)
    plan = castpoi.castpoi_plan(odd_city(), "castpoi", model, training, seed=0)
    assert type(plan.ranker(plan.new_model())) is kind
