import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig
from castpoi.training.config import PRESETS, TrainingConfig
from tests.messages import refused


def test_the_paper_preset_is_the_published_recipe() -> None:
    paper = TrainingConfig.preset("paper")
    assert (paper.objective, paper.epochs, paper.batch) == ("full", 50, 128)
    assert (paper.learning_rate, paper.final_learning_rate) == (1e-3, 1e-6)
    assert (paper.warmup_epochs, paper.schedule) == (3, "epoch")
    assert (paper.weight_decay, paper.clip, paper.label_smoothing) == (1e-4, 5.0, 0.02)
    assert (paper.margin, paper.margin_weight, paper.hard_negatives) == (1.0, 0.5, 10)
    assert (paper.explore_weight, paper.select_by, paper.patience) == (1.5, "HR@10", 10)
    assert (paper.place_weight_decay, paper.weight_averaging) == (1e-4, 0)


def test_decision_7_names_every_setting_in_which_fast_leaves_the_paper() -> None:
    decisions = Path(__file__).parents[2] / "docs" / "decisions"
    told = (decisions / "0007-the-fast-preset.md").read_text(encoding="utf-8")
    for kind in (ModelConfig, TrainingConfig):
        paper, fast = (kind.preset(name).to_dict() for name in ("paper", "fast"))
        differing = {name for name in paper if paper[name] != fast[name]}
        assert differing
        assert not [name for name in differing if f"`{name}`" not in told]


def test_next_is_trained_as_fast_is_but_for_the_decay_of_places() -> None:
    fast = TrainingConfig.preset("fast")
    assert TrainingConfig.preset("next") == replace(fast, place_weight_decay=1.0)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_config_survives_json(preset: str) -> None:
    config = TrainingConfig.preset(preset)
    assert TrainingConfig(**json.loads(json.dumps(config.to_dict()))) == config


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
        ("clip", "5", "a number above 0"),
        ("margin_weight", -0.1, "a number of at least 0"),
        ("label_smoothing", 1.0, "a number of at least 0 and below 1"),
        ("weight_averaging", 1.0, "a number of at least 0 and below 1"),
        ("objective", "half", "'fast' or 'full'"),
        ("select_by", "HR@5", "'HR@10' or 'MRR'"),
        ("schedule", "hour", "'epoch' or 'step'"),
    ],
)
def test_nonsense_is_refused_with_its_rule(name: str, value: Any, rule: str) -> None:
    with pytest.raises(BadInput, match=f"{name}=.* is not valid; it must be {rule}"):
        TrainingConfig(**{name: value})


def test_what_may_be_zero_or_one_may_be() -> None:
    config = TrainingConfig(warmup_epochs=0, weight_decay=0, margin_weight=0, label_smoothing=0)
    assert config.warmup_epochs == 0


def test_the_rate_may_not_end_above_its_top() -> None:
    with refused(BadInput):
        TrainingConfig(learning_rate=0.01, final_learning_rate=0.1)


def test_an_unknown_preset_is_refused() -> None:
    with refused(BadInput):
        TrainingConfig.preset("slow")
