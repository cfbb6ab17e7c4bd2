"""A model that is updated every day (`castpoi train --from`) against one trained from scratch.

    python -m benchmarks.daily TABLE --box S N W E --first 2010-10-08 --work FOLDER --out FILE.json

Each day is predicted by models of all check-ins before it. A target is a visit of that day at a
place and by a user with at least five earlier check-ins; its history is everything before it.

- *scratch*: trained on all check-ins before the day;
- *updated*: continues from the updated model of the day before, the first from `scratch`;
- *carried*: the model of the first day, with new places but never trained again.

What is finished is kept in FOLDER: the same command resumes. Seconds are CPU time of one thread.
"""

import argparse
import json
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl

import castpoi
from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.provenance import commit, versions
from castpoi.evaluation.metrics import metrics_of
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.run import Run, load_run
from castpoi.model.castpoi import new_model
from castpoi.model.ranker import CastPoiRanker
from castpoi.model.windows import BatchBuilder
from castpoi.training.continued import take_over

KNOWN_FROM: Final = 5
"""Earlier check-ins that the user and the place of a target need."""
METRICS: Final = ("MRR", "HR@10")


def city_of_day(table: pl.DataFrame, day: date, folder: Path) -> City:
    """The city whose train split ends before a day, and whose test split is that day."""
    if folder.exists():
        return City.load(folder)
    on = pl.col("utc_time").str.slice(0, 10).str.to_date()
    part = pl.when(on < day).then(pl.lit(record.TRAIN)).otherwise(pl.lit(record.TEST))
    rows = table.filter(on <= day).with_columns(part.alias("part"))
    is_train = pl.col("part") == record.TRAIN
    is_known = [is_train.sum().over(each) >= KNOWN_FROM for each in ("poi", "user")]
    columns = ["user", "poi", "lat", "lon", "utc_time", "part"]
    return castpoi.prepare(rows.filter(is_known).select(columns), out=folder, split="given")


def in_box(table: pl.DataFrame, box: list[float] | None) -> pl.DataFrame:
    """The rows of a table between two latitudes and two longitudes."""
    rows = table.with_columns(pl.col("lat", "lon").cast(pl.Float64))
    if box is None:
        return rows
    south, north, west, east = box
    is_inside = pl.col("lat").is_between(south, north) & pl.col("lon").is_between(west, east)
    return rows.filter(is_inside)


def carried(run: Run, city: City) -> CastPoiRanker:
    """The model of a run for a later city, as it was."""
    ranker: Any = run.ranker
    config, lat, lon = ranker.model.config, city.lat, city.lon
    model = new_model(config=config, lat=lat, lon=lon, seed=0)
    take_over(model, run, city)
    return CastPoiRanker(model, BatchBuilder(config=config, lat=lat, lon=lon))


def scored(make: Callable[[], Any], city: City, file: Path) -> dict[str, float]:
    """Metrics of a model on the day, and the CPU time to make it; kept in a file."""
    if not file.exists():
        began = time.process_time()
        ranker = make()
        seconds = round(time.process_time() - began, 1)
        rows = city.targets(record.TEST)
        found = metrics_of(rank_targets(ranker, city.trajectories, rows, method="daily"))
        scores = {name: round(100 * (found[name] or 0.0), 2) for name in METRICS}
        file.write_text(json.dumps({**scores, "seconds": seconds}))
    return dict(json.loads(file.read_text()))


def scored_day(city: City, work: Path, day: date, first: date) -> dict[str, Any]:
    """The three models of a day."""

    def run(kind: str, on: date) -> Path:
        return work / f"{'scratch' if on == first else kind}-{on}"

    def trained(out: Path, **more: Any) -> Any:
        if out.exists():
            return load_run(out).ranker
        return castpoi.train(city, out=out, threads=1, **more).run.ranker

    before = run("updated", day - timedelta(days=1))
    makes: dict[str, Callable[[], Any]] = {"scratch": lambda: trained(run("scratch", day))}
    if day > first:
        makes["updated"] = lambda: trained(run("updated", day), from_run=before)
        makes["carried"] = lambda: carried(load_run(run("scratch", first)), city)
    size = {"targets": int(city.manifest["test"]), "checkins": int(city.manifest["train"])}
    places = {"places": city.places.height}
    if day > first:
        known = load_run(before).places[record.PLACE_ID]
        is_new = ~city.places[record.PLACE_ID].is_in(known.implode())
        places["new_places"] = int(is_new.sum())
    return {**size, **places} | {
        kind: scored(make, city, work / f"{kind}-{day}.json") for kind, make in makes.items()
    }


def summary(days: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Means over all targets after the first day, and seconds a day."""
    later = [each for each in days.values() if "updated" in each]
    targets = sum(each["targets"] for each in later)
    means: dict[str, Any] = {"targets": targets, "days": len(later)}
    for kind in ("scratch", "updated", "carried"):
        means[kind] = {
            name: round(sum(each[kind][name] * each["targets"] for each in later) / targets, 2)
            for name in METRICS
        }
        means[kind]["seconds"] = round(sum(each[kind]["seconds"] for each in later) / len(later), 1)
    return means


def main() -> None:
    """Score every day that is not in the folder yet, and write the file after each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.daily", description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--box", type=float, nargs=4, metavar="DEGREES")
    parser.add_argument("--first", type=date.fromisoformat, required=True)
    parser.add_argument("--days", type=int, default=7, help="days after the first one")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    table = in_box(pl.read_csv(options.table, infer_schema_length=0), options.box)
    options.work.mkdir(parents=True, exist_ok=True)
    days: dict[str, dict[str, Any]] = {}
    for number in range(options.days + 1):
        day = options.first + timedelta(days=number)
        city = city_of_day(table, day, options.work / f"city-{day}")
        days[str(day)] = scored_day(city, options.work, day, options.first)
        print(day, json.dumps(days[str(day)]), flush=True)
        origin = {"versions": versions(), "commit": commit(), "table": options.table.name}
        result = {**origin, "box": options.box, "days": days}
        if number:
            result["mean"] = summary(days)
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
