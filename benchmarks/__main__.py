"""`make bench`: measure speed and memory, each as a ratio to a reference in the same run.

`--only` selects benchmarks, `--out` also writes the numbers to a JSON file.
"""

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.baselines import baselines_against_oracle
from benchmarks.batch import everybody_at_once
from benchmarks.learning import exact_scoring, fast_against_full, parts_against_threads
from benchmarks.measure import best_of, measured, synthetic_source
from benchmarks.scale import requests_in_a_large_region, training_in_a_large_region
from benchmarks.serving import service_for_long, service_under_load
from benchmarks.workers import service_with_workers
from castpoi.baselines.simple import Revisit
from castpoi.checkins.city import City, fingerprint_of
from castpoi.checkins.trajectory import Trajectories
from castpoi.core.provenance import commit, versions
from castpoi.evaluation.ranking import rank_targets

RECIPE = ("--core", "iterate", "--drop-isolated-hours", "24", "--min-session", "2")
SAME = ("checkins", "users", "places", "train", "validation", "test", "revisit_share")


def prepare_against_pandas(folder: Path, checkins: int) -> dict[str, Any]:
    """`castpoi data prepare` against the same recipe in pandas."""
    source = synthetic_source(folder, checkins)
    ours = measured(
        *("-m", "castpoi.cli.main", "data", "prepare", str(source), *RECIPE),
        *("--out", str(folder / "city"), "--overwrite", "--json"),
    )
    theirs = measured("-m", "benchmarks.pandas_prepare", str(source), str(folder / "pandas"))
    for key in SAME:
        if ours.printed[key] != theirs.printed[key]:
            raise SystemExit(f"{key}: ours {ours.printed[key]}, pandas {theirs.printed[key]}")
    return {
        "checkins": ours.printed["checkins"],
        "our_seconds": ours.seconds,
        "pandas_seconds": theirs.seconds,
        "times_faster": theirs.seconds / ours.seconds,
        "our_peak_gb": ours.peak_gb,
        "pandas_peak_gb": theirs.peak_gb,
        "share_of_memory": ours.peak_gb / theirs.peak_gb,
    }


def prepare_large(folder: Path, checkins: int) -> dict[str, Any]:
    """`castpoi data prepare` of ten times as many check-ins: seconds and peak memory."""
    source = synthetic_source(folder, 10 * checkins)
    ours = measured(
        *("-m", "castpoi.cli.main", "data", "prepare", str(source), *RECIPE),
        *("--out", str(folder / "large"), "--json"),
    )
    return {
        "source_gb": source.stat().st_size / 1e9,
        "rows": ours.printed["steps"][0]["checkins_before"],
        "checkins": ours.printed["checkins"],
        "our_seconds": ours.seconds,
        "our_peak_gb": ours.peak_gb,
    }


def fingerprint_against_sha256(folder: Path, checkins: int) -> dict[str, Any]:
    """The fingerprint of a city against a plain SHA-256 of the same number of bytes."""
    city = City.load(folder / "city", verify=False)
    tables = city.checkins, city.users, city.places, city.split
    content = bytes(17 * city.checkins.height)  # user, place, time and split of every check-in
    ours = best_of(3, lambda: fingerprint_of(*tables))
    raw = best_of(3, lambda: hashlib.sha256(content).hexdigest())
    return {
        "checkins": city.checkins.height,
        "our_seconds": ours,
        "sha256_seconds": raw,
        "times_sha256": ours / raw,
    }


def evaluate_heuristic(folder: Path, checkins: int) -> dict[str, Any]:
    """The revisit heuristic for 10,000 users x 10,000 places, against filling that matrix once."""
    rng = np.random.default_rng(7)
    users, places, length = 10_000, 10_000, 100
    popular = rng.zipf(1.5, users * length) % places
    visits = Trajectories(
        checkin=np.arange(users * length),
        user=np.repeat(np.arange(users), length),
        place=popular.astype(np.int64),
        at_us=np.tile(np.arange(length), users) * 3_600_000_000,
        offset_minutes=np.zeros(users * length, dtype=np.int64),
        part=np.zeros(users * length, dtype=np.uint8),
    )
    targets = np.arange(users) * length + length - 1
    ranker = Revisit(popularity=np.bincount(popular, minlength=places))
    ours = best_of(3, lambda: rank_targets(ranker, visits, targets, method="revisit"))
    fill = best_of(3, lambda: np.ones((users, places), dtype=np.float32))
    return {"our_seconds": ours, "fill_seconds": fill, "times_one_fill": ours / fill}


def _text(value: Any) -> str:
    """A name, a number, or a row of named numbers, as printed."""
    if isinstance(value, dict):
        return "  ".join(f"{name} {_text(each)}" for name, each in value.items())
    if isinstance(value, str):
        return value
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


BENCHMARKS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "prepare": prepare_against_pandas,
    "fingerprint": fingerprint_against_sha256,
    "evaluate": evaluate_heuristic,
    "learn": fast_against_full,
    "parts": parts_against_threads,
    "score": exact_scoring,
    "baselines": baselines_against_oracle,
    "batch": everybody_at_once,
    "serve": service_under_load,
}
ON_REQUEST: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "prepare-large": prepare_large,
    "serve-long": service_for_long,
    "serve-workers": service_with_workers,
    "requests-at-scale": requests_in_a_large_region,
    "training-at-scale": training_in_a_large_region,
}
"""Too slow for every `make bench`: they run only with --only."""


def main() -> None:
    """Run the benchmarks and print one line per number."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--checkins", type=int, default=5_000_000, help="size of the synthetic source"
    )
    parser.add_argument(
        "--only", choices=[*BENCHMARKS, *ON_REQUEST], action="append", help="run only these"
    )
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    results: dict[str, Any] = {
        "versions": versions(),
        "commit": commit(),
        "threads": torch.get_num_threads(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or BENCHMARKS:
            benchmark = {**BENCHMARKS, **ON_REQUEST}[name]
            results[name] = benchmark(Path(folder), options.checkins)
            print(f"{name}: {benchmark.__doc__}")
            for key, value in results[name].items():
                print(f"  {key:18} {_text(value)}")
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
