"""The training plan of CaST-POI: configs, objective, ranker.

Shapes: B histories, P places, M shortlisted places.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.config import changed
from castpoi.core.errors import BadInput
from castpoi.core.progress import Progress
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, Encoded, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.traits import NEIGHBOURHOODS_KM, PlaceTraits
from castpoi.training.config import CastPoiTraining
from castpoi.training.device import device_named
from castpoi.training.fast_objective import FastConfig, FastObjective
from castpoi.training.full_objective import CANDIDATES_AT_ONCE, FullObjective
from castpoi.training.fused_loss import LossConstants
from castpoi.training.log import Log
from castpoi.training.memory import bytes_of_training, check_memory, free_bytes
from castpoi.training.objectives import Objective
from castpoi.training.train import TrainingOptions
from castpoi.training.trainer import TrainingPlan, run_plan

SHORTLIST: Final = 256
"""Places whose reader score is computed to select an epoch."""


def train_castpoi(
    city: City,
    *,
    part: str,
    seed: int,
    log: Log,
    progress: Progress,
    options: TrainingOptions,
) -> CastPoiRanker:
    """Train CaST-POI on the train split and keep the epoch that is best on validation."""
    model, training = configs(options.method, options.preset or "fast", options.settings)
    _check_memory(city, model, training, options.device)
    builder = _builder(city, model)
    plan = castpoi_plan(city, options.method, model, training, seed=seed)
    trained, summary = run_plan(
        plan, city, part=part, seed=seed, log=log, progress=progress, options=options
    )
    return CastPoiRanker(trained, builder, training=summary)


def configs(
    method: str, preset: str, settings: Mapping[str, object]
) -> tuple[ModelConfig, CastPoiTraining]:
    """The configs of model and training: a preset with some settings changed.

    Raises:
        BadInput: a setting is unknown, cannot be read, or contradicts another.
    """
    model, training = changed(ModelConfig.preset(preset), CastPoiTraining.preset(preset), settings)
    if training.objective == "fast" and model.positions != "relative" and model.backbone:
        raise BadInput(
            f"objective=fast cannot train positions={model.positions}, which give every prefix "
            "states of its own; choose positions=relative or objective=full"
        )
    return model, training


def castpoi_plan(
    city: City, method: str, model: ModelConfig, training: CastPoiTraining, *, seed: int
) -> TrainingPlan[CastPoi]:
    """The training plan of a CaST-POI model."""
    builder = _builder(city, model)
    return TrainingPlan(
        method=method,
        model_config=model.to_dict(),
        config=training,
        new_model=lambda: untrained_model(city, model, seed=seed),
        objective=lambda: objective_of(city, model, training, seed=seed),
        ranker=lambda trained: _validation_ranker(trained, builder, training),
    )


def _validation_ranker(
    model: CastPoi, builder: BatchBuilder, training: CastPoiTraining
) -> CastPoiRanker:
    """Rank all places exactly, but with the reader of the fast objective only a shortlist."""
    if training.objective == "full" or model.refinement is None:
        return CastPoiRanker(model, builder)
    return ShortlistRanker(model, builder)


class ShortlistRanker(CastPoiRanker):
    """Ranks places for validation in training: the best by all other terms are scored exactly."""

    @torch.inference_mode()
    def score(
        self, encoded: Encoded, candidates: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Score every place for each history; all others are below the shortlist. [B, P]"""
        if candidates is not None:
            return super().score(encoded, candidates)
        scores = self.scorer.foretold(encoded)  # [B, P]
        shortlist = scores.topk(min(SHORTLIST, self.places), dim=1, sorted=False).indices  # [B, M]
        exact = self.scorer.score(encoded, shortlist + 1)
        # only differences between places matter, so scores with and without the reader cannot be
        # compared: all others come after the shortlist, in their own order
        below = exact.amin(dim=1, keepdim=True) - scores.amax(dim=1, keepdim=True) - 1
        scores.add_(below).scatter_(1, shortlist, exact)
        array: NDArray[np.float32] = scores.float().cpu().numpy()
        return array


def traits_of(city: City, model: ModelConfig) -> PlaceTraits | None:
    """The traits that places share, if the model uses them."""
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
    """An untrained model for the places of a city."""
    lat, lon = city.lat, city.lon
    return new_model(config=config, lat=lat, lon=lon, seed=seed, traits=traits_of(city, config))


def objective_of(
    city: City, model: ModelConfig, training: CastPoiTraining, *, seed: int
) -> Objective[Any]:
    """The objective of a training."""
    if training.objective == "full":
        return FullObjective(city, model=model, config=training, seed=seed)
    rivals = max(1, city.places.height - 1)
    return FastObjective(
        city,
        model=model,
        config=FastConfig(
            windows_per_step=training.windows_per_step,
            hard_candidates=min(training.hard_candidates, rivals),
            drawn_candidates=training.drawn_candidates,
            explore_weight=training.explore_weight,
        ),
        constants=LossConstants(
            margin_weight=training.margin_weight,
            hard_negatives=min(LossConstants.hard_negatives, rivals),
        ),
        seed=seed,
    )


def _check_memory(city: City, model: ModelConfig, training: CastPoiTraining, device: str) -> None:
    """Refuse a training that does not fit the memory of the device."""
    is_full = training.objective == "full"
    targets = training.batch if is_full else training.windows_per_step * model.window
    read = 1 + training.hard_candidates + training.drawn_candidates
    needed = bytes_of_training(
        model,
        visits=len(city.trajectories),
        places=city.places.height,
        targets=targets,
        read=CANDIDATES_AT_ONCE if is_full else read,
    )
    check_memory(needed, free_bytes(device_named(device)))


def _builder(city: City, model: ModelConfig) -> BatchBuilder:
    lat, lon = city.lat, city.lon
    return BatchBuilder(config=model, lat=lat, lon=lon)
