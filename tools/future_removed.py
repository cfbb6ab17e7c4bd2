"""What methods lose if they learn from no check-in that is later than a target.

    python tools/future_removed.py CITY --model boosted --out results/future/nyc.json

Under leave one out a method learns from what others did after a target. Here the test targets of
CITY are divided by time into blocks of equal size. For each block the method is trained with every
later check-in, of everybody, left out: with the same seed as the model that learns from all. The
ranks of both are compared, target by target. Within a block some future is left, so the losses are
lower bounds. The file OUT keeps other methods; a method that it has already is replaced.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.core.provenance import Stopwatch
from castpoi.evaluation.metrics import metrics_of, per_target
from castpoi.evaluation.ranking import rank_targets
from castpoi.methods.registry import METHODS
from castpoi.training.job import TrainingOptions
from castpoi.training.train import fit

BLOCKS: Final = 6
METRICS: Final = ("MRR", "HR@10")


def until(city: City, cut_us: int) -> City:
    """The city with all check-ins after an instant left out."""
    is_later = pl.Series(city.at_us > cut_us)
    part = pl.when(is_later).then(pl.lit(record.LEFT_OUT)).otherwise(pl.col(record.PART))
    split = city.split.with_columns(part.alias(record.PART)).cast(record.SPLIT_SCHEMA)
    return replace(city, split=split)


def cuts_of(at_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last instant of each block of targets."""
    ends = np.arange(1, BLOCKS + 1) * len(at_us) // BLOCKS - 1
    return np.sort(at_us)[ends]


def ranks_of(city: City, options: argparse.Namespace) -> dict[int, float]:
    """Rank of every test target of a city, by the number of its check-in."""
    method = METHODS.named(options.model)
    training = TrainingOptions(preset=options.preset, settings={"threads": "1"})
    chosen = training if method.has_seeds else TrainingOptions(preset=options.preset)
    ranker = fit(city, method, seed=options.seed, options=chosen).ranker
    rows = city.targets(record.TEST)
    ranks = rank_targets(ranker, city.trajectories, rows, method=method.name)
    return dict(zip(city.trajectories.checkin[rows].tolist(), ranks.tolist(), strict=True))


def both_ranks(city: City, options: argparse.Namespace) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ranks of the test targets by the model that learns from all, and without the future. [N]"""
    rows = city.targets(record.TEST)
    checkins, at_us = city.trajectories.checkin[rows], city.trajectories.at_us[rows]
    cuts = cuts_of(at_us)
    block = np.searchsorted(cuts, at_us)
    found = [ranks_of(until(city, int(cut)), options) for cut in cuts[:-1]]
    found.append(ranks_of(city, options))  # nothing is later than the last cut
    with_all = np.array([found[-1][each] for each in checkins.tolist()])
    without = [found[at][each] for at, each in zip(block.tolist(), checkins.tolist(), strict=True)]
    return with_all, np.array(without)


def compared(with_all: NDArray[Any], without: NDArray[Any]) -> dict[str, Any]:
    """Metrics of both, and the mean change with its standard error."""
    found: dict[str, Any] = {"targets": len(with_all)}
    for metric in METRICS:
        change = per_target(metric, without) - per_target(metric, with_all)
        found[metric] = {
            "all": metrics_of(with_all)[metric],
            "without_future": metrics_of(without)[metric],
            "change": float(change.mean()),
            "standard_error": float(change.std(ddof=1) / np.sqrt(len(change))),
        }
    return found


def main() -> None:
    """Measure one method and write it into OUT."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("city", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--preset")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    city, work = City.load(options.city), Stopwatch()
    with_all, without = both_ranks(city, options)
    rows = city.targets(record.TEST)
    is_revisit = city.trajectories.is_revisit(rows, window=REVISIT_WINDOW)
    strata = {"every": np.ones_like(is_revisit), "revisit": is_revisit, "new": ~is_revisit}
    table = json.loads(options.out.read_text()) if options.out.exists() else {}
    if table.get("fingerprint", city.fingerprint) != city.fingerprint:
        raise SystemExit(f"{options.out} is of another city; choose another --out")
    table["fingerprint"] = city.fingerprint
    table.setdefault("methods", {})[options.model] = {
        "preset": options.preset,
        "seed": options.seed,
        **{name: compared(with_all[some], without[some]) for name, some in strata.items()},
        **work.provenance(),
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
