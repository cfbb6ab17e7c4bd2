from dataclasses import fields
from typing import Any

import pytest

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig
from castpoi.training.config import TrainingConfig
from castpoi.training.settings import configs_of, pairs_of
from tests.messages import refused


def test_every_kind_of_setting_is_read_by_its_field() -> None:
    words = [
        "width=64", "dropout=0.3", "spatial_bias=False", "gamma_start=zero",
        "spatial_edges_km=0.5,2,8", "epochs=4", "threads=none", "select_by=HR@10", "clip=1",
        "distance_anchors=home, last",
    ]  # fmt: skip
    model, training = configs_of("fast", pairs_of(words))
    assert (model.width, model.dropout, model.spatial_bias) == (64, 0.3, False)
    assert (model.gamma_start, model.spatial_edges_km) == ("zero", (0.5, 2.0, 8.0))
    assert (training.epochs, training.threads, training.select_by) == (4, None, "HR@10")
    assert training.clip == 1.0
    assert model.distance_anchors == ("home", "last")


def test_a_preset_is_one_of_model_and_of_training() -> None:
    assert configs_of("paper", {}) == (ModelConfig.preset("paper"), TrainingConfig.preset("paper"))


def test_fast_is_the_preset_when_none_is_named() -> None:
    assert configs_of(None, {}) == configs_of("fast", {})


def test_no_name_is_a_setting_of_both_model_and_training() -> None:
    of_model, of_training = ({each.name for each in fields(kind)} for kind in KINDS)
    assert not of_model & of_training


KINDS: tuple[Any, Any] = (ModelConfig, TrainingConfig)


def test_an_unknown_setting_gets_a_guess_and_all_that_are_known() -> None:
    words = "no setting 'widht'; did you mean 'width'\\? settings of the model are width, heads"
    with pytest.raises(BadInput, match=words):
        configs_of("fast", {"widht": "3"})
    with refused(BadInput):
        configs_of("fast", {"zz": "3"})


@pytest.mark.parametrize(
    ("name", "text", "asked"),
    [
        ("width", "wide", "a whole number"),
        ("dropout", "some", "a number"),
        ("spatial_bias", "0", "true or false"),
        ("threads", "all", "a whole number or none"),
        ("spatial_edges_km", "1;2", "numbers with commas between them"),
    ],
)
def test_a_value_that_cannot_be_read_says_what_to_give(name: str, text: str, asked: str) -> None:
    with pytest.raises(BadInput, match=f"setting {name}='{text}' cannot be read; give {asked}$"):
        configs_of("fast", {name: text})


@pytest.mark.parametrize("word", ["width", "=3", ""])
def test_a_setting_is_a_name_and_a_value(word: str) -> None:
    with pytest.raises(BadInput, match=f"setting '{word}' is not of the form name=value"):
        pairs_of([word])


def test_a_setting_is_given_once() -> None:
    with refused(BadInput):
        pairs_of(["epochs=3", "epochs = 4"])
