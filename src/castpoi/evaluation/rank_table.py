"""The table of ranks: one row a target, with what the target can be grouped by later."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import REVISIT_WINDOW, City
from castpoi.checkins.record import HOUR_US
from castpoi.geo.distance import haversine_km

RANK: Final = "rank"
IS_REVISIT: Final = "is_revisit"
HISTORY_LENGTH: Final = "history_length"
PLACE_COUNT_IN_TRAIN: Final = "place_count_in_train"
KM_FROM_LAST_VISIT: Final = "km_from_last_visit"
HOURS_SINCE_LAST_VISIT: Final = "hours_since_last_visit"

RANK_SCHEMA: Final = pl.Schema(
    {
        record.CHECKIN: pl.UInt32,
        record.USER: pl.UInt32,
        record.PLACE: pl.UInt32,
        RANK: pl.Float64,
        IS_REVISIT: pl.Boolean,
        HISTORY_LENGTH: pl.UInt32,
        PLACE_COUNT_IN_TRAIN: pl.UInt32,
        KM_FROM_LAST_VISIT: pl.Float64,
        HOURS_SINCE_LAST_VISIT: pl.Float64,
    }
)


def rank_table(city: City, rows: NDArray[np.int64], ranks: NDArray[np.float64]) -> pl.DataFrame:
    """One row a target of `city.trajectories`; after an empty history the last visit is null."""
    trajectories = city.trajectories
    place = trajectories.place[rows]
    has_history = rows > trajectories.starts[rows]
    before = np.where(has_history, rows - 1, rows)
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    last = trajectories.place[before]
    hours = (trajectories.at_us[rows] - trajectories.at_us[before]) / HOUR_US
    table = pl.DataFrame(
        {
            record.CHECKIN: trajectories.checkin[rows],
            record.USER: trajectories.user[rows],
            record.PLACE: place,
            RANK: ranks,
            IS_REVISIT: trajectories.is_revisit(rows, window=REVISIT_WINDOW),
            HISTORY_LENGTH: rows - trajectories.starts[rows],
            PLACE_COUNT_IN_TRAIN: counts_in_train(city)[place],
            KM_FROM_LAST_VISIT: haversine_km(lat[last], lon[last], lat[place], lon[place]),
            HOURS_SINCE_LAST_VISIT: hours,
        }
    ).cast(RANK_SCHEMA)
    return table.with_columns(
        pl.when(pl.Series(has_history)).then(pl.col(KM_FROM_LAST_VISIT, HOURS_SINCE_LAST_VISIT))
    )


def fault_of(table: pl.DataFrame, *, places: int) -> str | None:
    """What is wrong with a table of ranks that was read; None if nothing is.

    A rank is 1 to the number of places, and whole or half.
    """
    if not table.height:
        return "it has no target"
    if any(table[each].null_count() for each in (record.CHECKIN, RANK, IS_REVISIT)):
        return "a check-in, rank or is_revisit is missing"
    if table[record.CHECKIN].is_duplicated().any():
        return "a check-in stands there twice"
    ranks = table[RANK].to_numpy()
    is_rank = (ranks >= 1) & (ranks <= places) & (2 * ranks == np.floor(2 * ranks))
    if is_rank.all():
        return None
    return f"{ranks[~is_rank][0]:g} is no rank among {places:,} places"


def counts_in_train(city: City) -> NDArray[np.int64]:
    """Check-ins of each place in the train part. [P]"""
    trajectories = city.trajectories
    in_train = trajectories.part == record.PARTS.index(record.TRAIN)
    return np.bincount(trajectories.place[in_train], minlength=city.places.height)
