"""Continuing from a run: weights follow the ids of places, and what does not fit is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from castpoi import Recommender, prepare, synthesize, train
from castpoi.checkins.city import City
from castpoi.checkins.similar import most_similar
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from castpoi.model.castpoi import new_model
from castpoi.model.config import ModelConfig
from castpoi.model.places import WEIGHTS_OF_PLACES
from castpoi.training.castpoi import objective_of
from castpoi.training.config import CastPoiTraining, ObjectiveName
from castpoi.training.continued import NEAREST, take_over
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit
from tests.conftest import CommandLine
from tests.messages import refused
from tests.training.small import TINY, TINY_WORDS, events_of

BRIEFLY: dict[str, Any] = {**TINY, "threads": 1, "seed": 3, "epochs": 1}
NEW = "a new place"


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return synthesize(users=24, places=60, days=25, seed=5)


@pytest.fixture(scope="module")
def later_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table when the first place has closed, and the last one is new."""
    place, first, last = pl.col("place"), table["place"].min(), table["place"].max()
    return table.filter(place != first).with_columns(place.replace(last, NEW))


@pytest.fixture(scope="module")
def model(table: pl.DataFrame) -> Recommender:
    return train(prepare(table, accept_rhythm=True), **BRIEFLY)


@pytest.fixture(scope="module")
def reader(table: pl.DataFrame) -> Recommender:
    """A model with a reader and its forecast."""
    return train(prepare(table, accept_rhythm=True), model="castpoi", **BRIEFLY)


@pytest.fixture(scope="module")
def later(later_table: pl.DataFrame) -> City:
    return prepare(later_table, accept_rhythm=True)


def taken_over(model: Recommender, city: City) -> Any:
    """An untrained model of a city, with the weights of another model."""
    ranker: Any = model.run.ranker
    config = ranker.model.config
    new = new_model(config=config, lat=city.lat, lon=city.lon, seed=9)
    take_over(new, model.run, city)
    return new


def by_place(city: City | Recommender, vectors: Any) -> dict[str, NDArray[np.float32]]:
    """The vector of each place by its id, from a table that may start with padding."""
    places = city.places if isinstance(city, City) else city.run.places
    rows = vectors.detach().numpy()[-len(places) :]
    return dict(zip(places["place_id"], rows, strict=True))


@pytest.mark.parametrize("name", ["model", "reader"])
def test_known_places_keep_their_vectors_and_all_other_weights_stay(
    name: str, later: City, request: pytest.FixtureRequest
) -> None:
    model: Recommender = request.getfixturevalue(name)
    ranker: Any = model.run.ranker
    new, old = taken_over(model, later), ranker.model
    for name, value in old.state_dict().items():
        if name not in WEIGHTS_OF_PLACES:
            np.testing.assert_array_equal(value, new.state_dict()[name])
            continue
        before, after = by_place(model, value), by_place(later, new.state_dict()[name])
        known = before.keys() & after.keys()
        assert len(before) - 2 <= len(known) < len(before)
        for place in known:
            np.testing.assert_array_equal(before[place], after[place])


@pytest.mark.parametrize("name", ["model", "reader"])
def test_a_new_place_starts_as_the_mean_of_the_most_similar(
    name: str, later: City, request: pytest.FixtureRequest
) -> None:
    new = taken_over(request.getfixturevalue(name), later)
    is_new = pl.col("place_id") == NEW
    known = later.places.filter(~is_new)
    (similar,) = most_similar(later.places.filter(is_new), known, NEAREST)
    assert len(similar) == NEAREST
    for weight in WEIGHTS_OF_PLACES & new.state_dict().keys():
        rows = by_place(later, new.state_dict()[weight])
        mean = np.mean([rows[place] for place in known["place_id"][similar]], axis=0)
        np.testing.assert_allclose(rows[NEW], mean, rtol=1e-5, atol=1e-7)


def test_without_a_new_checkin_the_weights_stay(model: Recommender, table: pl.DataFrame) -> None:
    continued = train(prepare(table, accept_rhythm=True), from_run=model, threads=1)
    assert continued.run.model_sha256 == model.run.model_sha256


@pytest.mark.parametrize("objective", ["fast", "sampled", "full"])
def test_only_the_targets_since_the_run_are_learned(later: City, objective: ObjectiveName) -> None:
    config = replace(CastPoiTraining.preset("next"), objective=objective)
    shape = ModelConfig.from_dict(ModelConfig.preset("next").to_dict() | {"window": 10})
    learning: Any = objective_of(later, shape, config, seed=1)
    histories = later.train
    since_us = int(np.quantile(histories.at_us, 0.9))
    learning.learn_since(since_us)
    rows = histories.rows_with_history
    expected = (histories.at_us[rows] > since_us).sum()
    assert expected > 10
    assert sum(map(learning.targets, learning.batches(0))) == expected


def test_a_run_of_an_earlier_castpoi_does_not_have_its_last_instant(
    model: Recommender, later: City
) -> None:
    manifest = {**model.run.manifest, "learned_until_us": None}
    older = replace(model.run, manifest=manifest)
    options = TrainingOptions(start=older, settings={"threads": "1"})
    with refused(BadInput):
        fit(later, METHODS.named("castpoi-next"), options=options)


def test_an_epoch_that_continues_starts_from_the_loss_of_the_run(
    model: Recommender, later: City
) -> None:
    continued = train(later, from_run=model, threads=1, learn_from="all")
    first, second = (events_of(each.run.log) for each in (model, continued))
    losses = [
        [each["loss"] for each in log if each["event"] == "epoch finished"]
        for log in (first, second)
    ]
    assert len(losses[1]) == 1
    assert losses[1][0] < losses[0][0]
    manifest = continued.run.manifest
    assert manifest["from"]["sha256"] == model.run.model_sha256
    assert manifest["row"]["settings"]["width"] == TINY["width"]
    again = train(later, from_run=continued)  # the next day
    assert again.run.manifest["from"]["sha256"] == continued.run.model_sha256


def test_what_cannot_continue_is_refused(model: Recommender, later: City) -> None:
    for changes in (
        {"model": "castpoi"},
        {"model": "markov"},
        {"width": 16},
        {"preset": "fast"},
    ):
        with refused(BadInput):
            train(later, from_run=model, **changes)
    core = train(later, model="core", preset="tuned", epochs=1)
    with refused(BadInput):
        train(later, model="core", from_run=core)
    elsewhere = synthesize(users=24, places=60, days=25, seed=6)
    elsewhere = elsewhere.with_columns(pl.format("other {}", "place").alias("place"))
    with refused(BadInput):
        train(prepare(elsewhere, accept_rhythm=True), from_run=model)


def test_the_command_continues_from_a_folder_and_refuses_a_damaged_one(
    castpoi: CommandLine, table: pl.DataFrame, later_table: pl.DataFrame, tmp_path: Path
) -> None:
    for name, each in (("old", table), ("new", later_table)):
        prepare(each, accept_rhythm=True, out=tmp_path / name)
    words = ["--epochs", "1", "--threads", "1", *TINY_WORDS]
    run = tmp_path / "run"
    assert castpoi("train", tmp_path / "old", *words, "--out", run).code == 0
    before = load_run(run).model_sha256
    ended = castpoi("train", tmp_path / "new", "--from", run, "--out", run, "--overwrite")
    assert ended.code == 0
    assert load_run(run).manifest["from"]["sha256"] == before
    (run / "model.safetensors").write_bytes(b"damaged")
    with refused(BrokenFolder):
        train(tmp_path / "new", from_run=run)
    ended = castpoi("train", tmp_path / "new", "--from", run, "--out", tmp_path / "third")
    assert ended.code == 1
    assert "has changed since" in ended.err
