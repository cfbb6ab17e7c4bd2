"""A tiny model, the places of its city, and histories as its inputs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import torch

from castpoi.checkins.trajectory import Histories
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.windows import BatchBuilder, HistoryBatch

Visit = tuple[int, int, int]
"""Place, UTC microseconds, local offset in minutes."""

LAT = np.array([40.70, 40.702, 40.71, 40.73, 40.80, 41.20, 42.36])
LON = np.array([-74.00, -74.001, -74.00, -73.95, -73.90, -73.50, -71.06])
"""Seven places, from the same street to another state."""

PLACES = len(LAT)
ALL_PLACES = torch.arange(PLACES)

_SMALL = {
    "width": 8,
    "heads": 2,
    "feed_forward_width": 6,
    "window": 4,
}


def small_config(preset: str = "fast", /, **changes: Any) -> ModelConfig:
    """A preset with small widths and windows."""
    return ModelConfig.from_dict(ModelConfig.preset(preset).to_dict() | _SMALL | changes)


def trained_model(config: ModelConfig, seed: int = 0) -> CastPoi:
    """A model in which no weight is zero, as after training."""
    model = new_model(config=config, lat=LAT, lon=LON, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
        model.place.weight[0] = 0.0
    return model


def builder(config: ModelConfig) -> BatchBuilder:
    return BatchBuilder(config=config, lat=LAT, lon=LON)


def batch_of(config: ModelConfig, *visits: Sequence[Visit]) -> HistoryBatch:
    laid = histories(*visits)
    return builder(config).build(with_next_time(laid, *visits) if config.known_time else laid)


def histories(*visits: Sequence[Visit]) -> Histories:
    """Histories from lists of visits."""
    laid = np.array([visit for history in visits for visit in history], dtype=np.int64)
    place, at_us, offset = laid.reshape(-1, 3).T
    bounds = np.cumsum([0, *(len(history) for history in visits)])
    return Histories(place=place, at_us=at_us, offset_minutes=offset, bounds=bounds)


def with_next_time(laid: Histories, *visits: Sequence[Visit]) -> Histories:
    """The same histories, each with a known time of the next visit."""
    return replace(laid, next_at_us=np.array([next_moment(history) for history in visits]))


def next_moment(visits: Sequence[Visit]) -> int:
    """Seven hours after the last visit."""
    return visits[-1][1] + 7 * 3_600_000_000 if visits else 0


def walk(count: int, seed: int = 0) -> list[Visit]:
    """A random history of `count` visits, minutes to weeks apart."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([600, 3600, 40_000, 200_000, 2_000_000], size=count) * 1_000_000
    instants = 1_333_000_000_000_000 + np.cumsum(gaps)
    return [
        (int(place), int(at), -240)
        for place, at in zip(rng.integers(PLACES, size=count), instants, strict=True)
    ]


def at(moment: str) -> int:
    """UTC microseconds of 'YYYY-MM-DD HH:MM'."""
    return int(datetime.fromisoformat(moment + "+00:00").timestamp()) * 1_000_000
