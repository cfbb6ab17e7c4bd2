"""From words on a command line to a model and a way to train it.

Every field of a model's and a training's config is a setting, read by the type of the field; so an
ablation is `spatial_bias=false` and not a branch of the code.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_origin

from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig
from castpoi.training.config import TrainingConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Model = TypeVar("Model", bound="DataclassInstance")
Training = TypeVar("Training", bound="DataclassInstance")

DEFAULT_PRESET: Final = "fast"

_TRUTHS: Final = {"true": True, "false": False}


def pairs_of(words: Iterable[str]) -> dict[str, str]:
    """Settings from words like `width=64`; each may stand once."""
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"setting '{word}' is not of the form name=value, for instance width=64")
        if name.strip() in settings:
            raise BadInput(f"setting '{name.strip()}' is given twice; give it once")
        settings[name.strip()] = value.strip()
    return settings


def configs_of(
    preset: str | None, settings: Mapping[str, str]
) -> tuple[ModelConfig, TrainingConfig]:
    """The CaST-POI and the training of a preset, with the given settings changed.

    Raises:
        BadInput: a setting is unknown, cannot be read, or makes no sense with the others.
    """
    name = preset or DEFAULT_PRESET
    model, training = changed(ModelConfig.preset(name), TrainingConfig.preset(name), settings)
    _check(model, training)
    return model, training


def _check(model: ModelConfig, training: TrainingConfig) -> None:
    """Refuse a model that its objective cannot train."""
    if training.objective == "fast" and model.positions != "relative" and model.backbone:
        raise BadInput(
            f"objective=fast cannot train positions={model.positions}, which give every prefix "
            "states of its own; choose positions=relative or objective=full"
        )
    if training.objective == "full" and model.crowd_gate:
        raise BadInput(
            "objective=full cannot train crowd_gate=true: it does not take the person who learns "
            "out of the crowd; choose objective=fast or crowd_gate=false"
        )


def changed(
    model: Model, training: Training, settings: Mapping[str, str]
) -> tuple[Model, Training]:
    """A model's and a training's config with the given settings changed."""
    of_model, of_training = _kinds(model), _kinds(training)
    model_changes, training_changes = {}, {}
    for name, text in settings.items():
        if name in of_model:
            model_changes[name] = _read(name, text, of_model[name])
        elif name in of_training:
            training_changes[name] = _read(name, text, of_training[name])
        else:
            raise BadInput(_no_such_setting(name, list(of_model), list(of_training)))
    return replace(model, **model_changes), replace(training, **training_changes)


def _kinds(config: "DataclassInstance") -> dict[str, Any]:
    return {field.name: field.type for field in fields(config)}


def _no_such_setting(name: str, of_model: list[str], of_training: list[str]) -> str:
    close = difflib.get_close_matches(name, of_model + of_training, n=1)
    guess = f"did you mean '{close[0]}'? " if close else ""
    return (
        f"there is no setting '{name}'; {guess}settings of the model are {', '.join(of_model)}; "
        f"settings of the training are {', '.join(of_training)}"
    )


def _read(name: str, text: str, kind: Any) -> Any:
    """One value by the type of its field; the config itself refuses what is out of range."""
    try:
        if kind is bool:
            return _TRUTHS[text.lower()]
        if kind is int:
            return int(text)
        if kind is float:
            return float(text)
        if kind in (int | None, float | None):
            return None if text.lower() == "none" else get_args(kind)[0](text)
        if kind == tuple[float, ...]:
            return tuple(float(each) for each in text.split(","))
        if get_origin(kind) is tuple:
            return tuple(each.strip() for each in text.split(","))
    except (KeyError, ValueError) as problem:
        raise BadInput(f"setting {name}={text!r} cannot be read; give {_asked(kind)}") from problem
    return text


def _asked(kind: Any) -> str:
    words = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        int | None: "a whole number or none",
        float | None: "a number or none",
        tuple[float, ...]: "numbers with commas between them",
    }
    return words[kind]
