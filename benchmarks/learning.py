"""Training and scoring speed of CaST-POI.

CASTPOI_CITY is the folder of a prepared city; without it, a synthetic city of New York's size is
measured. The model is that of preset `fast`, untrained: training does not change the speed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.measure import best_of
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.checkins.prepare import Preparation, prepare
from castpoi.checkins.synthetic import SynthesisConfig, synthesize, write_checkins
from castpoi.model.castpoi import CastPoi, new_model
from castpoi.model.config import ModelConfig
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from castpoi.training.castpoi import objective_of
from castpoi.training.config import CastPoiTraining
from castpoi.training.device import deterministic
from castpoi.training.objectives import Objective
from castpoi.training.parts import StepParts

PEOPLE, PLACES = 1_050, 6_000  # about 5,000 of the places are visited
FAST_STEPS: Final = 40
NEXT_STEPS: Final = 16
FULL_STEPS: Final = 1
"""A step of the paper's objective (128 prefixes, all places) takes about a minute."""


def city_to_measure(folder: Path) -> City:
    """The city in the folder CASTPOI_CITY, or a synthetic one."""
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
    """Targets per second of the fast objective and of the paper's, forward and backward.

    Both train the model of preset fast; each takes whole steps of its own preset's batch size.
    """
    city = city_to_measure(folder)
    fast_targets, fast_seconds = _train(city, CastPoiTraining.preset("fast"), steps=FAST_STEPS)
    full_targets, full_seconds = _train(city, CastPoiTraining.preset("paper"), steps=FULL_STEPS)
    fast, full = fast_targets / fast_seconds, full_targets / full_seconds
    return {
        **_size(city),
        "fast_targets": fast_targets,
        "fast_seconds": fast_seconds,
        "fast_per_second": fast,
        "full_batch": CastPoiTraining.preset("paper").batch,
        "full_targets": full_targets,
        "full_seconds": full_seconds,
        "full_per_second": full,
        "times_faster": fast / full,
    }


def _train(city: City, training: CastPoiTraining, *, steps: int) -> tuple[int, float]:
    """Number of targets in the first steps of an epoch, and seconds for these steps."""
    config = ModelConfig.preset("fast")
    model = _model(city, config).train()
    objective: Objective[Any] = objective_of(city, config, training, seed=7)
    batches = objective.batches(0)[:steps]
    _step(objective, model, objective.share(batches[0], 0, 16))  # warm up
    began = time.perf_counter()
    for batch in batches:
        _step(objective, model, batch)
    seconds = time.perf_counter() - began
    return sum(objective.targets(batch) for batch in batches), seconds


def _step(objective: Objective[Any], model: CastPoi, batch: Any) -> None:
    model.zero_grad(set_to_none=True)
    objective.loss(model, batch).backward()


def parts_against_threads(folder: Path, checkins: int) -> dict[str, Any]:
    """Targets per second of castpoi-next: a step in two parts, or every operation divided.

    Both on two cores, alone and beside one busy process; the parts also on one core.
    """
    city = city_to_measure(folder)
    model = _model(city, ModelConfig.preset("next")).train()
    objective: Any = objective_of(city, model.config, CastPoiTraining.preset("next"), seed=7)
    batches = objective.batches(0)[:NEXT_STEPS]
    targets: int = sum(objective.targets(batch) for batch in batches)

    def speed(*, parts: int, threads: int) -> float:
        inner = threads if parts == 1 else 1
        with (
            deterministic(torch.device("cpu"), threads=inner),
            StepParts.of(objective, parts, threads=threads) as step,
        ):
            return targets / best_of(
                2, lambda: [step.backward(model, each, ()) for each in batches]
            )

    counter = FlopCounterMode(display=False)
    with counter:
        _step(objective, model, batches[0])
    flop = counter.get_total_flops() / objective.targets(batches[0])
    one, two, divided = (
        speed(parts=2, threads=1),
        speed(parts=2, threads=2),
        speed(parts=1, threads=2),
    )
    with deterministic(torch.device("cpu"), threads=1):
        rate = _product_rate()
    with _busy_process():
        busy, divided_busy = speed(parts=2, threads=2), speed(parts=1, threads=2)
    return {
        **_size(city),
        "targets": targets,
        "one_core_per_second": one,
        "two_parts_per_second": two,
        "two_threads_per_second": divided,
        "two_parts_beside_a_process_per_second": busy,
        "two_threads_beside_a_process_per_second": divided_busy,
        "times_slower_beside_a_process": two / busy,
        "mflop_per_target": flop / 1e6,
        "share_of_product_rate_one_core": one * flop / rate,
    }


@contextmanager
def _busy_process() -> Iterator[None]:
    """While the block runs, another process occupies one core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def exact_scoring(folder: Path, checkins: int) -> dict[str, Any]:
    """Exact scoring of all places for every test target, as a share of the matrix-product rate.

    Counts the products of the reader and the head, for the real visits of each history.
    """
    city = city_to_measure(folder)
    rows = city.targets(record.TEST)
    config = ModelConfig.preset("fast")
    lat, lon = _coordinates(city)
    builder = BatchBuilder(config=config, lat=lat, lon=lon)
    ranker = CastPoiRanker(_model(city, config), builder)
    encoded = ranker.encode(city.trajectories.histories_before(rows))
    rate = _product_rate()
    seconds = best_of(2, lambda: ranker.score(encoded))
    visits = encoded.is_real.sum(dim=1).clamp(min=1).tolist()  # an empty history has one slot
    work = city.places.height * sum(pair_flop(config, visits=each) for each in visits)
    return {
        **_size(city),
        "targets": len(rows),
        "visits_read": sum(visits) / len(rows),
        "seconds": seconds,
        "gflop_per_second": work / seconds / 1e9,
        "product_gflop_per_second": rate / 1e9,
        "share_of_product_rate": work / seconds / rate,
    }


def pair_flop(config: ModelConfig, *, visits: int) -> int:
    """Floating-point operations of the reader and the head for one candidate and one history.

    Values that are computed once per place, for all histories, do not count: the queries of the
    first layer and the candidate's part of the head.
    """
    width, layers = config.width, config.reader_layers
    attention = 2 * visits * width + width**2  # logits, weighted sum, output projection
    feed_forward = 2 * width * config.feed_forward_width
    queries, head = (layers - 1) * width**2, 2 * width**2 + width
    return 2 * (layers * (attention + feed_forward) + queries + head)


def _size(city: City) -> dict[str, Any]:
    name = os.environ.get("CASTPOI_CITY")
    return {"city": Path(name).name if name else "synthetic", "places": city.places.height}


def _product_rate() -> float:
    """Floating-point operations per second of a large float32 matrix product."""
    size = 2048
    left, right = torch.rand(size, size), torch.rand(size, size)
    seconds = best_of(8, lambda: left @ right)
    return 2 * size**3 / seconds


def _model(city: City, config: ModelConfig) -> CastPoi:
    lat, lon = _coordinates(city)
    return new_model(config=config, lat=lat, lon=lon, seed=7)


def _coordinates(city: City) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return city.places[record.LAT].to_numpy(), city.places[record.LON].to_numpy()
