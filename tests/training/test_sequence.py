from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from castpoi.baselines.sequence import MODELS, model_class
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.methods.registry import METHODS
from castpoi.methods.run import load_run
from castpoi.model.config import ModelConfig
from castpoi.training import sequence
from castpoi.training.config import CastPoiTraining, SequenceTraining
from castpoi.training.job import TrainingOptions
from castpoi.training.objectives.cloze import ClozeObjective
from castpoi.training.objectives.fast import FastObjective
from castpoi.training.objectives.next_place import PrefixObjective, WindowObjective
from castpoi.training.parts import StepParts
from castpoi.training.sequence import objective_of
from castpoi.training.train import fit, train
from tests.conftest import CommandLine
from tests.messages import refused
from tests.training.small import TINY_WORDS, events_of, gradients, tiny_model, tiny_model_config

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


OURS: dict[str, Any] = {
    "candidate_conditioning": False,
    "distance_gate": True,
    "revisit_features": "habits",
    "deep_revisits": True,
}


def gradients_in_parts(
    town: City, config: ModelConfig, *, parts: int, threads: int
) -> tuple[float, dict[str, torch.Tensor]]:
    objective = FastObjective(
        town, model=config, config=CastPoiTraining(windows_per_step=9), seed=0
    )
    model = tiny_model(town, config, noise=0.3).train()
    with StepParts.of(objective, parts, threads=threads) as step:
        loss = step.backward(model, objective.batches(0)[0], (0, 0))
    return loss, gradients(model)


def test_the_gradient_of_the_parts_is_that_of_the_batch(town: City) -> None:
    config = tiny_model_config(**OURS)
    whole, expected = gradients_in_parts(town, config, parts=1, threads=1)
    loss, found = gradients_in_parts(town, config, parts=3, threads=1)
    assert loss == pytest.approx(whole, rel=1e-5)
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-3, atol=1e-6)


def test_the_number_of_threads_changes_no_bit_of_loss_and_gradients(town: City) -> None:
    config = tiny_model_config(**OURS, dropout=0.4)
    one, expected = gradients_in_parts(town, config, parts=2, threads=1)
    for _ in range(3):  # threads would draw their random numbers in another order each time
        two, found = gradients_in_parts(town, config, parts=2, threads=2)
        assert two == one
        assert all(torch.equal(found[name], grad) for name, grad in expected.items())


def test_parts_without_a_target_add_nothing(town: City) -> None:
    config = tiny_model_config(**OURS)
    whole, expected = gradients_in_parts(town, config, parts=9, threads=1)
    loss, found = gradients_in_parts(town, config, parts=20, threads=2)
    assert loss == pytest.approx(whole, rel=1e-5)
    for name, grad in expected.items():
        torch.testing.assert_close(found[name], grad, rtol=1e-3, atol=1e-6)
