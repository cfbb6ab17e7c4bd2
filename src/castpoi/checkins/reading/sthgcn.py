"""What the STHGCN / LLM4POI files leave unsaid and only their city tells.

The wall-clock column means local time in NYC and TKY and UTC in CA; place id 0 is a place in NYC
and padding in TKY and CA. The city is told by where its places lie.
"""

from typing import Final

import polars as pl

from castpoi.checkins.reading.layout import NaiveTimes
from castpoi.core.errors import UnknownLayout

_BOXES: Final = {  # lat from, lat to, lon from, lon to
    "NYC": (40.0, 41.5, -75.0, -73.0),
    "TKY": (35.0, 36.5, 138.8, 140.9),
    "CA": (32.0, 42.5, -125.0, -113.5),
}


def which_city(coordinates: pl.DataFrame, *, where: str) -> str:
    """NYC, TKY or CA, by the median of the coordinates (columns lat, lon)."""
    lat, lon = coordinates["lat"].median(), coordinates["lon"].median()
    for city, (south, north, west, east) in _BOXES.items():
        if (
            isinstance(lat, float)
            and isinstance(lon, float)
            and south <= lat <= north
            and west <= lon <= east
        ):
            return city
    raise UnknownLayout(
        f"{where} has the STHGCN layout but lies neither in New York, Tokyo nor California, so "
        "what its clock means is not known; read it with --format table --columns "
        "user=UserId,place=PoiId,lat=Latitude,lon=Longitude,time=UTCTimeOffset "
        "--naive-times local (or utc)"
    )


def clock_means(city: str) -> NaiveTimes:
    """What a naive time means in the files of a city."""
    return "utc" if city == "CA" else "local"


def padding_id(city: str) -> str | None:
    """The place id that stands for padding, if any."""
    return None if city == "NYC" else "0"
