"""Recommendations for many people: next to requests one by one, and to the matrix product alone.

The product of all states and all place vectors is the least work that scores every place; the best
ten of each row are part of it.
"""

import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import torch

from benchmarks.measure import best_of
from benchmarks.serving import TOP, untrained_run
from castpoi.model.config import ModelConfig
from castpoi.recommend.batch import write_batch
from castpoi.recommend.people import People
from castpoi.recommend.recommender import load

PLACES: Final = 5_000
USERS: Final = 4_096
VISITS: Final = 100
"""Mean number of visits of a user; they go to half as many places."""
ALONE: Final = 200
"""Users who are answered one by one."""


def everybody_at_once(folder: Path, checkins: int) -> dict[str, Any]:
    """Users a second in a batch, one by one, and by the matrix product alone."""
    run = untrained_run(folder / "untrained-batch", "castpoi-next", PLACES)
    recommender = load(run)
    visits = visits_of_users()
    people = People.of_visits(visits, k=TOP)
    write_batch(recommender, people, folder / "warm.parquet", overwrite=True)
    began = time.perf_counter()
    write_batch(recommender, people, folder / "recs.parquet", overwrite=True)
    batch = time.perf_counter() - began
    bodies: list[dict[str, Any]] = [
        {"history": own.select("place", "time"), "k": TOP}
        for own in visits.head(2 * ALONE * VISITS).partition_by("user")[:ALONE]
    ]
    began = time.perf_counter()
    for body in bodies:
        recommender.recommend(**body)
    alone = time.perf_counter() - began
    product = best_of(3, product_alone)
    return {
        "users": USERS,
        "places": PLACES,
        "threads": torch.get_num_threads(),
        "batch_users_per_s": USERS / batch,
        "one_by_one_users_per_s": ALONE / alone,
        "product_users_per_s": USERS / product,
        "times_one_by_one": alone / ALONE * USERS / batch,
        "times_product": batch / product,
    }


def visits_of_users() -> pl.DataFrame:
    """A table of visits; the number of visits of a user is between half and double the mean."""
    rng = np.random.default_rng(11)
    lengths = rng.integers(VISITS // 2, 3 * VISITS // 2, size=USERS)
    user = np.repeat(np.arange(USERS), lengths)
    some = rng.integers(PLACES, size=(USERS, VISITS // 2))
    place = some[user, rng.integers(VISITS // 2, size=len(user))]
    hours = rng.integers(24 * 365, size=len(user)) * 3600 + 1_704_067_200
    return pl.DataFrame(
        {"user": user, "place": place, "time": pl.from_epoch(pl.Series(hours), "s")}
    ).with_columns(
        pl.format("place-{}", "place").alias("place"), pl.col("time").dt.replace_time_zone("UTC")
    )


def product_alone() -> None:
    """The scores of all places for random states, and the ten best of each."""
    width = ModelConfig.preset("next").width
    vectors = torch.ones(width, PLACES)
    for _ in range(0, USERS, 256):
        (torch.ones(256, width) @ vectors).topk(TOP)
