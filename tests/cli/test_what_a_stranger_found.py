"""Defects that a first user found, each told or refused since."""

from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins.city import City
from tests.conftest import CommandLine

HEADER = "user,place,lat,lon,time"
GOOD = [
    f"{user},{place},{lat},-74.0,2012-04-0{day}T1{hour}:00:00Z"
    for user in ("ann", "bob")
    for day, hour, place, lat in (
        (3, 0, "cafe", 40.70),
        (4, 1, "park", 40.71),
        (5, 2, "cafe", 40.7),
    )
]


def table(folder: Path, *rows: str, name: str = "visits.csv") -> Path:
    path = folder / name
    path.write_text("\n".join([HEADER, *GOOD, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_file_of_ones_own_beside_the_city_is_never_replaced(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    notes = tmp_path / "city.dropped.csv"
    notes.write_text("my own notes")
    ended = castpoi("data", "prepare", table(tmp_path), "--out", tmp_path / "city")
    assert ended.code == 1
    assert "already exists, and dropped rows would be written to it" in ended.err
    assert notes.read_text() == "my own notes"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_placeholder_is_no_time(castpoi: CommandLine, tmp_path: Path, time: str) -> None:
    source = table(tmp_path, f"ann,cafe,40.7,-74.0,{time}")
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 1
    assert f"row 7 (line 8): time '{time}' is not between 1980 and 2100" in ended.err
    words = ("data", "prepare", source, "--out", tmp_path / "city", "--on-bad-rows", "drop")
    assert castpoi(*words, "--json").json["dropped_rows"] == {"time out of range": 1}


def test_no_clock_is_wrong_by_years(castpoi: CommandLine, tmp_path: Path) -> None:
    words = ("data", "prepare", table(tmp_path), "--out", tmp_path / "city")
    ended = castpoi(*words, "--clock-shift", "+50000")
    assert ended.code == 1
    assert "no clock is wrong by more than 48 hours" in ended.err


def test_the_audit_judges_a_city_whose_tables_do_not_fit_together(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "city"
    castpoi("data", "prepare", table(tmp_path), "--out", folder)
    places = City.load(folder).places.with_columns(pl.lit("Mars/X").alias("zone"))
    places.write_parquet(folder / "places.parquet")
    split = City.load(folder, verify=False).split.head(3)
    split.write_parquet(folder / "split.parquet")
    ended = castpoi("data", "audit", folder, "--json")
    assert ended.code == 1
    status = {check["check"]: check for check in ended.json["checks"]}
    assert status["fingerprint"]["status"] == "failed"
    assert status["local clock"]["finding"].startswith("cannot be checked")


def test_a_table_named_a_published_layout_says_how_many_columns_are_missing(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    words = ("data", "prepare", table(tmp_path), "--format", "snap", "--out", tmp_path / "city")
    ended = castpoi(*words)
    assert ended.code == 1
    assert "the snap layout has 5 columns separated by a tab, this file has 1" in ended.err
    assert "read it with --format table" in ended.err


def test_utf_16_is_named_as_such(castpoi: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "excel.csv"
    path.write_bytes("\n".join([HEADER, *GOOD]).encode("utf-16"))
    ended = castpoi("data", "prepare", path, "--out", tmp_path / "city")
    assert ended.code == 1
    assert "UTF-16 or binary, not UTF-8 text; save it as UTF-8 text" in ended.err
    assert "\0" not in ended.err


def test_all_missing_columns_are_asked_for_at_once(castpoi: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "who.csv"
    path.write_text("who,lat,lon\nann,40.7,-74.0\n")
    ended = castpoi("data", "prepare", path, "--out", tmp_path / "city")
    assert ended.code == 1
    assert "--columns user=COLUMN,place=COLUMN,time=COLUMN" in ended.err


def as_parquet(folder: Path, **changes: pl.Expr) -> Path:
    rows = pl.read_csv("\n".join([HEADER, *GOOD]).encode())
    path = folder / "visits.parquet"
    rows.with_columns(**changes).write_parquet(path)
    return path


def test_ids_held_as_floats_are_whole_numbers(castpoi: CommandLine, tmp_path: Path) -> None:
    number = pl.col("user").rank("dense").cast(pl.Float64)
    source = as_parquet(tmp_path, user=number)
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 0, ended.err
    assert City.load(tmp_path / "city").users["user_id"].to_list() == ["1", "2"]


def test_a_column_of_structs_is_no_id(castpoi: CommandLine, tmp_path: Path) -> None:
    source = as_parquet(tmp_path, user=pl.struct("lat", "lon"))
    ended = castpoi("data", "prepare", source, "--out", tmp_path / "city")
    assert ended.code == 1
    assert "which are no ids; choose another column with --columns" in ended.err


def test_a_city_of_one_place_has_nothing_to_choose_from(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = as_parquet(tmp_path, place=pl.lit("cafe"), lat=pl.lit(40.7))
    castpoi("data", "prepare", source, "--out", tmp_path / "city")
    words = ("train", tmp_path / "city", "--model", "castpoi", "--out", tmp_path / "run")
    ended = castpoi(*words)
    assert ended.code == 1
    assert "the city has a single place, so there is nothing to choose from" in ended.err


def test_commands_to_copy_are_quoted(castpoi: CommandLine, tmp_path: Path) -> None:
    city, run, result = (tmp_path / f"my {word}" for word in ("city", "run", "result"))
    castpoi("data", "prepare", table(tmp_path), "--out", city)
    trained = castpoi("train", city, "--model", "revisit", "--out", run)
    assert f"Next: castpoi evaluate '{run}' --out RESULT" in trained.out
    evaluated = castpoi("evaluate", run, "--out", result)
    assert f"castpoi compare '{result}' RESULT..." in evaluated.out


def test_who_compares_a_suite_is_told_of_its_report(castpoi: CommandLine, tmp_path: Path) -> None:
    castpoi("data", "prepare", table(tmp_path), "--out", tmp_path / "city")
    castpoi("reproduce", tmp_path / "city", "--suite", "heuristics", "--out", tmp_path / "my suite")
    ended = castpoi("compare", tmp_path / "my suite")
    assert ended.code == 1
    assert f"a page of all with: castpoi report '{tmp_path}/my suite'" in ended.err
    assert castpoi("compare", tmp_path / "my suite" / "city" / "revisit").code == 0
