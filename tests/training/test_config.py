from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from castpoi.baselines.sequence import MODELS, SequenceConfig, model_class
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput
from castpoi.methods.registry import METHODS, Method
from castpoi.model.config import ModelConfig
from castpoi.training import castpoi, sequence
from castpoi.training.config import CastPoiTraining, SequenceTraining, TrainingConfig
from castpoi.training.job import TrainingJob, TrainingOptions
from castpoi.training.objectives.fused_loss import LossConstants
from castpoi.training.train import configs_for, fit
from castpoi.training.trainer import TrainingPlan
from tests.contract import odd_city
from tests.messages import refused


def test_the_paper_preset_is_the_published_recipe() -> None:
    paper = CastPoiTraining.preset("paper")
    assert (paper.objective, paper.epochs, paper.batch) == ("full", 50, 128)
    assert (paper.learning_rate, paper.final_rate) == (1e-3, 1e-3)
    assert (paper.warmup_epochs, paper.schedule) == (3, "epoch")
    assert (paper.weight_decay, paper.clip, paper.margin_weight) == (1e-4, 5.0, 0.5)
    constants = LossConstants(margin_weight=paper.margin_weight)
    assert (constants.label_smoothing, constants.margin, constants.hard_negatives) == (0.02, 1, 10)
    assert (paper.explore_weight, paper.select_by, paper.patience) == (1.5, "HR@10", 10)
    assert (paper.place_weight_decay, paper.weight_averaging) == (1e-4, 0)


def test_decision_7_names_every_setting_in_which_fast_and_paper_differ() -> None:
    decisions = Path(__file__).parents[2] / "docs" / "decisions"
    text = (decisions / "0007-the-fast-preset.md").read_text(encoding="utf-8")
    for kind in (ModelConfig, CastPoiTraining):
        paper, fast = (kind.preset(name).to_dict() for name in ("paper", "fast"))
        differing = {name for name in paper if paper[name] != fast[name]}
        assert differing
        assert not [name for name in differing if f"`{name}`" not in text]


def test_next_takes_larger_steps_than_fast_with_more_decay() -> None:
    fast, found = CastPoiTraining.preset("fast"), CastPoiTraining.preset("next")
    assert found.windows_per_step * found.window_targets == 8 * 100
    assert fast.windows_per_step * fast.window_targets == 2 * 50
    assert (found.learning_rate, fast.learning_rate) == (3e-3, 1e-3)
    assert (found.place_weight_decay, fast.place_weight_decay) == (1.7, 0.3)
    assert (found.step_parts, fast.step_parts) == (2, 1)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("epochs", 0, "a whole number of at least 1"),
        ("epochs", 1.5, "a whole number of at least 1"),
        ("epochs", True, "a whole number of at least 1"),
        ("patience", None, "a whole number of at least 1"),
        ("threads", 0, "a whole number of at least 1, or none"),
        ("learning_rate", 0.0, "a number above 0"),
        ("learning_rate", float("nan"), "a number above 0"),
        ("clip", 0, "a number above 0, or none"),
        ("margin_weight", -0.1, "a number of at least 0"),
        ("final_rate", 1.1, "a number from 0 to 1"),
        ("weight_averaging", 1.0, "a number of at least 0 and below 1"),
        ("objective", "half", "'fast' or 'full'"),
        ("select_by", "HR@5", "'HR@10' or 'MRR'"),
        ("schedule", "hour", "'epoch' or 'step'"),
    ],
)
def test_an_invalid_value_is_refused_with_its_rule(name: str, value: Any, rule: str) -> None:
    with pytest.raises(BadInput, match=f"{name}=.* is not valid; it must be {rule}"):
        CastPoiTraining(**{name: value})


@pytest.mark.parametrize("training", [CastPoiTraining, SequenceTraining])
def test_no_name_is_a_setting_of_both_model_and_training(training: type[TrainingConfig]) -> None:
    models: list[type[ModelConfig | SequenceConfig]] = [ModelConfig]
    models += [model_class(name).config_class for name in MODELS]
    names = {each.name for each in fields(training)}
    assert not [model for model in models if names & {each.name for each in fields(model)}]


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        (each.name, preset)
        for each in METHODS
        for preset in each.presets
        if (each.trainer or "").partition(":")[0] in (castpoi.__name__, sequence.__name__)
    ],
)
def test_the_configs_of_a_method_are_those_that_are_trained(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[TrainingPlan[Any]] = []

    def stop(plan: TrainingPlan[Any], city: City, job: TrainingJob) -> None:
        plans.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(castpoi, "run_plan", stop)
    monkeypatch.setattr(sequence, "run_plan", stop)
    method, changes = METHODS.named(name), {"width": "32", "epochs": "7"}
    with pytest.raises(KeyboardInterrupt):
        fit(odd_city(), method, options=TrainingOptions(preset=preset, settings=changes))
    model, training = configs_for(method, preset, changes)
    assert isinstance(model, ModelConfig | SequenceConfig)
    assert (model.to_dict(), training) == (plans[0].model_config, plans[0].config)
    assert training.epochs == 7


def test_positions_that_the_fast_objective_cannot_train_are_refused() -> None:
    with refused(BadInput):
        configs_for(METHODS.named("castpoi"), "fast", {"positions": "absolute"})


def test_the_settings_of_another_package_cannot_be_checked() -> None:
    dice = Method(name="dice", line="throws dice", ranker="json:Dice", trainer="json:t")
    with refused(BadInput):
        configs_for(dice, "plain", {})


@pytest.mark.parametrize("name", ["castpoi", "sasrec"])
def test_a_wrong_setting_is_refused(name: str) -> None:
    method = METHODS.named(name)
    with refused(BadInput):
        configs_for(method, method.presets[0], {"wdith": "64"})
