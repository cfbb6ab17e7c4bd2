"""Bad files: one sentence with the file, the row and how to fix it."""

import gzip
from pathlib import Path
from typing import Final

import polars as pl
import pytest

from castpoi.checkins.prepare import Preparation, make_city
from castpoi.core.errors import BadInput
from tests.messages import refused
from tests.sources import (
    NEW_YORK,
    TABLE_HEADER,
    TOKYO,
    checkins_in,
    checkins_of,
    getnext,
    table,
    table_rows,
    visits_in,
)

VISITS: Final = visits_in(NEW_YORK)
ROWS: Final = table_rows(VISITS)
TIME: Final = "2012-04-03T18:00:09Z"
GZIPPED: Final = gzip.compress(table(ROWS * 300).encode(), mtime=0)


def with_row(*cells: str) -> str:
    """The week in New York, and one row more: row 16, line 17."""
    return table([*ROWS, cells])


def columns_without(*names: str) -> str:
    kept = [at for at, name in enumerate(TABLE_HEADER) if name not in names]
    return table([[r[at] for at in kept] for r in ROWS], [TABLE_HEADER[at] for at in kept])


def swapped(rows: list[list[str]]) -> str:
    return table([[user, place, lon, lat, at] for user, place, lat, lon, at in rows])


BAD_FILES: Final = {
    # case: (file, content)
    "missing column": ("v.csv", columns_without("lon")),
    "missing columns": ("v.csv", columns_without("user", "time")),
    "a column twice": ("v.csv", table(ROWS, ("user", "place", "lat", "lat", "time"))),
    "empty file": ("v.csv", ""),
    "blank first line": ("v.csv", "\n\n"),
    "header only": ("v.csv", table([])),
    "nothing but blank lines": ("v.csv", table([]) + "\n\n"),
    "out of range": ("v.csv", with_row("7", "bar", "95", "-200.5", TIME)),
    "swapped in range, one row": ("v.csv", with_row("7", "bar", "-74.0", "40.7", TIME)),
    "swapped out of range, one row": (
        "v.csv",
        table([*table_rows(visits_in(TOKYO)), ["7", "bar", "139.7", "35.6", TIME]]),
    ),
    "swapped in range, whole file": ("v.csv", swapped(ROWS)),
    "swapped out of range, whole file": ("v.csv", swapped(table_rows(visits_in(TOKYO)))),
    "a latitude just beyond the pole": ("v.csv", with_row("7", "bar", "91", "-74", TIME)),
    "null island": ("v.csv", with_row("7", "bar", "0", "0.0", TIME)),
    "coordinates that are no numbers": ("v.csv", with_row("7", "bar", "north", "-74", TIME)),
    "coordinates that are not finite": ("v.csv", with_row("7", "bar", "NaN", "-74", TIME)),
    "no coordinates": ("v.csv", with_row("7", "bar", "", "-74", TIME)),
    "unparsable time": ("v.csv", with_row("7", "bar", "40.7", "-74", "last tuesday")),
    "dates without a time of day": ("v.csv", table([[*r[:4], r[4][:10]] for r in ROWS])),
    "a day that never was": ("v.csv", with_row("7", "bar", "40.7", "-74", "2012-02-30T18:00:09Z")),
    "naive times": ("v.csv", table([[*r[:4], r[4].removesuffix("Z")] for r in ROWS])),
    "mixed times": ("v.csv", with_row("7", "bar", "40.7", "-74", "2012-04-03 18:00:09")),
    "no time": ("v.csv", with_row("7", "bar", "40.7", "-74", "")),
    "too few cells": ("v.csv", with_row("7", "bar", "40.7", "-74")),
    "too many cells": ("v.csv", with_row("7", "bar", "40.7", "-74", TIME, "more")),
    "no user": ("v.csv", with_row("", "bar", "40.7", "-74", TIME)),
    "a user of blanks": ("v.csv", with_row("  ", "bar", "40.7", "-74", TIME)),
    "a user with a NUL": ("v.csv", with_row("7\0", "bar", "40.7", "-74", TIME)),
    "a place with a NUL": ("v.csv", with_row("7", "b\0ar", "?", "-74", TIME)),
    "a place with a NUL and no user": ("v.csv", with_row("", "b\0ar", "40.7", "-74", TIME)),
    "too many cells and no user": ("v.csv", with_row("  ", "bar", "40.7", "-74", TIME, "more")),
    "rubbish without a user": ("v.csv", with_row("", "", "?", "?", "?")),
    "no place": ("v.csv", with_row("7", "", "40.7", "-74", TIME)),
    "a place at two far-apart points": (
        "v.csv",
        with_row("7", NEW_YORK.places[0].id, "42.5", "-74", TIME),
    ),
    "rows after a blank line keep their numbers": (
        "v.csv",
        table(ROWS) + "\n7,bar,0,0," + TIME + "\n",
    ),
    "rows after a cell of two lines keep their numbers": (
        "v.csv",
        table([['"1\n2"', *ROWS[0][1:]], ["7", "bar", "0", "0", TIME]]),
    ),
    "a quote that never closes": ("v.csv", table([*ROWS[:3], ['"7', *ROWS[0][1:]], *ROWS[3:]])),
    "lines that end in CR alone": ("v.csv", table(ROWS).replace("\n", "\r")),
    "a first line without an end": ("v.csv.gz", gzip.compress(b"0" * 1_000_001)),
    "a third line without an end": ("v.csv", table(ROWS[:1]) + "0" * 1_000_001),
    "a late line without an end": (
        "v.csv.gz",
        gzip.compress((table(ROWS * 100) + "0" * 1_000_001).encode()),
    ),
    "a time before 1980": ("v.csv", with_row("7", "bar", "40.7", "-74", "0001-01-01T00:00:00Z")),
    "a time after 2100": ("v.csv", with_row("7", "bar", "40.7", "-74", "9999-12-31T23:59:59Z")),
    "truncated gzip": ("v.csv.gz", GZIPPED[: len(GZIPPED) // 2]),
    "gzip cut in its first bytes": ("v.csv.gz", GZIPPED[:12]),
    "gzip without its last bytes": ("v.csv.gz", GZIPPED[:-4]),
    "0-byte parquet": ("v.parquet", ""),
    "junk parquet": ("v.parquet", "PAR2 or so " * 9),
    "UTF-16": ("v.csv", table(ROWS).encode("utf-16")),
    "not UTF-8": ("v.csv", table([*ROWS, ["José", *ROWS[0][1:]]]).encode("latin-1")),
    "unknown ending": ("v.dat", table(ROWS)),
    "an unknown zone in the zone column": (
        "v.csv",
        table([[*r, "Mars/Olympus"] for r in ROWS], (*TABLE_HEADER, "zone")),
    ),
}


def refuse(source: Path, **options: object) -> None:
    """Expect one sentence about a source, that of the snapshot."""
    with refused(BadInput):
        make_city([source], Preparation(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "content"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_gets_one_sentence_with_file_row_and_how_to_fix_it(
    tmp_path: Path, name: str, content: str | bytes
) -> None:
    source = tmp_path / name
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    refuse(source)


def test_a_wrong_encoding_is_refused_instead_of_merging_users(tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    people = [[name, *ROWS[0][1:]] for name in ("Jörg", "Jürg")]
    source.write_text(table([*ROWS, *people]), encoding="utf-8")
    refuse(source, encoding="ascii")


def test_a_path_without_check_ins_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    refuse(tmp_path / "gone.csv")
    refuse(tmp_path / "notes")


def test_known_columns_of_a_published_layout_cannot_be_renamed(tmp_path: Path) -> None:
    source = tmp_path / "NYC_train.csv"
    source.write_text(getnext([(v, "1") for v in VISITS], NEW_YORK.zone))
    refuse(source, columns={"time": "local_time"})


def test_a_published_layout_has_a_fixed_number_of_columns(tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_text("7:bar:40.7\n")
    refuse(source, format="snap", delimiter=":")


def test_a_parquet_file_has_no_published_layout(tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    pl.read_csv(table(ROWS).encode()).write_parquet(source)
    refuse(source, format="snap")


def test_a_column_of_lists_has_no_ids(tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    frame = pl.read_csv(table(ROWS).encode())
    frame.with_columns(pl.concat_list("lat", "lon").alias("user")).write_parquet(source)
    refuse(source)


def test_bad_rows_of_a_parquet_file_are_counted_from_1(tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    frame = pl.read_csv(table(ROWS).encode())
    frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("lat").alias("lat")
    ).write_parquet(source)
    refuse(source)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_a_table_may_have_any_name_if_its_format_is_given(tmp_path: Path, delimiter: str) -> None:
    source = tmp_path / "visits.inter"
    source.write_text(table(ROWS, by=delimiter))
    city = make_city([source], Preparation(format="table"))
    assert checkins_in(city) == checkins_of(VISITS)
