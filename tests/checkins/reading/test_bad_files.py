"""Bad files: one clear sentence with file, row and way out, exit 1, and nothing left behind."""

import gzip
from pathlib import Path
from typing import Final

import polars as pl
import pytest
from polars.exceptions import PanicException

from tests.checkins.reading.conftest import fails
from tests.conftest import CommandLine
from tests.sources import (
    NEW_YORK,
    TABLE_HEADER,
    TOKYO,
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


DROP: Final = "or leave such rows out with --on-bad-rows drop (in all: "

BAD_FILES: Final = {
    # name of the case: (file, content, what the sentence says after the name of the file)
    "wrong delimiter": (
        "v.csv",
        table(ROWS, by=";"),
        ", row 1: the columns are parted by a semicolon, but a comma is expected from the file's "
        "name; pass --delimiter ';'",
    ),
    "commas in a tsv": (
        "v.tsv",
        table(ROWS),
        ", row 1: the columns are parted by a comma, but a tab is expected from the file's name; "
        "pass --delimiter ','",
    ),
    "missing column": (
        "v.csv",
        columns_without("lon"),
        ", row 1: no column for the lon; its columns are user, place, lat, time; name it with "
        "--columns lon=COLUMN",
    ),
    "missing columns": (
        "v.csv",
        columns_without("user", "time"),
        ", row 1: no column for the user and the time; its columns are place, lat, lon; name it "
        "with --columns user=COLUMN",
    ),
    "a column twice": (
        "v.csv",
        table(ROWS, ("user", "place", "lat", "lat", "time")),
        ", row 1: column 'lat' stands there twice; rename one of them",
    ),
    "empty file": ("v.csv", "", " is empty (0 bytes); download or export it again"),
    "blank first line": (
        "v.csv",
        "\n\n",
        " has no header: its first line is empty; name its columns there",
    ),
    "header only": ("v.csv", table([]), " has a header but no rows; export it again"),
    "nothing but blank lines": ("v.csv", table([]) + "\n\n", " has a header but no rows; export"),
    "out of range": (
        "v.csv",
        with_row("7", "bar", "95", "-200.5", TIME),
        ", row 16 (line 17): (95, -200.5) is not on Earth: latitude goes from -90 to 90, longitude "
        f"from -180 to 180; correct them, {DROP}1 coordinates out of range)",
    ),
    "swapped in range, one row": (
        "v.csv",
        with_row("7", "bar", "-74.0", "40.7", TIME),
        ", row 16 (line 17): latitude -74.0 and longitude 40.7 look swapped; name the columns with "
        f"--columns lat=COLUMN,lon=COLUMN, {DROP}1 swapped coordinates)",
    ),
    "swapped out of range, one row": (
        "v.csv",
        table([*table_rows(visits_in(TOKYO)), ["7", "bar", "139.7", "35.6", TIME]]),
        ", row 16 (line 17): latitude 139.7 is not between -90 and 90: it is mistyped, or swapped "
        "with longitude 35.6; correct it, or name the columns with --columns lat=COLUMN,lon=COLUMN",
    ),
    "swapped in range, whole file": (
        "v.csv",
        swapped(ROWS),
        ", row 1 (line 2): latitude -74.002581 and longitude 40.71981 look swapped; name the "
        f"columns with --columns lat=COLUMN,lon=COLUMN, {DROP}15 swapped coordinates)",
    ),
    "swapped out of range, whole file": (
        "v.csv",
        swapped(table_rows(visits_in(TOKYO))),
        ", row 1 (line 2): latitude 139.771628 is not between -90 and 90: it is mistyped, or "
        "swapped with longitude 35.698327",
    ),
    "a latitude just beyond the pole": (
        "v.csv",
        with_row("7", "bar", "91", "-74", TIME),
        ", row 16 (line 17): latitude 91 is not between -90 and 90: it is mistyped, or swapped",
    ),
    "null island": (
        "v.csv",
        with_row("7", "bar", "0", "0.0", TIME),
        ", row 16 (line 17): (0, 0) stands for unknown coordinates; fill in the real ones, "
        f"{DROP}1 null island)",
    ),
    "coordinates that are no numbers": (
        "v.csv",
        with_row("7", "bar", "north", "-74", TIME),
        ", row 16 (line 17): (north, -74) are not two numbers; correct them",
    ),
    "coordinates that are not finite": (
        "v.csv",
        with_row("7", "bar", "NaN", "-74", TIME),
        ", row 16 (line 17): (NaN, -74) are not two numbers; correct them",
    ),
    "no coordinates": (
        "v.csv",
        with_row("7", "bar", "", "-74", TIME),
        ", row 16 (line 17): the latitude or longitude is missing; fill it in",
    ),
    "unparsable time": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74", "last tuesday"),
        ", row 16 (line 17): time 'last tuesday' is not read as a time; write it like "
        f"2012-04-03T18:00:09Z, {DROP}1 unreadable time)",
    ),
    "a day that never was": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74", "2012-02-30T18:00:09Z"),
        ", row 16 (line 17): time '2012-02-30T18:00:09Z' is not read as a time",
    ),
    "naive times": (
        "v.csv",
        table([[*r[:4], r[4].removesuffix("Z")] for r in ROWS]),
        ", row 1 (line 2): time '2012-04-03T18:00:09' does not say its zone; pass --naive-times "
        f"utc or --naive-times local, {DROP}15 time without zone)",
    ),
    "mixed times": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74", "2012-04-03 18:00:09"),
        ", row 16 (line 17): time '2012-04-03 18:00:09' does not say its zone; pass --naive-times "
        f"utc or --naive-times local, {DROP}1 time without zone)",
    ),
    "no time": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74", ""),
        ", row 16 (line 17): the time is missing; fill it in",
    ),
    "too few cells": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74"),
        ", row 16 (line 17): the time is missing; fill it in",
    ),
    "too many cells": (
        "v.csv",
        with_row("7", "bar", "40.7", "-74", TIME, "more"),
        ", row 16 (line 17): the row has more cells than the header; quote cells with commas, "
        f"{DROP}1 too many columns)",
    ),
    "no user": (
        "v.csv",
        with_row("", "bar", "40.7", "-74", TIME),
        ", row 16 (line 17): the user is missing; fill it in",
    ),
    "a user of blanks": (
        "v.csv",
        with_row("  ", "bar", "40.7", "-74", TIME),
        ", row 16 (line 17): the user is missing; fill it in",
    ),
    "a user with a NUL": (
        "v.csv",
        with_row("7\0", "bar", "40.7", "-74", TIME),
        ", row 16 (line 17): the id of the user or place has a NUL character in it; correct it, "
        f"{DROP}1 NUL in an id)",
    ),
    "a place with a NUL": (
        "v.csv",
        with_row("7", "b\0ar", "?", "-74", TIME),
        ", row 16 (line 17): the id of the user or place has a NUL character in it",
    ),
    "a place with a NUL and no user": (
        "v.csv",
        with_row("", "b\0ar", "40.7", "-74", TIME),
        ", row 16 (line 17): the user is missing; fill it in",
    ),
    "too many cells and no user": (
        "v.csv",
        with_row("  ", "bar", "40.7", "-74", TIME, "more"),
        ", row 16 (line 17): the row has more cells than the header",
    ),
    "rubbish without a user": (
        "v.csv",
        with_row("", "", "?", "?", "?"),
        ", row 16 (line 17): the user is missing; fill it in",
    ),
    "no place": (
        "v.csv",
        with_row("7", "", "40.7", "-74", TIME),
        ", row 16 (line 17): the place is missing; fill it in",
    ),
    "a place at two far-apart points": (
        "v.csv",
        with_row("7", NEW_YORK.places[0].id, "42.5", "-74", TIME),
        f", row 16 (line 17): place '{NEW_YORK.places[0].id}' lies at (42.5, -74) here and more "
        "than 25 km away elsewhere; give the two places ids of their own, or raise "
        f"--max-place-spread-km, {DROP}1 far-apart coordinates)",
    ),
    "rows after a blank line keep their numbers": (
        "v.csv",
        table(ROWS) + "\n7,bar,0,0," + TIME + "\n",
        ", row 17 (line 18): (0, 0) stands for unknown coordinates",
    ),
    "rows after a cell of two lines keep their numbers": (
        "v.csv",
        table([['"1\n2"', *ROWS[0][1:]], ["7", "bar", "0", "0", TIME]]),
        ", row 2 (line 4): (0, 0) stands for unknown coordinates",
    ),
    "a quote that never closes": (
        "v.csv",
        table([*ROWS[:3], ['"7', *ROWS[0][1:]], *ROWS[3:]]),
        ", line 5: a quote opens and never closes",
    ),
    "lines that end in CR alone": (
        "v.csv",
        table(ROWS).replace("\n", "\r"),
        ": its lines end in CR alone; save it with LF or CR LF line ends",
    ),
    "a first line without an end": (
        "v.csv.gz",
        gzip.compress(b"0" * 1_000_001),
        ", line 1: a line or cell has more than 1,000,000 characters, which no row of check-ins "
        "has; export it again with one row per line",
    ),
    "a third line without an end": (
        "v.csv",
        table(ROWS[:1]) + "0" * 1_000_001,
        ", line 3: a line or cell has more than 1,000,000 characters",
    ),
    "a late line without an end": (
        "v.csv.gz",
        gzip.compress((table(ROWS * 100) + "0" * 1_000_001).encode()),
        ", line 1502: a line or cell has more than 1,000,000 characters",
    ),
    "truncated gzip": (
        "v.csv.gz",
        GZIPPED[: len(GZIPPED) // 2],
        " ends too early: the compressed file was cut off; download or copy it again",
    ),
    "gzip cut in its first bytes": ("v.csv.gz", GZIPPED[:12], " ends too early: the compressed"),
    "gzip without its last bytes": ("v.csv.gz", GZIPPED[:-4], " ends too early: the compressed"),
    "0-byte parquet": ("v.parquet", "", " is empty (0 bytes); download or export it again"),
    "junk parquet": ("v.parquet", "PAR2 or so " * 9, " is not a whole parquet file ("),
    "not UTF-8": (
        "v.csv",
        table([*ROWS, ["José", *ROWS[0][1:]]]).encode("latin-1"),
        ", row 16 (line 17), is not UTF-8 text; pass --encoding latin-1 if it comes from an older "
        "system",
    ),
    "unknown ending": (
        "v.dat",
        table(ROWS),
        " is none of the layouts castpoi knows: a table ends in .csv, .tsv, .txt, .csv.gz, "
        ".tsv.gz, .txt.gz, .parquet; rename it, or name its layout with --format",
    ),
    "an unknown zone in the zone column": (
        "v.csv",
        table([[*r, "Mars/Olympus"] for r in ROWS], (*TABLE_HEADER, "zone")),
        ", the zone column: 'Mars/Olympus' is not an IANA time zone; write it like",
    ),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_gets_one_sentence_with_file_row_and_way_out(
    castpoi: CommandLine, tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    source = tmp_path / name
    source.write_bytes(content.encode() if isinstance(content, str) else content)
    assert fails(castpoi, source).startswith(f"{source}{words}")


def test_an_encoding_that_does_not_fit_merges_nobody(castpoi: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    people = [[name, *ROWS[0][1:]] for name in ("Jörg", "Jürg")]
    source.write_text(table([*ROWS, *people]), encoding="utf-8")
    assert fails(castpoi, source, "--encoding", "ascii") == (
        f"{source}, row 16 (line 17), is not ascii text; pass the --encoding that it was written "
        "with"
    )


def test_a_file_that_does_not_exist_is_named(castpoi: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "gone.csv"
    sentence = fails(castpoi, source)
    assert sentence == f"{source} does not exist; give a file or a folder of check-ins"


def test_a_folder_without_tables_is_named(castpoi: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    sentence = fails(castpoi, tmp_path / "notes")
    assert sentence.startswith(f"{tmp_path / 'notes'} holds no file that ends in .csv, ")
    assert sentence.endswith("; name the files of check-ins themselves")


def test_known_columns_of_a_published_layout_cannot_be_renamed(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "NYC_train.csv"
    source.write_text(getnext([(v, "1") for v in VISITS], NEW_YORK.zone))
    assert fails(castpoi, source, "--columns", "time=local_time") == (
        f"{source} has the getnext layout, whose columns are known; leave out --columns, or read "
        "it with --format table"
    )


def test_a_published_layout_is_not_parted_by_any_delimiter(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "v.txt"
    source.write_text("7:bar:40.7\n")
    assert fails(castpoi, source, "--format", "snap", "--delimiter", ":") == (
        f"{source}, row 1: the snap layout has 5 columns parted by ':', this file has 3; read it "
        "with --format table"
    )


def test_a_parquet_file_has_no_published_layout(castpoi: CommandLine, tmp_path: Path) -> None:
    source = tmp_path / "v.parquet"
    pl.read_csv(table(ROWS).encode()).write_parquet(source)
    sentence = fails(castpoi, source, "--format", "snap")
    assert sentence == f"{source} is parquet, not a snap file; use --format table"


def test_a_panic_of_the_parquet_reader_is_a_file_that_is_not_whole(
    castpoi: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(path: Path) -> None:
        raise PanicException("assertion failed")

    source = tmp_path / "v.parquet"
    pl.read_csv(table(ROWS).encode()).write_parquet(source)
    monkeypatch.setattr(pl, "read_parquet_schema", panic)
    assert fails(castpoi, source) == (
        f"{source} is not a whole parquet file (assertion failed); export it again"
    )


def test_bad_rows_of_a_parquet_file_are_counted_from_1(
    castpoi: CommandLine, tmp_path: Path
) -> None:
    source = tmp_path / "v.parquet"
    frame = pl.read_csv(table(ROWS).encode())
    frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 4).then(None).otherwise("lat").alias("lat")
    ).write_parquet(source)
    assert fails(castpoi, source).startswith(
        f"{source}, row 5: the latitude or longitude is missing; fill it in"
    )
