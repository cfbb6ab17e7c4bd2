"""What every method costs on one core: training, memory and an answer.

    python -m benchmarks.costs CITY --out results/costs.json [--only ROW ...]

CITY is the folder of a prepared city, named as in `results`. Each row of the suites `tuned` and
`peers` gets a process of its own with one thread. Times are CPU seconds, so that other work on the
machine hardly matters. A short training and a shorter one give the time of an epoch and of all
around the epochs; a whole training has as many epochs as the committed runs of the row. Rows that
OUT already has, and that are not measured again, are kept.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SUITES: Final = ("tuned", "peers")
REQUESTS: Final = 300
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def cost_of(city_folder: Path, row: Any) -> dict[str, Any]:
    """CPU seconds around the epochs and of an epoch, parameters, and milliseconds of an answer."""
    from castpoi.checkins.city import City
    from castpoi.methods.registry import METHODS
    from castpoi.training.job import TrainingOptions
    from castpoi.training.train import fit, settings_of

    city, method = City.load(city_folder), METHODS.named(row.method)
    has_epochs = method.has_seeds and "epochs" in settings_of(method)

    def train(epochs: int) -> Any:
        settings = {"epochs": str(epochs), "threads": "1"} if has_epochs else {}
        options = TrainingOptions(preset=row.preset, settings={**row.settings, **settings})
        return fit(city, method, seed=42, options=options if row.is_learned else None)

    if row.is_learned:
        method.trainer_function()  # imports torch
    run, seconds = _cpu(lambda: train(1))
    found = {"around_epochs_s": seconds}
    if has_epochs:
        more = max(1, round(method.demo_epochs))  # an epoch of trees is short
        run, longer = _cpu(lambda: train(1 + more))
        epoch = (longer - seconds) / more
        found = {"around_epochs_s": max(0.0, seconds - epoch), "epoch_s": epoch}
    started = (each for each in map(json.loads, run.log.splitlines()) if "parameters" in each)
    parameters = next(started, {}).get("parameters", 0)
    return {**found, "parameters": parameters, "request_ms": _request_ms(run, city)}


def _request_ms(run: Any, city: Any) -> float:
    """Median CPU time of the ten best places for one user after another."""
    from castpoi import load
    from castpoi.checkins import record

    model = load(run, city=city)
    users = city.users[record.USER_ID].to_list()[:REQUESTS]
    for user in users[:10]:  # warm up
        model.recommend(user=user)
    return 1000 * median(_cpu(partial(model.recommend, user=user))[1] for user in users)


def _cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    """The result of some work, and its CPU seconds."""
    began = time.process_time()
    return work(), time.process_time() - began


def epochs_of(city: str, row: str) -> float | None:
    """Mean number of epochs of the committed runs of a row."""
    manifests = sorted((ROOT / "results" / city).glob(f"{row}-[0-9]*/manifest.json"))
    runs = [json.loads(each.read_text())["trained"]["config"] for each in manifests]
    epochs = [each["training"]["epochs"] for each in runs if "epochs" in each.get("training", {})]
    return fmean(epochs) if epochs else None


def rows_of_suites() -> dict[str, Any]:
    """The rows to measure, by name."""
    from castpoi.experiments.suite import read_suite

    tables = [table for suite in SUITES for table in read_suite(suite).tables]
    return {row.name: row for table in tables for row in table.rows}


def main() -> None:
    """Measure the rows one after another, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("city", type=Path)
    parser.add_argument("--only", nargs="+", metavar="ROW")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--print", dest="printed", metavar="ROW", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.printed:
        print(json.dumps(cost_of(options.city, rows_of_suites()[options.printed])))
        return
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    for name in options.only or rows_of_suites():
        measure(name, options.city, options.out)


def measure(name: str, city: Path, out: Path | None) -> None:
    """Measure one row, print it and add it to a file."""
    from benchmarks.measure import measured
    from castpoi.core.provenance import commit

    found = measured("-m", "benchmarks.costs", str(city), "--print", name)
    cost = {**found.printed, "peak_gb": found.peak_gb, "commit": commit()}
    epochs = epochs_of(city.name, name) if "epoch_s" in cost else 0
    if epochs is not None:
        in_epochs = epochs * cost.get("epoch_s", 0.0)
        cost |= {"epochs": epochs, "training_s": cost["around_epochs_s"] + in_epochs}
    print(name, cost, file=sys.stderr)
    if out:
        table = json.loads(out.read_text()) if out.exists() else {}
        table.setdefault(city.name, {})[name] = cost
        out.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
