"""A city: check-ins with their users, places and split, in memory and on disk.

On disk it is one parquet file for each of these tables, and manifest.json: sources, steps with
their counts, fingerprint, SHA-256 of every file (docs/data.md). Only the owner may read the tables.

The *fingerprint* covers what decides a metric: who was where, when, and in which part; positions
and categories of the places. Its bytes do not depend on machine, time zone or library version.
The SHA-256 of the files cover the rest: names, zones, local offsets and the manifest itself.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.record import PRIVATE_CATEGORIES, is_among
from castpoi.checkins.tables import Tables
from castpoi.checkins.trajectory import Histories, Trajectories
from castpoi.core.arrays import Floats, Numbers
from castpoi.core.errors import BadInput, BrokenFolder
from castpoi.core.files import (
    SHA256,
    check_vacant,
    file_faults,
    new_folder,
    read_manifest,
    read_table,
    write_manifest,
    write_private_table,
)
from castpoi.core.notebook import html_table
from castpoi.geo import wkb

REVISIT_WINDOW: Final = 512
"""A target is a revisit if its place is among this many visits before it."""

_TABLES: Final = {
    "checkins": record.CHECKIN_SCHEMA,
    "users": record.USER_SCHEMA,
    "places": record.PLACE_SCHEMA,
    "split": record.SPLIT_SCHEMA,
}
_POINT: Final = (record.LAT, record.LON)
_HASHED: Final = {record.USER: "<u4", record.PLACE: "<u4", record.AT_UTC: "<i8", record.PART: "u1"}
"""The columns of check-ins that the fingerprint covers, and their bytes."""
_FILES: Final = tuple(f"{table}.parquet" for table in _TABLES)
_PREPARE_AGAIN: Final = "prepare the city again with 'castpoi data prepare'"


@dataclass(frozen=True, kw_only=True)
class City:
    """Check-ins in canonical order, with their users, places and split."""

    checkins: pl.DataFrame
    users: pl.DataFrame
    places: pl.DataFrame
    split: pl.DataFrame
    manifest: dict[str, Any]
    dropped: pl.DataFrame | None = None
    """Rows that were dropped while it was prepared, as they are in their files."""
    file_faults: tuple[str, ...] = ()
    """Faults of its files, where it was loaded without `verify`."""
    folder: Path | None = None
    """Where it was loaded from; None for a city in memory."""

    def __repr__(self) -> str:
        counts = f"{self.checkins.height:,} check-ins of {self.users.height:,} users"
        return f"City of {counts} at {self.places.height:,} places, split {self.fingerprint[:12]}"

    def _repr_html_(self) -> str:
        parts = self.split[record.PART].value_counts(sort=True).rows()
        counts = [("users", self.users.height), ("places", self.places.height), *parts]
        rows = [(name, f"{count:,}") for name, count in counts]
        return html_table(["check-ins", f"{self.checkins.height:,}"], rows, caption=repr(self))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical content of the split."""
        return str(self.manifest["fingerprint"])

    @property
    def lat(self) -> Floats:
        """Latitude of each place. [P]"""
        return self.places[record.LAT].to_numpy()

    @property
    def lon(self) -> Floats:
        """Longitude of each place. [P]"""
        return self.places[record.LON].to_numpy()

    @cached_property
    def is_private(self) -> NDArray[np.bool_]:
        """Whether each place has a private category. [P]"""
        categories = self.places[record.CATEGORY]
        private = [name for name in categories.unique() if is_among(name or "", PRIVATE_CATEGORIES)]
        return categories.is_in(private).fill_null(False).to_numpy()

    @property
    def at_us(self) -> Numbers:
        """Instant of each check-in, UTC microseconds."""
        return self.checkins[record.AT_UTC].to_physical().to_numpy()

    @property
    def local_us(self) -> Numbers:
        """Local time of each check-in, microseconds since 1970-01-01 00:00 on the local clock."""
        offsets = self.checkins[record.OFFSET].to_numpy().astype(np.int64)
        return self.at_us + offsets * record.MINUTE_US

    @cached_property
    def trajectories(self) -> Trajectories:
        """The check-ins of the split as flat arrays, without those that are left out."""
        part = self.split[record.PART]
        table = self.checkins.with_columns(part.to_physical().cast(pl.Int64).alias(record.PART))
        kept = table.filter(part != record.LEFT_OUT).select(pl.all().to_physical().cast(pl.Int64))
        return Trajectories(
            checkin=kept[record.CHECKIN].to_numpy(),
            user=kept[record.USER].to_numpy(),
            place=kept[record.PLACE].to_numpy(),
            at_us=kept[record.AT_UTC].to_numpy(),
            offset_minutes=kept[record.OFFSET].to_numpy(),
            part=kept[record.PART].to_numpy().astype(np.uint8),
        )

    @cached_property
    def train_trajectories(self) -> Trajectories:
        """The train check-ins alone."""
        return self.trajectories.of_part(record.PARTS.index(record.TRAIN))

    @cached_property
    def train(self) -> Histories:
        """The train visits of every user; a model learns from nothing else."""
        return self.train_trajectories.as_histories()

    @property
    def checkins_by_part(self) -> dict[str, int]:
        """Number of check-ins in each part of the split."""
        counts = np.bincount(self.split[record.PART].to_physical(), minlength=len(record.PARTS))
        return dict(zip(record.PARTS, counts.tolist(), strict=True))

    @cached_property
    def revisit_share(self) -> float | None:
        """Share of the test targets that are revisits; None if there is no test target."""
        targets = self.targets(record.TEST)
        is_revisit = self.trajectories.is_revisit(targets, window=REVISIT_WINDOW)
        return float(is_revisit.mean()) if len(targets) else None

    def targets(self, part: str) -> Numbers:
        """Rows of `trajectories` that are to be predicted in a part of the split."""
        return np.flatnonzero(self.trajectories.part == record.PARTS.index(part))

    @staticmethod
    def check_free(folder: Path, *, overwrite: bool) -> None:
        """Refuse a folder to which a city cannot be saved, before any work is done."""
        check_vacant(folder, kind="city", overwrite=overwrite)
        if dropped_path(folder).exists() and not overwrite:
            raise BadInput(
                f"{dropped_path(folder)} already exists, and dropped rows would be written to it; "
                "move it away, choose another --out, or replace it with --overwrite"
            )

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the city to a new folder, which appears complete or not at all.

        Dropped rows are written next to it.
        """
        tables = {name: getattr(self, name) for name in _TABLES}
        save_city(Path(folder), tables, self.manifest, self.dropped, overwrite=overwrite)

    @classmethod
    def load(cls, folder: str | PathLike[str], *, verify: bool = True) -> "City":
        """Read a city and check that its files and its content have not changed.

        Only the audit reads without `verify`, to report changes among its other findings.
        """
        folder = Path(folder)
        manifest = read_manifest(folder, kind="city", needs={"fingerprint", SHA256})
        faults = file_faults(folder, manifest, _FILES)
        if verify and faults:
            raise _changed(folder, ", ".join(faults))
        del manifest[SHA256]
        tables = {
            table: read_table(folder / f"{table}.parquet", schema, how_to_fix=_PREPARE_AGAIN)
            for table, schema in _TABLES.items()
        }
        city = cls(manifest=manifest, file_faults=faults, folder=folder, **tables)
        if verify and (fault := fault_of(city)):
            raise _changed(folder, fault)
        return city


def save_city(
    folder: Path,
    tables: Mapping[str, pl.DataFrame | pl.LazyFrame],
    manifest: dict[str, Any],
    dropped: pl.DataFrame | None,
    *,
    overwrite: bool,
) -> None:
    """Write the tables of a city to a new folder; see `City.save`."""
    City.check_free(folder, overwrite=overwrite)
    with new_folder(folder, kind="city", overwrite=overwrite) as staging:
        for name, table in tables.items():
            metadata = None
            if name == "places":  # GeoParquet, for maps and databases
                lat, lon = (table.lazy().collect()[each].to_numpy() for each in _POINT)
                table, metadata = table.with_columns(wkb.points(lat, lon)), wkb.GEO_KEY
            write_private_table(table, staging / f"{name}.parquet", metadata=metadata)
        write_manifest(staging, manifest)
        if dropped is None:
            dropped_path(folder).unlink(missing_ok=True)  # of a previous city
            return
        rows = staging / "dropped.csv"
        rows.touch(mode=0o600)  # it has user ids
        dropped.write_csv(rows)
        rows.replace(dropped_path(folder))


def dropped_path(folder: Path) -> Path:
    """The file for the dropped rows of a city, next to its folder."""
    return folder.with_name(f"{folder.name}.dropped.csv")


def name_of(folder: Path) -> str:
    """The name of a city: that of its folder or, if this is `city`, of the folder around it."""
    return folder.parent.name if folder.name == "city" else folder.name


def fault_of(city: City) -> str | None:
    """How a city differs from the one that was prepared; None if it does not."""
    if city.file_faults:
        return ", ".join(city.file_faults)
    for table, schema in _TABLES.items():
        column = next(iter(schema))  # counts the rows from 0
        numbers = getattr(city, table)[column].to_numpy()
        if not np.array_equal(numbers, np.arange(len(numbers))):
            return f"column '{column}' of {table}.parquet does not count its rows 0, 1, 2, ..."
    found = fingerprint_of(city.checkins, city.users, city.places, city.split)
    stored = str(city.manifest.get("fingerprint"))
    if found != stored:
        return f"its manifest has fingerprint {stored[:12]}, its content {found[:12]}"
    return None


def _changed(folder: Path, fault: str) -> BrokenFolder:
    return BrokenFolder(f"{folder} has changed since it was prepared: {fault}; {_PREPARE_AGAIN}")


def fingerprint_of(
    checkins: pl.DataFrame, users: pl.DataFrame, places: pl.DataFrame, split: pl.DataFrame
) -> str:
    """The fingerprint of tables in canonical order."""
    together = checkins.with_columns(split[record.PART])
    return fingerprint_of_parts(Tables([together]), users, places)


def fingerprint_of_parts(checkins: Tables, users: pl.DataFrame, places: pl.DataFrame) -> str:
    """The same for check-ins in parts, with the part of the split of each."""
    digest = hashlib.sha256(b"castpoi split 1\n")
    _add_texts(digest, users[record.USER_ID])
    _add_texts(digest, places[record.PLACE_ID])
    _add_texts(digest, places[record.CATEGORY].fill_null(""))
    _add_numbers(digest, [places[record.LAT].to_numpy() + 0.0], "<f8", places.height)  # no -0.0
    _add_numbers(digest, [places[record.LON].to_numpy() + 0.0], "<f8", places.height)
    for column, layout in _HASHED.items():
        chunks = (numbers for (numbers,) in checkins.arrays(column))
        _add_numbers(digest, chunks, layout, checkins.height)
    return digest.hexdigest()


def _add_texts(digest: "hashlib._Hash", texts: pl.Series) -> None:
    """Count, lengths in bytes, then all texts end to end; no text can imitate a separator."""
    _add_numbers(digest, [texts.str.len_bytes().to_numpy()], "<u4", len(texts))
    digest.update("".join(texts.to_list()).encode())


def _add_numbers(
    digest: "hashlib._Hash", chunks: Iterable[NDArray[np.generic]], layout: str, count: int
) -> None:
    digest.update(struct.pack("<Q", count))
    for numbers in chunks:
        digest.update(np.ascontiguousarray(numbers.astype(layout, copy=False)).data)
