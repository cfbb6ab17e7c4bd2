"""The layouts in which check-ins are published, and how a file is recognised as one of them.

| layout        | files                                             | time                     |
|---------------|---------------------------------------------------|--------------------------|
| table         | csv, tsv, their .gz, parquet                      | any, if it says its zone |
| tsmc2014      | 8 tab columns, latin-1, no header                 | weekday, month ... +0000 |
| snap          | 5 tab columns, no header (Gowalla, Brightkite)    | ISO with Z               |
| getnext       | `*_train.csv`, `*_val.csv`, `*_test.csv`          | UTC                      |
| sthgcn        | `train_sample.csv`, `validate_sample*.csv`, `test_sample*.csv` | see sthgcn.py |
| massive-steps | csv with `trail_id` and `venue_id`                | local wall clock         |
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from castpoi.checkins.reading.words import Word, plain
from castpoi.checkins.record import TEST, TRAIN, VALIDATION

NaiveTimes = Literal["utc", "local", "refuse"]

TEXT_SUFFIXES: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
SUFFIXES: Final = (*TEXT_SUFFIXES, ".parquet")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the rows of one published layout are to be read."""

    name: str
    delimiter: str | None = None
    """None: by the file's ending."""
    encoding: str = "utf-8"
    header: tuple[str, ...] | None = None
    """Names of the columns where the file has no header line."""
    columns: Mapping[Word, str] = field(default_factory=dict)
    """Columns with a fixed meaning; the generic table has none."""
    naive_times: NaiveTimes | None = None
    """What a time without offset means; None: not known from the layout."""


TABLE: Final = Layout(name="table")
TSMC2014: Final = Layout(
    name="tsmc2014",
    delimiter="\t",
    encoding="latin-1",
    header=("user", "place", "category_id", "category", "lat", "lon", "offset", "time"),
    columns={
        **{"user": "user", "place": "place", "lat": "lat", "lon": "lon", "time": "time"},
        **{"category": "category", "offset": "offset"},
    },
)
SNAP: Final = Layout(
    name="snap",
    delimiter="\t",
    header=("user", "time", "lat", "lon", "place"),
    columns={"user": "user", "place": "place", "lat": "lat", "lon": "lon", "time": "time"},
)
GETNEXT: Final = Layout(
    name="getnext",
    delimiter=",",
    columns={
        **{"user": "user_id", "place": "POI_id", "lat": "latitude", "lon": "longitude"},
        **{"time": "UTC_time", "offset": "timezone", "category": "POI_catname"},
        **{"session": "trajectory_id"},
    },
    naive_times="utc",
)
STHGCN: Final = Layout(
    name="sthgcn",
    delimiter=",",
    columns={
        **{"user": "UserId", "place": "PoiId", "lat": "Latitude", "lon": "Longitude"},
        # UTCTimeOffset is the wall clock; UTCTimeOffsetEpoch is wrong and never read.
        **{"time": "UTCTimeOffset", "category": "PoiCategoryName"},
        **{"session": "pseudo_session_trajectory_id"},
    },
)
MASSIVE_STEPS: Final = Layout(
    name="massive-steps",
    delimiter=",",
    columns={
        **{"user": "user_id", "place": "venue_id", "lat": "latitude", "lon": "longitude"},
        **{"time": "timestamp", "category": "venue_category", "name": "name"},
        **{"session": "trail_id"},
    },
    naive_times="local",
)
LAYOUTS: Final = {
    layout.name: layout for layout in (TABLE, TSMC2014, SNAP, GETNEXT, STHGCN, MASSIVE_STEPS)
}

_TSMC_TIME: Final = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d\d:\d\d:\d\d \+0000 \d{4}$")
_ISO_TIME: Final = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


def recognise_layout(first_line: str) -> Layout:
    """The layout of a text file, from its first line; a table if it is none of the published."""
    cells = first_line.rstrip("\r\n").split("\t")
    if len(cells) == 8 and _TSMC_TIME.match(cells[7]):
        return TSMC2014
    if len(cells) == 5 and (_ISO_TIME.match(cells[1]) or cells[1:] == [""] * 4):
        return SNAP
    columns = {cell.strip().strip('"') for cell in first_line.strip().split(",")}
    for layout in (GETNEXT, STHGCN, MASSIVE_STEPS):
        if {layout.columns[word] for word in ("user", "place", "time", "session")} <= columns:
            return layout
    return TABLE


def part_by_name(path: Path) -> str | None:
    """The part of the published split that a file of a triple holds, told by its name."""
    stem = path.name.lower().split(".")[0]
    if stem.startswith("train_sample") or stem.endswith("_train"):
        return TRAIN
    if stem.startswith("validate_sample") or stem.endswith("_val"):
        return VALIDATION
    if stem.startswith("test_sample") or stem.endswith("_test"):
        return TEST
    return None


def files_of_folder(folder: Path) -> list[Path]:
    """The files of a folder that hold check-ins; a published triple goes before all else."""
    files = sorted(path for path in folder.iterdir() if path.name.lower().endswith(SUFFIXES))
    triple = [path for path in files if part_by_name(path) is not None]
    names = {part_by_name(path) for path in triple}
    if names == {TRAIN, VALIDATION, TEST}:
        return _prefer_whole_trajectories(triple)
    return files


def _prefer_whole_trajectories(triple: Sequence[Path]) -> list[Path]:
    """STHGCN folders may hold a part twice: last visits only, and `*_with_traj` with all."""
    whole = {part_by_name(path) for path in triple if "with_traj" in path.name}
    return [path for path in triple if part_by_name(path) not in whole or "with_traj" in path.name]


def naive_times_by_column(column: str) -> NaiveTimes | None:
    """What a column's own name says of naive times in it: `utc_time` is UTC, `local_time` local."""
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", column).lower()))
    if words & {"utc", "gmt", "epoch"} or plain(column) in ("utctime", "timeutc", "atutc"):
        return "utc"
    return "local" if "local" in words or plain(column) == "localtime" else None
