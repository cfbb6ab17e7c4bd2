"""A model that is updated every day (`castpoi train --from`) against one trained from scratch.

    python -m benchmarks.daily TABLE --first 2010-10-08 --days 7 --work FOLDER --out FILE.json

Each day is predicted by models of all check-ins before it: a target is every visit of the day at a
place and by a user with at least five earlier check-ins, and its history is everything before it.

- *scratch*: trained on all check-ins before the day;
- *updated*: continues from the updated model of the day before, the first from `scratch`;
- *carried*: weights of the first day, never trained again; only new places are added.

What is finished is kept in FOLDER: the same command resumes. Seconds are CPU time of one thread.
"""

import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, Final

import polars as pl

import castpoi
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.run import Run
from castpoi.model.castpoi import new_model
from castpoi.model.ranker import CastPoiRanker
from castpoi.training.continued import take_over

KNOWN_FROM: Final = 5
"""Earlier check-ins that a user and a place of a target need."""
METRICS: Final = ("MRR", "HR@10")


def city_of_day(table: pl.DataFrame, day: date, folder: Path) -> City:
    """The city whose train split ends before a day, and whose test split is that day."""
    if folder.exists():
        return City.load(folder)
    on = pl.col("utc_time").str.slice(0, 10).str.to_date()
    part = pl.when(on < day).then(pl.lit(record.TRAIN)).otherwise(pl.lit(record.TEST))
    rows = table.filter(on <= day).with_columns(part.alias("part"))
    is_train = pl.col("part") == record.TRAIN
    counts = [is_train.sum().over(each) >= KNOWN_FROM for each in ("poi", "user")]
    columns = ["user", "poi", "lat", "lon", "utc_time", "part", *({"category"} & {*rows.columns})]
    return castpoi.prepare(rows.filter(counts).select(columns), out=folder, split="given")


def scores(ranker: Any, city: City) -> dict[str, float]:
    """Metrics on the visits of the day."""
    rows = city.targets(record.TEST)
    found = metrics_of(rank_targets(ranker, city.trajectories, rows, method="daily"))
    return {name: round(100 * found[name], 2) for name in METRICS} | {"targets": len(rows)}


def carried(run: Run, city: City) -> Run:
    """A run with the weights of another one, as they were."""
    ranker: Any = run.ranker
    model = new_model(config=ranker.model.config, lat=city.lat, lon=city.lon, seed=0)
    take_over(model, run, city)
    return CastPoiRanker(
        model, type(ranker.builder)(config=model.config, lat=city.lat, lon=city.lon)
    )


def measured(make: Callable[[], Any], city: City, file: Path) -> dict[str, Any]:
    """Scores of a model and the seconds it took, unless they are in the file already."""
    if not file.exists():
        began = time.process_time()
        ranker = make()
        seconds = round(time.process_time() - began, 1)
        file.write_text(json.dumps({**scores(ranker, city), "seconds": seconds}))
    return dict(json.loads(file.read_text()))
