from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from castpoi.baselines.sequence import MODELS, model_class
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, TooFewCheckins
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from castpoi.training import sequence
from castpoi.training.config import SequenceTraining
from castpoi.training.job import TrainingOptions
from castpoi.training.objectives.cloze import ClozeBatch, ClozeObjective
from castpoi.training.objectives.next_place import PrefixObjective, WindowObjective
from castpoi.training.sequence import objective_of
from castpoi.training.train import fit, train
from castpoi.training.trainer import TrainingPlan
from tests.cities import CAFE, OFFICE, small_city
from tests.conftest import CommandLine
from tests.messages import refused
from tests.training.small import TINY_WORDS, events_of

SASREC = METHODS.named("sasrec")
TINY = {"width": "8", "layers": "1", "feed_forward_width": "8", "window": "10", "threads": "1"}


def options(preset: str | None = None, **settings: str) -> TrainingOptions:
    return TrainingOptions(
        preset=preset, settings={**TINY, "epochs": "3", "batch": "128", **settings}
    )


@pytest.mark.parametrize("preset", [None, "paper", "tuned"])
def test_the_loss_of_a_baseline_falls(town: City, preset: str | None) -> None:
    trained = fit(town, SASREC, seed=1, options=options(preset))
    epochs = [each for each in events_of(trained.log) if each["event"] == "epoch finished"]
    assert epochs[-1]["loss"] < epochs[0]["loss"] < np.log(town.places.height) + 0.5
    assert trained.ranker.config["training"]["epochs"] == 3
    rates = [each["learning_rate"] for each in epochs]
    assert (len(set(rates)) == 1) is (preset != "tuned")


def test_a_long_training_predicts_better_than_a_short_one(town: City) -> None:
    short, long = (
        fit(town, SASREC, seed=1, options=options(epochs=epochs, learning_rate="0.01")).ranker
        for epochs in ("1", "20")
    )
    reached = [each.config["training"]["validation"]["MRR"] for each in (short, long)]
    assert reached[1] > reached[0]


@pytest.mark.parametrize("name", MODELS)
def test_each_model_has_its_objective(town: City, name: str) -> None:
    kind, shared = model_class(name), SequenceTraining.preset("paper")
    shape = kind.config_class.preset("paper")
    apart = replace(shared, stride=1)  # every prefix is a row, as in RecBole
    found = [type(objective_of(kind, town, shape, plan, seed=1)) for plan in (shared, apart)]
    expected: list[type] = [WindowObjective, PrefixObjective]
    if name in ("bert4rec", "srgnn"):
        expected = [ClozeObjective if name == "bert4rec" else PrefixObjective] * 2
    assert found == expected


@pytest.mark.parametrize("name", MODELS)
def test_another_seed_gives_other_weights_and_another_order(town: City, name: str) -> None:
    configs = sequence.configs(name, "paper", {})
    plans = [sequence.plan_of(town, name, *configs, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (each.new_model().place.weight for each in plans)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    first, again, second = (first_batch(each) for each in plans)
    assert first == again
    assert first != second


def first_batch(plan: TrainingPlan[Any]) -> list[int]:
    """The first windows or prefixes of an epoch."""
    batch = plan.objective().batches(0)[0]
    numbers: list[int] = (batch.ends if isinstance(batch, ClozeBatch) else batch).tolist()
    return numbers


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sasrec", {"batch": "0"}),
        ("sasrec", {"clip": "0"}),
        ("sasrec", {"clip": "much"}),
        ("sasrec", {"final_rate": "2"}),
        ("sasrec", {"select_by": "luck"}),
        ("sasrec", {"weight_decay": "-1"}),
        ("sasrec", {"objective": "full"}),
        ("srgnn", {"stride": "1"}),
        ("bert4rec", {"stride": "1"}),
    ],
)
def test_settings_without_effect_or_out_of_range_are_refused(
    name: str, settings: dict[str, str]
) -> None:
    with refused(BadInput):
        sequence.configs(name, "paper", settings)


@pytest.mark.parametrize(
    ("method", "preset"),
    [("sasrec", "fast"), ("castpoi", "tuned"), ("castpoi", "next"), ("castpoi-next", "fast")],
)
def test_a_wrong_preset_names_those_of_the_method(
    town_folder: Path, tmp_path: Path, method: str, preset: str
) -> None:
    with refused(BadInput):
        train(
            town_folder,
            tmp_path / "run",
            method=method,
            options=TrainingOptions(preset=preset),
        )


def test_a_city_without_a_second_visit_of_a_user_is_refused() -> None:
    visits = [(0, CAFE, "2012-04-02 12:00"), (1, OFFICE, "2012-04-02 13:00")]
    city = small_city(visits, ["train", "train"])
    with refused(TooFewCheckins):
        fit(city, SASREC)


def test_target_attention_is_castpoi_without_distance_age_and_gate(
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
