"""A city on disk: saved whole, checked at load, refused in words when it is damaged."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.core.errors import BadInput, BrokenFolder
from tests.cities import CAFE, OFFICE, PARK, small_city

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


def test_a_city_is_not_written_over_another_unless_asked(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    with pytest.raises(BadInput, match=r"already holds a city; choose another --out"):
        CITY.save(tmp_path / "city")
    CITY.save(tmp_path / "city", overwrite=True)


def test_left_out_check_ins_are_in_no_trajectory() -> None:
    trajectories = CITY.trajectories
    assert trajectories.checkin.tolist() == [0, 2, 3, 4, 5, 6]
    assert trajectories.user.tolist() == [0, 0, 0, 1, 1, 1]
    assert trajectories.place.tolist() == [CAFE, CAFE, PARK, PARK, CAFE, PARK]
    assert trajectories.part.tolist() == [0, 1, 2, 0, 1, 2]
    assert trajectories.offset_minutes.tolist() == [-240] * 6
    first = CITY.checkins[record.AT_UTC].to_physical()[0]
    assert trajectories.at_us[0] == first


def test_targets_are_rows_of_the_trajectories() -> None:
    assert CITY.targets("test").tolist() == [2, 5]
    assert CITY.targets("validation").tolist() == [1, 4]


def test_a_city_without_a_test_part_has_no_targets() -> None:
    alone = small_city([(1, CAFE, "2012-04-03 08:00")], ["train"])
    assert alone.targets("test").tolist() == []


def flip(folder: Path, table: str, change: pl.Expr) -> None:
    path = folder / f"{table}.parquet"
    pl.read_parquet(path).with_columns(change).write_parquet(path)


def replaced_by_a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "an instant was moved": (
        lambda f: flip(f, "checkins", pl.col(record.AT_UTC) + pl.duration(seconds=1)),
        r"has changed since it was prepared: its manifest says fingerprint \w{12}, its content has "
        r"\w{12}; prepare it again with 'castpoi data prepare'",
    ),
    "a part was changed": (
        lambda f: flip(f, "split", pl.lit("train", dtype=pl.Enum(record.PARTS)).alias("part")),
        r"has changed since it was prepared",
    ),
    "the fingerprint is gone": (
        lambda f: (f / "manifest.json").write_text('{"kind": "city"}'),
        r"has changed since it was prepared",
    ),
    "a table is gone": (
        lambda f: (f / "users.parquet").unlink(),
        r"users.parquet is missing; prepare the city again with 'castpoi data prepare'",
    ),
    "a table cannot be read": (
        lambda f: replaced_by_a_loop(f / "users.parquet"),
        r"users.parquet cannot be read: .+; prepare the city again with 'castpoi data prepare'",
    ),
    "a table is empty": (
        lambda f: (f / "split.parquet").write_bytes(b""),
        r"split.parquet is damaged \(.+\); prepare the city again with 'castpoi data prepare'",
    ),
    "a table is junk": (
        lambda f: (f / "places.parquet").write_bytes(b"junk" * 50),
        r"places.parquet is damaged",
    ),
    "a table is cut off": (
        lambda f: (f / "checkins.parquet").write_bytes(
            (f / "checkins.parquet").read_bytes()[:-200]
        ),
        r"checkins.parquet is damaged",
    ),
    "a column is gone": (
        lambda f: (
            pl.read_parquet(f / "users.parquet").drop("user_id").write_parquet(f / "users.parquet")
        ),
        r"users.parquet is damaged",
    ),
    "a part has an unknown word": (
        lambda f: flip(f, "split", pl.lit("future").alias("part")),
        r"split.parquet is damaged",
    ),
    "the manifest is gone": (
        lambda f: (f / "manifest.json").unlink(),
        r"has no manifest.json, so it is not a city",
    ),
    "the manifest is that of a run": (
        lambda f: (f / "manifest.json").write_text(json.dumps({"kind": "run"})),
        r"holds a run, but a city is expected there",
    ),
}


@pytest.mark.parametrize(("damage", "words"), DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_city_is_refused_in_words(
    tmp_path: Path, damage: Callable[[Path], object], words: str
) -> None:
    CITY.save(tmp_path / "city")
    damage(tmp_path / "city")
    with pytest.raises(BrokenFolder, match=words):
        City.load(tmp_path / "city")


def test_the_audit_may_look_at_a_changed_city(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    flip(tmp_path / "city", "checkins", pl.col(record.AT_UTC) + pl.duration(seconds=1))
    assert City.load(tmp_path / "city", verify=False).checkins.height == 7


def test_the_tables_of_a_city_need_nothing_of_castpoi_to_be_read(tmp_path: Path) -> None:
    CITY.save(tmp_path / "city")
    places = pl.read_parquet(tmp_path / "city" / "places.parquet")
    visits = pl.read_parquet(tmp_path / "city" / "checkins.parquet").join(places, on="place")
    assert visits.sort("checkin")["place_id"].to_list()[:3] == ["cafe", "office", "cafe"]
