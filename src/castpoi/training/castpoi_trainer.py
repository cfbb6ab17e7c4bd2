"""From a city to a trained CaST-POI: configs, objective, ranker."""

from typing import Any

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.progress import Progress
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.traits import NEIGHBOURHOODS_KM, PlaceTraits
from castpoi.training.config import TrainingConfig
from castpoi.training.course import Course, follow
from castpoi.training.device import device_named
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.full_objective import CANDIDATES_AT_ONCE, FullObjective
from castpoi.training.fused_loss import LossConstants
from castpoi.training.memory import bytes_of_training, check_memory, free_bytes
from castpoi.training.objective import Objective
from castpoi.training.selection import ShortlistRanker
from castpoi.training.settings import configs_of
from castpoi.training.trainer import Log, TrainingOptions


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
    _check_memory(city, model_config, config, options.device)
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    builder = BatchBuilder(config=model_config, lat=lat, lon=lon)
    course = Course(
        method=options.method,
        shape=model_config.to_dict(),
        plan=config,
        new_model=lambda: untrained_model(city, model_config, seed=seed),
        objective=lambda: objective_of(city, model_config, config, seed=seed),
        ranker=lambda model: _validation_ranker(model, builder, config),
    )
    model, training = follow(
        course, city, part=part, seed=seed, log=log, progress=progress, options=options
    )
    return CastPoiRanker(model, builder, training=training)


def _validation_ranker(
    model: CastPoi, builder: BatchBuilder, config: TrainingConfig
) -> CastPoiRanker | ShortlistRanker:
    """Rank all places, but with the reader of the fast objective only a shortlist exactly."""
    if config.objective == "full" or model.refinement is None:
        return CastPoiRanker(model, builder)
    return ShortlistRanker(model, builder)


def traits_of(city: City, model: ModelConfig) -> PlaceTraits | None:
    """What the places of a city have in common, if a model wants to know."""
    if not model.shared_vectors:
        return None
    places = city.places
    return PlaceTraits.of(
        places[record.LAT].to_numpy(),
        places[record.LON].to_numpy(),
        places[record.CATEGORY].to_list(),
        NEIGHBOURHOODS_KM,
    )


def untrained_model(city: City, config: ModelConfig, *, seed: int) -> CastPoi:
    """A model for the places of a city that has learned nothing."""
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    return new_model(config=config, lat=lat, lon=lon, seed=seed, traits=traits_of(city, config))


def _check_memory(city: City, model: ModelConfig, config: TrainingConfig, device: str) -> None:
    """Refuse a training that the memory of a device does not hold."""
    is_full = config.objective == "full"
    needed = bytes_of_training(
        model,
        visits=len(city.trajectories),
        places=city.places.height,
        targets=config.batch if is_full else config.windows_a_step * model.window,
        read=(
            CANDIDATES_AT_ONCE if is_full else 1 + config.hard_candidates + config.drawn_candidates
        ),
    )
    check_memory(needed, free_bytes(device_named(device)))


def objective_of(
    city: City,
    model: ModelConfig,
    config: TrainingConfig,
    *,
    seed: int,
) -> Objective[Any]:
    """The objective that a config asks for."""
    if config.objective == "full":
        return FullObjective(city, model=model, config=config, seed=seed)
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
    )
