"""A city on disk: saved whole, checked at load, refused in words when it is damaged."""

import contextlib
import json
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BrokenFolder
from tests.cities import CAFE, OFFICE, PARK, small_city
from tests.messages import refused

CITY = small_city(
    [
        (1, CAFE, "2012-04-03 08:00"),
        (1, OFFICE, "2012-04-03 09:00"),
        (1, CAFE, "2012-04-03 18:00"),
        (1, PARK, "2012-04-03 20:00"),
        (2, PARK, "2012-04-04 10:00"),
        (2, CAFE, "2012-04-04 11:00"),
        (2, PARK, "2012-04-04 12:00"),
    ],
    ["train", "left out", "validation", "test", "train", "validation", "test"],
)


def test_a_saved_city_is_loaded_as_it_was(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    loaded = City.load(tmp_path / "city")
    for table in ("checkins", "users", "places", "split"):
        assert_frame_equal(getattr(loaded, table), getattr(CITY, table))
    assert loaded.manifest == CITY.manifest
    assert loaded.fingerprint == CITY.fingerprint


def test_left_out_check_ins_are_in_no_trajectory() -> None:
    trajectories = CITY.trajectories
    assert trajectories.checkin.tolist() == [0, 2, 3, 4, 5, 6]
    assert trajectories.user.tolist() == [0, 0, 0, 1, 1, 1]
    assert trajectories.place.tolist() == [CAFE, CAFE, PARK, PARK, CAFE, PARK]
    assert trajectories.part.tolist() == [0, 1, 2, 0, 1, 2]
    assert trajectories.offset_minutes.tolist() == [-240] * 6
    first = CITY.checkins[record.AT_UTC].to_physical()[0]
    assert trajectories.at_us[0] == first


def flip(folder: Path, table: str, change: pl.Expr) -> None:
    path = folder / f"{table}.parquet"
    pl.read_parquet(path).with_columns(change).write_parquet(path)


def edit_manifest(folder: Path, **entries: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def replaced_by_a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "an instant was moved": lambda f: flip(
        f, "checkins", pl.col(record.AT_UTC) + pl.duration(seconds=1)
    ),
    "a place has another name": lambda f: flip(f, "places", pl.lit("Bar").alias("name")),
    "two tables have changed": lambda f: [
        (f / f"{table}.parquet").write_bytes(b"junk") for table in ("places", "split")
    ],
    "the manifest has another number": lambda f: edit_manifest(f, users=3),
    "the manifest has no SHA-256": lambda f: (f / "manifest.json").write_text(
        '{"kind": "city", "fingerprint": "f"}'
    ),
    "the SHA-256 of the manifest are no object": lambda f: edit_manifest(f, sha256=7),
    "a table is gone": lambda f: (f / "users.parquet").unlink(),
    "a table cannot be read": lambda f: replaced_by_a_loop(f / "users.parquet"),
    "a table is cut off": lambda f: (f / "checkins.parquet").write_bytes(
        (f / "checkins.parquet").read_bytes()[:-200]
    ),
    "the manifest is gone": lambda f: (f / "manifest.json").unlink(),
    "the manifest is that of a run": lambda f: (f / "manifest.json").write_text(
        json.dumps({"kind": "run"})
    ),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_city_is_refused(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    CITY.save(tmp_path / "city")
    damage(tmp_path / "city")
    with refused(BrokenFolder):
        City.load(tmp_path / "city")


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "a table is empty": lambda f: (f / "split.parquet").write_bytes(b""),
    "a table is junk": lambda f: (f / "split.parquet").write_bytes(b"junk" * 50),
    "a column is gone": lambda f: (
        pl.read_parquet(f / "split.parquet").drop("part").write_parquet(f / "split.parquet")
    ),
    "a part has an unknown word": lambda f: flip(f, "split", pl.lit("future").alias("part")),
}


@pytest.mark.parametrize("damage", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_table_that_cannot_be_read_is_refused_even_for_the_audit(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    CITY.save(tmp_path / "city")
    damage(tmp_path / "city")
    with refused(BrokenFolder):
        City.load(tmp_path / "city", verify=False)


def test_the_audit_can_load_a_changed_city(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    flip(tmp_path / "city", "checkins", pl.col(record.AT_UTC) + pl.duration(seconds=1))
    city = City.load(tmp_path / "city", verify=False)
    assert city.checkins.height == 7
    assert [fault.split()[0] for fault in city.file_faults] == ["checkins.parquet"]


def test_a_single_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    files = sorted((tmp_path / "city").iterdir())
    rng = np.random.default_rng(20)
    for _ in range(100):
        path = files[rng.integers(len(files))]
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        if path.suffix == ".parquet":
            with pytest.raises(BrokenFolder, match=f"{path.name} does not have the SHA-256"):
                City.load(tmp_path / "city")
        else:
            with contextlib.suppress(BrokenFolder):
                assert City.load(tmp_path / "city").manifest == CITY.manifest
        path.write_bytes(whole)


ROW_NUMBERS = {"checkins": "checkin", "split": "checkin", "users": "user", "places": "place"}


@pytest.mark.parametrize(("table", "column"), ROW_NUMBERS.items())
def test_row_numbers_that_do_not_count_from_0_are_refused(
    tmp_path: Path, table: str, column: str
) -> None:
    numbers = getattr(CITY, table)
    turned = numbers.with_columns(pl.col(column).reverse())
    replace(CITY, **{table: turned}).save(tmp_path / "city")
    with refused(BrokenFolder):
        City.load(tmp_path / "city")


def test_content_with_another_fingerprint_is_refused(tmp_path: Path) -> None:
    moved = CITY.checkins.with_columns(pl.col(record.AT_UTC) + pl.duration(seconds=1))
    replace(CITY, checkins=moved).save(tmp_path / "city")
    with refused(BrokenFolder):
        City.load(tmp_path / "city")


def test_only_the_owner_may_read_the_tables(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "city").glob("*.parquet")]
    assert modes == [0o600] * 4


def test_any_parquet_reader_can_read_the_tables(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    places = pl.read_parquet(tmp_path / "city" / "places.parquet")
    visits = pl.read_parquet(tmp_path / "city" / "checkins.parquet").join(places, on="place")
    assert visits.sort("checkin")["place_id"].to_list()[:3] == ["cafe", "office", "cafe"]
