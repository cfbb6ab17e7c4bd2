"""The rules that a row must follow to be a check-in, and what happens to rows that break one.

A row breaks the first rule in this order that applies to it. Rules on single rows are checked while
the file is read; rules on places (far apart, swapped) when all rows have been read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from castpoi.checkins import record
from castpoi.checkins.reading.source import Source
from castpoi.checkins.reading.times import EARLIEST_US, LATEST_US
from castpoi.checkins.tables import Tables
from castpoi.core.errors import BadRows

if TYPE_CHECKING:
    from castpoi.checkins.reading.rows import RawCheckins


@dataclass(frozen=True)
class Rule:
    """One reason why a row is not a check-in."""

    key: str
    sentence: str  # the fault; {place}, {lat}, {lon} and {time} are cells, {limit} is in km
    fix: str


_NAME_POINT: Final = "name the columns with --columns lat=COLUMN,lon=COLUMN"
BROKEN: Final = "broken_rule"  # column of a raw row: code of the first rule that it breaks
OK: Final = 0
RULES: Final = (
    Rule("too many columns", "the row has more cells than the header", "quote cells with commas"),
    Rule("no user", "the user is missing", "fill it in"),
    Rule("no place", "the place is missing", "fill it in"),
    Rule("NUL in an id", "the id of the user or place has a NUL character", "correct it"),
    Rule("no coordinates", "the latitude or longitude is missing", "fill it in"),
    Rule("unreadable coordinates", "({lat}, {lon}) are not two numbers", "correct them"),
    Rule("swapped coordinates", "latitude {lat} and longitude {lon} look swapped", _NAME_POINT),
    Rule(
        "latitude out of range",
        "latitude {lat} is not between -90 and 90: it is mistyped, or swapped with longitude {lon}",
        f"correct it, or {_NAME_POINT}",
    ),
    Rule(
        "coordinates out of range",
        "({lat}, {lon}) is not on Earth: latitude goes from -90 to 90, longitude from -180 to 180",
        "correct them",
    ),
    Rule("null island", "(0, 0) usually means unknown coordinates", "fill in the real ones"),
    Rule("no time", "the time is missing", "fill it in"),
    Rule(
        "unreadable time",
        "'{time}' is not a time that castpoi can read",
        "write it like 2012-04-03T18:00:09Z",
    ),
    Rule("time out of range", "time '{time}' is not between 1980 and 2100", "correct it"),
    Rule(
        "time without zone",
        "time '{time}' has no zone or offset",
        "pass --naive-times utc or --naive-times local",
    ),
    Rule(
        "far-apart coordinates",
        "place '{place}' is at ({lat}, {lon}) here and more than {limit} km away in other rows",
        "give the two places different ids, or raise --max-place-spread-km",
    ),
)
_DATE_ALONE: Final = Rule(
    "unreadable time",
    "'{time}' is a date without a time of day",
    "name a column with the time of day with --columns time=COLUMN, or add it to this one",
)
_DATE: Final = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2\d{4}")
CODE: Final[Mapping[str, int]] = {rule.key: code for code, rule in enumerate(RULES, start=1)}


def broken_rule(*, naive_is_refused: bool) -> pl.Expr:
    """Code of the first rule a row breaks, 0 for a check-in.

    Needs the columns user, place, lat, lon, clock and is_naive; and has_coordinates and has_time,
    which are False where a cell is empty, not where it cannot be read.
    """
    lat, lon = pl.col("lat"), pl.col("lon")
    outside = (lat.abs() > 90) | (lon.abs() > 180)
    tests = {
        "no user": pl.col("user").is_null(),
        "no place": pl.col("place").is_null(),
        "no coordinates": ~pl.col("has_coordinates"),
        "unreadable coordinates": ~(lat.is_finite() & lon.is_finite()).fill_null(False),
        "latitude out of range": outside & (lat.abs() <= 180) & (lon.abs() <= 90),
        "coordinates out of range": outside,
        "null island": (lat == 0) & (lon == 0),
        "no time": ~pl.col("has_time"),
        "unreadable time": pl.col("clock").is_null(),
        "time out of range": (pl.col("clock").to_physical() < EARLIEST_US)
        | (pl.col("clock").to_physical() >= LATEST_US),
    }
    if naive_is_refused:
        tests["time without zone"] = pl.col("is_naive")
    code = pl.lit(OK, dtype=pl.UInt8)
    for key, breaks in reversed(tests.items()):
        code = pl.when(breaks).then(pl.lit(CODE[key], dtype=pl.UInt8)).otherwise(code)
    return code


def bad_rows(rows: Tables) -> pl.DataFrame:
    """The rows that break a rule."""
    return pl.concat([table.filter(pl.col(BROKEN) != OK) for table in rows], how="diagonal")


def check_rows(raw: "RawCheckins", *, drop: bool, limit_km: float) -> None:
    """Raise BadRows at the first row that breaks a rule; with `drop`, only if all rows do."""
    bad = raw.bad
    if bad.is_empty() or (drop and bad.height < raw.height):
        return
    counts = ", ".join(f"{count:,} {key}" for key, count in count_by_rule(raw).items())
    if drop:
        raise BadRows(
            f"{raw.sources[0].name}: every row breaks a rule ({counts}); use --on-bad-rows fail to "
            "see what is wrong with the first one"
        )
    first = bad.sort(record.SOURCE, record.ROW).row(0, named=True)
    source = raw.sources[first[record.SOURCE]]
    rule = RULES[first[BROKEN] - 1]
    cells = _cells(source, first[record.ROW], raw.meanings[first[record.SOURCE]])
    if rule.key == _DATE_ALONE.key and _DATE.fullmatch(str(cells["time"]).strip()):
        rule = _DATE_ALONE
    sentence = rule.sentence.format(**cells, limit=f"{limit_km:g}")
    skip = "" if bad.height == raw.height else ", or skip such rows with --on-bad-rows drop"
    raise BadRows(
        f"{source.name}, {source.place_of_row(first[record.ROW])}: {sentence}; {rule.fix}{skip} "
        f"(of {raw.height:,} rows: {counts})"
    )


def count_by_rule(raw: "RawCheckins") -> dict[str, int]:
    """Rule -> number of rows that break it, in the order of the rules."""
    counts = raw.bad[BROKEN].value_counts().sort(BROKEN)
    return {RULES[code - 1].key: count for code, count in counts.iter_rows()}


def bad_rows_of(raw: "RawCheckins") -> pl.DataFrame | None:
    """The rows that break a rule, as they are in their files, with file, row and rule."""
    bad = raw.bad.select(record.SOURCE, record.ROW, BROKEN)
    tables = [
        _with_cells(raw.sources[int(str(number))], rows)
        for (number,), rows in bad.sort(record.SOURCE, record.ROW).group_by(
            record.SOURCE, maintain_order=True
        )
    ]
    return pl.concat(tables, how="diagonal_relaxed") if tables else None


def _with_cells(source: Source, rows: pl.DataFrame) -> pl.DataFrame:
    """The file, row number, rule and cells of the bad rows of one source."""
    is_bad = pl.col(record.ROW).is_in(rows[record.ROW].implode())
    cells = source.scan(ragged=True).filter(is_bad).collect().sort(record.ROW)
    named = pl.DataFrame(
        {
            "file": [source.path.name] * rows.height,
            "row": rows[record.ROW] + 1,
            "reason": [RULES[code - 1].key for code in rows[BROKEN]],
        }
    )
    return named.hstack(cells.drop(record.ROW).rename(lambda name: f"cell {name}"))


def _cells(source: Source, row: int, meaning: Mapping[str, str]) -> dict[str, Any]:
    """The cells of one row by the word they mean, as they are in the file."""
    found = source.scan(ragged=True).filter(pl.col(record.ROW) == row).collect()
    texts = found.row(0, named=True) if found.height else {}
    return {word: texts.get(column, "") for word, column in meaning.items()}
