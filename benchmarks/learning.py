"""How fast CaST-POI learns and scores, on a synthetic city of New York's size."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.preparation import Preparation
from castpoi.checkins.prepare import prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.training.castpoi_trainer import objective_of
from castpoi.training.config import TrainingConfig
from castpoi.training.objective import Objective

PEOPLE, PLACES = 1_050, 6_000  # of which some 5,000 are visited
PAIR_FLOP = 2 * 173_184
"""Of one history and one candidate through the two-layer reader and the head, nominal."""


@cache
def city_of_new_yorks_size(folder: Path) -> City:
    """A synthetic city with about as many people, places and check-ins as NYC."""
    config = SynthesisConfig(users=PEOPLE, places=PLACES)
    checkins = synthesize(config, seed=7)
    source = write_checkins(checkins, folder / "nyc-size.parquet", config=config, seed=7)
    return prepare([source], folder / "nyc-size", Preparation()).city


def fast_against_full(folder: Path, checkins: int) -> dict[str, Any]:
    """Targets a second of the fast objective against the paper's, forward and backward."""
    city = city_of_new_yorks_size(folder)
    config = ModelConfig.preset("fast")
    fast = _targets_a_second(city, config, TrainingConfig(), batches=40)
    full = _targets_a_second(city, config, TrainingConfig(objective="full", batch=8), batches=2)
    return {"fast_a_second": fast, "full_a_second": full, "times_faster": fast / full}


def _targets_a_second(
    city: City, config: ModelConfig, training: TrainingConfig, *, batches: int
) -> float:
    model = _model(city, config).train()
    objective: Objective[Any] = objective_of(city, config, training, seed=7)
    chosen = objective.batches(0)[: batches + 1]
    _learn(objective, model, chosen[0])  # warm
    began = time.perf_counter()
    for batch in chosen[1:]:
        _learn(objective, model, batch)
    targets = sum(objective.targets(batch) for batch in chosen[1:])
    return targets / (time.perf_counter() - began)


def _learn(objective: Objective[Any], model: CastPoi, batch: Any) -> None:
    model.zero_grad(set_to_none=True)
    objective.loss(model, batch).backward()


def exact_scoring(folder: Path, checkins: int) -> dict[str, Any]:
    """Exact scores of all places for every test target, as a share of the matrix-product rate."""
    city = city_of_new_yorks_size(folder)
    rows = city.targets(record.TEST)
    config = ModelConfig.preset("paper")
    lat, lon = _coordinates(city)
    builder = BatchBuilder(config=config, lat=lat, lon=lon)
    ranker = CastPoiRanker(_model(city, config), builder)
    encoded = ranker.encode(city.trajectories.histories_before(rows))
    rate = _product_rate()
    seconds = _best_of(2, lambda: ranker.score(encoded))
    work = PAIR_FLOP * len(rows) * city.places.height
    return {
        "targets": len(rows),
        "places": city.places.height,
        "seconds": seconds,
        "gflop_a_second": work / seconds / 1e9,
        "product_gflop_a_second": rate / 1e9,
        "share_of_product_rate": work / seconds / rate,
    }


def _product_rate() -> float:
    """Floating-point operations a second of a large float32 matrix product."""
    size = 2048
    left, right = torch.rand(size, size), torch.rand(size, size)
    seconds = _best_of(8, lambda: left @ right)
    return 2 * size**3 / seconds


def _best_of(times: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def _model(city: City, config: ModelConfig) -> CastPoi:
    lat, lon = _coordinates(city)
    return new_model(config=config, lat=lat, lon=lon, seed=7)


def _coordinates(city: City) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return city.places[record.LAT].to_numpy(), city.places[record.LON].to_numpy()
