"""A city on disk: check-ins, users, places, split and manifest, checked at load.

    CITY/checkins.parquet   checkin, user, place, at_utc, local_offset_minutes
    CITY/users.parquet      user, user_id
    CITY/places.parquet     place, place_id, lat, lon, zone, category, name
    CITY/split.parquet      checkin, part
    CITY/manifest.json      source, every step with counts, zone rule, fingerprint, SHA-256 of files

The files need nothing of castpoi to be read; `checkin`, `user` and `place` are row numbers of their
tables. Only the owner of the files may read the tables.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from castpoi.checkins import record
from castpoi.checkins.fingerprint import fingerprint_of
from castpoi.checkins.trajectory import Trajectories
from castpoi.core.checksums import SHA256, file_faults, write_manifest
from castpoi.core.errors import BrokenFolder
from castpoi.core.files import new_folder, read_manifest, read_table, write_private_table

REVISIT_WINDOW: Final = 512
"""A target is a revisit if its place stands among this many visits before it."""

_TABLES: Final = {
    "checkins": record.CHECKIN_SCHEMA,
    "users": record.USER_SCHEMA,
    "places": record.PLACE_SCHEMA,
    "split": record.SPLIT_SCHEMA,
}
_FILES: Final = tuple(f"{table}.parquet" for table in _TABLES)
_ROW_NUMBERS: Final = {
    "checkins": record.CHECKIN,
    "users": record.USER,
    "places": record.PLACE,
    "split": record.CHECKIN,
}
"""Of every table, the column that counts its rows from 0."""


@dataclass(frozen=True, kw_only=True)
class City:
    """Check-ins in canonical order, with their users, places and split."""

    checkins: pl.DataFrame
    users: pl.DataFrame
    places: pl.DataFrame
    split: pl.DataFrame
    manifest: dict[str, Any]
    file_faults: tuple[str, ...] = ()
    """What was wrong with its files, where it was loaded without `verify`."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical content of the split."""
        return str(self.manifest["fingerprint"])

    @cached_property
    def trajectories(self) -> Trajectories:
        """The check-ins of the split, left-out ones removed, as flat arrays."""
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

    def targets(self, part: str) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Rows of `trajectories` to be foretold in a part of the split."""
        return np.flatnonzero(self.trajectories.part == record.PARTS.index(part))

    def save(self, folder: Path, *, overwrite: bool = False) -> None:
        """Write the city; it appears whole or not at all."""
        with new_folder(folder, kind="city", overwrite=overwrite) as staging:
            self.write_into(staging)

    def write_into(self, staging: Path) -> None:
        """Write the files of the city into an existing folder."""
        for table in _TABLES:
            write_private_table(getattr(self, table), staging / f"{table}.parquet")
        write_manifest(staging, self.manifest)

    @classmethod
    def load(cls, folder: Path, *, verify: bool = True) -> "City":
        """Read a city and check that every file and its content are as they were prepared.

        Only the audit reads without `verify`, to report what changed among its other findings.
        """
        manifest = read_manifest(folder, kind="city", needs={"fingerprint", SHA256})
        faults = file_faults(folder, manifest, _FILES)
        if verify and faults:
            raise _changed(folder, ", ".join(faults))
        del manifest[SHA256]
        tables = {table: _read_table(folder, table) for table in _TABLES}
        city = cls(manifest=manifest, file_faults=faults, **tables)
        if verify and (fault := fault_of(city)):
            raise _changed(folder, fault)
        return city


def fault_of(city: City) -> str | None:
    """Why a city is not as it was prepared, in words; None if it is."""
    if city.file_faults:
        return ", ".join(city.file_faults)
    for table, column in _ROW_NUMBERS.items():
        numbers = getattr(city, table)[column].to_numpy()
        if not np.array_equal(numbers, np.arange(len(numbers))):
            return f"column '{column}' of {table}.parquet does not count its rows 0, 1, 2, ..."
    found = fingerprint_of(city.checkins, city.users, city.places, city.split)
    if found != city.manifest.get("fingerprint"):
        stored = str(city.manifest.get("fingerprint"))
        return f"its manifest says fingerprint {stored[:12]}, its content has {found[:12]}"
    return None


def _changed(folder: Path, fault: str) -> BrokenFolder:
    return BrokenFolder(
        f"{folder} has changed since it was prepared: {fault}; "
        "prepare it again with 'castpoi data prepare'"
    )


def _read_table(folder: Path, table: str) -> pl.DataFrame:
    how_to_fix = "prepare the city again with 'castpoi data prepare'"
    return read_table(folder / f"{table}.parquet", _TABLES[table], how_to_fix=how_to_fix)
