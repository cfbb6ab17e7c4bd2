"""The table of top places: one row a target, enough for all that is measured beyond accuracy.

Distances and counts stand in it, so that nobody needs the city to judge a result.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from castpoi.checkins import record
from castpoi.checkins.city import City
from castpoi.evaluation.rank_table import counts_in_train
from castpoi.evaluation.top_places import TopPlaces
from castpoi.geo.distance import haversine_km

TOP_PLACES: Final = "top_places"
TOP_SOFTMAX: Final = "top_softmax"
TOP_COUNTS_IN_TRAIN: Final = "top_counts_in_train"
FIRST_KM_FROM_TARGET: Final = "first_km_from_target"
TARGET_SOFTMAX: Final = "target_softmax"

TOP_SCHEMA: Final = pl.Schema(
    [
        (record.CHECKIN, pl.UInt32()),
        (TOP_PLACES, pl.List(pl.UInt32)),
        (TOP_SOFTMAX, pl.List(pl.Float32)),
        (TOP_COUNTS_IN_TRAIN, pl.List(pl.UInt32)),
        (FIRST_KM_FROM_TARGET, pl.Float64()),
        (TARGET_SOFTMAX, pl.Float64()),
    ]
)


def top_table(city: City, rows: NDArray[np.int64], best: TopPlaces) -> pl.DataFrame:
    """One row a target of `city.trajectories`, with its best places, best first."""
    target, first = city.trajectories.place[rows], best.place[:, 0]
    lat, lon = (city.places[name].to_numpy() for name in (record.LAT, record.LON))
    return pl.DataFrame(
        {
            record.CHECKIN: city.trajectories.checkin[rows],
            TOP_PLACES: best.place,
            TOP_SOFTMAX: best.softmax,
            TOP_COUNTS_IN_TRAIN: counts_in_train(city)[best.place],
            FIRST_KM_FROM_TARGET: haversine_km(lat[first], lon[first], lat[target], lon[target]),
            TARGET_SOFTMAX: best.target_softmax,
        }
    ).cast(TOP_SCHEMA)
