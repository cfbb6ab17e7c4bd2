"""Requests in a region of very many places: the index against scoring every place.

CASTPOI_RUN is the folder of a run of castpoi-next on a real city. Its places are multiplied to a
region of up to a million: every copy is up to a kilometre away, and its vector and popularity
differ from those of the original as those of different places do, by half their spread. So copies
compete with their original, which is harder than a region of independent places. The histories are
those of the test targets of the run's city.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.methods.run import Run, load_run
from castpoi.recommend.recommendation import Recommendations
from castpoi.recommend.recommender import Recommender, load
from castpoi.recommend.request import Request

SIZES: Final = (10_000, 100_000, 1_000_000)
REQUESTS: Final = 200
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
    """Milliseconds of one request with the index and without, and how many places agree."""
    run = load_run(Path(os.environ["CASTPOI_RUN"]))
    return {f"{places:,} places": _requests_among(enlarged(run, places)) for places in SIZES}


def _requests_among(run: Run) -> dict[str, Any]:
    recommender = load(run)
    ranker: Any = run.ranker
    began = time.perf_counter()
    ranker.build_index()
    seconds = time.perf_counter() - began
    recommender.finder = ranker  # also below the number of places from which it is used
    rng = np.random.default_rng(7)
    users = rng.permutation(recommender.city.users[record.USER_ID].to_numpy())[:REQUESTS]
    index = ranker.index
    found: dict[str, Any] = {
        "index_seconds": seconds,
        "index_mb": sum(each.nbytes for each in vars(index).values() if each is not index.vectors)
        / 1e6,
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
    some = requests[::10]
    finder, recommender.finder = recommender.finder, None
    full, expected = _timed(recommender, some)
    recommender.finder = finder
    same, wrong = [], []
    for answer, exact in zip(answers[::10], expected, strict=True):
        wanted = {each.place for each in exact}
        same.append(len(wanted & {each.place for each in answer}) / len(wanted))
        first, right = next(iter(answer)), next(iter(exact))
        wrong.append(abs(first.probability / right.probability - 1))
    return {
        "p50_ms": 1e3 * float(np.median(indexed)),
        "p99_ms": 1e3 * float(np.quantile(indexed, 0.99)),
        "full_p50_ms": 1e3 * float(np.median(full)),
        "agreement": float(np.mean(same)),
        "probability_error": float(np.max(wrong)),
    }


def _timed(
    recommender: Recommender, requests: Sequence[Request]
) -> tuple[list[float], list[Recommendations]]:
    seconds, answers = [], []
    recommender.recommend_many(requests[:1])  # warm up
    for request in requests:
        began = time.perf_counter()
        answers += recommender.recommend_many([request])
        seconds.append(time.perf_counter() - began)
    return seconds, answers
