"""The sequence models by name; imported only when they are asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import torch

from castpoi.baselines.sequence import SequenceModel
from castpoi.baselines.sequence_config import SequenceConfig

MODELS: Final[Mapping[str, str]] = {
    "sasrec": "SasRec",
    "bert4rec": "Bert4Rec",
    "caser": "Caser",
    "narm": "Narm",
    "srgnn": "SrGnn",
    "stamp": "Stamp",
    "core": "Core",
    "esasrec": "ESasRec",
}
"""The class of each model, in the file of its name."""


def model_class(name: str) -> type[SequenceModel]:
    """The model of this name."""
    found: type[SequenceModel] = getattr(import_module(f"castpoi.baselines.{name}"), MODELS[name])
    return found


def new_model(name: str, *, config: SequenceConfig, places: int, seed: int) -> SequenceModel:
    """An untrained model for so many places; the same seed, the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # each class asks for its own config, which `config_class` names
        make: Any = model_class(name)
        made: SequenceModel = make(config=config, places=places)
        return made
