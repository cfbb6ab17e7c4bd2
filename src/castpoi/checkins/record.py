"""Column names, table schemas and units of time.

A *check-in* is a user at a place at an instant. Inside castpoi users and places are numbers (their
rank among the sorted ids), instants are UTC in microseconds, and rows are in *canonical order*: by
user, then instant, then place. That order does not depend on the row order of the source.
"""

from collections.abc import Iterable
from typing import Final

import polars as pl

SECOND_US: Final = 1_000_000
MINUTE_US: Final = 60 * SECOND_US
HOUR_US: Final = 60 * MINUTE_US
DAY_US: Final = 24 * HOUR_US

# Columns of a check-in
CHECKIN: Final = "checkin"
USER: Final = "user"
PLACE: Final = "place"
AT_UTC: Final = "at_utc"
OFFSET: Final = "local_offset_minutes"
PART: Final = "part"

# Columns of a user and of a place
USER_ID: Final = "user_id"
PLACE_ID: Final = "place_id"
LAT: Final = "lat"
LON: Final = "lon"
ZONE: Final = "zone"
CATEGORY: Final = "category"
NAME: Final = "name"

# Columns that only a source has
ROW: Final = "row of the source"  # with spaces, so that it does not clash with a column of a table
SOURCE: Final = "source"
SOURCE_PART: Final = "source_part"
SESSION: Final = "session"

# The parts of a split. `left out` are check-ins that the protocol excludes.
TRAIN: Final = "train"
VALIDATION: Final = "validation"
TEST: Final = "test"
LEFT_OUT: Final = "left out"
PARTS: Final = (TRAIN, VALIDATION, TEST, LEFT_OUT)

INSTANT: Final = pl.Datetime("us", "UTC")

CHECKIN_SCHEMA: Final = pl.Schema(
    {
        CHECKIN: pl.UInt32(),
        USER: pl.UInt32(),
        PLACE: pl.UInt32(),
        AT_UTC: INSTANT,
        OFFSET: pl.Int16(),
    }
)
USER_SCHEMA: Final = pl.Schema({USER: pl.UInt32, USER_ID: pl.String})
PLACE_SCHEMA: Final = pl.Schema(
    {
        **{PLACE: pl.UInt32, PLACE_ID: pl.String, LAT: pl.Float64, LON: pl.Float64},
        **{ZONE: pl.String, CATEGORY: pl.String, NAME: pl.String},
    }
)
SPLIT_SCHEMA: Final = pl.Schema({CHECKIN: pl.UInt32(), PART: pl.Enum(PARTS)})


PRIVATE_CATEGORIES: Final = (
    # Foursquare until 2022, "Residence" and what is below it; the synthetic city has "Residence"
    *("Residence", "Home (private)", "Residential Building (Apartment / Condo)"),
    *("Housing Development", "Assisted Living", "Trailer Park"),
    # Foursquare now: "Community and Government > Residential Building > Apartment or Condo"
    *("Residential Building", "Apartment or Condo"),
    *("Home", "Apartment", "Condo"),  # Gowalla
    # Overture, below "real_estate" and "public_service_and_government"
    *("apartments", "condominium", "housing_cooperative", "mobile_home_park", "low_income_housing"),
)
"""Categories of private places in the published category trees."""

_BELOW: Final = " > "  # between the categories of a path, the widest first


def is_among(category: str, wanted: Iterable[str]) -> bool:
    """Whether a category, or the last one of its path `A > B`, is wanted; case is ignored."""
    folded = category.casefold()
    return any(name.casefold() in (folded, folded.rpartition(_BELOW)[2]) for name in wanted)
