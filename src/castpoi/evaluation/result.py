"""A result on disk: the rank of every target, the metrics, and where they come from.

RESULT/ranks.parquet   one row per target, joined across methods by `checkin`
RESULT/metrics.json    metrics, strata, n, seconds, and properties of the ten best places (beyond)
RESULT/manifest.json   method, row (method, preset, settings), seed, fingerprint and size of the
                       city, part, command, versions, commit, wall time, SHA-256 of the files
RESULT/run/            manifest, config and log of its run, only in a suite

Only the owner of the files may read the table: its rows are visits of people.
"""

import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.record import HOUR_US
from castpoi.checkins.trajectory import Trajectories
from castpoi.core.errors import BrokenFolder
from castpoi.core.files import (
    SHA256,
    OfMethod,
    check_files,
    new_folder,
    read_json,
    read_manifest,
    read_table,
    write_json,
    write_manifest,
    write_private_table,
)
from castpoi.core.notebook import html_table
from castpoi.evaluation.beyond import BeyondAccuracy, counts_in_train
from castpoi.evaluation.metrics import METRICS, Metrics, metrics_of, strata_of
from castpoi.geo.distance import haversine_km

RANK: Final = "rank"
IS_REVISIT: Final = "is_revisit"
HISTORY_LENGTH: Final = "history_length"
PLACE_COUNT_IN_TRAIN: Final = "place_count_in_train"
KM_FROM_LAST_VISIT: Final = "km_from_last_visit"
HOURS_SINCE_LAST_VISIT: Final = "hours_since_last_visit"
OVERLAP: Final = "overlap_with_train"

RANK_SCHEMA: Final = pl.Schema(
    {
        record.CHECKIN: pl.UInt32,
        record.USER: pl.UInt32,
        record.PLACE: pl.UInt32,
        RANK: pl.Float64,
        IS_REVISIT: pl.Boolean,
        HISTORY_LENGTH: pl.UInt32,
        PLACE_COUNT_IN_TRAIN: pl.UInt32,
        KM_FROM_LAST_VISIT: pl.Float64,
        HOURS_SINCE_LAST_VISIT: pl.Float64,
        OVERLAP: pl.UInt32,  # null in results that were made before it was measured
    }
)

RANKS: Final = "ranks.parquet"
_METRICS: Final = "metrics.json"
_OF_RUN: Final = ("manifest.json", "config.json", "log.jsonl")
EXPERIMENT: Final = "experiment"  # entry of the manifest: how `castpoi reproduce` made the result

_NEEDS: Final = frozenset(
    {"method", "row", "seed", "part", "known_time", "fingerprint", "seconds"}
    | {"places", "users", "checkins", SHA256}
)
_SHOWN: Final = ("HR@10", "MRR")
_EVALUATE_AGAIN: Final = "evaluate again with 'castpoi evaluate'"


@dataclass(frozen=True, kw_only=True)
class Result(OfMethod):
    """The ranks that one method gave the targets of one split of a city."""

    ranks: pl.DataFrame  # one row per target, in canonical order
    beyond: BeyondAccuracy  # properties of the ten best places of all targets
    seconds: float  # time to encode, score and rank all targets, and to list their best places
    name: str = "this result"  # its folder, for errors

    @property
    def part(self) -> str:
        """The split whose targets were predicted: test or validation."""
        return str(self.manifest["part"])

    @property
    def known_time(self) -> bool:
        """Whether the method was given the time of each target."""
        return bool(self.manifest["known_time"])

    @property
    def places(self) -> int:
        """Number of places in the vocabulary."""
        return int(self.manifest["places"])

    @cached_property
    def by_checkin(self) -> pl.DataFrame:
        """The ranks in ascending order of check-in, to be joined with those of other results."""
        return self.ranks.sort(record.CHECKIN)

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics over all targets."""
        return metrics_of(self.ranks[RANK].to_numpy())

    @cached_property
    def strata(self) -> dict[str, dict[str, float | int | None]]:
        """The metrics and `n` for revisits and for new places."""
        return strata_of(self.ranks[RANK].to_numpy(), self.ranks[IS_REVISIT].to_numpy())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {100 * (self.metrics[name] or 0):.2f} %" for name in _SHOWN)
        return f"Result of {self.method} on {self.ranks.height:,} {self.part} targets: {shown}"

    def _repr_html_(self) -> str:
        sides = [self.metrics, *self.strata.values()]
        fractions = [[name, *(side[name] for side in sides)] for name in METRICS]
        rows = [
            [name, *("–" if each is None else f"{100 * float(each):.2f}" for each in own)]
            for name, *own in fractions
        ]
        return html_table(["%", "all", *self.strata], rows, caption=repr(self))

    def summary(self) -> dict[str, Any]:
        """Metrics, strata, number of targets and seconds, as JSON can hold them."""
        return {
            "metrics": self.metrics,
            "strata": self.strata,
            "n": self.ranks.height,
            "seconds": round(self.seconds, 3),
        }

    def save(
        self, folder: str | PathLike[str], *, overwrite: bool = False, run: Path | None = None
    ) -> None:
        """Write the result, with the records of its run; it appears whole or not at all."""
        with new_folder(Path(folder), kind="result", overwrite=overwrite) as staging:
            write_private_table(self.ranks, staging / RANKS)
            write_json(staging / _METRICS, {**self.summary(), "beyond": asdict(self.beyond)})
            if run is not None:
                copy_records(run, staging)
            write_manifest(staging, self.manifest)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> "Result":
        """Read a result and check its files."""
        folder = Path(folder)
        manifest = read_manifest(folder, kind="result", needs=_NEEDS)
        check_files(folder, manifest, (RANKS, _METRICS))
        ranks, metrics = folder / RANKS, read_json(folder / _METRICS)
        try:
            beyond = BeyondAccuracy.from_dict(metrics["beyond"])
        except (KeyError, TypeError) as problem:
            raise BrokenFolder(
                f"{folder / _METRICS} is incomplete ({problem}); {_EVALUATE_AGAIN}"
            ) from problem
        result = cls(
            ranks=read_table(ranks, RANK_SCHEMA, how_to_fix=_EVALUATE_AGAIN, optional={OVERLAP}),
            beyond=beyond,
            seconds=float(manifest["seconds"]),
            manifest=manifest,
            name=str(folder),
        )
        fault = _fault_of(result.ranks, places=result.places)
        if fault is not None:
            raise BrokenFolder(f"{ranks} is damaged ({fault}); {_EVALUATE_AGAIN}")
        return result


def copy_records(run: Path, folder: Path) -> None:
    """Copy the manifest, config and log of a run into a folder, as `run`."""
    (folder / "run").mkdir(parents=True, exist_ok=True)
    for name in _OF_RUN:
        shutil.copyfile(run / name, folder / "run" / name)


def rank_table(city: City, rows: NDArray[np.int64], ranks: NDArray[np.float64]) -> pl.DataFrame:
    """One row per target of `city.trajectories`; distance and hours are null after no visit."""
    trajectories = city.trajectories
    place = trajectories.place[rows]
    has_history = rows > trajectories.starts[rows]
    before = np.where(has_history, rows - 1, rows)
    lat, lon = city.lat, city.lon
    last = trajectories.place[before]
    hours = (trajectories.at_us[rows] - trajectories.at_us[before]) / HOUR_US
    table = pl.DataFrame(
        {
            record.CHECKIN: trajectories.checkin[rows],
            record.USER: trajectories.user[rows],
            record.PLACE: place,
            RANK: ranks,
            IS_REVISIT: trajectories.is_revisit(rows, window=REVISIT_WINDOW),
            HISTORY_LENGTH: rows - trajectories.starts[rows],
            PLACE_COUNT_IN_TRAIN: counts_in_train(city)[place],
            KM_FROM_LAST_VISIT: haversine_km(lat[last], lon[last], lat[place], lon[place]),
            HOURS_SINCE_LAST_VISIT: hours,
            OVERLAP: overlap_with_train(trajectories, rows),
        }
    ).cast(RANK_SCHEMA)
    return table.with_columns(
        pl.when(pl.Series(has_history)).then(pl.col(KM_FROM_LAST_VISIT, HOURS_SINCE_LAST_VISIT))
    )


def _fault_of(table: pl.DataFrame, *, places: int) -> str | None:
    """The fault of a table of ranks; None if there is none.

    A rank is 1 to the number of places, and whole or half.
    """
    if not table.height:
        return "it has no target"
    if any(table[each].null_count() for each in (record.CHECKIN, RANK, IS_REVISIT)):
        return "a check-in, rank or is_revisit is missing"
    if table[record.CHECKIN].is_duplicated().any():
        return "a check-in is in two rows"
    ranks = table[RANK].to_numpy()
    is_rank = (ranks >= 1) & (ranks <= places) & (2 * ranks == np.floor(2 * ranks))
    if is_rank.all():
        return None
    return f"{ranks[~is_rank][0]:g} is no rank among {places:,} places"


MAX_LENGTH: Final = 4  # longest sequence that is compared, in visits


def overlap_with_train(trajectories: Trajectories, targets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Visits of the longest sequence that ends with each target and occurs in train.

    Could the target be memorised? The sequence is that of a train trajectory of any user: 1 if only
    the place occurs there, 2 if somebody has made the same move to it, and so on (overlap from the
    end, Luca et al. 2023).
    """
    place = trajectories.place
    is_train = trajectories.part == record.PARTS.index(record.TRAIN)
    position = np.arange(len(place)) - trajectories.starts  # visits of the user before each
    sequence, in_train = place, is_train  # the number of the sequence that ends at each visit
    overlap = np.zeros(len(targets), dtype=np.int64)
    for length in range(1, MAX_LENGTH + 1):
        if length > 1:
            before = np.r_[0, sequence[:-1]]
            pairs = before * (int(place.max()) + 1) + place
            sequence = np.unique(pairs, return_inverse=True)[1]
            in_train = np.r_[False, in_train[:-1]] & is_train & (position >= length - 1)
        is_known = np.isin(sequence[targets], sequence[in_train])
        overlap[is_known & (position[targets] >= length - 1)] = length
    return overlap
