from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from castpoi.baselines.sequence_models import MODELS, model_class
from castpoi.baselines.sequence_ranker import SequenceRanker
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins
from castpoi.methods.registry import METHODS
from castpoi.methods.run import RunLog, load_run
from castpoi.training import course, sequence_trainer
from castpoi.training.cloze_objective import ClozeBatch, ClozeObjective
from castpoi.training.sequence_config import SequenceTrainingConfig
from castpoi.training.sequence_objective import PrefixObjective, WindowObjective
from castpoi.training.sequence_trainer import configs_of_sequence, objective_of
from castpoi.training.train import fit, train, workshop_of
from castpoi.training.trainer import TrainingOptions
from tests.cities import CAFE, OFFICE, small_city
from tests.conftest import CommandLine
from tests.messages import refused
from tests.training.small import TINY_WORDS
from tests.training.test_loop import Heard

SASREC = METHODS.named("sasrec")
TINY = {"width": "8", "layers": "1", "feed_forward_width": "8", "window": "10", "threads": "1"}


def options(preset: str | None = None, **settings: str) -> TrainingOptions:
    return TrainingOptions(
        preset=preset, settings={**TINY, "epochs": "3", "batch": "128", **settings}
    )


@pytest.mark.parametrize("preset", [None, "paper", "tuned"])
def test_the_loss_of_a_baseline_falls(town: City, preset: str | None) -> None:
    heard = Heard()
    ranker = fit(SASREC, town, seed=1, log=heard, options=options(preset))
    losses = [event["loss"] for event in heard.events if event["event"] == "epoch finished"]
    assert losses[-1] < losses[0] < np.log(town.places.height) + 0.5
    assert ranker.config["training"]["epochs"] == 3
    rates = [event["learning_rate"] for event in heard.events if "learning_rate" in event]
    assert (len(set(rates)) == 1) is (preset != "tuned")


def test_a_long_training_foretells_better_than_a_short_one(town: City) -> None:
    short, long = (
        fit(SASREC, town, seed=1, options=options(epochs=epochs, learning_rate="0.01"))
        for epochs in ("1", "20")
    )
    reached = [each.config["training"]["validation"]["MRR"] for each in (short, long)]
    assert reached[1] > reached[0]


def test_the_paper_preset_is_recbole_as_it_comes() -> None:
    paper = SequenceTrainingConfig.preset("paper")
    assert (paper.epochs, paper.batch, paper.patience) == (300, 2048, 10)
    assert paper.learning_rate == paper.final_learning_rate == 1e-3
    assert paper.stride == 25  # where it is not RecBole's, which is 1
    assert (paper.weight_decay, paper.place_weight_decay, paper.clip) == (0, 0, None)
    assert (paper.select_by, paper.weight_averaging, paper.warmup_epochs) == ("MRR", 0, 0)


@pytest.mark.parametrize("name", MODELS)
def test_each_model_learns_what_it_was_made_for(town: City, name: str) -> None:
    kind, shared = model_class(name), SequenceTrainingConfig.preset("paper")
    shape = kind.config_class.preset("paper")
    apart = replace(shared, stride=1)  # every prefix is drawn alone, as in RecBole
    found = [type(objective_of(kind, town, shape, plan, seed=1)) for plan in (shared, apart)]
    expected: list[type] = [WindowObjective, PrefixObjective]
    if name in ("bert4rec", "srgnn"):
        expected = [ClozeObjective if name == "bert4rec" else PrefixObjective] * 2
    assert found == expected


@pytest.mark.parametrize("name", MODELS)
def test_another_seed_gives_other_weights_and_another_order(
    town: City, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    courses: list[course.Course[Any]] = []

    def stop(begun: course.Course[Any], *_: object, **__: object) -> None:
        courses.append(begun)
        raise KeyboardInterrupt

    monkeypatch.setattr(sequence_trainer, "follow", stop)
    for seed in (1, 1, 2):
        with pytest.raises(KeyboardInterrupt):
            fit(METHODS.named(name), town, seed=seed, options=TrainingOptions())
    one, same, other = (each.new_model().place.weight for each in courses)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    first, again, second = (first_batch(each) for each in courses)
    assert first == again
    assert first != second


def first_batch(begun: course.Course[Any]) -> list[int]:
    """The first windows or prefixes of an epoch."""
    batch = begun.objective().batches(0)[0]
    numbers: list[int] = (batch.ends if isinstance(batch, ClozeBatch) else batch).tolist()
    return numbers


def test_an_interrupted_baseline_goes_on_to_the_same_bytes(
    town_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PulledPlug(BaseException):
        pass

    note = RunLog.event

    def note_and_stop(log: RunLog, event: str, **fields: object) -> None:
        note(log, event, **fields)
        if fields.get("epoch") == 2:
            raise PulledPlug

    train(town_folder, tmp_path / "whole", method="core", seed=2, options=options())
    with monkeypatch.context() as broken:
        broken.setattr(RunLog, "event", note_and_stop)
        with pytest.raises(PulledPlug):
            train(town_folder, tmp_path / "cut", method="core", seed=2, options=options())
    assert (workshop_of(tmp_path / "cut") / "checkpoint.json").is_file()
    train(town_folder, tmp_path / "cut", method="core", seed=2, options=options())
    whole, cut = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut"))
    assert whole == cut
    assert "training resumed" in (tmp_path / "cut" / "log.jsonl").read_text()


def test_a_checkpoint_of_another_method_is_not_continued(
    town_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(course, "_summary", stop)
        with pytest.raises(KeyboardInterrupt):
            train(town_folder, tmp_path / "run", method="sasrec", options=options(epochs="1"))
    said: list[str] = []
    asked = TrainingOptions(settings=options(epochs="1").settings, say=said.append)
    run = train(town_folder, tmp_path / "run", method="esasrec", options=asked)
    assert "it is of another training (method sasrec, not esasrec" in said[0]
    assert isinstance(load_run(run.folder).ranker, SequenceRanker)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"batch": "0"}, "batch=0 is not valid; it must be a whole number of at least 1"),
        ({"clip": "0"}, "clip=0.0 is not valid; it must be a number above 0, or none"),
        ({"clip": "much"}, "clip='much' is not valid; it must be a number, or none"),
        ({"final_rate": "2"}, "final_rate=2.0 is above 1; the rate can only fall"),
        ({"select_by": "luck"}, "select_by='luck' is not valid; it must be 'HR@10' or 'MRR'"),
        ({"weight_decay": "-1"}, "weight_decay=-1.0 is not valid; it must be a number of at least"),
        ({"wdith": "3"}, "there is no setting 'wdith'; did you mean 'width'"),
    ],
)
def test_nonsense_is_refused(town: City, settings: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        fit(SASREC, town, options=TrainingOptions(settings=settings))


@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("srgnn", {"stride": "1"}, "srgnn shares no windows, so stride changes nothing"),
        ("bert4rec", {"stride": "1"}, "bert4rec shares no windows"),
    ],
)
def test_what_would_change_nothing_is_refused(
    name: str, setting: dict[str, str], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        configs_of_sequence(name, "paper", setting)
    configs_of_sequence("sasrec", "paper", {"stride": "1"})


def test_the_training_of_a_baseline_has_two_presets() -> None:
    with refused(BadInput):
        SequenceTrainingConfig.preset("fast")


@pytest.mark.parametrize(
    ("method", "preset", "words"),
    [
        ("sasrec", "fast", "sasrec has no preset 'fast'; choose paper or tuned"),
        ("castpoi", "tuned", "castpoi has no preset 'tuned'; choose fast or paper"),
        ("castpoi", "next", "castpoi has no preset 'next'; choose fast or paper"),
        ("castpoi-next", "fast", "castpoi-next has no preset 'fast'; choose next"),
    ],
)
def test_a_wrong_preset_names_those_of_the_method(
    town_folder: Path, tmp_path: Path, method: str, preset: str, words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        train(
            town_folder,
            tmp_path / "run",
            method=method,
            options=TrainingOptions(preset=preset),
        )


def test_a_city_without_a_second_visit_teaches_nothing() -> None:
    visits = [(0, CAFE, "2012-04-02 12:00"), (1, OFFICE, "2012-04-02 13:00")]
    city = small_city(visits, ["train", "train"])
    with refused(TooFewCheckins):
        fit(SASREC, city)


def test_target_attention_is_castpoi_without_geometry_age_and_gate(
    town_folder: Path, tmp_path: Path, castpoi: CommandLine
) -> None:
    run = tmp_path / "run"
    words = ["--model", "target-attention", "--epochs", "1", *TINY_WORDS, "--out", run]
    ended = castpoi("train", town_folder, *words)
    assert ended.code == 0, ended.err
    loaded = load_run(run)
    assert loaded.method == "target-attention"
    shape = loaded.ranker.config["model"]
    assert not any(shape[name] for name in ("spatial_bias", "temporal_bias", "revisit_gate"))
    assert shape["candidate_conditioning"]
    refused = castpoi("train", town_folder, *words, "--overwrite", "--set", "revisit_gate=true")
    assert refused.code == 1
    assert "target-attention is defined by revisit_gate=false, which cannot be" in refused.err


def test_a_baseline_walks_the_whole_road(
    town_folder: Path, tmp_path: Path, castpoi: CommandLine
) -> None:
    words = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]
    trained = castpoi(
        *("train", town_folder, "--model", "sasrec", "--preset", "tuned", "--epochs", "2"),
        *(*words, "--set", "clip=none", "--out", tmp_path / "run"),
    )
    assert trained.code == 0, trained.err
    evaluated = castpoi("evaluate", tmp_path / "run", "--out", tmp_path / "result", "--json")
    assert evaluated.code == 0, evaluated.err
    assert 0 < evaluated.json["metrics"]["MRR"] < 1
    settings = load_run(tmp_path / "run").ranker.config["training"]["settings"]
    assert settings["clip"] is None
    assert settings["weight_averaging"] == 0.999
    refused = castpoi(
        *("train", town_folder, "--model", "sasrec", "--preset", "fast", "--out", tmp_path / "no")
    )
    assert refused.code == 1
    assert "sasrec has no preset 'fast'; choose paper or tuned" in refused.err
