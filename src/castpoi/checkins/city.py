"""A city on disk: check-ins, users, places, split and manifest, checked by fingerprint at load.

    CITY/checkins.parquet   checkin, user, place, at_utc, local_offset_minutes
    CITY/users.parquet      user, user_id
    CITY/places.parquet     place, place_id, lat, lon, zone, category, name
    CITY/split.parquet      checkin, part
    CITY/manifest.json      source, every step with counts, zone rule, fingerprint

The files need nothing of castpoi to be read; `user` and `place` are row numbers of their tables.
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
from castpoi.core.errors import BrokenFolder
from castpoi.core.files import new_folder, read_manifest, write_json
from castpoi.core.parquet import read_table

REVISIT_WINDOW: Final = 512
"""A target is a revisit if its place stands among this many visits before it."""

_TABLES: Final = {
    "checkins": record.CHECKIN_SCHEMA,
    "users": record.USER_SCHEMA,
    "places": record.PLACE_SCHEMA,
    "split": record.SPLIT_SCHEMA,
}


@dataclass(frozen=True, kw_only=True)
class City:
    """Check-ins in canonical order, with their users, places and split."""

    checkins: pl.DataFrame
    users: pl.DataFrame
    places: pl.DataFrame
    split: pl.DataFrame
    manifest: dict[str, Any]

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
            frame: pl.DataFrame = getattr(self, table)
            frame.write_parquet(staging / f"{table}.parquet", compression="zstd")
        write_json(staging / "manifest.json", self.manifest)

    @classmethod
    def load(cls, folder: Path, *, verify: bool = True) -> "City":
        """Read a city and check that its content still has the fingerprint of its manifest.

        Only the audit reads without `verify`, to report the mismatch among its other findings.
        """
        manifest = read_manifest(folder, kind="city")
        tables = {table: _read_table(folder, table) for table in _TABLES}
        city = cls(manifest=manifest, **tables)
        if not verify:
            return city
        found = fingerprint_of(city.checkins, city.users, city.places, city.split)
        if found != manifest.get("fingerprint"):
            raise BrokenFolder(
                f"{folder} has changed since it was prepared: its manifest says fingerprint "
                f"{str(manifest.get('fingerprint'))[:12]}, its content has {found[:12]}; "
                "prepare it again with 'castpoi data prepare'"
            )
        return city


def _read_table(folder: Path, table: str) -> pl.DataFrame:
    way_out = "prepare the city again with 'castpoi data prepare'"
    return read_table(folder / f"{table}.parquet", _TABLES[table], way_out=way_out)
