"""How fast CaST-POI learns and scores.

The city is the prepared one that CASTPOI_CITY names by its folder, or else a synthetic one of New
York's size. The model is that of preset `fast`, untrained, which changes no amount of work.
"""

import os
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.batch import BatchBuilder
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.training.castpoi import objective_of
from castpoi.training.config import CastPoiTraining
from castpoi.training.objective import Objective

PEOPLE, PLACES = 1_050, 6_000  # of which some 5,000 are visited
FAST_STEPS: Final = 40
FULL_STEPS: Final = 1
"""A step of the paper's objective, 128 prefixes against every place, takes about a minute."""


def city_to_measure(folder: Path) -> City:
    """The city that CASTPOI_CITY names, or else a synthetic one."""
    named = os.environ.get("CASTPOI_CITY")
    return City.load(Path(named)) if named else city_of_new_yorks_size(folder)


@cache
def city_of_new_yorks_size(folder: Path) -> City:
    """A synthetic city with about as many people, places and check-ins as NYC."""
    config = SynthesisConfig(users=PEOPLE, places=PLACES)
    checkins = synthesize(config, seed=7)
    source = write_checkins(checkins, folder / "nyc-size.parquet", config=config, seed=7)
    return prepare([source], folder / "nyc-size", Preparation())


def fast_against_full(folder: Path, checkins: int) -> dict[str, Any]:
    """Targets a second of the fast objective against the paper's, forward and backward.

    One model, that of preset fast; whole steps of either preset's size.
    """
    city = city_to_measure(folder)
    fast_targets, fast_seconds = _learned(city, CastPoiTraining.preset("fast"), steps=FAST_STEPS)
    full_targets, full_seconds = _learned(city, CastPoiTraining.preset("paper"), steps=FULL_STEPS)
    fast, full = fast_targets / fast_seconds, full_targets / full_seconds
    return {
        **_size(city),
        "fast_targets": fast_targets,
        "fast_seconds": fast_seconds,
        "fast_a_second": fast,
        "full_batch": CastPoiTraining.preset("paper").batch,
        "full_targets": full_targets,
        "full_seconds": full_seconds,
        "full_a_second": full,
        "times_faster": fast / full,
    }


def _learned(city: City, training: CastPoiTraining, *, steps: int) -> tuple[int, float]:
    """Targets of the first steps of an epoch, and the seconds they took."""
    config = ModelConfig.preset("fast")
    model = _model(city, config).train()
    objective: Objective[Any] = objective_of(city, config, training, seed=7)
    batches = objective.batches(0)[:steps]
    _learn(objective, model, objective.share(batches[0], 0, 16))  # a little, to warm up
    began = time.perf_counter()
    for batch in batches:
        _learn(objective, model, batch)
    seconds = time.perf_counter() - began
    return sum(objective.targets(batch) for batch in batches), seconds


def _learn(objective: Objective[Any], model: CastPoi, batch: Any) -> None:
    model.zero_grad(set_to_none=True)
    objective.loss(model, batch).backward()


def exact_scoring(folder: Path, checkins: int) -> dict[str, Any]:
    """Exact scores of all places for every test target, as a share of the matrix-product rate.

    Products of the reader and the head are counted, for the visits that a history really has.
    """
    city = city_to_measure(folder)
    rows = city.targets(record.TEST)
    config = ModelConfig.preset("fast")
    lat, lon = _coordinates(city)
    builder = BatchBuilder(config=config, lat=lat, lon=lon)
    ranker = CastPoiRanker(_model(city, config), builder)
    encoded = ranker.encode(city.trajectories.histories_before(rows))
    rate = _product_rate()
    seconds = _best_of(2, lambda: ranker.score(encoded))
    visits = encoded.is_real.sum(dim=1).clamp(min=1).tolist()  # an empty history has one slot
    work = city.places.height * sum(pair_flop(config, visits=each) for each in visits)
    return {
        **_size(city),
        "targets": len(rows),
        "visits_read": sum(visits) / len(rows),
        "seconds": seconds,
        "gflop_a_second": work / seconds / 1e9,
        "product_gflop_a_second": rate / 1e9,
        "share_of_product_rate": work / seconds / rate,
    }


def pair_flop(config: ModelConfig, *, visits: int) -> int:
    """Of one candidate and one history of so many visits, in products of reader and head.

    What a place brings along for every history is computed once, so it does not count: the first
    layer's queries and the candidate's part of the head.
    """
    width, layers = config.width, config.reader_layers
    attention = 2 * visits * width + width**2  # logits, what is found, its mix
    feed_forward = 2 * width * config.feed_forward_width
    queries, head = (layers - 1) * width**2, 2 * width**2 + width
    return 2 * (layers * (attention + feed_forward) + queries + head)


def _size(city: City) -> dict[str, Any]:
    name = os.environ.get("CASTPOI_CITY")
    return {"city": Path(name).name if name else "synthetic", "places": city.places.height}


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
