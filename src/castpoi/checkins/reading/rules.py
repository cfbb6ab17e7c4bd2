"""What makes a row a check-in, and the sentence for each row that is none.

A row breaks the first rule in this order that applies to it. Rules on single rows are decided
while the file is read; rules on places (far apart, swapped) once all rows are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from castpoi.checkins.reading.times import EARLIEST_US, LATEST_US


@dataclass(frozen=True)
class Rule:
    """One way in which a row fails to be a check-in."""

    key: str
    sentence: str
    """What is wrong; {place}, {lat}, {lon} and {time} are cells of the row, {limit} is in km."""
    fix: str


BROKEN: Final = "broken_rule"
"""Column of a raw row: code of the first rule that it breaks."""
OK: Final = 0
RULES: Final = (
    Rule("too many columns", "the row has more cells than the header", "quote cells with commas"),
    Rule("no user", "the user is missing", "fill it in"),
    Rule("no place", "the place is missing", "fill it in"),
    Rule("NUL in an id", "the id of the user or place has a NUL character in it", "correct it"),
    Rule("no coordinates", "the latitude or longitude is missing", "fill it in"),
    Rule("unreadable coordinates", "({lat}, {lon}) are not two numbers", "correct them"),
    Rule(
        "swapped coordinates",
        "latitude {lat} and longitude {lon} look swapped",
        "name the columns with --columns lat=COLUMN,lon=COLUMN",
    ),
    Rule(
        "latitude out of range",
        "latitude {lat} is not between -90 and 90: it is mistyped, or swapped with longitude {lon}",
        "correct it, or name the columns with --columns lat=COLUMN,lon=COLUMN",
    ),
    Rule(
        "coordinates out of range",
        "({lat}, {lon}) is not on Earth: latitude goes from -90 to 90, longitude from -180 to 180",
        "correct them",
    ),
    Rule("null island", "(0, 0) stands for unknown coordinates", "fill in the real ones"),
    Rule("no time", "the time is missing", "fill it in"),
    Rule(
        "unreadable time",
        "time '{time}' is not read as a time",
        "write it like 2012-04-03T18:00:09Z",
    ),
    Rule(
        "time out of range",
        "time '{time}' is not between 1980 and 2100",
        "correct it",
    ),
    Rule(
        "time without zone",
        "time '{time}' does not say its zone",
        "pass --naive-times utc or --naive-times local",
    ),
    Rule(
        "far-apart coordinates",
        "place '{place}' lies at ({lat}, {lon}) here and more than {limit} km away elsewhere",
        "give the two places ids of their own, or raise --max-place-spread-km",
    ),
)
CODE: Final[Mapping[str, int]] = {rule.key: code for code, rule in enumerate(RULES, start=1)}


def broken_rule(*, naive_is_refused: bool) -> pl.Expr:
    """Code of the first rule a row breaks, 0 for a check-in.

    Expects the columns user, place, lat, lon, clock, is_naive, and has_coordinates and has_time,
    which tell an empty cell from one that cannot be read.
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
