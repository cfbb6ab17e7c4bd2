"""Requests and training in a region of very many places.

CASTPOI_RUN is the folder of a run of castpoi-next on a real city. Its places are multiplied to a
region of up to a million: every copy is up to a kilometre away, and its vector and popularity
differ from those of the original as those of different places do, by half their spread. So copies
compete with their original, which is harder than a region of independent places. The histories are
those of the run's city; for training, every user visits copies of their own.

All times are CPU time with one thread: the machine may be shared.
"""

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import torch

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.methods.run import Run, city_of, load_run
from castpoi.model.castpoi import new_model
from castpoi.model.config import ModelConfig
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request
from castpoi.training.castpoi import objective_of
from castpoi.training.config import CastPoiTraining
from castpoi.training.loop import TrainingContext, TrainingLoop

SIZES: Final = (10_000, 100_000, 1_000_000)
REQUESTS: Final = 100
STEPS: Final = {"sampled": 60, "fast": 6}
MAX_PLACES_OF_FAST: Final = 100_000
NOISE: Final = 0.5  # of the spread of vectors and popularity
CATEGORIES: Final = 20
FILTERS: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "new_only": {"new_only": True},
    "within 2 km": {"within_km": 2.0},
    "category": {"categories": ["category 3"]},
}
DEGREES: Final = 0.01  # largest shift of a copy: about a kilometre


def enlarged(run: Run, places: int, *, seed: int = 7) -> Run:
    """A run with copies of its places, without a folder."""
    rng = np.random.default_rng(seed)
    own = run.places.height
    copy = np.concatenate([np.arange(own), rng.integers(own, size=places - own)])  # [P]
    is_copy = np.arange(places) >= own
    arrays: dict[str, Any] = dict(run.ranker.arrays)
    for name in ("place.weight", "popularity"):
        weight = arrays[name][1:]
        noise = rng.standard_normal((places, *weight.shape[1:]), dtype=np.float32)
        noise *= NOISE * weight.std(axis=0) * is_copy.reshape(-1, *[1] * (weight.ndim - 1))
        arrays[name] = np.concatenate([arrays[name][:1], weight[copy] + noise])
    shift = rng.uniform(-DEGREES, DEGREES, size=(2, places)) * is_copy
    arrays["places.lat"] = arrays["places.lat"][copy] + shift[0]
    arrays["places.lon"] = arrays["places.lon"][copy] + shift[1]
    categories = pl.Series([f"category {number}" for number in range(CATEGORIES)])
    table = run.places[copy].with_columns(
        pl.int_range(places).cast(run.places.schema[record.PLACE]).alias(record.PLACE),
        pl.format("{}-{}", record.PLACE_ID, pl.int_range(places)).alias(record.PLACE_ID),
        categories[rng.integers(CATEGORIES, size=places)].alias(record.CATEGORY),
        pl.Series(record.LAT, arrays["places.lat"]),
        pl.Series(record.LON, arrays["places.lon"]),
    )
    ranker = type(run.ranker).restore(run.ranker.config, arrays)
    return replace(run, ranker=ranker, places=table)


def requests_in_a_large_region(folder: Path, checkins: int) -> dict[str, Any]:
    """CPU milliseconds of one request with the index and without, and how many places agree."""
    run = load_run(Path(os.environ["CASTPOI_RUN"]))
    torch.set_num_threads(1)
    return {f"{places:,} places": _requests_among(enlarged(run, places)) for places in SIZES}


def training_in_a_large_region(folder: Path, checkins: int) -> dict[str, Any]:
    """Targets per CPU second of the sampled objective, and of the one over all places."""
    run = load_run(Path(os.environ["CASTPOI_RUN"]))
    torch.set_num_threads(1)
    return {f"{places:,} places": _training_among(run, places) for places in SIZES}


def _training_among(run: Run, places: int) -> dict[str, Any]:
    city = city_of_copies(city_of(run), enlarged(run, places).places)
    model, found = ModelConfig.preset("next"), {}
    for name in ("sampled", "fast"):
        if name == "fast" and places > MAX_PLACES_OF_FAST:
            continue
        training = replace(CastPoiTraining.preset("next"), objective=name)
        objective = objective_of(city, model, training, seed=7)
        network = new_model(config=model, lat=city.lat, lon=city.lon, seed=7)
        loop = TrainingLoop(
            network, objective, lambda _: {}, config=training, seed=7, context=TrainingContext()
        )
        network.train()
        batches = objective.batches(0)[: STEPS[name]]
        loop._step(batches[0], 1e-3, 0)  # warm up
        began, targets = time.process_time(), 0
        for batch in batches:
            targets += loop._step(batch, 1e-3, 0)[1]
        seconds = time.process_time() - began
        found[f"{name}_targets_per_second"] = targets / seconds
        if loop.rows is not None:
            began = time.process_time()
            loop.rows.catch_up()
            found["catch_up_seconds"] = time.process_time() - began
    found["peak_gb_so_far"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found


def city_of_copies(city: City, places: pl.DataFrame) -> City:
    """The check-ins of a city at copies of its places; each user has one copy of every place."""
    own = city.places.height
    original = places[record.PLACE_ID].str.replace(r"-\d+$", "")
    number_of = dict(zip(city.places[record.PLACE_ID], range(own), strict=True))
    order = np.argsort([number_of[each] for each in original], kind="stable")  # copies together
    counts = np.bincount([number_of[each] for each in original], minlength=own)
    first = np.cumsum(counts) - counts
    place = city.checkins[record.PLACE].to_numpy().astype(np.int64)
    user = city.checkins[record.USER].to_numpy().astype(np.int64)
    copy = order[first[place] + user * 7_919 % counts[place]]
    column = pl.Series(record.PLACE, copy).cast(city.checkins.schema[record.PLACE])
    table = places.select(city.places.columns)
    return replace(city, checkins=city.checkins.with_columns(column), places=table)


def _requests_among(run: Run) -> dict[str, Any]:
    ranker: Any = run.ranker
    began = time.process_time()
    index = ranker.index
    seconds = time.process_time() - began
    recommender = load(run)
    recommender.finder = ranker  # also below the number of places from which it is used
    rng = np.random.default_rng(7)
    users = rng.permutation(recommender.city.users[record.USER_ID].to_numpy())[:REQUESTS]
    parts = [each for each in vars(index).values() if each is not index.vectors]
    found: dict[str, Any] = {
        "index_seconds": seconds,
        "index_mb": sum(each.nbytes for each in parts) / 1e6,
        "vectors_mb": index.vectors.nbytes / 1e6,
    }
    excluded = [recommender.places.ids[each] for each in range(0, len(recommender.places), 50)]
    for name, options in {**FILTERS, "exclude": {"exclude": excluded[:1000]}}.items():
        requests = [Request.of(user=user, **options) for user in users]
        found[name] = _compared(recommender, requests)
    return found


def _compared(recommender: Recommender, requests: Sequence[Request]) -> dict[str, Any]:
    """Both ways for the same requests; every tenth is also scored in full."""
    indexed, answers = _timed(recommender, requests)
    finder, recommender.finder = recommender.finder, None
    full, expected = _timed(recommender, requests[::10])
    recommender.finder = finder
    same, error = [], []
    for answer, exact in zip(answers[::10], expected, strict=True):
        wanted = {each.place for each in exact}
        same.append(len(wanted & {each.place for each in answer}) / len(wanted))
        first, right = next(iter(answer)), next(iter(exact))
        error.append(np.log(first.probability / right.probability))
    return {
        "p50_ms": 1e3 * float(np.median(indexed)),
        "p99_ms": 1e3 * float(np.quantile(indexed, 0.99)),
        "full_p50_ms": 1e3 * float(np.median(full)),
        "agreement": float(np.mean(same)),
        "probability_error": float(np.sqrt(np.mean(np.square(error)))),
    }


def _timed(
    recommender: Recommender, requests: Sequence[Request]
) -> tuple[list[float], list[Recommendations]]:
    seconds, answers = [], []
    recommender.recommend_many(requests[:1])  # warm up
    for request in requests:
        began = time.process_time()
        answers += recommender.recommend_many([request])
        seconds.append(time.process_time() - began)
    return seconds, answers
