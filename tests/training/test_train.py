import errno
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from castpoi.baselines.simple import Popularity
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, BrokenFolder, UnknownMethod
from castpoi.core.files import read_json, write_json
from castpoi.core.progress import Progress
from castpoi.core.staging import alone_in
from castpoi.methods.registry import METHODS, Method
from castpoi.methods.run import RunLog, load_run
from castpoi.training.log import Log
from castpoi.training.train import (
    TrainingOptions,
    checkpoint_dir_of,
    fit,
    known_parts,
    seconds_before,
    train,
)
from tests.contract import odd_city
from tests.messages import refused


@pytest.fixture
def city(tmp_path: Path) -> Path:
    odd_city().save(tmp_path / "city")
    return tmp_path / "city"


def learn_by_dice(
    city: City, *, part: str, seed: int, log: Log, progress: Progress, options: TrainingOptions
) -> Popularity:
    log.event("dice thrown", seed=seed, **options.settings)
    with progress.task("throwing", total=1) as task:
        task.advance()
    thrown = np.random.default_rng(seed).integers(0, 6, city.places.height)
    return Popularity(popularity=thrown)


DICE = Method(
    name="dice",
    line="throws dice",
    ranker="castpoi.baselines.simple:Popularity",
    trainer="tests.training.test_train:learn_by_dice",
)


@pytest.mark.parametrize("method", METHODS.names)
def test_a_trained_run_scores_as_the_ranker_it_came_from(
    method: str, city: Path, tmp_path: Path
) -> None:
    briefly = TrainingOptions(settings={"epochs": "2"})
    options = briefly if METHODS.named(method).needs_training else None
    run = train(city, tmp_path / "run", method=method, options=options)
    whole = odd_city()
    histories = whole.trajectories.histories_before(whole.targets("test"))
    fitted = fit(METHODS.named(method), whole, options=options)
    np.testing.assert_array_equal(
        run.ranker.score(run.ranker.encode(histories)), fitted.score(fitted.encode(histories))
    )


def test_a_learned_method_comes_by_registering_alone(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    train(city, tmp_path / "run", method="dice", seed=4)
    run = load_run(tmp_path / "run")
    expected = np.random.default_rng(4).integers(0, 6, 5)
    found: Any = run.ranker
    np.testing.assert_array_equal(found.popularity, expected)
    assert "dice thrown" in (tmp_path / "run" / "log.jsonl").read_text()
    assert run.manifest["knows"] == ["train"]
    run.check_may_predict("validation")  # it has learned from train alone


def test_a_counted_method_knows_what_comes_before_the_part() -> None:
    assert known_parts(METHODS.named("markov"), "test") == ("train", "validation")
    assert known_parts(METHODS.named("markov"), "validation") == ("train",)
    with refused(BadInput):
        known_parts(DICE, "left out")


def test_a_run_for_validation_has_counted_train_alone(city: Path, tmp_path: Path) -> None:
    run = train(city, tmp_path / "run", method="popularity", part="validation")
    ranker: Any = run.ranker
    assert ranker.popularity.tolist() == [3, 2, 2, 1, 0]
    run.check_may_predict("validation")


def test_an_unknown_method_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with refused(UnknownMethod):
        train(tmp_path / "absent", tmp_path / "run", method="nearst")


def test_a_failed_training_leaves_nothing_behind(tmp_path: Path) -> None:
    with refused(BrokenFolder):
        train(tmp_path / "absent", tmp_path / "run", method="revisit")
    assert list(tmp_path.iterdir()) == []


def test_a_former_run_is_replaced_only_when_asked(city: Path, tmp_path: Path) -> None:
    train(city, tmp_path / "run", method="revisit")
    with refused(BadInput):
        train(city, tmp_path / "run", method="recent")
    train(city, tmp_path / "run", method="recent", overwrite=True)
    assert load_run(tmp_path / "run").method == "recent"


def test_what_was_asked_for_reaches_the_trainer_and_the_workshop_goes(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    options = TrainingOptions(settings={"sides": "6"})
    train(city, tmp_path / "run", method="dice", options=options)
    assert '"sides": "6"' in (tmp_path / "run" / "log.jsonl").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["city", "run"]


def test_two_trainings_of_one_run_are_not_mixed_up(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    first = checkpoint_dir_of(tmp_path / "run")
    first.mkdir()
    write_json(first / "manifest.json", {"kind": "training"})
    with (
        alone_in(first),
        refused(BadInput),
    ):
        train(city, tmp_path / "run", method="dice")
    assert not (tmp_path / "run").exists()
    train(city, tmp_path / "run", method="dice")
    assert not first.exists()


def test_a_counted_method_has_nothing_to_set(city: Path, tmp_path: Path) -> None:
    options = TrainingOptions(preset="paper", device="cuda", settings={"epochs": "3"})
    with refused(BadInput):
        train(city, tmp_path / "run", method="recent", options=options)


def test_a_workshop_never_takes_the_place_of_something_else(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    mine = checkpoint_dir_of(tmp_path / "run")
    mine.mkdir()
    (mine / "diary.txt").write_text("mine")
    with refused(BadInput):
        train(city, tmp_path / "run", method="dice")
    assert (mine / "diary.txt").read_text() == "mine"


def test_checkpoints_that_a_kill_left_beside_their_finished_run_are_removed(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
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


def test_a_full_disk_leaves_no_folder_that_the_next_training_refuses(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(METHODS, "_by_name", {**METHODS._by_name, "dice": DICE})
    with monkeypatch.context() as disk:
        disk.setattr("castpoi.training.train.write_json", full)
        with refused(BadInput):
            train(city, tmp_path / "run", method="dice")
    train(city, tmp_path / "run", method="dice")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["city", "run"]


def test_the_wall_time_of_a_resumed_training_counts_the_epochs_before(
    city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    run, briefly = tmp_path / "run", TrainingOptions(settings={"epochs": "2"})
    with monkeypatch.context() as broken:
        broken.setattr(RunLog, "save", stop)
        with pytest.raises(KeyboardInterrupt):
            train(city, run, method="core", options=briefly)
    checkpoint = checkpoint_dir_of(run) / "checkpoint.json"
    state = read_json(checkpoint)
    for epoch in state["epochs"]:
        epoch["seconds"] = 3000.0
    write_json(checkpoint, state)
    manifest = train(city, run, method="core", options=briefly).manifest
    assert 6000 < manifest["wall_seconds"] < 6600  # two epochs before, and now next to nothing
    last = (run / "log.jsonl").read_text().splitlines()[-1]
    assert 6000 < json.loads(last)["seconds"] < 6600


def test_epochs_count_as_earlier_only_where_a_training_was_resumed() -> None:
    epoch = json.dumps({"event": "epoch finished", "seconds": 2.5})
    resumed = json.dumps({"event": "training resumed", "epochs": 2})
    assert seconds_before([epoch, epoch, resumed, epoch]) == 5.0
    assert seconds_before([epoch, epoch]) == 0.0
    assert seconds_before([]) == 0.0
