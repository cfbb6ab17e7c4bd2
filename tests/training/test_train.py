import errno
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from castpoi.baselines.simple import Popularity
from castpoi.checkins.city import City
from castpoi.checkins.record import SPLIT_SCHEMA
from castpoi.core.errors import BadInput
from castpoi.core.files import read_json, write_json
from castpoi.core.staging import alone_in
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import Run, load_run
from castpoi.training.job import TrainingJob, TrainingOptions
from castpoi.training.train import (
    TensorBoardLog,
    best_epoch,
    checkpoint_dir_of,
    fit,
    known_parts,
    train,
)
from tests.contract import odd_city
from tests.messages import refused
from tests.training.small import TINY


@pytest.fixture
def city(tmp_path: Path) -> Path:
    odd_city().save(tmp_path / "city")
    return tmp_path / "city"


def learn_by_dice(city: City, job: TrainingJob) -> Popularity:
    job.log.event("dice thrown", seed=job.seed, **job.options.settings)
    thrown = np.random.default_rng(job.seed).integers(0, 6, city.places.height)
    return Popularity(popularity=thrown)


DICE = Method(
    name="dice",
    line="throws dice",
    ranker="castpoi.baselines.simple:Popularity",
    trainer="tests.training.test_train:learn_by_dice",
)


@pytest.fixture
def dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the method `dice`."""
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})


@pytest.mark.parametrize("method", ["castpoi-next", "core", "markov"])
def test_a_saved_run_scores_as_the_ranker_in_memory(
    method: str, city: Path, tmp_path: Path
) -> None:
    briefly = TrainingOptions(settings={"epochs": "1"})
    options = briefly if METHODS.named(method).needs_training else None
    run = train(city, tmp_path / "run", method=method, options=options)
    whole = odd_city()
    histories = whole.trajectories.histories_before(whole.targets("test"))
    fitted = fit(whole, METHODS.named(method), options=options).ranker
    np.testing.assert_array_equal(
        run.ranker.score(run.ranker.encode(histories)), fitted.score(fitted.encode(histories))
    )


def test_a_ranker_is_trained_in_memory_and_saved_later(tmp_path: Path) -> None:
    trained = fit(odd_city(), DICE, seed=4, options=TrainingOptions(settings={"sides": "6"}))
    assert list(tmp_path.iterdir()) == []
    assert "dice thrown" in trained.log
    trained.save(tmp_path / "run")
    manifest = read_json(tmp_path / "run" / "manifest.json")
    assert manifest["row"] == {"method": "dice", "preset": None, "settings": {"sides": "6"}}
    assert manifest["fingerprint"] == odd_city().fingerprint


@pytest.mark.usefixtures("dice")
def test_a_learned_method_needs_only_its_registration(city: Path, tmp_path: Path) -> None:
    train(city, tmp_path / "run", method="dice", seed=4)
    run = load_run(tmp_path / "run")
    expected = np.random.default_rng(4).integers(0, 6, 5)
    found: Any = run.ranker
    np.testing.assert_array_equal(found.popularity, expected)
    assert "dice thrown" in (tmp_path / "run" / "log.jsonl").read_text()
    assert run.manifest["knows"] == ["train"]
    run.check_may_predict("validation")  # it has learned only from train


def test_a_counted_method_has_seen_the_splits_before_the_part() -> None:
    assert known_parts(METHODS.named("markov"), "test") == ("train", "validation")
    assert known_parts(METHODS.named("markov"), "validation") == ("train",)
    with refused(BadInput):
        known_parts(DICE, "left out")


def test_a_run_without_holdout_has_counted_everything_that_is_not_left_out(
    city: Path, tmp_path: Path
) -> None:
    run = train(city, tmp_path / "run", method="popularity", part=None)
    ranker: Any = run.ranker
    whole = City.load(city).trajectories
    assert ranker.popularity.tolist() == np.bincount(whole.place, minlength=5).tolist()
    assert run.manifest["part"] is None
    assert run.manifest["knows"] == ["train", "validation", "test"]
    assert run.places["checkins"].sum() == json.loads(run.log.splitlines()[0])["checkins"] == 14
    assert run.fingerprint == odd_city().fingerprint
    with refused(BadInput):
        run.check_may_predict("test")


def test_a_training_without_holdout_learns_from_the_test_split_and_keeps_its_last_epoch() -> None:
    options = TrainingOptions(settings={**TINY, "epochs": "2", "threads": "1"})

    def trained(city: City, part: str | None) -> Run:
        return fit(city, METHODS.named("castpoi-next"), part=part, seed=1, options=options)

    same = trained(odd_city(), None)
    assert same.ranker.config["training"]["best_epoch"] == 2
    assert same.ranker.config["training"]["validation"] == {}
    moved = odd_city(test_place=0)
    assert trained(moved, "test").model_sha256 == trained(odd_city(), "test").model_sha256
    assert trained(moved, None).model_sha256 != same.model_sha256


def test_left_out_checkins_are_never_learned_from() -> None:
    city = odd_city()
    part = pl.col("part").cast(pl.String).replace("test", "left out")
    left_out = replace(city, split=city.split.with_columns(part).cast(SPLIT_SCHEMA))
    ranker: Any = fit(left_out, METHODS.named("popularity"), part=None).ranker
    assert ranker.popularity.sum() == 10


def test_the_best_epoch_of_a_run_is_only_for_its_method(city: Path, tmp_path: Path) -> None:
    options = TrainingOptions(settings={**TINY, "epochs": "2", "threads": "1"})
    run = train(city, tmp_path / "run", method="castpoi", options=options)
    best = run.ranker.config["training"]["best_epoch"]
    assert best_epoch(tmp_path / "run", METHODS.named("castpoi")) == str(best)
    with refused(BadInput):
        best_epoch(tmp_path / "run", METHODS.named("sasrec"))
    train(city, tmp_path / "counted", method="revisit")
    with refused(BadInput):
        best_epoch(tmp_path / "counted", METHODS.named("revisit"))


@pytest.mark.usefixtures("dice")
def test_the_trainer_gets_the_settings_and_the_checkpoint_folder_is_removed(
    city: Path, tmp_path: Path
) -> None:
    options = TrainingOptions(settings={"sides": "6"})
    train(city, tmp_path / "run", method="dice", options=options)
    assert '"sides": "6"' in (tmp_path / "run" / "log.jsonl").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["city", "run"]


@pytest.mark.usefixtures("dice")
def test_two_trainings_cannot_write_one_run_at_once(city: Path, tmp_path: Path) -> None:
    first = checkpoint_dir_of(tmp_path / "run")
    first.mkdir()
    write_json(first / "manifest.json", {"kind": "training"})
    with alone_in(first), refused(BadInput):
        train(city, tmp_path / "run", method="dice")
    assert not (tmp_path / "run").exists()
    train(city, tmp_path / "run", method="dice")
    assert not first.exists()


def test_a_counted_method_has_nothing_to_set(city: Path, tmp_path: Path) -> None:
    options = TrainingOptions(preset="paper", device="cuda", settings={"epochs": "3"})
    with refused(BadInput):
        train(city, tmp_path / "run", method="recent", options=options)


@pytest.mark.usefixtures("dice")
def test_a_checkpoint_folder_never_replaces_other_files(city: Path, tmp_path: Path) -> None:
    mine = checkpoint_dir_of(tmp_path / "run")
    mine.mkdir()
    (mine / "diary.txt").write_text("mine")
    with refused(BadInput):
        train(city, tmp_path / "run", method="dice")
    assert (mine / "diary.txt").read_text() == "mine"


@pytest.mark.usefixtures("dice")
def test_checkpoints_of_a_finished_run_are_removed_after_a_kill(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as killed:
        killed.setattr("castpoi.training.train.remove", lambda _: None)
        train(city, run, method="dice")
    assert checkpoint_dir_of(run).is_dir()
    unfinished = tmp_path / "other.training"
    shutil.copytree(checkpoint_dir_of(run), unfinished)
    with refused(BadInput):
        train(city, run, method="dice")
    assert not checkpoint_dir_of(run).exists()
    shutil.copytree(run, tmp_path / "other")
    (unfinished / "log.jsonl").write_text("")
    with refused(BadInput):
        train(city, tmp_path / "other", method="dice")
    assert unfinished.is_dir()


@pytest.mark.usefixtures("dice")
def test_a_full_disk_leaves_no_folder_that_the_next_training_refuses(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("castpoi.training.train.write_json", full)
        with refused(BadInput):
            train(city, tmp_path / "run", method="dice")
    train(city, tmp_path / "run", method="dice")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["city", "run"]


def test_the_wall_time_of_a_resumed_training_includes_the_epochs_before(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    run, briefly = tmp_path / "run", TrainingOptions(settings={"epochs": "2"})
    with monkeypatch.context() as broken:
        broken.setattr(Run, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            train(city, run, method="core", options=briefly)
    checkpoint = checkpoint_dir_of(run) / "checkpoint.json"
    state = read_json(checkpoint)
    for epoch in state["epochs"]:
        epoch["seconds"] = 3000.0
    write_json(checkpoint, state)
    manifest = train(city, run, method="core", options=briefly).manifest
    assert 6000 < manifest["wall_seconds"] < 6600  # two epochs before; the rest takes a second
    last = (run / "log.jsonl").read_text().splitlines()[-1]
    assert 6000 < json.loads(last)["seconds"] < 6600


def test_the_numbers_of_an_epoch_become_points_of_curves(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="castpoi[tensorboard] is not installed",
    )
    log = TensorBoardLog(tmp_path)
    log.event("training started", parameters=7)
    log.event("epoch finished", epoch=1, at_utc="today", loss=3.5, metrics={"MRR": 0.25})
    log.event("epoch finished", epoch=2, at_utc="today", loss=2.5, metrics={"MRR": 0.5})
    curves = reading.EventAccumulator(str(tmp_path))
    curves.Reload()
    assert sorted(curves.Tags()["scalars"]) == ["loss", "metrics/MRR"]
    assert [(point.step, point.value) for point in curves.Scalars("loss")] == [(1, 3.5), (2, 2.5)]
    assert [point.value for point in curves.Scalars("metrics/MRR")] == [0.25, 0.5]
    events = [json.loads(line)["event"] for line in log.lines]
    assert events == ["training started", "epoch finished", "epoch finished"]


def test_without_tensorboard_the_error_names_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with refused(BadInput):
        TensorBoardLog(tmp_path)
