"""From a city to a trained CaST-POI: configs, objective, ranker."""

from collections.abc import Mapping
from typing import Any

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.progress import Progress
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.traits import PlaceTraits
from castpoi.training.config import TrainingConfig
from castpoi.training.course import Course, follow
from castpoi.training.device import device_named
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.full_objective import FullObjective
from castpoi.training.fused_loss import LossConstants
from castpoi.training.memory import (
    MOST_CANDIDATES,
    MOST_TARGETS,
    candidates_at_once,
    free_bytes_of,
    targets_at_once,
)
from castpoi.training.objective import Objective
from castpoi.training.selection import ShortlistRanker
from castpoi.training.settings import configs_of
from castpoi.training.train_part import train_histories
from castpoi.training.trainer import Log, TrainingOptions

_CANDIDATES, _TARGETS = "candidates_at_once", "targets_at_once"


def train_castpoi(
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> CastPoiRanker:
    """Learn from the train part, keep the epoch that is best on validation."""
    model_config, config = configs_of(options.preset, options.settings)
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    builder = BatchBuilder(config=model_config, lat=lat, lon=lon)
    ranker = CastPoiRanker if config.objective == "full" else ShortlistRanker
    course = Course(
        method=options.method,
        shape=model_config.to_dict(),
        plan=config,
        new_model=lambda: untrained_model(city, model_config, seed=seed),
        objective=lambda frame: objective_of(city, model_config, config, seed=seed, frame=frame),
        ranker=lambda model: ranker(model, builder),
        frame=lambda: _frame(city, model_config, config, options.device),
    )
    model, training = follow(
        course, city, part=part, seed=seed, log=log, progress=progress, options=options
    )
    return CastPoiRanker(model, builder, training=training)


def traits_of(city: City, model: ModelConfig) -> PlaceTraits | None:
    """What the places of a city have in common, if a model wants to know."""
    if not model.shared_vectors:
        return None
    places = city.places
    return PlaceTraits.of(
        places[record.LAT].to_numpy(),
        places[record.LON].to_numpy(),
        places[record.CATEGORY].to_list(),
        model.neighbourhoods_km,
    )


def untrained_model(city: City, config: ModelConfig, *, seed: int) -> CastPoi:
    """A model that has counted the train part's crowd, if it asks for it, and learned nothing."""
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    model = new_model(config=config, lat=lat, lon=lon, seed=seed, traits=traits_of(city, config))
    if model.crowd_gate is not None:
        model.crowd_gate.crowd.count(train_histories(city))
    return model


def _frame(city: City, model: ModelConfig, config: TrainingConfig, device: str) -> dict[str, int]:
    """How many candidates and targets fit the memory of a device."""
    free = free_bytes_of(device_named(device))
    places, read = city.places.height, 1 + config.hard_candidates + config.drawn_candidates
    return {
        _CANDIDATES: candidates_at_once(model, histories=config.batch, free=free),
        _TARGETS: targets_at_once(model, places=places, candidates=read, free=free),
    }


def objective_of(
    city: City,
    model: ModelConfig,
    config: TrainingConfig,
    *,
    seed: int,
    frame: Mapping[str, int] | None = None,
) -> Objective[Any]:
    """The objective that a config asks for, within the frame that the machine sets."""
    frame = {_CANDIDATES: MOST_CANDIDATES, _TARGETS: MOST_TARGETS, **(frame or {})}
    if config.objective == "full":
        return FullObjective(
            city, model=model, config=config, seed=seed, candidates_at_once=frame[_CANDIDATES]
        )
    rivals = max(1, city.places.height - 1)
    return FastObjective(
        city,
        model=model,
        config=FastConfig(
            windows_a_step=config.windows_a_step,
            hard_candidates=min(config.hard_candidates, rivals),
            drawn_candidates=config.drawn_candidates,
            explore_weight=config.explore_weight,
        ),
        constants=LossConstants(
            label_smoothing=config.label_smoothing,
            margin=config.margin,
            margin_weight=config.margin_weight,
            hard_negatives=min(config.hard_negatives, rivals),
        ),
        seed=seed,
        targets_at_once=frame[_TARGETS],
    )
