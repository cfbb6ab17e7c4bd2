"""Ids as people export them: blanks around them, and words for nothing."""

from pathlib import Path

import polars as pl
import pytest

from castpoi.checkins import record
from tests.checkins.reading.conftest import PrepareCity, fails
from tests.conftest import CommandLine
from tests.sources import CALIFORNIA, table, table_rows, triples_in, triples_of, visits_in

VISITS = visits_in(CALIFORNIA)
ROWS = table_rows(VISITS)


def test_ids_that_only_blanks_told_apart_are_one(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    users = [f" {row[0]}\u00a0" if at % 2 else row[0] for at, row in enumerate(ROWS)]
    source.write_text(table([[user, *row[1:]] for user, row in zip(users, ROWS, strict=True)]))
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    people, rows = len({row[0] for row in ROWS[1::2]}), len(ROWS) // 2
    remark = f"blanks around {people} user ids were trimmed, in {rows} rows"
    assert ended.json["remarks"] == city.manifest["remarks"] == [remark]
    assert f"Note: {remark}." in ended.err


def test_an_id_that_always_has_blanks_loses_them(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table([[row[0], f" {row[1]} ", *row[2:]] for row in ROWS]))
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    assert ended.json["remarks"] == [
        f"blanks around {city.places.height} place ids were trimmed, in {len(ROWS)} rows"
    ]


def test_ids_without_blanks_are_not_remarked_on(prepared: PrepareCity, tmp_path: Path) -> None:
    source = tmp_path / "visits.csv"
    source.write_text(table([["ann lee", *row[1:]] for row in ROWS]))
    city, ended = prepared(source)
    assert city.users[record.USER_ID].to_list() == ["ann lee"]
    assert ended.json["remarks"] == []


@pytest.mark.parametrize(
    "word", ["NULL", "null", "NaN", "nan", "None", "<NA>", r"\N", "", "  ", " NULL "]
)
@pytest.mark.parametrize(("column", "reason"), [(0, "no user"), (1, "no place")])
def test_a_word_for_nothing_is_a_missing_id(
    castpoi: CommandLine, tmp_path: Path, word: str, column: int, reason: str
) -> None:
    source = tmp_path / "visits.csv"
    bad = [word if at == column else cell for at, cell in enumerate(ROWS[0])]
    source.write_text(table([*ROWS, bad]))
    who = reason.removeprefix("no ")
    assert f"row {len(ROWS) + 1} (line {len(ROWS) + 2}): the {who} is missing; fill it in" in fails(
        castpoi, source
    )
    words = ("data", "prepare", source, "--out", tmp_path / "city", "--on-bad-rows", "drop")
    ended = castpoi(*words, "--json")
    assert ended.json["dropped_rows"] == {reason: 1}
    assert ended.json["checkins"] == len(VISITS)
    assert ended.json["remarks"] == []


def test_no_number_in_a_parquet_column_of_numbers_is_a_missing_id(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "visits.parquet"
    rows = pl.read_csv(table(ROWS).encode()).with_columns(pl.col("user").cast(pl.Float64))
    rows.with_columns(
        pl.when(pl.int_range(pl.len()) == 2).then(float("nan")).otherwise("user").alias("user")
    ).write_parquet(source)
    assert "row 3: the user is missing" in fails(castpoi, source)


def test_names_that_contain_a_word_for_nothing_are_ids(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    names = {"12": "Nan", "470": "Null Island", "979": "nano"}
    source.write_text(table([[names[row[0]], *row[1:]] for row in ROWS]))
    city, _ = prepared(source)
    assert set(city.users[record.USER_ID]) == set(names.values())


def test_a_table_with_two_times_tells_which_one_was_read(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    header = ("user", "place", "lat", "lon", "time", "timestamp")
    source.write_text(table([[*row, "2001-01-01T00:00:00Z"] for row in ROWS], header))
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    assert ended.json["remarks"] == [
        "visits.csv: the time is read from 'time', not from 'timestamp'; "
        "use --columns time=timestamp to change that"
    ]
    _, ended = prepared(source, "--columns", "time=time", "--overwrite")
    assert ended.json["remarks"] == []


def test_two_columns_that_differ_in_case_alone_tell_which_one_was_read(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    header = ("user", "place", "lat", "lon", "time", "LAT")
    source.write_text(table([[*row, "12.5"] for row in ROWS], header))
    city, ended = prepared(source)
    assert triples_in(city) == triples_of(VISITS)
    assert ended.json["remarks"] == [
        "visits.csv: the lat is read from 'lat', not from 'LAT'; "
        "use --columns lat=LAT to change that"
    ]


def test_a_column_that_means_something_else_is_no_rival(
    prepared: PrepareCity, tmp_path: Path
) -> None:
    source = tmp_path / "visits.csv"
    header = ("user", "place", "lat", "lon", "time", "location")
    source.write_text(table([[*row, "Airport"] for row in ROWS], header))
    _, ended = prepared(source, "--columns", "category=location")
    assert ended.json["remarks"] == []
