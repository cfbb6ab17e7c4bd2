from dataclasses import fields
from typing import Any

from castpoi.model.config import ModelConfig
from castpoi.training.config import TrainingConfig
from castpoi.training.settings import configs_of


def test_a_preset_is_one_of_model_and_of_training() -> None:
    assert configs_of("paper", {}) == (ModelConfig.preset("paper"), TrainingConfig.preset("paper"))


def test_fast_is_the_preset_when_none_is_named() -> None:
    assert configs_of(None, {}) == configs_of("fast", {})


def test_no_name_is_a_setting_of_both_model_and_training() -> None:
    of_model, of_training = ({each.name for each in fields(kind)} for kind in KINDS)
    assert not of_model & of_training


KINDS: tuple[Any, Any] = (ModelConfig, TrainingConfig)
