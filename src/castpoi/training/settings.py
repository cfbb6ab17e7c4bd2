"""The configs of a CaST-POI model and its training, from a preset and settings."""

from collections.abc import Mapping
from typing import Final

from castpoi.core.config import changed
from castpoi.core.errors import BadInput
from castpoi.model.config import ModelConfig
from castpoi.training.config import TrainingConfig

DEFAULT_PRESET: Final = "fast"


def configs_of(
    preset: str | None, settings: Mapping[str, object]
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
