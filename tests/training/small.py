"""Trainings of a few seconds: a narrow model and few epochs."""

import json
from dataclasses import replace
from typing import Any

import torch

from castpoi.checkins.city import City
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.training.config import CastPoiTraining
from castpoi.training.objectives.full import FullObjective

TINY = {
    "width": "8",
    "heads": "2",
    "reader_layers": "1",
    "backbone_layers": "1",
    "feed_forward_width": "8",
    "window": "10",
}
"""Settings of a model that is trained in a second."""

TINY_WORDS = [word for name, value in TINY.items() for word in ("--set", f"{name}={value}")]


def tiny_model_config(**changes: Any) -> ModelConfig:
    tiny = {name: int(value) for name, value in TINY.items()}
    fast = ModelConfig.preset("fast").to_dict()
    return ModelConfig.from_dict(fast | tiny | {"dropout": 0.0} | changes)


def tiny_model(city: City, config: ModelConfig, *, noise: float = 0.0, seed: int = 0) -> CastPoi:
    """An untrained model; noise moves every weight, so that no term is zero by its start."""
    model = new_model(config=config, lat=city.lat, lon=city.lon, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=noise)
        model.place.weight[0] = 0.0
    return model


def full_objective(
    city: City, model: ModelConfig, *, at_once: int = 16, **changes: Any
) -> FullObjective:
    paper = CastPoiTraining(objective="full", batch=16, margin_weight=0.5, explore_weight=1.5)
    config = replace(paper, **changes)
    return FullObjective(city, model=model, config=config, seed=0, candidates_at_once=at_once)


def events_of(log: str) -> list[dict[str, Any]]:
    """The events of a log, as they would be read from its file."""
    return [json.loads(line) for line in log.splitlines()]


def gradients(model: CastPoi) -> dict[str, torch.Tensor]:
    """The gradient of every weight that has one."""
    return {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }
